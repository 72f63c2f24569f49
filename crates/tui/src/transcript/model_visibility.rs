//! Which entries the model no longer sees, because they were cleared or summarised, and where each summary is shown: after the last entry that
//! it replaces, which may be far above the place where it was written.
//!
//! Reads only the entries that were added since the last frame, so that a long conversation costs nothing.

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;

use retake_engine::id::EntryId;
use retake_engine::session::entry::{Body, Entry, SummaryBy};

/// Which entries are out of the model's sight.
#[derive(Debug, Default)]
pub(super) struct ModelVisibility {
    /// How many entries were looked at, and the last of them.
    known: Option<(usize, EntryId)>,
    /// Everything before is cleared.
    cleared: usize,
    summarised: Vec<RangeInclusive<usize>>,
    /// Summaries that stand further up, by the index of the last entry that each replaces.
    placed: HashMap<usize, Vec<usize>>,
    moved: HashSet<usize>,
}

/// Whether the model sees an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    Seen,
    /// It was cleared, or a summary replaces it.
    Unseen,
}

impl ModelVisibility {
    /// Takes in what was added.
    pub(super) fn update(&mut self, entries: &[Entry]) {
        let known = self.known.filter(|(count, last)| entries.get(count - 1).is_some_and(|entry| entry.id == *last));
        let from = match known {
            Some((count, _)) => count,
            None => {
                *self = Self::default();
                0
            }
        };
        for (index, entry) in entries.iter().enumerate().skip(from) {
            if let Body::Summary { from, to, .. } = &entry.body {
                let range = range(&entries[..index], *from, *to);
                self.place(index, range.filter(|range| range.end() + 1 != index));
            }
            match &entry.body {
                Body::Cleared => self.cleared = index,
                // A model that goes back on its own keeps the prompts.
                Body::Summary { by: SummaryBy::Model { .. }, .. } => {}
                Body::Summary { from, to, .. } => self.summarised.extend(range(&entries[..index], *from, *to)),
                _ => {}
            }
        }
        self.known = entries.last().map(|last| (entries.len(), last.id));
    }

    fn place(&mut self, summary: usize, range: Option<RangeInclusive<usize>>) {
        if let Some(range) = range {
            self.placed.entry(*range.end()).or_default().push(summary);
            self.moved.insert(summary);
        }
    }

    /// The summaries that stand right below this entry.
    pub(super) fn below(&self, index: usize) -> &[usize] {
        self.placed.get(&index).map_or(&[], Vec::as_slice)
    }

    /// Whether this is a summary that stands further up.
    pub(super) fn is_moved(&self, index: usize) -> bool {
        self.moved.contains(&index)
    }

    /// Whether the model still sees an entry.
    pub(super) fn of(&self, index: usize) -> Sight {
        let is_unseen = index < self.cleared || self.summarised.iter().any(|range| range.contains(&index));
        if is_unseen { Sight::Unseen } else { Sight::Seen }
    }
}

/// Where the entries from `from` to `to` are.
pub(super) fn range(entries: &[Entry], from: EntryId, to: EntryId) -> Option<RangeInclusive<usize>> {
    let last = entries.iter().rposition(|entry| entry.id == to)?;
    let first = entries[..=last].iter().rposition(|entry| entry.id == from)?;
    Some(first..=last)
}
