//! The streaming answer and the running calls, below the last entry.

use ratatui::text::Span;
use retake_agent::view::View;

use super::cell::gap_after;
use super::cell_writer::{CellWriter, Keep};
use super::reply;
use crate::text::markdown;

/// What is shown of thoughts while there is nothing else, and of a call's output.
const THOUGHT_LINES: usize = 4;
const OUTPUT_LINES: usize = 6;

/// Writes what is live. Text that is coming looks like the reply that it becomes, so that nothing moves when it is whole.
pub(super) fn write(view: &View, blink: bool, ink: &mut CellWriter) {
    let coming = &view.coming;
    let (is_thinking, is_talking) = (!coming.thinking.trim().is_empty(), !coming.text.trim().is_empty());
    if !is_thinking && !is_talking && view.calls.is_empty() && !view.summarising {
        return;
    }
    if gap_after(&view.entries) {
        ink.blank();
    }
    if is_thinking {
        thinking(&coming.thinking, is_talking, ink);
    }
    if is_talking {
        if is_thinking {
            ink.blank();
        }
        ink.lines(markdown::coming(&coming.text, ink.width, &ink.theme));
    }
    let mut needs_gap = is_thinking || is_talking;
    for call in &view.calls {
        if std::mem::replace(&mut needs_gap, false) {
            ink.blank();
        }
        let mark = Span::styled(if blink { "◌ " } else { "○ " }, ink.theme.accent());
        ink.title(mark, &call.title, ink.theme.plain(), vec![Span::styled("running", ink.theme.dim())]);
        ink.output(&call.output, ink.theme.dim(), Keep::Last(OUTPUT_LINES));
        needs_gap = !call.output.is_empty();
    }
    if view.summarising {
        if needs_gap {
            ink.blank();
        }
        ink.title(Span::styled("· ", ink.theme.dim()), "writing a summary…", ink.theme.dim(), Vec::new());
    }
}

fn thinking(text: &str, is_talking: bool, ink: &mut CellWriter) {
    if is_talking || ink.is_open() {
        return reply::reasoning(text, ink);
    }
    let style = ink.theme.dim().patch(ink.theme.italic());
    ink.title(Span::styled("· ", style), "thinking…", style, Vec::new());
    ink.tail(text.trim(), style, THOUGHT_LINES);
}
