//! What came of a rewind, told to people: what was done, what was left and why, and how to take it back.

use std::io::Write;

use retake_agent::rewind_document::Bytes;
use retake_engine::WorkspacePath;
use retake_engine::operation::OperationKind;
use retake_engine::rewind::{Action, Applied, LedgerItem, NotRestored, PathStatus, PlannedPath};
use retake_engine::session::Scope;
use retake_engine::snapshot::{Difference, GapKind};

use super::preview;
use crate::failure::Result;
use crate::output::messages;
use crate::output::quote;
use crate::output::ui::{Paint, Ui};

/// Says what was done, what did not go back, and how to take it back.
pub fn tell(ui: &mut Ui, kind: OperationKind, applied: &Applied) -> Result<()> {
    let plan = &applied.plan;
    let all_kept = is_all_kept(applied);
    let mark = OperationRecord::of(applied.operation.as_ref());
    let not_restored = applied.not_restored();
    match applied.operation {
        _ if all_kept => writeln!(ui.out, "{}: every path stays as it is", nothing_done(kind, &plan.what))?,
        None if !not_restored.is_empty() => {
            writeln!(ui.out, "{}: no path that differs can go back", nothing_done(kind, &plan.what))?;
        }
        None if kind == OperationKind::Undo => {
            writeln!(ui.out, "{}: the files are as they were before it", nothing_done(kind, &plan.what))?;
        }
        None => writeln!(ui.out, "Nothing to do: the files are as they were at {}", preview::point(&plan.what))?,
        Some(_) => writeln!(ui.out, "{}: {}", preview::title(kind, &plan.what), counts(applied))?,
    }
    tell_conversation(ui, applied)?;
    let already: Vec<Bytes> = plan.already.iter().map(|path| Bytes::new(path.as_bytes())).collect();
    tell_already(ui, &already, mark)?;
    let line = |one: &NotRestored| {
        (one.difference.name().to_owned(), format!("{}: {}", quote::name(one.path.as_bytes()), one.text))
    };
    tell_not_restored(ui, not_restored.iter().map(line))?;
    tell_meanwhile(ui, kind, applied)?;
    let separated = plan.gaps.iter().filter(|gap| gap.kind == GapKind::HardLink && is_written(applied, &gap.path));
    let separated = quote::names(separated.map(|gap| &gap.path));
    ui.warn_of(
        "was a hard link and is a file of its own now",
        "were hard links and are files of their own now",
        &separated,
    )?;
    let moved = plan.ledger.iter().filter(|item| item.kind != "command" || item.remedy.is_some());
    preview::write_ledger(ui.talk()?, Paint::Colour, &moved.cloned().collect::<Vec<LedgerItem>>())?;
    if kind == OperationKind::Undo && (all_kept || mark == OperationRecord::None) {
        writeln!(ui.talk()?, "`retake undo OP` undoes an earlier operation; `retake ops` lists them")?;
    }
    let back = preview::way_back(kind, applied.statuses.len(), plan.conversation.as_ref());
    if let Some(back) = back.filter(|_| mark == OperationRecord::Made && !all_kept) {
        writeln!(ui.talk()?, "{back}")?;
    }
    Ok(())
}

/// Whether the file at `path` was written.
fn is_written(applied: &Applied, path: &WorkspacePath) -> bool {
    let paths = applied.plan.paths.iter().zip(&applied.statuses);
    paths.filter(|(planned, _)| planned.path == *path).any(|(planned, (_, status))| {
        planned.result().is_some() && matches!(status, PathStatus::Done | PathStatus::Displaced)
    })
}

/// Names what changed since the target and did not go back, each path with how it differs and a line that says why. What may have
/// changed comes last, under a heading of its own.
pub fn tell_not_restored(ui: &mut Ui, paths: impl Iterator<Item = (String, String)>) -> Result<()> {
    let (possible, changed): (Vec<_>, Vec<_>) = paths.partition(|(change, _)| change == Difference::Possible.name());
    let lines = |paths: Vec<(String, String)>| paths.into_iter().map(|(_, line)| line).collect::<Vec<_>>();
    let since = "changed since then and did not go back";
    ui.warn_of(since, since, &lines(changed))?;
    let since = "may have changed since then and did not go back";
    Ok(ui.warn_of(since, since, &lines(possible))?)
}

/// Whether an operation was recorded: an undo without one is not used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationRecord {
    Made,
    None,
}

impl OperationRecord {
    pub const fn of<T>(operation: Option<&T>) -> Self {
        if operation.is_some() { Self::Made } else { Self::None }
    }
}

/// Names what an undo found as it was before the operation: that was somebody's doing, and may be taken back.
pub fn tell_already(ui: &mut Ui, paths: &[Bytes], mark: OperationRecord) -> Result<()> {
    let names: Vec<String> =
        paths.iter().map(|path| quote::name(&path.decode().unwrap_or_default()).into_owned()).collect();
    ui.warn_of(
        "was as before already; its change may come back, out of git's stash or another branch",
        "were as before already; their changes may come back, out of git's stash or another branch",
        &names,
    )?;
    if !names.is_empty() && mark == OperationRecord::None {
        writeln!(ui.talk()?, "It is not marked undone: `retake undo` takes the change back once it is there again")?;
    }
    Ok(())
}

/// Says what became of the conversation.
fn tell_conversation(ui: &mut Ui, applied: &Applied) -> Result<()> {
    let Some(planned) = &applied.plan.conversation else { return Ok(()) };
    match applied.conversation_moved {
        Some(true) => preview::write_conversation(&mut ui.out, planned, preview::Tense::Done)?,
        Some(false) => ui.warn("the conversation could not be taken back: it is where it was")?,
        None => preview::write_stays(&mut ui.out, planned)?,
    }
    Ok(())
}

/// Whether there was something to do, and all of it was left undone as chosen.
fn is_all_kept(applied: &Applied) -> bool {
    let is_kept = |(_, status): &(WorkspacePath, PathStatus)| *status == PathStatus::Kept;
    !applied.statuses.is_empty() && applied.statuses.iter().all(is_kept)
}

/// `Nothing was undone of exec make`
pub fn nothing_done(kind: OperationKind, what: &str) -> String {
    let what = preview::point(what);
    match kind {
        OperationKind::Undo => format!("Nothing was undone of {what}"),
        OperationKind::Redo => format!("Nothing was redone of {what}"),
        _ => format!("Nothing was rewound to {what}"),
    }
}

/// Lists what others did while it was being done.
fn tell_meanwhile(ui: &mut Ui, kind: OperationKind, applied: &Applied) -> Result<()> {
    let with = |wanted: PathStatus| {
        let statuses = applied.statuses.iter().filter(move |(_, status)| *status == wanted);
        quote::names(statuses.map(|(path, _)| path))
    };
    tell_displaced(ui, kind, &with(PathStatus::Displaced))?;
    ui.warn_of(
        "is still open in some program; what it writes from now on is lost",
        "are still open in some program; what it writes from now on is lost",
        &quote::names(&applied.still_open),
    )?;
    let left_over = quote::names(&applied.left_over);
    ui.warn_of("stays beside its file", "stay beside their files", &left_over)?;
    if !left_over.is_empty() {
        writeln!(ui.talk()?, "{}", messages::LEFT_OVER)?;
    }
    Ok(())
}

/// Names what somebody saved before it was replaced, and how to have that.
pub fn tell_displaced(ui: &mut Ui, kind: OperationKind, names: &[String]) -> Result<()> {
    let bring_back = match kind {
        OperationKind::Undo => "`retake redo`",
        _ => "`retake undo`",
    };
    ui.warn_of(
        &format!("was saved by somebody else meanwhile; {bring_back} brings that version back"),
        &format!("were saved by somebody else meanwhile; {bring_back} brings those versions back"),
        names,
    )?;
    Ok(())
}

/// `2 restored, 1 deleted, 1 directory deleted`
fn counts(applied: &Applied) -> String {
    let paths = applied.plan.paths.iter().zip(&applied.statuses);
    let done = paths.filter(|(_, (_, status))| !matches!(status, PathStatus::Kept | PathStatus::Overtaken));
    let (directories, files): (Vec<&PlannedPath>, Vec<_>) =
        done.map(|(path, _)| path).partition(|path| path.is_directory());
    let actions = [
        (Action::Restore, "restored"),
        (Action::Recreate, "recreated"),
        (Action::Delete, "deleted"),
        (Action::Mode, "with permissions restored"),
    ];
    let of = |paths: &[&PlannedPath], name: &dyn Fn(usize) -> String| -> Vec<String> {
        let count = |wanted: Action| paths.iter().filter(|path| path.action == wanted).count();
        let counted = actions.iter().map(|(action, word)| (count(*action), word)).filter(|(count, _)| *count != 0);
        counted.map(|(count, word)| format!("{} {word}", name(count))).collect()
    };
    // Files come first and without a noun, as `exec` and `log` count them.
    let (merged, whole): (Vec<&PlannedPath>, Vec<_>) = files.iter().partition(|path| path.is_merged());
    let mut parts = of(&whole, &|count| count.to_string());
    if !merged.is_empty() {
        parts.push(format!("{} merged", merged.len()));
    }
    parts.extend(of(&directories, &|count| messages::count(count as u64, "directory", "directories")));
    if let Some(fork) = &applied.plan.fork {
        return preview::fate(fork, preview::Tense::Done);
    }
    match applied.plan.scope {
        Scope::Conversation => "the conversation only; files stay as they are".to_owned(),
        _ if parts.is_empty() => "no file had to change".to_owned(),
        _ => parts.join(", "),
    }
}
