//! Claude Code: `projects/DIRECTORY/SESSION.jsonl`, a tree of lines (2.1).
//!
//! A compaction begins a tree of its own: its `compact_boundary` has no parent and continues the line before it. All lines that a typed
//! `/compact` writes, the summary included, carry one prompt id, so that turn begins behind the boundary.

use std::path::Path;

use super::{Line, Odd, Parsed, Tree, Turn, answer, text_of};
use crate::event::is_nudge;
use crate::ids::{PlaceId, PromptId, SessionId};

pub(super) fn parse(_path: &Path, lines: &[Line]) -> Result<Parsed, Odd> {
    let mut session = None;
    for (at, line) in lines.iter().enumerate() {
        if line.str("type").is_none() {
            return Err(Odd::new(at, "it has no type"));
        }
        if matches!(line.str("type"), Some("user" | "assistant")) {
            let is_whole = line.str("uuid").is_some() && line.value.get("parentUuid").is_some();
            if !is_whole || line.value["message"].get("content").is_none() {
                return Err(Odd::new(at, "a message has no id, no parent or no content"));
            }
            if !line.str("version").is_some_and(|version| version.starts_with("2.")) {
                return Err(Odd::new(at, "the version is not 2"));
            }
        }
        session = session.or(line.str("sessionId"));
    }
    let session = SessionId(session.ok_or_else(|| Odd::new(0, "no line names the session"))?.to_owned());
    let tree = Tree::new(lines, &is_prompt, &is_boundary);
    let (mut turns, mut dropped) = (Vec::<Turn>::new(), Vec::<Turn>::new());
    for (at, line) in lines.iter().enumerate() {
        let Some(is_kept) = tree.is_kept(at) else { continue };
        let into = if is_kept { &mut turns } else { &mut dropped };
        if is_prompt(line) {
            into.push(turn(lines, at));
        } else if line.str("type") == Some("assistant") {
            answer(into, text_of(&line.value["message"]["content"]));
        }
    }
    Ok(Parsed { session, turns, dropped })
}

/// Whether a line is a person's prompt, commands included.
pub(crate) fn is_prompt(line: &Line) -> bool {
    let is_other = ["isMeta", "isCompactSummary", "isSidechain"].iter().any(|key| line.value[*key] == true);
    line.str("type") == Some("user") && !is_other && prompt_text(line).is_some()
}

/// Whether a line is where a compaction begins.
pub(crate) fn is_boundary(line: &Line) -> bool {
    line.str("type") == Some("system") && line.str("subtype") == Some("compact_boundary")
}

fn prompt_text(line: &Line) -> Option<String> {
    let content = &line.value["message"]["content"];
    let is_result = |part: &serde_json::Value| part["type"] == "tool_result";
    if content.as_array().is_some_and(|parts| parts.iter().any(is_result)) {
        return None;
    }
    let text = text_of(content).unwrap_or_default();
    let is_output = ["<local-command-stdout>", "<local-command-stderr>", "<bash-stdout>", "[Request interrupted"];
    if is_output.iter().any(|start| text.starts_with(start)) {
        return None;
    }
    if let Some(name) = between(&text, "<command-name>", "</command-name>") {
        let arguments = between(&text, "<command-args>", "</command-args>").unwrap_or("");
        return Some(format!("{name} {arguments}").trim().to_owned());
    }
    let has_picture = content.as_array().is_some_and(|parts| parts.iter().any(|part| part["type"] == "image"));
    (has_picture || !is_nudge(&text)).then_some(text)
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(start)?;
    Some(rest.split_once(end)?.0.trim())
}

/// The turn of the prompt at line `at`; it begins at the first line with its prompt id.
fn turn(lines: &[Line], at: usize) -> Turn {
    let line = &lines[at];
    let prompt = line.str("promptId");
    let first = lines.iter().position(|line| prompt.is_some() && line.str("promptId") == prompt).unwrap_or(at);
    Turn {
        place: PlaceId(line.str("uuid").unwrap_or_default().to_owned()),
        prompt: prompt.map(PromptId::from),
        text: prompt_text(line).unwrap_or_default(),
        answer: None,
        line: first.min(at),
    }
}
