//! Models: asking one, over HTTP, and reading its answer as it comes.
//!
//! Two wire formats, each in its own module that nothing else knows: Anthropic Messages and OpenAI-compatible chat completions. A
//! request is made from a [`Context`](retake_engine::session::context::Context) alone, so that the same log gives the same bytes.
//! Nothing here retries, waits or writes: the turn decides that, by what a [`ModelError`] says can be done.

mod anthropic;
mod call_ids;
mod client;
mod error;
mod error_response;
mod lookup;
mod openai;
mod part_text;
mod partial_answer;
mod settings;
pub(crate) mod sse;

use retake_engine::session::entry::{Block, StopReason, Usage};
use serde_json::Value;

pub use client::{Model, ModelRequest};
pub use error::{ModelError, ServerPlace};
pub use lookup::{ModelRefused, Models};
pub use partial_answer::PartialAnswer;
pub use settings::{Api, Effort, Key, ModelSettings, Prices, Reasoning, SettingsError};

/// What the model is told of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// What it is called.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// Its arguments, as a JSON schema.
    pub schema: Value,
}

/// Something that came while a model answers; superseded by the [`ModelAnswer`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    /// Text for the user.
    Text(String),
    /// What the model thinks.
    Reasoning(String),
    /// It began to write a call of this tool.
    CallBegan(String),
    /// A block is complete, a thought with its signature, say; it stands for the pieces that came of it.
    Finished(Block),
}

/// A model's whole answer.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelAnswer {
    /// In order.
    pub blocks: Vec<Block>,
    /// What it cost.
    pub usage: Usage,
    /// Why it stopped. After [`StopReason::Length`] the last call may be cut, and its arguments no JSON.
    pub stop: StopReason,
}
