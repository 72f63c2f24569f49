//! The commands, one module each: its arguments, whose doc comments are the help, and its handler, which calls the engine and talks.

pub mod acp;
pub mod attach;
pub mod checkpoint;
pub mod completions;
pub mod context;
pub mod demo;
pub mod diff;
pub mod doctor;
pub mod du;
pub mod exec;
pub mod export;
pub mod fork;
pub mod gc;
pub mod label;
pub mod log;
pub mod man;
pub mod ops;
pub mod purge;
pub mod recover;
pub mod relink;
pub mod resume;
pub mod rewind;
pub mod run;
pub mod serve;
pub mod sessions;
pub mod show;
pub mod summarize;
pub mod undo;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use retake_engine::StoreError;
use retake_engine::checkpoint::Checkpoint;
use retake_engine::operation::OperationKind;
use retake_engine::snapshot::Changed;
use thiserror::Error;

use crate::agent::terminal;
use crate::args::{self, Cli, Command};
use crate::failure::Result;
use crate::output::messages;
use crate::output::quote;
use crate::output::ui::{OutputError, Paint, Ui, YELLOW};
use crate::workspace::context::CommandContext;

/// What a command itself, rather than the engine, finds wrong.
#[derive(Debug, Error)]
pub enum CommandError {
    #[error("there is no checkpoint to compare with yet")]
    NothingToCompare,
    #[error("cancelled; nothing was changed")]
    Cancelled,
    #[error("stopped; what was done so far stays done")]
    Stopped,
    #[error("the clean-up could not be finished")]
    CleanUpUnfinished { source: StoreError },
    #[error("stopped: no checkpoint holds it any more, but its bytes are not all removed from the store")]
    PurgeStopped,
    #[error("nothing was purged: this needs a confirmation")]
    NotConfirmed,
    #[error("the whole workspace cannot be purged")]
    PurgeAll,
    #[error("{} found", messages::count(*.problems, "problem was", "problems were"))]
    Unhealthy { problems: u64 },
    #[error("checkpoint {point} has no `{path}`")]
    NoSuchPath {
        point: String,
        path: String,
        /// The point and the nearest directory that is there, as `show` takes them.
        dir: String,
    },
    #[error("`{path}` is not there now, and was not at checkpoint {point}")]
    PathNowhere { path: String, point: String },
    #[error("checkpoint {point} was made, but what it could not capture cannot be listed")]
    GapsUnread { point: String, source: StoreError },
    #[error("a file's content cannot be printed as JSON")]
    JsonOfContent,
    #[error("a point is named by its id or its label, both of which are UTF-8")]
    PointNotText,
    #[error("cannot write to `{}`", .path.display())]
    WriteTo { path: PathBuf, source: io::Error },
    #[error("cannot run `git`")]
    Git { source: io::Error },
    #[error("`git {what}` failed: {said}")]
    GitFailed { what: String, said: String },
    #[error("`{}` is not in a git repository", .root.display())]
    NoRepository { root: PathBuf },
    #[error("there is a branch `{name}` already")]
    BranchTaken { name: String },
    #[error("`{name}` cannot be a branch's name")]
    BadBranch { name: String },
    #[error("the files as they were at {point} are not kept")]
    NoFiles { point: String },
    #[error("checkpoint {point} belongs to no prompt, so there is no conversation to take back")]
    NoConversation { point: String },
    #[error("{point} is no prompt of a conversation")]
    NotAPrompt { point: String },
    #[error("checkpoint {point} belongs to no prompt, so there is no conversation to fork")]
    NothingToFork { point: String },
    #[error("nothing was deleted: this needs a confirmation")]
    DeletionNotConfirmed,
    #[error("nothing was changed, as you wished")]
    Declined,
    #[error("this needs a terminal")]
    NoTerminal,
    #[error("nothing is planned: {} `{}` was cut off, and what it changed is not known yet", .kind.name(), quote::one_line(.what))]
    CutOff { kind: OperationKind, what: String },
}

impl CommandError {
    /// git could not be run.
    fn git(source: io::Error) -> Self {
        Self::Git { source }
    }
}

/// Runs the command that was typed; without one, prints the help. Returns the exit code.
pub fn run(ui: &mut Ui, cli: &Cli) -> Result<ExitCode> {
    let here = || CommandContext::find(&cli.global);
    let done = match &cli.command {
        None if ui.is_interactive() => return terminal::run(ui, &here()?, &cli.model, terminal::Start::New),
        None => Ok(args::command().print_help().map_err(OutputError::wrap)?),
        Some(Command::Attach(args)) => return attach::run(ui, &here()?, args),
        Some(Command::Acp(args)) => return acp::run(ui, &cli.global, args),
        Some(Command::Run(args)) => return run::run(ui, &here()?, args),
        Some(Command::Resume(args)) => return resume::run(ui, &here()?, args),
        Some(Command::Serve(args)) => serve::run(ui, &here()?, args),
        Some(Command::Sessions(args)) => sessions::run(ui, here()?, args),
        Some(Command::Context(args)) => context::run(ui, &here()?, args),
        Some(Command::Summarize(args)) => summarize::run(ui, &here()?, args),
        Some(Command::Checkpoint(args)) => checkpoint::run(ui, here()?, args),
        Some(Command::Log(args)) => log::run(ui, here()?, args),
        Some(Command::Diff(args)) => diff::run(ui, here()?, args),
        Some(Command::Show(args)) => show::run(ui, here()?, args),
        Some(Command::Label(args)) => label::run(ui, here()?, args),
        Some(Command::Du(_)) => du::run(ui, here()?),
        Some(Command::Doctor(_)) => doctor::run(ui, here()?),
        Some(Command::Gc(args)) => gc::run(ui, here()?, args),
        Some(Command::Purge(args)) => purge::run(ui, here()?, args),
        Some(Command::Relink(args)) => relink::run(ui, here()?, args),
        Some(Command::Demo(args)) => demo::run(ui, args),
        Some(Command::Completions(args)) => completions::run(ui, args),
        Some(Command::Man(args)) => man::run(ui, args),
        Some(Command::Exec(args)) => return exec::run(ui, here()?, args),
        Some(Command::Rewind(args)) => rewind::run(ui, &here()?, args),
        Some(Command::Undo(args)) => undo::run(ui, &here()?, args),
        Some(Command::Redo(args)) => undo::redo(ui, &here()?, args),
        Some(Command::Fork(args)) => fork::run(ui, &here()?, args),
        Some(Command::Ops(args)) => ops::run(ui, here()?, args),
        Some(Command::Export(args)) => export::run(ui, here()?, args),
        Some(Command::Recover(args)) => recover::run(ui, here()?, args),
    };
    done.map(|()| ExitCode::SUCCESS)
}

/// `3fa2b1c9 "before the refactor"`
fn title(paint: Paint, checkpoint: &Checkpoint) -> String {
    let yellow = paint.with(YELLOW);
    let label = checkpoint.label.as_deref().map(|label| format!(" \"{}\"", quote::one_line(label)));
    format!("{yellow}{}{yellow:#}{}", checkpoint.id.short(), label.unwrap_or_default())
}

/// `3 added, 1 deleted`
fn counts(changed: &Changed) -> String {
    let parts = [(changed.added, "added"), (changed.modified, "modified"), (changed.deleted, "deleted")];
    let parts: Vec<String> =
        parts.into_iter().filter(|(count, _)| *count != 0).map(|(count, what)| format!("{count} {what}")).collect();
    if parts.is_empty() { "nothing changed".to_owned() } else { parts.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_happened_is_counted() {
        assert_eq!(counts(&Changed { added: 3, modified: 0, deleted: 1 }), "3 added, 1 deleted");
        assert_eq!(counts(&Changed { added: 0, modified: 0, deleted: 0 }), "nothing changed");
    }
}
