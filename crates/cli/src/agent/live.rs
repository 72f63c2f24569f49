//! A live session as this process sees it, be it served here or in another process.
//!
//! Whatever it tells is taken in at once and waits here in order, so that one who prints slowly misses nothing. A process that has the
//! session open and does not answer is given up after a while.

use std::sync::Arc;
use std::time::Duration;

use retake_agent::contract::{Command, Event, Outcome, Outgoing, Refusal, Reply, Request};
use retake_agent::controller::{Attached, Beginning, Handle};
use retake_agent::socket::{self, Client};
use retake_agent::view::View;
use retake_engine::SessionId;
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};

use super::AgentError;

/// After how much silence a process that owes an answer is asked whether it is there.
const SILENCE: Duration = Duration::from_secs(2);
/// How long it may take to say so.
const PATIENCE: Duration = Duration::from_secs(4);

/// The request of the prompt that this process was started for.
const OWN_REQUEST: &str = "run";

/// A live session.
pub struct Live {
    way: Way,
    told: mpsc::UnboundedReceiver<Told>,
}

enum Way {
    Here(Handle),
    Elsewhere(mpsc::UnboundedSender<Asked>),
}

/// What a session tells.
pub enum Told {
    Event(Arc<Event>),
    /// So much was missed that it is not known any more; this is how it stands.
    Missed(Box<View>),
    /// The last word.
    Over(AgentError),
}

/// A command, and who waits for the answer.
struct Asked {
    command: Command,
    answer: oneshot::Sender<Answered>,
}

/// The id of a request, and what it was answered with.
type Answered = (String, Result<Result<Reply, Refusal>, AgentError>);

impl Live {
    /// One that this process serves.
    pub async fn here(handle: Handle) -> Result<Self, AgentError> {
        let Attached { beginning, events } = handle.attach(None).await?;
        let seen = match beginning {
            Beginning::View(view) => view.seq,
            Beginning::Missed(_) => 0,
        };
        let (tell, told) = mpsc::unbounded_channel();
        tokio::spawn(listen(handle.clone(), events, seen, tell));
        Ok(Self { way: Way::Here(handle), told })
    }

    /// One in another process, which is told nothing before it is asked.
    pub fn elsewhere(client: Client, session: SessionId) -> Self {
        let (ask, asked) = mpsc::unbounded_channel();
        let (tell, told) = mpsc::unbounded_channel();
        let talk = Talk { client, session, asked, tell, waiting: Vec::new(), seen: 0, attaching: None };
        tokio::spawn(talk.go_on());
        Self { way: Way::Elsewhere(ask), told }
    }

    /// Whether other people's turns are none of this process's business.
    pub fn is_elsewhere(&self) -> bool {
        matches!(self.way, Way::Elsewhere(_))
    }

    /// Has a command carried out; returns the request that events of it carry, too.
    pub async fn ask(&self, command: Command) -> Result<(String, Result<Reply, Refusal>), AgentError> {
        match &self.way {
            Way::Here(handle) => {
                let id = OWN_REQUEST.to_owned();
                let reply = handle.send(Request { id: id.clone(), command }).await;
                Ok((id, reply))
            }
            Way::Elsewhere(ask) => {
                let (answer, mut answered) = oneshot::channel();
                ask.send(Asked { command, answer }).ok();
                let answered = tokio::select! {
                    biased;
                    answered = &mut answered => answered.ok(),
                    // What is put into a channel at the very moment at which it closes stays there.
                    () = ask.closed() => answered.try_recv().ok(),
                };
                // If the talk is over, it was not even sent.
                let (id, answer) = answered.unwrap_or_else(|| (String::new(), Ok(Err(socket::ended()))));
                Ok((id, answer?))
            }
        }
    }

    /// What it tells next. Nothing is lost if nobody waits for it any more.
    pub async fn next(&mut self) -> Told {
        self.told.recv().await.unwrap_or(Told::Over(AgentError::Ended))
    }
}

/// Takes in what a session in this process tells, until it ends.
async fn listen(
    handle: Handle,
    mut events: broadcast::Receiver<Arc<Event>>,
    mut seen: u64,
    tell: mpsc::UnboundedSender<Told>,
) {
    loop {
        let told = match events.recv().await {
            Ok(event) => vec![Told::Event(event)],
            Err(broadcast::error::RecvError::Closed) => return,
            Err(broadcast::error::RecvError::Lagged(_)) => {
                let Ok(Attached { beginning, events: again }) = handle.attach(Some(seen)).await else { return };
                events = again;
                match beginning {
                    Beginning::View(view) => vec![Told::Missed(view)],
                    Beginning::Missed(missed) => missed.into_iter().map(Told::Event).collect(),
                }
            }
        };
        for told in told {
            match &told {
                Told::Event(event) => seen = event.seq,
                Told::Missed(view) => seen = view.seq,
                Told::Over(_) => {}
            }
            if tell.send(told).is_err() {
                return;
            }
        }
    }
}

/// The talk with a session in another process.
struct Talk {
    client: Client,
    session: SessionId,
    asked: mpsc::UnboundedReceiver<Asked>,
    tell: mpsc::UnboundedSender<Told>,
    waiting: Vec<(String, oneshot::Sender<Answered>)>,
    /// The last event that was told.
    seen: u64,
    /// The request to tell what was missed.
    attaching: Option<String>,
}

impl Talk {
    /// Goes on until either side ends it.
    async fn go_on(mut self) {
        let over = loop {
            match self.step().await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => break error,
            }
        };
        for (id, answer) in std::mem::take(&mut self.waiting) {
            // In good order, what was not answered was not done.
            let answered = match over {
                AgentError::Ended => Ok(Err(socket::ended())),
                AgentError::Unreachable { .. } => Err(AgentError::Unreachable { session: self.session.short() }),
                _ => Err(AgentError::Died),
            };
            answer.send((id, answered)).ok();
        }
        self.tell.send(Told::Over(over)).ok();
    }

    /// Sends or takes in one thing; false if nobody listens here any more.
    async fn step(&mut self) -> Result<bool, AgentError> {
        let mut deadline = Instant::now() + SILENCE;
        let mut is_asked = false;
        loop {
            tokio::select! {
                asked = self.asked.recv() => {
                    let Some(Asked { command, answer }) = asked else { return Ok(false) };
                    // What it told before it closed the connection says whether it was in good order.
                    let id = match timeout(PATIENCE, self.client.send(command)).await {
                        Ok(sent) => sent.unwrap_or_default(),
                        Err(_) => return Err(self.unreachable()),
                    };
                    self.waiting.push((id, answer));
                    return Ok(true);
                }
                outgoing = self.client.next() => {
                    self.take_in(outgoing.map_err(|_| AgentError::Died)?).await?;
                    return Ok(true);
                }
                () = sleep_until(deadline), if !self.waiting.is_empty() => {
                    if is_asked {
                        return Err(self.unreachable());
                    }
                    is_asked = true;
                    self.send(Command::Ping).await?;
                    deadline = Instant::now() + PATIENCE;
                }
            }
        }
    }

    async fn send(&mut self, command: Command) -> Result<String, AgentError> {
        let sent = timeout(PATIENCE, self.client.send(command)).await;
        sent.map_err(|_| self.unreachable())?.map_err(|_| AgentError::Died)
    }

    fn unreachable(&self) -> AgentError {
        AgentError::Unreachable { session: self.session.short() }
    }

    async fn take_in(&mut self, outgoing: Outgoing) -> Result<(), AgentError> {
        match outgoing {
            Outgoing::Event(event) => {
                self.seen = event.seq;
                self.tell.send(Told::Event(Arc::from(event))).ok();
            }
            Outgoing::Lagged => self.attaching = Some(self.send(Command::Attach { from: Some(self.seen) }).await?),
            Outgoing::Ended => return Err(AgentError::Ended),
            Outgoing::Response(response) => {
                let answer = match response.outcome {
                    Outcome::Ok(reply) => Ok(reply),
                    Outcome::Refused(refusal) => Err(refusal),
                };
                if let Ok(Reply::View { view }) = &answer {
                    self.seen = view.seq;
                }
                if self.attaching.as_ref() == Some(&response.id) {
                    self.attaching = None;
                    if let Ok(Reply::View { view }) = answer {
                        self.tell.send(Told::Missed(view)).ok();
                    }
                    return Ok(());
                }
                // Whoever is turned away is so whatever they asked.
                let is_it = |(id, _): &(String, _)| *id == response.id || response.id.is_empty();
                if let Some(at) = self.waiting.iter().position(is_it) {
                    let (id, waiting) = self.waiting.remove(at);
                    waiting.send((id, Ok(answer))).ok();
                }
            }
        }
        Ok(())
    }
}
