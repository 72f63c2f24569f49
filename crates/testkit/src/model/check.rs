//! Checks requests as strictly as the real servers do: what they would refuse is refused here, with a word about why.

mod anthropic;
mod openai;
mod responses;

use serde_json::Value;

use super::received::{Received, Wire};
use super::serve::Issued;

/// Where there is something to be asked.
const PATHS: [&str; 3] = ["/v1/messages", "/v1/chat/completions", "/v1/responses"];

/// The status of whatever is asked elsewhere.
pub(super) const NOT_THERE: u16 = 404;

/// Why a request is not answered.
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) why: String,
}

impl Refusal {
    /// Nobody expected the request.
    pub(super) fn surprise(received: &Received) -> Self {
        Self { status: 417, why: format!("no answer is left for this request:\n{}", received.transcript()) }
    }
}

/// Checks a request.
pub(super) fn check(received: &Received, issued: &Issued) -> Result<(), Refusal> {
    if !PATHS.contains(&received.path.split('?').next().unwrap_or_default()) {
        return Err(Refusal { status: NOT_THERE, why: format!("there is nothing at {}", received.path) });
    }
    let checked = match received.wire() {
        Wire::Anthropic => anthropic::check(received),
        Wire::OpenAi => openai::check(received.body(), issued),
        Wire::Responses => responses::check(received.body()),
    };
    checked.map_err(|why| Refusal { status: 400, why })
}

/// What all formats want of the whole.
fn whole(body: &Value) -> Result<(), String> {
    ensure(body["model"].as_str().is_some_and(|name| !name.is_empty()), || "model: is missing".to_owned())?;
    ensure(body["stream"] == true, || "stream: we always stream".to_owned())
}

/// What the formats with messages want of the whole, and the messages.
fn messages(body: &Value) -> Result<&[Value], String> {
    whole(body)?;
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    ensure(!messages.is_empty(), || "messages: at least one message is required".to_owned())?;
    Ok(messages)
}

fn ensure(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= 64 && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// A list of tools: names that are allowed and differ, schemas of objects.
fn tools<'a>(tools: impl Iterator<Item = (&'a Value, &'a Value)>) -> Result<(), String> {
    let mut names = Vec::new();
    for (name, schema) in tools {
        let name = name.as_str().unwrap_or_default();
        ensure(is_name(name), || format!("tools: `{name}` is no name"))?;
        ensure(!names.contains(&name), || format!("tools: names must be unique, but `{name}` is there twice"))?;
        ensure(schema["type"] == "object", || format!("tools: the schema of `{name}` is not of an object"))?;
        names.push(name);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
