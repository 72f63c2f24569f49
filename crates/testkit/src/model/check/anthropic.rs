//! What Anthropic Messages refuses.

use std::collections::HashSet;

use serde_json::Value;

use super::super::anthropic::covers;
use super::{Received, ensure, is_name, list, messages};

const MAX_MARKS: usize = 4;

pub(super) fn check(received: &Received) -> Result<(), String> {
    let body = received.body();
    ensure(received.header("anthropic-version").is_some(), || "anthropic-version: header is required".to_owned())?;
    let max_tokens = body["max_tokens"].as_u64().ok_or("max_tokens: field required")?;
    let budget = body["thinking"]["budget_tokens"].as_u64().unwrap_or(0);
    ensure(budget < max_tokens, || "max_tokens must be greater than thinking.budget_tokens".to_owned())?;
    super::tools(list(&body["tools"]).iter().map(|tool| (&tool["name"], &tool["input_schema"])))?;
    let marks = received.text.matches(r#""cache_control":{"#).count();
    ensure(marks <= MAX_MARKS, || format!("a maximum of {MAX_MARKS} blocks with cache_control may be provided"))?;
    texts("system", list(&body["system"]))?;
    conversation(&turns(messages(body)?)?)
}

/// One side's words: the server joins messages of the same role.
struct Turn<'a> {
    role: &'a str,
    blocks: Vec<&'a Value>,
}

fn turns(messages: &[Value]) -> Result<Vec<Turn<'_>>, String> {
    let mut turns: Vec<Turn<'_>> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        ensure(matches!(role, "user" | "assistant"), || format!("messages.{at}: unexpected role `{role}`"))?;
        let blocks = list(&message["content"]);
        ensure(!blocks.is_empty(), || format!("messages.{at}: content must not be empty"))?;
        texts(&format!("messages.{at}"), blocks)?;
        match turns.last_mut() {
            Some(turn) if turn.role == role => turn.blocks.extend(blocks),
            _ => turns.push(Turn { role, blocks: blocks.iter().collect() }),
        }
    }
    Ok(turns)
}

fn texts(place: &str, blocks: &[Value]) -> Result<(), String> {
    for block in blocks {
        match block["type"].as_str().unwrap_or_default() {
            "text" => {
                let text = block["text"].as_str().unwrap_or_default();
                ensure(!text.trim().is_empty(), || format!("{place}: text content blocks must contain words"))?;
            }
            "image" => {
                let source = &block["source"];
                let is_whole = source["type"] == "base64" && source["data"].is_string();
                ensure(is_whole && source["media_type"].is_string(), || format!("{place}: no image: {source}"))?;
            }
            "tool_result" => texts(place, list(&block["content"]))?,
            "tool_use" | "thinking" | "redacted_thinking" => {}
            other => return Err(format!("{place}: unknown block type `{other}`")),
        }
    }
    Ok(())
}

fn conversation(turns: &[Turn<'_>]) -> Result<(), String> {
    let mut known = HashSet::new();
    let mut open: Vec<&str> = Vec::new();
    for (at, turn) in turns.iter().enumerate() {
        if turn.role == "user" {
            answered(at, &turn.blocks, &open)?;
            open.clear();
            continue;
        }
        for block in &turn.blocks {
            thought(at, block)?;
            if block["type"] == "tool_use" {
                let id = block["id"].as_str().unwrap_or_default();
                ensure(is_name(id), || format!("turn {at}: tool_use.id `{id}` does not match ^[a-zA-Z0-9_-]+$"))?;
                ensure(known.insert(id), || format!("turn {at}: tool_use ids must be unique, but `{id}` is not"))?;
                ensure(block["input"].is_object(), || format!("turn {at}: tool_use.input should be an object"))?;
                open.push(id);
            }
        }
        let last = turn.blocks.last().map_or("", |block| block["type"].as_str().unwrap_or_default());
        ensure(!last.ends_with("thinking"), || format!("turn {at}: the final block cannot be `{last}`"))?;
    }
    let ends_well = turns.last().is_some_and(|turn| turn.role == "user");
    ensure(ends_well, || "the conversation must end with a user message".to_owned())
}

/// Every call is answered at once, by results that come before anything else.
fn answered(at: usize, blocks: &[&Value], open: &[&str]) -> Result<(), String> {
    let is_result = |block: &&&Value| block["type"] == "tool_result";
    let results: Vec<&str> =
        blocks.iter().take_while(is_result).map(|block| block["tool_use_id"].as_str().unwrap_or_default()).collect();
    let all = blocks.iter().filter(is_result).count();
    ensure(all == results.len(), || format!("turn {at}: tool_result blocks must come first"))?;
    for id in open {
        ensure(results.contains(id), || format!("turn {at}: tool_use `{id}` without a tool_result right after it"))?;
    }
    for (place, id) in results.iter().enumerate() {
        ensure(open.contains(id), || format!("turn {at}: tool_result for `{id}`, which is no tool_use before it"))?;
        ensure(!results[..place].contains(id), || format!("turn {at}: two tool_results for `{id}`"))?;
    }
    Ok(())
}

fn thought(at: usize, block: &Value) -> Result<(), String> {
    match block["type"].as_str() {
        Some("thinking") => {
            let signature = block["signature"].as_str().unwrap_or_default();
            let text = block["thinking"].as_str().unwrap_or_default();
            ensure(covers(signature, text), || format!("turn {at}: invalid `signature` in `thinking` block: {block}"))
        }
        Some("redacted_thinking") => {
            let is_ours = block["data"].as_str().is_some_and(|data| data.starts_with("secret-"));
            ensure(is_ours, || format!("turn {at}: invalid `data` in `redacted_thinking` block"))
        }
        _ => Ok(()),
    }
}
