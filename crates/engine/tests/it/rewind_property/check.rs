//! Comparing what the engine planned and did with what it should have.

use std::collections::BTreeSet;

use retake_engine::Workspace;
use retake_engine::changes::{Certainty, Owner};
use retake_engine::checkpoint::Checkpoint;
use retake_engine::id::{ObjectId, SessionId};
use retake_engine::operation::{OperationKind, OperationState};
use retake_engine::rewind::{Action, Applied, Conflict, OnConflict, PathStatus, Plan};
use retake_engine::snapshot::{Node, NodeKind};
use retake_testkit::naive::{Everything, NaiveKind, NaiveNode, NaiveNodes, Shape, Thing};

use super::expect::{Expected, Planned, name};
use super::model::{By, Happening, Model, OperationIs, Path};
use super::tally::Met;
use crate::compare::{MISMATCH, Verdict, no_error};

fn kind(kind: NaiveKind) -> NodeKind {
    match kind {
        NaiveKind::File => NodeKind::File,
        NaiveKind::Symlink => NodeKind::Symlink,
        NaiveKind::Directory => NodeKind::Directory,
    }
}

/// Whether the engine's state of a path is the model's.
fn is_same(found: Option<&Node>, truth: Option<&NaiveNode>) -> bool {
    match (found, truth) {
        (None, None) => true,
        (Some(found), Some(truth)) => {
            let is_content =
                || found.content == ObjectId::of(&truth.content) && found.size == truth.content.len() as u64;
            found.kind == kind(truth.kind)
                && found.mode == truth.mode
                && (found.kind == NodeKind::Directory || is_content())
        }
        _ => false,
    }
}

fn action(planned: &Planned) -> Action {
    match (&planned.now, &planned.target) {
        (now, target) if now == target => Action::Unchanged,
        (_, None) => Action::Delete,
        (None, Some(_)) => Action::Recreate,
        (Some(now), Some(target)) if (now.kind, &now.content) == (target.kind, &target.content) => Action::Mode,
        _ => Action::Restore,
    }
}

/// Compares a plan with what it should be.
pub(super) fn plan(found: &Plan, expected: &Expected) -> Verdict {
    let paths: BTreeSet<&[u8]> = found.paths.iter().map(|planned| planned.path.as_bytes()).collect();
    let wanted: BTreeSet<&[u8]> = expected.paths.keys().map(Vec::as_slice).collect();
    let mut wrong = Vec::new();
    for path in paths.symmetric_difference(&wanted) {
        let whose = if paths.contains(path) { "planned" } else { "not planned" };
        wrong.push(format!("{} is {whose}, expected {:?}", path.escape_ascii(), expected.paths.get(*path)));
    }
    for planned in &found.paths {
        let Some(wanted) = expected.paths.get(planned.path.as_bytes()) else { continue };
        let merged = planned.merged.as_ref().map(|merged| merged.node);
        let is_right = planned.action == action(wanted)
            && planned.conflict == wanted.conflict
            && (planned.conflict.is_none() || planned.choice == wanted.choice)
            && planned.certainty == wanted.certainty
            && planned.yours == wanted.yours
            && is_same(planned.now.as_ref(), wanted.now.as_ref())
            && is_same(planned.target.as_ref(), wanted.target.as_ref())
            && is_same(merged.as_ref(), wanted.merged.as_ref());
        if !is_right {
            wrong.push(format!("planned  {planned:?}\n    expected {wanted:?}"));
        }
    }
    let kept: BTreeSet<_> = found.kept.iter().map(|kept| (kept.path.as_bytes().to_vec(), name(kept.why))).collect();
    if kept != expected.kept || kept.len() != found.kept.len() {
        wrong.push(format!("kept {:?}\n    expected {:?}", found.kept, shown(&expected.kept)));
    }
    let blocked: BTreeSet<_> = found.blocked.iter().map(|path| path.as_bytes().to_vec()).collect();
    if blocked != expected.blocked {
        wrong.push(format!("blocked {:?}\n    expected {:?}", found.blocked, expected.blocked));
    }
    if found.foreign != expected.foreign as u64 {
        wrong.push(format!("{} paths that the session never wrote, expected {}", found.foreign, expected.foreign));
    }
    if found.is_applicable() == expected.is_refused() {
        wrong.push(format!("applicable: {}", found.is_applicable()));
    }
    verdict("the plan", &wrong)
}

fn shown(kept: &BTreeSet<(Path, &'static str)>) -> Vec<String> {
    kept.iter().map(|(path, why)| format!("{} {why}", path.escape_ascii())).collect()
}

fn verdict(what: &str, wrong: &[String]) -> Verdict {
    match wrong {
        [] => Ok(()),
        wrong => Err(format!("{MISMATCH}: {what}:\n  {}", wrong.join("\n  "))),
    }
}

/// Compares what is said to have become of each path.
pub(super) fn statuses(applied: &Applied, expected: &Expected) -> Verdict {
    let status = |planned: &Planned| match (planned.conflict, planned.choice) {
        (Some(_), OnConflict::Keep) => PathStatus::Kept,
        // Nothing of ours is left in it to take out.
        (Some(_), OnConflict::Merge) if planned.result() == planned.now.as_ref() => PathStatus::Kept,
        _ => PathStatus::Done,
    };
    let found: Vec<_> = applied.statuses.iter().map(|(path, status)| (path.as_bytes().to_vec(), *status)).collect();
    let truth: Vec<_> = expected.paths.iter().map(|(path, planned)| (path.clone(), status(planned))).collect();
    let wrong = if found == truth { Vec::new() } else { vec![format!("{found:?}\n    expected {truth:?}")] };
    verdict("what is said to be done", &wrong)
}

/// Compares the list of points and the operation log.
pub(super) fn log(workspace: &Workspace, model: &Model) -> Verdict {
    let mut wrong = Vec::new();
    let points: Vec<_> =
        no_error("checkpoints", workspace.checkpoints().all())?.iter().rev().map(|point| point.id).collect();
    let truth: Vec<_> = model.points.iter().map(|point| point.id).collect();
    if points != truth {
        wrong.push(format!("points {points:?}\n    expected {truth:?}"));
    }
    let kind = |is: OperationIs| match is {
        OperationIs::Exec => OperationKind::Exec,
        OperationIs::Rewind => OperationKind::Rewind,
        OperationIs::Undo => OperationKind::Undo,
        OperationIs::Redo => OperationKind::Redo,
    };
    let found = no_error("operations", workspace.operations().all())?;
    let found: Vec<_> = found
        .iter()
        .rev()
        .map(|operation| (operation.id, operation.kind, operation.reverses, operation.state, operation.undone))
        .collect();
    let truth: Vec<_> = model
        .operations
        .iter()
        .map(|operation| {
            let reverses = operation.reverses.map(|number| model.operations[number].id);
            let state = if operation.is_done { OperationState::Done } else { OperationState::Running };
            (operation.id, kind(operation.is), reverses, state, operation.is_undone)
        })
        .collect();
    if found != truth {
        wrong.push(format!("operations {found:?}\n    expected {truth:?}"));
    }
    verdict("the log", &wrong)
}

/// Counts what a plan brought up.
pub(super) fn count(expected: &Expected, met: &mut Met) {
    for planned in expected.paths.values() {
        met.add(match action(planned) {
            Action::Restore => "action: restore",
            Action::Delete => "action: delete",
            Action::Recreate => "action: recreate",
            Action::Mode => "action: mode",
            Action::Unchanged => "action: unchanged, with a conflict",
        });
        match planned.conflict {
            None => continue,
            Some(Conflict::ChangedByOthers) => met.add("conflict: changed by others"),
            Some(Conflict::ChangedLater) => met.add("conflict: changed later"),
            Some(Conflict::ChangedSince) => met.add("conflict: changed since"),
            Some(Conflict::UncapturedSince) => met.add("conflict: uncaptured since"),
            Some(Conflict::Contested) => met.add("conflict: contested"),
            Some(Conflict::NotCaptured) => met.add("conflict: not captured"),
            Some(Conflict::UnknownThen) => met.add("conflict: unknown then"),
            Some(Conflict::InTheWay) => met.add("conflict: in the way"),
            Some(Conflict::Damaged) => met.add("conflict: damaged"),
            Some(Conflict::Yours) => met.add("conflict: yours"),
        }
        match planned.choice {
            _ if expected.is_refused() => {}
            OnConflict::Stop => {}
            OnConflict::Keep => met.add("resolved: kept"),
            OnConflict::Overwrite => met.add("resolved: overwritten"),
            OnConflict::Merge => met.add("resolved: merged"),
        }
    }
    expected.kept.iter().for_each(|(_, why)| met.add(why));
    expected.blocked.iter().for_each(|_| met.add("refused: a directory cannot give way"));
    if !expected.captured.is_empty() {
        met.add("rewind: captured what the rules leave out");
    }
    if !expected.saved.is_empty() {
        met.add("rewind: saved what a tool hid");
    }
}

/// Compares what is on disk after an operation with what was there before and what should have changed.
pub(super) fn disk(before: &Everything, after: &Everything, expected: &Expected) -> Verdict {
    let touched = expected.touched();
    // Other permissions are no move, unless the file had other names and was replaced for their sake.
    let inode = |all: &Everything, path: &Path| all.get(path).map(|thing| thing.inode);
    let moved = touched.iter().filter(|path| inode(before, path) != inode(after, path)).collect();
    let mut wrong = Vec::new();
    for path in before.keys().chain(after.keys()).collect::<BTreeSet<_>>() {
        let (old, new) = (before.get(path), after.get(path));
        let is_right = match expected.paths.get(path).filter(|planned| planned.is_touched()) {
            Some(planned) => is_thing(new, planned.result()) && keeps_inode(old, new, planned),
            None => is_untouched(path, old, new, &touched, &moved),
        };
        if !is_right {
            wrong.push(format!("{}\n    was {old:?}\n    is  {new:?}", path.escape_ascii()));
        }
    }
    verdict("what is on disk afterwards", &wrong)
}

fn is_thing(found: Option<&Thing>, truth: Option<&NaiveNode>) -> bool {
    match (found, truth) {
        (None, None) => true,
        (Some(found), Some(truth)) => {
            shape(truth.kind) == found.shape && found.mode == truth.mode && found.content == truth.content
        }
        _ => false,
    }
}

fn shape(kind: NaiveKind) -> Shape {
    match kind {
        NaiveKind::File => Shape::File,
        NaiveKind::Symlink => Shape::Symlink,
        NaiveKind::Directory => Shape::Directory,
    }
}

/// A directory that stays one is the same directory.
fn keeps_inode(old: Option<&Thing>, new: Option<&Thing>, planned: &Planned) -> bool {
    let is_directory = |node: Option<&NaiveNode>| node.is_some_and(|node| node.kind == NaiveKind::Directory);
    !is_directory(planned.now.as_ref())
        || !is_directory(planned.result())
        || old.map(|thing| thing.inode) == new.map(|thing| thing.inode)
}

fn is_untouched(
    path: &Path,
    old: Option<&Thing>,
    new: Option<&Thing>,
    touched: &BTreeSet<Path>,
    moved: &BTreeSet<&Path>,
) -> bool {
    let (Some(old), Some(new)) = (old, new) else { return false };
    if old == new {
        return true;
    }
    // A directory's time moves when something in it comes or goes; temporary files lie in the nearest directory that stays.
    let is_passing = |path: &[u8]| touched.contains(path);
    let may_move = old.shape == Shape::Directory
        && moved.iter().any(|below| {
            let mut above = parent(below);
            while let Some(passing) = above.filter(|above| is_passing(above)) {
                above = parent(passing);
            }
            above == Some(path) || parent(below) == Some(path)
        });
    may_move && Thing { modified: old.modified, ..new.clone() } == *old
}

fn parent(path: &[u8]) -> Option<&[u8]> {
    path.iter().rposition(|byte| *byte == b'/').map(|at| &path[..at])
}

/// Nothing that was there before may be missing from both the disk and the safety snapshot.
pub(super) fn safety(before: &Everything, after: &Everything, saved: &NaiveNodes) -> Verdict {
    let is_lost = |(path, old): &(&Path, &Thing)| {
        let is_on_disk = after
            .get(*path)
            .is_some_and(|new| (new.shape, new.mode, &new.content) == (old.shape, old.mode, &old.content));
        !is_on_disk && !is_thing(Some(old), saved.get(*path))
    };
    let wrong: Vec<String> = before
        .iter()
        .filter(is_lost)
        .map(|(path, old)| format!("{} {old:?}\n    saved as {:?}", path.escape_ascii(), saved.get(path)))
        .collect();
    verdict("neither on disk nor in the safety snapshot", &wrong)
}

/// Compares all that the engine attributes with what the model does.
pub(super) fn attribution(workspace: &Workspace, model: &Model, sessions: &[SessionId; 2], met: &mut Met) -> Verdict {
    let checkpoints = no_error("checkpoints", workspace.checkpoints().all())?;
    let first: Option<&Checkpoint> = checkpoints.last();
    let Some(first) = first else { return Ok(()) };
    let found = no_error("changes", workspace.changes().between(first, None))?;
    let mut wrong = Vec::new();
    let rows: Vec<_> = model.rows.iter().filter(|row| row.happening == Happening::Changed).collect();
    if found.len() != rows.len() {
        wrong.push(format!("{} changes, expected {}", found.len(), rows.len()));
    }
    for row in &model.rows {
        met.add(match (row.happening, row.by) {
            (Happening::Captured, _) => "change: captured for the first time",
            (Happening::Uncaptured, _) => "change: not captured any more",
            (Happening::Hidden, _) => "change: created hidden",
            (Happening::Uncovered, _) => "change: uncovered",
            (Happening::LeftOut, _) => "change: left out",
            (_, By::Outside) => "by: outside",
            (_, By::Contested) => "by: contested",
            (_, By::Window { certain: true, .. }) => "by: session, certain",
            (_, By::Window { certain: false, .. }) => "by: session, presumed",
            (_, By::Retake(_)) => "by: retake",
        });
    }
    for (found, row) in found.iter().zip(rows) {
        let owner = match row.by {
            By::Outside => Owner::Outside,
            By::Contested => Owner::Contested,
            By::Window { number, certain } => Owner::Session {
                session: sessions[model.windows[number].who as usize],
                turn: None,
                tool: format!("tool {number}"),
                certainty: if certain { Certainty::Certain } else { Certainty::Presumed },
            },
            By::Retake(operation) => {
                let operation = &model.operations[operation];
                let session = operation.session.map(|who| sessions[who as usize]);
                Owner::Retake { operation: operation.id, session }
            }
        };
        let is_right = found.path.as_bytes() == row.path
            && found.checkpoint == model.points[row.point].id
            && is_same(found.before.as_ref(), row.before.as_ref())
            && is_same(found.after.as_ref(), row.after.as_ref())
            && found.owner == owner;
        if !is_right {
            wrong.push(format!("found    {found:?}\n    expected {row:?}"));
        }
    }
    verdict("who changed what", &wrong)
}
