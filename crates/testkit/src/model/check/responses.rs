//! What OpenAI Responses refuses.

use std::collections::HashSet;

use serde_json::Value;

use super::super::responses::is_sealed;
use super::{ensure, is_name, list};

const MAX_ID: usize = 64;

pub(super) fn check(body: &Value) -> Result<(), String> {
    super::whole(body)?;
    // Nothing is kept here, so there is nothing that a request could go on from.
    ensure(body["previous_response_id"].is_null(), || "previous_response_id: no such response".to_owned())?;
    tools(list(&body["tools"]))?;
    let items = list(&body["input"]);
    ensure(!items.is_empty(), || "input: at least one item is required".to_owned())?;
    conversation(items)
}

fn tools(all: &[Value]) -> Result<(), String> {
    let functions = all.iter().filter(|tool| tool["type"] == "function");
    super::tools(functions.map(|tool| (&tool["name"], &tool["parameters"])))?;
    for tool in all {
        match tool["type"].as_str().unwrap_or_default() {
            "function" | "web_search" => {}
            "custom" => {
                let name = tool["name"].as_str().unwrap_or_default();
                ensure(is_name(name), || format!("tools: `{name}` is no name"))?;
            }
            "namespace" => {
                let name = tool["name"].as_str().unwrap_or_default();
                ensure(is_name(name), || format!("tools: `{name}` is no name"))?;
                tools(list(&tool["tools"]))?;
            }
            other => return Err(format!("tools: unknown type `{other}`")),
        }
    }
    Ok(())
}

fn conversation(items: &[Value]) -> Result<(), String> {
    let mut known = HashSet::new();
    let mut open: Vec<&str> = Vec::new();
    for (at, item) in items.iter().enumerate() {
        match item["type"].as_str().unwrap_or("message") {
            "message" => message(at, item)?,
            "additional_tools" => tools(list(&item["tools"]))?,
            "reasoning" => thought(at, item, items.get(at + 1))?,
            "function_call" => {
                let id = call(at, item)?;
                ensure(known.insert(id), || format!("input[{at}]: two calls have the id `{id}`"))?;
                open.push(id);
            }
            "function_call_output" => {
                let id = item["call_id"].as_str().unwrap_or_default();
                let before = open.len();
                open.retain(|open| *open != id);
                ensure(open.len() < before, || format!("input[{at}]: no call `{id}` waits for this output"))?;
                let output = &item["output"];
                ensure(output.is_string() || output.is_array(), || format!("input[{at}]: not an output: {output}"))?;
            }
            other => return Err(format!("input[{at}]: unknown type `{other}`")),
        }
    }
    ensure(open.is_empty(), || format!("no output found for the calls {open:?}"))
}

fn message(at: usize, item: &Value) -> Result<(), String> {
    let role = item["role"].as_str().unwrap_or_default();
    let text = match role {
        "user" | "developer" | "system" => "input_text",
        "assistant" => "output_text",
        other => return Err(format!("input[{at}]: unknown role `{other}`")),
    };
    if item["content"].is_string() {
        return Ok(());
    }
    let parts = list(&item["content"]);
    ensure(!parts.is_empty(), || format!("input[{at}]: content must be a string or a list that is not empty"))?;
    for part in parts {
        let is_good = match part["type"].as_str().unwrap_or_default() {
            "input_image" => role == "user" && part["image_url"].is_string(),
            kind => kind == text && part["text"].is_string(),
        };
        ensure(is_good, || format!("input[{at}]: not a part of what `{role}` says: {part}"))?;
    }
    Ok(())
}

/// Checks a call; gives its id, which an output must name.
fn call(at: usize, item: &Value) -> Result<&str, String> {
    let id = item["call_id"].as_str().unwrap_or_default();
    ensure(!id.is_empty() && id.len() <= MAX_ID, || format!("input[{at}]: `{id}` is no id of a call"))?;
    let name = item["name"].as_str().unwrap_or_default();
    ensure(is_name(name), || format!("input[{at}]: `{name}` is no name of a tool"))?;
    let arguments = item["arguments"].as_str().unwrap_or_default();
    let is_object = serde_json::from_str::<Value>(arguments).is_ok_and(|value| value.is_object());
    ensure(is_object, || format!("input[{at}]: arguments are no JSON object: {arguments}"))?;
    Ok(id)
}

/// A thought comes back sealed as it was given out, and before what was thought of.
fn thought(at: usize, item: &Value, next: Option<&Value>) -> Result<(), String> {
    let sealed = item["encrypted_content"].as_str().unwrap_or_default();
    ensure(is_sealed(sealed), || format!("input[{at}]: the encrypted content could not be verified: {item}"))?;
    let is_followed = next.is_some_and(|next| match next["type"].as_str().unwrap_or("message") {
        "message" => next["role"] == "assistant",
        kind => matches!(kind, "reasoning" | "function_call"),
    });
    ensure(is_followed, || format!("input[{at}]: a reasoning item without the item that has to follow it"))
}
