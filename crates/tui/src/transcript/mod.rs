//! The conversation as it is drawn: cells, one for each entry, and below them what is live.
//!
//! A frame costs as much as the screen is high, however long the conversation is: cells are laid out from the end, or from the place that
//! was scrolled to, until the area is full, and kept. While the end is shown it is followed; while something else is shown it stays where
//! it is, whatever comes below. Nothing here asks the session for anything or decides what a key does.

mod cell;
mod cell_writer;
mod edits;
mod layout;
mod model_visibility;
mod prompt;
mod reply;
mod result;
mod streaming;

use std::collections::HashSet;
use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use retake_agent::view::View;
use retake_engine::id::EntryId;

use self::layout::{Cache, CellLayout, Spot};
use self::model_visibility::ModelVisibility;
use crate::theme::Theme;

/// What is shown of a conversation, and how.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    place: ScrollPosition,
    /// Lines to go down, or up if negative, when the next frame tells where that is.
    pending: i64,
    folds: Folds,
    cache: Cache,
    seen: ModelVisibility,
    /// Which rows of the last frame show which cell.
    shown: Vec<(Range<u16>, EntryId)>,
    height: u16,
    top: Option<Anchor>,
}

/// Where the first row of the area is.
#[derive(Clone, Copy, Debug, Default)]
enum ScrollPosition {
    /// Wherever the last row shows the last line.
    #[default]
    End,
    Start,
    At(Anchor),
}

/// A line that stays in the first row.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    spot: Spot,
    /// `None` for what is live, which becomes the entry at this index.
    entry: Option<EntryId>,
    width: u16,
    /// How high its cell was.
    height: usize,
}

/// What is unfolded.
#[derive(Debug, Default)]
struct Folds {
    all_open: bool,
    /// Those that are not like the others.
    others: HashSet<EntryId>,
}

impl Folds {
    fn is_open(&self, entry: EntryId) -> bool {
        self.all_open != self.others.contains(&entry)
    }
}

impl Transcript {
    /// The end, everything folded.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Draws what fits into `area`. `now_ms` may begin anywhere; what runs blinks by it.
    pub(crate) fn draw(&mut self, view: &View, now_ms: u64, area: Rect, buf: &mut Buffer, theme: &Theme) {
        self.height = area.height;
        self.shown.clear();
        if area.is_empty() {
            return;
        }
        self.seen.update(&view.entries);
        self.cache.begin(area.width, *theme);
        let mut sheet = CellLayout::new(view, now_ms, &mut self.cache, &self.folds, &self.seen);
        let end = sheet.up(sheet.end(), usize::from(area.height));
        let from = match self.place {
            ScrollPosition::End => end,
            ScrollPosition::Start => Spot::default(),
            ScrollPosition::At(anchor) => found(&mut sheet, &anchor, area.width).unwrap_or(end),
        };
        let steps = usize::try_from(self.pending.unsigned_abs()).unwrap_or(usize::MAX);
        let wanted = if self.pending < 0 { sheet.up(from, steps) } else { sheet.down(from, steps) };
        self.pending = 0;
        let top = wanted.min(end);
        let height = sheet.cell(top.index).lines.len();
        let entry = view.entries.get(top.index).map(|entry| entry.id);
        let anchor = Anchor { spot: top, entry, width: area.width, height };
        self.place = if wanted < end { ScrollPosition::At(anchor) } else { ScrollPosition::End };
        self.top = Some(anchor);
        fill(&mut sheet, top, area, buf, &mut self.shown);
    }

    /// Whether the next frame would show more of the same: there was too much code to highlight in one, or the grammars are not there yet.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.cache.is_unfinished()
    }

    /// Goes down, or up if `lines` is negative.
    pub(crate) fn scroll(&mut self, lines: i32) {
        self.pending += i64::from(lines);
    }

    /// Goes down or up by what the area shows, less two lines to find the way.
    pub(crate) fn page(&mut self, pages: i32) {
        self.pending += i64::from(pages) * i64::from(self.height.saturating_sub(2).max(1));
    }

    /// Goes to the first line.
    #[expect(clippy::wrong_self_convention, reason = "goes there; nothing is converted")]
    pub(crate) fn to_top(&mut self) {
        (self.place, self.pending) = (ScrollPosition::Start, 0);
    }

    /// Goes to the last line, and follows it.
    #[expect(clippy::wrong_self_convention, reason = "goes there; nothing is converted")]
    pub(crate) fn to_bottom(&mut self) {
        (self.place, self.pending) = (ScrollPosition::End, 0);
    }

    /// Whether the last line is shown and followed.
    pub(crate) fn is_at_bottom(&self) -> bool {
        matches!(self.place, ScrollPosition::End) && self.pending >= 0
    }

    /// Unfolds everything, or folds it.
    pub(crate) fn toggle_all(&mut self) {
        self.folds.all_open = !self.folds.all_open;
        self.folds.others.clear();
    }

    /// Unfolds or folds what is in this row of the area; whether there is anything. The rows above it stay where they are.
    pub(crate) fn click(&mut self, row_in_area: u16) -> bool {
        let Some((_, entry)) = self.shown.iter().find(|(rows, _)| rows.contains(&row_in_area)) else { return false };
        if !self.cache.can_fold(*entry) {
            return false;
        }
        if !self.folds.others.remove(entry) {
            self.folds.others.insert(*entry);
        }
        if let Some(top) = self.top {
            self.place = ScrollPosition::At(top);
        }
        true
    }

    /// How many cells were laid out so far.
    #[cfg(test)]
    pub(crate) fn laid_out(&self) -> usize {
        self.cache.laid_out()
    }

    /// How many cells are kept.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> usize {
        self.cache.kept()
    }
}

/// Where `anchor` is now; `None` if its entry has left the conversation.
fn found(sheet: &mut CellLayout<'_>, anchor: &Anchor, width: u16) -> Option<Spot> {
    let index = sheet.index_of(anchor.spot.index, anchor.entry)?;
    let height = sheet.cell(index).lines.len();
    let line = match anchor.width == width {
        true => anchor.spot.line,
        // The same part of the text, which takes another number of lines now.
        false => anchor.spot.line * height / anchor.height.max(1),
    };
    Some(Spot { index, line: line.min(height.saturating_sub(1)) })
}

fn fill(sheet: &mut CellLayout<'_>, top: Spot, area: Rect, buf: &mut Buffer, shown: &mut Vec<(Range<u16>, EntryId)>) {
    let (mut y, mut skip) = (area.top(), top.line);
    for index in top.index..=sheet.live() {
        let cell = sheet.cell(index);
        let start = y;
        for line in cell.lines.iter().skip(skip) {
            if y == area.bottom() {
                break;
            }
            buf.set_line(area.x, y, line, area.width);
            y += 1;
        }
        if let Some(entry) = sheet.entry(index) {
            shown.push((start - area.top()..y - area.top(), entry));
        }
        if y == area.bottom() {
            return;
        }
        skip = 0;
    }
}

#[cfg(test)]
mod tests;
