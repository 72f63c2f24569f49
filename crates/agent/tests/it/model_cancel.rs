//! Stopping a model: at once, and with what was heard so far.

use std::time::Duration;

use retake_agent::model::{Delta, ModelError, PartialAnswer};
use retake_engine::session::entry::Block;
use retake_testkit::ScriptedModel;
use tokio::sync::mpsc;

use crate::model::{BOTH, ask, client, context, user};

#[tokio::test(flavor = "multi_thread")]
async fn dropping_the_future_closes_the_connection_and_what_was_heard_is_kept() {
    for api in BOTH {
        let server = ScriptedModel::start();
        let gate = retake_testkit::model::Gate::new();
        server.thinks("hm").says("I am going to").waits_for(&gate).says(" do much more");
        let model = client(api, &server);
        let request = model.request(&context(vec![user("go")]), &[]);
        let (sender, mut receiver) = mpsc::channel(100);
        let asking = tokio::spawn(async move { model.ask(&request, &sender).await });
        let mut heard = PartialAnswer::default();
        let mut text = String::new();
        while text != "I am going to" {
            let delta = receiver.recv().await.unwrap();
            heard.hear(&delta);
            if let Delta::Text(piece) = delta {
                text.push_str(&piece);
            }
        }
        asking.abort();
        server.wait_for_hang_up(1);
        let blocks = heard.blocks();
        assert!(matches!(&blocks[0], Block::Reasoning { text, opaque } if text == "hm" && !opaque.is_empty()));
        assert_eq!(blocks[1], Block::Text { text: "I am going to".into() });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_has_not_begun_to_answer_can_be_stopped_too() {
    for api in BOTH {
        let server = ScriptedModel::start();
        let gate = server.says("never").pauses();
        let model = client(api, &server);
        let request = model.request(&context(vec![user("go")]), &[]);
        let (sender, _receiver) = mpsc::channel(100);
        let asking = tokio::spawn(async move { model.ask(&request, &sender).await });
        gate.wait_until_reached();
        asking.abort();
        server.wait_for_hang_up(1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_answer_comes_as_far_as_its_gate_is_open() {
    for api in BOTH {
        let server = ScriptedModel::start();
        let gate = server.says_slowly(["a", "b", "c"]);
        let model = client(api, &server);
        let asking = tokio::spawn(async move { ask(&model, &[user("go")]).await });
        gate.wait_until_reached();
        gate.open();
        gate.open();
        let (answer, _) = asking.await.unwrap().unwrap();
        assert_eq!(answer.blocks, [Block::Text { text: "abc".into() }]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_falls_silent_is_given_up() {
    for api in BOTH {
        let server = ScriptedModel::start();
        let _silent = server.says_slowly(["half an", " answer"]);
        let _mute = server.says("never").pauses();
        let model = client(api, &server).with_idle_timeout(Duration::from_millis(100));
        let error = ask(&model, &[user("go")]).await.unwrap_err();
        let half = vec![Block::Text { text: "half an".into() }];
        assert!(matches!(&error, ModelError::CutStream { partial, .. } if *partial == half), "{error:?}");
        let error = ask(&model, &[user("go")]).await.unwrap_err();
        assert!(matches!(&error, ModelError::CutStream { partial, .. } if partial.is_empty()), "{error:?}");
        assert!(error.is_retryable());
    }
}
