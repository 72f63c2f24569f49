//! `retake log`: the points, newest first.

use std::io::Write;

use retake_engine::{Changed, Checkpoint, OpenError, Timestamp, Workspace};

use crate::clock;
use crate::gaps;
use crate::json::LogDocument;
use crate::quote;
use crate::surroundings::Surroundings;
use crate::ui::{BOLD, DIM, Format, GREEN, Paint, RED, Ui, YELLOW};

/// List the checkpoints of the workspace, newest first
///
/// For each: its id, its age, the files added (+), modified (~) and deleted (-) since the one before, its label, its gaps.
#[derive(clap::Args, Debug)]
pub struct LogArgs {
    /// Show at most this many
    #[arg(short = 'n', long, value_name = "COUNT")]
    max_count: Option<usize>,
}

pub fn run(ui: &mut Ui, here: Surroundings, args: &LogArgs) -> anyhow::Result<()> {
    let mut checkpoints = match Workspace::open(here.environment) {
        Ok(workspace) => workspace.checkpoints()?,
        Err(OpenError::NotAWorkspace { .. }) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let is_empty = checkpoints.is_empty();
    checkpoints.truncate(args.max_count.unwrap_or(usize::MAX));
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
