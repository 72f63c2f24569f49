//! What the different servers send and take.

use std::borrow::Cow;

use retake_engine::session::context::{CallResult, Context, Message};
use retake_engine::session::entry::{Block, CallId, Outcome, Part, StopReason};
use serde_json::{Value, json};

use super::*;
use crate::model::client::Trouble;
use crate::model::settings::{Effort, ModelSettings, Reasoning};
use crate::model::{Delta, ModelAnswer};

fn read(chunks: &[Value]) -> (ModelAnswer, Vec<Delta>) {
    let mut decoder = Decoder::default();
    let mut deltas = Vec::new();
    for chunk in chunks {
        deltas.extend(decoder.take(&chunk.to_string()).expect("a good chunk"));
    }
    (decoder.finish(), deltas)
}

#[allow(clippy::needless_pass_by_value, reason = "a literal in a test reads better without a reference")]
fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}], "usage": null})
}

fn end(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn calls(answer: &ModelAnswer) -> Vec<(&str, &str, &str)> {
    fn call(block: &Block) -> Option<(&str, &str, &str)> {
        match block {
            Block::Call { id, name, arguments } => Some((id.0.as_str(), name.as_str(), arguments.as_str())),
            _ => None,
        }
    }
    answer.blocks.iter().filter_map(call).collect()
}

fn settings(url: &str) -> ModelSettings {
    ModelSettings::parse("openai/some/model", Some(url), |_| Some("key".to_owned())).expect("good settings")
}

fn encoded(settings: &ModelSettings, messages: Vec<Message>) -> Value {
    let context = Context { system: String::new(), messages };
    serde_json::from_str(&encode(settings, &context, &[])).expect("JSON")
}

#[test]
fn calls_that_come_whole_are_told_apart_even_with_the_same_index() {
    let call = |index: Value, id: &str, name: &str| json!({"index": index, "id": id, "function": {"name": name, "arguments": "{\"a\":1}"}});
    for index in [json!(0), Value::Null] {
        let one = delta(json!({"tool_calls": [call(index.clone(), "x", "one"), call(index.clone(), "y", "two")]}));
        let (answer, deltas) = read(&[one, end("stop")]);
        assert_eq!(calls(&answer), [("x", "one", "{\"a\":1}"), ("y", "two", "{\"a\":1}")]);
        assert_eq!(deltas, [Delta::CallBegan("one".into()), Delta::CallBegan("two".into())]);
        assert_eq!(answer.stop, StopReason::Calls);
    }
}

#[test]
fn pieces_without_an_index_belong_to_the_last_call() {
    let chunks = [
        delta(json!({"tool_calls": [{"id": "x", "function": {"name": "one", "arguments": "{\"a\""}}]})),
        delta(json!({"tool_calls": [{"function": {"arguments": ":1}"}}]})),
        end("tool_calls"),
    ];
    assert_eq!(calls(&read(&chunks).0), [("x", "one", "{\"a\":1}")]);
}

#[test]
fn missing_and_repeated_ids_are_replaced_and_arguments_may_be_objects() {
    let chunks = [
        delta(json!({"tool_calls": [{"index": 0, "function": {"name": "one", "arguments": {"a": 1}}}]})),
        delta(json!({"tool_calls": [{"index": 1, "id": "", "function": {"name": "two"}}]})),
        delta(json!({"tool_calls": [{"index": 2, "id": "same", "function": {"name": "three", "arguments": null}}]})),
        delta(json!({"tool_calls": [{"index": 3, "id": "same", "function": {"name": "four", "arguments": ""}}]})),
        end("tool_calls"),
    ];
    let answer = read(&chunks).0;
    let calls = calls(&answer);
    let ids: std::collections::HashSet<_> = calls.iter().map(|(id, _, _)| id).collect();
    assert_eq!(ids.len(), 4, "{calls:?}");
    assert!(calls.iter().all(|(id, _, _)| !id.is_empty()));
    assert_eq!((calls[0].2, calls[1].2, calls[3].2), ("{\"a\":1}", "{}", "{}"));
}

#[test]
fn an_answer_that_does_not_stream_is_read_as_well() {
    let whole = json!({
        "choices": [{"message": {"role": "assistant", "content": "hi", "tool_calls": null}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1},
    });
    let (answer, deltas) = read(&[whole]);
    assert_eq!(answer.blocks, [Block::Text { text: "hi".into() }]);
    assert_eq!((answer.usage.input, answer.usage.output), (3, 1));
    assert_eq!(deltas, [Delta::Text("hi".into())]);
}

#[test]
fn why_it_stopped_is_told_whatever_the_server_calls_it() {
    for (reason, stop) in [
        ("stop", StopReason::Done),
        ("eos", StopReason::Done),
        ("length", StopReason::Length),
        ("content_filter", StopReason::Refused),
    ] {
        assert_eq!(read(&[end(reason)]).0.stop, stop, "{reason}");
    }
    let refused = read(&[delta(json!({"refusal": "I will not."})), end("stop")]).0;
    assert_eq!(
        (refused.stop, &refused.blocks[..]),
        (StopReason::Refused, &[Block::Text { text: "I will not.".into() }][..])
    );
}

#[test]
fn usage_is_read_as_each_server_writes_it() {
    let usage = |usage: Value| read(&[end("stop"), json!({"choices": [], "usage": usage})]).0.usage;
    let openai = json!({"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}});
    assert_eq!(usage(openai).cache_read, 4);
    let deepseek = usage(json!({"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 5}));
    assert_eq!((deepseek.input, deepseek.cache_read, deepseek.cost), (9, 5, None));
    let openrouter =
        usage(json!({"prompt_tokens": 9, "completion_tokens": 2, "cost": 0.25, "prompt_tokens_details": null}));
    assert_eq!(openrouter.cost, Some(0.25));
}

#[test]
fn an_error_in_the_stream_is_a_failure_and_no_json_is_malformed() {
    let failed = Decoder::default().take(r#"{"error":{"code":502,"message":"gone"},"choices":[]}"#);
    assert!(matches!(failed, Err(Trouble::Failed)));
    assert!(matches!(Decoder::default().take("<html>"), Err(Trouble::Malformed(_))));
}

fn given_back(chunks: &[Value]) -> Value {
    let blocks = read(chunks).0.blocks;
    let answer = Message::Assistant { blocks: blocks.into(), model: "openai/some/model".into() };
    encoded(&settings("http://localhost"), vec![answer])["messages"][0].clone()
}

#[test]
fn thoughts_go_back_in_the_field_they_came_in() {
    for field in ["reasoning_content", "reasoning"] {
        let chunks = [
            delta(json!({field: "h\u{e4} "})),
            delta(json!({field: "m"})),
            delta(json!({"content": "hi"})),
            end("stop"),
        ];
        let (answer, deltas) = read(&chunks);
        assert!(matches!(&answer.blocks[0], Block::Reasoning { text, .. } if text == "hä m"));
        assert_eq!(deltas[0], Delta::Reasoning("hä ".into()));
        assert_eq!(given_back(&chunks), json!({"role": "assistant", "content": "hi", field: "hä m"}));
    }
}

#[test]
fn fragments_of_details_go_back_as_the_blocks_they_are_of() {
    let fragment = |fragment: Value| delta(json!({"reasoning": fragment["text"], "reasoning_details": [fragment]}));
    let chunks = [
        fragment(json!({"type": "reasoning.text", "text": "Let", "format": "f", "index": 0})),
        fragment(json!({"type": "reasoning.text", "text": " me", "format": "f", "index": 0, "signature": null})),
        fragment(json!({"type": "reasoning.text", "signature": "Et8", "format": "f", "index": 0})),
        fragment(json!({"type": "reasoning.text", "text": "More", "format": "f", "index": 0})),
        fragment(json!({"type": "reasoning.encrypted", "data": "abc", "index": 0})),
        fragment(json!({"type": "reasoning.encrypted", "data": "def", "index": 0})),
        delta(json!({"content": "hi"})),
        end("stop"),
    ];
    let back = given_back(&chunks);
    assert_eq!(
        back["reasoning_details"],
        json!([
            {"type": "reasoning.text", "text": "Let me", "format": "f", "index": 0, "signature": "Et8"},
            {"type": "reasoning.text", "text": "More", "format": "f", "index": 0},
            {"type": "reasoning.encrypted", "data": "abc", "index": 0},
            {"type": "reasoning.encrypted", "data": "def", "index": 0},
        ])
    );
    assert_eq!(back["reasoning"], Value::Null);
    assert!(matches!(&read(&chunks).0.blocks[0], Block::Reasoning { text, .. } if text == "Let meMore"));
}

#[test]
fn an_empty_thought_goes_back_only_where_a_server_may_ask_for_it() {
    let thought = delta(json!({"reasoning_content": "", "content": "hi"}));
    assert_eq!(read(&[thought.clone(), end("stop")]).0.blocks.len(), 1);
    let call = delta(json!({"tool_calls": [{"index": 0, "id": "x", "function": {"name": "one"}}]}));
    assert_eq!(given_back(&[thought, call, end("tool_calls")])["reasoning_content"], "");
    let none = delta(json!({"reasoning_content": null, "content": "hi"}));
    assert_eq!(given_back(&[none, end("stop")]), json!({"role": "assistant", "content": "hi"}));
}

#[test]
fn thoughts_of_other_models_and_cut_thoughts_stay_here() {
    let thought = |opaque: &str| Block::Reasoning { text: "hm".into(), opaque: opaque.into() };
    let by = |model: &str, opaque: &str| {
        let blocks = vec![thought(opaque), Block::Text { text: "hi".into() }];
        encoded(&settings("http://localhost"), vec![Message::Assistant { blocks: blocks.into(), model: model.into() }])
            ["messages"][0]
            .clone()
    };
    let plain = json!({"role": "assistant", "content": "hi"});
    assert_eq!(by("openai/other", r#"{"reasoning_content":"hm"}"#), plain);
    assert_eq!(by("anthropic/claude", r#"{"type":"thinking","thinking":"hm","signature":"s"}"#), plain);
    assert_eq!(by("openai/some/model", ""), plain);
}

#[test]
fn signatures_of_calls_go_back_with_their_calls() {
    let extra = json!({"google": {"thought_signature": "Cr+/="}});
    let call = |index: u64, extra: &Value| json!({"index": index, "id": format!("x{index}"), "function": {"name": "one"}, "extra_content": extra});
    let chunks = [delta(json!({"tool_calls": [call(0, &extra), call(1, &Value::Null)]})), end("tool_calls")];
    let calls = &given_back(&chunks)["tool_calls"];
    assert_eq!(calls[0]["extra_content"], extra);
    assert_eq!(calls[1].get("extra_content"), None);
}

#[test]
fn deepseek_hears_of_every_answer_what_was_thought_even_if_it_was_nothing() {
    let blocks = vec![Block::Text { text: "hi".into() }];
    let message = Message::Assistant { blocks: blocks.into(), model: "anthropic/claude".into() };
    let body = encoded(&settings("https://api.deepseek.com"), vec![message]);
    assert_eq!(body["messages"][0], json!({"role": "assistant", "content": "hi", "reasoning_content": ""}));
}

#[test]
fn limits_and_efforts_are_told_by_the_names_that_the_server_knows() {
    let with = |url: &str, reasoning| {
        let settings = ModelSettings { max_output: Some(7), reasoning, ..settings(url) };
        encoded(&settings, vec![Message::User { parts: vec![Part::text("hi")].into() }])
    };
    let effort = Some(Reasoning::Effort(Effort::High));
    let openai = with("https://api.openai.com/v1", effort);
    assert_eq!((&openai["max_completion_tokens"], &openai["max_tokens"]), (&json!(7), &Value::Null));
    assert_eq!(openai["reasoning_effort"], "high");
    assert_eq!(with("https://api.deepseek.com", None)["max_tokens"], 7);
    let budget = with("https://openrouter.ai/api/v1", Some(Reasoning::Budget(99)));
    assert_eq!(budget["reasoning"], json!({"max_tokens": 99}));
    assert_eq!(encoded(&settings("http://localhost"), vec![])["max_tokens"], Value::Null);
}

#[test]
fn images_of_results_follow_all_results() {
    let result = |id: &str, parts| CallResult { call: Cow::Owned(CallId(id.into())), outcome: Outcome::Done, parts };
    let image = Part::Image { media_type: "image/png".into(), data: crate::image::PIXEL.into() };
    let call = |id: &str| Block::Call { id: CallId(id.into()), name: "read".into(), arguments: "{\"a\": ".into() };
    let body = encoded(
        &settings("http://localhost"),
        vec![
            Message::Assistant { blocks: vec![call("x"), call("y")].into(), model: String::new().into() },
            Message::Results {
                results: vec![result("x", vec![image].into()), result("y", vec![Part::text(" ")].into())],
            },
        ],
    );
    let messages = &body["messages"];
    assert_eq!(messages[0]["tool_calls"][0]["function"]["arguments"], r#"{"invalid_json":"{\"a\": "}"#);
    assert_eq!(messages[1]["content"], "(see the image below)");
    assert_eq!(messages[2]["content"], "(no output)");
    assert_eq!(messages[3]["content"][1]["image_url"]["url"], format!("data:image/png;base64,{}", crate::image::PIXEL));
}
