//! `retake checkpoint`: a point to go back to, now.

use std::io::Write;

use retake_agent::{ids, ignore_warnings};
use retake_engine::changes::Coverage;
use retake_engine::checkpoint::{Checkpoint, NewCheckpoint, check_label};
use retake_engine::snapshot::Gap;
use retake_engine::{Durability, Workspace};

use super::CommandError;
use crate::failure::Result;
use crate::output::gaps::{self, Detail};
use crate::output::json::CheckpointDocument;
use crate::output::ui::{Format, Ui};
use crate::workspace::context::CommandContext;
use crate::workspace::interrupted_rewind;

/// Make a checkpoint of the workspace as it is now
///
/// Captures every file, symlink and directory that is not ignored, with content and permissions. What could not be captured is said.
/// Ignore files are always captured. Files that a rule of an agent or a command hides stay captured until `--apply-ignores`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  retake checkpoint\n  retake checkpoint -m \"before the refactor\"")]
pub struct CheckpointArgs {
    /// Name the checkpoint; a labelled one is kept until the label is removed, and no other can have the same label
    #[arg(short = 'm', long, value_name = "LABEL")]
    label: Option<String>,
    /// Apply ignore rules that an agent or a command changed: files that they hide are not captured any more
    #[arg(long)]
    apply_ignores: bool,
}

pub fn run(ui: &mut Ui, here: CommandContext, args: &CheckpointArgs) -> Result<()> {
    // Before anything is made: wrong usage leaves no store behind.
    args.label.as_deref().map_or(Ok(()), check_label)?;
    let at = ids::now();
    let mut workspace = Workspace::open_or_create(here.environment)?;
    interrupted_rewind::first(ui, &mut workspace)?;
    let new = NewCheckpoint { id: ids::checkpoint().id, at, label: args.label.clone() };
    let made = {
        let progress = ui.progress();
        match args.apply_ignores {
            true => workspace.checkpoints_mut().take_applying_rules(new, Durability::Synced, &progress)?,
            false => workspace.checkpoints_mut().take(new, Durability::Synced, &progress)?,
        }
    };
    let gaps = workspace.checkpoints().gaps(&made);
    let gaps = gaps.map_err(|source| CommandError::GapsUnread { point: made.id.short(), source })?;
    let coverage = workspace.changes().coverage(&made)?;
    match ui.format {
        Format::Json => ui.json(&CheckpointDocument::new(&made, &gaps).with(&coverage))?,
        Format::Text => {
            writeln!(ui.out, "Checkpoint {}: {}", super::title(ui.paint, &made), super::counts(&made.changed))?
        }
    }
    warn_of_rules(ui, &coverage)?;
    warn_of_gaps(ui, &made, &gaps)
}

/// Tells which files changed ignore rules leave out.
fn warn_of_rules(ui: &mut Ui, coverage: &Coverage) -> Result<()> {
    let mut warnings = ignore_warnings::warnings(coverage);
    if coverage.newly_held == 0 {
        warnings.extend(ignore_warnings::held(coverage));
    }
    warnings.iter().try_for_each(|warning| Ok(ui.warn(warning)?))
}

fn warn_of_gaps(ui: &mut Ui, made: &Checkpoint, gaps: &[Gap]) -> Result<()> {
    if gaps.is_empty() {
        return Ok(());
    }
    let count = gaps::count(gaps.len() as u64);
    ui.warn(&format!("this checkpoint has {count}; `retake show {}` lists all", made.id.short()))?;
    for line in gaps::lines(gaps, Detail::Few) {
        writeln!(ui.talk()?, "{line}")?;
    }
    Ok(())
}
