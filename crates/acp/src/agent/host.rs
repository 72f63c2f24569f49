//! What the program around the agent provides: live sessions, by the directory that they are about.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;

use retake_agent::live::LiveSession;
use retake_agent::view::View;
use retake_engine::Timestamp;
use serde_json::Value;
use thiserror::Error;

use crate::wire::RpcError;

/// Opens sessions and knows which there are.
pub trait Host: Send + Sync + 'static {
    /// Opens a session here, or joins it where it is open.
    fn open(&self, wish: Wish) -> impl Future<Output = Result<OpenSession, HostError>> + Send;

    /// The sessions of a directory, or of all that are known, newest first.
    fn list(&self, cwd: Option<PathBuf>) -> impl Future<Output = Result<Vec<ListedSession>, HostError>> + Send;

    /// Deletes a session that nobody has open, with its data.
    fn delete(&self, session: String) -> impl Future<Output = Result<(), HostError>> + Send;

    /// The client is gone: what is still open here for others is closed.
    fn end(&self) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// Tells people something that the protocol has no place for.
    fn warn(&self, text: &str);
}

/// Which session is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// The directory that it is about.
    pub cwd: PathBuf,
    /// Which one.
    pub which: WantedSession,
    /// Servers with tools that the client wants it to have.
    pub servers: Vec<McpServer>,
}

/// A new session or an old one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WantedSession {
    /// A new one.
    New,
    /// The one with this id.
    Existing(String),
}

/// A server with tools that is a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpServer {
    /// What its tools are called by.
    pub name: String,
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables that it gets.
    pub env: Vec<(String, String)>,
}

/// A session that is open.
pub struct OpenSession {
    /// How it stands.
    pub view: Box<View>,
    /// The way to it.
    pub live: LiveSession,
    /// Closes it, if this process serves it.
    pub close: Close,
}

/// Closes a session.
pub type Close = Box<dyn FnOnce(Parting) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// Why a session is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parting {
    /// The client has no use for it any more. Others who have it open keep it, until [`Host::end`] at the longest.
    Closed,
    /// It has to be closed now.
    Final,
}

/// A session in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedSession {
    /// Its id.
    pub session: String,
    /// The directory that it is about.
    pub cwd: PathBuf,
    /// What it is about.
    pub title: String,
    /// When something was last said in it.
    pub at: Timestamp,
}

/// Why a session cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HostError {
    /// There is none.
    #[error("there is no session `{session}` in this directory")]
    Unknown {
        /// What was asked for.
        session: String,
    },
    /// Something about the request is wrong.
    #[error("{message}")]
    Invalid {
        /// What.
        message: String,
    },
    /// It failed.
    #[error("{message}")]
    Failed {
        /// Why, and what to do.
        message: String,
    },
}

impl From<HostError> for RpcError {
    fn from(error: HostError) -> Self {
        let message = error.to_string();
        match error {
            HostError::Unknown { session } => Self::new(Self::NOT_FOUND, message)
                .with_reason("unknown_session_id")
                .with("sessionId", Value::from(session)),
            HostError::Invalid { .. } => Self::invalid_params(message),
            HostError::Failed { .. } => Self::new(Self::INTERNAL, message),
        }
    }
}
