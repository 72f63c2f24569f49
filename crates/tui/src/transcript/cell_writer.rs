//! Writes cells: lines of the right width, and text that is folded to a few lines.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::layout::Cell;
use crate::text::diff::{DiffView, with_suffix};
use crate::text::wrap::{Breaks, Margin, wrap, wrap_text};
use crate::text::{fit, width as columns};
use crate::theme::Theme;

/// Whether long text is shown whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fold {
    Folded,
    Open,
}

/// Which end of a folded text is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    First(usize),
    Last(usize),
}

/// How far what belongs to a line stands in.
pub(super) const INDENT: usize = 2;

/// A cell that is being written.
pub(super) struct CellWriter {
    pub(super) width: u16,
    pub(super) theme: Theme,
    fold: Fold,
    cell: Cell,
}

impl CellWriter {
    pub(super) fn new(width: u16, theme: Theme, fold: Fold) -> Self {
        Self { width, theme, fold, cell: Cell::default() }
    }

    pub(super) fn finish(self) -> Cell {
        self.cell
    }

    pub(super) fn is_open(&self) -> bool {
        self.fold == Fold::Open
    }

    /// There is more to see than is shown when it is folded.
    pub(super) fn can_fold(&mut self) {
        self.cell.can_fold = true;
    }

    pub(super) fn columns(&self) -> usize {
        usize::from(self.width)
    }

    pub(super) fn blank(&mut self) {
        self.cell.lines.push(Line::default());
    }

    /// Lines that fit already.
    pub(super) fn lines(&mut self, lines: impl IntoIterator<Item = Line<'static>>) {
        self.cell.lines.extend(lines);
    }

    /// Lines that fit into what the indent leaves.
    pub(super) fn indented(&mut self, lines: impl IntoIterator<Item = Line<'static>>) {
        let indent = |line: Line<'static>| {
            let mut spans = vec![Span::raw(" ".repeat(INDENT))];
            spans.extend(line.spans);
            Line { spans, ..line }
        };
        self.cell.lines.extend(lines.into_iter().map(indent));
    }

    /// What the indent leaves.
    pub(super) fn inner_width(&self) -> u16 {
        self.width.saturating_sub(INDENT as u16).max(4)
    }

    /// Words, wrapped, with `mark` before the first line.
    pub(super) fn words(&mut self, mark: Span<'static>, text: &str, style: Style) {
        let lines = wrap_text(text, style, self.columns(), &Margin::hanging(mark), Breaks::Words);
        self.cell.lines.extend(lines);
    }

    /// One styled line, wrapped.
    pub(super) fn wrapped(&mut self, line: &Line<'_>, margin: &Margin) {
        let lines = wrap(line, self.columns(), margin, Breaks::Words);
        self.cell.lines.extend(lines);
    }

    /// One line: a mark, `text` as far as there is room, and what follows it.
    pub(super) fn title(&mut self, mark: Span<'static>, text: &str, style: Style, suffix: Vec<Span<'static>>) {
        let room = self.columns().saturating_sub(columns(&mark.content));
        let mut line = with_suffix(text, style, suffix, room);
        line.spans.insert(0, mark);
        self.cell.lines.push(line);
    }

    /// Output as it came, indented, cut to `keep` lines while it is folded.
    pub(super) fn output(&mut self, text: &str, style: Style, keep: Keep) {
        self.folded(text, style, keep, Breaks::Anywhere);
    }

    /// Sentences, indented, cut to `keep` lines while they are folded.
    pub(super) fn prose(&mut self, text: &str, style: Style, keep: Keep) {
        self.folded(text, style, keep, Breaks::Words);
    }

    fn folded(&mut self, text: &str, style: Style, keep: Keep, breaks: Breaks) {
        let all: Vec<&str> = text.lines().collect();
        let (Keep::First(limit) | Keep::Last(limit)) = keep;
        // What is hidden anyway is not laid out.
        let near = match (self.fold, keep) {
            (Fold::Open, _) => &all[..],
            (Fold::Folded, Keep::First(_)) => &all[..all.len().min(limit + 1)],
            (Fold::Folded, Keep::Last(_)) => &all[all.len().saturating_sub(limit + 1)..],
        };
        let mut rows = self.rows(near, style, breaks);
        let hidden = all.len() - near.len();
        let excess = rows.len().saturating_sub(limit);
        // A line that says that there is one more could as well be that line.
        if hidden == 0 && excess <= 1 {
            return self.indented(rows);
        }
        self.can_fold();
        match (self.fold, keep) {
            (Fold::Open, _) => self.indented(rows),
            (Fold::Folded, Keep::First(_)) => {
                rows.truncate(limit);
                self.indented(rows);
                self.more(hidden + excess);
            }
            (Fold::Folded, Keep::Last(_)) => {
                self.more(hidden + excess);
                self.indented(rows.split_off(excess));
            }
        }
    }

    fn rows(&self, lines: &[&str], style: Style, breaks: Breaks) -> Vec<Line<'static>> {
        let width = usize::from(self.inner_width());
        let wrapped =
            lines.iter().flat_map(|line| wrap(&Line::styled(*line, style), width, &Margin::default(), breaks));
        wrapped.collect()
    }

    /// The last `limit` lines of words, and nothing about the others.
    pub(super) fn tail(&mut self, text: &str, style: Style, limit: usize) {
        let all: Vec<&str> = text.lines().collect();
        let mut rows = self.rows(&all[all.len().saturating_sub(limit)..], style, Breaks::Words);
        let excess = rows.len().saturating_sub(limit);
        self.indented(rows.split_off(excess));
    }

    /// A diff, indented, cut to its first `limit` lines while it is folded.
    pub(super) fn diff(&mut self, mut diff: DiffView, limit: usize) {
        let (width, theme) = (self.inner_width(), self.theme);
        let height = diff.height(width);
        let is_long = height > limit + 1;
        let shown = if is_long && !self.is_open() { limit } else { height };
        self.indented(diff.window(width, &theme, 0..shown));
        if is_long {
            self.can_fold();
        }
        if shown < height {
            self.more(height - shown);
        }
    }

    /// Says that there is more.
    pub(super) fn more(&mut self, lines: usize) {
        let text = fit(&more(lines), usize::from(self.inner_width()));
        let style = self.theme.dim();
        self.indented([Line::from(Span::styled(text, style))]);
    }
}

/// What stands in place of lines that are folded.
pub(super) fn more(lines: usize) -> String {
    format!("… {lines} more {}, Ctrl+O shows all", if lines == 1 { "line" } else { "lines" })
}
