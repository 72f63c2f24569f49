//! What the model should see, worked out the slow way: a list that each entry changes, with a copy of it for every moment.
//!
//! The rules, in words. What is said is added. A clear leaves instructions and nothing else. A summary takes the place of whatever is
//! seen of its range, instructions excepted. When the model goes back to a checkpoint, it sees what it saw then; of what came since up
//! to the end of that round it sees what the user said, what Retake noted, and what came of the calls beside the one that asked for it;
//! and last its report.

use std::ops::RangeInclusive;

use retake_engine::id::EntryId;
use retake_engine::session::EntryRange;
use retake_engine::session::context::{Context, Message, RETAKE};
use retake_engine::session::entry::{Block, Body, CallId, Details, Entry, Outcome, Part, SummaryBy};

/// One message, without what it is framed with.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Told {
    Said(Vec<Part>),
    Answer(Vec<Block>),
    Results(Vec<(CallId, Outcome, Vec<Part>)>),
    /// What came of a call that is not told itself.
    Alone(Vec<Part>),
    /// The last paragraph of what Retake says.
    Framed(String),
}

/// Something that is seen.
#[derive(Clone, Copy)]
struct Seen<'a> {
    /// The position of the entry in whose place it is.
    place: usize,
    entry: &'a Entry,
}

impl Seen<'_> {
    fn stays(&self) -> bool {
        matches!(self.entry.body, Body::Instructions { .. })
    }

    /// The range of a summary that somebody else than the model wanted.
    fn stands_for(&self, entries: &[Entry]) -> Option<RangeInclusive<usize>> {
        match &self.entry.body {
            Body::Summary { from, to, by: SummaryBy::User | SummaryBy::Compaction, .. } => {
                Some(position(entries, *from)..=position(entries, *to))
            }
            _ => None,
        }
    }
}

fn position(entries: &[Entry], id: EntryId) -> usize {
    entries.iter().position(|entry| entry.id == id).expect("it is part of the conversation")
}

fn seen(entries: &[Entry]) -> Vec<Seen<'_>> {
    let mut now: Vec<Seen<'_>> = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        let this = Seen { place: at, entry };
        match &entry.body {
            Body::Prompt { .. } | Body::Reply { .. } | Body::Note { .. } | Body::Instructions { .. } => now.push(this),
            Body::Cleared => now.retain(Seen::stays),
            Body::Summary { from, to, by: SummaryBy::User | SummaryBy::Compaction, .. } => {
                let range = position(entries, *from)..=position(entries, *to);
                now.retain(|seen| seen.stays() || !range.contains(&seen.place));
                let place = range.into_iter().find(|at| !Seen { place: *at, entry: &entries[*at] }.stays());
                if let Some(place) = place {
                    now.push(Seen { place, entry });
                    now.sort_by_key(|seen| seen.place);
                }
            }
            Body::Summary { from, to, by: SummaryBy::Model { call, .. }, .. } => {
                let (from, to) = (position(entries, *from), position(entries, *to));
                let since = now.split_off(now.partition_point(|seen| seen.place <= to));
                now.retain(|seen| seen.place < from);
                now.extend(left_behind(entries, from, to, call));
                now.extend(since);
                now.push(this);
            }
            Body::ToolResult { .. } | Body::Approved { .. } | Body::Ended { .. } => {}
        }
    }
    now
}

/// What stays of what the model leaves behind.
fn left_behind<'a>(entries: &'a [Entry], from: usize, to: usize, asked: &CallId) -> Vec<Seen<'a>> {
    let last_reply = (from..=to).filter(|at| matches!(entries[*at].body, Body::Reply { .. })).max().unwrap();
    let stays = |at: &usize| match &entries[*at].body {
        Body::Prompt { .. } | Body::Note { .. } | Body::Instructions { .. } => true,
        Body::ToolResult { call, .. } => *at > last_reply && call != asked,
        _ => false,
    };
    (from..=to).filter(stays).map(|place| Seen { place, entry: &entries[place] }).collect()
}

/// Everything that the model should be told after its first instructions.
pub(super) fn told(entries: &[Entry]) -> Vec<Told> {
    let mut told = Vec::new();
    for Seen { place, entry } in seen(entries) {
        match &entry.body {
            Body::Prompt { parts } => told.push(Told::Said(parts.clone())),
            Body::Reply { blocks, .. } => {
                told.push(Told::Answer(blocks.clone()));
                let results = results(blocks, &entries[place + 1..]);
                told.extend((!results.is_empty()).then_some(Told::Results(results)));
            }
            Body::ToolResult { parts, .. } => told.push(Told::Alone(parts.clone())),
            Body::Instructions { source, .. } if source == RETAKE => {}
            Body::Note { text, .. } | Body::Instructions { text, .. } | Body::Summary { text, .. } => {
                told.push(Told::Framed(last_paragraph(text)));
            }
            Body::Cleared | Body::Approved { .. } | Body::Ended { .. } => unreachable!("nobody sees it"),
        }
    }
    told
}

/// The model's first instructions.
pub(super) fn system(entries: &[Entry]) -> String {
    let texts = entries.iter().filter_map(|entry| match &entry.body {
        Body::Instructions { source, text } if source == RETAKE => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n\n")
}

fn results(blocks: &[Block], after: &[Entry]) -> Vec<(CallId, Outcome, Vec<Part>)> {
    let next = after.iter().position(|entry| matches!(entry.body, Body::Reply { .. })).unwrap_or(after.len());
    let result = |wanted: &CallId| {
        let found = after[..next].iter().find_map(|entry| match &entry.body {
            Body::ToolResult { call, outcome, parts, .. } if call == wanted => Some((*outcome, parts.clone())),
            _ => None,
        });
        let (outcome, parts) = found.unwrap_or((Outcome::Interrupted, vec![Part::text("There is no result.")]));
        (wanted.clone(), outcome, parts)
    };
    let calls = blocks.iter().filter_map(|block| match block {
        Block::Call { id, .. } => Some(id),
        _ => None,
    });
    calls.map(result).collect()
}

/// What a context of the engine's tells.
pub(super) fn heard(context: &Context<'_>) -> Vec<Told> {
    let one = |message: &Message<'_>| match message {
        Message::User { parts } => match (framed(&parts[0]), &parts[1..]) {
            (None, _) => Told::Said(parts.to_vec()),
            (Some(text), []) => Told::Framed(last_paragraph(text)),
            (Some(_), rest) => Told::Alone(rest.to_vec()),
        },
        Message::Assistant { blocks, .. } => Told::Answer(blocks.to_vec()),
        Message::Results { results } => {
            let result = |result: &retake_engine::session::context::CallResult<'_>| {
                (result.call.clone().into_owned(), result.outcome, result.parts.to_vec())
            };
            Told::Results(results.iter().map(result).collect())
        }
    };
    context.messages.iter().map(one).collect()
}

fn framed(part: &Part) -> Option<&str> {
    let Part::Text { text } = part else { return None };
    text.strip_prefix("<retake-note>\n")?.strip_suffix("\n</retake-note>")
}

fn last_paragraph(text: &str) -> String {
    text.rsplit("\n\n").next().unwrap_or_default().to_owned()
}

/// The end of the round that an entry is in.
fn round_end(entries: &[Entry], mut at: usize) -> usize {
    let is_round = |entry: &Entry| matches!(entry.body, Body::ToolResult { .. } | Body::Approved { .. });
    while entries.get(at + 1).is_some_and(is_round) {
        at += 1;
    }
    at
}

/// What a summary of `span` should stand for.
pub(super) fn range(entries: &[Entry], span: EntryRange) -> Option<(EntryId, EntryId)> {
    let is_prompt = |at: usize| matches!(entries[at].body, Body::Prompt { .. });
    let (mut from, mut end) = match span {
        EntryRange::All => (0, entries.len()),
        EntryRange::From(id) => match position(entries, id) {
            at if is_prompt(at) => (at, entries.len()),
            at => (round_end(entries, at) + 1, entries.len()),
        },
        EntryRange::UpTo(id) => match position(entries, id) {
            at if is_prompt(at) => (0, at),
            at => (0, round_end(entries, at) + 1),
        },
        EntryRange::After(id) => (position(entries, id) + 1, entries.len()),
    };
    let seen = seen(entries);
    loop {
        let before = (from, end);
        for range in seen.iter().filter_map(|seen| seen.stands_for(entries)) {
            if *range.start() < end && *range.end() >= from {
                (from, end) = (from.min(*range.start()), end.max(range.end() + 1));
            }
        }
        if before == (from, end) {
            break;
        }
    }
    let mut news = seen.iter().filter(|seen| !seen.stays() && (from..end).contains(&seen.place));
    let is_summary = |seen: &Seen<'_>| matches!(seen.entry.body, Body::Summary { .. });
    let has_news = match (news.next(), news.next()) {
        (None, _) => false,
        (Some(only), None) => !is_summary(only),
        (Some(_), Some(_)) => true,
    };
    has_news.then(|| (entries[from].id, entries[end - 1].id))
}

/// The checkpoints that the model can go back to, each with the first entry that would be left behind, or nothing if none has come yet.
pub(super) fn open_checkpoints(entries: &[Entry]) -> Vec<(EntryId, Option<EntryId>)> {
    let is_checkpoint =
        |at: &usize| matches!(&entries[*at].body, Body::ToolResult { details: Some(Details::Checkpoint { .. }), .. });
    let closes = |at: usize, later: &Entry| match &later.body {
        Body::Cleared => true,
        Body::Summary { from, to, by: SummaryBy::User, .. } => {
            (position(entries, *from)..=position(entries, *to)).contains(&at)
        }
        // Those that were made since then too.
        Body::Summary { from, to, by: SummaryBy::Model { checkpoint, .. }, .. } => {
            entries[at].id == *checkpoint || (position(entries, *from)..=position(entries, *to)).contains(&at)
        }
        _ => false,
    };
    let made = (0..entries.len()).filter(is_checkpoint);
    let open = made.filter(|at| !entries[*at..].iter().any(|later| closes(*at, later)));
    open.map(|at| (entries[at].id, entries.get(round_end(entries, at) + 1).map(|entry| entry.id))).collect()
}
