//! `retake exec`: any command, with a checkpoint before and after it.
//!
//! The command has the terminal, the current directory and the environment to itself. Ctrl-C is its, not ours: whatever ends it, the
//! checkpoint after it is taken.

mod report;
mod unprotected;

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use retake_agent::ids;
use retake_engine::checkpoint::{NewCheckpoint, check_label};
use retake_engine::id::{OperationId, SessionId};
use retake_engine::operation::OperationState;
use retake_engine::session::{NewSession, SessionKind};
use retake_engine::window::{Began, FileTime, NewWindow, PartOf, Reach};
use retake_engine::{Durability, Workspace};

use crate::agent::session;
use crate::failure::Result;
use crate::output::quote;
use crate::output::ui::{Format, Ui};
use crate::process::interrupt::Passing;
use crate::process::leftovers;
use crate::workspace::context::{CommandContext, SESSION_VARIABLE};
use crate::workspace::interrupted_rewind;
use report::RanCommand;

/// Run a command with a checkpoint before and after it, so that it can be undone
///
/// Works with any command and any agent. What changes while it runs counts as its own: `retake undo` takes exactly that back and
/// leaves alone what you changed since. The exit code is the command's. What another session's command may have changed at the same
/// time, or somebody between its end and the checkpoint, is contested, and going back asks about it. A `retake exec` inside the command
/// belongs to the same session: `retake undo` takes back the inner command first, `retake rewind` to the outer one's point takes back
/// both. Inside a command of Retake's own agent it belongs to the agent's turn, and goes back with it.
///
/// With `--json` the command's standard output goes to standard error, so that standard output is the one document.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  retake exec -- npm install
  retake exec -m \"before the codemod\" -- sh -c 'sed -i s/old/new/ src/*.rs'
  retake undo")]
pub struct ExecArgs {
    /// Name the checkpoint before
    #[arg(short = 'm', long, value_name = "LABEL")]
    label: Option<String>,
    /// Count the command as part of this session [default: that of the `retake exec` it runs in, else a new one]
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

pub fn run(ui: &mut Ui, here: CommandContext, args: &ExecArgs) -> Result<ExitCode> {
    // Before anything is made: wrong usage leaves no store behind.
    args.label.as_deref().map_or(Ok(()), check_label)?;
    let (mut workspace, began, operation) = match protect(ui, here, args) {
        Ok(protected) => protected,
        Err(error) if args.unprotected && unprotected::is_no_checkpoint(&error) => {
            ui.warn(&format!("running without a checkpoint, so this cannot be undone: {error:#}"))?;
            let code = start(ui, &args.command, &[])?;
            report::tell_unprotected(ui, code)?;
            return Ok(ExitCode::from(code));
        }
        Err(error) => {
            return Err(error.context("the command was not run, for the checkpoint before it cannot be taken"));
        }
    };
    let (before, session) = (began.before, began.window.session);
    let marks = [(SESSION_VARIABLE, session.to_string()), (leftovers::MARK, operation.to_string())];
    let code = start(ui, &args.command, &marks)?;
    // What a person saves from now on, while the workspace is scanned, is not the command's.
    began.window.stop(FileTime::now());
    let at = ids::now();
    let new = NewCheckpoint { id: ids::checkpoint().id, at, label: None };
    let after = {
        let progress = ui.progress();
        workspace.windows().end(began.window, new, Durability::Synced, &progress)
    };
    match after {
        Ok(after) => report::tell(ui, &workspace, &RanCommand { operation, session, before, after, code })?,
        // It ran, and whoever called it wants to know how that ended.
        Err(error) => report::tell_without_after(ui, operation, session, &before, code, &error)?,
    }
    Ok(ExitCode::from(code))
}

/// Takes the checkpoint before.
fn protect(ui: &mut Ui, here: CommandContext, args: &ExecArgs) -> Result<(Workspace, Began, OperationId)> {
    let mut workspace = Workspace::open_or_create(here.environment)?;
    interrupted_rewind::first(ui, &mut workspace)?;
    let at = ids::now();
    let tool = in_words(&args.command);
    let around = here.turn.as_deref().filter(|_| args.session.is_none());
    let window = match around.map(|prompt| turn(&workspace, prompt)).transpose()?.flatten() {
        Some((session, operation)) => NewWindow {
            session,
            turn: here.turn,
            tool,
            reach: Reach::Everything,
            declared: Vec::new(),
            operation: PartOf::Turn(operation),
        },
        None => NewWindow {
            session: session(&mut workspace, args, here.session.as_deref(), &tool)?,
            turn: None,
            tool,
            reach: Reach::Everything,
            declared: Vec::new(),
            operation: PartOf::Own(ids::operation()),
        },
    };
    let (PartOf::Own(operation) | PartOf::Turn(operation)) = window.operation else {
        unreachable!("a command is one or belongs to one");
    };
    let new = NewCheckpoint { id: ids::checkpoint().id, at, label: args.label.clone() };
    let progress = ui.progress();
    let began = workspace.windows().begin(window, new, &progress)?;
    Ok((workspace, began, operation))
}

/// The turn that the prompt began, if a process has its session open: what a command of the agent runs belongs to the agent's turn. The
/// variable that tells it may come from another workspace.
fn turn(workspace: &Workspace, prompt: &str) -> Result<Option<(SessionId, OperationId)>> {
    let turn = workspace.operations().turn_of(prompt)?.and_then(|turn| turn.session.zip(Some(turn.id)));
    Ok(turn.filter(|(session, _)| workspace.sessions().is_live(*session)))
}

/// The session that was named, else that of the command `around` this one, else a new one.
fn session(workspace: &mut Workspace, args: &ExecArgs, around: Option<&str>, title: &str) -> Result<SessionId> {
    if let Some(text) = &args.session {
        return Ok(session::named(workspace, text)?.id);
    }
    if let Some(session) = around.map(|id| running(workspace, id)).transpose()?.flatten() {
        return Ok(session);
    }
    let at = ids::now();
    let new = NewSession { id: ids::session(), at, title: title.to_owned(), kind: SessionKind::Commands };
    Ok(workspace.sessions_mut().create(new)?.id)
}

/// The session with this id, if a command of it is running here. The variable that tells it may come from another workspace, or from a
/// command that has ended and left something in the background.
fn running(workspace: &Workspace, id: &str) -> Result<Option<SessionId>> {
    let operations = workspace.operations().all()?;
    let running = operations.iter().filter(|operation| operation.state == OperationState::Running);
    Ok(running.filter_map(|operation| operation.session).find(|session| session.to_string() == id))
}

/// Runs the command to its end, with `marks` in its environment, and returns its exit code.
fn start(ui: &mut Ui, command: &[OsString], marks: &[(&str, String)]) -> Result<u8> {
    let [program, arguments @ ..] = command else { unreachable!("clap requires a command") };
    let mut command = Command::new(program);
    command.args(arguments).envs(marks.iter().map(|(name, value)| (name, value)));
    if ui.format == Format::Json {
        command.stdout(Stdio::from(io::stderr()));
    }
    // Signals that come before the command is there to get them end nothing either.
    let passing = Passing::begin()?;
    let child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            let code = if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_STARTED };
            let program = program.to_string_lossy();
            writeln!(ui.talk()?, "error: cannot start `{}`: {error}", quote::one_line(&program))?;
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
    let words = command.iter().map(|word| quote::shell_word(&word.to_string_lossy()));
    words.collect::<Vec<_>>().join(" ")
}
