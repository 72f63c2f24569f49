//! Kimi Code: `sessions/WORKSPACE/SESSION/agents/main/wire.jsonl`, a log of events (protocol 1.5, seen in 2.1.0).

use std::path::Path;

use super::{Line, Odd, Parsed, Turn, answer, text_of};
use crate::event::is_nudge;
use crate::ids::{PlaceId, PromptId, SessionId};

pub(super) fn parse(path: &Path, lines: &[Line]) -> Result<Parsed, Odd> {
    let start = &lines[0];
    if start.str("type") != Some("metadata") || start.str("protocol_version") != Some("1.5") {
        return Err(Odd::new(0, "it is no metadata of protocol 1.5"));
    }
    // The log does not name its session: `SESSION/agents/main/wire.jsonl` does.
    let session = path.ancestors().nth(3).and_then(Path::file_name).and_then(|name| name.to_str());
    let session = session.ok_or_else(|| Odd::new(0, "it is not in a session's directory"))?;
    let mut turns = Vec::<Turn>::new();
    for (at, line) in lines.iter().enumerate() {
        let kind = line.str("type").ok_or_else(|| Odd::new(at, "an event has no type"))?;
        match kind {
            "turn.prompt" => {
                let id = line.str("promptId").ok_or_else(|| Odd::new(at, "a prompt has no id"))?;
                let text = text_of(&line.value["input"]).unwrap_or_default();
                if line.value["origin"]["kind"] == "user" && !is_nudge(&text) {
                    let prompt = Some(PromptId(id.to_owned()));
                    turns.push(Turn { place: PlaceId(id.to_owned()), prompt, text, answer: None, line: at });
                }
            }
            "context.append_loop_event" => answer(&mut turns, spoken(&line.value["event"])),
            kind if kind.contains("undo") || kind.contains("rewind") || kind.contains("revert") => {
                return Err(Odd::new(at, format!("`{kind}` changes what is before it")));
            }
            _ => {}
        }
    }
    Ok(Parsed { session: SessionId(session.to_owned()), turns, dropped: Vec::new() })
}

fn spoken(event: &serde_json::Value) -> Option<String> {
    let part = (event["type"] == "content.part").then(|| &event["part"])?;
    part["text"].as_str().map(str::to_owned)
}
