//! What came of a rewind, told to people: what was done, what was left and why, and how to take it back.

use std::io::Write;

use retake_engine::{
    Action, Applied, Conflict, KeptBecause, LedgerItem, OperationKind, PathStatus, PlannedPath, WorkspacePath,
};

use super::preview;
use crate::ui::{Paint, Ui};
use crate::words;

/// Paths named after the work is done.
const MAX_NAMED: usize = 20;

/// Says what was done, what was left, and how to take it back.
pub fn tell(ui: &mut Ui, kind: OperationKind, applied: &Applied) -> anyhow::Result<()> {
    let plan = &applied.plan;
    let all_kept = is_all_kept(applied);
    match applied.operation {
        _ if all_kept => writeln!(ui.out, "{}: every path stays as it is", nothing_done(kind, &plan.what))?,
        None => writeln!(ui.out, "Nothing to do: the files are as they were at {}", preview::point(&plan.what))?,
        Some(_) => writeln!(ui.out, "{}: {}", preview::title(kind, &plan.what), counts(applied))?,
    }
    tell_kept(ui, applied)?;
    tell_meanwhile(ui, kind, applied)?;
    let moved = plan.ledger.iter().filter(|item| item.kind == "git" || item.remedy.is_some());
    preview::write_ledger(ui.talk()?, Paint::Colour, &moved.cloned().collect::<Vec<LedgerItem>>())?;
    if applied.operation.is_some() && !all_kept {
        let back = match kind {
            OperationKind::Undo => "`retake redo` repeats it",
            OperationKind::Exec | OperationKind::Rewind | OperationKind::Redo => "`retake undo` takes this back",
        };
        writeln!(ui.talk()?, "{back}")?;
    }
    Ok(())
}

/// Whether there was something to do, and all of it was left undone as chosen.
fn is_all_kept(applied: &Applied) -> bool {
    let is_kept = |(_, status): &(WorkspacePath, PathStatus)| *status == PathStatus::Kept;
    !applied.statuses.is_empty() && applied.statuses.iter().all(is_kept)
}

/// `Nothing was undone of exec make`
fn nothing_done(kind: OperationKind, what: &str) -> String {
    let what = preview::point(what);
    match kind {
        OperationKind::Undo => format!("Nothing was undone of {what}"),
        OperationKind::Redo => format!("Nothing was redone of {what}"),
        OperationKind::Exec | OperationKind::Rewind => format!("Nothing was rewound to {what}"),
    }
}

/// Lists what was left alone, each path with its reason.
fn tell_kept(ui: &mut Ui, applied: &Applied) -> anyhow::Result<()> {
    let plan = &applied.plan;
    let kept = plan.paths.iter().zip(&applied.statuses).filter(|(_, (_, status))| *status == PathStatus::Kept);
    let (damaged, kept): (Vec<&PlannedPath>, Vec<&PlannedPath>) =
        kept.map(|(path, _)| path).partition(|path| path.conflict == Some(Conflict::Damaged));
    // Without a conflict, it is a directory that turned out not to be empty.
    let why = |path: &PlannedPath| path.conflict.map_or(KeptBecause::HoldsOthers.describe(), Conflict::describe);
    let line = |path: &&PlannedPath| format!("{}: {}", path.path.display(), why(path));
    let proven = plan.kept.iter().map(|kept| format!("{}: {}", kept.path.display(), kept.why.describe()));
    let kept: Vec<String> = kept.iter().map(line).chain(proven).collect();
    list(ui, "stays as it is", "stay as they are", &kept)?;
    let damaged: Vec<String> = damaged.iter().map(line).collect();
    list(ui, "could not be brought back", "could not be brought back", &damaged)
}

/// Lists what others did while it was being done.
fn tell_meanwhile(ui: &mut Ui, kind: OperationKind, applied: &Applied) -> anyhow::Result<()> {
    let with = |wanted: PathStatus| {
        let statuses = applied.statuses.iter().filter(move |(_, status)| *status == wanted);
        statuses.map(|(path, _)| path.display().to_string()).collect::<Vec<_>>()
    };
    let bring_back = match kind {
        OperationKind::Undo => "`retake redo`",
        OperationKind::Exec | OperationKind::Rewind | OperationKind::Redo => "`retake undo`",
    };
    list(
        ui,
        &format!("was saved by somebody else meanwhile; {bring_back} brings that version back"),
        &format!("were saved by somebody else meanwhile; {bring_back} brings those versions back"),
        &with(PathStatus::Displaced),
    )?;
    list(
        ui,
        "was changed by somebody else meanwhile, and is as they left it",
        "were changed by somebody else meanwhile, and are as they left them",
        &with(PathStatus::Overtaken),
    )?;
    let names = |paths: &[WorkspacePath]| paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>();
    list(
        ui,
        "is still open in some program; what it writes from now on is lost",
        "are still open in some program; what it writes from now on is lost",
        &names(&applied.still_open),
    )?;
    let left_over = names(&applied.left_over);
    list(ui, "stays beside its file", "stay beside their files", &left_over)?;
    if !left_over.is_empty() {
        writeln!(ui.talk()?, "{}", words::LEFT_OVER)?;
    }
    Ok(())
}

/// `2 restored, 1 deleted`
fn counts(applied: &Applied) -> String {
    let paths = applied.plan.paths.iter().zip(&applied.statuses);
    let done: Vec<Action> = paths
        .filter(|(_, (_, status))| !matches!(status, PathStatus::Kept | PathStatus::Overtaken))
        .map(|(path, _)| path.action)
        .collect();
    let parts = [
        (Action::Restore, "restored"),
        (Action::Recreate, "recreated"),
        (Action::Delete, "deleted"),
        (Action::Mode, "with permissions restored"),
    ];
    let count = |wanted: Action| done.iter().filter(|action| **action == wanted).count();
    let parts = parts.map(|(action, word)| (count(action), word));
    let parts: Vec<String> =
        parts.into_iter().filter(|(count, _)| *count != 0).map(|(count, word)| format!("{count} {word}")).collect();
    if parts.is_empty() { "no file had to change".to_owned() } else { parts.join(", ") }
}

fn list(ui: &mut Ui, one: &str, many: &str, paths: &[String]) -> anyhow::Result<()> {
    if paths.is_empty() {
        return Ok(());
    }
    let verb = if paths.len() == 1 { one } else { many };
    ui.warn(&format!("{} {verb}", words::count(paths.len() as u64, "path", "paths")))?;
    for path in paths.iter().take(MAX_NAMED) {
        writeln!(ui.talk()?, "  {path}")?;
    }
    if MAX_NAMED < paths.len() {
        writeln!(ui.talk()?, "  … and {} more", paths.len() - MAX_NAMED)?;
    }
    Ok(())
}
