//! The composer as rows of a width, with the place of the cursor in them.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use retake_engine::session::entry::Part;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::Composer;
use crate::theme::Theme;

/// What a tab is drawn as.
const TAB: &str = "    ";

/// The composer, laid out.
pub struct Rows {
    /// In order.
    pub lines: Vec<Line<'static>>,
    /// The cursor's row and column.
    pub cursor: (usize, usize),
}

/// What a block looks like.
pub fn label(part: &Part) -> String {
    match part {
        Part::Paste { text } | Part::Text { text } => match text.lines().count() {
            0 | 1 => "[pasted 1 line]".to_owned(),
            count => format!("[pasted {count} lines]"),
        },
        Part::File { path, .. } => format!("[file {}]", crate::text::clean(path)),
        Part::Image { media_type, .. } => format!("[image {}]", media_type.rsplit('/').next().unwrap_or_default()),
    }
}

impl Composer {
    /// Lays the text out in `width` columns. There is always room for the cursor behind the last character.
    pub fn rows(&self, width: usize, theme: Theme) -> Rows {
        let mut layout = Layout::new(width.max(2));
        for (at, piece) in self.text.grapheme_indices(true) {
            if at == self.cursor {
                layout.mark_cursor();
            }
            let first = piece.chars().next().unwrap_or_default();
            match self.block(first) {
                Some(block) => label(block).graphemes(true).for_each(|piece| layout.push(piece, theme.accent())),
                None if piece == "\n" => layout.break_line(),
                None if piece == "\t" => layout.push(TAB, theme.plain()),
                None => layout.push(piece, theme.plain()),
            }
        }
        if self.cursor == self.text.len() {
            layout.mark_cursor();
        }
        layout.finish()
    }
}

/// Rows under construction.
struct Layout {
    width: usize,
    lines: Vec<Line<'static>>,
    row: Line<'static>,
    column: usize,
    cursor: (usize, usize),
}

impl Layout {
    fn new(width: usize) -> Self {
        Self { width, lines: Vec::new(), row: Line::default(), column: 0, cursor: (0, 0) }
    }

    fn push(&mut self, piece: &str, style: Style) {
        let width = piece.width();
        if self.column + width > self.width {
            self.break_between_words(piece);
        }
        match self.row.spans.last_mut().filter(|span| span.style == style) {
            Some(span) => span.content.to_mut().push_str(piece),
            None => self.row.spans.push(Span::styled(piece.to_owned(), style)),
        }
        self.column += width;
    }

    /// Goes on in the next row, with the word that does not fit.
    fn break_between_words(&mut self, piece: &str) {
        let text = self.row.to_string();
        let start = match text.rfind(' ') {
            Some(at) if piece != " " && text[at + 1..].width() < self.width / 2 => at + 1,
            _ => text.len(),
        };
        let moved = split_off(&mut self.row, start);
        let left = self.row.width();
        let row = self.lines.len();
        self.break_line();
        // The cursor goes with its word.
        if self.cursor.0 == row && self.cursor.1 > left || self.cursor == (row, left) && !moved.spans.is_empty() {
            self.cursor = (row + 1, self.cursor.1 - left);
        }
        self.column = moved.width();
        self.row = moved;
    }

    fn break_line(&mut self) {
        self.lines.push(std::mem::take(&mut self.row));
        self.column = 0;
    }

    fn mark_cursor(&mut self) {
        if self.column >= self.width {
            self.break_line();
        }
        self.cursor = (self.lines.len(), self.column);
    }

    fn finish(mut self) -> Rows {
        self.break_line();
        Rows { lines: self.lines, cursor: self.cursor }
    }
}

/// Takes what is behind a place in the text of a line off it.
fn split_off(line: &mut Line<'static>, at: usize) -> Line<'static> {
    let (mut left, mut behind) = (at, Line::default());
    for span in std::mem::take(&mut line.spans) {
        let cut = left.min(span.content.len());
        left -= cut;
        let (before, after) = span.content.split_at(cut);
        if !before.is_empty() {
            line.spans.push(Span::styled(before.to_owned(), span.style));
        }
        if !after.is_empty() {
            behind.spans.push(Span::styled(after.to_owned(), span.style));
        }
    }
    behind
}
