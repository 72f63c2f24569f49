//! The strategies that could yield an inner session that holds what is retained, best first. Pure.

use retake_engine::id::EntryId;
use retake_engine::session::entry::{Block, Body, EndReason, Entry};

use crate::proxy::log_writer::{chain, spoken};
use crate::proxy::session_map::{InnerSession, Mapping};

/// What the inner agent offers, as far as is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::proxy) struct Offer {
    /// Sessions can be loaded.
    pub(in crate::proxy) load: bool,
    /// Sessions can be closed.
    pub(in crate::proxy) close: bool,
    /// The head of a session can be forked.
    pub(in crate::proxy) fork: bool,
    /// A session can be forked at a message.
    pub(in crate::proxy) fork_at: ForkAt,
    /// It knows `_rewind/to`; `None` if that is not known.
    pub(in crate::proxy) rewind_to: Option<bool>,
    /// It knows `qwen/control/session/rewind`; `None` if that is not known.
    pub(in crate::proxy) turn_rewind: Option<bool>,
    /// Prompts may have images.
    pub(in crate::proxy) images: bool,
}

/// Whether a session can be forked at a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::proxy) enum ForkAt {
    #[default]
    Unknown,
    /// It was refused once, and the message was named.
    Likely,
    /// It was refused again.
    Sure,
    No,
}

impl ForkAt {
    /// It was refused, and the message was named.
    pub(super) fn seen_again(self) -> Self {
        match self {
            Self::Unknown => Self::Likely,
            Self::Likely | Self::Sure => Self::Sure,
            Self::No => Self::No,
        }
    }

    pub(super) fn is_likely(self) -> bool {
        matches!(self, Self::Likely | Self::Sure)
    }
}

/// A way to have an inner session that holds what is retained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::proxy) enum Way {
    /// There is one.
    Kept { inner: String },
    /// Nothing is retained: a new one.
    New,
    /// A fork that ends with a message of the agent's.
    ForkAt { from: String, message: String },
    /// The same one, cut before a prompt by its id; `None` if that has to be found out first.
    RewindTo { inner: String, prompt: EntryId },
    /// The same one, cut before a turn by its number.
    TurnRewind { inner: String, turn: usize },
    /// A new one that is told everything.
    Transcript,
}

impl Way {
    /// The session that has to hold what it is known to hold.
    pub(in crate::proxy) fn relies_on(&self) -> Option<&str> {
        match self {
            Self::Kept { inner } | Self::RewindTo { inner, .. } | Self::TurnRewind { inner, .. } => Some(inner),
            Self::ForkAt { from, .. } => Some(from),
            Self::New | Self::Transcript => None,
        }
    }

    /// What the client is told was used.
    pub(in crate::proxy) fn name(&self) -> &'static str {
        match self {
            Self::Kept { .. } => "kept_session",
            Self::New => "new_session",
            Self::ForkAt { .. } => "fork_at_message",
            Self::RewindTo { .. } => "rewind_to",
            Self::TurnRewind { .. } => "turn_rewind",
            Self::Transcript => "transcript",
        }
    }
}

/// The part of `path` that an agent can be cut to: not inside a turn, not just after a prompt, and nothing of a turn of which nobody
/// knows how it ended.
pub(super) fn base<'a>(known: &Mapping, all: &[Entry], path: &'a [Entry]) -> &'a [Entry] {
    // What a session holds can be cut to as it is, be it an unanswered prompt.
    if known.inners.values().any(|inner| holds(inner, path)) {
        return path;
    }
    let under_way = known.inners.get(&known.current).and_then(|inner| inner.under_way);
    if let Some(at) = under_way.and_then(|prompt| path.iter().position(|entry| entry.id == prompt)) {
        return spoken(&path[..at]);
    }
    let Some(last) = path.last() else { return path };
    let goes_on = |entry: &Entry| {
        entry.parent == Some(last.id) && matches!(entry.body, Body::Reply { .. } | Body::ToolResult { .. })
    };
    let is_prompt = |entry: &Entry| matches!(entry.body, Body::Prompt { .. });
    if !is_prompt(last) && !all.iter().any(goes_on) {
        return path;
    }
    let before = path.iter().rposition(is_prompt).unwrap_or(0);
    spoken(&path[..before])
}

/// What could be tried, the best first; never empty.
pub(super) fn strategies(known: &Mapping, offer: Offer, all: &[Entry], base: &[Entry]) -> Vec<Way> {
    let mut ways = Vec::new();
    let mut keepers: Vec<&String> =
        known.inners.iter().filter(|(_, inner)| holds(inner, base)).map(|(id, _)| id).collect();
    keepers.sort_by_key(|id| (**id != known.current, (*id).clone()));
    ways.extend(keepers.into_iter().map(|id| Way::Kept { inner: id.clone() }));
    if base.is_empty() {
        ways.push(Way::New);
        return ways;
    }
    let inner = &known.current;
    if let Some(next) = next_turn(known, inner, all, base) {
        if offer.fork_at.is_likely()
            && let Some(message) = anchor(known, inner, base)
        {
            ways.push(Way::ForkAt { from: inner.clone(), message: message.to_owned() });
        }
        if offer.rewind_to != Some(false) {
            ways.push(Way::RewindTo { inner: inner.clone(), prompt: next });
        }
        // Whether an agent counts a prompt that it failed at, nobody knows.
        if offer.turn_rewind != Some(false) && !has_failed(base) {
            ways.push(Way::TurnRewind { inner: inner.clone(), turn: turns(known, inner, base).count() });
        }
    }
    ways.push(Way::Transcript);
    ways
}

/// Whether a session holds all of `base` and nothing else; what agents say after the end of a turn is theirs.
pub(super) fn holds(inner: &InnerSession, base: &[Entry]) -> bool {
    match inner.holds {
        _ if inner.under_way.is_some() => false,
        None => false,
        Some(None) => base.is_empty(),
        Some(Some(head)) => base
            .iter()
            .position(|entry| entry.id == head)
            .is_some_and(|at| !base[at + 1..].iter().any(|entry| matches!(entry.body, Body::Prompt { .. }))),
    }
}

/// Whether a turn of `entries` has failed.
fn has_failed(entries: &[Entry]) -> bool {
    entries.iter().any(|entry| matches!(&entry.body, Body::Ended { reason: EndReason::Failed { .. } }))
}

/// The prompts of `entries` that are turns of an inner session's own.
pub(super) fn turns<'a>(
    known: &'a Mapping,
    inner: &'a str,
    entries: &'a [Entry],
) -> impl Iterator<Item = EntryId> + 'a {
    let is_own = move |entry: &&Entry| matches!(entry.body, Body::Prompt { .. }) && !known.was_told(inner, entry.id);
    entries.iter().filter(is_own).map(|entry| entry.id)
}

/// The prompt with which an inner session goes on after `base`, if it has all of that as turns of its own.
pub(super) fn next_turn(known: &Mapping, inner: &str, all: &[Entry], base: &[Entry]) -> Option<EntryId> {
    let held_by = known.inners.get(inner)?;
    let held = chain(all, Some(held_by.holds??));
    let last = base.last()?.id;
    // What was told as a transcript came with the next prompt, and would go with it.
    let is_told = |prompt: &Entry| known.was_told(inner, prompt.id);
    if base.iter().rfind(|entry| matches!(entry.body, Body::Prompt { .. })).is_some_and(is_told) {
        return None;
    }
    let at = held.iter().position(|entry| entry.id == last)?;
    let prompts = held[at + 1..].iter().filter(|entry| matches!(entry.body, Body::Prompt { .. }));
    let mut later = prompts.map(|entry| entry.id).chain(held_by.under_way);
    let next = later.next()?;
    let is_own = !known.was_told(inner, next) && !later.any(|prompt| known.was_told(inner, prompt));
    is_own.then_some(next)
}

/// What an inner session calls the last message of the last turn of `base`.
fn anchor<'a>(known: &'a Mapping, inner: &str, base: &[Entry]) -> Option<&'a str> {
    let of_turn = base.iter().rev().take_while(|entry| !matches!(entry.body, Body::Prompt { .. }));
    let mut messages = of_turn.filter(|entry| match &entry.body {
        Body::Reply { blocks, .. } => blocks.iter().any(|block| matches!(block, Block::Text { .. })),
        _ => false,
    });
    known.inner_id(inner, messages.next()?.id)
}
