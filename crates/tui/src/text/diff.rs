//! Diffs as lines: legible without colours, at any width.
//!
//! [`DiffView`] draws a window of a diff of any length: it measures every line once per width, and lays out only those that are seen.

mod row;

use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;
use retake_agent::diff::FileDiff;

use self::row::{DiffRow, Gutter, Header};
use crate::theme::Theme;

pub(crate) use self::row::{counts, path_text, with_suffix};

/// All lines of `files`, headers included.
pub(crate) fn lines(files: &[FileDiff], width: u16, theme: &Theme) -> Vec<Line<'static>> {
    let gutter = Gutter::new(files, width);
    row::rows(files, Header::Shown).iter().flat_map(|row| row.lines(files, &gutter, *theme)).collect()
}

/// A diff that is looked at through a window.
#[derive(Debug, Default)]
pub(crate) struct DiffView {
    files: Vec<FileDiff>,
    rows: Vec<DiffRow>,
    measured: Option<Measured>,
}

/// Where each row ends, in lines, at one width.
#[derive(Debug)]
struct Measured {
    width: u16,
    gutter: Gutter,
    ends: Vec<usize>,
}

impl DiffView {
    /// Takes the files. Nothing is laid out yet.
    pub(crate) fn new(files: Vec<FileDiff>) -> Self {
        let rows = row::rows(&files, Header::Shown);
        Self { files, rows, measured: None }
    }

    /// The same without the lines that name the files.
    pub(crate) fn without_headers(files: Vec<FileDiff>) -> Self {
        let rows = row::rows(&files, Header::Hidden);
        Self { files, rows, measured: None }
    }

    /// How many lines there are at `width`.
    pub(crate) fn height(&mut self, width: u16) -> usize {
        self.measure(width).ends.last().copied().unwrap_or(0)
    }

    /// The line at which each file begins, at `width`.
    pub(crate) fn starts(&mut self, width: u16) -> Vec<usize> {
        self.measure(width);
        let Some(measured) = &self.measured else { return Vec::new() };
        let start = |at: usize| if at == 0 { 0 } else { measured.ends[at - 1] };
        let headers = self.rows.iter().enumerate().filter(|(_, row)| matches!(row, DiffRow::Header { .. }));
        headers.map(|(at, _)| start(at)).collect()
    }

    /// The lines of `window`, as far as there are any. Costs as much as the window is high.
    pub(crate) fn window(&mut self, width: u16, theme: &Theme, window: Range<usize>) -> Vec<Line<'static>> {
        self.measure(width);
        let Some(measured) = &self.measured else { return Vec::new() };
        let first = measured.ends.partition_point(|end| *end <= window.start);
        let start = if first == 0 { 0 } else { measured.ends[first - 1] };
        let lines = self.rows[first..].iter().flat_map(|row| row.lines(&self.files, &measured.gutter, *theme));
        lines.skip(window.start - start.min(window.start)).take(window.len()).collect()
    }

    /// Draws the lines from `top` on.
    pub(crate) fn draw(&mut self, top: usize, area: Rect, buf: &mut Buffer, theme: &Theme) {
        let lines = self.window(area.width, theme, top..top + usize::from(area.height));
        for (y, line) in (area.top()..).zip(&lines) {
            buf.set_line(area.x, y, line, area.width);
        }
    }

    fn measure(&mut self, width: u16) -> &Measured {
        let measured = self.measured.take().filter(|measured| measured.width == width);
        let measured = measured.unwrap_or_else(|| {
            let gutter = Gutter::new(&self.files, width);
            let mut end = 0;
            let ends = self.rows.iter().map(|row| {
                end += row.height(&self.files, &gutter);
                end
            });
            let ends = ends.collect();
            Measured { width, gutter, ends }
        });
        self.measured.insert(measured)
    }
}

#[cfg(test)]
mod tests;
