//! What an empty session says.

use ratatui::text::{Line, Span};
use retake_agent::view::View;

use crate::text::wrap::{self, Breaks, Margin};
use crate::text::{self};
use crate::theme::Theme;

/// What one can do.
const TIPS: [(&str, &str); 5] = [
    ("say what to do", "every prompt is a point to go back to: its files, its conversation or both"),
    ("Ctrl+R", "the picker: all prompts, and exactly what going back would change"),
    ("/undo", "takes back a whole turn, or a rewind"),
    ("/sessions", "what was said here before"),
    ("?", "all keys and commands"),
];

/// The page.
pub fn lines(view: &View, width: u16, theme: Theme) -> Vec<Line<'static>> {
    let (place, model) = (text::clean(&view.workspace), text::clean(&view.model));
    let mut lines = wrap::wrap_text(
        &format!("Retake in {place}"),
        theme.bold(),
        usize::from(width),
        &Margin::default(),
        Breaks::Anywhere,
    );
    lines.push(Line::from(Span::styled(format!("{model} is asked; /model asks another"), theme.dim())));
    lines.push(Line::default());
    for (key, about) in TIPS {
        let margin = Margin {
            first: vec![Span::styled(format!("  {key:<16}"), theme.accent())],
            next: vec![Span::raw(" ".repeat(18))],
        };
        lines.extend(wrap::wrap_text(about, theme.plain(), usize::from(width), &margin, Breaks::Words));
    }
    lines
}
