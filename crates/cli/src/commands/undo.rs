//! `retake undo` and `retake redo`: the last operation taken back, and repeated.

use retake_engine::{Goal, OperationKind, RewindRequest, Workspace};

use crate::recovery;
use crate::rewind::{self, Options};
use crate::surroundings::Surroundings;
use crate::ui::Ui;

/// Take back the last command run by `retake exec`, or the last rewind
///
/// The last is the newest that changed something and is not undone: a command that changed no file is passed over. Goes back one
/// operation further each time. What somebody else changed since is left alone or, in the same file, is a conflict.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  retake undo
  retake undo 5c0e --dry-run      an earlier operation, as listed by `retake ops`")]
pub struct UndoArgs {
    /// Operation: a unique beginning of its id [default: the newest that changed something and is not undone]
    #[arg(value_name = "OP")]
    operation: Option<String>,
    /// Only operations of this session
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    #[command(flatten)]
    options: Options,
}

/// Repeat what `retake undo` took back last
///
/// Possible until something new is changed.
#[derive(clap::Args, Debug)]
pub struct RedoArgs {
    /// Only operations of this session
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    #[command(flatten)]
    options: Options,
}

pub fn run(ui: &mut Ui, here: Surroundings, args: &UndoArgs) -> anyhow::Result<()> {
    let mut workspace = Workspace::open(here.environment)?;
    recovery::before_going_back(ui, &mut workspace, &args.options)?;
    let session = args.session.as_deref().map(|text| workspace.resolve_session(text)).transpose()?;
    let operation = args.operation.as_deref().map(|text| workspace.resolve_operation(text)).transpose()?;
    let goal =
        Goal::Undo { operation: operation.map(|operation| operation.id), session: session.map(|session| session.id) };
    rewind::run(ui, &mut workspace, OperationKind::Undo, RewindRequest::new(goal), &args.options)
}

pub fn redo(ui: &mut Ui, here: Surroundings, args: &RedoArgs) -> anyhow::Result<()> {
    let mut workspace = Workspace::open(here.environment)?;
    recovery::before_going_back(ui, &mut workspace, &args.options)?;
    let session = args.session.as_deref().map(|text| workspace.resolve_session(text)).transpose()?;
    let goal = Goal::Redo { session: session.map(|session| session.id) };
    rewind::run(ui, &mut workspace, OperationKind::Redo, RewindRequest::new(goal), &args.options)
}
