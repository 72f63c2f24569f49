//! Models: asking one, over HTTP, and reading its answer as it comes.
//!
//! Two wire formats, each in its own module that nothing else knows: Anthropic Messages and OpenAI-compatible chat completions. A
//! request is made from a [`Context`](retake_engine::session::context::Context) alone, so that the same log gives the same bytes.
//! Nothing here retries, waits or writes: the turn decides that, by what a [`ModelError`] says can be done.

mod anthropic;
mod client;
mod error;
mod failure;
mod heard;
mod ids;
mod models;
mod openai;
mod settings;
pub(crate) mod sse;
mod words;

use retake_engine::session::entry::{Block, StopReason, Usage};
use serde_json::Value;

pub use client::{Model, Request};
pub use error::{ModelError, Server};
pub use heard::Heard;
pub use models::{ModelRefused, Models};
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

/// Something that came while a model answers; superseded by the [`Answer`].
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
pub struct Answer {
    /// In order.
    pub blocks: Vec<Block>,
    /// What it cost.
    pub usage: Usage,
    /// Why it stopped. After [`StopReason::Length`] the last call may be cut, and its arguments no JSON.
    pub stop: StopReason,
}
