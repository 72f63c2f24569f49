//! `retake relink`: the workspace was moved; its history follows.

use std::io::Write;
use std::path::PathBuf;

use retake_engine::Workspace;
use serde::Serialize;

use crate::failure::Result;
use crate::output::json::{self, Bytes};
use crate::output::messages;
use crate::output::ui::{Format, Ui};
use crate::workspace::context::CommandContext;
use crate::workspace::paths;

/// Keep the history of a workspace that was moved here
///
/// Run it in the new place. The checkpoints made in the old place become this workspace's; no file of yours is touched.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  mv ~/app ~/work/app && cd ~/work/app && retake relink ~/app")]
pub struct RelinkArgs {
    /// Directory where the workspace was
    from: PathBuf,
}

#[derive(Serialize)]
struct RelinkDocument {
    version: u32,
    from: Bytes,
    root: Bytes,
    checkpoints: u64,
}

pub fn run(ui: &mut Ui, here: CommandContext, args: &RelinkArgs) -> Result<()> {
    let typed = paths::normal(&here.current_dir.join(&args.from));
    let from = paths::canonical_as_far_as_it_exists(&typed);
    let workspace = Workspace::relink(here.environment, &from)?;
    let checkpoints = workspace.checkpoints().all()?.len() as u64;
    if ui.format == Format::Json {
        return Ok(ui.json(&RelinkDocument {
            version: json::VERSION,
            from: Bytes::new(from.as_os_str().as_encoded_bytes()),
            root: Bytes::new(workspace.root().as_os_str().as_encoded_bytes()),
            checkpoints,
        })?);
    }
    let root = workspace.root().display();
    let made = messages::count(checkpoints, "checkpoint", "checkpoints");
    writeln!(ui.talk()?, "`{root}` now has the {made} made in `{}`", from.display())?;
    Ok(())
}
