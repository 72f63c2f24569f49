//! Reads an answer, event by event.

use std::borrow::Cow;

use retake_engine::session::entry::{Block, CallId, StopReason, Usage};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::model::client::Trouble;
use crate::model::{Delta, ModelAnswer, call_ids};

/// What was read so far.
#[derive(Default)]
pub(crate) struct Decoder {
    /// Those that have not ended, by the server's index.
    open: Vec<(u64, OpenBlock)>,
    blocks: Vec<Block>,
    usage: WireUsage,
    stop: Option<String>,
    is_over: bool,
}

/// A block that has not ended.
enum OpenBlock {
    Text(String),
    Thinking {
        text: String,
        signature: String,
    },
    Redacted {
        opaque: String,
    },
    Call {
        id: String,
        name: String,
        arguments: String,
        given: String,
    },
    /// Of a kind that we never asked for.
    Unknown,
}

/// Any event. Raw JSON cannot be read out of an enum that is told apart by a field, so the fields of all events are here.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(default)]
    index: u64,
    message: Option<Started>,
    #[serde(borrow)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
struct Started {
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
struct Stopped {
    stop_reason: Option<String>,
}

#[derive(Default, Deserialize)]
struct WireUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct StartedBlock<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(default)]
    text: String,
    #[serde(default)]
    thinking: String,
    #[serde(default)]
    signature: String,
    #[serde(default)]
    id: String,
    #[serde(default)]
    name: String,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[allow(clippy::enum_variant_names)]
enum WireDelta {
    TextDelta {
        text: String,
    },
    ThinkingDelta {
        thinking: String,
    },
    SignatureDelta {
        signature: String,
    },
    InputJsonDelta {
        partial_json: String,
    },
    #[serde(other)]
    Other,
}

/// A thought as it goes back.
#[derive(Serialize)]
struct Thought<'a> {
    r#type: &'static str,
    thinking: &'a str,
    signature: &'a str,
}

impl Decoder {
    /// Takes the data of one event.
    pub(crate) fn take(&mut self, data: &str) -> Result<Vec<Delta>, Trouble> {
        let event: Event<'_> = serde_json::from_str(data).map_err(malformed)?;
        if let Some(usage) = event.message.and_then(|message| message.usage).or(event.usage) {
            self.usage.update(&usage);
        }
        match (&*event.r#type, event.content_block, event.delta) {
            ("content_block_start", Some(block), _) => return self.start(event.index, block),
            ("content_block_delta", _, Some(delta)) => {
                let delta = serde_json::from_str(delta.get()).map_err(malformed)?;
                return Ok(self.extend(event.index, delta));
            }
            ("content_block_stop", ..) => return Ok(self.end(event.index)),
            ("message_delta", _, Some(delta)) => {
                let delta: Stopped = serde_json::from_str(delta.get()).map_err(malformed)?;
                self.stop = delta.stop_reason.or(self.stop.take());
            }
            ("message_stop", ..) => self.is_over = true,
            ("error", ..) => return Err(Trouble::Failed),
            // `ping`, and whatever else will be thought of.
            _ => {}
        }
        Ok(Vec::new())
    }

    /// The last event came.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// What came is a whole answer, whether or not the last event came.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_over || self.stop.is_some()
    }

    /// The answer.
    pub(crate) fn finish(mut self) -> ModelAnswer {
        let left_open = std::mem::take(&mut self.open);
        self.blocks.extend(left_open.into_iter().filter_map(|(_, open)| open.cut()));
        let calls = self.blocks.iter().any(|block| matches!(block, Block::Call { .. }));
        let stop = match self.stop.as_deref() {
            Some("max_tokens" | "model_context_window_exceeded") => StopReason::Length,
            Some("refusal") => StopReason::Refused,
            // `end_turn`, `tool_use`, `stop_sequence`, `pause_turn`: whether there is something to do is told by the calls.
            _ if calls => StopReason::Calls,
            _ => StopReason::Done,
        };
        ModelAnswer { blocks: self.blocks, usage: self.usage.total(), stop }
    }

    fn start(&mut self, index: u64, block: &RawValue) -> Result<Vec<Delta>, Trouble> {
        let started: StartedBlock<'_> = serde_json::from_str(block.get()).map_err(malformed)?;
        let mut deltas = Vec::new();
        let open = match &*started.r#type {
            "text" => {
                deltas.extend((!started.text.is_empty()).then(|| Delta::Text(started.text.clone())));
                OpenBlock::Text(started.text)
            }
            "thinking" => {
                deltas.extend((!started.thinking.is_empty()).then(|| Delta::Reasoning(started.thinking.clone())));
                OpenBlock::Thinking { text: started.thinking, signature: started.signature }
            }
            "redacted_thinking" => OpenBlock::Redacted { opaque: block.get().to_owned() },
            "tool_use" => {
                deltas.push(Delta::CallBegan(started.name.clone()));
                let given = started.input.map(|input| input.get().to_owned()).unwrap_or_default();
                let id = if self.is_unusable(&started.id) { call_ids::mint() } else { started.id };
                OpenBlock::Call { id, name: started.name, arguments: String::new(), given }
            }
            _ => OpenBlock::Unknown,
        };
        self.open.push((index, open));
        Ok(deltas)
    }

    /// Whether an id is missing, or another call has it.
    fn is_unusable(&self, given: &str) -> bool {
        let ended = self.blocks.iter().any(|block| matches!(block, Block::Call { id, .. } if id.0 == given));
        let open = self.open.iter().any(|(_, open)| matches!(open, OpenBlock::Call { id, .. } if id == given));
        given.is_empty() || ended || open
    }

    fn extend(&mut self, index: u64, delta: WireDelta) -> Vec<Delta> {
        let Some((_, open)) = self.open.iter_mut().find(|(open, _)| *open == index) else { return Vec::new() };
        match (open, delta) {
            (OpenBlock::Text(whole), WireDelta::TextDelta { text }) => {
                whole.push_str(&text);
                vec![Delta::Text(text)]
            }
            (OpenBlock::Thinking { text, .. }, WireDelta::ThinkingDelta { thinking }) => {
                text.push_str(&thinking);
                vec![Delta::Reasoning(thinking)]
            }
            (OpenBlock::Thinking { signature: whole, .. }, WireDelta::SignatureDelta { signature }) => {
                whole.push_str(&signature);
                Vec::new()
            }
            (OpenBlock::Call { arguments, .. }, WireDelta::InputJsonDelta { partial_json }) => {
                arguments.push_str(&partial_json);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn end(&mut self, index: u64) -> Vec<Delta> {
        let Some(at) = self.open.iter().position(|(open, _)| *open == index) else { return Vec::new() };
        let block = self.open.remove(at).1.end();
        self.blocks.extend(block.clone());
        block.map(Delta::Finished).into_iter().collect()
    }
}

#[allow(clippy::needless_pass_by_value, reason = "`map_err` gives it by value")]
fn malformed(error: serde_json::Error) -> Trouble {
    Trouble::Malformed(format!("{error} in an event"))
}

impl OpenBlock {
    /// The block, though its end never came. A signature that may be cut would be refused from then on, so it is not kept.
    fn cut(self) -> Option<Block> {
        match self {
            Self::Thinking { text, .. } => Some(Block::Reasoning { text, opaque: String::new() }),
            whole => whole.end(),
        }
    }

    /// The block, unless there is nothing in it.
    fn end(self) -> Option<Block> {
        match self {
            Self::Text(text) => (!text.is_empty()).then_some(Block::Text { text }),
            Self::Thinking { text, signature } => {
                let thought = Thought { r#type: "thinking", thinking: &text, signature: &signature };
                let opaque = serde_json::to_string(&thought).expect("strings can always be written");
                Some(Block::Reasoning { text, opaque })
            }
            Self::Redacted { opaque } => Some(Block::Reasoning { text: String::new(), opaque }),
            Self::Call { id, name, arguments, given } => {
                let arguments = [arguments, given].into_iter().find(|json| !json.trim().is_empty());
                Some(Block::Call { id: CallId(id), name, arguments: arguments.unwrap_or_else(|| "{}".to_owned()) })
            }
            Self::Unknown => None,
        }
    }
}

impl WireUsage {
    /// Later numbers are totals, and stand for the earlier ones.
    fn update(&mut self, later: &Self) {
        let newer = |old: &mut Option<u64>, new: Option<u64>| *old = new.or(*old);
        newer(&mut self.input_tokens, later.input_tokens);
        newer(&mut self.output_tokens, later.output_tokens);
        newer(&mut self.cache_read_input_tokens, later.cache_read_input_tokens);
        newer(&mut self.cache_creation_input_tokens, later.cache_creation_input_tokens);
    }

    fn total(&self) -> Usage {
        let cache_read = self.cache_read_input_tokens.unwrap_or(0);
        let cache_write = self.cache_creation_input_tokens.unwrap_or(0);
        // The API counts what came from a cache, or went there, apart.
        let input = self.input_tokens.unwrap_or(0) + cache_read + cache_write;
        Usage { input, output: self.output_tokens.unwrap_or(0), cache_read, cache_write, cost: None }
    }
}
