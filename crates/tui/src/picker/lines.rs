//! Text on lines of a given width: cleaned of what makes a terminal do things, shortened, and the lines of a diff.
//!
//! Everything that the picker shows and did not write itself comes through here. Nothing here knows what a rewind is.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use retake_agent::diff::{FileDiff, LineKind};
use retake_agent::document::Bytes;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::theme::Theme;

/// Columns between tab stops.
const TAB: usize = 4;
/// Letters of a file's line that are looked at: no screen shows more.
const MAX_COLUMNS: usize = 1_000;

/// `text` on one line: what would make a terminal do something, or show text in another order, is escaped.
pub fn clean(text: &str) -> String {
    let (mut cleaned, mut column) = (String::with_capacity(text.len()), 0);
    for c in text.chars() {
        let from = cleaned.len();
        match c {
            '\t' => cleaned.extend(std::iter::repeat_n(' ', TAB - column % TAB)),
            c if is_deceptive(c) => cleaned.extend(c.escape_default()),
            c => cleaned.push(c),
        }
        column += cleaned[from..].width();
    }
    cleaned
}

fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// A path for people; what is no UTF-8 is escaped as git does it.
pub fn name(path: &Bytes) -> String {
    let bytes = path.decode().unwrap_or_default();
    match str::from_utf8(&bytes) {
        Ok(text) => clean(text),
        Err(_) => {
            let byte = |byte: &u8| match byte {
                b' '..=b'~' => char::from(*byte).to_string(),
                _ => format!("\\{byte:03o}"),
            };
            bytes.iter().map(byte).collect()
        }
    }
}

/// As much of the beginning of `text` as fits, with `…` if that is not all.
pub fn fit(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let (mut fitted, mut used) = (String::new(), 0);
    for grapheme in text.graphemes(true) {
        used += grapheme.width();
        if width <= used {
            break;
        }
        fitted.push_str(grapheme);
    }
    if width != 0 {
        fitted.push('…');
    }
    fitted
}

/// As much of the end of `text` as fits: of a path that says more than its beginning.
pub fn fit_end(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let (mut kept, mut used) = (Vec::new(), 0);
    for grapheme in text.graphemes(true).rev() {
        used += grapheme.width();
        if width <= used {
            break;
        }
        kept.push(grapheme);
    }
    if width != 0 {
        kept.push("…");
    }
    kept.into_iter().rev().collect()
}

/// `text` in lines of at most `width` columns, broken at spaces where there are any.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_inclusive(' ') {
        if line.width() + word.trim_end().width() <= width {
            line.push_str(word);
            continue;
        }
        if !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        for grapheme in word.graphemes(true) {
            if width < line.width() + grapheme.width() && grapheme != " " {
                lines.push(std::mem::take(&mut line));
            }
            line.push_str(grapheme);
        }
    }
    lines.push(line);
    lines.iter_mut().for_each(|line| line.truncate(line.trim_end().len()));
    lines
}

/// `spans` cut off at `width`, with `…` if something is cut off.
pub fn cut(spans: Vec<Span<'static>>, width: usize) -> Line<'static> {
    let (mut left, mut fitted) = (width, Vec::new());
    let mut spans = spans.into_iter().filter(|span| !span.content.is_empty()).peekable();
    while let Some(span) = spans.next() {
        let room = if spans.peek().is_some() && left <= span.width() { left.saturating_sub(1) } else { left };
        if left == span.width() && spans.peek().is_some() {
            // Something follows for which there is no room.
            fitted.push(Span::styled(format!("{}…", fit_bare(&span.content, room)), span.style));
            break;
        }
        if left < span.width() {
            fitted.push(Span::styled(fit(&span.content, left), span.style));
            break;
        }
        left -= span.width();
        fitted.push(span);
    }
    Line::from(fitted)
}

fn fit_bare(text: &str, width: usize) -> String {
    let mut used = 0;
    let fits = |grapheme: &&str| {
        used += grapheme.width();
        used <= width
    };
    text.graphemes(true).take_while(fits).collect()
}

/// `1 file`, `2 files`.
pub fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// The changed lines of a file with their numbers: of lines that go the number now, of others the number afterwards.
pub fn diff(file: &FileDiff, theme: Theme) -> Vec<Line<'static>> {
    if let Some(instead) = &file.instead {
        return vec![Line::styled(format!("  {}", in_words(instead)), theme.dim())];
    }
    let last = file.hunks.iter().map(|hunk| {
        let lines = u32::try_from(hunk.lines.len()).unwrap_or(u32::MAX);
        hunk.start.0.max(hunk.start.1).saturating_add(lines)
    });
    let digits = last.max().unwrap_or(0).to_string().len().max(3);
    let mut lines = Vec::new();
    for (at, hunk) in file.hunks.iter().enumerate() {
        if at != 0 {
            lines.push(Line::styled(format!("{:>digits$}", "⋮"), theme.dim()));
        }
        let (mut before, mut after) = hunk.start;
        for line in &hunk.lines {
            let (number, sign, style) = match line.kind {
                LineKind::Same => (after, ' ', theme.plain()),
                LineKind::Added => (after, '+', theme.added()),
                LineKind::Removed => (before, '-', theme.removed()),
            };
            before += u32::from(line.kind != LineKind::Added);
            after += u32::from(line.kind != LineKind::Removed);
            let number = Span::styled(format!("{number:>digits$} "), theme.dim());
            let end = line.text.char_indices().nth(MAX_COLUMNS).map_or(line.text.len(), |(at, _)| at);
            lines.push(Line::from(vec![number, Span::styled(format!("{sign}{}", clean(&line.text[..end])), style)]));
        }
    }
    if file.left_out != 0 {
        let left_out = count(file.left_out as usize, "more line", "more lines");
        lines.push(Line::styled(format!("  … and {left_out}"), theme.dim()));
    }
    lines
}

fn in_words(instead: &str) -> &str {
    match instead {
        "binary" => "binary content",
        "too_large" => "too large to be shown line by line",
        "directory" => "a directory",
        "mode" => "only permissions change",
        "unreadable" => "cannot be read",
        other => other,
    }
}

/// Draws all of it in `style` and nothing else: what is about to be replaced.
pub fn faded(line: Line<'static>, style: Style) -> Line<'static> {
    Line::from(line.spans.into_iter().map(|span| Span::styled(span.content, style)).collect::<Vec<_>>())
}
