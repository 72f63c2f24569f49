//! `retake log`: the points, newest first, or the history of a path.

use std::ffi::OsString;
use std::io::Write;

use retake_engine::{Changed, Checkpoint, OpenError, Origin, Timestamp, Workspace};

use crate::clock;
use crate::gaps;
use crate::history;
use crate::json::LogDocument;
use crate::paths::{self, Place};
use crate::quote;
use crate::recovery;
use crate::surroundings::Surroundings;
use crate::ui::{BOLD, DIM, Format, GREEN, Paint, RED, Ui, YELLOW};

/// List the points of the workspace, newest first, or the history of a path
///
/// For each point: its id, its age, the files added (+), modified (~) and deleted (-) since the one before, its label, the command it
/// was made before or after, its gaps. With a path: each change of it or of what is below it, with the point that found it and who
/// made it.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  retake log
  retake log --all -n 20
  retake log -- src/lib.rs          when it changed, and who did it")]
pub struct LogArgs {
    /// Show at most this many
    #[arg(short = 'n', long, value_name = "COUNT")]
    max_count: Option<usize>,
    /// Show also the points that rewinds made before and after they touched files
    #[arg(long)]
    all: bool,
    /// Only points of this session
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// Show the history of these files or directories, relative to the current directory
    #[arg(last = true, value_name = "PATH", conflicts_with_all = ["all", "session"])]
    paths: Vec<OsString>,
}

pub fn run(ui: &mut Ui, here: Surroundings, args: &LogArgs) -> anyhow::Result<()> {
    let max_count = args.max_count.unwrap_or(usize::MAX);
    let workspace = match Workspace::open(here.environment) {
        Ok(workspace) => Some(workspace),
        Err(OpenError::NotAWorkspace { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let mut checkpoints = Vec::new();
    if let Some(workspace) = &workspace {
        recovery::mention(ui, workspace)?;
        if !args.paths.is_empty() {
            let base = paths::base(workspace.root(), &here.current_dir);
            let places = args.paths.iter().map(|path| paths::resolve(workspace.root(), base, path));
            return history::print(ui, workspace, &places.collect::<Result<Vec<Place>, _>>()?, max_count);
        }
        checkpoints = workspace.checkpoints()?;
        let session = args.session.as_deref().map(|text| workspace.resolve_session(text)).transpose()?;
        checkpoints.retain(|point| args.all || is_of_interest(point));
        checkpoints.retain(|point| session.as_ref().is_none_or(|session| point.session == Some(session.id)));
    }
    let is_empty = checkpoints.is_empty();
    checkpoints.truncate(max_count);
    if ui.format == Format::Json {
        return Ok(ui.json(&LogDocument::new(&checkpoints))?);
    }
    if is_empty {
        writeln!(ui.talk()?, "No checkpoints here yet. Make the first one with `retake checkpoint`.")?;
        return Ok(());
    }
    ui.start_pager()?;
    let now = clock::now();
    for checkpoint in &checkpoints {
        writeln!(ui.out, "{}", line(ui.paint, checkpoint, now))?;
    }
    Ok(())
}

/// Points that a rewind made are for undoing it, which needs no id.
fn is_of_interest(point: &Checkpoint) -> bool {
    match point.origin {
        Origin::Checkpoint | Origin::Before | Origin::After | Origin::Prompt => true,
        Origin::Safety | Origin::Rewound | Origin::Turn => point.label.is_some(),
    }
}

fn line(paint: Paint, checkpoint: &Checkpoint, now: Timestamp) -> String {
    let (yellow, dim, bold, red) = (paint.with(YELLOW), paint.with(DIM), paint.with(BOLD), paint.with(RED));
    let mut line = format!(
        "{yellow}{}{yellow:#}  {dim}{:<14}{dim:#}  {}",
        checkpoint.id.short(),
        clock::age(checkpoint.at, now),
        counts(paint, &checkpoint.changed),
    );
    if let Some(label) = &checkpoint.label {
        line.push_str(&format!("  {bold}{}{bold:#}", quote::one_line(label)));
    }
    if let Some(note) = &checkpoint.note {
        line.push_str(&format!("  {dim}{}{}{dim:#}", super::when(checkpoint), quote::one_line(note)));
    }
    if checkpoint.gap_count != 0 {
        line.push_str(&format!("  {red}! {}{red:#}", gaps::count(checkpoint.gap_count)));
    }
    line
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
