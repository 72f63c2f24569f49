//! The context: what the model is to be told, made from the retained entries alone.
//!
//! [`build`] is a pure function, and as long as nothing is cleared or summarised the messages of the first entries are the first
//! messages: nothing that was said once is said differently later.

use std::borrow::Cow;
use std::collections::HashMap;

use super::entry::{Block, Body, CallId, Entry, Outcome, Part, SummaryBy};
use crate::base::id::EntryId;

/// Who the instructions for the model as a whole are from.
pub const RETAKE: &str = "retake";

/// What the model is to be told; borrowed from the entries wherever it is as they say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Context<'a> {
    /// Instructions of Retake itself.
    pub system: String,
    /// Everything else, in order.
    pub messages: Vec<Message<'a>>,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// From the user, or from Retake.
    User {
        /// In order.
        parts: Cow<'a, [Part]>,
    },
    /// An answer of the model.
    Assistant {
        /// In order.
        blocks: Cow<'a, [Block]>,
        /// The model that gave it, as `provider/name`: what it thought makes sense to that provider only.
        model: Cow<'a, str>,
    },
    /// What came of the calls of the answer before it, of all of them.
    Results {
        /// In the order of the calls.
        results: Vec<CallResult<'a>>,
    },
}

/// What came of one tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallResult<'a> {
    /// The call.
    pub call: Cow<'a, CallId>,
    /// How it went.
    pub outcome: Outcome,
    /// What the model is told.
    pub parts: Cow<'a, [Part]>,
}

/// Makes the context of `entries`, which are all from the first one to the head.
pub fn build(entries: &[Entry]) -> Context<'_> {
    build_part(entries, entries.len())
}

/// The same for the first `count` of `entries`, as they are seen now.
pub fn build_part(entries: &[Entry], count: usize) -> Context<'_> {
    let mut context = Context::default();
    for (at, shown) in shown(entries).into_iter().enumerate().take(count) {
        match shown {
            Shown::Hidden => {}
            Shown::Entry => add(&mut context, entries, at),
            Shown::Result => context.messages.extend(lone_result(&entries[at])),
            Shown::Summary(summary) => context.messages.extend(summarised(&entries[summary])),
        }
    }
    context
}

/// What the model sees in an entry's place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    Entry,
    Hidden,
    /// The result of a call that is hidden itself.
    Result,
    /// The summary with this position.
    Summary(usize),
}

/// What the model sees in the place of each entry.
pub(super) fn shown(entries: &[Entry]) -> Vec<Shown> {
    let mut shown = vec![Shown::Entry; entries.len()];
    let mut positions = None;
    for (at, entry) in entries.iter().enumerate() {
        match &entry.body {
            Body::Cleared => hide(entries, &mut shown[..at], 0),
            Body::Summary { from, to, by, .. } => {
                let positions = positions.get_or_insert_with(|| positions_of(entries));
                let (Some(&from), Some(&to)) = (positions.get(from), positions.get(to)) else { continue };
                match by {
                    SummaryBy::User | SummaryBy::Compaction => {
                        hide(entries, &mut shown[..=to], from);
                        let first = (from..=to).find(|at| shown[*at] == Shown::Hidden);
                        first.into_iter().for_each(|first| shown[first] = Shown::Summary(at));
                    }
                    SummaryBy::Model { call, .. } => {
                        go_back(entries, &mut shown, from, to, call);
                        shown[at] = Shown::Summary(at);
                    }
                }
            }
            _ => {}
        }
    }
    shown
}

pub(super) fn positions_of(entries: &[Entry]) -> HashMap<EntryId, usize> {
    entries.iter().enumerate().map(|(at, entry)| (entry.id, at)).collect()
}

/// Hides everything from `from` on but instructions, which hold whatever else is cut.
fn hide(entries: &[Entry], shown: &mut [Shown], from: usize) {
    for (entry, shown) in entries.iter().zip(shown).skip(from) {
        if !matches!(entry.body, Body::Instructions { .. }) {
            *shown = Shown::Hidden;
        }
    }
}

/// Shows of what is from `from` to `to` only what the user said or Retake noted, and the results of what was called together with
/// `call`. What is before stays as it is seen: a summary that was made since holds.
fn go_back(entries: &[Entry], shown: &mut [Shown], from: usize, to: usize, call: &CallId) {
    let last = (from..=to).rfind(|at| matches!(entries[*at].body, Body::Reply { .. })).unwrap_or(to);
    for at in from..=to {
        shown[at] = match &entries[at].body {
            Body::Prompt { .. } | Body::Instructions { .. } | Body::Note { .. } => Shown::Entry,
            Body::ToolResult { call: other, .. } if at > last && other != call => Shown::Result,
            _ => Shown::Hidden,
        };
    }
}

/// Adds what `entries[at]` says; a reply is followed by the results of its calls.
fn add<'a>(context: &mut Context<'a>, entries: &'a [Entry], at: usize) {
    match &entries[at].body {
        Body::Prompt { parts } => context.messages.push(Message::User { parts: parts.into() }),
        Body::Reply { blocks, model, .. } => {
            if blocks.is_empty() {
                return;
            }
            context.messages.push(Message::Assistant { blocks: blocks.into(), model: model.into() });
            let results = results(blocks, &entries[at + 1..]);
            if !results.is_empty() {
                context.messages.push(Message::Results { results });
            }
        }
        Body::Note { text, .. } => context.messages.push(framed(text)),
        Body::Instructions { source, text } if source == RETAKE => {
            if !context.system.is_empty() {
                context.system.push_str("\n\n");
            }
            context.system.push_str(text);
        }
        Body::Instructions { source, text } => {
            context.messages.push(framed(&format!("The workspace has instructions for you in `{source}`:\n\n{text}")))
        }
        // A result is told with its call; without it, it would be refused.
        Body::ToolResult { .. } | Body::Summary { .. } | Body::Cleared | Body::Approved { .. } | Body::Ended { .. } => {
        }
    }
}

/// A summary in its frame.
fn summarised(entry: &Entry) -> Option<Message<'static>> {
    let Body::Summary { text, by, .. } = &entry.body else { return None };
    Some(match by {
        SummaryBy::User | SummaryBy::Compaction => {
            framed(&format!("Earlier parts of this conversation were replaced by this summary:\n\n{text}"))
        }
        SummaryBy::Model { .. } => framed(text),
    })
}

/// A result without its call, which the model is told in words.
fn lone_result(entry: &Entry) -> Option<Message<'_>> {
    let Body::ToolResult { title, outcome, parts, .. } = &entry.body else { return None };
    let how = if *outcome == Outcome::Done { "This came of" } else { "This did not work:" };
    let said = format!("<retake-note>\n{how} `{title}`, which you called together with `rewind`:\n</retake-note>");
    let parts: Vec<Part> = std::iter::once(Part::text(said)).chain(parts.iter().cloned()).collect();
    Some(Message::User { parts: parts.into() })
}

/// The results of all calls in `blocks`, which are among the first of `after`.
fn results<'a>(blocks: &'a [Block], after: &'a [Entry]) -> Vec<CallResult<'a>> {
    // What the user allows comes between a call and its result.
    let round = |entry: &&Entry| matches!(entry.body, Body::ToolResult { .. } | Body::Approved { .. });
    let found: Vec<&'a Entry> = after.iter().take_while(round).collect();
    let calls = blocks.iter().filter_map(|block| match block {
        Block::Call { id, .. } => Some(id),
        Block::Text { .. } | Block::Reasoning { .. } => None,
    });
    let result = |wanted: &'a CallId| {
        let given: Option<(Outcome, Cow<'a, [Part]>)> = found.iter().find_map(|entry| match &entry.body {
            Body::ToolResult { call, outcome, parts, .. } if call == wanted => Some((*outcome, parts.into())),
            _ => None,
        });
        // A call that never came to its end must not look as if it had.
        let (outcome, parts) =
            given.unwrap_or_else(|| (Outcome::Interrupted, vec![Part::text("There is no result.")].into()));
        CallResult { call: Cow::Borrowed(wanted), outcome, parts }
    };
    calls.map(result).collect()
}

/// A message of Retake itself, which the model must not take for the user's words.
fn framed(text: &str) -> Message<'static> {
    Message::User { parts: vec![Part::text(format!("<retake-note>\n{text}\n</retake-note>"))].into() }
}
