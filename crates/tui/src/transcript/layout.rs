//! The layout of cells one below the other: computed when needed, cached, and scrolled line by line.

use std::collections::HashMap;
use std::rc::Rc;

use ratatui::text::Line;
use retake_agent::view::View;
use retake_engine::id::EntryId;

use super::Folds;
use super::cell_writer::{CellWriter, Fold};
use super::model_visibility::{ModelVisibility, Sight};
use super::{cell, streaming};
use crate::text::code::Budget;
use crate::theme::Theme;

/// Over these, cells that the last frame did not touch are forgotten.
const MAX_CELLS: usize = 500;
const MAX_LINES: usize = 50_000;
/// Lines of code that are parsed for one frame; some milliseconds.
const PARSED_LINES: usize = 40;
/// How long what runs looks the same.
const BLINK_MS: u64 = 600;

/// A line of a cell. The cell after the last entry is what is live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spot {
    pub(super) index: usize,
    pub(super) line: usize,
}

/// An entry, or what is live, as lines.
#[derive(Debug, Default)]
pub(super) struct Cell {
    pub(super) lines: Vec<Line<'static>>,
    /// Whether it looks different when it is unfolded.
    pub(super) can_fold: bool,
}

/// Cells that were laid out, for one width and one theme.
#[derive(Debug, Default)]
pub(super) struct Cache {
    width: u16,
    theme: Theme,
    cells: HashMap<EntryId, CachedCell>,
    live: Option<LiveCell>,
    /// Whether code in a cell that was asked for in this frame is not highlighted yet.
    is_unfinished: bool,
    lines: usize,
    frame: u64,
    laid_out: usize,
}

#[derive(Debug)]
struct CachedCell {
    cell: Rc<Cell>,
    fold: Fold,
    standing: CellContext,
    is_unfinished: bool,
    frame: u64,
}

/// Whatever later entries change about a cell: whether the model sees it, and how many summaries stand below it.
type CellContext = (Sight, usize);

#[derive(Debug)]
struct LiveCell {
    key: LiveCellKey,
    frame: u64,
    is_unfinished: bool,
    cell: Rc<Cell>,
}

/// Whatever what is live depends on, cheap to compare.
type LiveCellKey = (u64, usize, usize, usize, usize, usize, bool, bool);

impl Cache {
    /// A frame begins. What was laid out for another one is of no use if the lines would be different.
    pub(super) fn begin(&mut self, width: u16, theme: Theme) {
        if (self.width, self.theme) != (width, theme) {
            self.cells.clear();
            (self.live, self.lines) = (None, 0);
            (self.width, self.theme) = (width, theme);
        }
        if self.cells.len() > MAX_CELLS || self.lines > MAX_LINES {
            let frame = self.frame;
            self.cells.retain(|_, kept| kept.frame == frame);
            self.lines = self.cells.values().map(|kept| kept.cell.lines.len()).sum();
        }
        self.frame += 1;
        self.is_unfinished = false;
    }

    /// Whether the same frame, drawn again, would show more.
    pub(super) fn is_unfinished(&self) -> bool {
        self.is_unfinished
    }

    pub(super) fn can_fold(&self, entry: EntryId) -> bool {
        self.cells.get(&entry).is_some_and(|kept| kept.cell.can_fold)
    }

    #[cfg(test)]
    pub(super) fn laid_out(&self) -> usize {
        self.laid_out
    }

    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.cells.len()
    }
}

/// A view's cells, in one frame.
pub(super) struct CellLayout<'a> {
    view: &'a View,
    cache: &'a mut Cache,
    folds: &'a Folds,
    seen: &'a ModelVisibility,
    blink: bool,
    budget: Budget,
}

impl<'a> CellLayout<'a> {
    pub(super) fn new(
        view: &'a View,
        now_ms: u64,
        cache: &'a mut Cache,
        folds: &'a Folds,
        seen: &'a ModelVisibility,
    ) -> Self {
        Self { view, cache, folds, seen, blink: now_ms / BLINK_MS % 2 == 1, budget: Budget::of(PARSED_LINES) }
    }

    /// The index of what is live.
    pub(super) fn live(&self) -> usize {
        self.view.entries.len()
    }

    /// Behind the last line.
    pub(super) fn end(&self) -> Spot {
        Spot { index: self.live() + 1, line: 0 }
    }

    pub(super) fn entry(&self, index: usize) -> Option<EntryId> {
        self.view.entries.get(index).map(|entry| entry.id)
    }

    /// Where an entry is that was at `index`; what was live there may be an entry by now.
    pub(super) fn index_of(&self, index: usize, entry: Option<EntryId>) -> Option<usize> {
        match entry {
            None => (index <= self.live()).then_some(index),
            Some(entry) if self.entry(index) == Some(entry) => Some(index),
            Some(entry) => self.view.entries.iter().position(|one| one.id == entry),
        }
    }

    /// The cell at `index`; nothing behind the last one.
    pub(super) fn cell(&mut self, index: usize) -> Rc<Cell> {
        let Some(entry) = self.entry(index) else {
            return if index == self.live() { self.live_cell() } else { Rc::default() };
        };
        let fold = if self.folds.is_open(entry) { Fold::Open } else { Fold::Folded };
        let standing = (self.seen.of(index), self.seen.below(index).len());
        let frame = self.cache.frame;
        if let Some(kept) = self.cache.cells.get_mut(&entry)
            && (kept.fold, kept.standing) == (fold, standing)
            && (!kept.is_unfinished || kept.frame == frame)
        {
            kept.frame = frame;
            return Rc::clone(&kept.cell);
        }
        let mut ink = CellWriter::new(self.cache.width, self.cache.theme, fold);
        cell::write(&self.view.entries, index, self.seen, &mut ink);
        let cell = Rc::new(ink.finish());
        let is_unfinished = self.budget.was_exceeded();
        self.cache.is_unfinished |= is_unfinished;
        self.cache.laid_out += 1;
        self.cache.lines += cell.lines.len();
        let kept = CachedCell { cell: Rc::clone(&cell), fold, standing, is_unfinished, frame };
        if let Some(old) = self.cache.cells.insert(entry, kept) {
            self.cache.lines -= old.cell.lines.len();
        }
        cell
    }

    fn live_cell(&mut self) -> Rc<Cell> {
        let view = self.view;
        let output = view.calls.iter().map(|call| call.output.len()).sum();
        let blink = self.blink && !view.calls.is_empty();
        let sizes = (view.coming.text.len(), view.coming.thinking.len());
        let is_open = self.folds.all_open;
        let key = (view.seq, view.entries.len(), sizes.0, sizes.1, view.calls.len(), output, blink, is_open);
        if let Some(kept) = &self.cache.live
            && kept.key == key
            && (!kept.is_unfinished || kept.frame == self.cache.frame)
        {
            return Rc::clone(&kept.cell);
        }
        let fold = if is_open { Fold::Open } else { Fold::Folded };
        let mut ink = CellWriter::new(self.cache.width, self.cache.theme, fold);
        streaming::write(view, blink, &mut ink);
        let cell = Rc::new(ink.finish());
        self.cache.laid_out += 1;
        let is_unfinished = self.budget.was_exceeded();
        self.cache.is_unfinished |= is_unfinished;
        self.cache.live = Some(LiveCell { key, frame: self.cache.frame, is_unfinished, cell: Rc::clone(&cell) });
        cell
    }

    /// `count` lines up from `spot`, or the first line.
    pub(super) fn up(&mut self, mut spot: Spot, mut count: usize) -> Spot {
        while count > spot.line {
            if spot.index == 0 {
                return Spot::default();
            }
            count -= spot.line;
            spot.index -= 1;
            spot.line = self.cell(spot.index).lines.len();
        }
        spot.line -= count;
        spot
    }

    /// `count` lines down from `spot`, or the end.
    pub(super) fn down(&mut self, mut spot: Spot, mut count: usize) -> Spot {
        while spot.index <= self.live() {
            let left = self.cell(spot.index).lines.len().saturating_sub(spot.line);
            if count < left {
                spot.line += count;
                return spot;
            }
            count -= left;
            spot = Spot { index: spot.index + 1, line: 0 };
        }
        spot
    }
}
