//! What a model thought, as the different servers tell it, and what they want back.
//!
//! DeepSeek, llama.cpp and vLLM stream `reasoning_content`, newer vLLM `reasoning`; DeepSeek refuses a conversation with tools that
//! does not bring it back. OpenRouter streams `reasoning_details` besides, in fragments, and wants the whole blocks back: a signature
//! covers the whole text of its block. Gemini signs calls, in their `extra_content`, and refuses calls without.

use std::collections::BTreeMap;

use retake_engine::session::entry::Block;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// What came with calls besides, by the calls' ids.
pub(super) type Extras = BTreeMap<String, Box<RawValue>>;

/// The fields of an assistant's message that hold what it thought, as they came.
#[derive(Default, Deserialize, Serialize)]
pub(super) struct GivenBack {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_content: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_details: Option<Box<RawValue>>,
    /// Not a field of the message itself, but of its calls.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) extra_content: Extras,
}

/// What was heard so far of what the model thinks.
#[derive(Default)]
pub(super) struct Thoughts {
    reasoning_content: Option<String>,
    reasoning: Option<String>,
    details: Vec<Map<String, Value>>,
    /// What was shown, from whichever field had it.
    shown: String,
}

impl Thoughts {
    /// Takes what one chunk has; gives what is to be shown of it.
    pub(super) fn take(&mut self, content: Option<String>, reasoning: Option<String>, details: Vec<Value>) -> String {
        let of_details: String = details.iter().filter_map(readable).collect();
        // The same text may come in several fields of one chunk.
        let texts = [content.as_deref(), reasoning.as_deref(), Some(of_details.as_str())];
        let shown = texts.into_iter().flatten().find(|text| !text.is_empty()).unwrap_or_default().to_owned();
        self.shown.push_str(&shown);
        if let Some(content) = content {
            self.reasoning_content.get_or_insert_default().push_str(&content);
        }
        if let Some(reasoning) = reasoning {
            self.reasoning.get_or_insert_default().push_str(&reasoning);
        }
        for detail in details {
            if let Value::Object(detail) = detail {
                self.add_detail(detail);
            }
        }
        shown
    }

    /// The block, if there is anything to show or to give back. `calls` says whether the answer has any: the one case in which even
    /// an empty thought has to go back.
    pub(super) fn block(&self, calls: usize, extra_content: Extras) -> Option<Block> {
        let is_worth_it = |text: &&String| !text.is_empty() || calls > 0;
        let mut back = GivenBack { extra_content, ..GivenBack::default() };
        // One field is enough; the details have most.
        if !self.details.is_empty() {
            back.reasoning_details = raw(&self.details);
        } else if let Some(text) = self.reasoning_content.as_ref().filter(is_worth_it) {
            back.reasoning_content = raw(text);
        } else if let Some(text) = self.reasoning.as_ref().filter(|text| !text.is_empty()) {
            back.reasoning = raw(text);
        } else if back.extra_content.is_empty() {
            return None;
        }
        let opaque = serde_json::to_string(&back).expect("raw JSON can always be written");
        Some(Block::Reasoning { text: self.shown.clone(), opaque })
    }

    /// Fragments follow each other with the same type; the index is not to be relied on while streaming.
    fn add_detail(&mut self, detail: Map<String, Value>) {
        match self.details.last_mut() {
            Some(last) if continues(last, &detail) => {
                for (name, value) in detail {
                    extend(last, name, value);
                }
            }
            _ => self.details.push(detail),
        }
    }
}

fn raw(value: &impl Serialize) -> Option<Box<RawValue>> {
    serde_json::value::to_raw_value(value).ok()
}

fn readable(detail: &Value) -> Option<&str> {
    detail["text"].as_str().or_else(|| detail["summary"].as_str())
}

/// Whether `next` is a further fragment of the block that `last` begins.
fn continues(last: &Map<String, Value>, next: &Map<String, Value>) -> bool {
    let kind = last.get("type").and_then(Value::as_str);
    let is_streamed = matches!(kind, Some("reasoning.text" | "reasoning.summary"));
    let agrees = |name: &str| match (last.get(name), next.get(name)) {
        (Some(one), Some(two)) => one.is_null() || two.is_null() || one == two,
        _ => true,
    };
    // A signature ends its block.
    let is_signed = last.get("signature").is_some_and(|signature| !signature.is_null());
    is_streamed && next.get("type") == last.get("type") && agrees("index") && agrees("id") && !is_signed
}

fn extend(block: &mut Map<String, Value>, name: String, value: Value) {
    let is_piece = matches!(name.as_str(), "text" | "summary");
    match (block.get_mut(&name), value) {
        (Some(Value::String(whole)), Value::String(piece)) if is_piece => whole.push_str(&piece),
        (_, Value::Null) => {}
        (_, value) => {
            block.insert(name, value);
        }
    }
}
