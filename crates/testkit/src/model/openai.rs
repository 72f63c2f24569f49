//! Answers as chat completions stream them: parallel calls interleaved, thoughts as `reasoning_content`.

use serde_json::{Value, json};

use super::answer::{Answer, AnswerPart, Stop, StreamStep, in_pieces};
use super::serve::{Issued, unique};

/// The events of `answer`; remembers in `issued` what has to come back with its calls.
pub(super) fn steps(answer: &Answer, model: &str, issued: &mut Issued) -> Vec<StreamStep> {
    let mut stream = Stream { id: unique("chatcmpl-"), model: model.to_owned(), steps: Vec::new() };
    stream.delta(&json!({"role": "assistant", "content": ""}));
    let mut thought = String::new();
    for piece in &answer.pieces {
        match piece {
            AnswerPart::Wait(gate) => stream.steps.push(StreamStep::Wait(gate.clone())),
            AnswerPart::Text(text) => in_pieces(text).iter().for_each(|part| stream.delta(&json!({"content": part}))),
            AnswerPart::Thought(text) => {
                thought.push_str(text);
                in_pieces(text)
                    .iter()
                    .for_each(|part| stream.delta(&json!({"reasoning_content": part, "content": null})));
            }
            // All calls come together at the end; there is nothing like a secret thought here.
            AnswerPart::Call { .. } | AnswerPart::SecretThought => {}
        }
    }
    for id in stream.calls(answer) {
        issued.thoughts.insert(id, (model.to_owned(), thought.clone()));
    }
    if let Some((kind, message)) = &answer.error {
        stream.send(&json!({"error": {"type": kind, "message": message}}));
        return stream.steps;
    }
    stream.finish(answer);
    stream.steps
}

struct Stream {
    id: String,
    model: String,
    steps: Vec<StreamStep>,
}

impl Stream {
    fn send(&mut self, data: &Value) {
        self.steps.push(StreamStep::Event(format!("data: {data}\n\n")));
    }

    fn chunk(&mut self, choices: &Value, usage: &Value) {
        let (id, model) = (self.id.clone(), self.model.clone());
        let chunk = json!({
            "id": id, "object": "chat.completion.chunk", "created": 1, "model": model, "choices": choices, "usage": usage,
        });
        self.send(&chunk);
    }

    fn delta(&mut self, delta: &Value) {
        self.chunk(&json!([{"index": 0, "delta": delta, "finish_reason": null}]), &Value::Null);
    }

    /// Begins all calls, then sends pieces of their arguments in turns; gives their ids.
    fn calls(&mut self, answer: &Answer) -> Vec<String> {
        let calls: Vec<(String, &str, &str)> = answer.pieces.iter().filter_map(call).collect();
        for (index, (id, tool, _)) in calls.iter().enumerate() {
            let function = json!({"name": tool, "arguments": ""});
            self.delta(&json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": function}]}));
        }
        for turn in 0..3 {
            for (index, (_, _, arguments)) in calls.iter().enumerate() {
                if let Some(part) = in_pieces(arguments).get(turn) {
                    self.delta(&json!({"tool_calls": [{"index": index, "function": {"arguments": part}}]}));
                }
            }
        }
        calls.into_iter().map(|(id, _, _)| id).collect()
    }

    fn finish(&mut self, answer: &Answer) {
        let reason = match answer.stop {
            Some(Stop::Length) => "length",
            Some(Stop::Refusal) => "content_filter",
            None if answer.has_calls() => "tool_calls",
            None => "stop",
        };
        self.chunk(&json!([{"index": 0, "delta": {}, "finish_reason": reason}]), &Value::Null);
        let tokens = answer.tokens;
        let details = json!({"cached_tokens": tokens.cache_read, "cache_write_tokens": tokens.cache_write});
        let usage = json!({
            "prompt_tokens": tokens.input, "completion_tokens": tokens.output, "prompt_tokens_details": details,
            "total_tokens": tokens.input + tokens.output,
        });
        self.chunk(&json!([]), &usage);
        self.steps.push(StreamStep::Event("data: [DONE]\n\n".to_owned()));
    }
}

fn call(piece: &AnswerPart) -> Option<(String, &str, &str)> {
    match piece {
        AnswerPart::Call { tool, arguments } => Some((unique("call_"), tool, arguments)),
        _ => None,
    }
}
