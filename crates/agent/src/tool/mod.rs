//! Tools: what the model can do.
//!
//! A call is first *prepared* (its arguments are read, and it is told what it may touch), then allowed or denied, then run. What goes
//! wrong in a tool is told to the model as a result, never an error of ours.

mod arguments;
mod edit;
mod explore;
mod file;
mod job;
mod known_files;
mod path;
mod preview;
mod run;
mod search;
pub(crate) mod shell;
mod todo;
mod toolbox;

use std::path::PathBuf;
use std::pin::Pin;

use retake_engine::WorkspacePath;
use retake_engine::session::entry::{Details, Outcome, Part, Todo};
use tokio::sync::{mpsc, watch};

pub use job::{Job, JobEnded, JobId, JobOutput, JobState, Jobs};
pub use preview::Preview;
pub use shell::{CALL_MARK, Exit, Shell, TURN_MARK};
pub use toolbox::Toolbox;

pub(crate) use explore::{CHECKPOINT, Exploring, REWIND};
pub(crate) use path::PathResolver;
pub(crate) use run::interruption;
pub(crate) use shell::in_one_line;
pub(crate) use toolbox::own_names;

/// The tools that change files in the workspace and nothing else.
pub const EDIT_TOOLS: [&str; 5] = ["write_file", "edit_file", "multi_edit", "move_file", "delete_file"];

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
    /// It may change anything: a tool of an MCP server, or an edit of more paths than can be told beforehand.
    Unknown,
}

/// A call that is ready to be run.
pub struct Prepared {
    /// The call in words for people: `bash: npm install`, `edit src/lib.rs`.
    pub title: String,
    /// What it may touch.
    pub access: Access,
    /// What it would write, if that can be known, or why it is bound to fail.
    pub preview: Option<Preview>,
    /// Runs it.
    pub run: Run,
}

impl Prepared {
    /// A call of which is not known what it would write.
    pub(crate) fn new(title: String, access: Access, run: Run) -> Self {
        Self { title, access, preview: None, run }
    }

    /// With a way to tell what it would write.
    pub(crate) fn with_preview(self, preview: Preview) -> Self {
        Self { preview: Some(preview), ..self }
    }
}

/// Runs a prepared call.
pub type Run = Box<dyn FnOnce(CallContext) -> Pin<Box<dyn Future<Output = Output> + Send>> + Send>;

/// What a call is run with.
#[derive(Clone, Debug)]
pub struct CallContext {
    /// The workspace's root.
    pub root: PathBuf,
    /// Output as it comes, for people; what does not fit is dropped.
    pub output: mpsc::Sender<String>,
    /// Becomes `true` when the call has to end at once.
    pub interrupted: watch::Receiver<bool>,
    /// What jobs that the call starts are tagged with: the prompt's id, say.
    pub tag: String,
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
    /// What it means for what the model sees from here on, or where it wrote.
    pub details: Option<Details>,
    /// The job that goes on after the call: it was started in the background, or the command left processes running.
    pub job: Option<JobId>,
}

/// A number with what it counts: `1 line`, `2 lines`.
fn counted(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

impl Output {
    /// It did what it was asked to.
    pub fn done(text: impl Into<String>) -> Self {
        Self::new(Outcome::Done, text)
    }

    /// It could not.
    pub fn failed(text: impl Into<String>) -> Self {
        Self::new(Outcome::Failed, text)
    }

    /// It was stopped before its end.
    pub fn interrupted(text: impl Into<String>) -> Self {
        Self::new(Outcome::Interrupted, text)
    }

    /// An outcome with what the model is told.
    pub fn new(outcome: Outcome, text: impl Into<String>) -> Self {
        Self { outcome, parts: vec![Part::text(text)], todos: None, details: None, job: None }
    }

    /// The same, of an edit whose replacements began at these lines.
    fn at_lines(self, lines: Vec<usize>) -> Self {
        let lines = lines.into_iter().map(|line| u32::try_from(line).unwrap_or(u32::MAX)).collect();
        Self { details: Some(Details::Edited { lines }), ..self }
    }

    /// All texts, for tests and for people.
    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            Part::Paste { .. } | Part::File { .. } | Part::Image { .. } => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}
