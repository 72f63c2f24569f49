//! Why a rewind did not happen, by what the caller can do about it.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use super::{ForkUse, PathStatus, Plan};
use crate::base::id::{CheckpointId, EntryId, OperationId, SessionId};
use crate::base::path::WorkspacePath;
use crate::history::checkpoint::CheckpointError;
use crate::history::operation::{Operation, OperationError};
use crate::scan::ScanError;
use crate::session::head_target::{NoPlace, NoTarget};
use crate::store::StoreError;

/// A rewind did not happen. Unless it says otherwise nothing was changed.
#[derive(Debug, Error)]
pub enum RewindError {
    /// There are conflicts, or something has to be confirmed.
    #[error("nothing was changed: the plan needs a decision")]
    Refused {
        /// The plan.
        plan: Box<Plan>,
    },
    /// The plan is another than the one that was shown: files, the head or the branch have changed.
    #[error("nothing was changed: the plan has changed since it was shown")]
    Stale {
        /// The plan as it would be now.
        plan: Box<Plan>,
    },
    /// The conversation is not where the caller saw it.
    #[error("nothing was changed: the conversation has moved on since")]
    StaleHead,
    /// The conversation has no such entry.
    #[error("there is no entry {} in this conversation", .entry.short())]
    UnknownEntry {
        /// What was asked for.
        entry: EntryId,
    },
    /// Nobody goes back to a note, an instruction or an approval.
    #[error("entry {} is not a place to go back to", .entry.short())]
    NotATarget {
        /// The entry.
        entry: EntryId,
    },
    /// The files of that moment are not kept any more, or never were.
    #[error("the files as they were at {} are not kept", .entry.short())]
    FilesGone {
        /// The entry.
        entry: EntryId,
    },
    /// The operation would move the head of a conversation that the caller has not opened.
    #[error("session {} has to be opened first", .session.short())]
    SessionNotOpen {
        /// The session.
        session: SessionId,
    },
    /// A fork cannot be taken back: its session is used.
    #[error("nothing was changed: session {} {}", .session.short(), .why.describe())]
    ForkInUse {
        /// The session.
        session: SessionId,
        /// Why not.
        why: ForkUse,
    },
    /// There are no files to take back, and the conversation that the operation took away was removed for good.
    #[error("nothing was undone: the files are as they were before {what}, and what was said was removed for good")]
    Discarded {
        /// The operation.
        operation: OperationId,
        /// What it is called.
        what: String,
    },
    /// The checkpoint is gone.
    #[error("the checkpoint is not there any more")]
    Gone,
    /// An interrupted operation has to be recovered first.
    #[error("an interrupted {} of `{}` has to be finished first", .operation.kind.name(), .operation.what)]
    Pending {
        /// The operation.
        operation: Box<Operation>,
    },
    /// Writing failed, and everything was put back.
    #[error("cannot {what} `{}`; nothing was changed", .path.display())]
    RolledBack {
        /// What was tried.
        what: &'static str,
        /// The path.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Writing failed, and so did putting everything back.
    #[error("cannot {what} `{}`, and not everything could be put back", .path.display())]
    Partial {
        /// What was tried.
        what: &'static str,
        /// The path.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
        /// What became of each path.
        statuses: Vec<(WorkspacePath, PathStatus)>,
        /// The point before.
        safety: CheckpointId,
    },
    /// All files are as they should be, but that could not be recorded; the next recovery does that.
    #[error("the files are as planned, but the operation could not be recorded yet")]
    NotRecorded {
        /// Why not.
        source: Box<CheckpointError>,
    },
    /// All is done, but what lies under temporary names could not be stored or removed. The next recovery tries again.
    #[error("{} of a rewind had to stay", if .paths.len() == 1 { "one temporary file".to_owned() } else { format!("{} temporary files", .paths.len()) })]
    LeftOver {
        /// The names.
        paths: Vec<WorkspacePath>,
    },
    /// Tools of other sessions are at work in the workspace.
    #[error("nothing was changed: still at work here: {}", .tools.join(", "))]
    InUse {
        /// The tools.
        tools: Vec<String>,
    },
    /// What an interrupted rewind has to write is damaged in the store.
    #[error("the content of `{}` is damaged in the store", .path.display())]
    DamagedTarget {
        /// The path.
        path: WorkspacePath,
    },
    /// An interrupted rewind could not be finished; it can be tried again, and nothing is lost.
    #[error("cannot {what} `{}`, so the interrupted rewind is not finished yet", .path.display())]
    Unfinished {
        /// What was tried.
        what: &'static str,
        /// The path.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Somebody changed files after a crash, so that finishing needs a decision.
    #[error("{} since the rewind was interrupted", if .paths.len() == 1 { "a file was changed".to_owned() } else { format!("{} files were changed", .paths.len()) })]
    ChangedSinceCrash {
        /// The operation.
        operation: Box<Operation>,
        /// The files.
        paths: Vec<WorkspacePath>,
    },
    /// There is no such operation.
    #[error(transparent)]
    Operation(#[from] OperationError),
    /// The safety snapshot could not be taken.
    #[error(transparent)]
    Safety(#[from] CheckpointError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<ScanError> for RewindError {
    fn from(err: ScanError) -> Self {
        Self::Safety(err.into())
    }
}

impl RewindError {
    /// Why a conversation cannot be taken to `entry`.
    pub(super) fn no_target(entry: EntryId) -> impl FnOnce(NoTarget) -> Self {
        move |why| match why {
            NoTarget::Entry(NoPlace::NotAConversation | NoPlace::UnknownEntry) => Self::UnknownEntry { entry },
            NoTarget::Entry(NoPlace::NotATarget) => Self::NotATarget { entry },
            NoTarget::Store(err) => Self::Store(err),
        }
    }
}
