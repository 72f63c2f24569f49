//! Which part of a conversation a summary is to stand for. Pure.

use super::context::{self, Shown};
use super::entry::{Body, Entry, SummaryBy};
use super::writer::unanswered;
use crate::base::id::EntryId;

/// A part of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryRange {
    /// Everything.
    All,
    /// From a prompt on, or what comes after any other entry.
    From(EntryId),
    /// What is before a prompt, or up to any other entry.
    UpTo(EntryId),
    /// What comes after an entry, whatever that is.
    After(EntryId),
}

/// The first and the last entry of a part, wide enough that no call is cut off from its results and no earlier summary is cut in two.
/// `None` if there is nothing in it that the model sees, or nothing but a summary.
pub(super) fn range(entries: &[Entry], span: EntryRange) -> Option<(EntryId, EntryId)> {
    let shown = context::shown(entries);
    let last = entries.len().checked_sub(1)?;
    let position = |id: EntryId| entries.iter().position(|entry| entry.id == id);
    let is_prompt = |at: usize| matches!(entries[at].body, Body::Prompt { .. });
    let (from, to) = match span {
        EntryRange::All => (0, last),
        EntryRange::From(id) => match position(id)? {
            at if is_prompt(at) => (at, last),
            at => (settled(entries, at) + 1, last),
        },
        EntryRange::UpTo(id) => match position(id)? {
            at if is_prompt(at) => (0, at.checked_sub(1)?),
            at => (0, settled(entries, at)),
        },
        EntryRange::After(id) => (position(id)? + 1, last),
    };
    let (from, to) = widened(entries, &shown, from, to);
    let seen = (from..=to).filter(|at| is_seen(&entries[*at], shown[*at]));
    let is_news = seen.clone().count() > 1 || seen.clone().any(|at| !matches!(shown[at], Shown::Summary(_)));
    is_news.then(|| (entries[from].id, entries[to].id))
}

/// The last entry of the round that entry `at` is in.
fn settled(entries: &[Entry], at: usize) -> usize {
    (at..entries.len()).find(|at| unanswered(&entries[..=*at]).is_empty()).unwrap_or(at)
}

/// The same with all of each summary that begins or ends in it. Part of one would be lost otherwise: the text is shown once.
fn widened(entries: &[Entry], shown: &[Shown], mut from: usize, mut to: usize) -> (usize, usize) {
    let positions = context::positions_of(entries);
    for shown in shown {
        let Shown::Summary(summary) = shown else { continue };
        let Body::Summary { from: first, to: last, by: SummaryBy::User | SummaryBy::Compaction, .. } =
            &entries[*summary].body
        else {
            continue;
        };
        if let (Some(&first), Some(&last)) = (positions.get(first), positions.get(last))
            && first <= to
            && last >= from
        {
            (from, to) = (from.min(first), to.max(last));
        }
    }
    (from, to)
}

fn is_seen(entry: &Entry, shown: Shown) -> bool {
    match shown {
        Shown::Hidden => false,
        Shown::Summary(_) | Shown::Result => true,
        Shown::Entry => matches!(entry.body, Body::Prompt { .. } | Body::Reply { .. } | Body::Note { .. }),
    }
}
