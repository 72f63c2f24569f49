//! Tools: what the model can do.
//!
//! A call is first *prepared* (its arguments are read, and it is told what it may touch), then allowed or denied, then run. What goes
//! wrong in a tool is told to the model as a result, never an error of ours.

use std::path::PathBuf;
use std::pin::Pin;

use retake_engine::WorkspacePath;
use retake_engine::session::entry::{Outcome, Part, Todo};
use tokio::sync::{mpsc, watch};

/// What a call may touch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// It only reads, and is run freely, beside others.
    Reads,
    /// It writes these paths and no others.
    Writes {
        /// In the workspace.
        paths: Vec<WorkspacePath>,
    },
    /// It may change anything: a shell command.
    Runs {
        /// The command line.
        command: String,
    },
    /// It may change anything: a tool of an MCP server.
    Unknown,
}

/// A call that is ready to be run.
pub struct Prepared {
    /// The call in words for people: `bash: npm install`, `edit src/lib.rs`.
    pub title: String,
    /// What it may touch.
    pub access: Access,
    /// Runs it.
    pub run: Run,
}

/// Runs a prepared call.
pub type Run = Box<dyn FnOnce(Surroundings) -> Pin<Box<dyn Future<Output = Output> + Send>> + Send>;

/// What a call is run with.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// The workspace's root.
    pub root: PathBuf,
    /// Output as it comes, for people; what does not fit is dropped.
    pub output: mpsc::Sender<String>,
    /// Becomes `true` when the call has to end at once.
    pub interrupted: watch::Receiver<bool>,
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// How it went.
    pub outcome: Outcome,
    /// What the model is told.
    pub parts: Vec<Part>,
    /// The todo list from here on, if the call changed it.
    pub todos: Option<Vec<Todo>>,
}

impl Output {
    /// It did what it was asked to.
    pub fn done(text: impl Into<String>) -> Self {
        Self { outcome: Outcome::Done, parts: vec![Part::text(text)], todos: None }
    }

    /// It could not.
    pub fn failed(text: impl Into<String>) -> Self {
        Self { outcome: Outcome::Failed, parts: vec![Part::text(text)], todos: None }
    }
}
