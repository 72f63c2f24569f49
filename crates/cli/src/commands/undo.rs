//! `retake undo` and `retake redo`: the last operation taken back, and repeated.

use std::io::Write;

use retake_agent::rewind_document::RewindDocument;
use retake_engine::Workspace;
use retake_engine::id::OperationId;
use retake_engine::operation::{OperationError, OperationKind};
use retake_engine::rewind::{Goal, RewindRequest};

use crate::agent::session;
use crate::commands::CommandError;
use crate::failure::Result;
use crate::output::quote;
use crate::output::ui::{Format, Ui};
use crate::rewind::{self, ChangeContext, RewindOptions};
use crate::workspace::context::CommandContext;
use crate::workspace::interrupted_rewind;

/// Take back the last turn of `retake run`, the last command of `retake exec`, the last rewind or fork
///
/// Of a turn both halves: its files, and what was said. The last is the newest that changed something and is not undone: a command that changed no file is passed over. Goes back one
/// operation further each time. What somebody else changed since is left alone or, in the same file, is a conflict. An undo that takes
/// nothing back, because the change is in git's stash, say, is not used up.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  retake undo
  retake undo 5c0e --dry-run      an earlier operation, as listed by `retake ops`")]
pub struct UndoArgs {
    /// Operation: a unique beginning of its id [default: the newest that changed something and is not undone]
    #[arg(value_name = "OP")]
    operation: Option<String>,
    /// Only operations of this session; forks of it are passed over
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    #[command(flatten)]
    options: RewindOptions,
}

/// Repeat what `retake undo` took back last
///
/// Possible until something new is changed.
#[derive(clap::Args, Debug)]
pub struct RedoArgs {
    /// Only operations of this session; forks of it are passed over
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    #[command(flatten)]
    options: RewindOptions,
}

pub fn run(ui: &mut Ui, here: &CommandContext, args: &UndoArgs) -> Result<()> {
    let mut workspace = Workspace::open(here.environment.clone())?;
    let taken_back = interrupted_rewind::before_going_back(ui, &mut workspace, &args.options)?;
    let session = args.session.as_deref().map(|text| session::named(&workspace, text)).transpose()?;
    let session = session.map(|session| session.id);
    let taken_back = taken_back.into_iter().find(|turn| session.is_none() || turn.session == session);
    if let (Some(turn), None) = (taken_back, &args.operation) {
        // That is what was to be undone: going further would take back what nobody meant.
        return tell_taken_back(ui, &turn.what);
    }
    let found = match &args.operation {
        Some(text) => workspace.operations().resolve(text),
        None => workspace.operations().next_to_undo(session),
    };
    if args.options.only_shows() && args.operation.is_none() {
        let next = found.as_ref().ok().map(|operation| operation.id);
        if let Some(cut) = interrupted_rewind::cut_off(&workspace, session, next)? {
            return Err(CommandError::CutOff { kind: cut.kind, what: cut.what }.into());
        }
    }
    let (operation, goal) = match found {
        // The process that runs it stops it first, and then knows what is to be undone.
        Err(OperationError::Running { operation, .. }) if args.options.interrupts() => {
            let running = workspace.operations().resolve(&operation.to_string())?;
            let session = running.session;
            (running, Goal::Undo { operation: None, session })
        }
        found => {
            let operation = found?;
            let goal = Goal::Undo { operation: Some(operation.id), session };
            (operation, goal)
        }
    };
    // A fork has nothing to do with what it was made from, which may be open elsewhere.
    let session = operation.session.filter(|_| operation.kind != OperationKind::Fork);
    let place = ChangeContext { here, workspace: &mut workspace, session };
    rewind::run(ui, place, OperationKind::Undo, RewindRequest::new(goal), &args.options)
}

/// Says that a turn which was cut off before anything came of it is taken back.
fn tell_taken_back(ui: &mut Ui, prompt: &str) -> Result<()> {
    let what = format!("turn {prompt}");
    if ui.format == Format::Json {
        return Ok(ui.json(&RewindDocument::taken_back(&what))?);
    }
    let what = quote::one_line(&what);
    Ok(writeln!(ui.out, "Undid {what}: it was cut off before anything came of it, and waits to be said again")?)
}

pub fn redo(ui: &mut Ui, here: &CommandContext, args: &RedoArgs) -> Result<()> {
    let mut workspace = Workspace::open(here.environment.clone())?;
    interrupted_rewind::before_going_back(ui, &mut workspace, &args.options)?;
    let session = args.session.as_deref().map(|text| session::named(&workspace, text)).transpose()?;
    let session = session.map(|session| session.id);
    let undone = workspace.operations().next_to_redo(session)?;
    let operations = workspace.operations().all()?;
    let is_fork = |id: &OperationId| {
        operations.iter().any(|operation| operation.id == *id && operation.kind == OperationKind::Fork)
    };
    let about = undone.session.filter(|_| !undone.reverses.as_ref().is_some_and(is_fork));
    let place = ChangeContext { here, workspace: &mut workspace, session: about };
    rewind::run(ui, place, OperationKind::Redo, RewindRequest::new(Goal::Redo { session }), &args.options)
}
