//! Tables: side by side where there is room, one row below the other where there is not.

use pulldown_cmark::Alignment;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::text::width as columns;
use crate::text::wrap::{Breaks, Margin, wrap};
use crate::theme::Theme;

/// A longer word may be cut.
const MAX_WORD: usize = 16;
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

    /// How wide each column is; `None` if they do not fit beside each other without cutting words.
    fn widths(&self, width: usize) -> Option<Vec<usize>> {
        let count = self.alignments.len();
        let room = width.checked_sub(columns(BETWEEN) * count.saturating_sub(1))?;
        let cells = |column: usize| self.rows.iter().filter_map(move |row| row.get(column));
        let needed = |column: usize| cells(column).map(longest_word).max().unwrap_or(0).clamp(1, MAX_WORD);
        let wanted = |column: usize| cells(column).map(cell_width).max().unwrap_or(0).clamp(1, room.max(1));
        let least: Vec<usize> = (0..count).map(needed).collect();
        let mut widths: Vec<usize> = (0..count).map(wanted).collect();
        while widths.iter().sum::<usize>() > room {
            // The widest gives way, so that short columns keep their lines whole.
            let can_give = (0..count).filter(|column| widths[*column] > least[*column]);
            let widest = can_give.max_by_key(|column| widths[*column])?;
            widths[widest] -= 1;
        }
        Some(widths)
    }

    fn grid(&self, widths: &[usize], theme: Theme) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        for (at, row) in self.rows.iter().enumerate() {
            let cells: Vec<Vec<Line>> = widths
                .iter()
                .enumerate()
                .map(|(column, width)| {
                    wrapped(row.get(column), *width, if at == 0 { theme.bold() } else { Style::new() })
                })
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

fn longest_word(cell: &Cell) -> usize {
    let text: String = cell.iter().map(|span| span.content.as_ref()).collect();
    text.split(' ').map(|word| columns(&crate::text::clean(word))).max().unwrap_or(0)
}

fn wrapped(cell: Option<&Cell>, width: usize, style: Style) -> Vec<Line<'static>> {
    let line = Line::from(cell.cloned().unwrap_or_default()).style(style);
    wrap(&line, width, &Margin::default(), Breaks::Words)
}
