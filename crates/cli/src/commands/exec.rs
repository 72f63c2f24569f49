//! `retake exec`: any command, with a checkpoint before and after it.
//!
//! The command has the terminal, the current directory and the environment to itself. Ctrl-C is its, not ours: whatever ends it, the
//! checkpoint after it is taken.

mod unprotected;

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, ExitStatus};

use retake_engine::{
    Began, Changed, Durability, NewCheckpoint, NewSession, NewWindow, Reach, SessionId, Side, Workspace, check_label,
};

use super::CommandError;
use crate::clock;
use crate::interrupt::Passing;
use crate::recovery;
use crate::surroundings::Surroundings;
use crate::ui::Ui;

/// Run a command with a checkpoint before and after it, so that it can be undone
///
/// Works with any command and any agent. What changes while it runs counts as its own: `retake undo` takes exactly that back and
/// leaves alone what you changed since. The exit code is the command's.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  retake exec -- npm install
  retake exec -m \"before the codemod\" -- sh -c 'sed -i s/old/new/ src/*.rs'
  retake undo")]
pub struct ExecArgs {
    /// Name the checkpoint before
    #[arg(short = 'm', long, value_name = "LABEL")]
    label: Option<String>,
    /// Count the command as part of this session, rather than of a new one
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// Run the command even if the checkpoint before it cannot be taken: the disk or the budget is full, the store cannot be used
    #[arg(long)]
    unprotected: bool,
    /// Command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// By these exit codes a shell tells that a command was not found, or could not be started.
const NOT_FOUND: u8 = 127;
const NOT_STARTED: u8 = 126;

pub fn run(ui: &mut Ui, here: Surroundings, args: &ExecArgs) -> anyhow::Result<ExitCode> {
    // Before anything is made: wrong usage leaves no store behind.
    args.label.as_deref().map_or(Ok(()), check_label)?;
    let (mut workspace, began) = match protect(ui, here, args) {
        Ok(protected) => protected,
        Err(error) if args.unprotected && unprotected::is_no_checkpoint(&error) => {
            ui.warn(&format!("running without a checkpoint, so this cannot be undone: {error:#}"))?;
            return Ok(ExitCode::from(start(ui, &args.command)?));
        }
        Err(error) => {
            return Err(error.context("the command was not run, for the checkpoint before it cannot be taken"));
        }
    };
    let code = start(ui, &args.command)?;
    let before = began.before.clone();
    let at = clock::now();
    let new = NewCheckpoint { id: clock::new_checkpoint_id(at)?, at, label: None };
    let after = {
        let progress = ui.progress();
        workspace.end(began.window, new, Durability::Synced, &progress)
    };
    let after =
        after.map_err(|source| CommandError::NoCheckpointAfter { point: before.id.short(), source: source.into() })?;
    let changes = workspace.diff(&Side::Stored(before.snapshot), &Side::Stored(after.snapshot))?;
    if changes.is_empty() {
        writeln!(ui.talk()?, "Nothing changed")?;
    } else {
        let counts = super::counts(&Changed::count(&changes));
        let counts = if counts == "nothing changed" { "only directories changed".to_owned() } else { counts };
        let id = before.id.short();
        writeln!(ui.talk()?, "{counts}; `retake undo` or `retake rewind {id}` takes that back")?;
    }
    Ok(ExitCode::from(code))
}

/// Takes the checkpoint before.
fn protect(ui: &mut Ui, here: Surroundings, args: &ExecArgs) -> anyhow::Result<(Workspace, Began)> {
    let mut workspace = Workspace::open_or_create(here.environment)?;
    recovery::first(ui, &mut workspace)?;
    let at = clock::now();
    let tool = in_words(&args.command);
    let window = NewWindow {
        session: session(&mut workspace, args, &tool)?,
        turn: None,
        tool,
        reach: Reach::Everything,
        declared: Vec::new(),
        operation: Some(clock::new_operation_id(at)?),
    };
    let new = NewCheckpoint { id: clock::new_checkpoint_id(at)?, at, label: args.label.clone() };
    let progress = ui.progress();
    let began = workspace.begin(window, new, &progress)?;
    Ok((workspace, began))
}

fn session(workspace: &mut Workspace, args: &ExecArgs, title: &str) -> anyhow::Result<SessionId> {
    if let Some(text) = &args.session {
        return Ok(workspace.resolve_session(text)?.id);
    }
    let at = clock::now();
    let new = NewSession { id: clock::new_session_id(at)?, at, title: title.to_owned() };
    Ok(workspace.create_session(new)?.id)
}

/// Runs the command to its end and returns its exit code.
fn start(ui: &mut Ui, command: &[OsString]) -> anyhow::Result<u8> {
    let [program, arguments @ ..] = command else { unreachable!("clap requires a command") };
    // Signals that come before the command is there to get them end nothing either.
    let passing = Passing::begin()?;
    let child = match Command::new(program).args(arguments).spawn() {
        Ok(child) => child,
        Err(error) => {
            let code = if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_STARTED };
            writeln!(ui.talk()?, "error: cannot start `{}`: {error}", program.display())?;
            return Ok(code);
        }
    };
    Ok(code(passing.wait_for(child)?))
}

/// The exit code as a shell has it: 128 and the signal for a command that one ended.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

/// The command line for people, quoted where a shell would need it.
fn in_words(command: &[OsString]) -> String {
    let words = command.iter().map(|word| crate::quote::shell_word(&word.to_string_lossy()));
    words.collect::<Vec<_>>().join(" ")
}
