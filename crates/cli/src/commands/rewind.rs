//! `retake rewind`: the files as they were at a point.

use std::ffi::OsString;
use std::fs;

use retake_engine::checkpoint::Checkpoint;
use retake_engine::id::SessionId;
use retake_engine::operation::OperationKind;
use retake_engine::rewind::{Files, Goal, RewindRequest};
use retake_engine::session::{Discard, Point, Scope};
use retake_engine::view::Side;
use retake_engine::{StoreError, Workspace, WorkspacePath};

use super::CommandError;
use crate::agent::session;
use crate::failure::Result;
use crate::output::ui::Ui;
use crate::rewind::{self, RewindOptions};
use crate::workspace::context::CommandContext;
use crate::workspace::interrupted_rewind;
use crate::workspace::paths::{self, PathInWorkspace};

/// Go back: files to how they were at a point, the conversation to before a prompt, or both
///
/// At a prompt, which `retake log --session SESSION` lists, files and conversation go back to before it, and what you had said waits
/// to be said again. There and at a point of `retake exec` only what its session changed since goes back, and what anybody else changed is left alone or, in the
/// same file, is a conflict; at any other point, and with `--exact`, the whole workspace becomes as it was, and what you changed yourself
/// is replaced only if you agree: with `--yes`, with `--on-conflict`, or on a terminal. There the plan is shown first. What is there now is saved before anything is touched, so that `retake undo` takes the rewind back.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  retake rewind 3fa2 --dry-run
  retake rewind 3                  before the third prompt, as numbered by `retake log`
  retake rewind \"before the refactor\"
  retake rewind 3fa2 --path src/lib.rs --path tests
  retake rewind 3fa2 --on-conflict keep --yes")]
pub struct RewindArgs {
    /// Prompt or checkpoint: a unique beginning of its id, its label, or the number of a prompt
    point: String,
    /// Make the workspace exactly as it was, whoever changed it since
    #[arg(long, conflicts_with = "conversation")]
    exact: bool,
    /// Only this file or directory, relative to the current directory; can be given more than once
    #[arg(long = "path", value_name = "PATH", conflicts_with_all = ["conversation", "both"])]
    paths: Vec<OsString>,
    /// Only files; the conversation goes on, and the model is told which files went back
    #[arg(long, group = "scope")]
    code: bool,
    /// Only the conversation; files and side effects stay, and the model is told which files differ
    #[arg(long, group = "scope")]
    conversation: bool,
    /// Files and conversation, as one operation; the default for a point of a conversation
    #[arg(long, group = "scope")]
    both: bool,
    /// Remove what leaves the conversation at once, so that it can never come back
    #[arg(long, conflicts_with_all = ["code", "paths"])]
    discard: bool,
    /// The session that the point belongs to, or whose changes since then are taken back
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    #[command(flatten)]
    options: RewindOptions,
}

pub fn run(ui: &mut Ui, here: &CommandContext, args: &RewindArgs) -> Result<()> {
    let mut workspace = Workspace::open(here.environment.clone())?;
    let named = args.session.as_deref().map(|text| session::named(&workspace, text)).transpose()?;
    let named = named.map(|session| session.id);
    let point = workspace.sessions().resolve_point(&args.point, named)?;
    let (goal, session) = goal(&point, named, args)?;
    let mut request = RewindRequest::new(goal);
    let base = paths::base(workspace.root(), &here.current_dir);
    for typed in &args.paths {
        match paths::resolve(workspace.root(), base, typed)? {
            // Everything.
            PathInWorkspace::Root => {
                request.paths.clear();
                break;
            }
            PathInWorkspace::Below(path) => request.paths.push(path),
        }
    }
    if let Some(checkpoint) = point.checkpoint() {
        for path in &request.paths {
            if !is_anywhere(&workspace, checkpoint, path)? {
                let (path, point) = (path.display().to_string(), checkpoint.id.short());
                return Err(CommandError::PathNowhere { path, point }.into());
            }
        }
    }
    interrupted_rewind::before_going_back(ui, &mut workspace, &args.options)?;
    let place = rewind::ChangeContext { here, workspace: &mut workspace, session };
    rewind::run(ui, place, OperationKind::Rewind, request, &args.options)
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
    let mut since = workspace.changes().between(checkpoint, None)?.into_iter();
    let first = since.find(|change| change.path.starts_with(path));
    Ok(first.is_some_and(|change| change.before.is_some()))
}

/// Where to go, and the session that it is about.
fn goal(point: &Point, named: Option<SessionId>, args: &RewindArgs) -> Result<(Goal, Option<SessionId>)> {
    match point {
        Point::Entry { session, entry, .. } => {
            let scope = match (args.code, args.conversation) {
                (true, _) => Scope::Code,
                (_, true) => Scope::Conversation,
                // Files of one path are no reason to forget what was said.
                _ if !args.paths.is_empty() => Scope::Code,
                _ => Scope::Both,
            };
            let files = if args.exact { Files::Exact } else { Files::Selective };
            let discard = if args.discard { Discard::Now } else { Discard::No };
            Ok((Goal::Entry { session: *session, entry: entry.id, scope, files, discard }, Some(*session)))
        }
        Point::Checkpoint(checkpoint) => {
            if args.conversation || args.both || args.discard {
                return Err(CommandError::NoConversation { point: checkpoint.id.short() }.into());
            }
            let session = named.or(checkpoint.session);
            let goal = match session.filter(|_| !args.exact) {
                Some(session) => Goal::Selective { session, checkpoint: checkpoint.id },
                None => Goal::Exact { checkpoint: checkpoint.id, session },
            };
            Ok((goal, session))
        }
    }
}
