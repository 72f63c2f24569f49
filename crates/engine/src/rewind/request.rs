//! What is asked for: where to go, with which files, and what to do with conflicts.

use std::collections::BTreeMap;

use crate::base::id::{CheckpointId, EntryId, OperationId, SessionId};
use crate::base::path::WorkspacePath;
use crate::base::settings::Timestamp;
use crate::history::operation::MadeBy;
use crate::session::{Discard, Scope};

/// Where to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Goal {
    /// Make the captured workspace equal to a checkpoint.
    Exact {
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// The session that it is done in, and whose operation it is; the one that the checkpoint belongs to for `None`.
        session: Option<SessionId>,
    },
    /// Take back what a session changed since a checkpoint, and nothing else.
    Selective {
        /// The session.
        session: SessionId,
        /// The checkpoint.
        checkpoint: CheckpointId,
    },
    /// Go to a place in a conversation: before a prompt, after any other entry.
    Entry {
        /// The conversation.
        session: SessionId,
        /// The entry.
        entry: EntryId,
        /// What goes back.
        scope: Scope,
        /// Which files.
        files: Files,
        /// Whether what leaves the conversation is removed.
        discard: Discard,
    },
    /// Go to just after a prompt: it stays, unanswered, and what came of it goes.
    AfterPrompt {
        /// The conversation.
        session: SessionId,
        /// The prompt.
        prompt: EntryId,
        /// What goes back.
        scope: Scope,
        /// Which files.
        files: Files,
    },
    /// Take back an operation.
    Undo {
        /// Which one; the newest that is not undone for `None`.
        operation: Option<OperationId>,
        /// Only operations of this session; forks of it are passed over.
        session: Option<SessionId>,
    },
    /// Repeat the operation that was undone last.
    Redo {
        /// Only operations of this session; forks of it are passed over.
        session: Option<SessionId>,
    },
}

/// Which files go back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Files {
    /// Those that the session changed.
    #[default]
    Selective,
    /// All.
    Exact,
}

/// What to do with a path that somebody else changed too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum OnConflict {
    /// Do nothing at all.
    #[default]
    Stop,
    /// Leave the path as it is.
    Keep,
    /// Bring the path to the target's state; its present one is in the safety snapshot.
    Overwrite,
    /// Take only our changes out of it, by three-way merge.
    Merge,
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct RewindRequest {
    /// Where to go.
    pub goal: Goal,
    /// Only these paths and what is below them; everything if empty.
    pub paths: Vec<WorkspacePath>,
    /// What to do with conflicts.
    pub on_conflict: OnConflict,
    /// What to do with the conflicts of single paths.
    pub choices: BTreeMap<WorkspacePath, OnConflict>,
    /// What an exact rewind does with the changes of a person, and with what no checkpoint has captured since a command changed it, where
    /// neither of these decides: it stops or overwrites them.
    pub on_yours: OnConflict,
    /// Go ahead although another branch is checked out than at the target.
    pub across_branches: bool,
    /// Where the caller saw the head; it is refused if it is somewhere else.
    pub head_seen: Option<HeadSeen>,
    /// Who makes the operation.
    pub made_by: MadeBy,
}

/// Where a caller saw the head of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadSeen(pub Option<EntryId>);

impl RewindRequest {
    /// Goes to `goal` with everything, and stops at conflicts.
    pub fn new(goal: Goal) -> Self {
        Self {
            goal,
            paths: Vec::new(),
            on_conflict: OnConflict::Stop,
            choices: BTreeMap::new(),
            on_yours: OnConflict::Stop,
            across_branches: false,
            head_seen: None,
            made_by: MadeBy::Command,
        }
    }

    pub(super) fn covers(&self, path: &WorkspacePath) -> bool {
        self.paths.is_empty() || self.paths.iter().any(|wanted| path.starts_with(wanted))
    }

    pub(super) fn choice(&self, path: &WorkspacePath) -> OnConflict {
        self.choices.get(path).copied().unwrap_or(self.on_conflict)
    }

    /// Whether changes that are or may be a person's are replaced without a decision about single paths.
    pub(super) fn replaces_yours(&self, path: &WorkspacePath) -> bool {
        self.on_yours == OnConflict::Overwrite
            && self.choice(path) == OnConflict::Stop
            && !self.choices.contains_key(path)
    }
}

/// What the caller gives to a new operation: fresh identities and the time.
#[derive(Clone, Copy, Debug)]
pub struct NewRewind {
    /// The operation's identity.
    pub operation: OperationId,
    /// The identity of the checkpoint that is taken before anything is touched.
    pub safety: CheckpointId,
    /// The identity of the checkpoint that is taken when all is done.
    pub after: CheckpointId,
    /// The identity of the note that tells the model, if there is one to be told.
    pub note: EntryId,
    /// The time.
    pub at: Timestamp,
}
