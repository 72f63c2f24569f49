//! Qwen Code: `projects/DIRECTORY/chats/SESSION.jsonl`, a tree of lines (0.24).

use std::path::Path;

use super::{Line, Odd, Parsed, Tree, Turn, answer, text_of};
use crate::event::is_nudge;
use crate::ids::{PlaceId, SessionId};

pub(super) fn parse(_path: &Path, lines: &[Line]) -> Result<Parsed, Odd> {
    for (at, line) in lines.iter().enumerate() {
        let is_whole =
            line.str("uuid").is_some() && line.value.get("parentUuid").is_some() && line.str("type").is_some();
        if !is_whole || line.str("sessionId").is_none() {
            return Err(Odd::new(at, "it has no id, parent, type or session"));
        }
        if matches!(line.str("type"), Some("user" | "assistant")) && !line.value["message"]["parts"].is_array() {
            return Err(Odd::new(at, "a message has no parts"));
        }
    }
    let session = SessionId(lines[0].str("sessionId").unwrap_or_default().to_owned());
    let tree = Tree::new(lines, &is_prompt, &|_| false);
    let (mut turns, mut dropped) = (Vec::<Turn>::new(), Vec::<Turn>::new());
    // The agent counts a session's prompts, those that it dropped included.
    for (at, line) in lines.iter().enumerate() {
        let into = if tree.is_kept(at) == Some(true) { &mut turns } else { &mut dropped };
        let parts = &line.value["message"]["parts"];
        if is_prompt(line) {
            into.push(Turn {
                place: PlaceId(line.str("uuid").unwrap_or_default().to_owned()),
                prompt: None,
                text: text_of(parts).unwrap_or_default(),
                answer: None,
                line: at,
            });
        } else if line.str("type") == Some("assistant") {
            answer(into, text_of(parts));
        }
    }
    Ok(Parsed { session, turns, dropped })
}

/// Whether a line is a person's prompt.
pub(crate) fn is_prompt(line: &Line) -> bool {
    let is_person = line.str("provenance").is_none_or(|from| from == "real_user");
    let text = text_of(&line.value["message"]["parts"]);
    line.str("type") == Some("user") && is_person && text.is_some_and(|text| !is_nudge(&text))
}
