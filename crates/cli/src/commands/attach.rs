//! `retake attach`: another terminal on a session that is open.

use std::process::ExitCode;

use retake_agent::listing;
use retake_engine::Workspace;

use super::CommandError;
use crate::agent::AgentError;
use crate::agent::model::ModelArgs;
use crate::agent::session;
use crate::agent::terminal::{self, Start};
use crate::failure::Result;
use crate::output::ui::Ui;
use crate::workspace::context::CommandContext;

/// Join a session that is open in another terminal: both see, and do, the same
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  retake attach\n  retake attach 3fa2")]
pub struct AttachArgs {
    /// Session: a unique beginning of its id [default: the newest that is open]
    session: Option<String>,
}

pub fn run(ui: &mut Ui, here: &CommandContext, args: &AttachArgs) -> Result<ExitCode> {
    if !ui.is_interactive() {
        return Err(CommandError::NoTerminal.into());
    }
    let workspace = Workspace::open(here.environment.clone())?;
    let found = match &args.session {
        Some(text) => Some(session::named(&workspace, text)?),
        None => {
            listing::conversations(&workspace)?.into_iter().find(|session| workspace.sessions().is_live(session.id))
        }
    };
    let found = found.filter(|session| workspace.sessions().is_live(session.id)).ok_or(AgentError::NotOpen)?;
    drop(workspace);
    terminal::run(ui, here, &ModelArgs::default(), Start::Elsewhere(found.id))
}
