//! Tables: side by side where there is room, one row below the other where there is not.

use pulldown_cmark::Alignment;
use ratatui::text::{Line, Span};

use crate::text::width as columns;
use crate::text::wrap::{Breaks, Margin, wrap};
use crate::theme::Theme;

/// A narrower column is not legible.
const MIN_COLUMN: usize = 8;
const BETWEEN: &str = " │ ";

type Cell = Vec<Span<'static>>;

/// A table as it was read. The first row is the head.
pub(super) struct Table {
    alignments: Vec<Alignment>,
    pub(super) rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(super) fn new(alignments: Vec<Alignment>) -> Self {
        Self { alignments, rows: Vec::new() }
    }

    /// The lines, none wider than `width`.
    pub(super) fn lines(&self, width: usize, theme: Theme) -> Vec<Line<'static>> {
        match self.widths(width) {
            Some(widths) => self.grid(&widths, theme),
            None => self.records(width, theme),
        }
    }

    /// How wide each column is; `None` if they do not fit beside each other.
    fn widths(&self, width: usize) -> Option<Vec<usize>> {
        let count = self.alignments.len();
        let natural = |column: usize| self.rows.iter().filter_map(|row| row.get(column)).map(cell_width).max();
        let mut widths: Vec<usize> = (0..count).map(|column| natural(column).unwrap_or(0).max(1)).collect();
        let room = width.checked_sub(columns(BETWEEN) * count.saturating_sub(1))?;
        let mut excess = widths.iter().sum::<usize>().saturating_sub(room);
        while excess > 0 {
            // The widest gives way, down to the next one, so that short columns keep their words whole.
            let widest = *widths.iter().max()?;
            if widest <= MIN_COLUMN {
                return None;
            }
            let at = widths.iter().position(|width| *width == widest)?;
            let next = widths.iter().filter(|width| **width < widest).max().copied().unwrap_or(0).max(MIN_COLUMN);
            let less = (widest - next).clamp(1, excess.div_ceil(count).max(1));
            widths[at] -= less;
            excess -= less;
        }
        Some(widths)
    }

    fn grid(&self, widths: &[usize], theme: Theme) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        for (at, row) in self.rows.iter().enumerate() {
            let cells: Vec<Vec<Line>> = widths
                .iter()
                .enumerate()
                .map(|(column, width)| wrapped(row.get(column), *width, at == 0, theme))
                .collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(1);
            lines.extend((0..height).map(|line| self.grid_line(&cells, widths, line, theme)));
            if at == 0 {
                let rule = widths.iter().map(|width| "─".repeat(*width)).collect::<Vec<_>>().join("─┼─");
                lines.push(Line::from(Span::styled(rule, theme.dim())));
            }
        }
        lines
    }

    fn grid_line(&self, cells: &[Vec<Line<'static>>], widths: &[usize], line: usize, theme: Theme) -> Line<'static> {
        let mut spans = Vec::new();
        for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
            if column > 0 {
                spans.push(Span::styled(BETWEEN, theme.dim()));
            }
            let text = cell.get(line).cloned().unwrap_or_default();
            let room = width.saturating_sub(text.width());
            let before = match self.alignments.get(column) {
                Some(Alignment::Right) => room,
                Some(Alignment::Center) => room / 2,
                _ => 0,
            };
            spans.push(Span::raw(" ".repeat(before)));
            spans.extend(text.spans);
            if column + 1 < widths.len() {
                spans.push(Span::raw(" ".repeat(room - before)));
            }
        }
        spans.retain(|span| !span.content.is_empty());
        Line::from(spans)
    }

    /// Each row as `head: cell` lines.
    fn records(&self, width: usize, theme: Theme) -> Vec<Line<'static>> {
        let Some((head, rows)) = self.rows.split_first() else { return Vec::new() };
        let mut lines = Vec::new();
        if rows.is_empty() {
            let names = head.iter().map(|cell| Line::from(cell.clone()).style(theme.bold()));
            names.for_each(|name| lines.extend(wrap(&name, width, &Margin::default(), Breaks::Words)));
        }
        for (at, row) in rows.iter().enumerate() {
            if at > 0 {
                lines.push(Line::default());
            }
            for (column, cell) in row.iter().enumerate() {
                let mut spans: Vec<Span> = head.get(column).cloned().unwrap_or_default();
                spans.iter_mut().for_each(|span| span.style = span.style.patch(theme.bold()));
                if !spans.is_empty() {
                    spans.push(Span::raw(": "));
                }
                spans.extend(cell.iter().cloned());
                let margin = Margin { first: Vec::new(), next: vec![Span::raw("  ")] };
                lines.extend(wrap(&Line::from(spans), width, &margin, Breaks::Words));
            }
        }
        lines
    }
}

fn cell_width(cell: &Cell) -> usize {
    cell.iter().map(|span| columns(&crate::text::clean(&span.content))).sum()
}

fn wrapped(cell: Option<&Cell>, width: usize, is_head: bool, theme: Theme) -> Vec<Line<'static>> {
    let line = Line::from(cell.cloned().unwrap_or_default());
    let line = if is_head { line.style(theme.bold()) } else { line };
    wrap(&line, width, &Margin::default(), Breaks::Words)
}
