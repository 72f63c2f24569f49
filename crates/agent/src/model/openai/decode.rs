//! Reads an answer, chunk by chunk.

use retake_engine::session::entry::{Block, CallId, StopReason, Usage};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::thoughts::{Extras, Thoughts};
use crate::model::client::Trouble;
use crate::model::{Delta, ModelAnswer, call_ids};

/// What was read so far.
#[derive(Default)]
pub(crate) struct Decoder {
    thoughts: Thoughts,
    text: String,
    calls: Vec<StreamedCall>,
    usage: Option<WireUsage>,
    finish: Option<String>,
    refused: bool,
    /// That the model has thought enough was told.
    thoughts_told: bool,
    is_over: bool,
}

#[derive(Default)]
struct StreamedCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    extra: Option<Box<RawValue>>,
    /// That it began was told.
    told: bool,
}

#[derive(Deserialize)]
struct Chunk {
    #[serde(default, deserialize_with = "or_default")]
    choices: Vec<Choice>,
    usage: Option<WireUsage>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    /// A server that does not stream calls it `message`.
    #[serde(alias = "message", default, deserialize_with = "or_default")]
    delta: WireDelta,
    finish_reason: Option<String>,
}

#[derive(Default, Deserialize)]
struct WireDelta {
    #[serde(default)]
    content: Value,
    reasoning_content: Option<String>,
    #[serde(default)]
    reasoning: Value,
    #[serde(default, deserialize_with = "or_default")]
    reasoning_details: Vec<Value>,
    refusal: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    tool_calls: Vec<WireCall>,
}

#[derive(Deserialize)]
struct WireCall {
    index: Option<u64>,
    id: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    function: WireFunction,
    extra_content: Option<Box<RawValue>>,
}

#[derive(Default, Deserialize)]
struct WireFunction {
    name: Option<String>,
    #[serde(default)]
    arguments: Value,
}

#[derive(Default, Deserialize)]
struct WireUsage {
    #[serde(default, deserialize_with = "or_default")]
    prompt_tokens: u64,
    #[serde(default, deserialize_with = "or_default")]
    completion_tokens: u64,
    #[serde(default, deserialize_with = "or_default")]
    prompt_tokens_details: Details,
    prompt_cache_hit_tokens: Option<u64>,
    cost: Option<f64>,
}

#[derive(Default, Deserialize)]
struct Details {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

/// `null` is as good as nothing: servers send it for fields that they know but do not use.
fn or_default<'de, D: serde::Deserializer<'de>, T: Default + Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl Decoder {
    /// Takes the data of one event.
    pub(crate) fn take(&mut self, data: &str) -> Result<Vec<Delta>, Trouble> {
        if data.trim() == "[DONE]" {
            self.is_over = true;
            return Ok(Vec::new());
        }
        let malformed = |error: serde_json::Error| Trouble::Malformed(format!("{error} in a chunk"));
        let chunk: Chunk = serde_json::from_str(data).map_err(malformed)?;
        if chunk.error.is_some_and(|error| !error.is_null()) {
            return Err(Trouble::Failed);
        }
        self.usage = chunk.usage.or(self.usage.take());
        let mut deltas = Vec::new();
        // There is one: we never ask for more.
        for choice in chunk.choices.into_iter().take(1) {
            self.finish = choice.finish_reason.or(self.finish.take());
            self.take_delta(choice.delta, &mut deltas);
        }
        Ok(deltas)
    }

    /// The last event came.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// What came is a whole answer. The end of the stream alone proves nothing, and not every server sends the last event.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_over || self.finish.is_some()
    }

    /// The answer.
    pub(crate) fn finish(self) -> ModelAnswer {
        let has_calls = !self.calls.is_empty();
        let stop = match self.finish.as_deref() {
            Some("length" | "max_tokens") => StopReason::Length,
            Some("content_filter" | "refusal") => StopReason::Refused,
            _ if self.refused => StopReason::Refused,
            // Some servers say `stop` even if there are calls.
            _ if has_calls => StopReason::Calls,
            _ => StopReason::Done,
        };
        let (mut taken, mut extras) = (Vec::new(), Extras::new());
        let calls: Vec<_> = self.calls.into_iter().map(|call| call.end(&mut taken, &mut extras)).collect();
        let mut blocks: Vec<_> = self.thoughts.block(calls.len(), extras).into_iter().collect();
        blocks.extend((!self.text.is_empty()).then_some(Block::Text { text: self.text }));
        blocks.extend(calls);
        ModelAnswer { blocks, usage: self.usage.map(|usage| usage.total()).unwrap_or_default(), stop }
    }

    fn take_delta(&mut self, delta: WireDelta, deltas: &mut Vec<Delta>) {
        let reasoning = delta.reasoning.as_str().map(str::to_owned);
        let shown = self.thoughts.take(delta.reasoning_content, reasoning, delta.reasoning_details);
        deltas.extend((!shown.is_empty()).then_some(Delta::Reasoning(shown)));
        let refusal = delta.refusal.filter(|text| !text.is_empty());
        self.refused |= refusal.is_some();
        let content = text_of(&delta.content);
        let begins = !content.is_empty() || !delta.tool_calls.is_empty();
        if begins && !self.thoughts_told {
            // No event says that a thought is complete; that something else begins does.
            self.thoughts_told = true;
            deltas.extend(self.thoughts.block(delta.tool_calls.len(), Extras::new()).map(Delta::Finished));
        }
        for text in [content, refusal.unwrap_or_default()] {
            self.text.push_str(&text);
            deltas.extend((!text.is_empty()).then_some(Delta::Text(text)));
        }
        for piece in delta.tool_calls {
            let call = self.call_of(&piece);
            call.extend(piece);
            if !call.told && !call.name.is_empty() {
                call.told = true;
                deltas.push(Delta::CallBegan(call.name.clone()));
            }
        }
    }

    /// The call that `piece` belongs to.
    fn call_of(&mut self, piece: &WireCall) -> &mut StreamedCall {
        let id = piece.id.as_deref().filter(|id| !id.is_empty());
        let begins = piece.function.name.as_deref().is_some_and(|name| !name.is_empty());
        let at = match piece.index {
            Some(index) => self.calls.iter().rposition(|call| call.index == Some(index)),
            None => self.calls.iter().rposition(|call| id == Some(call.id.as_str())),
        };
        // Whole calls may all come with the same index or without one; what tells them apart is that each has a name and an id.
        let is_another = |call: &StreamedCall| begins && id.is_some_and(|id| !call.id.is_empty() && call.id != id);
        let at = match (at, piece.index) {
            (Some(at), _) if !is_another(&self.calls[at]) => Some(at),
            (None, None) if !begins && !self.calls.is_empty() => Some(self.calls.len() - 1),
            _ => None,
        };
        let at = at.unwrap_or_else(|| {
            self.calls.push(StreamedCall { index: piece.index, ..StreamedCall::default() });
            self.calls.len() - 1
        });
        &mut self.calls[at]
    }
}

impl StreamedCall {
    fn extend(&mut self, piece: WireCall) {
        if let Some(id) = piece.id.filter(|_| self.id.is_empty()) {
            self.id = id;
        }
        if let Some(name) = piece.function.name.filter(|_| self.name.is_empty()) {
            self.name = name;
        }
        self.extra = piece.extra_content.or(self.extra.take());
        match piece.function.arguments {
            Value::Null => {}
            Value::String(text) => self.arguments.push_str(&text),
            whole => self.arguments.push_str(&whole.to_string()),
        }
    }

    /// The block; an id that is missing or taken is replaced by a new one.
    fn end(self, taken: &mut Vec<String>, extras: &mut Extras) -> Block {
        let is_good = !self.id.is_empty() && !taken.contains(&self.id);
        let id = if is_good { self.id } else { call_ids::mint() };
        taken.push(id.clone());
        extras.extend(self.extra.map(|extra| (id.clone(), extra)));
        let arguments = if self.arguments.trim().is_empty() { "{}".to_owned() } else { self.arguments };
        Block::Call { id: CallId(id), name: self.name, arguments }
    }
}

impl WireUsage {
    fn total(&self) -> Usage {
        let details = &self.prompt_tokens_details;
        Usage {
            input: self.prompt_tokens,
            output: self.completion_tokens,
            cache_read: details.cached_tokens.or(self.prompt_cache_hit_tokens).unwrap_or(0),
            cache_write: details.cache_write_tokens.unwrap_or(0),
            cost: self.cost,
        }
    }
}

/// A text, or a list of parts that have one.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}
