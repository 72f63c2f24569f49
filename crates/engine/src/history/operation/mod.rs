//! The operation log: every change that Retake made or bracketed, and what may be undone or redone next.
//!
//! An operation is never rewritten: undoing one adds another that says so. What counts is told by two marks: which
//! operation an undo or a redo is about, and whether an operation is undone at the moment.

mod next;

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use thiserror::Error;

use crate::base::id::{CheckpointId, OperationId, SessionId};
use crate::base::limits;
use crate::base::path::WorkspacePath;
use crate::base::settings::Timestamp;
use crate::history::codes::{BY_MODEL, TURN};
use crate::history::sessions;
use crate::store::db::in_transaction;
use crate::store::{Store, StoreError};
use crate::workspace::Workspace;

pub(crate) use next::{next_to_redo, next_to_undo, remember_gone};

/// The operations of a workspace: what can be undone and redone. From [`Workspace::operations`].
#[derive(Debug)]
pub struct Operations<'a>(pub(crate) &'a Workspace);

impl Workspace {
    /// What can be undone and redone in it.
    pub fn operations(&self) -> Operations<'_> {
        Operations(self)
    }
}

/// What an operation was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OperationKind {
    /// A command that was run with a checkpoint before and after.
    Exec = 0,
    /// Going back to a point.
    Rewind = 1,
    /// Taking an operation back.
    Undo = 2,
    /// Repeating an operation that was taken back.
    Redo = 3,
    /// A prompt and everything up to the agent's stop.
    Turn = 4,
    /// Cutting what the model sees of the conversation.
    Clear = 5,
    /// Putting a summary in the place of a part of what the model sees.
    Summary = 6,
    /// Beginning a new session from an entry of another.
    Fork = 7,
}

/// Who makes an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MadeBy {
    /// A command: `retake undo` finds it whatever session it belongs to.
    #[default]
    Command = 0,
    /// A client of a live session, who undoes it there.
    Client = 1,
    /// The model, within a turn: it is taken back with the turn.
    Model = 2,
}

/// Who made a turn that a fork has taken over from a deleted session, in the place of [`MadeBy`].
pub(crate) const INHERITED: u8 = 3;

impl OperationKind {
    /// The kind as a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exec => "exec",
            Self::Rewind => "rewind",
            Self::Undo => "undo",
            Self::Redo => "redo",
            Self::Turn => "turn",
            Self::Clear => "clear",
            Self::Summary => "summary",
            Self::Fork => "fork",
        }
    }
}

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OperationState {
    /// It has not ended, or the process died.
    Running = 0,
    /// All of it was done.
    Done = 1,
    /// It was taken back before it was done: nothing happened.
    Failed = 2,
    /// A part of it was done and could not be taken back.
    Partial = 3,
}

/// One change that Retake made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Its identity.
    pub id: OperationId,
    /// When it began.
    pub at: Timestamp,
    /// Whose it is.
    pub session: Option<SessionId>,
    /// What it was.
    pub kind: OperationKind,
    /// In words: the command, or the point that was gone back to.
    pub what: String,
    /// The point before it.
    pub before: Option<CheckpointId>,
    /// The point after it.
    pub after: Option<CheckpointId>,
    /// The operation that an undo or a redo is about.
    pub reverses: Option<OperationId>,
    /// How it ended.
    pub state: OperationState,
    /// Whether it is taken back at the moment.
    pub undone: bool,
    /// Whether it changed what is retained of the conversation.
    pub moved_head: bool,
    /// Who made it.
    pub made_by: MadeBy,
    pub(crate) seq: i64,
    pub(crate) session_seq: Option<i64>,
    pub(crate) before_seq: i64,
    pub(crate) reverses_seq: Option<i64>,
}

/// An operation could not be found, or there is none.
#[derive(Debug, Error)]
pub enum OperationError {
    /// Nothing has this id.
    #[error("there is no operation `{operation}`")]
    Unknown {
        /// What was asked for.
        operation: String,
    },
    /// More than one operation answers to it.
    #[error("`{operation}` could be any of {} operations", .candidates.len())]
    Ambiguous {
        /// What was asked for.
        operation: String,
        /// All that answer to it.
        candidates: Vec<Operation>,
    },
    /// Everything is undone already, or nothing was ever done.
    #[error("there is nothing to undo")]
    NothingToUndo,
    /// Nothing was undone, or something new was done since.
    #[error("there is nothing to redo")]
    NothingToRedo,
    /// It is taken back already.
    #[error("operation {operation} is undone already")]
    AlreadyUndone {
        /// The operation.
        operation: OperationId,
    },
    /// It is still under way, or never came to its end.
    #[error("operation {operation} has not ended")]
    NotFinished {
        /// The operation.
        operation: OperationId,
    },
    /// The newest one is a command or a turn that is still running.
    #[error("nothing was changed: `{what}` is still running")]
    Running {
        /// The operation.
        operation: OperationId,
        /// The command.
        what: String,
    },
    /// A session that is open did something more recently by itself, in a terminal or an editor: it has to be said which one is meant.
    #[error("nothing was changed: a session that is open has newer operations of its own")]
    NewerInSession {
        /// Its operations, newest first, and the one that would be taken back otherwise, if there is one.
        operations: Vec<Operation>,
    },
    /// The newest one is no longer kept, and an older one is: whoever means that has to say so.
    #[error("nothing was changed: what came after {} `{}` can no longer be undone, for its files are no longer kept", .operation.kind.name(), .operation.what)]
    NewestGone {
        /// The newest that could be undone.
        operation: Box<Operation>,
    },
    /// An undo or a redo is not itself undone: redo and undo do that.
    #[error("operation {} is {}", .operation.short(), if *kind == "undo" { "an undo; `retake redo` takes it back" } else { "a redo; `retake undo` takes it back" })]
    NotReversible {
        /// The operation.
        operation: OperationId,
        /// What it is.
        kind: &'static str,
    },
    /// The model made it within a turn, with which it is taken back.
    #[error("operation {} is a part of the turn {}", .operation.short(), .turn.short())]
    WithinTurn {
        /// The operation.
        operation: OperationId,
        /// The turn.
        turn: OperationId,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A new operation's particulars.
pub(crate) struct NewOperation<'a> {
    pub(crate) id: OperationId,
    pub(crate) at: Timestamp,
    pub(crate) session: Option<i64>,
    pub(crate) kind: OperationKind,
    pub(crate) what: &'a str,
    pub(crate) made_by: MadeBy,
}

/// The operations that are undone, by row number.
pub(crate) fn undone(store: &Store) -> Result<BTreeSet<i64>, StoreError> {
    store.db().read(|connection| {
        let mut statement = connection.prepare_cached("SELECT seq FROM operations WHERE undone")?;
        statement.query_map([], |row| row.get(0))?.collect()
    })
}

/// Writes an operation that begins after checkpoint `before`; returns its row number.
pub(crate) fn insert(
    tx: &Transaction<'_>,
    new: &NewOperation<'_>,
    before: i64,
    reverses: Option<i64>,
) -> Result<i64, StoreError> {
    tx.execute(
        "INSERT INTO operations (id, handle, at, session, kind, what, before, reverses, live, state)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0)",
        params![
            &new.id.as_bytes()[..],
            new.id.to_string(),
            new.at.0,
            new.session,
            new.kind as u8,
            new.what,
            before,
            reverses,
            new.made_by as u8,
        ],
    )
    .map_err(in_transaction(tx))?;
    Ok(tx.last_insert_rowid())
}

/// An operation's row number, inside a transaction.
pub(crate) fn sequence(tx: &Transaction<'_>, id: OperationId) -> Result<Option<i64>, StoreError> {
    tx.query_row("SELECT seq FROM operations WHERE id = ?", [&id.as_bytes()[..]], |row| row.get(0))
        .optional()
        .map_err(in_transaction(tx))
}

/// Writes how an operation ended.
pub(crate) fn finish(
    tx: &Transaction<'_>,
    id: OperationId,
    state: OperationState,
    after: Option<i64>,
) -> Result<(), StoreError> {
    tx.execute(
        "UPDATE operations SET state = ?, after = ? WHERE id = ?",
        params![state as u8, after, &id.as_bytes()[..]],
    )
    .map(drop)
    .map_err(in_transaction(tx))
}

/// Marks what an undo or a redo did to the operation it is about.
pub(crate) fn mark_undone(tx: &Transaction<'_>, seq: i64, undone: bool) -> Result<(), StoreError> {
    tx.execute("UPDATE operations SET undone = ? WHERE seq = ?", params![undone, seq])
        .map(drop)
        .map_err(in_transaction(tx))
}

/// Marks the operation that `undo` was about as in force again.
pub(crate) fn mark_original_redone(tx: &Transaction<'_>, undo: i64) -> Result<(), StoreError> {
    tx.execute("UPDATE operations SET undone = 0 WHERE seq = (SELECT reverses FROM operations WHERE seq = ?)", [undo])
        .map(drop)
        .map_err(in_transaction(tx))
}

const COLUMNS: &str = "operations.id, operations.at, sessions.id, operations.kind, operations.what,
    (SELECT id FROM checkpoints WHERE seq = operations.before),
    (SELECT id FROM checkpoints WHERE seq = operations.after),
    (SELECT id FROM operations AS other WHERE other.seq = operations.reverses),
    operations.state, operations.undone, operations.seq, operations.session, operations.before, operations.reverses,
    json_extract(operations.conversation, '$.from') IS NOT json_extract(operations.conversation, '$.to'), operations.live";

fn from_row(row: &Row<'_>) -> rusqlite::Result<Operation> {
    let checkpoint =
        |column| Ok::<_, rusqlite::Error>(row.get::<_, Option<[u8; 16]>>(column)?.map(CheckpointId::from_bytes));
    Ok(Operation {
        id: OperationId::from_bytes(row.get(0)?),
        at: Timestamp(row.get(1)?),
        session: row.get::<_, Option<[u8; 16]>>(2)?.map(SessionId::from_bytes),
        kind: match row.get::<_, u8>(3)? {
            0 => OperationKind::Exec,
            1 => OperationKind::Rewind,
            2 => OperationKind::Undo,
            3 => OperationKind::Redo,
            4 => OperationKind::Turn,
            5 => OperationKind::Clear,
            6 => OperationKind::Summary,
            _ => OperationKind::Fork,
        },
        what: row.get(4)?,
        before: checkpoint(5)?,
        after: checkpoint(6)?,
        reverses: row.get::<_, Option<[u8; 16]>>(7)?.map(OperationId::from_bytes),
        state: match row.get::<_, u8>(8)? {
            0 => OperationState::Running,
            1 => OperationState::Done,
            2 => OperationState::Failed,
            _ => OperationState::Partial,
        },
        undone: row.get(9)?,
        seq: row.get(10)?,
        session_seq: row.get(11)?,
        before_seq: row.get(12)?,
        reverses_seq: row.get(13)?,
        moved_head: row.get(14)?,
        made_by: match row.get::<_, u8>(15)? {
            0 => MadeBy::Command,
            2 => MadeBy::Model,
            _ => MadeBy::Client,
        },
    })
}

fn select(connection: &Connection, rest: &str, values: impl rusqlite::Params) -> rusqlite::Result<Vec<Operation>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM operations LEFT JOIN sessions ON sessions.seq = operations.session {rest}"
    ))?;
    let rows = statement.query_map(values, from_row)?;
    rows.collect()
}

/// The operation with this row number.
pub(crate) fn by_seq(store: &Store, seq: i64) -> Result<Option<Operation>, StoreError> {
    store.db().read(|connection| Ok(select(connection, "WHERE operations.seq = ?", [seq])?.pop()))
}

/// The operation with this id.
pub(crate) fn by_id(store: &Store, id: OperationId) -> Result<Option<Operation>, StoreError> {
    store.db().read(|connection| Ok(select(connection, "WHERE operations.id = ?", [&id.as_bytes()[..]])?.pop()))
}

/// The operation that what the one with this row number changes is a part of: itself, or the turn in which the model made it.
pub(crate) fn owner_of(store: &Store, seq: i64) -> Result<i64, StoreError> {
    let turn: Option<Option<i64>> = store.db().read(|connection| {
        let sql = &format!(
            "SELECT (SELECT max(turn.seq) FROM operations AS turn
                 WHERE turn.kind = {TURN} AND turn.session = operations.session AND turn.seq < operations.seq)
             FROM operations WHERE seq = ? AND live = {BY_MODEL}"
        );
        connection.prepare_cached(sql)?.query_row([seq], |row| row.get(0)).optional()
    })?;
    Ok(turn.flatten().unwrap_or(seq))
}

impl Operations<'_> {
    /// All operations, newest first.
    pub fn all(&self) -> Result<Vec<Operation>, StoreError> {
        self.0.store.db().read(|connection| select(connection, "ORDER BY operations.seq DESC", []))
    }

    /// The operation that an undo would take back now.
    pub fn next_to_undo(&self, session: Option<SessionId>) -> Result<Operation, OperationError> {
        next_to_undo(&self.0.store, session_seq(&self.0.store, session)?)
    }

    /// The undo that a redo would take back now.
    pub fn next_to_redo(&self, session: Option<SessionId>) -> Result<Operation, OperationError> {
        next_to_redo(&self.0.store, session_seq(&self.0.store, session)?)
    }

    /// The turn that the prompt with the id `prompt` began.
    pub fn turn_of(&self, prompt: &str) -> Result<Option<Operation>, StoreError> {
        let rest = &format!(
            "JOIN entries ON entries.seq = operations.entry WHERE entries.id = ? AND operations.kind = {TURN}"
        );
        self.0.store.db().read(|connection| Ok(select(connection, rest, [prompt])?.pop()))
    }

    /// The operation that `text` names: the beginning of an id.
    pub fn resolve(&self, text: &str) -> Result<Operation, OperationError> {
        let lower = text.to_ascii_lowercase();
        let usable = lower.len() >= limits::MIN_ID_DIGITS && lower.bytes().all(|b| b.is_ascii_hexdigit());
        let mut candidates = match usable {
            true => self
                .0
                .store
                .db()
                .read(|connection| select(connection, "WHERE operations.handle GLOB ?", [format!("{lower}*")]))?,
            false => Vec::new(),
        };
        match candidates.len() {
            0 => Err(OperationError::Unknown { operation: text.to_owned() }),
            1 => Ok(candidates.remove(0)),
            _ => Err(OperationError::Ambiguous { operation: text.to_owned(), candidates }),
        }
    }
}

/// The row number of a session; one that no row has, for a session that is gone.
fn session_seq(store: &Store, session: Option<SessionId>) -> Result<Option<i64>, StoreError> {
    session.map(|id| Ok(sessions::sequence(store, id)?.unwrap_or(-1))).transpose()
}

/// Paths that somebody saved while `operation` was replacing them.
pub(crate) fn displaced(store: &Store, operation: OperationId) -> Result<Vec<WorkspacePath>, StoreError> {
    let paths: Vec<Vec<u8>> = store.db().read(|connection| {
        let mut statement = connection.prepare_cached(
            "SELECT DISTINCT path FROM displaced JOIN operations ON seq = operation WHERE id = ? ORDER BY path",
        )?;
        statement.query_map([&operation.as_bytes()[..]], |row| row.get(0))?.collect()
    })?;
    Ok(paths.iter().filter_map(|path| WorkspacePath::parse(path).ok()).collect())
}

/// Whether an operation of `session` is being made, or was when its process died.
pub(crate) fn is_pending(tx: &Transaction<'_>, session: i64) -> Result<bool, StoreError> {
    tx.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM intents JOIN operations ON seq = operation
             WHERE intents.state < 2 AND session = ?)",
    )
    .and_then(|mut statement| statement.query_row([session], |row| row.get(0)))
    .map_err(in_transaction(tx))
}

/// An operation of `session` that is being made, or that had to leave something under a temporary name.
pub(crate) fn unfinished(store: &Store, session: i64) -> Result<Option<Operation>, StoreError> {
    let rest = "JOIN intents ON intents.operation = operations.seq WHERE operations.session = ? LIMIT 1";
    store.db().read(|connection| Ok(select(connection, rest, [session])?.pop()))
}

/// Whether an operation is being made, or was when its process died.
pub(crate) fn pending(store: &Store) -> Result<Option<Operation>, StoreError> {
    let seq: Option<i64> = store.db().read(|connection| {
        connection
            .prepare_cached("SELECT operation FROM intents WHERE state < 2 ORDER BY operation LIMIT 1")?
            .query_row([], |row| row.get(0))
            .optional()
    })?;
    seq.map_or(Ok(None), |seq| by_seq(store, seq))
}
