//! What a goal names: the point, the session and the operation that it is about.

use super::{Goal, RewindError};
use crate::operation::{self, Operation, OperationKind, OperationState};
use crate::owner::window;
use crate::store::{Store, StoreError};
use crate::{Checkpoint, CheckpointId, OperationError, OperationId, SessionId, checkpoint};

/// A goal with everything that it names looked up.
#[derive(Clone, Debug)]
pub(crate) struct Resolved {
    pub(crate) kind: OperationKind,
    pub(crate) what: String,
    /// The point that files go back to, or that was before the operation that is reversed.
    pub(crate) target: Checkpoint,
    pub(crate) target_seq: i64,
    /// The session whose operation this will be.
    pub(crate) session: Option<i64>,
    pub(crate) session_id: Option<SessionId>,
    /// The operation whose changes are taken back.
    pub(crate) reverses: Option<Operation>,
    pub(super) exact: bool,
}

/// Looks up what `goal` names.
pub(crate) fn resolve(store: &Store, goal: &Goal) -> Result<Resolved, RewindError> {
    match goal {
        Goal::Exact { checkpoint } => {
            let (target, target_seq) = find(store, *checkpoint)?;
            let session_id = target.session;
            let session = session_id.map(|id| window::sequence(store, id)).transpose()?.flatten();
            let what = describe(&target);
            let kind = OperationKind::Rewind;
            Ok(Resolved { kind, what, target, target_seq, session, session_id, reverses: None, exact: true })
        }
        Goal::Selective { session, checkpoint } => {
            let (target, target_seq) = find(store, *checkpoint)?;
            let seq = window::sequence(store, *session)?.ok_or(RewindError::Gone)?;
            let what = describe(&target);
            let (kind, session, session_id) = (OperationKind::Rewind, Some(seq), Some(*session));
            Ok(Resolved { kind, what, target, target_seq, session, session_id, reverses: None, exact: false })
        }
        Goal::Undo { operation, session } => {
            let session = session_seq(store, *session)?;
            let operation = match operation {
                Some(id) => undoable(store, *id)?,
                None => operation::next_to_undo(store, session)?,
            };
            reversing(store, OperationKind::Undo, operation)
        }
        Goal::Redo { session } => {
            let session = session_seq(store, *session)?;
            reversing(store, OperationKind::Redo, operation::next_to_redo(store, session)?)
        }
    }
}

fn session_seq(store: &Store, session: Option<SessionId>) -> Result<Option<i64>, RewindError> {
    session.map(|id| window::sequence(store, id)?.ok_or(RewindError::Gone)).transpose()
}

fn find(store: &Store, id: CheckpointId) -> Result<(Checkpoint, i64), RewindError> {
    let found = checkpoint::by_id(store, id)?.zip(checkpoint::sequence_of(store, id)?);
    found.ok_or(RewindError::Gone)
}

fn undoable(store: &Store, id: OperationId) -> Result<Operation, RewindError> {
    let unknown = || OperationError::Unknown { operation: id.to_string() };
    let operation = operation::by_id(store, id)?.ok_or_else(unknown)?;
    if matches!(operation.kind, OperationKind::Undo | OperationKind::Redo) {
        let kind = operation.kind.name();
        return Err(OperationError::NotReversible { operation: operation.id, kind }.into());
    }
    if operation.undone {
        return Err(OperationError::AlreadyUndone { operation: operation.id }.into());
    }
    if matches!(operation.state, OperationState::Running | OperationState::Failed) {
        return Err(OperationError::NotFinished { operation: operation.id }.into());
    }
    Ok(operation)
}

fn reversing(store: &Store, kind: OperationKind, operation: Operation) -> Result<Resolved, RewindError> {
    let target = checkpoint::by_seq(store, operation.before_seq)?.ok_or(RewindError::Gone)?;
    Ok(Resolved {
        kind,
        what: match kind {
            OperationKind::Redo => redone(store, &operation)?,
            _ => format!("{} {}", operation.kind.name(), operation.what),
        },
        target,
        target_seq: operation.before_seq,
        session: operation.session_seq,
        session_id: operation.session,
        reverses: Some(operation),
        exact: false,
    })
}

/// What redoing `undo` repeats, in words.
fn redone(store: &Store, undo: &Operation) -> Result<String, StoreError> {
    let original = undo.reverses_seq.map(|seq| operation::by_seq(store, seq)).transpose()?.flatten();
    Ok(original.map_or_else(String::new, |original| format!("{} {}", original.kind.name(), original.what)))
}

fn describe(checkpoint: &Checkpoint) -> String {
    match (&checkpoint.label, &checkpoint.note, checkpoint.origin) {
        (Some(label), ..) => format!("{} \"{label}\"", checkpoint.id.short()),
        (None, Some(note), crate::Origin::Before) => format!("{} before {note}", checkpoint.id.short()),
        (None, Some(note), _) => format!("{} after {note}", checkpoint.id.short()),
        _ => checkpoint.id.short(),
    }
}
