//! Finding a session: joined if another process has it open, else opened in this one.
//!
//! Two processes that want the same session at once both get it: the engine's lock decides which of them opens it, and the other one
//! tries again until it can join. How a session is opened here is the caller's.

use std::io;
use std::path::Path;
use std::time::Duration;

use retake_engine::id::SessionId;
use retake_engine::{Environment, Workspace};
use thiserror::Error;
use tokio::time::sleep;

use super::{LiveError, LiveSession};
use crate::socket::{self, Client, Untrusted};
use crate::view::View;

/// How often, and with what pause, a session is tried that another process is opening or closing.
const ATTEMPTS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(100);

/// Where the sessions of a workspace are reached.
#[derive(Clone, Copy, Debug)]
pub struct SessionLocator<'a> {
    /// The workspace.
    pub environment: &'a Environment,
    /// The directory of the sockets.
    pub sockets: &'a Path,
}

/// A session that another process has open cannot be joined.
#[derive(Debug, Error)]
pub enum JoinError {
    /// Another user may have put the socket there.
    #[error(transparent)]
    Untrusted(Untrusted),
    /// Its socket cannot be used.
    #[error(transparent)]
    Io(io::Error),
    /// Its process does not answer, or takes no more clients.
    #[error(transparent)]
    Live(LiveError),
}

/// A session that was found.
#[derive(Debug)]
pub enum FoundSession<O> {
    /// Another process has it open.
    Joined(Box<View>, LiveSession),
    /// This process has opened it.
    Opened(O),
}

/// Why a session was not opened here.
#[derive(Debug)]
pub enum NotOpened<E> {
    /// Another process has it open, or has just had.
    Taken(E),
    /// Anything else.
    Failed(E),
}

/// Why a session was not found.
#[derive(Debug)]
pub enum FindError<E> {
    /// It cannot be joined where it is open.
    Join(JoinError),
    /// It cannot be opened here.
    Open(E),
}

impl SessionLocator<'_> {
    /// Connects with the process that has a session open; `None` if none has.
    pub async fn connect(&self, session: SessionId) -> Result<Option<Client>, JoinError> {
        let error = match Client::connect(self.sockets, session).await {
            Ok(client) => return Ok(client),
            Err(error) => error,
        };
        if let Some(untrusted) = socket::untrusted(&error) {
            // Another user who puts a directory there must not keep anybody from sessions that no process has open.
            let workspace = Workspace::open(self.environment.clone());
            if workspace.is_ok_and(|workspace| !workspace.sessions().is_live(session)) {
                return Ok(None);
            }
            return Err(JoinError::Untrusted(untrusted.clone()));
        }
        // More are waiting than it has taken in.
        if error.kind() == io::ErrorKind::WouldBlock {
            return Err(JoinError::Live(LiveError::Unreachable { session: session.short() }));
        }
        Err(JoinError::Io(error))
    }

    /// Joins a session that another process has open; `None` if none has.
    pub async fn join(&self, session: SessionId) -> Result<Option<(Box<View>, LiveSession)>, JoinError> {
        let Some(client) = self.connect(session).await? else { return Ok(None) };
        match LiveSession::attach(client, session).await {
            Ok(joined) => Ok(Some(joined)),
            // The process has ended meanwhile.
            Err(LiveError::Died | LiveError::Ended) => Ok(None),
            Err(error) => Err(JoinError::Live(error)),
        }
    }

    /// Joins a session if another process has it open, else has `open` open it here.
    pub async fn find<O, E, Opening>(
        &self,
        session: SessionId,
        mut open: impl FnMut() -> Opening,
    ) -> Result<FoundSession<O>, FindError<E>>
    where
        Opening: Future<Output = Result<O, NotOpened<E>>>,
    {
        let mut attempt = 1;
        loop {
            if let Some((view, live)) = self.join(session).await.map_err(FindError::Join)? {
                return Ok(FoundSession::Joined(view, live));
            }
            match open().await {
                Ok(opened) => return Ok(FoundSession::Opened(opened)),
                // Another process was quicker and does not listen yet, or is about to end.
                Err(NotOpened::Taken(_)) if attempt < ATTEMPTS => sleep(PAUSE).await,
                Err(NotOpened::Taken(error) | NotOpened::Failed(error)) => return Err(FindError::Open(error)),
            }
            attempt += 1;
        }
    }
}
