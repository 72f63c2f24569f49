//! What a diff is made of, and how each piece is drawn beside its numbers.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use retake_agent::diff::{FileDiff, Instead, LineKind};
use retake_agent::rewind_document::Bytes;

use crate::text::wrap::{Breaks, Margin, height, wrap};
use crate::text::{clean, fit, width as columns};
use crate::theme::Theme;

/// From this width on both numbers of a line are shown.
const WIDE: u16 = 60;

/// Whether the path stands above its lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    Shown,
    Hidden,
}

/// A piece of a diff; one or, where it is wrapped, several lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DiffRow {
    /// Between two files.
    Blank,
    Header {
        file: usize,
    },
    /// Lines between two hunks that did not change.
    Skipped,
    Line {
        file: usize,
        hunk: usize,
        line: usize,
        old: u32,
        new: u32,
    },
    LeftOut {
        file: usize,
    },
}

/// The pieces of `files`, in order.
pub(super) fn rows(files: &[FileDiff], header: Header) -> Vec<DiffRow> {
    let mut rows = Vec::new();
    for (file, diff) in files.iter().enumerate() {
        if header == Header::Shown {
            rows.extend((file > 0).then_some(DiffRow::Blank));
            rows.push(DiffRow::Header { file });
        }
        for (hunk, lines) in diff.hunks.iter().enumerate() {
            rows.extend((hunk > 0).then_some(DiffRow::Skipped));
            let (mut old, mut new) = lines.start;
            for (line, one) in lines.lines.iter().enumerate() {
                rows.push(DiffRow::Line { file, hunk, line, old, new });
                old += u32::from(one.kind != LineKind::Added);
                new += u32::from(one.kind != LineKind::Removed);
            }
        }
        rows.extend((diff.left_out > 0).then_some(DiffRow::LeftOut { file }));
    }
    rows
}

/// The room for numbers, the same for all files so that their lines stand below one another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gutter {
    width: usize,
    /// Columns of a number.
    digits: usize,
    numbers: usize,
}

impl Gutter {
    /// A line number of 0 is one that nobody knows.
    pub(super) fn new(files: &[FileDiff], width: u16) -> Self {
        let hunks = files.iter().flat_map(|file| &file.hunks);
        let highest = hunks.map(|hunk| match hunk.start {
            (0, _) => 0,
            (old, new) => old.max(new) + u32::try_from(hunk.lines.len()).unwrap_or(0),
        });
        let highest = highest.max().unwrap_or(0);
        // Where every line is new there is nothing to tell apart.
        let has_two = |file: &FileDiff| {
            let mut lines = file.hunks.iter().flat_map(|hunk| &hunk.lines);
            lines.any(|line| line.kind != LineKind::Added)
        };
        let numbers = if highest == 0 { 0 } else { 1 + usize::from(width >= WIDE && files.iter().any(has_two)) };
        Self { width: usize::from(width).max(4), digits: highest.to_string().len(), numbers }
    }

    /// Numbers and sign before a line.
    fn text(&self, kind: LineKind, old: u32, new: u32) -> (String, &'static str) {
        let digits = self.digits;
        let sign = match kind {
            LineKind::Same => "  ",
            LineKind::Added => "+ ",
            LineKind::Removed => "− ",
        };
        let number = |number: u32, is_there: bool| match is_there && number > 0 {
            true => format!("{number:>digits$} "),
            false => " ".repeat(digits + 1),
        };
        let numbers = match self.numbers {
            0 => String::new(),
            1 => number(if kind == LineKind::Removed { old } else { new }, true),
            _ => number(old, kind != LineKind::Added) + &number(new, kind != LineKind::Removed),
        };
        (numbers, sign)
    }

    fn columns(&self) -> usize {
        self.numbers * (self.digits + 1) + 2
    }

    /// The room for text. Must be what [`wrap`] leaves after a margin, which it cuts at half of the width.
    fn room(&self) -> usize {
        self.width - self.columns().min(self.width / 2)
    }
}

impl DiffRow {
    pub(super) fn height(self, files: &[FileDiff], gutter: &Gutter) -> usize {
        match self {
            Self::Line { file, hunk, line, .. } => height(&files[file].hunks[hunk].lines[line].text, gutter.room()),
            Self::Blank | Self::Header { .. } | Self::Skipped | Self::LeftOut { .. } => 1,
        }
    }

    pub(super) fn lines(self, files: &[FileDiff], gutter: &Gutter, theme: Theme) -> Vec<Line<'static>> {
        match self {
            Self::Blank => vec![Line::default()],
            Self::Header { file } => vec![header(&files[file], gutter.width, theme)],
            Self::Skipped => vec![Line::styled(fit("⋯", gutter.width), theme.dim())],
            Self::LeftOut { file } => {
                let text = format!("… {} more lines are not shown", files[file].left_out);
                vec![Line::styled(fit(&text, gutter.width), theme.dim())]
            }
            Self::Line { file, hunk, line, old, new } => {
                let line = &files[file].hunks[hunk].lines[line];
                let style = match line.kind {
                    LineKind::Same => theme.plain(),
                    LineKind::Added => theme.added(),
                    LineKind::Removed => theme.removed(),
                };
                let (numbers, sign) = gutter.text(line.kind, old, new);
                let next = vec![Span::raw(" ".repeat(gutter.columns()))];
                let margin =
                    Margin { first: vec![Span::styled(numbers, theme.dim()), Span::styled(sign, style)], next };
                wrap(&Line::styled(line.text.clone(), style), gutter.width, &margin, Breaks::Anywhere)
            }
        }
    }
}

/// `+3 −1`.
pub(crate) fn counts(added: u32, removed: u32, theme: Theme) -> Vec<Span<'static>> {
    let mut spans = Vec::new();
    if added > 0 {
        spans.push(Span::styled(format!("+{added}"), theme.added()));
    }
    if removed > 0 {
        spans.extend((added > 0).then(|| Span::raw(" ")));
        spans.push(Span::styled(format!("−{removed}"), theme.removed()));
    }
    spans
}

/// A path as it can be shown.
pub(crate) fn path_text(path: &Bytes) -> String {
    match path {
        Bytes::Text(text) => clean(text).into_owned(),
        Bytes::Base64 { .. } => {
            let bytes = path.decode().unwrap_or_default();
            clean(&String::from_utf8_lossy(&bytes)).into_owned()
        }
    }
}

fn why(instead: Instead) -> &'static str {
    match instead {
        Instead::Binary => "binary",
        Instead::TooLarge => "too large to compare",
        Instead::Directory => "directory",
        Instead::Mode => "permissions only",
        Instead::Unreadable => "cannot be read",
    }
}

fn header(file: &FileDiff, width: usize, theme: Theme) -> Line<'static> {
    let suffix = match file.instead.map(why) {
        Some(why) => vec![Span::styled(why, theme.dim())],
        None => counts(file.added, file.removed, theme),
    };
    with_suffix(&path_text(&file.path), theme.bold(), suffix, width)
}

/// `text` and what follows it in one line; where there is too little room, `text` gives way.
pub(crate) fn with_suffix(text: &str, style: Style, suffix: Vec<Span<'static>>, width: usize) -> Line<'static> {
    let taken: usize = suffix.iter().map(|span| columns(&span.content)).sum();
    let room = width.saturating_sub(taken + if taken > 0 { 2 } else { 0 });
    if room < 4 {
        return Line::from(Span::styled(fit(text, width), style));
    }
    let mut spans = vec![Span::styled(fit(text, room), style)];
    if taken > 0 {
        spans.push(Span::raw("  "));
        spans.extend(suffix);
    }
    Line::from(spans)
}
