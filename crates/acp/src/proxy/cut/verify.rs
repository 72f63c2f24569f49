//! Compares the history that an inner session replays when it is loaded with what it is known to hold. Pure.
//!
//! Agents keep sessions in files, some of them in the very workspace whose files a rewind restores. The last prompt shows whether a session
//! is still what it was. What cannot be compared counts as unchanged.

use retake_engine::session::entry::{Body, Entry, Part};
use serde_json::Value;

use super::strategies::turns;
use crate::proxy::log_writer::{Voice, chain};
use crate::proxy::session_map::Mapping;

/// A history that is told again.
#[derive(Debug, Default)]
pub(in crate::proxy) struct ReplayedHistory {
    /// Its messages that have ids.
    pub(in crate::proxy) ids: Vec<(Voice, String)>,
    /// What the user said last; in pieces, and with what else came with it.
    last: String,
    /// More of that may come.
    is_open: bool,
}

impl ReplayedHistory {
    /// Takes a message of it, or a tool call.
    pub(in crate::proxy) fn take(&mut self, voice: Option<Voice>, update: &Value) {
        if let (Some(voice), Some(id)) = (voice, update["messageId"].as_str()) {
            self.ids.push((voice, id.to_owned()));
        }
        let goes_on = std::mem::replace(&mut self.is_open, voice == Some(Voice::User));
        if !self.is_open {
            return;
        }
        if !goes_on {
            self.last.clear();
        }
        let blocks = match &update["content"] {
            Value::Array(blocks) => blocks.as_slice(),
            block => std::slice::from_ref(block),
        };
        blocks.iter().filter_map(|block| block["text"].as_str()).for_each(|text| self.last.push_str(text));
    }

    /// Whether this may be the history of an inner session, by what it is known to hold.
    pub(super) fn may_be(&self, known: &Mapping, inner: &str, all: &[Entry]) -> bool {
        let Some(state) = known.inners.get(inner).filter(|state| state.under_way.is_none()) else { return true };
        let Some(Some(head)) = state.holds else { return true };
        let held = chain(all, Some(head));
        let last = last_prompts(known, inner, &held);
        let is_told = |prompt: &String| self.last.contains(prompt.as_str());
        self.last.is_empty() || last.iter().any(|prompt| prompt.is_empty() || is_told(prompt)) || last.is_empty()
    }
}

/// What was said last and answered in turns of a session's own, and what was not answered since: an agent may have forgotten that. Empty
/// for what cannot be compared, such as a command, which agents put other words in the place of.
fn last_prompts(known: &Mapping, inner: &str, held: &[Entry]) -> Vec<String> {
    let own: Vec<_> = turns(known, inner, held).collect();
    let mut last = Vec::new();
    let mut is_answered = false;
    for entry in held.iter().rev() {
        match &entry.body {
            Body::Reply { .. } | Body::ToolResult { .. } => is_answered = true,
            Body::Prompt { parts } if own.contains(&entry.id) => {
                last.push(said(parts));
                if is_answered {
                    break;
                }
            }
            _ => {}
        }
    }
    last
}

/// The longest line of a prompt: agents differ in what they put around it.
fn said(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text { text } | Part::Paste { text } => Some(text.as_str()),
        Part::File { .. } | Part::Image { .. } => None,
    });
    let texts: Vec<&str> = texts.collect();
    if texts.iter().any(|text| text.trim_start().starts_with('/')) {
        return String::new();
    }
    let lines = texts.iter().flat_map(|text| text.lines()).map(str::trim);
    lines.max_by_key(|line| line.len()).unwrap_or_default().to_owned()
}
