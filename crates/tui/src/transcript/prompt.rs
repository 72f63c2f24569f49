//! What the user said.

use ratatui::text::{Line, Span};
use retake_engine::session::entry::Part;

use super::cell::counted;
use super::cell_writer::{CellWriter, Keep};
use super::model_visibility::Sight;
use crate::text::wrap::Margin;

/// A longer prompt is folded to its beginning.
const MAX_LINES: usize = 40;

/// Writes a prompt; dim if the model does not see it any more.
pub(super) fn write(parts: &[Part], sight: Sight, ink: &mut CellWriter) {
    let style = match sight {
        Sight::Unseen => ink.theme.dim(),
        Sight::Seen => ink.theme.accent(),
    };
    let mark = Span::styled("> ", style.patch(ink.theme.bold()));
    let all = lines(parts, style, style.patch(ink.theme.dim()));
    let is_long = all.len() > MAX_LINES + 1;
    let shown = if is_long && !ink.is_open() { MAX_LINES } else { all.len() };
    for (at, line) in all[..shown].iter().enumerate() {
        let mark = if at == 0 { mark.clone() } else { Span::raw("  ") };
        ink.wrapped(line, &Margin::hanging(mark));
    }
    if is_long {
        ink.can_fold();
    }
    if shown < all.len() {
        ink.more(all.len() - shown);
    }
    for part in parts {
        block(part, ink);
    }
}

/// What was typed, line by line, with a name for each block in it.
fn lines(parts: &[Part], style: ratatui::style::Style, name_style: ratatui::style::Style) -> Vec<Line<'static>> {
    let mut lines = vec![Line::default()];
    let push = |lines: &mut Vec<Line<'static>>, span: Span<'static>| {
        if let Some(line) = lines.last_mut() {
            line.spans.push(span);
        }
    };
    for part in parts {
        match part {
            Part::Text { text } => {
                for (at, piece) in text.split('\n').enumerate() {
                    if at > 0 {
                        lines.push(Line::default());
                    }
                    push(&mut lines, Span::styled(piece.trim_end_matches('\r').to_owned(), style));
                }
            }
            block => push(&mut lines, Span::styled(name(block), name_style)),
        }
    }
    while lines.len() > 1 && lines.last().is_some_and(|line| line.to_string().trim().is_empty()) {
        lines.pop();
    }
    lines
}

/// A block in brackets.
pub(super) fn name(part: &Part) -> String {
    match part {
        Part::Text { text } => text.clone(),
        Part::Paste { text } => format!("[pasted {}]", counted(text.lines().count(), "line")),
        Part::File { path, .. } => format!("[file {path}]"),
        Part::Image { media_type, .. } => format!("[image {}]", media_type.trim_start_matches("image/")),
    }
}

fn block(part: &Part, ink: &mut CellWriter) {
    let (Part::Paste { text } | Part::File { text, .. }) = part else { return };
    ink.can_fold();
    if ink.is_open() {
        ink.title(Span::raw("  "), &name(part), ink.theme.bold(), Vec::new());
        ink.output(text, ink.theme.dim(), Keep::First(0));
    }
}
