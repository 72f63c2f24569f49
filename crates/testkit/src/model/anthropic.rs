//! Answers as Anthropic Messages streams them.

use serde_json::{Value, json};

use super::answer::{Answer, AnswerPart, Stop, StreamStep, in_pieces};
use super::serve::unique;

/// The events of `answer`.
pub(super) fn steps(answer: &Answer, model: &str) -> Vec<StreamStep> {
    let mut stream = Stream { steps: Vec::new(), blocks: 0, text_is_open: false };
    stream.send(&started(answer, model));
    stream.send(&json!({"type": "ping"}));
    for piece in &answer.pieces {
        stream.piece(piece);
    }
    stream.close_text();
    if let Some((kind, message)) = &answer.error {
        stream.send(&json!({"type": "error", "error": {"type": kind, "message": message}}));
        return stream.steps;
    }
    let delta = json!({"stop_reason": stop_reason(answer), "stop_sequence": null});
    stream.send(&json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": answer.tokens.output}}));
    stream.send(&json!({"type": "message_stop"}));
    stream.steps
}

/// A signature that covers `thought`, different each time.
fn signature(thought: &str) -> String {
    unique(&format!("sig-{}-", digest(thought)))
}

/// Whether `signature` is one that covers `thought`.
pub(super) fn covers(signature: &str, thought: &str) -> bool {
    signature.strip_prefix("sig-").is_some_and(|rest| rest.starts_with(&digest(thought)))
}

fn digest(thought: &str) -> String {
    blake3::hash(thought.as_bytes()).to_hex()[..16].to_owned()
}

fn started(answer: &Answer, model: &str) -> Value {
    let tokens = answer.tokens;
    let usage = json!({
        "input_tokens": tokens.input - tokens.cache_read - tokens.cache_write,
        "cache_read_input_tokens": tokens.cache_read,
        "cache_creation_input_tokens": tokens.cache_write,
        "output_tokens": 1,
    });
    let message = json!({
        "id": unique("msg_"), "type": "message", "role": "assistant", "model": model, "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage,
    });
    json!({"type": "message_start", "message": message})
}

fn stop_reason(answer: &Answer) -> &'static str {
    match answer.stop {
        Some(Stop::Length) => "max_tokens",
        Some(Stop::Refusal) => "refusal",
        None if answer.has_calls() => "tool_use",
        None => "end_turn",
    }
}

struct Stream {
    steps: Vec<StreamStep>,
    blocks: usize,
    /// What is said on both sides of a gate is one block.
    text_is_open: bool,
}

impl Stream {
    fn send(&mut self, event: &Value) {
        let name = event["type"].as_str().unwrap_or_default();
        self.steps.push(StreamStep::Event(format!("event: {name}\ndata: {event}\n\n")));
    }

    fn start(&mut self, block: &Value) {
        self.send(&json!({"type": "content_block_start", "index": self.blocks, "content_block": block}));
    }

    fn delta(&mut self, delta: &Value) {
        self.send(&json!({"type": "content_block_delta", "index": self.blocks, "delta": delta}));
    }

    fn stop(&mut self) {
        self.send(&json!({"type": "content_block_stop", "index": self.blocks}));
        self.blocks += 1;
    }

    fn close_text(&mut self) {
        if std::mem::take(&mut self.text_is_open) {
            self.stop();
        }
    }

    fn piece(&mut self, piece: &AnswerPart) {
        if !matches!(piece, AnswerPart::Text(_) | AnswerPart::Wait(_)) {
            self.close_text();
        }
        match piece {
            AnswerPart::Wait(gate) => self.steps.push(StreamStep::Wait(gate.clone())),
            AnswerPart::Text(text) => {
                if !std::mem::replace(&mut self.text_is_open, true) {
                    self.start(&json!({"type": "text", "text": ""}));
                }
                in_pieces(text).iter().for_each(|part| self.delta(&json!({"type": "text_delta", "text": part})));
            }
            AnswerPart::Thought(text) => {
                self.start(&json!({"type": "thinking", "thinking": "", "signature": ""}));
                let delta = |part: &&str| json!({"type": "thinking_delta", "thinking": part});
                in_pieces(text).iter().map(delta).for_each(|delta| self.delta(&delta));
                self.delta(&json!({"type": "signature_delta", "signature": signature(text)}));
                self.stop();
            }
            AnswerPart::SecretThought => {
                self.start(&json!({"type": "redacted_thinking", "data": unique("secret-")}));
                self.stop();
            }
            AnswerPart::Call { tool, arguments } => {
                self.start(&json!({"type": "tool_use", "id": unique("toolu_"), "name": tool, "input": {}}));
                let delta = |part: &str| json!({"type": "input_json_delta", "partial_json": part});
                self.delta(&delta(""));
                in_pieces(arguments).into_iter().for_each(|part| self.delta(&delta(part)));
                self.stop();
            }
        }
    }
}
