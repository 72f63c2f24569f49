//! Writing an answer into the script, a word at a time.

use serde_json::Value;

use super::{Answer, Gate, ScriptedModel, Stop, Tokens};

/// An answer that is being written. It goes into the script when the statement ends, so no request can find it half written.
pub struct Scripting<'m> {
    model: &'m ScriptedModel,
    answer: Answer,
}

impl<'m> Scripting<'m> {
    pub(super) fn new(model: &'m ScriptedModel) -> Self {
        Self { model, answer: Answer::default() }
    }

    pub(super) fn with(mut self, change: impl FnOnce(Answer) -> Answer) -> Self {
        self.answer = change(std::mem::take(&mut self.answer));
        self
    }

    /// Then it says `text`.
    pub fn says(self, text: &str) -> Self {
        self.with(|answer| answer.says(text))
    }

    /// Then it thinks `text`, with a signature where the wire format has them.
    pub fn thinks(self, text: &str) -> Self {
        self.with(|answer| answer.thinks(text))
    }

    /// Then it thinks something that nobody may read; only Anthropic's format has this.
    pub fn thinks_in_secret(self) -> Self {
        self.with(Answer::thinks_in_secret)
    }

    /// Then it calls a tool; several calls are parallel.
    #[allow(clippy::needless_pass_by_value, reason = "a literal in a scene reads better without a reference")]
    pub fn calls(self, tool: &str, arguments: Value) -> Self {
        self.with(|answer| answer.calls(tool, arguments))
    }

    /// Then it calls a tool with arguments that need not be JSON.
    pub fn calls_with_text(self, tool: &str, arguments: &str) -> Self {
        self.with(|answer| answer.calls_with_text(tool, arguments))
    }

    /// Then it waits until `gate` is opened.
    pub fn waits_for(self, gate: &Gate) -> Self {
        self.with(|answer| answer.waits_for(gate))
    }

    /// Nothing comes, not even a status, until the gate is opened.
    pub fn pauses(self) -> Gate {
        let gate = Gate::new();
        drop(self.with(|answer| answer.begins_after(&gate)));
        gate
    }

    /// It costs this.
    pub fn costs(self, tokens: Tokens) -> Self {
        self.with(|answer| answer.costs(tokens))
    }

    /// It stops for this reason.
    pub fn stops(self, stop: Stop) -> Self {
        self.with(|answer| answer.stops(stop))
    }

    /// The connection breaks after so many events.
    pub fn cuts_after(self, events: usize) -> Self {
        self.with(|answer| answer.cuts_after(events))
    }

    /// The server reports an error in the middle of the stream, after what was said.
    pub fn breaks_with(self, kind: &str, message: &str) -> Self {
        self.with(|answer| answer.breaks_with(kind, message))
    }

    /// The response has this header.
    pub fn header(self, name: &str, value: &str) -> Self {
        self.with(|answer| answer.header(name, value))
    }
}

impl Drop for Scripting<'_> {
    fn drop(&mut self) {
        self.model.answers(std::mem::take(&mut self.answer));
    }
}
