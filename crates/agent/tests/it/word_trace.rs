//! Reading what the model is sent as a list of words.
//!
//! In a test each prompt, answer, result, summary and report has a word of its own: a kind and a number, such as `prompt7x`.
//! [`words_sent`] finds them in a request, [`words_seen`] tells by a plain reading of the log which ones should be there, and where.

use retake_engine::id::EntryId;
use retake_engine::session::entry::{Block, Body, Details, Entry, Part, SummaryBy};
use serde_json::Value;

/// The words in a text.
fn words(text: &str) -> Vec<String> {
    let kinds = ["prompt", "reply", "result", "beside", "summary", "report"];
    let is_ours = |word: &&str| {
        let rest = kinds.iter().find_map(|kind| word.strip_prefix(kind));
        rest.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
    };
    text.split(|c: char| !c.is_ascii_alphanumeric()).filter(is_ours).map(str::to_owned).collect()
}

/// The words in the messages of a request, in order.
pub fn words_sent(body: &str) -> Vec<String> {
    fn collect(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::String(text) => found.extend(words(text)),
            Value::Array(values) => values.iter().for_each(|value| collect(value, found)),
            Value::Object(values) => values.values().for_each(|value| collect(value, found)),
            _ => {}
        }
    }
    let body: Value = serde_json::from_str(body).unwrap();
    let mut found = Vec::new();
    collect(&body["messages"], &mut found);
    found
}

/// The words that the model should see, by a plain reading of the log: a list, which each entry adds to or takes from.
pub fn words_seen(entries: &[Entry]) -> Vec<String> {
    // Each word with the position of the entry in whose place it is.
    let mut now: Vec<(usize, String)> = Vec::new();
    let position = |id: EntryId| entries.iter().position(|entry| entry.id == id).unwrap();
    for (at, entry) in entries.iter().enumerate() {
        let placed = |words: Vec<String>, at: usize| words.into_iter().map(move |word| (at, word));
        match &entry.body {
            Body::Prompt { parts } => now.extend(placed(words_of(parts), at)),
            Body::Reply { .. } => now.extend(placed(said(entry), at)),
            Body::ToolResult { parts, .. } => now.extend(placed(words_of(parts), at)),
            Body::Cleared => now.clear(),
            Body::Summary { from, to, text, by, .. } => {
                let (from, to) = (position(*from), position(*to));
                match by {
                    SummaryBy::User | SummaryBy::Compaction => {
                        now.retain(|(place, _)| !(from..=to).contains(place));
                        now.extend(placed(words(text), from));
                        now.sort_by_key(|(place, _)| *place);
                    }
                    SummaryBy::Model { call, .. } => {
                        let left = &entries[from..=to];
                        assert_eq!(words(text), in_frame(left), "the report, and what the user was shown");
                        let stays = |at: &usize| match &entries[*at].body {
                            Body::Prompt { .. } => true,
                            Body::ToolResult { call: other, .. } => last_round(left, entries[*at].id) && other != call,
                            _ => false,
                        };
                        now.retain(|(place, _)| *place < from);
                        for at in (from..=to).filter(stays) {
                            let (Body::Prompt { parts } | Body::ToolResult { parts, .. }) = &entries[at].body else {
                                unreachable!("it stays")
                            };
                            now.extend(placed(words_of(parts), at));
                        }
                        now.extend(placed(words(text), at));
                    }
                }
            }
            Body::Note { .. } | Body::Instructions { .. } | Body::Approved { .. } | Body::Ended { .. } => {}
        }
    }
    now.into_iter().map(|(_, word)| word).collect()
}

fn words_of(parts: &[Part]) -> Vec<String> {
    let text = |part: &Part| match part {
        Part::Text { text } => words(text),
        other => panic!("only texts: {other:?}"),
    };
    parts.iter().flat_map(text).collect()
}

/// The words of an answer, those of its calls included.
fn said(entry: &Entry) -> Vec<String> {
    let Body::Reply { blocks, .. } = &entry.body else { return Vec::new() };
    let word = |block: &Block| match block {
        Block::Text { text } => words(text),
        Block::Call { arguments, .. } => words(arguments),
        Block::Reasoning { .. } => Vec::new(),
    };
    blocks.iter().flat_map(word).collect()
}

/// Whether an entry comes after the last answer of `left`.
fn last_round(left: &[Entry], id: EntryId) -> bool {
    let results = left.iter().rev().take_while(|entry| !matches!(entry.body, Body::Reply { .. }));
    results.into_iter().any(|entry| entry.id == id)
}

/// The words of the frame around a report: the report, and what the model had told the user.
fn in_frame(left: &[Entry]) -> Vec<String> {
    let report = left.iter().rev().find_map(|entry| match &entry.body {
        Body::ToolResult { details: Some(Details::Rewound { report, .. }), .. } => Some(words(report)),
        _ => None,
    });
    let shown = left.iter().flat_map(said).filter(|word| word.starts_with("reply"));
    report.unwrap().into_iter().chain(shown).collect()
}
