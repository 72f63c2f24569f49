//! Forks: a new session that starts from an entry of another.
//!
//! What was said before is not copied: the head of a fork is an entry of the session that it was forked from, which is not touched and
//! need not be closed. Undoing a fork hides the new session, redoing it shows it again, so that nothing that was said in it can be lost
//! by either; what is hidden goes with the operation.

use std::path::PathBuf;

use rusqlite::{Connection, Transaction, params};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::entry::Part;
use super::head_target::{self, NoPlace, Place};
use super::heads::{self, NoteKind, PendingNote};
use super::rows;
use crate::base::id::{CheckpointId, EntryId, OperationId, SessionId};
use crate::base::path::WorkspacePath;
use crate::base::progress::Progress;
use crate::base::settings::Timestamp;
use crate::history::checkpoint::{self, CheckpointError};
use crate::history::operation::{self, MadeBy, NewOperation, Operation, OperationKind, OperationState};
use crate::history::owner::rows as changes;
use crate::history::sessions::{Sessions, Shown};
use crate::store::db::in_transaction;
use crate::store::{Durability, StoreError};
use crate::workspace::Workspace;
use crate::workspace::location::OpenError;

/// What the caller gives to a new fork: fresh identities and the time.
#[derive(Clone, Copy, Debug)]
pub struct NewFork {
    /// The new session's identity.
    pub session: SessionId,
    /// The operation's identity.
    pub operation: OperationId,
    /// The identity of the checkpoint that tells which files have changed since.
    pub checkpoint: CheckpointId,
    /// The identity of the note that tells the model, if there is anything to be told.
    pub note: EntryId,
    /// The time.
    pub at: Timestamp,
    /// Who makes it.
    pub made_by: MadeBy,
}

/// A fork that was made.
#[derive(Clone, Debug, PartialEq)]
pub struct Forked {
    /// The new session.
    pub session: SessionId,
    /// What it is called.
    pub title: String,
    /// What is about to be said in it: the prompt, if it was forked before one.
    pub draft: Vec<Part>,
    /// Files that are not as the model last saw them, of which a note tells it.
    pub differing: Vec<WorkspacePath>,
    /// The operation that can be undone.
    pub operation: OperationId,
}

/// A fork was not made. Nothing was changed.
#[derive(Debug, Error)]
pub enum ForkError {
    /// There is no such session, or it is no conversation.
    #[error("session {} is not a conversation", .session.short())]
    NotAConversation {
        /// The session.
        session: SessionId,
    },
    /// The conversation has no such entry.
    #[error("there is no entry {} in this conversation", .entry.short())]
    UnknownEntry {
        /// What was asked for.
        entry: EntryId,
    },
    /// Nobody goes on from a note, an instruction or an approval.
    #[error("entry {} is not a place to fork from", .entry.short())]
    NotATarget {
        /// The entry.
        entry: EntryId,
    },
    /// Calls of that answer have no results yet.
    #[error("entry {} belongs to an answer that is still under way", .entry.short())]
    NotSettled {
        /// The entry.
        entry: EntryId,
    },
    /// The files of that moment are not kept any more, or never were.
    #[error("the files as they were at {} are not kept", .entry.short())]
    FilesGone {
        /// The entry.
        entry: EntryId,
    },
    /// The directory cannot take the files.
    #[error("`{}` cannot be the fork's directory: {why}", .path.display())]
    BadDirectory {
        /// The directory.
        path: PathBuf,
        /// Why.
        why: &'static str,
    },
    /// Writing the files failed; what was written is removed again.
    #[error("cannot {what} `{}`", .path.display())]
    Write {
        /// What was tried.
        what: &'static str,
        /// The path.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// It was cancelled; what was written is removed again.
    #[error("cancelled; nothing was changed")]
    Cancelled,
    /// An interrupted operation has to be recovered first.
    #[error("an interrupted {} of `{}` has to be finished first", .operation.kind.name(), .operation.what)]
    Pending {
        /// The operation.
        operation: Box<Operation>,
    },
    /// The new directory cannot be a workspace.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// What has changed since could not be found out.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What the operation of a fork made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Made {
    /// The new session's row number.
    pub(crate) session: i64,
    /// The row number of the head that it began with.
    pub(crate) head: Option<i64>,
}

impl Made {
    /// What the operation with row number `operation` made.
    pub(crate) fn by_seq(connection: &Connection, operation: i64) -> rusqlite::Result<Option<Self>> {
        let text: Option<String> =
            connection.query_row("SELECT fork FROM operations WHERE seq = ?", [operation], |row| row.get(0))?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }
}

impl Workspace {
    /// The place that `entry` of `from` is, if one can go on from there.
    pub(super) fn place(&self, from: SessionId, entry: EntryId) -> Result<Place, ForkError> {
        let (place, is_open) = self.store.db().read(|connection| {
            let place = head_target::place(connection, from, entry)?;
            let to = place.as_ref().ok().and_then(|place| place.to);
            let is_open = to.map_or(Ok(false), |to| heads::is_open(connection, to))?;
            Ok((place, is_open))
        })?;
        match place {
            Err(NoPlace::NotAConversation) => Err(ForkError::NotAConversation { session: from }),
            Err(NoPlace::UnknownEntry) => Err(ForkError::UnknownEntry { entry }),
            Err(NoPlace::NotATarget) => Err(ForkError::NotATarget { entry }),
            Ok(_) if is_open => Err(ForkError::NotSettled { entry }),
            Ok(place) => Ok(place),
        }
    }
}

impl Sessions<&mut Workspace> {
    /// Makes a new session that starts from an entry of `from`: before it if it is a prompt, which is then about to be said, else after
    /// it and all that belongs to the same round. Files stay as they are, and the model is told which of them differ from what it last
    /// saw there. One operation that can be undone; `from` may be open.
    pub fn fork(
        &mut self,
        from: SessionId,
        entry: EntryId,
        new: &NewFork,
        progress: &dyn Progress,
    ) -> Result<Forked, ForkError> {
        // Nobody rewinds, deletes or cleans up meanwhile.
        let _shared = self.0.store.share()?;
        if let Some(operation) = operation::pending(&self.0.store)? {
            return Err(ForkError::Pending { operation: Box::new(operation) });
        }
        let place = self.0.place(from, entry)?;
        let what = format!("{} from {}", new.session.short(), head_target::describe(&self.0.store, entry)?);
        // It outlives both sessions, so that it tells nothing that was said.
        let note = format!("fork {}", new.session.short());
        let before = self.0.point_now(None, note, new.checkpoint, new.at, progress)?;
        let mut differing =
            place.point.map_or_else(|| Ok(Vec::new()), |point| changes::differing(&self.0.store, point))?;
        // Without anything said before, there is nothing that the model could have seen.
        if place.to.is_none() {
            differing.clear();
        }
        let note = PendingNote { id: new.note, at: new.at, kind: NoteKind::Forked, about: Vec::new() };
        let draft = place.draft.unwrap_or_default();
        let title = self.0.store.db().transaction(Durability::Synced, |tx| {
            let session = insert(tx, new.session, new.at, place.standing.seq, place.entry, before)?;
            let note = note.entry(&differing).map(|note| rows::insert(tx, session, place.to, &note)).transpose()?;
            let head = note.or(place.to);
            rows::move_head(tx, session, None, head)?;
            note.map_or(Ok(()), |note| checkpoint::pair(tx, note, before))?;
            rows::set_draft(tx, session, &draft)?;
            record(tx, new, place.standing.seq, &what, before, Made { session, head })?;
            heads::retitle(tx, session, head)
        })?;
        Ok(Forked { session: new.session, title, draft, differing, operation: new.operation })
    }
}

fn insert(
    tx: &Transaction<'_>,
    id: SessionId,
    at: Timestamp,
    parent: i64,
    entry: i64,
    newest: i64,
) -> Result<i64, StoreError> {
    tx.execute(
        "INSERT INTO sessions (id, handle, at, title, kind, parent, forked_at, forked_after)
         VALUES (?, ?, ?, '', ?, ?, ?, ?)",
        params![&id.as_bytes()[..], id.to_string(), at.0, Shown::Yes as u8, parent, entry, newest],
    )
    .map_err(in_transaction(tx))?;
    Ok(tx.last_insert_rowid())
}

fn record(
    tx: &Transaction<'_>,
    new: &NewFork,
    parent: i64,
    what: &str,
    before: i64,
    made: Made,
) -> Result<(), StoreError> {
    let NewFork { operation: id, at, made_by, .. } = *new;
    let operation = NewOperation { id, at, session: Some(parent), kind: OperationKind::Fork, what, made_by };
    let seq = operation::insert(tx, &operation, before, None)?;
    let text = serde_json::to_string(&made).expect("numbers serialise");
    tx.execute("UPDATE operations SET fork = ? WHERE seq = ?", params![text, seq]).map_err(in_transaction(tx))?;
    operation::finish(tx, id, OperationState::Done, Some(before))
}
