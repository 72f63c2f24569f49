//! `retake purge`: a secret was captured; every stored version of it goes for good.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};

use retake_agent::listing;
use retake_engine::maintenance::Purged;
use retake_engine::{Workspace, WorkspacePath};
use serde::Serialize;

use super::CommandError;
use crate::failure::Result;
use crate::output::json::{self, Bytes};
use crate::output::messages;
use crate::output::size::human;
use crate::output::ui::{Format, Ui};
use crate::workspace::context::CommandContext;
use crate::workspace::interrupted_rewind;
use crate::workspace::paths::{self, PathInWorkspace};

/// Remove every stored version of a file or folder, for good
///
/// For a secret that was captured by mistake: its bytes are removed from all checkpoints, labelled ones too, and from the store's
/// files. This cannot be undone. The file on disk is not touched, and no rewind will restore or delete it.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  retake purge config/secrets.yml --yes && echo config/secrets.yml >> .retakeignore")]
pub struct PurgeArgs {
    /// Files or folders; they need not exist any more
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<OsString>,
    /// Do not ask
    #[arg(long, short = 'y')]
    yes: bool,
}

#[derive(Serialize)]
struct PurgeDocument {
    version: u32,
    paths: Vec<Bytes>,
    checkpoints: u64,
    contents: u64,
    still_stored: u64,
    held_by: Vec<Bytes>,
    on_disk: Vec<Bytes>,
    bytes: Sizes,
}

#[derive(Serialize)]
struct Sizes {
    before: u64,
    after: u64,
}

pub fn run(ui: &mut Ui, here: CommandContext, args: &PurgeArgs) -> Result<()> {
    let mut workspace = Workspace::open(here.environment)?;
    let mut wanted = Vec::with_capacity(args.paths.len());
    for typed in &args.paths {
        let base = paths::base(workspace.root(), &here.current_dir);
        match paths::resolve(workspace.root(), base, typed)? {
            PathInWorkspace::Root => return Err(CommandError::PurgeAll.into()),
            PathInWorkspace::Below(path) => wanted.push(path),
        }
    }
    if !args.yes && !confirmed(ui, &wanted)? {
        return Err(CommandError::NotConfirmed.into());
    }
    interrupted_rewind::first(ui, &mut workspace)?;
    let purged = {
        let progress = ui.progress();
        workspace.maintenance_mut().purge(&wanted, &progress)?
    };
    if purged.stopped {
        return Err(CommandError::PurgeStopped.into());
    }
    match ui.format {
        Format::Json => ui.json(&document(&wanted, &purged))?,
        Format::Text => tell(ui, &wanted, &purged)?,
    }
    warn(ui, &workspace, &purged)
}

/// Asks on a terminal; elsewhere nobody could answer.
fn confirmed(ui: &mut Ui, wanted: &[WorkspacePath]) -> io::Result<bool> {
    if ui.format == Format::Json || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Ok(false);
    }
    let talk = ui.talk()?;
    for path in wanted {
        writeln!(talk, "  {}", path.display())?;
    }
    write!(talk, "Remove every stored version for good? This cannot be undone. [y/N] ")?;
    talk.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

fn tell(ui: &mut Ui, wanted: &[WorkspacePath], purged: &Purged) -> io::Result<()> {
    let what = match wanted {
        [path] => format!("`{}`", path.display()),
        _ => messages::count(wanted.len() as u64, "path", "paths"),
    };
    if purged.checkpoints == 0 {
        return writeln!(ui.out, "No checkpoint holds {what}");
    }
    let contents = messages::count(purged.contents, "content", "contents");
    let checkpoints = messages::count(purged.checkpoints, "checkpoint", "checkpoints");
    writeln!(ui.out, "Purged {what}: {contents} from {checkpoints}")?;
    writeln!(ui.out, "The store takes {}", human(purged.bytes_after))
}

fn warn(ui: &mut Ui, workspace: &Workspace, purged: &Purged) -> Result<()> {
    if !listing::conversations(workspace)?.is_empty() {
        ui.warn(
            "conversations are not searched: what was said or read in them stays; `retake sessions rm` deletes one",
        )?;
    }
    if purged.still_stored > 0 {
        let contents = messages::count(purged.still_stored, "content is", "contents are");
        ui.warn(&format!(
            "{contents} still stored, because other paths hold the same; purge these too if they should go"
        ))?;
        for path in &purged.holders {
            writeln!(ui.talk()?, "  {}", path.display())?;
        }
    }
    if !purged.on_disk.is_empty() {
        ui.warn("the next checkpoint captures these again, for they are still on disk")?;
        for path in &purged.on_disk {
            writeln!(ui.talk()?, "  {}", path.display())?;
        }
        writeln!(
            ui.talk()?,
            "Add them to `.retakeignore`; names that `capture.include` lists, such as `.env`, have to be taken from there too"
        )?;
    }
    Ok(())
}

fn document(wanted: &[WorkspacePath], purged: &Purged) -> PurgeDocument {
    let list = |paths: &[WorkspacePath]| paths.iter().map(|path| Bytes::new(path.as_bytes())).collect();
    PurgeDocument {
        version: json::VERSION,
        paths: list(wanted),
        checkpoints: purged.checkpoints,
        contents: purged.contents,
        still_stored: purged.still_stored,
        held_by: list(&purged.holders),
        on_disk: list(&purged.on_disk),
        bytes: Sizes { before: purged.bytes_before, after: purged.bytes_after },
    }
}
