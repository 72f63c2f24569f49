//! What a server is given by the program around it: a way to open sessions.

use retake_agent::controller::{Handle, Which};
use thiserror::Error;

/// Opens sessions in this process, as the user has set things up: the model, the tools, what may run.
pub trait SessionOpener: Send + Sync + 'static {
    /// Opens a session and listens on its socket. Called inside the runtime, on a thread that may wait.
    fn open(&self, which: Which) -> Result<OpenedSession, Problem>;
}

/// A session that was opened.
pub struct OpenedSession {
    /// The way to it.
    pub handle: Handle,
    /// Closes it and waits until everything is stored. Called on a thread that may wait.
    pub finish: Box<dyn FnOnce() + Send>,
}

/// Something could not be done.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct Problem {
    pub(crate) status: u16,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// Another process has the session open.
    pub(crate) is_taken: bool,
}

impl Problem {
    /// It failed here.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(500, message)
    }

    /// There is no such session, or there is none any more.
    pub fn missing(message: impl Into<String>) -> Self {
        Self::new(404, message)
    }

    /// Another process has the session open.
    pub fn taken(message: impl Into<String>) -> Self {
        Self { is_taken: true, ..Self::new(409, message) }
    }

    pub(crate) fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), hint: None, is_taken: false }
    }

    /// The same, with what to do about it.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
