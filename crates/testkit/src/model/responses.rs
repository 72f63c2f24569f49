//! Answers as OpenAI Responses streams them: items that are added, filled and done, one after the other.

use serde_json::{Value, json};

use super::answer::{Answer, AnswerPart, Stop, StreamStep, in_pieces};
use super::serve::unique;

/// What the sealed content of a thought begins with.
const SEAL: &str = "sealed-";

/// The events of `answer`.
pub(super) fn steps(answer: &Answer, model: &str) -> Vec<StreamStep> {
    let id = unique("resp_");
    let response = |status: &str| json!({"id": id, "object": "response", "created_at": 1, "model": model, "status": status, "output": []});
    let mut stream = Stream { steps: Vec::new(), events: 0, output: Vec::new(), said: None };
    stream.send("response.created", json!({"response": response("in_progress")}));
    stream.send("response.in_progress", json!({"response": response("in_progress")}));
    for piece in &answer.pieces {
        stream.piece(piece);
    }
    stream.close_message();
    if let Some((kind, message)) = &answer.error {
        let mut failed = response("failed");
        failed["error"] = json!({"code": kind, "message": message});
        stream.send("response.failed", json!({"response": failed}));
        return stream.steps;
    }
    let reason = answer.stop.map(|stop| match stop {
        Stop::Length => "max_output_tokens",
        Stop::Refusal => "content_filter",
    });
    let status = if reason.is_some() { "incomplete" } else { "completed" };
    let mut ended = response(status);
    ended["output"] = stream.output.clone().into();
    ended["incomplete_details"] = reason.map_or(Value::Null, |reason| json!({"reason": reason}));
    ended["usage"] = usage(answer);
    stream.send(&format!("response.{status}"), json!({"response": ended}));
    stream.steps
}

/// Whether the sealed content of a thought is one that was given out here.
pub(super) fn is_sealed(content: &str) -> bool {
    content.starts_with(SEAL)
}

fn usage(answer: &Answer) -> Value {
    let tokens = answer.tokens;
    json!({
        "input_tokens": tokens.input,
        "input_tokens_details": {"cached_tokens": tokens.cache_read},
        "output_tokens": tokens.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": tokens.input + tokens.output,
    })
}

struct Stream {
    steps: Vec<StreamStep>,
    events: usize,
    /// The items that are done.
    output: Vec<Value>,
    /// The message that is open: its id, and what it says so far. What is said on both sides of a gate is one message.
    said: Option<(String, String)>,
}

impl Stream {
    fn send(&mut self, kind: &str, mut event: Value) {
        event["type"] = kind.into();
        event["sequence_number"] = self.events.into();
        self.events += 1;
        self.steps.push(StreamStep::Event(format!("event: {kind}\ndata: {event}\n\n")));
    }

    fn added(&mut self, item: &Value) {
        self.send("response.output_item.added", json!({"output_index": self.output.len(), "item": item}));
    }

    fn done(&mut self, item: Value) {
        self.send("response.output_item.done", json!({"output_index": self.output.len(), "item": item}));
        self.output.push(item);
    }

    /// Tells something about a part of the item `id`.
    fn part(&mut self, kind: &str, id: &str, mut event: Value) {
        event["item_id"] = id.into();
        event["output_index"] = self.output.len().into();
        self.send(kind, event);
    }

    fn piece(&mut self, piece: &AnswerPart) {
        if !matches!(piece, AnswerPart::Text(_) | AnswerPart::Wait(_)) {
            self.close_message();
        }
        match piece {
            AnswerPart::Wait(gate) => self.steps.push(StreamStep::Wait(gate.clone())),
            AnswerPart::Text(text) => self.say(text),
            AnswerPart::Thought(text) => self.think(text),
            AnswerPart::SecretThought => self.think(""),
            AnswerPart::Call { tool, arguments } => self.call(tool, arguments),
        }
    }

    fn say(&mut self, text: &str) {
        let (id, said) = self.said.take().unwrap_or_else(|| {
            let id = unique("msg_");
            self.added(&message(&id, "in_progress", json!([])));
            self.part("response.content_part.added", &id, json!({"content_index": 0, "part": words("")}));
            (id, String::new())
        });
        for delta in in_pieces(text) {
            self.part("response.output_text.delta", &id, json!({"content_index": 0, "delta": delta}));
        }
        self.said = Some((id, said + text));
    }

    fn close_message(&mut self) {
        let Some((id, text)) = self.said.take() else { return };
        self.part("response.output_text.done", &id, json!({"content_index": 0, "text": text}));
        self.part("response.content_part.done", &id, json!({"content_index": 0, "part": words(&text)}));
        self.done(message(&id, "completed", json!([words(&text)])));
    }

    fn think(&mut self, text: &str) {
        let id = unique("rs_");
        let thought = |summary: Value, sealed: Value| json!({"id": id, "type": "reasoning", "summary": summary, "encrypted_content": sealed});
        self.added(&thought(json!([]), Value::Null));
        let part = |text: &str| json!({"type": "summary_text", "text": text});
        let mut summary = Vec::new();
        if !text.is_empty() {
            let added = json!({"summary_index": 0, "part": part("")});
            self.part("response.reasoning_summary_part.added", &id, added);
            for delta in in_pieces(text) {
                let event = json!({"summary_index": 0, "delta": delta});
                self.part("response.reasoning_summary_text.delta", &id, event);
            }
            self.part("response.reasoning_summary_text.done", &id, json!({"summary_index": 0, "text": text}));
            self.part("response.reasoning_summary_part.done", &id, json!({"summary_index": 0, "part": part(text)}));
            summary.push(part(text));
        }
        self.done(thought(summary.into(), unique(SEAL).into()));
    }

    fn call(&mut self, tool: &str, arguments: &str) {
        let (id, call_id) = (unique("fc_"), unique("call_"));
        let call = |status: &str, arguments: &str| {
            json!({
                "id": id, "type": "function_call", "status": status, "call_id": call_id, "name": tool,
                "arguments": arguments,
            })
        };
        self.added(&call("in_progress", ""));
        for delta in in_pieces(arguments) {
            self.part("response.function_call_arguments.delta", &id, json!({"delta": delta}));
        }
        self.part("response.function_call_arguments.done", &id, json!({"arguments": arguments}));
        self.done(call("completed", arguments));
    }
}

fn words(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": []})
}

#[allow(clippy::needless_pass_by_value, reason = "a literal reads better without a reference")]
fn message(id: &str, status: &str, content: Value) -> Value {
    json!({"id": id, "type": "message", "status": status, "role": "assistant", "content": content})
}

#[cfg(test)]
mod tests;
