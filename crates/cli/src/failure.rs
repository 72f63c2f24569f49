//! Failures at the edge: `error:` and `hint:` lines on stderr, with `--json` the same as a document on stdout, and the exit code.
//!
//! Both are chosen by matching on error types, exhaustively, so that a new variant asks for its hint. Exit codes: 1 failed, 2 usage,
//! 3 refused until the user decides, 130 and 143 stopped by Ctrl-C and SIGTERM.

mod agent;
mod change;
mod fork;

use std::borrow::Cow;
use std::io::{self, Stderr, Write};
use std::process::ExitCode;

use anstream::AutoStream;
use anyhow::Error;
use retake_agent::ids;
use retake_engine::checkpoint::{Checkpoint, CheckpointError, InvalidLabel, ResolveError};
use retake_engine::maintenance::PurgeError;
use retake_engine::operation::OperationError;
use retake_engine::rewind::RewindError;
use retake_engine::session::{ForkError, SessionError};
use retake_engine::view::ContentError;
use retake_engine::{OpenError, ScanError, StoreError};
use retake_web::StartError;

use crate::agent::AgentError;
use crate::commands::CommandError;
use crate::output::json::ErrorDocument;
use crate::output::quote;
use crate::output::size;
use crate::output::time;
use crate::output::ui::{CYAN, OutputError, RED, Ui};
use crate::process::interrupt;
use crate::workspace::context::{ContextError, SettingsError};
use crate::workspace::paths::OutsideWorkspace;
pub use agent::hint;
use change::{for_operation, for_rewind};

const FAILED: u8 = 1;
const USAGE: u8 = 2;
const REFUSED: u8 = 3;
/// What a shell shows for a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

/// Most candidates named for an ambiguous point.
const MAX_CANDIDATES: usize = 5;

/// What to do about a failure.
struct Advice {
    code: u8,
    hint: Option<String>,
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
pub fn report(ui: &mut Ui, error: &Error) -> ExitCode {
    if ui.owes_document() && !is_broken_pipe(error) {
        let causes = error.chain().skip(1).map(ToString::to_string).collect();
        ui.json(&ErrorDocument::new(error.to_string(), advice(error).hint, causes)).ok();
    }
    // What was written before the failure is still the user's; if it cannot be written either, the first failure is the one to tell.
    ui.finish().ok();
    tell(ui.complain(), error)
}

fn tell(err: &mut AutoStream<Stderr>, error: &Error) -> ExitCode {
    if is_broken_pipe(error) {
        return ExitCode::SUCCESS;
    }
    let advice = advice(error);
    draw(err, error, &advice).ok();
    ExitCode::from(advice.code)
}

fn draw(err: &mut AutoStream<Stderr>, error: &Error, advice: &Advice) -> io::Result<()> {
    // What a server said may be in it.
    writeln!(err, "{RED}error:{RED:#} {}", quote::harmless(&error.to_string()))?;
    for cause in error.chain().skip(1) {
        writeln!(err, "  caused by: {}", quote::harmless(&cause.to_string()))?;
    }
    if let Some(hint) = &advice.hint {
        writeln!(err, "{CYAN}hint:{CYAN:#} {}", quote::harmless(hint))?;
    }
    Ok(())
}

fn is_broken_pipe(error: &Error) -> bool {
    let kinds = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    kinds.into_iter().any(|kind| kind == io::ErrorKind::BrokenPipe)
}

/// What to do about an error, in words.
pub fn advise(error: &Error) -> Option<String> {
    advice(error).hint
}

/// The advice of the first cause that has any.
fn advice(error: &Error) -> Advice {
    error.chain().find_map(advice_for).unwrap_or_else(|| failed(None))
}

fn advice_for(cause: &(dyn std::error::Error + 'static)) -> Option<Advice> {
    if cause.downcast_ref::<io::Error>().is_some_and(OutputError::is_in) {
        return Some(failed(Some("only the output is affected: what the command does besides printing is done")));
    }
    if let Some(error) = cause.downcast_ref::<CommandError>() {
        return Some(for_command(error));
    }
    if let Some(error) = cause.downcast_ref::<AgentError>() {
        return Some(agent::for_agent(error));
    }
    if let Some(error) = cause.downcast_ref::<SessionError>() {
        return Some(agent::for_session(error));
    }
    if let Some(error) = cause.downcast_ref::<ContextError>() {
        return Some(for_surroundings(error));
    }
    if let Some(error) = cause.downcast_ref::<OpenError>() {
        return Some(for_open(error));
    }
    if let Some(error) = cause.downcast_ref::<CheckpointError>() {
        return Some(for_checkpoint(error));
    }
    if let Some(error) = cause.downcast_ref::<PurgeError>() {
        return Some(for_purge(error));
    }
    if let Some(error) = cause.downcast_ref::<RewindError>() {
        return Some(for_rewind(error));
    }
    if let Some(error) = cause.downcast_ref::<ForkError>() {
        return Some(fork::for_fork(error));
    }
    if let Some(error) = cause.downcast_ref::<OperationError>() {
        return Some(for_operation(error));
    }
    if let Some(error) = cause.downcast_ref::<InvalidLabel>() {
        return Some(for_label(error));
    }
    if let Some(error) = cause.downcast_ref::<ResolveError>() {
        return Some(for_resolve(error));
    }
    if let Some(error) = cause.downcast_ref::<ContentError>() {
        return Some(for_content(error));
    }
    if let Some(error) = cause.downcast_ref::<ScanError>() {
        return Some(for_scan(error));
    }
    if let Some(error) = cause.downcast_ref::<StoreError>() {
        return Some(for_store(error));
    }
    if let Some(error) = cause.downcast_ref::<StartError>() {
        return Some(for_server(error));
    }
    let outside = cause.downcast_ref::<OutsideWorkspace>();
    outside.map(|_| Advice { code: USAGE, hint: Some("name the workspace with `-C DIR`".to_owned()) })
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

fn for_surroundings(error: &ContextError) -> Advice {
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

fn for_open(error: &OpenError) -> Advice {
    match error {
        OpenError::NotAWorkspace { .. } => failed(Some("make the first checkpoint with `retake checkpoint`")),
        OpenError::Moved { from, .. } => refused(&format!(
            "if it was moved here, keep its history with `retake relink {}`",
            quote::shell_word(&from.to_string_lossy())
        )),
        OpenError::Broad { .. } => {
            refused("name a narrower directory with `-C DIR`, or pass `--allow-broad` if you mean it")
        }
        OpenError::InsideStore { .. } => refused("run it in your own files, or move the store with `RETAKE_DATA_DIR`"),
        OpenError::Root { .. } => failed(None),
        OpenError::DataDir { .. } => {
            failed(Some("nothing was changed; make it a directory that you may enter, or set `RETAKE_DATA_DIR` to one"))
        }
        OpenError::StillThere { .. } => refused("a copy starts its own history with `retake checkpoint`"),
        OpenError::Occupied { .. } => refused("nothing was changed; both histories stay where they are"),
        OpenError::Store(error) => for_store(error),
        OpenError::Scan(error) => for_scan(error),
    }
}

fn for_checkpoint(error: &CheckpointError) -> Advice {
    match error {
        CheckpointError::Budget { needed, budget } => refused(&format!(
            "no checkpoint was removed; raise `store.budget` in `config.toml` to {} or more, or lower `capture.max_file`",
            size::human(budget.saturating_add(*needed))
        )),
        CheckpointError::RoomMade { source, .. } => Advice {
            hint: Some(
                "all other checkpoints are as they were; once the cause is mended, run the command again".to_owned(),
            ),
            ..for_checkpoint(source)
        },
        CheckpointError::Label(error) => for_label(error),
        CheckpointError::LabelTaken { label, holder } if holder.label.as_ref() == Some(label) => refused(&format!(
            "nothing was changed; choose another label, or take this one away with `retake label {} --remove`",
            holder.id.short()
        )),
        CheckpointError::LabelTaken { .. } => refused("nothing was changed; choose another label, for this is its id"),
        CheckpointError::Pending { .. } => {
            refused("nothing was changed; `retake recover` finishes it or takes it back")
        }
        CheckpointError::UnknownSession => failed(Some("`retake ops` lists the sessions")),
        CheckpointError::Scan(error) => for_scan(error),
        CheckpointError::Store(error) => for_store(error),
    }
}

fn for_purge(error: &PurgeError) -> Advice {
    match error {
        PurgeError::Pending { .. } => refused("nothing was changed; `retake recover` finishes it or takes it back"),
        PurgeError::Unfinished { .. } => failed(Some("once the cause is mended, `retake gc` removes the rest")),
        PurgeError::Store(error) => for_store(error),
    }
}

fn for_label(_: &InvalidLabel) -> Advice {
    let hint = "give it another one, or none; `retake label POINT --remove` takes one away";
    Advice { code: USAGE, hint: Some(hint.to_owned()) }
}

fn for_resolve(error: &ResolveError) -> Advice {
    match error {
        ResolveError::Unknown { .. } => failed(Some("`retake log` lists the points")),
        ResolveError::Ambiguous { candidates, .. } => refused(&one_of(candidates)),
        ResolveError::AmbiguousPoint { .. } => refused("give more digits of its id, or `--session SESSION`"),
        ResolveError::AmbiguousNumber { sessions, .. } => {
            let sessions: Vec<String> = sessions.iter().map(|id| format!("`--session {}`", id.short())).collect();
            refused(&format!("say which one is meant, by its id or with {}", sessions.join(", ")))
        }
        ResolveError::UnknownSession { .. } => {
            failed(Some("`retake sessions` lists the conversations, `retake ops` the sessions of commands"))
        }
        ResolveError::AmbiguousSession { .. } => refused("give more digits of its id"),
        ResolveError::Store(error) => for_store(error),
    }
}

fn for_content(error: &ContentError) -> Advice {
    match error {
        ContentError::Read { .. } => failed(Some("if it just changed, run the command again")),
        ContentError::Write(_) => failed(None),
        ContentError::Store(error) => for_store(error),
    }
}

fn for_scan(error: &ScanError) -> Advice {
    match error {
        ScanError::Root { .. } => failed(None),
        ScanError::Cancelled => cancelled(Some("run the command again to go on from there")),
        ScanError::Store(error) => for_store(error),
    }
}

fn for_store(error: &StoreError) -> Advice {
    failed(match error {
        StoreError::Io { .. } => Some("nothing was changed, and all checkpoints are as they were"),
        StoreError::WrongKind { .. } => Some(
            "nothing was changed, and all checkpoints are as they were; put the file back from a backup if there is one, else \
             remove what is there, then run `retake doctor`",
        ),
        StoreError::DiskFull { .. } => {
            Some("free some space and run the command again; all checkpoints are as they were")
        }
        StoreError::MalformedIntent => Some("no file was touched because of it; `retake doctor` tells more"),
        StoreError::ReadOnly { .. } => Some("make it writable, or set `RETAKE_DATA_DIR`; reading still works"),
        StoreError::Newer { .. } => Some("update Retake; the store was not touched"),
        StoreError::Orphaned { .. } => {
            Some("put `retake.db` back from a backup, or move the folder away to start anew; nothing was touched")
        }
        StoreError::Network { .. } => Some("set `RETAKE_DATA_DIR` to a directory on a local disk"),
        StoreError::Damaged { .. } | StoreError::Missing { .. } | StoreError::Malformed { .. } => {
            Some("only what needs this object is affected; everything else can still be shown and compared")
        }
        StoreError::Collected => Some("run the command again"),
        StoreError::DatabaseDamaged { .. } => Some(
            "nothing was changed, and stored contents are as they were; put `retake.db` back from a backup, or move its \
             folder away to start anew",
        ),
        StoreError::Busy { .. } => Some("nothing was changed; run the command again when the other one has finished"),
        StoreError::Database { .. } => Some("nothing was changed; if it happens again, check the disk"),
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

fn one_of(candidates: &[Checkpoint]) -> String {
    let now = ids::now();
    let mut text = String::from("it could be one of these; name it by more digits of its id");
    for checkpoint in candidates.iter().take(MAX_CANDIDATES) {
        let label = checkpoint.label.as_deref().map(quote::one_line).unwrap_or_default();
        let line = format!("\n  {}  {}  {label}", checkpoint.id, time::age(checkpoint.at, now));
        text.push_str(line.trim_end());
    }
    if MAX_CANDIDATES < candidates.len() {
        text.push_str(&format!("\n  … and {} more", candidates.len() - MAX_CANDIDATES));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(error: &Error) -> u8 {
        advice(error).code
    }

    #[test]
    fn exit_codes_follow_the_kind_of_failure() {
        let resolve = |error: ResolveError| Error::new(error).context("cannot compare");
        assert_eq!(code(&resolve(ResolveError::Unknown { point: "x".into() })), FAILED);
        assert_eq!(code(&resolve(ResolveError::Ambiguous { point: "x".into(), candidates: vec![] })), REFUSED);
        assert_eq!(code(&CheckpointError::Budget { budget: 1, needed: 2 }.into()), REFUSED);
        assert_eq!(code(&anyhow::anyhow!("anything else")), FAILED);
    }

    #[test]
    fn a_broken_pipe_is_found_below_other_errors() {
        let pipe = io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(is_broken_pipe(&Error::new(pipe).context("cannot write")));
        assert!(!is_broken_pipe(&Error::new(io::Error::other("full"))));
    }
}
