//! A live session as a client sees it, be it served in this process or in another one.
//!
//! [`Asker`] takes commands to it, several at a time and in order; [`Listener`] has what it tells. Whatever it tells is taken in at once
//! and waits here in order, so that one who shows it slowly misses nothing. Neither decides anything. A process that has the session open
//! and does not answer is given up after a while, and one that died is told apart from one that ended in good order: see [`LiveError`].

mod find;
mod local;
mod remote;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use retake_engine::id::SessionId;
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};

use crate::contract::{Command, Event, Query, Reason, Refusal, Reply, Request};
use crate::controller::{self, Attached, Beginning, Handle, Pending};
use crate::ids;
use crate::socket::Client;
use crate::view::View;
pub use find::{FindError, FoundSession, JoinError, NotOpened, SessionLocator};
use remote::{SentRequest, Talk};

/// A live session.
#[derive(Debug)]
pub struct LiveSession {
    /// Takes commands to it.
    pub asker: Asker,
    /// Has what it tells.
    pub told: Listener,
}

/// A session is gone, or out of reach.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum LiveError {
    /// It has ended in good order: what was not answered was not done.
    #[error("the session has ended")]
    Ended,
    /// Its process has died: what was not answered may have been done or not.
    #[error("the process that had the session open has died")]
    Died,
    /// Its process does not answer.
    #[error("session {session} is open in another process that does not answer")]
    Unreachable {
        /// The session, in short.
        session: String,
    },
    /// It takes no more clients.
    #[error("{}", .0.message)]
    TurnedAway(Box<Refusal>),
}

/// What a session tells.
#[derive(Debug)]
pub enum Notification {
    /// Something happened.
    Event(Arc<Event>),
    /// So much was missed that it is not known any more; this is how it stands.
    Missed(Box<View>),
    /// The last word.
    Over(LiveError),
}

/// Takes commands to a session.
#[derive(Clone, Debug)]
pub struct Asker {
    way: Route,
    /// What the requests of this client begin with, and of no other.
    name: Arc<str>,
    next: Arc<AtomicU64>,
}

#[derive(Clone, Debug)]
enum Route {
    Here(Handle),
    Elsewhere(mpsc::UnboundedSender<SentRequest>),
}

/// A command that was handed in.
#[derive(Debug)]
pub struct SentCommand {
    /// The request that the events of it carry.
    pub id: String,
    answer: Awaited,
}

#[derive(Debug)]
enum Awaited {
    Here(Pending, Handle),
    Elsewhere {
        // The talk goes on for as long as somebody waits for an answer.
        way: mpsc::UnboundedSender<SentRequest>,
        answer: oneshot::Receiver<Answered>,
    },
}

/// The answer to a request.
#[derive(Debug)]
pub struct LiveAnswer {
    /// What came of it.
    pub result: Result<Reply, Refusal>,
    /// The number of the last event before it, if the session says.
    pub seq: Option<u64>,
}

/// What a request was answered with, if it was.
type Answered = Result<LiveAnswer, LiveError>;

/// Has what a session tells.
#[derive(Debug)]
pub struct Listener {
    told: mpsc::UnboundedReceiver<Notification>,
    over: LiveError,
}

impl LiveSession {
    /// One that this process serves, and how it stands.
    pub async fn here(handle: Handle) -> Result<(Box<View>, Self), LiveError> {
        // One that has ended is the only one that cannot be attached to.
        let Attached { beginning, events } = handle.attach(None).await.map_err(|_| LiveError::Ended)?;
        let Beginning::View(view) = beginning else { return Err(LiveError::Ended) };
        let (tell, told) = mpsc::unbounded_channel();
        tokio::spawn(local::listen(handle.clone(), events, view.seq, tell));
        Ok((view, Self { asker: Asker::new(Route::Here(handle)), told: Listener::new(told) }))
    }

    /// One in another process, which tells nothing before it is asked to.
    pub fn elsewhere(client: Client, session: SessionId) -> Self {
        let (ask, errands) = mpsc::unbounded_channel();
        let (tell, told) = mpsc::unbounded_channel();
        tokio::spawn(Talk::new(client, session, errands, tell).go_on());
        Self { asker: Asker::new(Route::Elsewhere(ask)), told: Listener::new(told) }
    }

    /// One in another process, and how it stands.
    pub async fn attach(client: Client, session: SessionId) -> Result<(Box<View>, Self), LiveError> {
        let live = Self::elsewhere(client, session);
        match live.asker.ask(Query::Attach { from: None }).await? {
            Ok(Reply::View { view }) => Ok((view, live)),
            Err(refusal) if refusal.reason != Reason::Ended => Err(LiveError::TurnedAway(Box::new(refusal))),
            Ok(_) | Err(_) => Err(LiveError::Ended),
        }
    }
}

impl Asker {
    fn new(way: Route) -> Self {
        let [a, b, c, d, ..] = ids::random();
        Self { way, name: format!("{a:02x}{b:02x}{c:02x}{d:02x}").into(), next: Arc::default() }
    }

    /// Whether another process serves the session.
    pub fn is_elsewhere(&self) -> bool {
        matches!(self.way, Route::Elsewhere(_))
    }

    /// Hands a command in: those that were handed in first are carried out first, whenever their answers come.
    pub async fn hand_in(&self, command: impl Into<Command>) -> SentCommand {
        let id = format!("{}-{}", self.name, self.next.fetch_add(1, Ordering::Relaxed) + 1);
        self.hand_in_as(Request { id, command: command.into() }).await
    }

    /// Hands a request in under an id that the caller has chosen and waits on no other one with: it is not empty and does not begin
    /// with `#`.
    pub async fn hand_in_as(&self, request: Request) -> SentCommand {
        let id = request.id.clone();
        let answer = match &self.way {
            Route::Here(handle) => Awaited::Here(handle.hand_in(request).await, handle.clone()),
            Route::Elsewhere(way) => {
                let (answer, answered) = oneshot::channel();
                // If the talk is over, whoever waits is told.
                way.send(SentRequest { request, answer }).ok();
                Awaited::Elsewhere { way: way.clone(), answer: answered }
            }
        };
        SentCommand { id, answer }
    }

    /// Has a command carried out.
    pub async fn ask(&self, command: impl Into<Command>) -> Result<Result<Reply, Refusal>, LiveError> {
        self.hand_in(command).await.answer().await
    }
}

impl SentCommand {
    /// Waits for the answer; a session that ended in good order before it got to the request refuses it with [`Reason::Ended`].
    ///
    /// A request to a session in this process that nobody waits for any more is not begun. One to another process is carried out for as
    /// long as the client has any [`Asker`] or [`SentCommand`] left.
    pub async fn answer(self) -> Result<Result<Reply, Refusal>, LiveError> {
        self.numbered_answer().await.map(|answer| answer.result)
    }

    /// Waits for the answer, as [`Self::answer`] does, and tells which events came before it.
    pub async fn numbered_answer(self) -> Result<LiveAnswer, LiveError> {
        match self.answer {
            Awaited::Here(pending, handle) => {
                let result = pending.answer().await;
                Ok(LiveAnswer { result, seq: handle.published() })
            }
            Awaited::Elsewhere { way, mut answer } => {
                let answered = tokio::select! {
                    biased;
                    answered = &mut answer => answered.ok(),
                    // What is put into a channel at the very moment at which it closes stays there.
                    () = way.closed() => answer.try_recv().ok(),
                };
                // If the talk is over, it was not even sent.
                answered.unwrap_or_else(|| Ok(LiveAnswer::gone()))
            }
        }
    }
}

impl LiveAnswer {
    /// The session ended before it got to the request.
    fn gone() -> Self {
        Self { result: Err(controller::gone()), seq: None }
    }
}

impl Listener {
    fn new(told: mpsc::UnboundedReceiver<Notification>) -> Self {
        Self { told, over: LiveError::Ended }
    }

    /// What it tells next; the last word is repeated for ever. Nothing is lost if this is dropped.
    pub async fn next(&mut self) -> Notification {
        match self.told.recv().await {
            Some(told) => {
                if let Notification::Over(error) = &told {
                    self.over = error.clone();
                }
                told
            }
            None => Notification::Over(self.over.clone()),
        }
    }
}
