//! How things look in either version of the protocol: content blocks, what is said again when a session is loaded, where capabilities are.
//! Pure.

use std::collections::HashSet;

use retake_engine::id::EntryId;
use retake_engine::session::entry::{Block, Body, EndReason, Entry, Part};
use serde_json::{Map, Value, json};

use super::session_map::{Mapping, PieceKind};

pub(super) use crate::extension::{Version, capability};

/// The parts that content blocks are in the log.
pub(super) fn parts(blocks: &[Value]) -> Vec<Part> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let part = |block: &Value| match block["type"].as_str() {
        Some("text") => Part::Text { text: text(&block["text"]) },
        Some("image") => Part::Image { media_type: text(&block["mimeType"]), data: text(&block["data"]) },
        Some("resource") => {
            Part::File { path: text(&block["resource"]["uri"]), text: text(&block["resource"]["text"]) }
        }
        Some("resource_link") => Part::File { path: text(&block["uri"]), text: String::new() },
        other => Part::text(format!("[{}]", other.unwrap_or("content"))),
    };
    blocks.iter().map(part).collect()
}

/// The content blocks that parts were.
pub(super) fn blocks(parts: &[Part]) -> Vec<Value> {
    let block = |part: &Part| match part {
        Part::Text { text } | Part::Paste { text } => text_block(text),
        Part::Image { media_type, data } => json!({ "type": "image", "mimeType": media_type, "data": data }),
        Part::File { path, text } if text.is_empty() => {
            let name = path.rsplit('/').next().unwrap_or(path);
            json!({ "type": "resource_link", "uri": path, "name": name })
        }
        Part::File { path, text } => json!({ "type": "resource", "resource": { "uri": path, "text": text } }),
    };
    parts.iter().map(block).collect()
}

pub(super) fn text_block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// The content blocks that a prompt was given as, or that its parts are.
pub(super) fn content(known: &Mapping, prompt: Option<EntryId>, said: &[Part]) -> Vec<Value> {
    let given = prompt.and_then(|prompt| known.given.get(&prompt));
    match given {
        Some(given) if parts(given) == said => given.to_vec(),
        _ => blocks(said),
    }
}

/// What a client is told so that it shows `entries`.
pub(super) fn replay(version: Version, known: &Mapping, entries: &[Entry]) -> Vec<Value> {
    let mut updates = Vec::new();
    // Version 2 takes the later for the earlier by itself, as it did when they came.
    let replaced = if version == Version::V1 { replaced(known, entries) } else { HashSet::new() };
    let cut_short = cut_short(entries);
    for entry in entries.iter().filter(|entry| !replaced.contains(&entry.id)) {
        let id = known.outer(entry.id);
        let mut kind = known.pieces.get(&entry.id).copied().unwrap_or(PieceKind::Replaces);
        match &entry.body {
            Body::Prompt { parts } => {
                let content = content(known, Some(entry.id), parts);
                message(version, "user_message", &id, kind, content, &mut updates);
            }
            Body::Reply { blocks, .. } => {
                for block in blocks {
                    match block {
                        Block::Text { text } => {
                            message(version, "agent_message", &id, kind, vec![text_block(text)], &mut updates);
                        }
                        Block::Reasoning { text, .. } => {
                            message(version, "agent_thought", &id, kind, vec![text_block(text)], &mut updates);
                        }
                        Block::Call { arguments, .. } => {
                            let mut told = call(version, arguments);
                            told.iter_mut()
                                .filter(|_| cut_short.contains(&entry.id))
                                .for_each(|told| stop(version, told));
                            updates.extend(told);
                        }
                    }
                    kind = PieceKind::Adds;
                }
            }
            _ => {}
        }
    }
    updates
}

/// Entries of turns that were interrupted or failed: no tool of theirs runs any more.
fn cut_short(entries: &[Entry]) -> HashSet<EntryId> {
    let mut is_whole = false;
    let mut found = HashSet::new();
    for entry in entries.iter().rev() {
        match &entry.body {
            Body::Ended { reason } => is_whole = *reason == EndReason::Done,
            _ if !is_whole => drop(found.insert(entry.id)),
            _ => {}
        }
    }
    found
}

/// The entries that still say what their messages do.
pub(super) fn current(known: &Mapping, entries: &[Entry]) -> Vec<Entry> {
    let replaced = replaced(known, entries);
    entries.iter().filter(|entry| !replaced.contains(&entry.id)).cloned().collect()
}

/// Entries of messages that were told anew.
fn replaced(known: &Mapping, entries: &[Entry]) -> HashSet<EntryId> {
    let mut replaced = HashSet::new();
    for (at, entry) in entries.iter().enumerate() {
        if known.pieces.get(&entry.id) == Some(&PieceKind::Replaces) {
            let (name, kind) = (known.outer(entry.id), kind(entry));
            let before = entries[..at].iter().filter(|one| self::kind(one) == kind && known.outer(one.id) == name);
            replaced.extend(before.map(|one| one.id));
        }
    }
    replaced
}

/// Who says an entry: a thought may be called as an answer is.
fn kind(entry: &Entry) -> Option<&'static str> {
    match &entry.body {
        Body::Prompt { .. } => Some("user_message"),
        Body::Reply { blocks, .. } => match blocks.first() {
            Some(Block::Text { .. }) => Some("agent_message"),
            Some(Block::Reasoning { .. }) => Some("agent_thought"),
            Some(Block::Call { .. }) | None => None,
        },
        _ => None,
    }
}

/// Tells a message, or more of one that was told in part.
fn message(version: Version, update: &str, id: &str, kind: PieceKind, blocks: Vec<Value>, updates: &mut Vec<Value>) {
    if version == Version::V2 && kind == PieceKind::Replaces {
        return updates.push(json!({ "sessionUpdate": update, "messageId": id, "content": blocks }));
    }
    let update = format!("{update}_chunk");
    let chunk = |block: Value| json!({ "sessionUpdate": update, "messageId": id, "content": block });
    updates.extend(blocks.into_iter().map(chunk));
}

/// A tool call as it was when it ended.
fn call(version: Version, json: &str) -> Option<Value> {
    let mut fields: Map<String, Value> = serde_json::from_str(json).ok()?;
    let kind = match version {
        Version::V1 => "tool_call",
        Version::V2 => "tool_call_update",
    };
    fields.entry("title").or_insert_with(|| "tool".into());
    fields.insert("sessionUpdate".to_owned(), kind.into());
    Some(Value::Object(fields))
}

/// Ends a tool call that was cut short, unless the agent has reported its end.
fn stop(version: Version, call: &mut Value) {
    if !matches!(call["status"].as_str(), Some("completed" | "failed" | "cancelled")) {
        call["status"] = match version {
            Version::V1 => "failed".into(),
            Version::V2 => "cancelled".into(),
        };
    }
}
