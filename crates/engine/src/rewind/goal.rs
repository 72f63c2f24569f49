//! What a goal names: the point, the session and the operation that it is about.

use super::fork::Reversal;
use super::{Files, Goal, RewindError};
use crate::base::id::{CheckpointId, EntryId, OperationId, SessionId};
use crate::history::checkpoint::{self, Checkpoint};
use crate::history::operation::{self, MadeBy, Operation, OperationError, OperationKind, OperationState};
use crate::history::sessions;
use crate::session::Scope;
use crate::session::head_target::{self, HeadTarget};
use crate::store::{Store, StoreError};

/// A goal with everything that it names looked up.
#[derive(Clone, Debug)]
pub(crate) struct Resolved {
    pub(crate) kind: OperationKind,
    pub(crate) what: String,
    /// What goes back.
    pub(crate) scope: Scope,
    /// The point that files go back to, or that was before the operation that is reversed; `None` if files stay.
    target: Option<(Checkpoint, i64)>,
    /// The session whose operation this will be.
    pub(crate) session: Option<i64>,
    pub(crate) session_id: Option<SessionId>,
    /// The operation whose changes are taken back.
    pub(crate) reverses: Option<Operation>,
    pub(super) exact: bool,
    /// Where the session's conversation goes, if it is one.
    pub(crate) aim: Option<HeadTarget>,
    /// The fork that is taken back or repeated.
    pub(crate) fork: Option<Reversal>,
}

impl Resolved {
    /// The point that files go back to.
    pub(crate) fn target(&self) -> Result<&Checkpoint, RewindError> {
        self.target.as_ref().map(|(target, _)| target).ok_or(RewindError::Gone)
    }

    /// Its row number.
    pub(crate) fn target_seq(&self) -> Result<i64, RewindError> {
        self.target.as_ref().map(|(_, seq)| *seq).ok_or(RewindError::Gone)
    }
}

/// Looks up what `goal` names.
pub(crate) fn resolve(store: &Store, goal: &Goal) -> Result<Resolved, RewindError> {
    match goal {
        Goal::Exact { checkpoint, session } => {
            let (target, target_seq) = find(store, *checkpoint)?;
            let session = session.or(target.session);
            to_checkpoint(store, session, target, target_seq, Files::Exact)
        }
        Goal::Selective { session, checkpoint } => {
            let (target, target_seq) = find(store, *checkpoint)?;
            to_checkpoint(store, Some(*session), target, target_seq, Files::Selective)
        }
        Goal::Entry { session, entry, scope, files, discard } => {
            let aim = head_target::at_entry(store, *session, *entry, *scope, *discard)
                .map_err(RewindError::no_target(*entry))?;
            to_entry(store, *entry, *scope, *files, aim)
        }
        Goal::AfterPrompt { session, prompt, scope, files } => {
            let aim =
                head_target::after_prompt(store, *session, *prompt, *scope).map_err(RewindError::no_target(*prompt))?;
            to_entry(store, *prompt, *scope, *files, aim)
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

fn to_checkpoint(
    store: &Store,
    session_id: Option<SessionId>,
    target: Checkpoint,
    target_seq: i64,
    files: Files,
) -> Result<Resolved, RewindError> {
    let session = session_id.map(|id| sessions::sequence(store, id)).transpose()?.flatten();
    if files == Files::Selective && session.is_none() {
        return Err(RewindError::Gone);
    }
    Ok(Resolved {
        kind: OperationKind::Rewind,
        what: describe(&target),
        scope: Scope::Code,
        target: Some((target, target_seq)),
        session,
        session_id: session_id.filter(|_| session.is_some()),
        reverses: None,
        exact: files == Files::Exact,
        aim: session_id.map(|id| head_target::staying(store, id)).transpose()?.flatten(),
        fork: None,
    })
}

fn to_entry(
    store: &Store,
    entry: EntryId,
    scope: Scope,
    files: Files,
    aim: HeadTarget,
) -> Result<Resolved, RewindError> {
    let target = aim.point.map(|seq| checkpoint::by_seq(store, seq)).transpose()?.flatten().zip(aim.point);
    if target.is_none() && scope != Scope::Conversation {
        return Err(RewindError::FilesGone { entry });
    }
    Ok(Resolved {
        kind: OperationKind::Rewind,
        what: head_target::describe(store, entry)?,
        scope,
        target,
        session: Some(aim.session),
        session_id: Some(aim.id),
        reverses: None,
        exact: files == Files::Exact,
        aim: Some(aim),
        fork: None,
    })
}

fn session_seq(store: &Store, session: Option<SessionId>) -> Result<Option<i64>, RewindError> {
    session.map(|id| sessions::sequence(store, id)?.ok_or(RewindError::Gone)).transpose()
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
    if operation.made_by == MadeBy::Model
        && let Some(turn) = operation::by_seq(store, operation::owner_of(store, operation.seq)?)?
    {
        return Err(OperationError::WithinTurn { operation: operation.id, turn: turn.id }.into());
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
    let fork = Reversal::of(store, &operation)?;
    let target = checkpoint::by_seq(store, operation.before_seq)?;
    if target.is_none() && fork.is_none() {
        return Err(RewindError::Gone);
    }
    // A fork has nothing to do with the conversation that it was made from.
    let aim = if fork.is_some() { None } else { head_target::reversing(store, &operation)? };
    Ok(Resolved {
        kind,
        what: match kind {
            OperationKind::Redo => redone(store, &operation)?,
            _ => format!("{} {}", operation.kind.name(), operation.what),
        },
        scope: match (&fork, &aim) {
            (Some(_), _) => Scope::Conversation,
            (None, Some(aim)) if aim.moves() => Scope::Both,
            (None, _) => Scope::Code,
        },
        target: target.map(|target| (target, operation.before_seq)),
        session: operation.session_seq,
        session_id: operation.session,
        reverses: Some(operation),
        exact: false,
        aim,
        fork,
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
        (None, Some(note), crate::history::checkpoint::Origin::Before) => {
            format!("{} before {note}", checkpoint.id.short())
        }
        (None, Some(note), _) => format!("{} after {note}", checkpoint.id.short()),
        _ => checkpoint.id.short(),
    }
}
