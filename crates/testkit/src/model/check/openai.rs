//! What servers of chat completions refuse: OpenAI's rules, and DeepSeek's about thoughts.

use serde_json::Value;

use super::super::serve::Issued;
use super::{ensure, is_name, list, messages};

const MAX_ID: usize = 40;

pub(super) fn check(body: &Value, issued: &Issued) -> Result<(), String> {
    super::tools(list(&body["tools"]).iter().map(|tool| (&tool["function"]["name"], &tool["function"]["parameters"])))?;
    ensure(body["stream_options"]["include_usage"] == true, || "stream_options: we want to know the usage".to_owned())?;
    let model = body["model"].as_str().unwrap_or_default();
    let mut open: Vec<&str> = Vec::new();
    for (at, message) in messages(body)?.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            let before = open.len();
            open.retain(|open| *open != id);
            ensure(open.len() < before, || format!("messages[{at}]: no tool_call `{id}` waits for this result"))?;
        } else {
            ensure(open.is_empty(), || {
                format!("messages[{at}]: tool_calls without results right after them: {open:?}")
            })?;
        }
        match role {
            "assistant" => open = assistant(at, message, model, issued)?,
            "system" | "user" | "tool" => content(at, &message["content"])?,
            other => return Err(format!("messages[{at}]: unknown role `{other}`")),
        }
        ensure(role != "system" || at == 0, || format!("messages[{at}]: the system message comes first"))?;
    }
    ensure(open.is_empty(), || format!("tool_calls without results right after them: {open:?}"))
}

fn content(at: usize, content: &Value) -> Result<(), String> {
    let has_words = |text: &Value| text.as_str().is_some_and(|text| !text.trim().is_empty());
    if content.is_string() {
        return ensure(has_words(content), || format!("messages[{at}]: content is empty"));
    }
    ensure(!list(content).is_empty(), || format!("messages[{at}]: content must be a string or a list, not {content}"))?;
    for part in list(content) {
        let is_good = match part["type"].as_str().unwrap_or_default() {
            "text" => has_words(&part["text"]),
            "image_url" => part["image_url"]["url"].as_str().is_some_and(|url| url.starts_with("data:image/")),
            _ => false,
        };
        ensure(is_good, || format!("messages[{at}]: not a part: {part}"))?;
    }
    Ok(())
}

/// Checks an answer; gives its calls, which must be answered next.
fn assistant<'a>(at: usize, message: &'a Value, model: &str, issued: &Issued) -> Result<Vec<&'a str>, String> {
    let calls = list(&message["tool_calls"]);
    if calls.is_empty() || !message["content"].is_null() {
        content(at, &message["content"])?;
    }
    let mut ids = Vec::new();
    for call in calls {
        let id = call["id"].as_str().unwrap_or_default();
        ensure(!id.is_empty() && id.len() <= MAX_ID, || format!("messages[{at}]: `{id}` is no id of a call"))?;
        ensure(!ids.contains(&id), || format!("messages[{at}]: two calls have the id `{id}`"))?;
        let name = call["function"]["name"].as_str().unwrap_or_default();
        ensure(is_name(name), || format!("messages[{at}]: `{name}` is no name of a tool"))?;
        let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
        let is_object = serde_json::from_str::<Value>(arguments).is_ok_and(|value| value.is_object());
        ensure(is_object, || format!("messages[{at}]: arguments are no JSON object: {arguments}"))?;
        if let Some((of_model, thought)) = issued.thoughts.get(id)
            && of_model == model
        {
            let back = message["reasoning_content"].as_str().unwrap_or_default();
            ensure(back == thought, || format!("messages[{at}]: the reasoning_content must be passed back as it was"))?;
        }
        ids.push(id);
    }
    Ok(ids)
}
