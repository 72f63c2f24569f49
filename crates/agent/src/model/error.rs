//! Why a model could not be asked, by what can be done about it.
//!
//! No error contains a key, whatever the server wrote.

use std::time::Duration;

use retake_engine::session::entry::Block;
use thiserror::Error;

/// Why a model gave no whole answer.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ModelError {
    /// The server is not on this machine, and there is no key for it.
    #[error("no key for {model}")]
    NoKey {
        /// The model.
        model: String,
        /// The variable to set.
        variable: &'static str,
    },
    /// The server does not accept the key.
    #[error("{place} does not accept the key: {message}")]
    Unauthorized {
        /// The server.
        place: String,
        /// The variable that the key comes from.
        variable: &'static str,
        /// What the server said.
        message: String,
    },
    /// The account has nothing left to spend.
    #[error("the account at {place} has no credit left: {message}")]
    OutOfCredit {
        /// The server.
        place: String,
        /// What the server said.
        message: String,
    },
    /// The server does not have this model, or is not such a server at all.
    #[error("{place} does not know the model {model}: {message}")]
    UnknownModel {
        /// The server.
        place: String,
        /// The model.
        model: String,
        /// What the server said.
        message: String,
    },
    /// Too many requests or tokens for now.
    #[error("{place} asks to slow down: {message}")]
    RateLimited {
        /// The server.
        place: String,
        /// What the server said.
        message: String,
        /// When it may be asked again, if it says so.
        retry_after: Option<Duration>,
    },
    /// The server has too much to do, or is not ready yet.
    #[error("{place} is overloaded: {message}")]
    Overloaded {
        /// The server.
        place: String,
        /// What the server said.
        message: String,
        /// When it may be asked again, if it says so.
        retry_after: Option<Duration>,
    },
    /// Something is wrong with the server.
    #[error("{place} failed: {message}")]
    Server {
        /// The server.
        place: String,
        /// The status; 200 if it failed after it had begun to answer.
        status: u16,
        /// What the server said.
        message: String,
    },
    /// The conversation is longer than what the model can read.
    #[error("the conversation is too long for the model: {message}")]
    ContextTooLong {
        /// What the server said.
        message: String,
    },
    /// The server does not accept the request as it is.
    #[error("{place} refused the request ({status}): {message}")]
    Refused {
        /// The server.
        place: String,
        /// The status.
        status: u16,
        /// What the server said.
        message: String,
    },
    /// There is no way to the server.
    #[error("cannot reach {place}: {reason}")]
    Unreachable {
        /// The server.
        place: String,
        /// What went wrong.
        reason: String,
        /// Where the server is.
        server: ServerPlace,
    },
    /// The answer ended before it was complete.
    #[error("the answer was cut: {reason}")]
    CutStream {
        /// What went wrong.
        reason: String,
        /// What had come until then, without calls.
        partial: Vec<Block>,
    },
    /// The answer is not the summary that was asked for.
    #[error("the model gave no summary: {reason}")]
    NoSummary {
        /// What it did instead.
        reason: &'static str,
    },
    /// The server sent something that is no answer.
    #[error("{place} sent something that is no answer: {reason}")]
    Malformed {
        /// The server.
        place: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// Where a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerPlace {
    /// On this machine.
    Local,
    /// Elsewhere.
    Remote,
}

impl ModelError {
    /// Whether the same request may succeed in a while.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::RateLimited { .. } | Self::Overloaded { .. } | Self::Server { .. } | Self::CutStream { .. } => true,
            // A local server that is not running does not start by itself.
            Self::Unreachable { server, .. } => *server == ServerPlace::Remote,
            Self::NoKey { .. }
            | Self::Unauthorized { .. }
            | Self::OutOfCredit { .. }
            | Self::UnknownModel { .. }
            | Self::ContextTooLong { .. }
            | Self::Refused { .. }
            | Self::NoSummary { .. }
            | Self::Malformed { .. } => false,
        }
    }

    /// When the server wants to be asked again, if it says so.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. } | Self::Overloaded { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// What to do about it, in one line.
    pub fn advice(&self) -> String {
        match self {
            Self::NoKey { variable, .. } => format!("set {variable}, or name a local server with `--base-url`"),
            Self::Unauthorized { variable, .. } => {
                format!("check the key in {variable}, and that it is for this server")
            }
            Self::OutOfCredit { .. } => "add credit to the account, or choose another model with `--model`".to_owned(),
            Self::UnknownModel { .. } => "check the name after `--model`, and `--base-url`".to_owned(),
            Self::RateLimited { .. } | Self::Overloaded { .. } => {
                "wait a little, then send the prompt again".to_owned()
            }
            Self::Server { .. } | Self::CutStream { .. } => "send the prompt again".to_owned(),
            Self::ContextTooLong { .. } => "rewind to an earlier prompt, or start a new session".to_owned(),
            Self::Refused { .. } => "choose another model with `--model`, or rewind to before the prompt".to_owned(),
            Self::Unreachable { server: ServerPlace::Local, .. } => {
                "start the local server, or check its port in `--base-url`".to_owned()
            }
            Self::Unreachable { server: ServerPlace::Remote, .. } => "check the network and `--base-url`".to_owned(),
            Self::NoSummary { .. } => "try again, or with another model".to_owned(),
            Self::Malformed { .. } => "check that `--base-url` is of the API that `--model` names".to_owned(),
        }
    }
}
