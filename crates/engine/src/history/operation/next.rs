//! Which operation an undo takes back next, and which undo a redo.

use rusqlite::{OptionalExtension, Transaction};

use super::{Operation, OperationError, OperationKind, OperationState, select};
use crate::history::owner::window;
use crate::history::session_lock;
use crate::store::{Store, StoreError};

/// A condition for operations that changed something. A command need not have: its change is one that it made, or that
/// it contests with another session. Of an operation that was done in part, what it changed is not recorded.
const CHANGED_SOMETHING: &str = "(operations.kind <> 0 OR operations.state = 3
    OR EXISTS (SELECT 1 FROM changes WHERE changes.operation = operations.seq)
    OR EXISTS (SELECT 1 FROM windows JOIN changes ON changes.checkpoint > windows.opened
        AND (windows.closed IS NULL OR changes.checkpoint <= windows.closed)
        WHERE windows.operation = operations.seq AND changes.certainty = 3))";

/// Kinds of operations that an undo takes back.
const REVERSIBLE: &str = "(0, 1, 4, 5, 6, 7)";

/// Which operations are meant: those of a session, or those that commands made, whatever session they belong to.
/// What the model did within a turn goes with the turn, a fork changed nothing in the session that it was made from, and what was taken
/// over from a session that is gone is undone by nobody who does not name it.
const MEANT: &str = "(operations.live < 2 AND CASE WHEN ?1 IS NULL THEN operations.live = 0
    ELSE operations.session = ?1 AND operations.kind <> 7 END)";

/// The newest operation of `session` (of those that commands made, for `None`) that can be undone: it changed something and is
/// not undone. A newer one that is still running has to end first.
pub(crate) fn next_to_undo(store: &Store, session: Option<i64>) -> Result<Operation, OperationError> {
    let newest_first = store.db().read(|connection| {
        let ended = format!("operations.state IN (1, 3) AND {CHANGED_SOMETHING}");
        let rest = format!(
            "WHERE operations.kind IN {REVERSIBLE} AND NOT operations.undone AND {MEANT}
                 AND operations.seq >= ifnull((SELECT max(operations.seq) FROM operations
                     WHERE operations.kind IN {REVERSIBLE} AND NOT operations.undone AND {ended} AND {MEANT}), 0)
                 AND (operations.state = 0 OR ({ended}))
             ORDER BY operations.seq DESC"
        );
        select(connection, &rest, [session])
    })?;
    let at_work = window::at_work(store)?;
    for operation in newest_first {
        if operation.state != OperationState::Running {
            no_newer_elsewhere(store, session, Some(&operation))?;
            let is_passed_over = gone(store, session)?.is_some_and(|gone| gone > operation.seq);
            return match is_passed_over {
                true => Err(OperationError::NewestGone { operation: Box::new(operation) }),
                false => Ok(operation),
            };
        }
        let is_turn = operation.kind == OperationKind::Turn;
        let is_live = || operation.session.is_some_and(|session| session_lock::is_live(store.dir(), session));
        if at_work.iter().any(|at_work| at_work.operation == Some(operation.seq)) || is_turn && is_live() {
            return Err(OperationError::Running { operation: operation.id, what: operation.what });
        }
    }
    no_newer_elsewhere(store, session, None)?;
    Err(OperationError::NothingToUndo)
}

/// Remembers the newest operation of each session, and of those that commands made, that is about to be removed and could have been
/// undone: `gone` is the condition for those that are. Undoing goes backwards, and must not pass over them.
pub(crate) fn remember_gone(tx: &Transaction<'_>, gone: &str) -> rusqlite::Result<()> {
    let undoable = format!(
        "operations.kind IN {REVERSIBLE} AND NOT operations.undone AND operations.state IN (1, 3) AND operations.live < 2
             AND {CHANGED_SOMETHING} AND {gone}"
    );
    let newest = [
        format!(
            "SELECT '{GONE_OF_SESSION}' || session, max(operations.seq) FROM operations
                 WHERE session IS NOT NULL AND operations.kind <> 7 AND {undoable} GROUP BY session"
        ),
        format!(
            "SELECT '{GONE_OF_COMMANDS}', max(operations.seq) FROM operations
                 WHERE operations.live = 0 AND {undoable} HAVING max(operations.seq) IS NOT NULL"
        ),
    ];
    for newest in newest {
        tx.execute(
            &format!("INSERT INTO meta {newest} ON CONFLICT (key) DO UPDATE SET value = max(value, excluded.value)"),
            [],
        )?;
    }
    Ok(())
}

const GONE_OF_SESSION: &str = "gone_operation_of_session_";
const GONE_OF_COMMANDS: &str = "gone_operation_of_commands";

/// The newest operation that could have been undone and is removed, of `session` or of those that commands made.
fn gone(store: &Store, session: Option<i64>) -> Result<Option<i64>, StoreError> {
    let key = session.map_or_else(|| GONE_OF_COMMANDS.to_owned(), |session| format!("{GONE_OF_SESSION}{session}"));
    store.db().read(|connection| {
        connection.query_row("SELECT value FROM meta WHERE key = ?", [key], |row| row.get(0)).optional()
    })
}

/// Refuses if a session that is open has done something since `operation` by itself, in a terminal or an editor: whoever undoes what
/// commands did last may mean that.
fn no_newer_elsewhere(
    store: &Store,
    session: Option<i64>,
    operation: Option<&Operation>,
) -> Result<(), OperationError> {
    if session.is_some() {
        return Ok(());
    }
    let mut newer = store.db().read(|connection| {
        let rest = format!(
            "WHERE operations.seq > ? AND operations.live = 1 AND operations.kind IN (1, 4, 5, 6, 7)
                 AND operations.state IN (1, 3) AND NOT operations.undone AND {CHANGED_SOMETHING} ORDER BY operations.seq DESC"
        );
        select(connection, &rest, [operation.map_or(0, |operation| operation.seq)])
    })?;
    newer.retain(|newer| newer.session.is_some_and(|session| session_lock::is_live(store.dir(), session)));
    if newer.is_empty() {
        return Ok(());
    }
    newer.extend(operation.cloned());
    Err(OperationError::NewerInSession { operations: newer })
}

/// The undo of `session` (of those that commands made, for `None`) that a redo would take back now: until something new is
/// changed.
pub(crate) fn next_to_redo(store: &Store, session: Option<i64>) -> Result<Operation, OperationError> {
    let found = store.db().read(|connection| {
        let rest = format!(
            "WHERE operations.kind = 2 AND operations.state IN (1, 3) AND NOT operations.undone AND {MEANT}
                 AND operations.seq > ifnull((SELECT max(operations.seq) FROM operations
                     WHERE operations.kind IN {REVERSIBLE} AND operations.state IN (1, 3) AND {CHANGED_SOMETHING} AND {MEANT}), 0)
             ORDER BY operations.seq DESC LIMIT 1"
        );
        select(connection, &rest, [session])
    })?;
    found.into_iter().next().ok_or(OperationError::NothingToRedo)
}
