//! Lines of a given width, beyond what [`crate::text`] has: the end of a path, a line cut off, a line at both sides.
//!
//! Everything that the picker shows and did not write itself is cleaned before it comes here, or by the functions it is given to.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use retake_agent::escape::count;
use retake_agent::rewind_document::File;
use unicode_segmentation::UnicodeSegmentation;

use crate::text::wrap::{Breaks, Margin, wrap_text};
use crate::text::{self, width};

/// `text` on one line, with nothing in it that a terminal would obey.
pub fn clean(text: &str) -> String {
    text::clean(text).into_owned()
}

/// Paths that a plan changes or a rewind has changed, directories apart from files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paths {
    files: usize,
    directories: usize,
}

impl Paths {
    /// Counts `files`.
    pub fn count<'a>(files: impl Iterator<Item = &'a File>) -> Self {
        files.fold(Self::default(), |sum, file| match file.directory {
            true => Self { directories: sum.directories + 1, ..sum },
            false => Self { files: sum.files + 1, ..sum },
        })
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// `4 files and 1 directory`
    pub fn in_words(self) -> String {
        let counted = [(self.files, "file", "files"), (self.directories, "directory", "directories")];
        let words = counted.into_iter().filter(|(number, ..)| *number != 0);
        words.map(|(number, one, more)| count(number, one, more)).collect::<Vec<_>>().join(" and ")
    }

    /// The same with a verb: `1 file goes`, `4 files and 1 directory go`.
    pub fn with_verb(self, one: &str, more: &str) -> String {
        let verb = if self.files + self.directories == 1 { one } else { more };
        format!("{} {verb}", self.in_words())
    }
}

/// As much of the end of `text` as fits: of a path that says more than its beginning.
pub fn fit_end(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let (mut kept, mut used) = (Vec::new(), 0);
    for grapheme in text.graphemes(true).rev() {
        used += width(grapheme);
        if room <= used {
            break;
        }
        kept.push(grapheme);
    }
    if room != 0 {
        kept.push("…");
    }
    kept.into_iter().rev().collect()
}

/// `text` in lines that are indented by `first`, then by `next` columns.
pub fn wrapped(text: &str, style: Style, room: usize, (first, next): (usize, usize)) -> Vec<Line<'static>> {
    let spaces = |count: usize| vec![Span::raw(" ".repeat(count))];
    wrap_text(text, style, room, &Margin { first: spaces(first), next: spaces(next) }, Breaks::Words)
}

/// `spans` cut off at `room`, with `…` if something is cut off.
pub fn cut(spans: Vec<Span<'static>>, room: usize) -> Line<'static> {
    let total: usize = spans.iter().map(Span::width).sum();
    if total <= room {
        return Line::from(spans);
    }
    let (mut left, mut kept) = (room, Vec::new());
    for span in spans {
        if left <= span.width() {
            // Something follows, if only the rest of this: a mark of that takes the last column.
            let style = span.style;
            kept.push(Span::styled(beginning(&span.content, left.saturating_sub(1)), style));
            kept.extend((left != 0).then(|| Span::styled("…", style)));
            break;
        }
        left -= span.width();
        kept.push(span);
    }
    Line::from(kept)
}

fn beginning(text: &str, room: usize) -> String {
    let mut used = 0;
    let fits = |grapheme: &&str| {
        used += width(grapheme);
        used <= room
    };
    text.graphemes(true).take_while(fits).collect()
}

/// Something at the left and something at the right; the left gives way.
pub fn spread(left: Vec<Span<'static>>, right: Vec<Span<'static>>, room: usize, between: Style) -> Line<'static> {
    let taken: usize = right.iter().map(Span::width).sum();
    let mut line = cut(left, room.saturating_sub(taken));
    let rest = room.saturating_sub(taken + line.width());
    line.spans.push(Span::styled(" ".repeat(rest), between));
    line.spans.extend(right);
    cut(line.spans, room)
}

/// `spans`, and `style` to the end of the line.
pub fn filled(mut spans: Vec<Span<'static>>, room: usize, style: Style) -> Line<'static> {
    let used: usize = spans.iter().map(Span::width).sum();
    spans.push(Span::styled(" ".repeat(room.saturating_sub(used)), style));
    Line::from(spans)
}

/// All of it in `style` and nothing else: what is about to be replaced.
pub fn faded(line: Line<'static>, style: Style) -> Line<'static> {
    Line::from(line.spans.into_iter().map(|span| Span::styled(span.content, style)).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_path_the_end_is_kept() {
        assert_eq!(fit_end("src/main.rs", 11), "src/main.rs");
        assert_eq!(fit_end("src/main.rs", 8), "…main.rs");
        assert_eq!(fit_end("日本語", 5), "…本語");
        assert_eq!((fit_end("ab", 1), fit_end("ab", 0)), ("…".to_owned(), String::new()));
    }

    #[test]
    fn what_is_cut_off_says_so() {
        let spans = || vec![Span::raw("abc"), Span::raw("def")];
        let cut = |room| cut(spans(), room).to_string();
        assert_eq!([6, 5, 4, 3, 1, 0].map(cut), ["abcdef", "abcd…", "abc…", "ab…", "…", ""]);
    }

    #[test]
    fn the_left_gives_way_to_the_right() {
        let line = |room| spread(vec![Span::raw("left")], vec![Span::raw("right")], room, Style::new()).to_string();
        assert_eq!([11, 9, 7, 3].map(line), ["left  right", "leftright", "l…right", "ri…"]);
    }
}
