//! One entry as lines.

use ratatui::text::{Line, Span};
use retake_engine::id::EntryId;
use retake_engine::session::entry::{Block, Body, EndReason, Entry, Outcome, SummaryBy};

use super::cell_writer::{CellWriter, Keep, more};
use super::model_visibility::Sight;
use super::model_visibility::{self, ModelVisibility};
use super::{prompt, reply, result};
use crate::text::width as columns;
use crate::text::wrap::Margin;

/// How far to look for what stands above; entries that show nothing are few.
const LOOK_BACK: usize = 16;
/// What is shown of a summary while it is folded.
const SUMMARY_LINES: usize = 3;
/// What is shown of a note below its first line.
const NOTE_LINES: usize = 5;

/// How much of the screen an entry takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Nothing,
    /// One line that may stand right below another one.
    Compact,
    Block,
}

/// Writes `entries[index]` and the summaries that stand below it, with an empty line above each where that helps reading. What is before
/// an entry never changes, so neither does what is written of it.
pub(super) fn write(entries: &[Entry], index: usize, seen: &ModelVisibility, ink: &mut CellWriter) {
    if !seen.is_moved(index) {
        write_entry(entries, index, seen.of(index), ink);
    }
    for below in seen.below(index) {
        ink.blank();
        write_body(entries, *below, Sight::Seen, ink);
    }
}

fn write_entry(entries: &[Entry], index: usize, sight: Sight, ink: &mut CellWriter) {
    let shape = shape(entries, index);
    if shape == Shape::Nothing {
        return;
    }
    if needs_gap(entries, index, shape) {
        ink.blank();
    }
    write_body(entries, index, sight, ink);
}

fn write_body(entries: &[Entry], index: usize, sight: Sight, ink: &mut CellWriter) {
    match &entries[index].body {
        Body::Prompt { parts } => prompt::write(parts, sight, ink),
        Body::Reply { blocks, stop, .. } => reply::write(blocks, *stop, ink),
        Body::ToolResult { .. } => result::write(entries, index, ink),
        Body::Note { text, .. } => note(text, ink),
        Body::Instructions { source, text } => instructions(source, text, ink),
        Body::Summary { from, to, text, by, .. } => summary(&entries[..index], (*from, *to), text, by, ink),
        Body::Cleared => cleared(ink),
        Body::Approved { tool, prefix } => approved(tool, prefix.as_deref(), ink),
        Body::Ended { reason } => ended(reason, ink),
    }
}

/// Whether what is live needs an empty line above it.
pub(super) fn gap_after(entries: &[Entry]) -> bool {
    (0..entries.len()).rev().take(LOOK_BACK).any(|index| shape(entries, index) != Shape::Nothing)
}

fn needs_gap(entries: &[Entry], index: usize, shape: Shape) -> bool {
    let above = (0..index).rev().take(LOOK_BACK).map(|index| self::shape(entries, index));
    match above.into_iter().find(|shape| *shape != Shape::Nothing) {
        Some(above) => above == Shape::Block || shape == Shape::Block,
        None => index > LOOK_BACK,
    }
}

fn shape(entries: &[Entry], index: usize) -> Shape {
    match &entries[index].body {
        Body::Ended { reason: EndReason::Done } => Shape::Nothing,
        Body::Reply { blocks, stop, .. } => match reply::shows_nothing(blocks, *stop) {
            true => Shape::Nothing,
            false => Shape::Block,
        },
        Body::ToolResult { outcome: Outcome::Done, .. } if result::is_one_line(entries, index) => Shape::Compact,
        Body::Instructions { .. } | Body::Approved { .. } => Shape::Compact,
        _ => Shape::Block,
    }
}

/// The call that `entries[index]` is the result of: its tool and arguments.
pub(super) fn call_of(entries: &[Entry], index: usize) -> Option<(&str, &str)> {
    let Body::ToolResult { call, .. } = &entries[index].body else { return None };
    let blocks = entries[..index].iter().rev().find_map(|entry| match &entry.body {
        Body::Reply { blocks, .. } => Some(blocks),
        _ => None,
    })?;
    blocks.iter().find_map(|block| match block {
        Block::Call { id, name, arguments } if id == call => Some((name.as_str(), arguments.as_str())),
        _ => None,
    })
}

/// `1 line`, `2 lines`.
pub(super) fn counted(count: usize, unit: &str) -> String {
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

fn note(text: &str, ink: &mut CellWriter) {
    let (first, rest) = text.trim().split_once('\n').unwrap_or((text.trim(), ""));
    ink.words(Span::styled("· told to the model: ", ink.theme.dim()), first, ink.theme.dim());
    ink.prose(rest, ink.theme.dim(), Keep::First(NOTE_LINES));
}

fn instructions(source: &str, text: &str, ink: &mut CellWriter) {
    let whose = if source == "retake" { "what the model is told to begin with" } else { source };
    let title = format!("{whose}, {}", counted(text.lines().count(), "line"));
    ink.title(Span::styled("· ", ink.theme.dim()), &title, ink.theme.dim(), Vec::new());
    ink.can_fold();
    if ink.is_open() {
        ink.output(text, ink.theme.dim(), Keep::First(0));
    }
}

fn summary(before: &[Entry], range: (EntryId, EntryId), text: &str, by: &SummaryBy, ink: &mut CellWriter) {
    let what = match model_visibility::range(before, range.0, range.1) {
        Some(range) if range.clone().count() == 1 => "summary of 1 entry".to_owned(),
        Some(range) => format!("summary of {} entries", range.count()),
        None => "summary".to_owned(),
    };
    let why = match by {
        SummaryBy::User => "the model sees this instead",
        SummaryBy::Compaction => "the conversation became too long, the model sees this instead",
        SummaryBy::Model { .. } => "the model went back and kept this",
    };
    let dim = ink.theme.dim();
    let margin = Margin { first: vec![Span::styled("┌ ", dim)], next: vec![Span::styled("│ ", dim)] };
    ink.wrapped(&Line::styled(format!("{what}: {why}"), dim), &margin);
    let inner = ink.inner_width();
    let rows = crate::text::markdown::lines(text, inner, &ink.theme);
    let total = rows.len();
    let shown = if ink.is_open() || total <= SUMMARY_LINES + 1 { total } else { SUMMARY_LINES };
    let framed = rows.into_iter().take(shown).map(|row| {
        let mut spans = vec![Span::raw("│ ")];
        spans.extend(row.spans);
        Line::from(spans).style(dim)
    });
    ink.lines(framed);
    let last = match total - shown {
        0 => String::new(),
        hidden => more(hidden),
    };
    if total > SUMMARY_LINES + 1 {
        ink.can_fold();
    }
    ink.title(Span::styled("└ ", dim), &last, dim, Vec::new());
}

fn cleared(ink: &mut CellWriter) {
    let text = " the model sees nothing above ";
    let room = ink.columns().saturating_sub(columns(text));
    let rule = format!("{}{text}{}", "─".repeat(room / 2), "─".repeat(room - room / 2));
    ink.title(Span::raw(""), &rule, ink.theme.dim(), Vec::new());
}

fn approved(tool: &str, prefix: Option<&str>, ink: &mut CellWriter) {
    let what = match prefix {
        Some(prefix) => format!("`{tool}: {prefix}`"),
        None => format!("`{tool}`"),
    };
    ink.words(Span::styled("· ", ink.theme.dim()), &format!("allowed from now on: {what}"), ink.theme.dim());
}

fn ended(reason: &EndReason, ink: &mut CellWriter) {
    match reason {
        EndReason::Done => {}
        EndReason::Interrupted => ink.words(Span::styled("· ", ink.theme.dim()), "interrupted", ink.theme.dim()),
        EndReason::Failed { message } => {
            let red = ink.theme.removed();
            ink.words(Span::styled("✗ ", red), &format!("failed: {message}"), red);
        }
        EndReason::RoundLimit => {
            let text = "stopped: too many rounds without an end; say `go on` to continue";
            ink.words(Span::styled("! ", ink.theme.warning()), text, ink.theme.warning());
        }
    }
}
