//! What the extension takes and gives: wrong types are refused, plans tell what would be, and nothing of a prompt is lost.

use serde_json::{Value, json};

use super::world::{Client, World};

async fn one_turn(world: &World) -> (Client, String, Value) {
    std::fs::write(world.project().join("a.txt"), "0\n").expect("it can be written");
    let mut client = world.client().await;
    let session = client.new_session().await;
    client.prompt(&session, "write a.txt 1").await;
    let point = client.points(&session).await[0]["messageId"].clone();
    (client, session, point)
}

fn with(params: &Value, more: &Value) -> Value {
    let mut all = params.clone();
    for (key, value) in more.as_object().expect("it is an object") {
        all[key] = value.clone();
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_types_are_refused_and_nothing_happens() {
    let world = World::new("");
    let (mut client, session, point) = one_turn(&world).await;
    let target = json!({ "sessionId": session, "beforeMessageId": point });
    let alone = json!({ "sessionId": session });
    for (method, base, wrong) in [
        ("_session/rewind", &target, json!({ "dryRun": "true" })),
        ("_session/rewind", &target, json!({ "interrupt": "false" })),
        ("_session/rewind", &target, json!({ "scope": 1 })),
        ("_session/rewind", &target, json!({ "onConflict": "yes" })),
        ("_session/rewind", &target, json!({ "paths": "a.txt" })),
        ("_session/rewind", &target, json!({ "expectedHead": 5 })),
        ("_session/rewind", &alone, json!({ "beforeMessageId": 5 })),
        ("_session/undo", &alone, json!({ "operation": 5 })),
        ("_session/rewind_points", &alone, json!({ "query": 5 })),
        ("_session/edit_prompt", &alone, json!({ "messageId": point, "content": "x" })),
    ] {
        let error = client.ask(method, with(base, &wrong)).await.expect_err("it is wrong");
        assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(-32602), &json!("invalid_params")), "{wrong}");
    }
    assert_eq!(world.files(), [("a.txt".to_owned(), "1".to_owned())]);
    let error = client.ask("_session/rewind", json!({ "sessionId": "x", "toMessageId": "y" })).await.expect_err("none");
    assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(-32002), &json!("unknown_session_id")));
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_may_be_absolute() {
    let world = World::new("");
    let (mut client, session, point) = one_turn(&world).await;
    let path = world.project().join("a.txt");
    let only = json!({ "sessionId": session, "beforeMessageId": point, "scope": "code", "paths": [path] });
    let answer = client.ask("_session/rewind", only).await.expect("it is in the workspace");
    assert_eq!(answer["files"]["restored"], json!(["a.txt"]));
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_tells_what_is_kept() {
    let world = World::new("");
    let (mut client, session, point) = one_turn(&world).await;
    std::fs::write(world.project().join("a.txt"), "person\n").expect("it can be written");
    let target = json!({ "sessionId": session, "beforeMessageId": point, "onConflict": "keep" });
    let planned =
        client.ask("_session/rewind", with(&target, &json!({ "dryRun": true }))).await.expect("it is planned");
    assert_eq!((&planned["files"]["kept"], &planned["files"]["restored"]), (&json!(["a.txt"]), &json!([])));
    let done = client.ask("_session/rewind", target).await.expect("it is done");
    assert_eq!(done["files"], planned["files"]);
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_commands_are_told_to_have_effects_that_stay() {
    let world = World::new("");
    let (mut client, session, point) = one_turn(&world).await;
    client.prompt(&session, "shell true b.txt").await;
    client.prompt(&session, "say that was it").await;
    let target = json!({ "sessionId": session, "beforeMessageId": point });
    let answer = client.ask("_session/rewind", target).await.expect("it can");
    let ledger: Vec<&str> =
        answer["ledger"].as_array().expect("a list").iter().filter_map(|item| item["what"].as_str()).collect();
    assert!(matches!(ledger[..], [command] if command.contains("true b.txt")), "{answer}");
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_could_not_be_captured_is_in_the_answer() {
    let world = World::new("");
    make_fifo(&world);
    let (mut client, session, point) = one_turn(&world).await;
    let target = json!({ "sessionId": session, "beforeMessageId": point });
    for params in [with(&target, &json!({ "dryRun": true })), target] {
        let answer = client.ask("_session/rewind", params).await.expect("it can");
        assert_eq!(answer["gaps"][0]["path"], "pipe", "{answer}");
        assert!(answer["gaps"][0]["text"].is_string(), "{answer}");
    }
    client.hang_up().await;
}

fn make_fifo(world: &World) {
    let made = std::process::Command::new("mkfifo").arg(world.project().join("pipe")).status();
    assert!(made.expect("it runs").success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_comes_back_as_it_was_given() {
    let world = World::new("");
    let content = json!([
        { "type": "text", "text": "listen", "annotations": { "audience": ["user"] } },
        { "type": "audio", "mimeType": "audio/wav", "data": "UklGRg==" },
        { "type": "resource", "resource": { "uri": "file:///x.pdf", "mimeType": "application/pdf", "blob": "JVBERi0=" } },
        { "type": "resource_link", "uri": "file:///a/b.rs", "name": "B", "title": "Title", "mimeType": "text/x-rust" },
        { "type": "image", "mimeType": "image/png", "data": "AAAA", "uri": "file:///p.png" },
    ]);
    let mut client = world.client().await;
    let session = client.new_session().await;
    let prompt = json!({ "sessionId": session, "prompt": content });
    let answer = client.ask("session/prompt", prompt).await.expect("it is said");
    let id = answer["_meta"]["retake"]["messageId"].clone();
    client.hang_up().await;
    let mut client = world.client().await;
    client.load(&session).await.expect("it is loaded");
    let chunks = client.told.iter().map(|told| &told["params"]["update"]);
    let chunks = chunks.filter(|update| update["sessionUpdate"] == "user_message_chunk");
    let replayed: Vec<Value> = chunks.map(|update| update["content"].clone()).collect();
    assert_eq!(Value::from(replayed), content);
    let target = json!({ "sessionId": session, "beforeMessageId": id });
    assert_eq!(client.ask("_session/rewind", target).await.expect("it goes back")["content"], content);
    client.hang_up().await;
}
