//! Lines of styled text, broken to a width.
//!
//! Widths are what a terminal shows: wide characters count two, combining ones none. No visible character is ever lost; only the spaces
//! at which a line of words was broken go. Text is cleaned on the way, so callers pass it on as it came.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;

use super::{clean, width as columns};

/// Where a line may be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Breaks {
    /// Between words, and inside of those that are longer than a line.
    Words,
    /// Anywhere: for code and output, where every space counts.
    Anywhere,
}

/// What stands before the text, on the first line and on those that follow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Margin {
    pub(crate) first: Vec<Span<'static>>,
    pub(crate) next: Vec<Span<'static>>,
}

impl Margin {
    /// The same number of spaces on every line.
    pub(crate) fn spaces(count: usize) -> Self {
        let spaces = if count == 0 { Vec::new() } else { vec![Span::raw(" ".repeat(count))] };
        Self { first: spaces.clone(), next: spaces }
    }

    /// `mark` on the first line, as many spaces on the others.
    pub(crate) fn hanging(mark: Span<'static>) -> Self {
        let next = Span::raw(" ".repeat(columns(&mark.content)));
        Self { first: vec![mark], next: vec![next] }
    }
}

/// Breaks `line` to `width` columns, margin included. A margin that takes more than half of the width is cut, so that there is always
/// room for text. An empty line stays one line.
pub(crate) fn wrap(line: &Line<'_>, width: usize, margin: &Margin, breaks: Breaks) -> Vec<Line<'static>> {
    let width = width.max(4);
    let text = Fragments::new(line);
    let (first, next) = (cut(&margin.first, width / 2), cut(&margin.next, width / 2));
    let mut lines = Vec::new();
    let mut start = 0;
    loop {
        let margin = if lines.is_empty() { &first } else { &next };
        let room = width - margin.iter().map(|span| columns(&span.content)).sum::<usize>();
        let (end, resume) = text.row(start, room, breaks);
        let mut spans = margin.clone();
        text.spans(start, end, &mut spans);
        lines.push(Line::from(spans));
        if resume >= text.pieces.len() {
            return lines;
        }
        start = resume;
    }
}

/// Wraps each line of `text`, all of one style; the first margin is for the first of them only.
pub(crate) fn wrap_text(text: &str, style: Style, width: usize, margin: &Margin, breaks: Breaks) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    let rest = Margin { first: margin.next.clone(), next: margin.next.clone() };
    for one in text.lines() {
        let margin = if lines.is_empty() { margin } else { &rest };
        lines.extend(wrap(&Line::from(Span::styled(one, style)), width, margin, breaks));
    }
    lines
}

/// How many lines [`wrap`] makes of `text` when it may break anywhere and has `room` columns, without making them.
pub(crate) fn height(text: &str, room: usize) -> usize {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.len().div_ceil(room).max(1);
    }
    let text = Fragments::new(&Line::from(text));
    let (mut rows, mut start) = (0, 0);
    loop {
        rows += 1;
        start = text.row(start, room, Breaks::Anywhere).1;
        if start >= text.pieces.len() {
            return rows;
        }
    }
}

/// The spans, as far as they fit into `width`.
fn cut(spans: &[Span<'static>], width: usize) -> Vec<Span<'static>> {
    let all: usize = spans.iter().map(|span| columns(&span.content)).sum();
    if all <= width {
        return spans.to_vec();
    }
    let line = Line::from(spans.to_vec());
    let text = Fragments::new(&line);
    let (end, _) = text.row(0, width, Breaks::Anywhere);
    let mut kept = Vec::new();
    text.spans(0, end, &mut kept);
    kept
}

/// A line taken apart into what the terminal draws in one go.
struct Fragments {
    text: String,
    pieces: Vec<Fragment>,
}

#[derive(Clone, Copy)]
struct Fragment {
    start: usize,
    end: usize,
    width: usize,
    style: Style,
}

impl Fragments {
    fn new(line: &Line<'_>) -> Self {
        let mut all = Self { text: String::new(), pieces: Vec::new() };
        for span in &line.spans {
            all.push(&clean(&span.content), line.style.patch(span.style));
        }
        all
    }

    fn push(&mut self, text: &str, style: Style) {
        let base = self.text.len();
        self.text.push_str(text);
        if text.is_ascii() {
            let ends = base + 1..=base + text.len();
            self.pieces.extend(ends.map(|end| Fragment { start: end - 1, end, width: 1, style }));
            return;
        }
        let pieces = text.grapheme_indices(true).map(|(at, grapheme)| {
            let start = base + at;
            Fragment { start, end: start + grapheme.len(), width: columns(grapheme), style }
        });
        self.pieces.extend(pieces);
    }

    fn is_space(&self, at: usize) -> bool {
        self.pieces.get(at).is_some_and(|piece| &self.text[piece.start..piece.end] == " ")
    }

    /// Where the row that begins at `start` ends, and where the next one begins.
    fn row(&self, start: usize, room: usize, breaks: Breaks) -> (usize, usize) {
        let (mut used, mut at, mut good) = (0, start, None);
        let mut word_seen = false;
        while let Some(piece) = self.pieces.get(at) {
            let space = self.is_space(at);
            if used + piece.width > room && at > start {
                return match (breaks, good) {
                    (Breaks::Words, _) if space => (self.trimmed(start, at), self.past_spaces(at)),
                    (Breaks::Words, Some(good)) => (self.trimmed(start, good), good),
                    _ => (at, at),
                };
            }
            used += piece.width;
            at += 1;
            word_seen |= !space;
            // Wide characters are words of their own: their languages write no spaces.
            if word_seen && (space || piece.width == 2) {
                good = Some(at);
            }
        }
        (at, at)
    }

    fn trimmed(&self, start: usize, mut end: usize) -> usize {
        while end > start && self.is_space(end - 1) {
            end -= 1;
        }
        end
    }

    fn past_spaces(&self, mut at: usize) -> usize {
        while self.is_space(at) {
            at += 1;
        }
        at
    }

    /// Adds the pieces from `start` to `end`, those of one style in one span.
    fn spans(&self, start: usize, end: usize, spans: &mut Vec<Span<'static>>) {
        for run in self.pieces[start..end].chunk_by(|one, next| one.style == next.style) {
            let text = &self.text[run[0].start..run[run.len() - 1].end];
            spans.push(Span::styled(text.to_owned(), run[0].style));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(text: &str, width: usize, breaks: Breaks) -> Vec<String> {
        let margin = Margin::default();
        wrap(&Line::from(text), width, &margin, breaks).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn words_stay_whole_where_they_can() {
        assert_eq!(wrapped("the quick brown fox", 10, Breaks::Words), ["the quick", "brown fox"]);
        assert_eq!(wrapped("a verylongwordindeed b", 8, Breaks::Words), ["a", "verylong", "wordinde", "ed b"]);
        assert_eq!(wrapped("  indented text", 10, Breaks::Words), ["  indented", "text"]);
        assert_eq!(wrapped("漢字漢字 ab", 5, Breaks::Words), ["漢字", "漢字", "ab"]);
        assert_eq!(wrapped("", 10, Breaks::Words), [""]);
    }

    #[test]
    fn code_keeps_every_space() {
        assert_eq!(wrapped("a  b    c", 4, Breaks::Anywhere), ["a  b", "    ", "c"]);
        assert_eq!(wrapped("\tx\x1b[0m", 6, Breaks::Anywhere), ["    x␛", "[0m"]);
    }

    #[test]
    fn nothing_visible_is_lost_at_any_width() {
        let text = "ein süßes  日本語のテキスト with e\u{301}ccents, 👩\u{200d}💻 emoji, \u{202e}tricks and averyveryverylongword  end ";
        let bare = |text: &str| clean(text).replace(' ', "");
        for width in 4..50 {
            for breaks in [Breaks::Words, Breaks::Anywhere] {
                let rows = wrapped(text, width, breaks);
                assert!(rows.iter().all(|row| columns(row) <= width), "{width} {rows:?}");
                assert_eq!(bare(&rows.concat()), bare(text), "{width}");
            }
            assert_eq!(height(text, width), wrapped(text, width, Breaks::Anywhere).len(), "{width}");
        }
    }

    #[test]
    fn margins_and_styles_follow_the_text() {
        let line = Line::from(vec![Span::raw("one "), Span::styled("two three", Style::new().bold())]);
        let rows = wrap(&line, 9, &Margin::hanging(Span::raw("- ")), Breaks::Words);
        assert_eq!(rows.iter().map(ToString::to_string).collect::<Vec<_>>(), ["- one two", "  three"]);
        assert_eq!(rows[1].spans[1].style, Style::new().bold());
        let deep = wrap(&Line::from("word"), 8, &Margin::spaces(40), Breaks::Words);
        assert_eq!(deep[0].to_string(), "    word");
    }
}
