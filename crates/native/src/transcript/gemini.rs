//! Gemini CLI: `tmp/PROJECT/chats/session-TIME-ID.jsonl` (0.61), a log of changes to a list of messages.
//!
//! A line with an id adds or replaces a message, `$set` replaces what it names, the whole list included, and `$rewindTo` takes away a
//! message and all after it. A resumed session writes its header again.

use std::path::Path;

use serde_json::Value;

use super::{Line, Odd, Parsed, Turn, answer, text_of};
use crate::event::is_nudge;
use crate::ids::{PlaceId, SessionId};

struct Message {
    id: String,
    line: usize,
    value: Value,
}

pub(super) fn parse(_path: &Path, lines: &[Line]) -> Result<Parsed, Odd> {
    let session = lines[0].str("sessionId").filter(|_| lines[0].str("projectHash").is_some());
    let session = SessionId(session.ok_or_else(|| Odd::new(0, "it is no header of a session"))?.to_owned());
    let (mut messages, mut gone) = (Vec::<Message>::new(), Vec::<Message>::new());
    for (at, line) in lines.iter().enumerate() {
        if let Some(target) = line.str("$rewindTo") {
            let from = messages.iter().position(|message| message.id == target);
            let from = from.ok_or_else(|| Odd::new(at, "it goes back to a message that is not there"))?;
            gone.extend(messages.drain(from..));
        } else if let Some(set) = line.value.get("$set") {
            if let Some(list) = set.get("messages") {
                let list = list.as_array().ok_or_else(|| Odd::new(at, "the messages are no list"))?;
                let known = |id: &str| messages.iter().find(|message| message.id == id).map(|message| message.line);
                let list: Option<Vec<Message>> = list
                    .iter()
                    .map(|value| {
                        let id = value["id"].as_str()?.to_owned();
                        let line = known(&id).unwrap_or(at);
                        Some(Message { id, line, value: value.clone() })
                    })
                    .collect();
                messages = list.ok_or_else(|| Odd::new(at, "a message has no id"))?;
            }
        } else if let Some(id) = line.str("id") {
            if line.str("type").is_none() || line.value.get("content").is_none() {
                return Err(Odd::new(at, "a message has no type or no content"));
            }
            match messages.iter_mut().find(|message| message.id == id) {
                Some(message) => message.value = line.value.clone(),
                None => messages.push(Message { id: id.to_owned(), line: at, value: line.value.clone() }),
            }
        } else if line.str("sessionId").is_none() {
            return Err(Odd::new(at, "it is neither a message, nor a change, nor a header"));
        }
    }
    Ok(Parsed { session, turns: turns(&messages), dropped: turns(&gone) })
}

fn turns(messages: &[Message]) -> Vec<Turn> {
    let mut turns = Vec::new();
    for Message { id, line, value } in messages {
        let text = text_of(&value["content"]);
        match value["type"].as_str() {
            Some("user") => {
                let Some(text) = text.filter(|text| !is_nudge(text) && !text.starts_with("<session_context>")) else {
                    continue;
                };
                turns.push(Turn { place: PlaceId(id.clone()), prompt: None, text, answer: None, line: *line });
            }
            Some("gemini") => answer(&mut turns, text),
            _ => {}
        }
    }
    turns
}
