//! The connection to a session in another process: one task that sends requests, receives messages, and notices silence.
//!
//! It ends, and closes the connection, when no handle is left and no answer is awaited, or when the other side closes.

use std::sync::Arc;
use std::time::Duration;

use retake_engine::id::SessionId;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};

use super::{Answered, LiveAnswer, LiveError, Notification};
use crate::contract::{Command, Outgoing, Query, Reply, Request, RequestOutcome, Response};
use crate::socket::Client;

/// After how much silence a process that owes an answer is asked whether it is there.
const SILENCE: Duration = Duration::from_secs(2);
/// How long it may take to say so.
const PATIENCE: Duration = Duration::from_secs(4);

/// A request, and who waits for the answer.
#[derive(Debug)]
pub(super) struct SentRequest {
    pub(super) request: Request,
    pub(super) answer: oneshot::Sender<Answered>,
}

/// The talk with a session in another process.
pub(super) struct Talk {
    client: Client,
    session: SessionId,
    errands: mpsc::UnboundedReceiver<SentRequest>,
    tell: mpsc::UnboundedSender<Notification>,
    waiting: Vec<(String, oneshot::Sender<Answered>)>,
    /// The last event that was told.
    seen: u64,
    /// The request to tell what was missed.
    attaching: Option<String>,
}

impl Talk {
    pub(super) fn new(
        client: Client,
        session: SessionId,
        errands: mpsc::UnboundedReceiver<SentRequest>,
        tell: mpsc::UnboundedSender<Notification>,
    ) -> Self {
        Self { client, session, errands, tell, waiting: Vec::new(), seen: 0, attaching: None }
    }

    /// Goes on until either side ends it.
    pub(super) async fn go_on(mut self) {
        let over = loop {
            match self.step().await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => break error,
            }
        };
        for (_, answer) in std::mem::take(&mut self.waiting) {
            // In good order, what was not answered was not done.
            let answered = match over {
                LiveError::Ended => Ok(LiveAnswer::gone()),
                _ => Err(over.clone()),
            };
            answer.send(answered).ok();
        }
        self.tell.send(Notification::Over(over)).ok();
    }

    /// Sends or takes in one thing; false if nobody is left here who could ask.
    async fn step(&mut self) -> Result<bool, LiveError> {
        let mut deadline = Instant::now() + SILENCE;
        let mut is_asked = false;
        loop {
            tokio::select! {
                errand = self.errands.recv() => {
                    let Some(SentRequest { request, answer }) = errand else { return Ok(false) };
                    self.waiting.push((request.id.clone(), answer));
                    // If it cannot be sent, what the other side told before it closed the connection says whether that was in good order.
                    return match timeout(PATIENCE, self.client.send_request(&request)).await {
                        Ok(_) => Ok(true),
                        Err(_) => Err(self.unreachable()),
                    };
                }
                outgoing = self.client.next() => {
                    self.take_in(outgoing.map_err(|_| LiveError::Died)?).await?;
                    return Ok(true);
                }
                () = sleep_until(deadline), if !self.waiting.is_empty() => {
                    if is_asked {
                        return Err(self.unreachable());
                    }
                    is_asked = true;
                    self.send(Query::Ping).await?;
                    deadline = Instant::now() + PATIENCE;
                }
            }
        }
    }

    async fn send(&mut self, command: impl Into<Command>) -> Result<String, LiveError> {
        let sent = timeout(PATIENCE, self.client.send(command)).await;
        sent.map_err(|_| self.unreachable())?.map_err(|_| LiveError::Died)
    }

    fn unreachable(&self) -> LiveError {
        LiveError::Unreachable { session: self.session.short() }
    }

    async fn take_in(&mut self, outgoing: Outgoing) -> Result<(), LiveError> {
        match outgoing {
            Outgoing::Event(event) => {
                self.seen = event.seq;
                self.tell.send(Notification::Event(Arc::from(event))).ok();
            }
            Outgoing::Lagged => self.attaching = Some(self.send(Query::Attach { from: Some(self.seen) }).await?),
            Outgoing::Ended => return Err(LiveError::Ended),
            Outgoing::Response(response) => self.take_answer(*response),
        }
        Ok(())
    }

    fn take_answer(&mut self, Response { id, outcome, seq }: Response) {
        let answer = match outcome {
            RequestOutcome::Ok(reply) => Ok(reply),
            RequestOutcome::Refused(refusal) => Err(refusal),
        };
        if let Ok(Reply::View { view }) = &answer {
            self.seen = view.seq;
        }
        if self.attaching.as_ref() == Some(&id) {
            self.attaching = None;
            if let Ok(Reply::View { view }) = answer {
                self.tell.send(Notification::Missed(view)).ok();
            }
            return;
        }
        // Whoever is turned away is so whatever they asked.
        let is_it = |(waiting, _): &(String, _)| *waiting == id || id.is_empty();
        if let Some(at) = self.waiting.iter().position(is_it) {
            self.waiting.remove(at).1.send(Ok(LiveAnswer { result: answer, seq })).ok();
        }
    }
}
