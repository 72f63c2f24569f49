//! `retake show`: a point, or what a path was at it.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;

use retake_agent::{ids, listing};
use retake_engine::checkpoint::Checkpoint;
use retake_engine::id::SessionId;
use retake_engine::snapshot::{Node, NodeKind};
use retake_engine::view::{ContentError, Side};
use retake_engine::{Workspace, WorkspacePath};
use serde::Serialize;

use super::CommandError;
use crate::failure::Result;
use crate::output::gaps::{self, Detail};
use crate::output::json::{self, Bytes, CheckpointDocument, NodeFacts};
use crate::output::quote;
use crate::output::time;
use crate::output::ui::{BOLD, Format, Ui};
use crate::workspace::context::CommandContext;
use crate::workspace::interrupted_rewind;
use crate::workspace::paths::{self, PathInWorkspace};
use crate::workspace::point::{self, SessionArgs};

/// Show a checkpoint, or print a file as it was at it
///
/// With a path: a file's content exactly as it was, a directory's entries one a line, or a symlink's target. The path is relative to
/// the workspace; one that starts with `./` or `../` is relative to the current directory.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  retake show 3fa2
  retake show 3fa2:src/main.rs > main.rs
  retake show \"before the refactor:\"      entries of the workspace at that point")]
pub struct ShowArgs {
    /// Prompt or checkpoint (a unique beginning of its id, its label, or the number of a prompt), and after a colon a path in it
    #[arg(value_name = "POINT[:PATH]")]
    what: OsString,
    #[command(flatten)]
    session: SessionArgs,
}

#[derive(Serialize)]
struct ListDocument {
    version: u32,
    checkpoint: String,
    path: Bytes,
    entries: Vec<ListedNode>,
}

#[derive(Serialize)]
struct ListedNode {
    name: Bytes,
    #[serde(flatten)]
    facts: NodeFacts,
}

pub fn run(ui: &mut Ui, here: CommandContext, args: &ShowArgs) -> Result<()> {
    let workspace = Workspace::open(here.environment)?;
    interrupted_rewind::mention(ui, &workspace)?;
    let session = args.session.resolve(&workspace)?;
    let (checkpoint, path) = resolve(&workspace, args.what.as_bytes(), session)?;
    let Some(path) = path else {
        return show_point(ui, &workspace, &checkpoint);
    };
    let base = paths::base(workspace.root(), &here.current_dir);
    let base = if path.starts_with(b"./") || path.starts_with(b"../") { base } else { workspace.root() };
    // `POINT:` is the directory one is in.
    let path = if path.is_empty() { b"." } else { path };
    let place = paths::resolve(workspace.root(), base, OsStr::from_bytes(path))?;
    let side = Side::Stored(checkpoint.snapshot);
    let PathInWorkspace::Below(path) = place else {
        return list(ui, &workspace, &checkpoint, &PathInWorkspace::Root);
    };
    let node = workspace.entry(&side, &path)?.ok_or_else(|| no_such_path(&workspace, &checkpoint, &path))?;
    match node.kind {
        NodeKind::Directory => list(ui, &workspace, &checkpoint, &PathInWorkspace::Below(path)),
        NodeKind::File | NodeKind::Symlink if ui.format == Format::Json => Err(CommandError::JsonOfContent.into()),
        NodeKind::File | NodeKind::Symlink => {
            workspace.content(&side, &path, &node, &mut ui.out).map_err(|error| match error {
                ContentError::Write(error) => error.into(),
                other => other.into(),
            })
        }
    }
}

/// Splits `POINT[:PATH]`. Labels may hold colons, so the whole is tried first, then each colon from the left.
fn resolve<'a>(
    workspace: &Workspace,
    what: &'a [u8],
    session: Option<SessionId>,
) -> Result<(Checkpoint, Option<&'a [u8]>)> {
    let find = |text: &str| point::checkpoint(workspace, text, session);
    let text = |bytes: &'a [u8]| str::from_utf8(bytes).map_err(|_| CommandError::PointNotText);
    let colons: Vec<usize> = (0..what.len()).filter(|&at| what[at] == b':').collect();
    if colons.is_empty() {
        return Ok((find(text(what)?)?, None));
    }
    if let Ok(whole) = text(what) {
        match find(whole) {
            Err(error) if point::is_unknown(&error) => {}
            other => return Ok((other?, None)),
        }
    }
    let mut unknown = None;
    for at in colons {
        match find(text(&what[..at])?) {
            Err(error) if point::is_unknown(&error) => unknown = unknown.or(Some(error)),
            other => return Ok((other?, Some(&what[at + 1..]))),
        }
    }
    Err(unknown.expect("there was a colon, so the first try is kept"))
}

fn show_point(ui: &mut Ui, workspace: &Workspace, checkpoint: &Checkpoint) -> Result<()> {
    let gaps = workspace.checkpoints().gaps(checkpoint)?;
    if ui.format == Format::Json {
        return Ok(ui.json(&CheckpointDocument::new(checkpoint, &gaps))?);
    }
    ui.start_pager()?;
    let bold = ui.paint.with(BOLD);
    writeln!(ui.out, "{bold}Checkpoint {}{bold:#}", checkpoint.id)?;
    if let Some(label) = &checkpoint.label {
        writeln!(ui.out, "Label:     {}", quote::one_line(label))?;
    }
    writeln!(ui.out, "Made:      {} ({})", time::local(checkpoint.at), time::age(checkpoint.at, ids::now()))?;
    if let Some(note) = &checkpoint.note {
        writeln!(ui.out, "Made for:  {}{}", listing::when(checkpoint), quote::one_line(note))?;
    }
    if let Some(session) = &checkpoint.session {
        writeln!(ui.out, "Session:   {session}")?;
    }
    writeln!(ui.out, "Snapshot:  {}", checkpoint.snapshot)?;
    if let Some(branch) = &checkpoint.git.branch {
        writeln!(ui.out, "Branch:    {}", quote::one_line(branch))?;
    }
    if let Some(head) = &checkpoint.git.head {
        writeln!(ui.out, "Commit:    {}", quote::one_line(head))?;
    }
    writeln!(ui.out, "Changed:   {}", super::counts(&checkpoint.changed))?;
    if !gaps.is_empty() {
        writeln!(ui.out, "Gaps:      {}", gaps.len())?;
        for line in gaps::lines(&gaps, Detail::All) {
            writeln!(ui.out, "{line}")?;
        }
    }
    Ok(())
}

fn list(ui: &mut Ui, workspace: &Workspace, checkpoint: &Checkpoint, dir: &PathInWorkspace) -> Result<()> {
    let path = match dir {
        PathInWorkspace::Root => None,
        PathInWorkspace::Below(path) => Some(path),
    };
    let entries = workspace.list(&Side::Stored(checkpoint.snapshot), path)?;
    if ui.format == Format::Json {
        let listed =
            |(name, node): &(Vec<u8>, Node)| ListedNode { name: Bytes::new(name), facts: NodeFacts::new(node) };
        return Ok(ui.json(&ListDocument {
            version: json::VERSION,
            checkpoint: checkpoint.id.to_string(),
            path: Bytes::new(path.map_or(&[], WorkspacePath::as_bytes)),
            entries: entries.iter().map(listed).collect(),
        })?);
    }
    for (name, node) in entries {
        let slash = if node.kind == NodeKind::Directory { "/" } else { "" };
        writeln!(ui.out, "{}{slash}", quote::name(&name))?;
    }
    Ok(())
}

/// Points to the nearest directory above `path` that is there.
fn no_such_path(workspace: &Workspace, checkpoint: &Checkpoint, path: &WorkspacePath) -> CommandError {
    let side = Side::Stored(checkpoint.snapshot);
    let is_directory = |dir: &WorkspacePath| {
        workspace.entry(&side, dir).is_ok_and(|node| node.is_some_and(|node| node.kind == NodeKind::Directory))
    };
    let above = std::iter::successors(path.parent(), WorkspacePath::parent).find(is_directory);
    let point = checkpoint.id.short();
    let dir = above.map_or_else(String::new, |dir| dir.display().to_string());
    CommandError::NoSuchPath { dir: format!("{point}:{dir}"), point, path: path.display().to_string() }
}
