//! `retake log`: the points, newest first, or the history of a path.

mod prompts;

use std::ffi::OsString;
use std::io::Write;

use retake_agent::{ids, listing};
use retake_engine::checkpoint::Checkpoint;
use retake_engine::session::PromptAt;
use retake_engine::session::SessionKind;
use retake_engine::snapshot::Changed;
use retake_engine::{OpenError, Timestamp, Workspace};

use crate::agent::session;
use crate::failure::Result;
use crate::output::gaps;
use crate::output::json::LogDocument;
use crate::output::path_history;
use crate::output::quote;
use crate::output::time;
use crate::output::ui::{BOLD, DIM, Format, GREEN, Paint, RED, Ui, YELLOW};
use crate::workspace::context::CommandContext;
use crate::workspace::interrupted_rewind;
use crate::workspace::paths::{self, PathInWorkspace};
use prompts::PromptScope;

/// List the points of the workspace, newest first, or the history of a path
///
/// For each point: its id, its number if it is a prompt's, its age, the files added (+), modified (~) and deleted (-) since the one before (of a prompt: by what came
/// of it), its label, the command it was made before or after, its gaps. Prompts that a rewind left behind are listed with `--all`, or if
/// they have a label, and so are the points around a command that changed nothing. A prompt's number counts within its session. With a path: each change of it or of what is below it, with the point that found it and who
/// made it.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  retake log
  retake log --all -n 20
  retake log --session 3fa2         the prompts of a conversation
  retake log --graph                its branches, those left behind too
  retake log -- src/lib.rs          when it changed, and who did it")]
pub struct LogArgs {
    /// Show at most this many
    #[arg(short = 'n', long, value_name = "COUNT")]
    max_count: Option<usize>,
    /// Show also the points that rewinds and the agent's tools made, those around commands that changed nothing, and prompts that
    /// were left behind
    #[arg(long)]
    all: bool,
    /// Show the prompts of a conversation as a tree, with those that were left behind and the sessions that were forked from it
    #[arg(long, conflicts_with = "paths")]
    graph: bool,
    /// Only prompts whose text, label, tools or changed files contain this
    #[arg(long, value_name = "TEXT", requires = "session")]
    search: Option<String>,
    /// Only points of this session; of a conversation, its prompts
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// Show the history of these files or directories, relative to the current directory
    #[arg(last = true, value_name = "PATH", conflicts_with_all = ["all", "session"])]
    paths: Vec<OsString>,
}

pub fn run(ui: &mut Ui, here: CommandContext, args: &LogArgs) -> Result<()> {
    let max_count = args.max_count.unwrap_or(usize::MAX);
    let workspace = match Workspace::open(here.environment) {
        Ok(workspace) => Some(workspace),
        Err(OpenError::NotAWorkspace { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let mut points = Vec::new();
    if let Some(workspace) = &workspace {
        interrupted_rewind::mention(ui, workspace)?;
        if !args.paths.is_empty() {
            let base = paths::base(workspace.root(), &here.current_dir);
            let places = args.paths.iter().map(|path| paths::resolve(workspace.root(), base, path));
            return path_history::print(
                ui,
                workspace,
                &places.collect::<Result<Vec<PathInWorkspace>, _>>()?,
                max_count,
            );
        }
        let session = match (&args.session, args.graph) {
            (Some(text), _) => Some(session::named(workspace, text)?),
            (None, true) => Some(session::find(workspace, None)?),
            (None, false) => None,
        };
        if let Some(session) = session.as_ref().filter(|session| session.kind == SessionKind::Conversation) {
            let shown = match (args.graph, args.all) {
                (true, _) => PromptScope::Graph,
                (false, true) => PromptScope::All,
                (false, false) => PromptScope::Retained,
            };
            let what = prompts::PromptFilter { shown, max_count, search: args.search.as_deref() };
            return prompts::print(ui, workspace, session, &what);
        }
        points = if args.all { listing::all_points(workspace)? } else { listing::points(workspace)? };
        points.retain(|(point, _)| session.as_ref().is_none_or(|session| point.session == Some(session.id)));
    }
    let is_empty = points.is_empty();
    points.truncate(max_count);
    if ui.format == Format::Json {
        return Ok(ui.json(&LogDocument::new(&points))?);
    }
    if is_empty {
        let newest = workspace.as_ref().map(|workspace| workspace.checkpoints().newest()).transpose()?.flatten();
        let text = match (newest, args.all) {
            (None, _) => "No checkpoints here yet. Make the first one with `retake checkpoint`.",
            (Some(_), false) => "No points to list. `--all` lists also those that rewinds left behind.",
            (Some(_), true) => "No points to list.",
        };
        writeln!(ui.talk()?, "{text}")?;
        return Ok(());
    }
    ui.start_pager()?;
    let now = ids::now();
    let numbers = Numbers::of(points.iter().filter_map(|(_, prompt)| prompt.as_ref()?.number));
    for (checkpoint, prompt) in &points {
        writeln!(ui.out, "{}", line(ui.paint, numbers, checkpoint, prompt.as_ref(), now))?;
    }
    Ok(())
}

/// One point. That of a prompt has the prompt's id, and tells what came of it.
fn line(paint: Paint, numbers: Numbers, checkpoint: &Checkpoint, prompt: Option<&PromptAt>, now: Timestamp) -> String {
    let (yellow, dim, bold, red) = (paint.with(YELLOW), paint.with(DIM), paint.with(BOLD), paint.with(RED));
    let id = prompt.map_or_else(|| checkpoint.id.short(), |at| at.prompt.short());
    let changed = prompt.map_or(checkpoint.changed, listing::came_of);
    let age = time::age(checkpoint.at, now);
    let number = numbers.cell(prompt.and_then(|at| at.number));
    let mut line = format!("{yellow}{id}{yellow:#}{number}  {dim}{age:<14}{dim:#}  {}", counts(paint, &changed));
    if let Some(label) = &checkpoint.label {
        line.push_str(&format!("  {bold}{}{bold:#}", quote::one_line(label)));
    }
    if let Some(note) = &checkpoint.note {
        line.push_str(&format!("  {dim}{}{}{dim:#}", listing::when(checkpoint), quote::one_line(note)));
    }
    if prompt.is_some_and(|at| at.number.is_none()) {
        line.push_str(&format!("  {dim}left behind{dim:#}"));
    }
    if checkpoint.gap_count != 0 {
        line.push_str(&format!("  {red}! {}{red:#}", gaps::count(checkpoint.gap_count)));
    }
    line
}

/// The column of the prompts' numbers: as wide as the largest, and not there without any.
#[derive(Clone, Copy)]
struct Numbers {
    width: usize,
}

impl Numbers {
    fn of(numbers: impl Iterator<Item = u64>) -> Self {
        Self { width: numbers.max().map_or(0, |largest| largest.to_string().len()) }
    }

    /// `  3`, blank for what has no number.
    fn cell(self, number: Option<u64>) -> String {
        let number = number.map(|number| number.to_string()).unwrap_or_default();
        if self.width == 0 { String::new() } else { format!("  {number:>width$}", width = self.width) }
    }
}

/// `+3 ~2 -1`, padded so that labels line up in all but big changes.
fn counts(paint: Paint, changed: &Changed) -> String {
    let part = |style, sign: char, count: u64| {
        let style = if count == 0 { paint.with(DIM) } else { paint.with(style) };
        format!("{style}{:<4}{style:#}", format!("{sign}{count}"))
    };
    let parts = [part(GREEN, '+', changed.added), part(YELLOW, '~', changed.modified), part(RED, '-', changed.deleted)];
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_line_up() {
        let plain = |added, modified, deleted| counts(Paint::Plain, &Changed { added, modified, deleted });
        assert_eq!(plain(3, 0, 1), "+3   ~0   -1  ");
        assert_eq!(plain(120, 7, 12_000), "+120 ~7   -12000");
    }
}
