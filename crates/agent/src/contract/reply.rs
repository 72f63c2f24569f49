//! What requests are answered with.

use retake_engine::id::EntryId;
use retake_engine::session::Target;
use retake_engine::session::entry::{Part, Usage};
use serde::{Deserialize, Serialize};

use super::{CheckpointFacts, Event, OperationFacts, OperationRef, SessionFacts, SessionRef, TreePrompt};
use crate::diff::FileDiff;
use crate::rewind_document::{Bytes, RewindDocument};
use crate::view::View;

/// What a client gets: `{"response": …}`, `{"event": …}`, `"lagged"` or `"ended"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Outgoing {
    /// The answer to a request.
    Response(Box<Response>),
    /// Something happened.
    Event(Box<Event>),
    /// The client was too slow and has missed events: it has to attach again.
    Lagged,
    /// The session has ended, and this is the last word: what was not answered was not done. Without it the process has died.
    Ended,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Response {
    /// The request.
    pub id: String,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: RequestOutcome,
    /// The number of the last event that the session published before it answered. A client whose view is older has events to come that
    /// happened before the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum RequestOutcome {
    /// It was done.
    Ok(Reply),
    /// It was not.
    Refused(Refusal),
}

/// What a request was answered with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Reply {
    /// It was done, and there is nothing to tell.
    Done,
    /// Everything, up to and including event number `view.seq`.
    View {
        /// Everything.
        view: Box<View>,
    },
    /// The prompt is said.
    Said {
        /// The prompt.
        prompt: EntryId,
    },
    /// The prompt is held until the turn has ended.
    Held {
        /// How many are held now.
        count: usize,
        /// The request that it came with, for [`Action::Withdraw`](super::Action::Withdraw); the events of its turn will carry it. Null if it had no id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<String>,
    },
    /// What one can go back to, newest first.
    Targets {
        /// The head, for [`Action::Apply`](super::Action::Apply).
        head: Option<EntryId>,
        /// The prompts.
        targets: Vec<Target>,
    },
    /// What a change would do, or has done.
    Change {
        /// The plan and what became of it.
        document: Box<RewindDocument>,
    },
    /// All prompts, oldest first.
    Tree {
        /// The last prompt that is retained.
        head: Option<EntryId>,
        /// The prompts.
        prompts: Vec<TreePrompt>,
    },
    /// What undo and redo are about now; each null if there is nothing.
    Operations {
        /// What undo would take back.
        undo: Option<Box<OperationFacts>>,
        /// What redo would repeat.
        redo: Option<Box<OperationFacts>>,
    },
    /// The checkpoints, newest first.
    Checkpoints {
        /// The checkpoints.
        checkpoints: Vec<CheckpointFacts>,
    },
    /// The conversations, newest first.
    Sessions {
        /// The conversations.
        sessions: Vec<SessionFacts>,
    },
    /// Paths of files, the best first.
    Files {
        /// The paths.
        paths: Vec<String>,
    },
    /// How large the store is.
    Store {
        /// In bytes.
        bytes: u64,
        /// What it should not exceed, in bytes.
        budget: u64,
    },
    /// Differences, by path.
    Diff {
        /// What changes in each.
        files: Vec<FileDiff>,
        /// The plan that they belong to, if they are what a change would do.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        plan: Option<Box<RewindDocument>>,
    },
    /// A session was forked from this one.
    Forked {
        /// The new session.
        session: SessionRef,
        /// The operation that can be undone.
        operation: OperationRef,
        /// What is about to be said in it.
        draft: Vec<Part>,
        /// Files that are not as the model last saw them, of which a note tells it.
        differing: Vec<Bytes>,
    },
    /// A summary stands for a part of the conversation from now on.
    Summarised {
        /// The summary; null if there was nothing to summarise.
        summary: Option<Box<Summarised>>,
    },
    /// What the model would be sent next.
    Context {
        /// The body of the request.
        body: String,
    },
}

/// A summary that was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Summarised {
    /// The entry that holds it.
    pub entry: EntryId,
    /// The operation that it is.
    pub operation: OperationRef,
    /// The first and the last entry that it stands for.
    pub range: (EntryId, EntryId),
    /// The text.
    pub text: String,
    /// What writing it cost.
    pub usage: Usage,
    /// How long the request to the model was, in bytes, and how long it would be now.
    pub bytes: (usize, usize),
}

/// Why a request was refused; nothing was changed unless `rewind_document` says otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Refusal {
    /// For programs.
    pub reason: Reason,
    /// For people.
    pub message: String,
    /// What to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The plan, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<Box<RewindDocument>>,
}

/// Why a request was refused, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// A turn is running.
    Running,
    /// It was stopped.
    Interrupted,
    /// The head is somewhere else.
    StaleHead,
    /// Something has to be decided.
    Conflicts,
    /// Files have changed since the plan was made.
    StalePlan,
    /// Other tools are at work in the workspace.
    InUse,
    /// There is no such thing.
    NotFound,
    /// The files of that moment are not kept; the conversation alone can go back.
    NoFiles,
    /// There is nothing to undo or redo.
    Nothing,
    /// The request makes no sense.
    Invalid,
    /// The session has ended, or is about to: another process may open it.
    Ended,
    /// It could not be done.
    Failed,
}
