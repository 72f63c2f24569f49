//! `retake acp -- COMMAND`: rewind for another agent.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;

use retake_acp::proxy::{self, Patience, ProxyEnd, ProxySetup};
use retake_engine::Environment;

use super::PARTING;
use crate::agent;
use crate::args::GlobalArgs;
use crate::commands::run::StopSignals;
use crate::failure::{Failure, Result};
use crate::workspace::context::CommandContext;

/// Runs `command` as the inner agent until it or the editor hangs up. Its exit code is ours.
pub fn run(global: &GlobalArgs, command: &[OsString]) -> Result<ExitCode> {
    let here = CommandContext::find(global)?;
    let global = global.clone();
    let environments = move |cwd: &Path| -> Result<Environment, String> {
        let named = GlobalArgs { workspace: global.workspace.clone().or(Some(cwd.to_owned())), ..global.clone() };
        CommandContext::find(&named).map(|here| here.environment).map_err(|error| error.to_string())
    };
    let setup = ProxySetup {
        command: command.to_vec(),
        environments: Box::new(environments),
        sockets: here.sockets,
        patience: Patience::default(),
    };
    let runtime = agent::runtime()?;
    let stdout = tokio::fs::File::from_std(File::from(io::stdout().as_fd().try_clone_to_owned()?));
    let ended = runtime.block_on(async {
        let mut stops = StopSignals::listen()?;
        let stop = async move { stops.next().await };
        Ok::<_, Failure>(proxy::run(setup, tokio::io::stdin(), stdout, stop).await?)
    });
    runtime.shutdown_timeout(PARTING);
    Ok(match ended? {
        ProxyEnd::ByClient => ExitCode::SUCCESS,
        ProxyEnd::ByAgent(Some(code)) => u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from),
        ProxyEnd::ByAgent(None) => ExitCode::FAILURE,
    })
}
