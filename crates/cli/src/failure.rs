//! Failures at the edge: `error:` and `hint:` lines on stderr, with `--json` the same as a document on stdout, and the exit code.
//!
//! A command returns a [`Failure`], which `?` makes from every error type that has its advice in the table below. An error type without
//! advice does not compile there, and a new variant of one does not compile in its match. Exit codes: 1 failed, 2 usage, 3 refused until the
//! user decides, 130 and 143 stopped by Ctrl-C and SIGTERM.

mod agent;
mod change;
mod engine;
mod fork;

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Stderr, Write};
use std::process::ExitCode;

use anstream::AutoStream;
use retake_acp::proxy;
use retake_engine::checkpoint::{CheckpointError, InvalidLabel, ResolveError};
use retake_engine::maintenance::{PurgeError, SelfTestError};
use retake_engine::operation::OperationError;
use retake_engine::rewind::RewindError;
use retake_engine::session::{ForkError, SessionError};
use retake_engine::view::ContentError;
use retake_engine::{InvalidPath, OpenError, ScanError, StoreError};
use retake_tui::TerminalError;
use retake_web::StartError;

use crate::agent::AgentError;
use crate::commands::CommandError;
use crate::demo::tour::DemoError;
use crate::output::json::ErrorDocument;
use crate::output::quote;
use crate::output::ui::{CYAN, OutputError, RED, Ui};
use crate::process::interrupt;
use crate::workspace::context::{ContextError, SettingsError};
use crate::workspace::paths::OutsideWorkspace;
pub use agent::hint;
use change::{for_operation, for_rewind};
use engine::{
    for_checkpoint, for_content, for_label, for_open, for_path, for_purge, for_resolve, for_scan, for_self_test,
    for_store,
};

const FAILED: u8 = 1;
const USAGE: u8 = 2;
const REFUSED: u8 = 3;
/// What a shell shows for a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

/// Most candidates named for an ambiguous point.
const MAX_CANDIDATES: usize = 5;

/// What a command returns.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// Why a command failed, with what to do about it.
#[derive(Debug)]
pub struct Failure {
    error: anyhow::Error,
    advice: Advice,
}

/// What to do about a failure: the exit code, and a hint for the user.
#[derive(Clone, Debug)]
pub struct Advice {
    code: u8,
    hint: Option<String>,
}

/// An error that a command can fail with.
pub trait Advise: std::error::Error + Send + Sync + 'static {
    /// What to do about it.
    fn advice(&self) -> Advice;
}

impl<E: Advise> From<E> for Failure {
    fn from(error: E) -> Self {
        Self { advice: error.advice(), error: error.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.error, f)
    }
}

impl Failure {
    /// The same failure with `text` before its message; the advice stays.
    pub fn context(self, text: impl fmt::Display + Send + Sync + 'static) -> Self {
        Self { error: self.error.context(text), ..self }
    }

    /// What to do about it, in words.
    pub fn hint(&self) -> Option<&str> {
        self.advice.hint.as_deref()
    }

    /// The error, if it is of this type.
    pub fn downcast_ref<E: Advise>(&self) -> Option<&E> {
        self.error.downcast_ref()
    }

    /// The error and its causes.
    pub fn chain(&self) -> anyhow::Chain<'_> {
        self.error.chain()
    }
}

/// The table of error types and their advice.
macro_rules! advise {
    ($($error:ty => $advice:expr;)*) => {
        $(impl Advise for $error {
            fn advice(&self) -> Advice {
                $advice(self)
            }
        })*
    };
}

advise! {
    CommandError => for_command;
    AgentError => agent::for_agent;
    ContextError => for_context;
    OutsideWorkspace => for_outside;
    io::Error => for_io;
    DemoError => for_demo;
    TerminalError => for_terminal;
    proxy::StartError => for_proxy;
    OpenError => for_open;
    CheckpointError => for_checkpoint;
    ContentError => for_content;
    ForkError => fork::for_fork;
    InvalidLabel => for_label;
    InvalidPath => for_path;
    OperationError => for_operation;
    PurgeError => for_purge;
    ResolveError => for_resolve;
    RewindError => for_rewind;
    ScanError => for_scan;
    SelfTestError => for_self_test;
    SessionError => agent::for_session;
    StoreError => for_store;
    StartError => for_server;
}

/// Prints clap's answer: help and version are no failure.
pub fn usage(answer: &clap::Error) -> ExitCode {
    let text = answer.render().to_string();
    // What the user typed is in it; colours are given up where it has to be escaped.
    let printed = match quote::harmless(&text) {
        Cow::Borrowed(_) => answer.print(),
        Cow::Owned(text) => write!(io::stderr(), "{text}"),
    };
    if answer.use_stderr() {
        // If that could not be written, there is nobody left to tell.
        if asks_for_json() {
            let document = serde_json::to_string(&usage_document(answer)).unwrap_or_default();
            writeln!(io::stdout(), "{}", quote::json(&document)).ok();
        }
        return ExitCode::from(USAGE);
    }
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => tell(&mut AutoStream::auto(io::stderr()), &OutputError::wrap(error).into()),
    }
}

/// Whether `--json` was typed, on a command line that is wrong as a whole; what is behind `--` belongs to another command.
fn asks_for_json() -> bool {
    std::env::args_os().take_while(|argument| argument != "--").any(|argument| argument == "--json")
}

/// clap's answer: its first line is the message, the rest says what to do.
fn usage_document(answer: &clap::Error) -> ErrorDocument {
    let text = answer.render().to_string();
    let (message, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let message = message.strip_prefix("error: ").unwrap_or(message).to_owned();
    let hint = Some(rest.trim().to_owned()).filter(|rest| !rest.is_empty());
    ErrorDocument::new(message, hint, Vec::new())
}

/// Draws `error`, its causes and its hint; a closed pipe (`retake log | head`, a pager left early) ends in silence.
pub fn report(ui: &mut Ui, error: &Failure) -> ExitCode {
    if ui.owes_document() && !is_broken_pipe(error) {
        let causes = error.chain().skip(1).map(ToString::to_string).collect();
        ui.json(&ErrorDocument::new(error.to_string(), error.advice.hint.clone(), causes)).ok();
    }
    // What was written before the failure is still the user's; if it cannot be written either, the first failure is the one to tell.
    ui.finish().ok();
    tell(ui.complain(), error)
}

fn tell(err: &mut AutoStream<Stderr>, error: &Failure) -> ExitCode {
    if is_broken_pipe(error) {
        return ExitCode::SUCCESS;
    }
    draw(err, error).ok();
    ExitCode::from(error.advice.code)
}

fn draw(err: &mut AutoStream<Stderr>, error: &Failure) -> io::Result<()> {
    // What a server said may be in it.
    writeln!(err, "{RED}error:{RED:#} {}", quote::harmless(&error.to_string()))?;
    for cause in error.chain().skip(1) {
        writeln!(err, "  caused by: {}", quote::harmless(&cause.to_string()))?;
    }
    if let Some(hint) = error.hint() {
        writeln!(err, "{CYAN}hint:{CYAN:#} {}", quote::harmless(hint))?;
    }
    Ok(())
}

fn is_broken_pipe(error: &Failure) -> bool {
    let kinds = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    kinds.into_iter().any(|kind| kind == io::ErrorKind::BrokenPipe)
}

fn for_io(error: &io::Error) -> Advice {
    let is_output = OutputError::is_in(error);
    failed(is_output.then_some("only the output is affected: what the command does besides printing is done"))
}

fn for_outside(_: &OutsideWorkspace) -> Advice {
    Advice { code: USAGE, hint: Some("name the workspace with `-C DIR`".to_owned()) }
}

fn for_demo(error: &DemoError) -> Advice {
    match error {
        DemoError::Wrong { .. } | DemoError::Scratch(_) => failed(None),
    }
}

fn for_terminal(error: &TerminalError) -> Advice {
    match error {
        TerminalError::Io(_) | TerminalError::Over { .. } => failed(None),
    }
}

fn for_proxy(error: &proxy::StartError) -> Advice {
    match error {
        proxy::StartError::NoCommand | proxy::StartError::Start { .. } => failed(None),
    }
}

fn for_server(error: &StartError) -> Advice {
    match error {
        StartError::Listen { source, .. } if source.kind() == std::io::ErrorKind::AddrNotAvailable => {
            failed(Some("`--host` takes an address of this machine"))
        }
        StartError::Listen { .. } => failed(Some("`--port 0` takes a port that is free")),
        StartError::Key { .. } => failed(Some("once the key can be read and written, start it again")),
    }
}

fn for_command(error: &CommandError) -> Advice {
    match error {
        CommandError::NotAPrompt { .. } => {
            failed(Some("`retake log --session SESSION` lists the prompts of a conversation"))
        }
        CommandError::NoConversation { .. } => Advice { code: USAGE, hint: Some("leave the option out".to_owned()) },
        CommandError::NothingToFork { .. } => {
            Advice { code: USAGE, hint: Some("`retake log --session SESSION` lists the prompts".to_owned()) }
        }
        CommandError::NoFiles { .. } => failed(Some("`retake log` lists the points that are kept")),
        CommandError::DeletionNotConfirmed => refused("`--yes` confirms it"),
        CommandError::Cancelled => cancelled(None),
        CommandError::Stopped => cancelled(Some("run the command again to go on from there")),
        CommandError::CleanUpUnfinished { .. } => {
            failed(Some("what should be kept is whole; once the cause is mended, run the command again"))
        }
        CommandError::PurgeStopped => cancelled(Some("`retake gc` goes on from there")),
        CommandError::NotConfirmed => refused("add `--yes` if every stored version should go for good"),
        CommandError::Unhealthy { .. } => failed(Some("the lines above say what to do")),
        CommandError::PurgeAll => Advice {
            code: USAGE,
            hint: Some("`retake du` tells where its store is; removing that folder forgets all".to_owned()),
        },
        CommandError::NothingToCompare => failed(Some("make the first checkpoint with `retake checkpoint`")),
        CommandError::NoSuchPath { dir, .. } => failed(Some(&format!("`retake show {dir}` lists what is there"))),
        CommandError::PathNowhere { point, .. } => {
            failed(Some(&format!("nothing was changed; `retake show {point}:` lists what was there")))
        }
        CommandError::GapsUnread { point, .. } => {
            failed(Some(&format!("it is kept; `retake show {point}` tries again")))
        }
        CommandError::JsonOfContent => Advice { code: USAGE, hint: Some("leave out `--json`".to_owned()) },
        CommandError::PointNotText => Advice { code: USAGE, hint: Some("`retake log` lists the points".to_owned()) },
        CommandError::WriteTo { .. } => failed(None),
        CommandError::Git { .. } => failed(Some("git has to be installed for this")),
        CommandError::GitFailed { .. } => failed(Some("HEAD, the index and your files are as they were")),
        CommandError::NoRepository { .. } => failed(Some("`git init` makes one; any checkpoint can be exported then")),
        CommandError::BranchTaken { .. } => refused("nothing was changed; choose another name"),
        CommandError::BadBranch { .. } => Advice { code: USAGE, hint: None },
        CommandError::Declined => failed(None),
        CommandError::CutOff { kind, .. } => {
            let kind = kind.name();
            refused(&format!("without `--dry-run`, `retake undo` recovers the {kind} first and then takes it back"))
        }
        CommandError::NoTerminal => {
            Advice { code: USAGE, hint: Some("`retake run -p TEXT` works without one".to_owned()) }
        }
    }
}

fn for_context(error: &ContextError) -> Advice {
    match error {
        ContextError::CurrentDir { .. } => failed(Some("change to a directory that exists")),
        ContextError::Workspace { .. } => failed(Some(
            "if it was moved, run `retake relink OLD` in the new place; if it was deleted, make the directory again, and `retake rewind` brings back what was in it",
        )),
        ContextError::NoHome => failed(Some("set `HOME`, or `RETAKE_DATA_DIR` to where the store should be")),
        ContextError::Settings(error) => for_settings(error),
    }
}

fn for_settings(error: &SettingsError) -> Advice {
    failed(match error {
        SettingsError::Read { .. } => Some("correct `RETAKE_CONFIG` or the file's permissions"),
        SettingsError::UnknownKey { .. } => Some("docs/configuration.md lists all keys"),
        SettingsError::Syntax { .. }
        | SettingsError::WrongType { .. }
        | SettingsError::BadSize { .. }
        | SettingsError::BadRule { .. } => None,
    })
}

fn failed(hint: Option<&str>) -> Advice {
    Advice { code: FAILED, hint: hint.map(str::to_owned) }
}

/// A program that a signal stopped ends as if it had been ended by it, so that scripts stop too.
fn cancelled(hint: Option<&str>) -> Advice {
    Advice { code: interrupt::exit_code().unwrap_or(FAILED), ..failed(hint) }
}

fn refused(hint: &str) -> Advice {
    Advice { code: REFUSED, hint: Some(hint.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(error: impl Into<Failure>) -> u8 {
        error.into().advice.code
    }

    #[test]
    fn exit_codes_follow_the_kind_of_failure() {
        let ambiguous = ResolveError::Ambiguous { point: "x".into(), candidates: vec![] };
        assert_eq!(code(ResolveError::Unknown { point: "x".into() }), FAILED);
        assert_eq!(code(Failure::from(ambiguous).context("cannot compare")), REFUSED);
        assert_eq!(code(CheckpointError::Budget { budget: 1, needed: 2 }), REFUSED);
        assert_eq!(code(io::Error::other("anything else")), FAILED);
    }

    #[test]
    fn a_broken_pipe_is_found_below_other_errors() {
        let pipe = io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(is_broken_pipe(&Failure::from(pipe).context("cannot write")));
        assert!(!is_broken_pipe(&io::Error::other("full").into()));
    }
}
