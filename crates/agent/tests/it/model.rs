//! Models over real HTTP: what they are asked and what comes back, in both wire formats.

use std::borrow::Cow;

use retake_agent::model::{Api, Delta, Model, ModelAnswer, ModelError, ModelSettings, Prices, ToolSpec};
use retake_engine::session::context::{CallResult, Context, Message};
use retake_engine::session::entry::{Block, CallId, Outcome, Part, StopReason};
use retake_testkit::ScriptedModel;
use retake_testkit::model::{Split, Stop, Tokens};
use serde_json::json;
use tokio::sync::mpsc;

pub(crate) const BOTH: [Api; 2] = [Api::Anthropic, Api::OpenAi];

pub(crate) fn client(api: Api, server: &ScriptedModel) -> Model {
    named(api, "some-model", &server.url())
}

pub(crate) fn named(api: Api, name: &str, url: &str) -> Model {
    let settings = ModelSettings::parse(&format!("{}/{name}", api.prefix()), Some(url), |_| None).unwrap();
    Model::new(settings).unwrap()
}

pub(crate) fn tools() -> Vec<ToolSpec> {
    let tool = |name: &str| ToolSpec {
        name: name.into(),
        description: format!("does {name}"),
        schema: json!({"type": "object", "properties": {"path": {"type": "string"}}}),
    };
    vec![tool("read_file"), tool("bash")]
}

pub(crate) fn user(text: &str) -> Message<'static> {
    Message::User { parts: vec![Part::text(text)].into() }
}

pub(crate) fn context(messages: Vec<Message>) -> Context {
    Context { system: "You are careful.".into(), messages }
}

pub(crate) async fn ask(model: &Model, messages: &[Message<'_>]) -> Result<(ModelAnswer, Vec<Delta>), ModelError> {
    let (sender, mut receiver) = mpsc::channel(1000);
    let request = model.request(&context(messages.to_vec()), &tools());
    let answer = model.ask(&request, &sender).await?;
    drop(sender);
    let mut deltas = Vec::new();
    while let Some(delta) = receiver.recv().await {
        deltas.push(delta);
    }
    Ok((answer, deltas))
}

/// The messages that go on after `answer`: itself, and a result for each of its calls.
pub(crate) fn and_then(model: &Model, answer: &ModelAnswer) -> Vec<Message<'static>> {
    let result = |block: &Block| match block {
        Block::Call { id, name, .. } => Some(CallResult {
            call: Cow::Owned(id.clone()),
            outcome: Outcome::Done,
            parts: vec![Part::text(format!("{name} done"))].into(),
        }),
        _ => None,
    };
    let results: Vec<_> = answer.blocks.iter().filter_map(result).collect();
    let mut messages =
        vec![Message::Assistant { blocks: answer.blocks.clone().into(), model: model.full_name().into() }];
    if !results.is_empty() {
        messages.push(Message::Results { results });
    }
    messages
}

fn text(text: &str) -> Block {
    Block::Text { text: text.into() }
}

/// The blocks with ids and signatures taken out, which differ each time.
fn shape(answer: &ModelAnswer) -> Vec<String> {
    let shape = |block: &Block| match block {
        Block::Text { text } => format!("text {text}"),
        Block::Reasoning { text, .. } => format!("thought {text}"),
        Block::Call { name, arguments, .. } => format!("call {name} {arguments}"),
    };
    answer.blocks.iter().map(shape).collect()
}

#[tokio::test]
async fn text_comes_in_deltas_and_as_a_whole() {
    for api in BOTH {
        let server = ScriptedModel::start();
        server.says("Guten Tag, 世界 🎬!");
        let (answer, deltas) = ask(&client(api, &server), &[user("hi")]).await.unwrap();
        assert_eq!(answer.blocks, [text("Guten Tag, 世界 🎬!")]);
        assert_eq!(answer.stop, StopReason::Done);
        let piece = |delta: &Delta| if let Delta::Text(text) = delta { Some(text.clone()) } else { None };
        let pieces: Vec<_> = deltas.iter().filter_map(piece).collect();
        assert!(pieces.len() > 1, "{deltas:?}");
        assert_eq!(pieces.concat(), "Guten Tag, 世界 🎬!");
        server.assert_exhausted();
    }
}

#[tokio::test]
async fn the_server_is_told_the_same_in_both_formats() {
    for api in BOTH {
        let server = ScriptedModel::start();
        let model = client(api, &server);
        server
            .thinks("two at once")
            .says("I will look.")
            .calls("read_file", json!({"path": "a.txt"}))
            .calls("bash", json!({}));
        let mut messages = vec![Message::User {
            parts: vec![Part::text("look"), Part::File { path: "b.txt".into(), text: "bee".into() }].into(),
        }];
        let (answer, _) = ask(&model, &messages).await.unwrap();
        messages.extend(and_then(&model, &answer));
        messages.push(user("and?"));
        server.says("done");
        ask(&model, &messages).await.unwrap();
        assert_eq!(
            server.last_request().transcript(),
            "system: You are careful.\n\
             user: look\n\n<file path=\"b.txt\">\nbee\n</file>\n\
             assistant: [thought two at once] I will look. [call read_file {\"path\":\"a.txt\"}] [call bash {}]\n\
             tool: read_file done\n\
             tool: bash done\n\
             user: and?"
        );
        server.assert_exhausted();
    }
}

#[tokio::test]
async fn parallel_calls_stay_apart_and_in_order() {
    for api in BOTH {
        let server = ScriptedModel::start();
        server
            .calls("bash", json!({"command": "a"}))
            .calls("bash", json!({"command": "b"}))
            .calls_with_text("bash", "");
        let (answer, deltas) = ask(&client(api, &server), &[user("go")]).await.unwrap();
        assert_eq!(shape(&answer), ["call bash {\"command\":\"a\"}", "call bash {\"command\":\"b\"}", "call bash {}"]);
        assert_eq!(answer.stop, StopReason::Calls);
        assert_eq!(deltas.iter().filter(|delta| matches!(delta, Delta::CallBegan(name) if name == "bash")).count(), 3);
    }
}

#[tokio::test]
async fn however_the_bytes_are_split_the_answer_is_the_same() {
    let sizes = (1..=9).map(Split::Bytes);
    let splits: Vec<_> = sizes.chain((0..25).map(Split::Random)).collect();
    for api in BOTH {
        let server = ScriptedModel::start();
        let model = client(api, &server);
        for split in &splits {
            server.splits(*split);
            server.thinks("hä?\n").says("語 \"quoted\"\n\n").calls("bash", json!({"command": "echo 🎬\n"}));
            let (answer, _) = ask(&model, &[user("go")]).await.unwrap();
            let wanted = ["thought hä?\n", "text 語 \"quoted\"\n\n", "call bash {\"command\":\"echo 🎬\\n\"}"];
            assert_eq!(shape(&answer), wanted, "{split:?}");
        }
    }
}

#[tokio::test]
async fn thoughts_come_back_exactly_and_the_server_checks_their_signatures() {
    for api in BOTH {
        let server = ScriptedModel::start();
        let model = client(api, &server);
        server.thinks("hmm \u{2028} \"x\" </>").thinks_in_secret().calls("bash", json!({"a": 1}));
        let (answer, _) = ask(&model, &[user("go")]).await.unwrap();
        let mut messages = vec![user("go")];
        messages.extend(and_then(&model, &answer));
        server.says("done");
        ask(&model, &messages).await.unwrap();
        server.assert_exhausted();
        let sent = server.last_request().text;
        for block in &answer.blocks {
            if let (Block::Reasoning { opaque, .. }, Api::Anthropic) = (block, api) {
                assert!(sent.contains(opaque.as_str()), "{opaque} is not in {sent}");
            }
        }
        let other = named(api, "other-model", &server.url());
        server.says("hello");
        ask(&other, &messages).await.unwrap();
        server.assert_exhausted();
    }
}

#[tokio::test]
async fn a_conversation_can_go_on_with_the_other_provider() {
    for (first, second) in [(Api::Anthropic, Api::OpenAi), (Api::OpenAi, Api::Anthropic)] {
        let server = ScriptedModel::start();
        let model = client(first, &server);
        server.thinks("hm").thinks_in_secret().calls("bash", json!({})).calls("bash", json!({}));
        let (answer, _) = ask(&model, &[user("go")]).await.unwrap();
        let mut messages = vec![user("go")];
        messages.extend(and_then(&model, &answer));
        server.says("done");
        ask(&client(second, &server), &messages).await.unwrap();
        server.assert_exhausted();
        assert!(!server.last_request().transcript().contains("thought"));
    }
}

#[tokio::test]
async fn ids_that_a_server_would_refuse_are_told_differently() {
    for api in BOTH {
        let server = ScriptedModel::start();
        let model = client(api, &server);
        let call = |id: &str| Block::Call { id: CallId(id.into()), name: "bash".into(), arguments: "{oops".into() };
        let mut messages = vec![user("go")];
        for _ in 0..3 {
            let answer = ModelAnswer {
                blocks: vec![call("functions.bash:0"), call("call_1"), call(&"long".repeat(30))],
                usage: retake_engine::session::entry::Usage::default(),
                stop: StopReason::Calls,
            };
            messages.extend(and_then(&model, &answer));
        }
        server.says("done");
        ask(&model, &messages).await.unwrap();
        server.assert_exhausted();
    }
}

#[tokio::test]
async fn usage_counts_cached_tokens_and_prices_make_the_cost() {
    for api in BOTH {
        let server = ScriptedModel::start();
        let mut settings = client(api, &server).settings().clone();
        settings.prices = Some(Prices { input: 1.0, output: 10.0, cache_read: 0.1, cache_write: 2.0 });
        let model = Model::new(settings).unwrap();
        server.says("hi").costs(Tokens { input: 1000, output: 50, cache_read: 600, cache_write: 100 });
        let usage = ask(&model, &[user("hi")]).await.unwrap().0.usage;
        assert_eq!((usage.input, usage.output, usage.cache_read, usage.cache_write), (1000, 50, 600, 100));
        assert!((usage.cost.unwrap() - (300.0 + 500.0 + 60.0 + 200.0) / 1e6).abs() < 1e-12);
    }
}

#[tokio::test]
async fn an_answer_that_became_too_long_and_a_refusal_say_so() {
    for api in BOTH {
        let server = ScriptedModel::start();
        let model = client(api, &server);
        server.says("and so on").stops(Stop::Length);
        server.says("no").stops(Stop::Refusal);
        assert_eq!(ask(&model, &[user("hi")]).await.unwrap().0.stop, StopReason::Length);
        assert_eq!(ask(&model, &[user("hi")]).await.unwrap().0.stop, StopReason::Refused);
    }
}

#[tokio::test]
async fn each_provider_gets_its_key_in_its_own_header() {
    for api in BOTH {
        let server = ScriptedModel::start();
        let name = format!("{}/m", api.prefix());
        let settings = ModelSettings::parse(&name, Some(&server.url()), |_| Some(" sk-1\n".into())).unwrap();
        server.says("hi");
        ask(&Model::new(settings).unwrap(), &[user("hi")]).await.unwrap();
        let header = if api == Api::Anthropic { ("x-api-key", "sk-1") } else { ("authorization", "Bearer sk-1") };
        let request = server.last_request();
        assert_eq!(request.header(header.0), Some(header.1));
        assert!(!request.text.contains("sk-1"));
    }
}

#[tokio::test]
async fn nobody_has_to_listen() {
    let server = ScriptedModel::start();
    server.says("hi");
    let model = client(Api::OpenAi, &server);
    let (sender, receiver) = mpsc::channel(1);
    drop(receiver);
    let answer = model.ask(&model.request(&context(vec![user("hi")]), &[]), &sender).await.unwrap();
    assert_eq!(answer.blocks, [text("hi")]);
}

#[test]
fn a_test_without_a_runtime_can_follow_the_server() {
    let server = ScriptedModel::start();
    let gate = server.says("hello").pauses();
    let model = client(Api::OpenAi, &server);
    let asking = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(ask(&model, &[user("hi")])).unwrap().0
    });
    assert_eq!(server.wait_for_request(1).transcript(), "system: You are careful.\nuser: hi");
    gate.open();
    assert_eq!(asking.join().unwrap().blocks, [text("hello")]);
    server.assert_exhausted();
}

#[tokio::test]
async fn a_conversation_of_many_turns_is_no_burden_to_a_server_in_a_hurry() {
    let server = ScriptedModel::answering(|_| retake_testkit::model::Answer::default().calls("bash", json!({"n": 1})));
    server.hurries();
    let model = client(Api::Anthropic, &server);
    let mut messages = vec![user("go")];
    for _ in 0..300 {
        let (answer, _) = ask(&model, &messages).await.unwrap();
        messages.extend(and_then(&model, &answer));
    }
    assert_eq!(server.requests().len(), 1);
    assert_eq!(server.wait_for_request(300).messages().len(), 599);
}
