//! What can go wrong with a model, and what is said about it.

use std::time::Duration;

use retake_agent::model::{Api, Model, ModelError, ModelSettings, ServerPlace};
use retake_engine::session::context::Message;
use retake_engine::session::entry::{Block, CallId};
use retake_testkit::ScriptedModel;
use serde_json::json;

use crate::model::{BOTH, ask, client, named, user};

#[tokio::test]
async fn a_status_is_told_by_what_can_be_done() {
    type Is = fn(&ModelError) -> bool;
    let cases: [(u16, Is, bool); 7] = [
        (401, |e| matches!(e, ModelError::Unauthorized { .. }), false),
        (404, |e| matches!(e, ModelError::UnknownModel { .. }), false),
        (400, |e| matches!(e, ModelError::Refused { status: 400, .. }), false),
        (413, |e| matches!(e, ModelError::ContextTooLong { .. }), false),
        (500, |e| matches!(e, ModelError::Server { status: 500, .. }), true),
        (529, |e| matches!(e, ModelError::Overloaded { .. }), true),
        (302, |e| matches!(e, ModelError::Refused { status: 302, .. }), false),
    ];
    for api in BOTH {
        let server = ScriptedModel::start();
        let model = client(api, &server);
        for (status, is, retryable) in cases {
            server.fails_with(status, r#"{"error":{"message":"because"}}"#).header("location", "http://example.com/");
            let error = ask(&model, &[user("hi")]).await.unwrap_err();
            assert!(is(&error), "{status}: {error:?}");
            assert_eq!(error.is_retryable(), retryable, "{error:?}");
            assert!(error.to_string().contains("because"), "{error}");
        }
    }
}

#[tokio::test]
async fn when_to_ask_again_is_told() {
    for api in BOTH {
        let server = ScriptedModel::start();
        let model = client(api, &server);
        server.fails_with(429, "{}").header("retry-after", "7");
        server.fails_with(503, "{}").header("retry-after", "7").header("retry-after-ms", "250");
        server.fails_with(429, "{}").header("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT");
        let after = [Some(Duration::from_secs(7)), Some(Duration::from_millis(250)), None];
        for wanted in after {
            let error = ask(&model, &[user("hi")]).await.unwrap_err();
            assert_eq!(error.retry_after(), wanted, "{error:?}");
            assert!(error.is_retryable());
        }
    }
}

#[tokio::test]
async fn an_error_in_the_middle_of_an_answer_is_that_error() {
    for api in BOTH {
        let server = ScriptedModel::start();
        server.says("I was about to").breaks_with("overloaded_error", "Overloaded");
        let error = ask(&client(api, &server), &[user("hi")]).await.unwrap_err();
        assert!(matches!(error, ModelError::Overloaded { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn an_answer_cut_after_any_event_is_whole_or_an_error_with_what_came() {
    for api in BOTH {
        let server = ScriptedModel::start();
        let model = client(api, &server);
        let mut whole = 0;
        for events in 0..20 {
            server.thinks("hm").says("abc").calls("bash", json!({"a": 1})).cuts_after(events);
            match ask(&model, &[user("hi")]).await {
                Ok((answer, _)) => {
                    whole += 1;
                    assert_eq!(answer.blocks.len(), 3, "cut after {events}");
                }
                Err(ModelError::CutStream { partial, .. }) => {
                    assert!(whole == 0, "cut after {events}");
                    let is_call = |block: &Block| matches!(block, Block::Call { .. });
                    assert!(!partial.iter().any(is_call), "cut after {events}: {partial:?}");
                }
                Err(other) => panic!("cut after {events}: {other:?}"),
            }
        }
        assert!(whole > 0);
    }
}

#[tokio::test]
async fn the_last_event_or_the_reason_to_stop_may_be_missing_but_not_both() {
    let chunk = |text: &str, reason: &str| {
        format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}},\"finish_reason\":{reason}}}]}}\n\n")
    };
    let server = ScriptedModel::start();
    let model = client(Api::OpenAi, &server);
    server.streams(&format!(": hello\n\n{}{}", chunk("a", "null"), chunk("b", "\"stop\"")));
    server.streams(&format!("{}{}", chunk("a", "null"), chunk("b", "null")));
    server.streams(&format!("{}data: [DONE]\n\n", chunk("a", "null")));
    let ab = vec![Block::Text { text: "ab".into() }];
    assert_eq!(ask(&model, &[user("hi")]).await.unwrap().0.blocks, ab);
    let error = ask(&model, &[user("hi")]).await.unwrap_err();
    assert!(matches!(&error, ModelError::CutStream { partial, .. } if *partial == ab), "{error:?}");
    ask(&model, &[user("hi")]).await.unwrap();
}

#[tokio::test]
async fn what_is_no_answer_at_all_is_told() {
    for api in BOTH {
        let server = ScriptedModel::start();
        let model = client(api, &server);
        server.streams("data: <html>welcome</html>\n\n");
        let error = ask(&model, &[user("hi")]).await.unwrap_err();
        assert!(matches!(error, ModelError::Malformed { .. }), "{error:?}");
        server.fails_with(200, "<html>\nwelcome\n</html>").header("content-type", "text/html");
        let error = ask(&model, &[user("hi")]).await.unwrap_err();
        assert!(matches!(error, ModelError::Malformed { .. }), "{error:?}");
        server.hangs_up();
        let error = ask(&model, &[user("hi")]).await.unwrap_err();
        assert!(matches!(error, ModelError::CutStream { .. } | ModelError::Unreachable { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn a_local_server_that_is_not_there_is_named_with_a_hint() {
    for api in BOTH {
        let url = ScriptedModel::refusing_url();
        let error = ask(&named(api, "m", &url), &[user("hi")]).await.unwrap_err();
        assert!(matches!(error, ModelError::Unreachable { server: ServerPlace::Local, .. }), "{error:?}");
        assert!(error.to_string().contains(&url), "{error}");
        assert!(error.advice().contains("start the local server"));
        assert!(!error.is_retryable());
    }
}

#[tokio::test]
async fn no_error_shows_the_key() {
    for api in BOTH {
        let server = ScriptedModel::start();
        let name = format!("{}/m", api.prefix());
        let settings = ModelSettings::parse(&name, Some(&server.url()), |_| Some("sk-hush".into())).unwrap();
        let model = Model::new(settings).unwrap();
        server.fails_with(401, r#"{"error":{"message":"wrong key: sk-hush"}}"#);
        let error = ask(&model, &[user("hi")]).await.unwrap_err();
        assert!(!format!("{error} {error:?} {} {model:?}", error.advice()).contains("hush"));
    }
}

#[test]
fn a_key_is_needed_elsewhere_and_one_that_cannot_be_sent_is_refused() {
    let mut settings = ModelSettings::parse("openai/m", None, |_| Some("sk-\u{7}".into())).unwrap();
    assert!(matches!(Model::new(settings.clone()), Err(ModelError::Unauthorized { .. })));
    settings.key = None;
    let error = Model::new(settings).unwrap_err();
    assert!(error.advice().contains("OPENAI_API_KEY"), "{error:?}");
}

#[tokio::test]
async fn an_unexpected_request_and_one_that_servers_refuse_are_held_against_us() {
    for api in BOTH {
        let server = ScriptedModel::start();
        let model = client(api, &server);
        let error = ask(&model, &[user("hi")]).await.unwrap_err();
        assert!(matches!(error, ModelError::Refused { status: 417, .. }), "{error:?}");
        server.says("never said");
        let call = Block::Call { id: CallId("x".into()), name: "bash".into(), arguments: "{}".into() };
        let orphan =
            [user("hi"), Message::Assistant { blocks: vec![call].into(), model: String::new().into() }, user("so?")];
        let error = ask(&model, &orphan).await.unwrap_err();
        assert!(matches!(error, ModelError::Refused { status: 400, .. }), "{error:?}");
        assert_eq!(server.complaints().len(), 2);
        assert_eq!(server.requests().len(), 2);
    }
}
