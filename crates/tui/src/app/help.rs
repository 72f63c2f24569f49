//! All keys and commands.

use ratatui::text::{Line, Span};

use super::slash;
use crate::text::wrap::{self, Breaks, Margin};
use crate::theme::Theme;

/// Keys, and what they do.
const KEYS: [(&str, &[(&str, &str)]); 5] = [
    (
        "Going back",
        &[
            ("Ctrl+R, Esc Esc", "the picker: every prompt, and exactly what going back to it would change"),
            ("/undo, /redo", "take back the last turn or rewind, and repeat it"),
        ],
    ),
    (
        "In the picker",
        &[
            ("letters", "filter by text, label, tool, file or number"),
            ("Tab", "the tree of all branches, those left behind too"),
            ("Enter", "code, conversation or both, a fork, a summary"),
            ("Ctrl+D, Ctrl+U, wheel", "scroll what would change; Ctrl+O gives it all the room"),
            ("Ctrl+L", "name the point"),
            ("k, o, m", "for a file that others changed too: keep, overwrite, merge"),
        ],
    ),
    (
        "Saying something",
        &[
            ("Enter", "say it; while a turn runs it is held until that has ended"),
            ("Shift+Enter, Alt+Enter, Ctrl+J", "a new line (so does \\ before Enter)"),
            ("@", "mention a file: its content goes along"),
            ("Up, Down", "what was said before"),
            ("Ctrl+G", "write it in $VISUAL or $EDITOR"),
            ("Ctrl+W, Ctrl+U, Ctrl+K", "delete the word, the line before, the line behind the cursor"),
            ("Ctrl+C", "take away what is typed; Up brings it back"),
        ],
    ),
    (
        "Reading",
        &[
            ("PageUp, PageDown, wheel", "scroll; Ctrl+Home and Ctrl+End go to either end, Esc to the newest"),
            ("Ctrl+O, click", "unfold or fold outputs"),
            ("Ctrl+T", "show or hide the todo list"),
            ("Ctrl+L", "draw everything anew"),
        ],
    ),
    (
        "Running",
        &[
            ("Esc, Ctrl+C", "stop the turn; everything so far is kept, and can be taken back"),
            ("y, a, n, w", "answer a question: yes, always, no, no and why; Tab lets you type first"),
            ("Ctrl+C twice, Ctrl+D", "leave; the session is kept, `retake resume` opens it again"),
            ("Ctrl+Z", "to the background"),
        ],
    ),
];

/// Columns of the keys.
const COLUMN: usize = 34;

/// The page.
pub fn lines(width: u16, theme: Theme) -> Vec<Line<'static>> {
    let mut lines: Vec<Line<'static>> = Vec::new();
    for (title, keys) in KEYS {
        lines.push(Line::from(Span::styled(title, theme.bold())));
        for (keys, about) in keys {
            lines.extend(entry(keys, about, width, theme));
        }
        lines.push(Line::default());
    }
    lines.push(Line::from(Span::styled("Commands", theme.bold())));
    for told in &slash::ALL {
        let keys = format!("/{} {}", told.name, told.takes);
        lines.extend(entry(keys.trim_end(), told.about, width, theme));
    }
    lines
}

/// How many lines the page has at most.
pub fn height() -> usize {
    lines(40, Theme::default()).len()
}

/// Keys and what they do: side by side if there is room, else one below the other.
fn entry(keys: &str, about: &str, width: u16, theme: Theme) -> Vec<Line<'static>> {
    let keys_line = format!("  {keys}");
    if usize::from(width) < 2 * COLUMN + 10 {
        let mut lines = vec![Line::from(Span::styled(keys_line, theme.accent()))];
        lines.extend(wrap::wrap_text(about, theme.plain(), usize::from(width), &Margin::spaces(6), Breaks::Words));
        return lines;
    }
    let margin = Margin {
        first: vec![Span::styled(format!("{keys_line:<COLUMN$}"), theme.accent())],
        next: vec![Span::raw(" ".repeat(COLUMN))],
    };
    wrap::wrap_text(about, theme.plain(), usize::from(width), &margin, Breaks::Words)
}
