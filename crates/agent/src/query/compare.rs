//! Comparing points: what a turn has done, and what differs between any two.

use retake_engine::Workspace;
use retake_engine::checkpoint::ResolveError;
use retake_engine::id::EntryId;
use retake_engine::id::{SessionId, SnapshotId};
use retake_engine::progress::NoProgress;
use retake_engine::session::Point;
use retake_engine::view::{Current, Side};

use super::{in_words, refusal};
use crate::contract::{DiffPoint, Reason, Refusal};
use crate::diff::{self, FileDiff};

/// What changed in the turn of a prompt, whoever did it.
pub(super) fn turn(workspace: &Workspace, prompt: EntryId) -> Result<Vec<FileDiff>, Refusal> {
    let points = workspace.sessions().turn_points(prompt).map_err(|err| failed(&err))?;
    let points = points.ok_or_else(|| refusal(Reason::NotFound, "there is no such prompt"))?;
    // While it runs, up to the last snapshot.
    let after =
        if points.has_ended { points.after } else { workspace.checkpoints().newest().map_err(|err| failed(&err))? };
    let (Some(before), Some(after)) = (points.before, after) else {
        return Err(refusal(Reason::NotFound, "the files as they were then are not kept"));
    };
    let (before, after) = (Side::Stored(before.snapshot), Side::Stored(after.snapshot));
    diff::between(workspace, &before, &after).map_err(|err| failed(&err))
}

/// What differs between two points; nothing is stored for it.
pub(super) fn points(
    workspace: &mut Workspace,
    session: SessionId,
    from: &DiffPoint,
    to: &DiffPoint,
) -> Result<Vec<FileDiff>, Refusal> {
    let stored = |point: &DiffPoint| point.as_deref().map(|text| snapshot(workspace, session, text)).transpose();
    let (from, to) = (stored(from)?, stored(to)?);
    let current = match (from, to) {
        (Some(_), Some(_)) => None,
        // Whatever else is asked for: the files as they are now do not differ from themselves.
        (None, None) => return Ok(Vec::new()),
        _ => Some(workspace.current(&NoProgress).map_err(|err| failed(&err))?),
    };
    let (Some(from), Some(to)) = (side(from, current.as_ref()), side(to, current.as_ref())) else {
        return Ok(Vec::new());
    };
    diff::between(workspace, &from, &to).map_err(|err| failed(&err))
}

fn side(stored: Option<SnapshotId>, current: Option<&Current>) -> Option<Side<'_>> {
    stored.map(Side::Stored).or(current.map(Side::Now))
}

/// The snapshot of the point that `text` names.
fn snapshot(workspace: &Workspace, session: SessionId, text: &str) -> Result<SnapshotId, Refusal> {
    let point = workspace.sessions().resolve_point(text, Some(session)).map_err(|err| match &err {
        ResolveError::Store(_) => failed(&err),
        _ => refusal(Reason::NotFound, in_words(&err)),
    })?;
    match point {
        Point::Checkpoint(checkpoint) => Ok(checkpoint.snapshot),
        Point::Entry { checkpoint: Some(checkpoint), .. } => Ok(checkpoint.snapshot),
        Point::Entry { entry, checkpoint: None, .. } => {
            let text = format!("the files as they were at {} are not kept", entry.id.short());
            Err(refusal(Reason::NotFound, text))
        }
    }
}

fn failed(error: &dyn std::error::Error) -> Refusal {
    refusal(Reason::Failed, in_words(error))
}
