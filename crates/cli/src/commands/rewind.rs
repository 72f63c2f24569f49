//! `retake rewind`: the files as they were at a point.

use std::ffi::OsString;
use std::fs;

use retake_engine::{Checkpoint, Goal, OperationKind, RewindRequest, Side, StoreError, Workspace, WorkspacePath};

use super::CommandError;
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
    for path in &request.paths {
        if !is_anywhere(&workspace, &checkpoint, path)? {
            let (path, point) = (path.display().to_string(), checkpoint.id.short());
            return Err(CommandError::PathNowhere { path, point }.into());
        }
    }
    recovery::before_going_back(ui, &mut workspace, &args.options)?;
    rewind::run(ui, &mut workspace, OperationKind::Rewind, request, &args.options)
}

/// Whether `path` is there now, was at the checkpoint, or is known to have been there then although that did not capture it.
fn is_anywhere(workspace: &Workspace, checkpoint: &Checkpoint, path: &WorkspacePath) -> Result<bool, StoreError> {
    if fs::symlink_metadata(workspace.root().join(path.to_path())).is_ok() {
        return Ok(true);
    }
    match workspace.entry(&Side::Stored(checkpoint.snapshot), path) {
        Ok(None) => {}
        Ok(Some(_)) => return Ok(true),
        // What can be brought back all the same is for the plan to tell.
        Err(StoreError::Damaged { .. } | StoreError::Missing { .. }) => return Ok(true),
        Err(error) => return Err(error),
    }
    let mut since = workspace.changes(checkpoint, None)?.into_iter();
    let first = since.find(|change| change.path.starts_with(path));
    Ok(first.is_some_and(|change| change.before.is_some()))
}

fn goal(workspace: &Workspace, checkpoint: &Checkpoint, args: &RewindArgs) -> anyhow::Result<Goal> {
    let named = args.session.as_deref().map(|text| workspace.resolve_session(text)).transpose()?;
    let session = named.map(|session| session.id).or(checkpoint.session);
    Ok(match session.filter(|_| !args.exact) {
        Some(session) => Goal::Selective { session, checkpoint: checkpoint.id },
        None => Goal::Exact { checkpoint: checkpoint.id },
    })
}
