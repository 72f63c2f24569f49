//! `retake label`: a name for a point.

use std::io::Write;

use retake_engine::Workspace;
use serde::Serialize;

use crate::failure::Result;
use crate::output::json;
use crate::output::quote;
use crate::output::ui::{Format, Ui};
use crate::workspace::context::CommandContext;
use crate::workspace::interrupted_rewind;
use crate::workspace::point::{self, SessionArgs};

/// Give a checkpoint a label, or take it away
///
/// A labelled checkpoint can be named by its label and is never removed to save space. A label names one checkpoint: one that is in use
/// is refused.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  retake label 3fa2 \"all tests pass\"\n  retake label 3fa2 --remove")]
pub struct LabelArgs {
    /// Prompt or checkpoint: a unique beginning of its id, its present label, or the number of a prompt
    point: String,
    /// New label
    #[arg(required_unless_present = "remove", conflicts_with = "remove")]
    text: Option<String>,
    /// Take the label away
    #[arg(long)]
    remove: bool,
    #[command(flatten)]
    session: SessionArgs,
}

#[derive(Serialize)]
struct LabelDocument<'a> {
    version: u32,
    checkpoint: Labelled<'a>,
}

#[derive(Serialize)]
struct Labelled<'a> {
    id: String,
    label: Option<&'a str>,
}

pub fn run(ui: &mut Ui, here: CommandContext, args: &LabelArgs) -> Result<()> {
    let mut workspace = Workspace::open(here.environment)?;
    interrupted_rewind::first(ui, &mut workspace)?;
    let session = args.session.resolve(&workspace)?;
    let checkpoint = point::checkpoint(&workspace, &args.point, session)?;
    let label = args.text.as_deref();
    workspace.checkpoints_mut().set_label(checkpoint.id, label)?;
    if ui.format == Format::Json {
        let checkpoint = Labelled { id: checkpoint.id.to_string(), label };
        return Ok(ui.json(&LabelDocument { version: json::VERSION, checkpoint })?);
    }
    let prompt =
        workspace.sessions().prompts_at()?.get(&checkpoint.id).map(|at| format!("Prompt {}", at.prompt.short()));
    let point = prompt.unwrap_or_else(|| format!("Checkpoint {}", checkpoint.id.short()));
    match label {
        Some(label) => writeln!(ui.talk()?, "{point} is now \"{}\"", quote::one_line(label))?,
        None => writeln!(ui.talk()?, "{point} has no label now")?,
    }
    Ok(())
}
