//! What a client can be told about the workspace around a session.

use retake_engine::Timestamp;
use retake_engine::id::EntryId;
use retake_engine::session::TurnSummary;
use retake_engine::snapshot::Changed;
use serde::{Deserialize, Serialize};

use super::{CheckpointRef, OperationRef, SessionRef};

/// A conversation of the workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct SessionFacts {
    /// Its id.
    pub session: SessionRef,
    /// What it is about.
    pub title: String,
    /// When something was last said in it.
    pub at: Timestamp,
    /// How many prompts are retained in it.
    pub prompts: u64,
    /// Whether a process has it open.
    pub live: bool,
    /// The session that it was forked from.
    pub forked_from: Option<SessionRef>,
    /// The first line of what waits to be said in it.
    pub draft: Option<String>,
}

/// A checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct CheckpointFacts {
    /// Its id.
    pub checkpoint: CheckpointRef,
    /// When it was taken.
    pub at: Timestamp,
    /// Its label.
    pub label: Option<String>,
    /// What it was taken before or after, in words.
    pub note: Option<String>,
    /// What changed since the one before.
    pub changed: Changed,
    /// If it was taken at a prompt: what came of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<Changed>,
    /// What could not be captured.
    pub gaps: u64,
}

/// A prompt of the tree of everything that was ever said in a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct TreePrompt {
    /// The prompt.
    pub id: EntryId,
    /// The prompt before it on its branch.
    pub parent: Option<EntryId>,
    /// When it was said.
    pub at: Timestamp,
    /// Its first line.
    pub text: String,
    /// Its number, if it is retained; null for one that was left behind.
    pub number: Option<u64>,
    /// Its label.
    pub label: Option<String>,
    /// What its turn did to the files, if that is known.
    pub files: Option<TurnSummary>,
    /// The sessions that were forked from it, or from what was answered to it, oldest first.
    pub forks: Vec<SessionRef>,
    /// The entry that ended its turn: going back to that is going to where the turn left off. Null if it never ended.
    #[serde(default)]
    pub end: Option<EntryId>,
}

/// What an undo or a redo would be about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct OperationFacts {
    /// For [`ChangeGoal::Undo`](super::ChangeGoal::Undo): the operation, or the undo that took it back.
    pub operation: OperationRef,
    /// What the operation is: `turn`, `rewind`, `summary` and so on.
    pub kind: String,
    /// In words: what was said, or where it went back to.
    pub what: String,
    /// When it began.
    pub at: Timestamp,
}
