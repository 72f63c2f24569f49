//! Changes of what is retained, and what parts and differences can be asked for.

use retake_engine::id::EntryId;
use retake_engine::rewind::{Files, OnConflict};
use retake_engine::session::{Discard, Scope};
use serde::{Deserialize, Serialize};

use super::is_default;
use crate::rewind_document::Bytes;

/// A change of what is retained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Change {
    /// What is to be done.
    #[serde(flatten)]
    pub goal: ChangeGoal,
    /// Only these paths and what is below them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<Bytes>,
    /// What to do with conflicts.
    #[serde(default, skip_serializing_if = "is_default")]
    pub on_conflict: OnConflict,
    /// What to do with the conflicts of single paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<(Bytes, OnConflict)>,
    /// What an exact rewind does with the changes of a person where neither of these decides: it stops or overwrites them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub on_yours: OnConflict,
    /// Go ahead although another branch is checked out than then.
    #[serde(default, skip_serializing_if = "is_default")]
    pub across_branches: bool,
}

impl Change {
    /// A change of everything that stops at conflicts.
    pub fn new(goal: ChangeGoal) -> Self {
        Self {
            goal,
            paths: Vec::new(),
            on_conflict: OnConflict::Stop,
            choices: Vec::new(),
            on_yours: OnConflict::Stop,
            across_branches: false,
        }
    }
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum ChangeGoal {
    /// Go back to before a prompt, or to after any other entry.
    Rewind {
        /// The entry.
        entry: EntryId,
        /// What goes back.
        scope: Scope,
        /// Which files.
        #[serde(default, skip_serializing_if = "is_default")]
        files: Files,
        /// Whether what leaves the conversation is removed for good.
        #[serde(default, skip_serializing_if = "is_default")]
        discard: Discard,
    },
    /// Go back to just after a prompt: it stays, unanswered, and what came of it goes.
    KeepPrompt {
        /// The prompt.
        prompt: EntryId,
        /// What goes back.
        scope: Scope,
        /// Which files.
        #[serde(default, skip_serializing_if = "is_default")]
        files: Files,
    },
    /// Bring files back to a checkpoint; the conversation stays.
    Checkpoint {
        /// A unique beginning of its id, or its label.
        checkpoint: String,
        /// Which files. Null for the meaning that the checkpoint has on the command line: a prompt of this session means the session's
        /// changes since, a checkpoint of `retake checkpoint` means the whole workspace. One of another session is refused.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        files: Option<Files>,
    },
    /// Take back an operation.
    Undo {
        /// A unique beginning of its id; the newest of this session that is not undone for null. The id of an undo asks for the redo of
        /// that very undo, and is refused if it is not the one that a redo would take back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        operation: Option<String>,
    },
    /// Repeat what was undone last.
    Redo {
        /// A unique beginning of the id of what was undone, or of the undo: refused if a redo would repeat something else by now.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        operation: Option<String>,
    },
}

/// Where a client saw the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct SeenHead {
    /// The head; null if there was no entry.
    pub head: Option<EntryId>,
}

/// What to do if a turn is running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum WhileRunning {
    /// Refuse.
    #[default]
    Refuse,
    /// Stop it, then go on.
    Interrupt,
}

/// A part of the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(tag = "part", rename_all = "snake_case")]
pub enum Extent {
    /// Everything.
    All,
    /// From a prompt on, or what comes after any other entry.
    From {
        /// The entry.
        entry: EntryId,
    },
    /// What is before a prompt, or up to any other entry.
    UpTo {
        /// The entry.
        entry: EntryId,
    },
}

/// What a diff is of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum DiffOf {
    /// What a change would do to the files as they are now.
    Change {
        /// The change.
        change: Change,
    },
    /// What changed in the turn of a prompt, whoever did it.
    Turn {
        /// The prompt.
        prompt: EntryId,
    },
    /// What differs between two points, as the way from one to the other.
    Between {
        /// The first one.
        from: DiffPoint,
        /// The second one.
        to: DiffPoint,
    },
}

/// A point to compare: a prompt, which means before it; another entry, which means after it; or a checkpoint. Each by a unique
/// beginning of its id, a checkpoint also by its label; null for the files as they are now.
pub type DiffPoint = Option<String>;
