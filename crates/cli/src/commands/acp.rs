//! `retake acp`: the agent in editors, over the Agent Client Protocol.
//!
//! Stdout carries messages of the protocol and nothing else; what people should know goes to stderr, which editors log.

mod host;
mod proxy;
mod setup;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::Duration;

use clap::CommandFactory;
use clap::error::ErrorKind;

use super::run::StopSignals;
use crate::agent;
use crate::agent::model::ModelArgs;
use crate::args::{Cli, GlobalArgs};
use crate::failure;
use crate::failure::Result;
use crate::output::ui::Ui;
use host::EditorHost;

/// What is said to somebody who starts it by hand.
const ON_TERMINAL: &str = "This is Retake's agent for editors: it speaks the Agent Client Protocol on stdin and stdout, and waits for an \
                           editor now.\nhint: `retake acp setup` prints what to put into an editor's settings; `retake` is the agent \
                           in this terminal";

/// How long is waited for what reads stdin: a read that waits cannot be called off.
const PARTING: Duration = Duration::from_millis(100);

/// Be the agent of an editor: the Agent Client Protocol on stdin and stdout, versions 1 and 2
///
/// Editors start this themselves. Every prompt is a point to go back to: by the editor's own button if it knows the `retake` extension,
/// else by typing `/rewind`, `/undo`, `/redo`, `/checkpoints`, `/fork` or `/summarize` into the chat. Each session is about the directory
/// that the editor names, and `retake log`, `retake rewind` and `retake attach` work on it meanwhile.
///
/// With a command after `--` that is another agent, it is a proxy around it: everything passes as it is, and that agent can be rewound
/// too.
#[derive(clap::Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct AcpArgs {
    #[command(flatten)]
    model: ModelArgs,
    /// Another agent, which is given rewind
    #[arg(last = true, value_name = "AGENT")]
    agent: Vec<OsString>,
    #[command(subcommand)]
    command: Option<AcpCommand>,
}

impl AcpArgs {
    /// Whether another agent is started.
    pub fn is_proxy(&self) -> bool {
        !self.agent.is_empty()
    }
}

#[derive(clap::Subcommand, Debug)]
enum AcpCommand {
    Setup(setup::SetupArgs),
}

pub fn run(ui: &mut Ui, global: &GlobalArgs, args: &AcpArgs) -> Result<ExitCode> {
    if let Some(AcpCommand::Setup(args)) = &args.command {
        setup::run(ui, args)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.is_proxy() {
        return proxy::run(global, &args.agent);
    }
    // An agent was meant to be named: Retake's own would be another one than the user thinks.
    if std::env::args_os().next_back().is_some_and(|last| last == "--") {
        let text = "no agent is named after `--`; `retake acp -- COMMAND` starts it, `retake acp` starts Retake's own";
        return Ok(failure::usage(&Cli::command().error(ErrorKind::MissingRequiredArgument, text)));
    }
    if io::stdin().is_terminal() {
        writeln!(ui.talk()?, "{ON_TERMINAL}")?;
    }
    let runtime = agent::runtime()?;
    // The lock of stdout is somebody else's, who writes nothing.
    let stdout = tokio::fs::File::from_std(File::from(io::stdout().as_fd().try_clone_to_owned()?));
    let host = EditorHost::new(runtime.handle().clone(), global.clone(), args.model.clone());
    let served = runtime.block_on(async {
        let mut stops = StopSignals::listen()?;
        retake_acp::agent::serve(tokio::io::stdin(), stdout, host, async move { stops.next().await }).await
    });
    runtime.shutdown_timeout(PARTING);
    served?;
    Ok(ExitCode::SUCCESS)
}
