//! What can be typed: the global options, the list of commands, and how `retake --help` groups them.
//!
//! Each command's own arguments live beside its handler in [`commands`](crate::commands); their doc comments are the help texts.

use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use crate::agent::model::ModelArgs;
use crate::commands::{
    acp, attach, checkpoint, completions, context, demo, diff, doctor, du, exec, export, fork, gc, label, log, man,
    ops, purge, recover, relink, resume, rewind, run, serve, sessions, show, summarize, undo,
};

/// Rewind for AI coding agents: checkpoints of a directory, what changed since, and the way back
///
/// On a terminal, `retake` alone opens the agent in this directory.
///
/// Retake keeps exact checkpoints of a directory, with or without git, and brings files back to any of them. It writes into the
/// directory only when you go back, and into a git repository only when you export to it.
#[derive(Parser, Debug)]
#[command(name = "retake", version, max_term_width = 100, disable_help_subcommand = true)]
pub struct Cli {
    #[command(flatten)]
    pub global: GlobalArgs,
    #[command(flatten)]
    pub model: ModelArgs,
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Options that every command takes.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Global options")]
pub struct GlobalArgs {
    /// Use this directory as the workspace
    ///
    /// Otherwise: the git top level, else the nearest directory that already is a workspace, else the current directory.
    #[arg(short = 'C', long, global = true, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
    /// Print one JSON document instead of text, also for an error
    #[arg(long, global = true)]
    pub json: bool,
    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide_default_value = true)]
    pub color: When,
    /// Never start a pager
    ///
    /// Otherwise, on a terminal: `RETAKE_PAGER`, else `PAGER`, else `less`; an empty one means none.
    #[arg(long, global = true)]
    pub no_pager: bool,
    /// Allow `/`, a home directory or a directory above one as the workspace
    #[arg(long, global = true)]
    pub allow_broad: bool,
}

/// When to use colours.
#[derive(ValueEnum, Clone, Copy, Debug)]
pub enum When {
    Auto,
    Always,
    Never,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    Run(run::RunArgs),
    Sessions(sessions::SessionsArgs),
    Resume(resume::ResumeArgs),
    Attach(attach::AttachArgs),
    Acp(acp::AcpArgs),
    Serve(serve::ServeArgs),
    Fork(fork::ForkArgs),
    Context(context::ContextArgs),
    Summarize(summarize::SummarizeArgs),
    Checkpoint(checkpoint::CheckpointArgs),
    Log(log::LogArgs),
    Diff(diff::DiffArgs),
    Show(show::ShowArgs),
    Label(label::LabelArgs),
    Exec(exec::ExecArgs),
    Rewind(rewind::RewindArgs),
    Undo(undo::UndoArgs),
    Redo(undo::RedoArgs),
    Ops(ops::OpsArgs),
    Export(export::ExportArgs),
    Du(du::DuArgs),
    Doctor(doctor::DoctorArgs),
    Gc(gc::GcArgs),
    Purge(purge::PurgeArgs),
    Recover(recover::RecoverArgs),
    Relink(relink::RelinkArgs),
    Demo(demo::DemoArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

/// The commands as `retake --help` shows them; every command is in exactly one group.
pub const GROUPS: &[(&str, &[&str])] = &[
    ("Agent", &["run", "sessions", "resume", "attach", "serve", "acp", "fork", "summarize", "context"]),
    ("Points", &["checkpoint", "log", "diff", "show", "label", "export"]),
    ("Going back", &["exec", "rewind", "undo", "redo", "ops"]),
    ("Store", &["du", "gc", "purge", "doctor", "recover", "relink"]),
    ("Shell", &["demo", "completions", "man"]),
];

impl Cli {
    /// Parses the process's arguments; a request for help or the version comes back as an `Err` too, as clap has it.
    pub fn from_command_line() -> Result<Self, clap::Error> {
        let mut matches = command().try_get_matches()?;
        let cli = Self::from_arg_matches_mut(&mut matches)?;
        let is_for_nothing = cli.model.model.is_some() || cli.model.base_url.is_some();
        if cli.command.is_some() && is_for_nothing {
            let message = "`--model` and `--base-url` come after the command that they are for";
            return Err(command().error(clap::error::ErrorKind::ArgumentConflict, message));
        }
        Ok(cli)
    }

    /// Whether a command of the user's, or another agent, gets the whole environment, keys included.
    pub fn hands_on_environment(&self) -> bool {
        match &self.command {
            Some(Command::Exec(_)) => true,
            Some(Command::Acp(args)) => args.is_proxy(),
            _ => false,
        }
    }
}

/// The whole command line as clap sees it, with the grouped help.
pub fn command() -> clap::Command {
    let command = Cli::command();
    let template = help_template(&command);
    command.help_template(template)
}

/// clap knows one flat list of commands only, so the list is written into the template.
fn help_template(command: &clap::Command) -> String {
    let heading = command.get_styles().get_header();
    let literal = command.get_styles().get_literal();
    let mut text = String::from("{about-with-newline}\n{usage-heading} {usage}\n");
    for (title, names) in GROUPS {
        text.push_str(&format!("\n{heading}{title}:{heading:#}\n"));
        for name in *names {
            let about = command.find_subcommand(name).and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            text.push_str(&format!("  {literal}{name:<13}{literal:#}{about}\n"));
        }
    }
    text.push_str(&format!("\n{heading}Options:{heading:#}\n"));
    text.push_str("{options}\n\nRun `retake COMMAND --help` for more about a command.{after-help}");
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn arguments_are_consistent() {
        command().debug_assert();
    }

    #[test]
    fn help_lists_every_command_once() {
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let known: BTreeSet<String> = command().get_subcommands().map(|c| c.get_name().to_owned()).collect();
        assert_eq!(grouped.iter().map(ToString::to_string).collect::<BTreeSet<_>>(), known);
        assert_eq!(grouped.len(), known.len(), "a command is listed twice");
    }

    #[test]
    fn every_command_says_what_it_does() {
        for sub in command().get_subcommands() {
            assert!(sub.get_about().is_some(), "`{}` has no help", sub.get_name());
        }
    }
}
