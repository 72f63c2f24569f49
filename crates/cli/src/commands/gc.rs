//! `retake gc`: what is old goes, what stays takes less room.

use std::io::Write;

use retake_agent::ids;
use retake_engine::Workspace;
use retake_engine::maintenance::{Collectable, Collected};
use serde::Serialize;

use super::CommandError;
use crate::failure::Result;
use crate::output::json;
use crate::output::messages;
use crate::output::size::human;
use crate::output::ui::{Format, Ui};
use crate::workspace::context::CommandContext;
use crate::workspace::interrupted_rewind;

/// Remove old checkpoints and free the space of what nothing needs
///
/// Unlabelled checkpoints older than `store.keep_days` (30 unless set) go, but never the newest one, nor what an interrupted rewind or
/// a running command needs. What stays is compressed better. No file of yours is touched.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  retake gc --dry-run\n  retake gc")]
pub struct GcArgs {
    /// Say what would go, and remove nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Serialize)]
struct GcDocument {
    version: u32,
    dry_run: bool,
    removed: Removed,
    bytes: Option<Sizes>,
}

#[derive(Serialize)]
struct Removed {
    checkpoints: u64,
    operations: Option<u64>,
    objects: u64,
    /// Known beforehand only: what goes, without what better compression gains.
    bytes: Option<u64>,
}

#[derive(Serialize)]
struct Sizes {
    before: u64,
    after: u64,
}

pub fn run(ui: &mut Ui, here: CommandContext, args: &GcArgs) -> Result<()> {
    let mut workspace = Workspace::open(here.environment)?;
    let now = ids::now();
    if args.dry_run {
        let found = {
            let progress = ui.progress();
            workspace.maintenance_mut().gc_preview(now, &progress)?
        };
        return preview(ui, &found);
    }
    interrupted_rewind::first(ui, &mut workspace)?;
    let collected = {
        let progress = ui.progress();
        workspace.maintenance_mut().gc(now, &progress).map_err(|source| CommandError::CleanUpUnfinished { source })?
    };
    if collected.stopped {
        return Err(CommandError::Stopped.into());
    }
    report(ui, &collected)
}

fn preview(ui: &mut Ui, found: &Collectable) -> Result<()> {
    if ui.format == Format::Json {
        let Collectable { checkpoints, objects, bytes } = *found;
        let removed = Removed { checkpoints, operations: None, objects, bytes: Some(bytes) };
        return Ok(ui.json(&GcDocument { version: json::VERSION, dry_run: true, removed, bytes: None })?);
    }
    let gone = gone(found.checkpoints, found.objects);
    writeln!(ui.out, "Would remove {gone}: {}", human(found.bytes))?;
    writeln!(ui.talk()?, "Better compression may gain more; nothing was changed")?;
    Ok(())
}

fn report(ui: &mut Ui, collected: &Collected) -> Result<()> {
    let Collected { checkpoints, operations, objects, bytes_before, bytes_after, .. } = *collected;
    if ui.format == Format::Json {
        let removed = Removed { checkpoints, operations: Some(operations), objects, bytes: None };
        let bytes = Some(Sizes { before: bytes_before, after: bytes_after });
        return Ok(ui.json(&GcDocument { version: json::VERSION, dry_run: false, removed, bytes })?);
    }
    writeln!(ui.out, "Removed {}", gone(checkpoints, objects))?;
    if operations > 0 {
        let operations = messages::count(operations, "operation", "operations");
        writeln!(ui.out, "{operations} can no longer be undone: the points before them were too old")?;
    }
    let gained = match bytes_before.checked_sub(bytes_after) {
        Some(gained @ 1..) => format!("{} gained", human(gained)),
        _ => "nothing to gain".to_owned(),
    };
    writeln!(ui.out, "The store takes {}: {gained}", human(bytes_after))?;
    Ok(())
}

fn gone(checkpoints: u64, objects: u64) -> String {
    let checkpoints = messages::count(checkpoints, "checkpoint", "checkpoints");
    format!("{checkpoints} and {}", messages::count(objects, "object that nothing needs", "objects that nothing needs"))
}
