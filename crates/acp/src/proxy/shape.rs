//! How things look in either version of the protocol: content blocks, what is said again when a session is loaded, where capabilities are.
//! Pure.

use retake_engine::session::entry::{Block, Body, Entry, EntryId, Part};
use serde_json::{Map, Value, json};

use super::ties::Known;

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
pub(super) fn content(known: &Known, prompt: Option<EntryId>, said: &[Part]) -> Vec<Value> {
    let given = prompt.and_then(|prompt| known.given.get(&prompt));
    match given {
        Some(given) if parts(given) == said => given.to_vec(),
        _ => blocks(said),
    }
}

/// What a client is told so that it shows `entries`.
pub(super) fn replay(version: Version, known: &Known, entries: &[Entry]) -> Vec<Value> {
    let mut updates = Vec::new();
    for entry in entries {
        let id = known.outer(entry.id);
        match &entry.body {
            Body::Prompt { parts } => {
                let content = content(known, Some(entry.id), parts);
                message(version, "user_message", &id, content, &mut updates);
            }
            Body::Reply { blocks, .. } => {
                for block in blocks {
                    match block {
                        Block::Text { text } => {
                            message(version, "agent_message", &id, vec![text_block(text)], &mut updates);
                        }
                        Block::Reasoning { text, .. } => {
                            message(version, "agent_thought", &id, vec![text_block(text)], &mut updates);
                        }
                        Block::Call { arguments, .. } => updates.extend(call(version, arguments)),
                    }
                }
            }
            _ => {}
        }
    }
    updates
}

fn message(version: Version, kind: &str, id: &str, blocks: Vec<Value>, updates: &mut Vec<Value>) {
    match version {
        Version::V1 => updates.extend(
            blocks
                .into_iter()
                .map(|block| json!({ "sessionUpdate": format!("{kind}_chunk"), "messageId": id, "content": block })),
        ),
        Version::V2 => updates.push(json!({ "sessionUpdate": kind, "messageId": id, "content": blocks })),
    }
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
