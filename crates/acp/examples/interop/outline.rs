//! What was said, reduced to what proves something: which turns' words stand where in a request.
//!
//! Every prompt and everything the model does in a turn carries the turn's number in a form that nothing else has, so what a request tells
//! can be seen without knowing how an agent words it.

use retake_testkit::model::{Received, Wire};
use serde_json::{Value, json};

use super::claims::Claims;

const PROMPT: &str = "RETAKE-TURN-";
const TRACE: &str = "RETAKE-TRACE-";

/// What is typed in a turn.
pub fn prompt(turn: u64) -> String {
    format!("{PROMPT}{turn}")
}

/// What everything carries that the model does in a turn: arguments, files, answers.
pub fn trace(turn: u64) -> String {
    format!("{TRACE}{turn}")
}

/// The turn of the last prompt in `text`.
pub fn last_prompt(text: &str) -> Option<u64> {
    marks(text).into_iter().rev().find(|(mark, _)| *mark == PROMPT).map(|(_, turn)| turn)
}

/// Whether `text` has the prompts of all of `turns`, and no word of those in `without`.
pub fn tells(text: &str, turns: &[u64], without: &[u64]) -> bool {
    let marks = marks(text);
    turns.iter().all(|turn| marks.contains(&(PROMPT, *turn))) && !marks.iter().any(|(_, turn)| without.contains(turn))
}

/// The marks in `text`, each once, in the order of their last places: what is retold comes before what is said.
fn marks(text: &str) -> Vec<(&'static str, u64)> {
    let mut found = Vec::new();
    for mark in [PROMPT, TRACE] {
        for (at, _) in text.match_indices(mark) {
            let digit = text[at + mark.len()..].chars().next().and_then(|digit| digit.to_digit(10));
            found.extend(digit.map(|turn| (at, mark, u64::from(turn))));
        }
    }
    found.sort_unstable();
    let mut marks: Vec<(&'static str, u64)> = Vec::new();
    for (_, mark, turn) in found {
        marks.retain(|known| *known != (mark, turn));
        marks.push((mark, turn));
    }
    marks
}

/// The messages of a request, whatever its wire format.
pub fn messages(received: &Received) -> Vec<Value> {
    let list = match received.wire() {
        Wire::Anthropic | Wire::OpenAi => "messages",
        Wire::Responses => "input",
    };
    received.body()[list].as_array().cloned().unwrap_or_default()
}

/// Whether a message carries the result of a tool.
pub fn is_result(message: &Value) -> bool {
    message["role"] == "tool"
        || message["type"] == "function_call_output"
        || message["content"].as_array().is_some_and(|all| all.iter().any(|one| one["type"] == "tool_result"))
}

/// The calls and results of a request that do not belong together, if there are any.
pub fn torn(received: &Received) -> Option<String> {
    let (mut calls, mut results) = (Vec::new(), Vec::new());
    for message in messages(received) {
        let blocks = message["content"].as_array().cloned().unwrap_or_default();
        for part in std::iter::once(&message).chain(&blocks) {
            match part["type"].as_str() {
                Some("tool_use") => calls.push(part["id"].to_string()),
                Some("function_call") => calls.push(part["call_id"].to_string()),
                Some("tool_result") => results.push(part["tool_use_id"].to_string()),
                Some("function_call_output") => results.push(part["call_id"].to_string()),
                _ => {}
            }
        }
        calls.extend(message["tool_calls"].as_array().into_iter().flatten().map(|call| call["id"].to_string()));
        results.extend(message.get("tool_call_id").map(Value::to_string));
    }
    calls.sort();
    results.sort();
    (calls != results).then(|| format!("calls {calls:?}, results {results:?}"))
}

/// The requests that a model received in one turn.
pub struct Sent {
    turn: u64,
    all: Vec<Received>,
}

impl Sent {
    pub fn new(turn: u64, all: Vec<Received>) -> Self {
        Self { turn, all }
    }

    /// The request with which the turn began: titles and the like are asked for without tools.
    fn first(&self) -> Option<&Received> {
        let has_tools = |request: &&Received| request.body()["tools"].as_array().is_some_and(|all| !all.is_empty());
        self.all.iter().filter(has_tools).find(|request| tells(&request.text, &[self.turn], &[]))
    }

    /// Claims that the turn began with the prompts of `turns` and with what the model did in them, and that none of its requests has a word
    /// of those in `without`.
    pub fn must_tell(&self, claims: &mut Claims, when: &str, turns: &[u64], without: &[u64]) {
        let marks = self.first().map(|request| marks(&request.text)).unwrap_or_default();
        let of = |wanted: &str| -> Vec<u64> {
            marks.iter().filter(|(mark, _)| *mark == wanted).map(|(_, turn)| *turn).collect()
        };
        let (outline, earlier) = (self.outline(), &turns[..turns.len() - 1]);
        let claim = format!("{when} the model is sent {} and no other, in this order", named("prompt", turns));
        claims.hold(&claim, of(PROMPT) == turns, &outline);
        let claim = format!("{when} it is sent what it did in {} and in no other", named("turn", earlier));
        claims.hold(&claim, of(TRACE) == earlier, &outline);
        let is_clean = self.all.iter().all(|request| tells(&request.text, &[], without));
        let claim = format!("{when} no request has a word of {}", named("turn", without));
        claims.hold(&claim, is_clean, &self.all);
    }

    /// Who says what in the turn's first request, as far as it is of any turn.
    fn outline(&self) -> Vec<String> {
        let all = self.first().map(messages).unwrap_or_default();
        let mut lines: Vec<String> = all.iter().filter_map(line).collect();
        lines.dedup();
        lines
    }

    pub fn document(&self, when: &str) -> Value {
        json!({ "when": when, "requests": self.all.len(), "first": self.outline() })
    }
}

/// `turn 1`, or `turns 1, 2`.
fn named(noun: &str, turns: &[u64]) -> String {
    let numbers: Vec<String> = turns.iter().map(u64::to_string).collect();
    format!("{noun}{} {}", if numbers.len() == 1 { "" } else { "s" }, numbers.join(", "))
}

/// Who says what of which turns in a message, if anything.
fn line(message: &Value) -> Option<String> {
    let voice = match message["role"].as_str().or(message["type"].as_str()) {
        _ if is_result(message) => "tool",
        Some("function_call") => "assistant",
        Some(role) => role,
        None => "?",
    };
    let name = |(mark, turn): (&str, u64)| match mark {
        PROMPT => format!("prompt {turn}"),
        _ => format!("work of turn {turn}"),
    };
    let named: Vec<String> = marks(&message.to_string()).into_iter().map(name).collect();
    (!named.is_empty()).then(|| format!("{voice}: {}", named.join(", ")))
}
