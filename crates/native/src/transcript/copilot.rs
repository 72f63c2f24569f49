//! GitHub Copilot CLI: `session-state/SESSION/events.jsonl`, a list of events (format 1, seen in 1.0.102).

use std::path::Path;

use super::{Line, Odd, Parsed, Turn, answer, text_of};
use crate::event::is_nudge;
use crate::ids::{PlaceId, SessionId};

pub(super) fn parse(_path: &Path, lines: &[Line]) -> Result<Parsed, Odd> {
    let start = &lines[0];
    if start.str("type") != Some("session.start") || start.value["data"]["version"] != 1 {
        return Err(Odd::new(0, "it is no start of a session in format 1"));
    }
    let session = start.value["data"]["sessionId"].as_str().ok_or_else(|| Odd::new(0, "it names no session"))?;
    let mut turns = Vec::<Turn>::new();
    for (at, line) in lines.iter().enumerate() {
        let data = &line.value["data"];
        let (Some(kind), Some(id)) = (line.str("type"), line.str("id")) else {
            return Err(Odd::new(at, "an event has no type or no id"));
        };
        match kind {
            "user.message" => {
                let text = text_of(&data["content"]).ok_or_else(|| Odd::new(at, "a prompt has no content"))?;
                if !is_nudge(&text) {
                    turns.push(Turn { place: PlaceId(id.to_owned()), prompt: None, text, answer: None, line: at });
                }
            }
            "assistant.message" => answer(&mut turns, text_of(&data["content"])),
            // Events are taken out of the file or marked in it; how is not known well enough to read on.
            "session.snapshot_rewind" | "session.truncation" | "session.rewind" => {
                return Err(Odd::new(at, format!("`{kind}` changes what is before it")));
            }
            _ => {}
        }
    }
    Ok(Parsed { session: SessionId(session.to_owned()), turns, dropped: Vec::new() })
}
