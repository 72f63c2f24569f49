//! What the model said and thought. Its calls are written with their results.

use ratatui::text::Span;
use retake_engine::session::entry::{Block, StopReason};

use super::cell_writer::CellWriter;
use crate::text::markdown;

/// Lines of a thought that its one line is made of: the first may be no more than a title.
const FIRST_WORDS: usize = 2;

/// Whether there is nothing but calls.
pub(super) fn shows_nothing(blocks: &[Block], stop: StopReason) -> bool {
    let is_silent = |block: &Block| match block {
        Block::Text { text } | Block::Reasoning { text, .. } => text.trim().is_empty(),
        Block::Call { .. } => true,
    };
    remark(stop).is_none() && blocks.iter().all(is_silent)
}

/// Writes an answer.
pub(super) fn write(blocks: &[Block], stop: StopReason, ink: &mut CellWriter) {
    let mut is_first = true;
    for block in blocks {
        let (Block::Text { text } | Block::Reasoning { text, .. }) = block else { continue };
        if text.trim().is_empty() {
            continue;
        }
        if !std::mem::take(&mut is_first) {
            ink.blank();
        }
        match block {
            Block::Reasoning { .. } => reasoning(text, ink),
            _ => ink.lines(markdown::lines(text, ink.width, &ink.theme)),
        }
    }
    if let Some(remark) = remark(stop) {
        if !is_first {
            ink.blank();
        }
        ink.words(Span::styled("! ", ink.theme.warning()), remark, ink.theme.warning());
    }
}

/// What the model thought, in one line while it is folded.
pub(super) fn reasoning(text: &str, ink: &mut CellWriter) {
    let style = ink.theme.dim().patch(ink.theme.italic());
    ink.can_fold();
    let mark = Span::styled("· ", style);
    if !ink.is_open() {
        let first = text.lines().map(|line| line.trim().trim_matches(['*', '#', ' '])).filter(|line| !line.is_empty());
        let title = format!("thought: {}", first.take(FIRST_WORDS).collect::<Vec<_>>().join(" · "));
        return ink.title(mark, &title, style, Vec::new());
    }
    ink.title(mark, "thought:", style, Vec::new());
    let lines = markdown::lines(text, ink.inner_width(), &ink.theme);
    ink.indented(lines.into_iter().map(|line| line.style(style)));
}

fn remark(stop: StopReason) -> Option<&'static str> {
    match stop {
        StopReason::Length => Some("the answer was cut off: it became too long"),
        StopReason::Refused => Some("the model refused to answer"),
        StopReason::Done | StopReason::Calls | StopReason::Interrupted => None,
    }
}
