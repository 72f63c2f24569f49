//! `retake rewind`: the files as they were at a point.

use std::ffi::OsString;

use retake_engine::{Checkpoint, Goal, OperationKind, RewindRequest, Workspace};

use crate::paths::{self, Place};
use crate::recovery;
use crate::rewind::{self, Options};
use crate::surroundings::Surroundings;
use crate::ui::Ui;

/// Bring files back to how they were at a checkpoint
///
/// At a point of `retake exec` only what its session changed since goes back, and what anybody else changed is left alone or, in the
/// same file, is a conflict; at any other point, and with `--exact`, the whole workspace becomes as it was. On a terminal the plan is
/// shown first. What is there now is saved before anything is touched, so that `retake undo` takes the rewind back.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  retake rewind 3fa2 --dry-run
  retake rewind \"before the refactor\"
  retake rewind 3fa2 --path src/lib.rs --path tests
  retake rewind 3fa2 --on-conflict keep --yes")]
pub struct RewindArgs {
    /// Checkpoint: a unique beginning of its id, or its label
    point: String,
    /// Make the workspace exactly as it was, whoever changed it since
    #[arg(long)]
    exact: bool,
    /// Only this file or directory, relative to the current directory; can be given more than once
    #[arg(long = "path", value_name = "PATH")]
    paths: Vec<OsString>,
    /// Rewind files; there is nothing else to rewind yet
    #[arg(long)]
    code: bool,
    /// Take back what this session changed since the checkpoint
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    #[command(flatten)]
    options: Options,
}

pub fn run(ui: &mut Ui, here: Surroundings, args: &RewindArgs) -> anyhow::Result<()> {
    let mut workspace = Workspace::open(here.environment)?;
    let checkpoint = workspace.resolve(&args.point)?;
    let mut request = RewindRequest::new(goal(&workspace, &checkpoint, args)?);
    let base = paths::base(workspace.root(), &here.current_dir);
    for typed in &args.paths {
        match paths::resolve(workspace.root(), base, typed)? {
            // Everything.
            Place::Root => {
                request.paths.clear();
                break;
            }
            Place::Below(path) => request.paths.push(path),
        }
    }
    recovery::before_going_back(ui, &mut workspace, &args.options)?;
    rewind::run(ui, &mut workspace, OperationKind::Rewind, request, &args.options)
}

fn goal(workspace: &Workspace, checkpoint: &Checkpoint, args: &RewindArgs) -> anyhow::Result<Goal> {
    let named = args.session.as_deref().map(|text| workspace.resolve_session(text)).transpose()?;
    let session = named.map(|session| session.id).or(checkpoint.session);
    Ok(match session.filter(|_| !args.exact) {
        Some(session) => Goal::Selective { session, checkpoint: checkpoint.id },
        None => Goal::Exact { checkpoint: checkpoint.id },
    })
}
