//! What the API sends and takes, event by event and block by block.

use std::borrow::Cow;

use retake_engine::session::context::{CallResult, Context, Message};
use retake_engine::session::entry::{Block, CallId, Outcome, Part, StopReason};
use serde_json::{Value, json};

use super::*;
use crate::model::client::Trouble;
use crate::model::settings::{Effort, ModelSettings, Reasoning};
use crate::model::{Delta, ModelAnswer, ToolSpec};

fn read(events: &[Value]) -> (ModelAnswer, Vec<Delta>) {
    let mut decoder = Decoder::default();
    let mut deltas = Vec::new();
    for event in events {
        deltas.extend(decoder.take(&event.to_string()).expect("a good event"));
    }
    (decoder.finish(), deltas)
}

#[allow(clippy::needless_pass_by_value, reason = "a literal in a test reads better without a reference")]
fn block(index: u64, start: Value, deltas: &[Value]) -> Vec<Value> {
    let delta = |delta: &Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let mut events = vec![json!({"type": "content_block_start", "index": index, "content_block": start})];
    events.extend(deltas.iter().map(delta));
    events.push(json!({"type": "content_block_stop", "index": index}));
    events
}

fn stop(reason: &str) -> Value {
    json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 9}})
}

fn settings() -> ModelSettings {
    ModelSettings::parse("anthropic/claude", None, |_| Some("key".to_owned())).expect("good settings")
}

fn encoded(settings: &ModelSettings, messages: Vec<Message>) -> Value {
    let context = Context { system: String::new(), messages };
    serde_json::from_str(&encode(settings, &context, &[])).expect("JSON")
}

fn answer_by(model: &str, blocks: Vec<Block>) -> Value {
    let message = Message::Assistant { blocks: blocks.into(), model: model.into() };
    encoded(&settings(), vec![message])["messages"][0]["content"].clone()
}

#[test]
fn thoughts_go_back_byte_for_byte() {
    let thought = json!({"type": "thinking", "thinking": "", "signature": ""});
    let deltas = [
        json!({"type": "thinking_delta", "thinking": "h\u{e4}/\u{2028}"}),
        json!({"type": "signature_delta", "signature": "a+/="}),
    ];
    let mut events = block(0, thought, &deltas);
    events.extend(block(1, json!({"data": "x/+", "type": "redacted_thinking", "new": 1.50}), &[]));
    let blocks = read(&events).0.blocks;
    let opaque: Vec<_> = blocks
        .iter()
        .map(|block| match block {
            Block::Reasoning { opaque, .. } => opaque.clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    let context = Context {
        system: String::new(),
        messages: vec![Message::Assistant { blocks: blocks.into(), model: "anthropic/another-claude".into() }],
    };
    let body = encode(&settings(), &context, &[]);
    assert!(body.contains(&format!("[{},{},", opaque[0], opaque[1])), "{body}");
    assert_eq!(opaque[0], "{\"type\":\"thinking\",\"thinking\":\"hä/\u{2028}\",\"signature\":\"a+/=\"}");
}

#[test]
fn thoughts_of_others_and_cut_thoughts_stay_here_and_no_answer_is_empty() {
    let thought = |opaque: &str| Block::Reasoning { text: "hm".into(), opaque: opaque.into() };
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    assert_eq!(answer_by("openai/x", vec![thought(r#"{"reasoning":"hm"}"#)]), text("(nothing said)"));
    assert_eq!(answer_by("anthropic/x", vec![thought(""), Block::Text { text: "hi".into() }]), text("hi"));
    assert_eq!(answer_by("anthropic/x", vec![Block::Text { text: " \n".into() }]), text("(nothing said)"));
    let ends_in_thought = answer_by("anthropic/x", vec![thought(r#"{"type":"redacted_thinking","data":"x"}"#)]);
    assert_eq!(ends_in_thought[1]["text"], "(nothing said)");
}

#[test]
fn a_call_without_arguments_has_an_empty_object_and_bad_ones_are_kept_as_written() {
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "read", "input": {}});
    let piece = |text: &str| json!({"type": "input_json_delta", "partial_json": text});
    let mut events = block(0, call("a"), &[piece("")]);
    events.extend(block(1, call("b"), &[piece("{\"p\": "), piece("oops")]));
    events.push(stop("tool_use"));
    let (answer, deltas) = read(&events);
    assert_eq!(answer.stop, StopReason::Calls);
    assert_eq!(deltas[0], Delta::CallBegan("read".into()));
    let content = answer_by("", answer.blocks);
    assert_eq!(content[0]["input"], json!({}));
    assert_eq!(content[1]["input"], json!({"invalid_json": "{\"p\": oops"}));
}

#[test]
fn a_thought_that_was_never_signed_goes_only_where_nothing_is_signed() {
    let events = block(0, json!({"type": "thinking", "thinking": "hm"}), &[]);
    let blocks = read(&events).0.blocks;
    let message = || Message::Assistant { blocks: blocks.clone().into(), model: "anthropic/m".into() };
    let first = |settings: &ModelSettings| encoded(settings, vec![message()])["messages"][0]["content"][0].clone();
    assert_eq!(first(&settings())["type"], "text");
    let elsewhere = ModelSettings::parse("anthropic/m", Some("http://localhost"), |_| None).expect("good settings");
    assert_eq!(first(&elsewhere), json!({"type": "thinking", "thinking": "hm", "signature": ""}));
    let cut = read(&events[..1]).0.blocks;
    assert_eq!(cut, [Block::Reasoning { text: "hm".into(), opaque: String::new() }]);
}

#[test]
fn a_budget_is_left_out_where_the_api_would_miss_a_thought() {
    let settings = ModelSettings { reasoning: Some(Reasoning::Budget(2000)), ..settings() };
    let call = Block::Call { id: CallId("x".into()), name: "read".into(), arguments: "{}".into() };
    let result = CallResult { call: Cow::Owned(CallId("x".into())), outcome: Outcome::Done, parts: vec![].into() };
    let mut messages = vec![
        Message::Assistant { blocks: vec![call].into(), model: "openai/x".into() },
        Message::Results { results: vec![result] },
    ];
    assert_eq!(encoded(&settings, messages.clone())["thinking"], Value::Null);
    messages.push(Message::Assistant {
        blocks: vec![Block::Text { text: "done".into() }].into(),
        model: "openai/x".into(),
    });
    messages.push(Message::User { parts: vec![Part::text("go on")].into() });
    assert_eq!(encoded(&settings, messages)["thinking"]["budget_tokens"], 2000);
}

#[test]
fn cached_tokens_are_part_of_the_input() {
    let usage = json!({"input_tokens": 5, "cache_read_input_tokens": 70, "cache_creation_input_tokens": 20, "output_tokens": 1});
    let answer = read(&[json!({"type": "message_start", "message": {"usage": usage}}), stop("end_turn")]).0;
    let usage = answer.usage;
    assert_eq!((usage.input, usage.output, usage.cache_read, usage.cache_write), (95, 9, 70, 20));
}

#[test]
fn why_it_stopped_is_told() {
    for (reason, wanted) in [
        ("end_turn", StopReason::Done),
        ("stop_sequence", StopReason::Done),
        ("pause_turn", StopReason::Done),
        ("max_tokens", StopReason::Length),
        ("refusal", StopReason::Refused),
    ] {
        assert_eq!(read(&[stop(reason)]).0.stop, wanted, "{reason}");
    }
}

#[test]
fn unknown_events_blocks_and_deltas_are_passed_over_and_errors_are_failures() {
    let mut events = vec![json!({"type": "ping"}), json!({"type": "party", "cake": [1]})];
    events.extend(block(0, json!({"type": "hologram", "x": 1}), &[json!({"type": "hologram_delta"})]));
    events.extend(block(1, json!({"type": "text", "text": "h"}), &[json!({"type": "text_delta", "text": "i"})]));
    assert_eq!(read(&events).0.blocks, [Block::Text { text: "hi".into() }]);
    let failed = Decoder::default().take(r#"{"type":"error","error":{"type":"overloaded_error","message":"x"}}"#);
    assert!(matches!(failed, Err(Trouble::Failed)));
    assert!(matches!(Decoder::default().take("{"), Err(Trouble::Malformed(_))));
}

#[test]
fn an_answer_without_a_stop_is_not_complete() {
    let mut decoder = Decoder::default();
    for event in block(0, json!({"type": "text", "text": "hi"}), &[]) {
        decoder.take(&event.to_string()).expect("a good event");
    }
    assert!(!decoder.is_complete());
}

#[test]
fn prompts_and_results_are_told_in_blocks_that_the_api_takes() {
    let image = Part::Image { media_type: "image/png".into(), data: crate::image::PIXEL.into() };
    let parts = vec![Part::text(""), Part::Paste { text: "pasted".into() }, image.clone()];
    let result =
        CallResult { call: Cow::Owned(CallId("x".into())), outcome: Outcome::Failed, parts: vec![image].into() };
    let call = Block::Call { id: CallId("x".into()), name: "read".into(), arguments: "{}".into() };
    let body = encoded(
        &settings(),
        vec![
            Message::User { parts: vec![].into() },
            Message::User { parts: parts.into() },
            Message::Assistant { blocks: vec![call].into(), model: String::new().into() },
            Message::Results { results: vec![result] },
        ],
    );
    let source = json!({"type": "base64", "media_type": "image/png", "data": crate::image::PIXEL});
    let mark = json!({"type": "ephemeral"});
    let content = |at: usize| &body["messages"][at]["content"];
    assert_eq!(*content(0), json!([{"type": "text", "text": "(empty)"}]));
    assert_eq!(content(1)[0], json!({"type": "text", "text": "pasted"}));
    assert_eq!(content(1)[1], json!({"type": "image", "source": source, "cache_control": mark}));
    let image = json!({"type": "image", "source": source});
    let wanted =
        json!({"type": "tool_result", "tool_use_id": "x", "is_error": true, "content": [image], "cache_control": mark});
    assert_eq!(content(3)[0], wanted);
}

#[test]
fn four_marks_are_set_and_an_effort_or_a_budget_is_told() {
    let user = || Message::User { parts: vec![Part::text("hi")].into() };
    let context = Context { system: "be good".into(), messages: vec![user(), user(), user()] };
    let tool = |name: &str| ToolSpec { name: name.into(), description: "d".into(), schema: json!({"type": "object"}) };
    let settings = ModelSettings { reasoning: Some(Reasoning::Effort(Effort::High)), ..settings() };
    let body = encode(&settings, &context, &[tool("a"), tool("b")]);
    assert_eq!(body.matches("cache_control").count(), 4);
    let parsed: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(parsed["tools"][0].get("cache_control"), None);
    assert_eq!(parsed["thinking"], json!({"type": "adaptive", "display": "summarized"}));
    assert_eq!(parsed["output_config"], json!({"effort": "high"}));
    let settings = ModelSettings { reasoning: Some(Reasoning::Budget(1_000_000)), ..settings };
    assert_eq!(encoded(&settings, vec![])["thinking"]["budget_tokens"], 31_999);
}
