//! What is refused, and why.

use std::sync::Arc;

use serde_json::json;

use super::super::http::Incoming;
use super::*;

#[allow(clippy::needless_pass_by_value, reason = "a literal in a test reads better without a reference")]
fn refusal(wire: Wire, issued: &Issued, messages: Value) -> Option<String> {
    let (path, body) = match wire {
        Wire::Anthropic => {
            ("/v1/messages", json!({"model": "m", "stream": true, "max_tokens": 9, "messages": messages}))
        }
        Wire::OpenAi => {
            let options = json!({"include_usage": true});
            (
                "/v1/chat/completions",
                json!({"model": "m", "stream": true, "stream_options": options, "messages": messages}),
            )
        }
        Wire::Responses => ("/v1/responses", json!({"model": "m", "stream": true, "input": messages})),
    };
    let headers = vec![("anthropic-version".to_owned(), "2023-06-01".to_owned())];
    let incoming = Incoming { path: path.to_owned(), headers, body: body.to_string().into_bytes() };
    check(&Received::new(incoming), issued).err().map(|refusal| refusal.why)
}

fn anthropic(messages: Value) -> String {
    refusal(Wire::Anthropic, &Issued::default(), messages).unwrap_or_default()
}

fn openai(messages: Value) -> String {
    refusal(Wire::OpenAi, &Issued::default(), messages).unwrap_or_default()
}

fn responses(input: Value) -> String {
    refusal(Wire::Responses, &Issued::default(), input).unwrap_or_default()
}

#[test]
fn anthropic_conversations_are_checked() {
    let text = |role: &str, text: &str| json!({"role": role, "content": [{"type": "text", "text": text}]});
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "bash", "input": {}});
    let calls = |blocks: Value| json!({"role": "assistant", "content": blocks});
    let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": []});
    let results = |blocks: Value| json!({"role": "user", "content": blocks});
    let hi = text("user", "hi");

    let good = json!([hi, calls(json!([call("a"), call("b")])), results(json!([result("b"), result("a")])), hi]);
    assert_eq!(anthropic(good), "");
    for (why, messages) in [
        ("at least one message", json!([])),
        ("must contain words", json!([text("user", " ")])),
        ("unexpected role", json!([text("system", "x")])),
        ("end with a user message", json!([hi, text("assistant", "x")])),
        ("without a tool_result", json!([hi, calls(json!([call("a"), call("b")])), results(json!([result("a")]))])),
        ("which is no tool_use", json!([results(json!([result("a")]))])),
        ("must come first", json!([hi, calls(json!([call("a")])), hi, results(json!([result("a")]))])),
        ("does not match", json!([hi, calls(json!([call("a.b")])), results(json!([result("a.b")]))])),
        ("must be unique", json!([hi, calls(json!([call("a"), call("a")])), results(json!([result("a")]))])),
        (
            "invalid `signature`",
            json!([hi, calls(json!([{"type": "thinking", "thinking": "x", "signature": "y"}])), hi]),
        ),
        (
            "cannot be `redacted_thinking`",
            json!([hi, calls(json!([{"type": "redacted_thinking", "data": "secret-1"}])), hi]),
        ),
    ] {
        let said = anthropic(messages);
        assert!(said.contains(why), "`{why}`, but it said `{said}`");
    }
}

#[test]
fn chat_completions_are_checked() {
    let text = |role: &str, text: &str| json!({"role": role, "content": text});
    let call = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "bash", "arguments": arguments}});
    let calls = |calls: Value| json!({"role": "assistant", "content": null, "tool_calls": calls});
    let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "ok"});
    let hi = text("user", "hi");

    let good = json!([
        text("system", "x"),
        hi,
        calls(json!([call("a", "{}"), call("b", "{}")])),
        result("b"),
        result("a"),
        hi
    ]);
    assert_eq!(openai(good), "");
    for (why, messages) in [
        ("content is empty", json!([text("user", "")])),
        ("unknown role", json!([text("boss", "x")])),
        ("comes first", json!([hi, text("system", "x")])),
        ("must be a string or a list", json!([hi, {"role": "assistant", "content": null}])),
        ("without results", json!([hi, calls(json!([call("a", "{}")])), hi])),
        ("without results", json!([hi, calls(json!([call("a", "{}")]))])),
        ("waits for this result", json!([hi, result("a")])),
        ("no JSON object", json!([hi, calls(json!([call("a", "{")])), result("a")])),
        ("two calls", json!([hi, calls(json!([call("a", "{}"), call("a", "{}")])), result("a")])),
    ] {
        let said = openai(messages);
        assert!(said.contains(why), "`{why}`, but it said `{said}`");
    }
}

#[test]
fn responses_are_checked() {
    let text =
        |role: &str, kind: &str| json!({"type": "message", "role": role, "content": [{"type": kind, "text": "x"}]});
    let call = |id: &str, arguments: &str| json!({"type": "function_call", "call_id": id, "name": "bash", "arguments": arguments});
    let output = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "ok"});
    let thought = |sealed: &str| json!({"type": "reasoning", "summary": [], "encrypted_content": sealed});
    let (hi, hello) = (text("user", "input_text"), text("assistant", "output_text"));

    let good = json!([
        text("developer", "input_text"),
        hi,
        thought("sealed-1"),
        call("a", "{}"),
        call("b", "{}"),
        output("b"),
        output("a"),
        hello,
        hi
    ]);
    assert_eq!(responses(good), "");
    for (why, input) in [
        ("at least one item", json!([])),
        ("unknown role", json!([text("boss", "input_text")])),
        ("not a part", json!([text("assistant", "input_text")])),
        ("not empty", json!([{"type": "message", "role": "user", "content": []}])),
        ("unknown type", json!([hi, {"type": "item_reference", "id": "x"}])),
        ("no output found", json!([hi, call("a", "{}"), hi])),
        ("waits for this output", json!([hi, output("a")])),
        ("waits for this output", json!([hi, call("a", "{}"), output("a"), output("a")])),
        ("two calls", json!([hi, call("a", "{}"), output("a"), call("a", "{}"), output("a")])),
        ("no JSON object", json!([hi, call("a", "{"), output("a")])),
        ("not be verified", json!([hi, thought("mine"), hello])),
        ("has to follow", json!([hi, thought("sealed-1"), hi])),
        ("has to follow", json!([hi, thought("sealed-1")])),
    ] {
        let said = responses(input);
        assert!(said.contains(why), "`{why}`, but it said `{said}`");
    }
}

#[test]
fn what_was_thought_before_a_call_has_to_come_back() {
    let mut issued = Issued::default();
    issued.thoughts.insert("a".to_owned(), ("m".to_owned(), "hm".to_owned()));
    let conversation = |thought: Value| {
        let function = json!({"name": "bash", "arguments": "{}"});
        let calls = json!([{"id": "a", "type": "function", "function": function}]);
        json!([
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": null, "reasoning_content": thought, "tool_calls": calls},
            {"role": "tool", "tool_call_id": "a", "content": "ok"},
        ])
    };
    assert_eq!(refusal(Wire::OpenAi, &issued, conversation(json!("hm"))), None);
    assert!(refusal(Wire::OpenAi, &issued, conversation(Value::Null)).is_some());
}

#[test]
fn other_paths_are_not_there() {
    let incoming = Incoming { path: "/v1/models".to_owned(), headers: Vec::new(), body: Vec::new() };
    let received = Received::new(incoming);
    assert_eq!(received.text, Arc::from(""));
    assert_eq!(check(&received, &Issued::default()).err().map(|refusal| refusal.status), Some(404));
}
