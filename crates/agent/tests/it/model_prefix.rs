//! A conversation that goes on, or goes back, is told in the same bytes.

use std::borrow::Cow;

use proptest::prelude::*;
use retake_agent::model::{Api, Model};
use retake_engine::session::context::{CallResult, Context, Message};
use retake_engine::session::entry::{Block, CallId, Outcome, Part};
use retake_testkit::ScriptedModel;
use retake_testkit::model::{Answer, Received};
use serde_json::json;

use crate::model::{BOTH, and_then, ask, client, context, named, tools, user};

#[tokio::test]
async fn each_request_begins_with_the_messages_of_the_one_before() {
    for api in BOTH {
        let server = ScriptedModel::answering(|request: &Received| match request.messages().len() % 3 {
            0 => Answer::default().thinks("hm").says("hello"),
            1 => Answer::default().thinks("so").calls("bash", json!({"n": 1})).calls("read_file", json!({})),
            _ => Answer::default().calls("bash", json!({"n": 2})),
        });
        let model = client(api, &server);
        let mut messages = Vec::new();
        for round in 0..8 {
            messages.push(user(&format!("prompt {round}")));
            let (answer, _) = ask(&model, &messages).await.unwrap();
            messages.extend(and_then(&model, &answer));
        }
        server.assert_exhausted();
        let requests = server.requests();
        for pair in requests.windows(2) {
            assert!(pair[1].messages().starts_with(&pair[0].messages()));
        }
        // Going back to the third prompt asks for the very same bytes again, cache marks included.
        let third = messages.iter().enumerate().filter(|(_, message)| matches!(message, Message::User { .. })).nth(2);
        ask(&model, &messages[..=third.unwrap().0]).await.unwrap();
        assert_eq!(server.last_request().text, requests[2].text);
    }
}

fn body_without_marks(model: &Model, context: &Context) -> String {
    model.request(context, &tools()).body().replace(r#","cache_control":{"type":"ephemeral"}"#, "")
}

fn parts() -> impl Strategy<Value = Vec<Part>> {
    let text = prop_oneof!["[a-z \\n]{0,8}", Just("\u{2028}\"\\語".to_owned())];
    let part = prop_oneof![
        text.clone().prop_map(Part::text),
        text.clone().prop_map(|text| Part::Paste { text }),
        text.prop_map(|text| Part::File { path: "a \"b\"".into(), text }),
        Just(Part::Image { media_type: "image/png".into(), data: crate::answers::PIXEL.into() }),
        Just(Part::Image { media_type: "image/bmp".into(), data: String::new() }),
    ];
    proptest::collection::vec(part, 0..4)
}

fn block() -> impl Strategy<Value = Block> {
    prop_oneof![
        "[a-z \\n]{0,8}".prop_map(|text| Block::Text { text }),
        Just(Block::Reasoning { text: "hm".into(), opaque: String::new() }),
        Just(Block::Reasoning {
            text: "hm".into(),
            opaque: r#"{"type":"redacted_thinking","data":"secret-1"}"#.into()
        }),
        ("[a-c.]{0,3}", "[a-z.< ]{0,4}", prop_oneof!["\\{\"a\":[0-9]\\}", "[{\"a]{0,4}"])
            .prop_map(|(id, name, arguments)| Block::Call { id: CallId(id), name, arguments }),
    ]
}

/// A prompt and a few answers with their results, as the engine makes them: every call of a reply has an id of its own.
fn turn() -> impl Strategy<Value = Vec<Message<'static>>> {
    let answer =
        (proptest::collection::vec(block(), 0..5), proptest::sample::select(vec!["anthropic/m", "openai/m", "x"]));
    let rounds = proptest::collection::vec((answer, parts()), 1..4);
    (parts(), rounds).prop_map(|(prompt, rounds)| {
        let mut messages = vec![Message::User { parts: prompt.into() }];
        for ((mut blocks, model), parts) in rounds {
            let mut calls = Vec::new();
            blocks.retain(|block| match block {
                Block::Call { id, .. } if calls.contains(id) => false,
                Block::Call { id, .. } => {
                    calls.push(id.clone());
                    true
                }
                _ => true,
            });
            messages.push(Message::Assistant { blocks: blocks.into(), model: model.into() });
            let result =
                |call| CallResult { call: Cow::Owned(call), outcome: Outcome::Failed, parts: parts.clone().into() };
            let results: Vec<_> = calls.into_iter().map(result).collect();
            if !results.is_empty() {
                messages.push(Message::Results { results });
            }
        }
        messages
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_context_is_told_in_the_bytes_of_its_beginning_and_then_some(
        turns in proptest::collection::vec(turn(), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let messages: Vec<_> = turns.concat();
        let cut = cut.index(messages.len()) + 1;
        for api in BOTH {
            let model = named(api, "m", "http://127.0.0.1:1");
            let whole = body_without_marks(&model, &context(messages.clone()));
            let begun = body_without_marks(&model, &context(messages[..cut].to_vec()));
            prop_assert!(whole.starts_with(begun.strip_suffix("]}").unwrap()), "{begun}\n{whole}");
        }
    }

    #[test]
    fn any_context_is_one_that_servers_accept(turns in proptest::collection::vec(turn(), 1..3)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for api in BOTH {
            let server = ScriptedModel::answering(|_| Answer::default().says("ok"));
            let mut messages = turns.concat();
            messages.push(user("and?"));
            let asked = runtime.block_on(ask(&named(api, "m", &server.url()), &messages));
            prop_assert!(asked.is_ok(), "{api:?}: {asked:?}");
        }
    }
}

#[tokio::test]
async fn cache_marks_change_no_other_byte() {
    let server = ScriptedModel::answering(|_| Answer::default().says("ok"));
    let model = client(Api::Anthropic, &server);
    let mut messages = Vec::new();
    for round in 0..4 {
        messages.push(user(&format!("prompt {round}")));
        ask(&model, &messages).await.unwrap();
        let request = server.last_request();
        assert_eq!(request.text.matches("cache_control").count(), 3 + usize::from(round > 0));
        assert_eq!(request.text_without_marks(), body_without_marks(&model, &context(messages.clone())));
    }
    assert!(!client(Api::OpenAi, &server).request(&context(messages), &tools()).body().contains("cache_control"));
}
