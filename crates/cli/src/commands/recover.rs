//! `retake recover`: what a crash or a kill interrupted is finished, or taken back.

use std::io::{self, IsTerminal, Write};

use retake_agent::ids;
use retake_engine::operation::Operation;
use retake_engine::rewind::{NewRewind, Recovered, RecoveryChoice, RewindError};
use retake_engine::{OpenError, Workspace};
use serde::Serialize;

use crate::failure::Result;
use crate::output::json;
use crate::output::quote;
use crate::output::ui::{Format, Ui};
use crate::workspace::context::CommandContext;
use crate::workspace::interrupted_rewind;

/// Finish or take back a rewind that was interrupted
///
/// Every command that writes does this by itself; it needs your decision only if files were changed since the interruption. Those
/// files stay as they are either way.
#[derive(clap::Args, Debug)]
pub struct RecoverArgs {
    /// If files were changed since: leave those and finish the rest
    #[arg(long)]
    finish: bool,
    /// If files were changed since: leave those and take the rest back
    #[arg(long, conflicts_with = "finish")]
    go_back: bool,
}

#[derive(Serialize)]
struct RecoverDocument {
    version: u32,
    /// `nothing`, `finished` or `taken_back`.
    outcome: &'static str,
    operation: Option<String>,
    what: Option<String>,
}

pub fn run(ui: &mut Ui, here: CommandContext, args: &RecoverArgs) -> Result<()> {
    let recovered = match Workspace::open(here.environment) {
        Ok(mut workspace) => {
            let recovered = recover(ui, &mut workspace, args)?;
            interrupted_rewind::tell_displaced(ui, &workspace, &recovered)?;
            recovered
        }
        Err(OpenError::NotAWorkspace { .. }) => Recovered::Nothing,
        Err(error) => return Err(error.into()),
    };
    if ui.format == Format::Json {
        let (outcome, operation) = match &recovered {
            Recovered::Nothing => ("nothing", None),
            Recovered::Finished(operation) => ("finished", Some(operation)),
            Recovered::TakenBack(operation) => ("taken_back", Some(operation)),
        };
        return Ok(ui.json(&RecoverDocument {
            version: json::VERSION,
            outcome,
            operation: operation.map(|operation| operation.id.to_string()),
            what: operation.map(|Operation { kind, what, .. }| format!("{} {what}", kind.name())),
        })?);
    }
    let text = interrupted_rewind::describe(&recovered).unwrap_or_else(|| "Nothing was interrupted".to_owned());
    writeln!(ui.out, "{text}")?;
    Ok(())
}

fn recover(ui: &mut Ui, workspace: &mut Workspace, args: &RecoverArgs) -> Result<Recovered> {
    let choice = match (args.finish, args.go_back) {
        (true, _) => RecoveryChoice::Finish,
        (_, true) => RecoveryChoice::GoBack,
        (false, false) => RecoveryChoice::Ask,
    };
    match attempt(workspace, choice) {
        Err(RewindError::ChangedSinceCrash { operation, paths })
            if ui.format == Format::Text && io::stdin().is_terminal() =>
        {
            writeln!(ui.talk()?, "These files were changed since; they stay as they are:")?;
            for path in &paths {
                writeln!(ui.talk()?, "  {}", quote::name(path.as_bytes()))?;
            }
            match ui.question("And the rest: finish, go back, or stop? [stop]")?.trim() {
                "" => Err(RewindError::ChangedSinceCrash { operation, paths }.into()),
                answer if "finish".starts_with(answer) => Ok(attempt(workspace, RecoveryChoice::Finish)?),
                answer if "go back".starts_with(answer) => Ok(attempt(workspace, RecoveryChoice::GoBack)?),
                _ => Err(RewindError::ChangedSinceCrash { operation, paths }.into()),
            }
        }
        other => Ok(other?),
    }
}

fn attempt(workspace: &mut Workspace, choice: RecoveryChoice) -> Result<Recovered, RewindError> {
    let NewRewind { after, at, .. } = ids::rewind();
    workspace.rewinds_mut().recover(choice, after, at)
}
