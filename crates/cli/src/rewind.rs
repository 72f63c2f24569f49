//! What `rewind`, `undo` and `redo` share: from a request to a result, with a plan shown and questions asked in between where that
//! is wanted.
//!
//! Questions are asked only on a terminal. Elsewhere everything is done in one go, and what would need a decision is refused with the
//! list of what has to be decided.

mod choose;
mod document;
mod preview;

use std::io::{self, IsTerminal, Write};

use anyhow::Error;
use retake_engine::{
    Action, Applied, CheckpointError, LedgerItem, OnConflict, OperationKind, PathStatus, Plan, Progress, RewindError,
    RewindRequest, ScanError, Workspace,
};

use crate::clock;
use crate::commands::CommandError;
use crate::ui::{Format, Paint, Ui};
use crate::words;
use document::RewindDocument;
pub use preview::why_refused;

/// Paths named after the work is done.
const MAX_NAMED: usize = 20;

/// Options that `rewind`, `undo` and `redo` take.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// What to do with paths that somebody else changed too: `stop`, and change nothing; `keep` them as they are; `overwrite` them;
    /// or `merge`, which takes only these changes out of them
    #[arg(long, value_name = "CHOICE", default_value = "stop", hide_default_value = true, hide_possible_values = true)]
    on_conflict: Choice,
    /// Show what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(short = 'y', long, conflicts_with = "dry_run")]
    yes: bool,
    /// Go ahead although another branch is checked out than then
    #[arg(long)]
    across_branches: bool,
}

/// What to do with a conflict, as typed.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Choice {
    Stop,
    Keep,
    Overwrite,
    Merge,
}

impl From<Choice> for OnConflict {
    fn from(choice: Choice) -> Self {
        match choice {
            Choice::Stop => Self::Stop,
            Choice::Keep => Self::Keep,
            Choice::Overwrite => Self::Overwrite,
            Choice::Merge => Self::Merge,
        }
    }
}

/// How far to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    Show,
    Ask,
    Apply,
}

impl Options {
    /// Whether nothing is to be written.
    pub fn only_shows(&self) -> bool {
        self.dry_run
    }

    fn manner(&self, ui: &Ui) -> Manner {
        if self.dry_run {
            Manner::Show
        } else if self.yes || ui.format == Format::Json || !io::stdin().is_terminal() {
            Manner::Apply
        } else {
            Manner::Ask
        }
    }
}

/// Carries out `request` as the options say; `kind` is what it is called.
pub fn run(
    ui: &mut Ui,
    workspace: &mut Workspace,
    kind: OperationKind,
    mut request: RewindRequest,
    options: &Options,
) -> anyhow::Result<()> {
    request.on_conflict = options.on_conflict.into();
    request.across_branches = options.across_branches;
    match options.manner(ui) {
        Manner::Show => show(ui, workspace, kind, &request),
        Manner::Apply => apply(ui, workspace, kind, &request, None),
        Manner::Ask => match choose::agree(ui, workspace, kind, &mut request)? {
            Some(plan) => apply(ui, workspace, kind, &request, Some(&plan)),
            None => Err(CommandError::Declined.into()),
        },
    }
}

/// Works out what would be done.
fn plan(ui: &Ui, workspace: &Workspace, request: &RewindRequest) -> anyhow::Result<Plan> {
    let progress = ui.progress();
    workspace.plan(request, &progress).map_err(as_cancelled)
}

fn show(ui: &mut Ui, workspace: &Workspace, kind: OperationKind, request: &RewindRequest) -> anyhow::Result<()> {
    let plan = plan(ui, workspace, request)?;
    match ui.format {
        Format::Json => ui.json(&RewindDocument::planned(&plan))?,
        Format::Text => {
            ui.start_pager()?;
            let paint = ui.paint;
            preview::write(&mut ui.out, paint, workspace, kind, &plan, preview::Length::Whole)?;
            // A pager would hide what is said while it is open.
            ui.finish()?;
        }
    }
    if plan.is_applicable() { Ok(()) } else { Err(RewindError::Refused { plan: Box::new(plan) }.into()) }
}

fn apply(
    ui: &mut Ui,
    workspace: &mut Workspace,
    kind: OperationKind,
    request: &RewindRequest,
    expected: Option<&Plan>,
) -> anyhow::Result<()> {
    let new = clock::new_rewind()?;
    let applied = {
        let progress = ui.progress();
        workspace.apply(request, expected, &new, &progress as &dyn Progress)
    };
    match (applied, ui.format) {
        (Ok(applied), Format::Json) => Ok(ui.json(&RewindDocument::applied(&applied))?),
        (Ok(applied), Format::Text) => tell(ui, kind, &applied),
        (Err(error), format) => {
            if let (Format::Json, Some(document)) = (format, RewindDocument::failed(&error)) {
                ui.json(&document)?;
            }
            Err(as_cancelled(error))
        }
    }
}

/// Says what was done, what was left, and how to take it back.
fn tell(ui: &mut Ui, kind: OperationKind, applied: &Applied) -> anyhow::Result<()> {
    let plan = &applied.plan;
    let what = preview::title(kind, &plan.what);
    match applied.operation {
        None => writeln!(ui.out, "Nothing to do: the files are as they were at {}", preview::point(&plan.what))?,
        Some(_) => writeln!(ui.out, "{what}: {}", counts(applied))?,
    }
    let with = |wanted: PathStatus| {
        let statuses = applied.statuses.iter().filter(move |(_, status)| *status == wanted);
        statuses.map(|(path, _)| path.display().to_string()).collect::<Vec<_>>()
    };
    let kept = plan.kept.iter().map(|kept| format!("{}: {}", kept.path.display(), kept.why.describe()));
    list(
        ui,
        "stays as it is",
        "stay as they are",
        &with(PathStatus::Kept).into_iter().chain(kept).collect::<Vec<_>>(),
    )?;
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
    let still_open: Vec<String> = applied.still_open.iter().map(|path| path.display().to_string()).collect();
    list(
        ui,
        "is still open in some program; what it writes from now on is lost",
        "are still open in some program; what it writes from now on is lost",
        &still_open,
    )?;
    let left_over: Vec<String> = applied.left_over.iter().map(|path| path.display().to_string()).collect();
    list(ui, "stays beside its file", "stay beside their files", &left_over)?;
    if !left_over.is_empty() {
        writeln!(ui.talk()?, "{}", words::LEFT_OVER)?;
    }
    let moved: Vec<LedgerItem> = plan.ledger.iter().filter(|item| item.remedy.is_some()).cloned().collect();
    preview::write_ledger(ui.talk()?, Paint::Colour, &moved)?;
    if applied.operation.is_some() {
        let back = match kind {
            OperationKind::Undo => "`retake redo` repeats it",
            OperationKind::Exec | OperationKind::Rewind | OperationKind::Redo => "`retake undo` takes this back",
        };
        writeln!(ui.talk()?, "{back}")?;
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

/// A rewind that was cancelled has read something and done nothing.
fn as_cancelled(error: RewindError) -> Error {
    match error {
        RewindError::Safety(CheckpointError::Scan(ScanError::Cancelled)) => CommandError::Cancelled.into(),
        other => other.into(),
    }
}
