//! `retake du`: what the store takes on disk.

use std::io::Write;

use retake_engine::Workspace;
use retake_engine::maintenance::Usage;
use serde::Serialize;

use crate::failure::Result;
use crate::output::json::{self, Bytes};
use crate::output::messages;
use crate::output::size::human;
use crate::output::ui::{BOLD, Format, Ui};
use crate::workspace::context::CommandContext;
use crate::workspace::interrupted_rewind;

/// Show how much space the workspace's checkpoints take
#[derive(clap::Args, Debug)]
pub struct DuArgs {}

#[derive(Serialize)]
struct DuDocument {
    version: u32,
    store: Bytes,
    bytes: u64,
    parts: Parts,
    budget: u64,
    checkpoints: u64,
    objects: u64,
    packs: u64,
}

#[derive(Serialize)]
struct Parts {
    packs: u64,
    database: u64,
    index: u64,
    other: u64,
}

impl Parts {
    fn of(usage: &Usage) -> Self {
        let known = usage.pack_bytes + usage.database_bytes + usage.index_bytes;
        Self {
            packs: usage.pack_bytes,
            database: usage.database_bytes,
            index: usage.index_bytes,
            // Another process may be writing meanwhile.
            other: usage.store_bytes.saturating_sub(known),
        }
    }
}

pub fn run(ui: &mut Ui, here: CommandContext) -> Result<()> {
    let workspace = Workspace::open(here.environment)?;
    interrupted_rewind::mention(ui, &workspace)?;
    let usage = workspace.maintenance().usage()?;
    let parts = Parts::of(&usage);
    if ui.format == Format::Json {
        let store = Bytes::new(workspace.store_dir().as_os_str().as_encoded_bytes());
        return Ok(ui.json(&DuDocument {
            version: json::VERSION,
            store,
            bytes: usage.store_bytes,
            parts,
            budget: usage.budget,
            checkpoints: usage.checkpoints,
            objects: usage.objects,
            packs: usage.packs,
        })?);
    }
    let packs = messages::count(usage.packs, "pack", "packs");
    let objects = messages::count(usage.objects, "object", "objects");
    let bold = ui.paint.with(BOLD);
    let share = percent(usage.store_bytes, usage.budget);
    writeln!(ui.out, "Store        {}", workspace.store_dir().display())?;
    writeln!(
        ui.out,
        "Size         {bold}{}{bold:#}, {share} of the budget of {}",
        human(usage.store_bytes),
        human(usage.budget)
    )?;
    writeln!(ui.out, "  content    {} in {packs}, {objects}", human(parts.packs))?;
    writeln!(ui.out, "  database   {}", human(parts.database))?;
    writeln!(ui.out, "  index      {}", human(parts.index))?;
    writeln!(ui.out, "Checkpoints  {}", usage.checkpoints)?;
    Ok(())
}

fn percent(part: u64, whole: u64) -> String {
    let tenths = u128::from(part) * 1000 / u128::from(whole.max(1));
    format!("{}.{} %", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_one_decimal_and_survive_a_zero_budget() {
        assert_eq!([percent(1, 3), percent(4, 4), percent(0, 0)], ["33.3 %", "100.0 %", "0.0 %"]);
    }
}
