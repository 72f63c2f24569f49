//! Models: asking one, over HTTP, and reading its answer as it comes.
//!
//! Two wire formats, each in its own module that nothing else knows: Anthropic Messages and OpenAI-compatible chat completions. A
//! request is made from a [`Context`] alone, so that the same log gives the same bytes. Nothing here retries, waits or writes: the
//! turn decides that.

use retake_engine::session::context::Context;
use retake_engine::session::entry::{Block, StopReason, Usage};
use serde_json::Value;

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
}

/// A model's whole answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// In order.
    pub blocks: Vec<Block>,
    /// What it cost.
    pub usage: Usage,
    /// Why it stopped.
    pub stop: StopReason,
}

/// Stands for the helper's work.
pub fn placeholder(_: &Context) {}
