//! One answer of the script, whatever the wire format.

use serde_json::Value;

use super::Gate;

/// What the model answers to one request.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    pub(super) pieces: Vec<AnswerPart>,
    pub(super) tokens: Tokens,
    pub(super) stop: Option<Stop>,
    pub(super) how: How,
    pub(super) gate: Option<Gate>,
    pub(super) cut_after: Option<usize>,
    pub(super) error: Option<(String, String)>,
    pub(super) headers: Vec<(String, String)>,
}

#[derive(Clone, Debug)]
pub(super) enum AnswerPart {
    Text(String),
    Thought(String),
    SecretThought,
    Call { tool: String, arguments: String },
    Wait(Gate),
}

/// In what way it is answered.
#[derive(Clone, Debug, Default)]
pub(super) enum How {
    /// As a stream of the pieces.
    #[default]
    Stream,
    /// As a stream of exactly these events.
    Raw(String),
    /// As a failure.
    Failure { status: u16, body: String },
    /// Not at all.
    HangUp,
}

/// What an answer costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tokens {
    /// Read, those from a cache included.
    pub input: u64,
    /// Written.
    pub output: u64,
    /// Of the input, from a cache.
    pub cache_read: u64,
    /// Of the input, put into a cache.
    pub cache_write: u64,
}

impl Default for Tokens {
    fn default() -> Self {
        Self { input: 100, output: 20, cache_read: 0, cache_write: 0 }
    }
}

/// Why the model stops, if it is not because it has said all or called tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The answer became too long.
    Length,
    /// It refuses.
    Refusal,
}

impl Answer {
    fn then(mut self, piece: AnswerPart) -> Self {
        self.pieces.push(piece);
        self
    }

    /// Then it says `text`.
    pub fn says(self, text: &str) -> Self {
        self.then(AnswerPart::Text(text.to_owned()))
    }

    /// Then it thinks `text`.
    pub fn thinks(self, text: &str) -> Self {
        self.then(AnswerPart::Thought(text.to_owned()))
    }

    /// Then it thinks something that nobody may read.
    pub fn thinks_in_secret(self) -> Self {
        self.then(AnswerPart::SecretThought)
    }

    /// Then it calls a tool.
    #[allow(clippy::needless_pass_by_value, reason = "a literal in a scene reads better without a reference")]
    pub fn calls(self, tool: &str, arguments: Value) -> Self {
        self.calls_with_text(tool, &arguments.to_string())
    }

    /// Then it calls a tool with arguments that need not be JSON.
    pub fn calls_with_text(self, tool: &str, arguments: &str) -> Self {
        self.then(AnswerPart::Call { tool: tool.to_owned(), arguments: arguments.to_owned() })
    }

    /// Then it waits until `gate` is opened.
    pub fn waits_for(self, gate: &Gate) -> Self {
        self.then(AnswerPart::Wait(gate.clone()))
    }

    /// Nothing comes, not even a status, until `gate` is opened.
    pub fn begins_after(mut self, gate: &Gate) -> Self {
        self.gate = Some(gate.clone());
        self
    }

    /// It costs this.
    pub fn costs(mut self, tokens: Tokens) -> Self {
        self.tokens = tokens;
        self
    }

    /// It stops for this reason.
    pub fn stops(mut self, stop: Stop) -> Self {
        self.stop = Some(stop);
        self
    }

    /// The connection breaks after so many events.
    pub fn cuts_after(mut self, events: usize) -> Self {
        self.cut_after = Some(events);
        self
    }

    /// The server reports an error in the middle of the stream.
    pub fn breaks_with(mut self, kind: &str, message: &str) -> Self {
        self.error = Some((kind.to_owned(), message.to_owned()));
        self
    }

    /// The response has this header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// It is a failure.
    pub fn fails_with(mut self, status: u16, body: &str) -> Self {
        self.how = How::Failure { status, body: body.to_owned() };
        self
    }

    /// It is exactly these events.
    pub fn streams(mut self, events: &str) -> Self {
        self.how = How::Raw(events.to_owned());
        self
    }

    /// The connection is closed without a word.
    pub fn hangs_up(mut self) -> Self {
        self.how = How::HangUp;
        self
    }

    pub(super) fn has_calls(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, AnswerPart::Call { .. }))
    }
}

/// What is sent, in order.
pub(super) enum StreamStep {
    Event(String),
    Wait(Gate),
}

/// `text` in a few pieces, as a model streams it: cut anywhere but within a character.
pub(super) fn in_pieces(text: &str) -> Vec<&str> {
    let third = |n: usize| text.ceil_char_boundary(text.len() * n / 3);
    let pieces = [&text[..third(1)], &text[third(1)..third(2)], &text[third(2)..]];
    pieces.into_iter().filter(|piece| !piece.is_empty()).collect()
}
