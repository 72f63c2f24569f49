//! Sessions that the agent cannot load and that Retake's log has: they go on from the transcript, and the user is told.

use std::time::Duration;

use serde_json::{Value, json};

use super::world::{Client, World};

/// A session of one turn, and the proxy is gone.
async fn one_turn(world: &World) -> String {
    let mut client = world.client().await;
    let session = client.new_session().await;
    client.prompt(&session, "say one").await;
    client.hang_up().await;
    session
}

async fn start(world: &World, version: u64) -> Client {
    let mut client = world.start();
    client.initialize(version, true).await;
    client
}

/// What the user is told beside the conversation.
fn notes(client: &Client) -> Vec<String> {
    let updates = client.told.iter().map(|told| &told["params"]["update"]);
    let is_note = |update: &&Value| {
        let is_ours = update["messageId"].as_str().is_some_and(|id| id.starts_with("command-"));
        update["sessionUpdate"] == "notice" || is_ours
    };
    let text = |update: &Value| update["title"].as_str().or(update["content"]["text"].as_str()).map(str::to_owned);
    updates.filter(is_note).filter_map(text).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_the_agent_cannot_load_goes_on_from_the_transcript_and_the_user_is_told() {
    for (habit, words) in [
        ("strange_load", "(No previous sessions found for this project)"),
        ("invalid_load", "Invalid session identifier"),
        ("vague_load", "(Internal error: the rollout file is empty)"),
    ] {
        for version in [1, 2] {
            let world = World::new(habit);
            let session = one_turn(&world).await;
            let mut client = start(&world, version).await;
            let loaded = client.load(&session).await.unwrap_or_else(|error| panic!("{habit} {version}: {error}"));
            assert_eq!(loaded["_meta"]["retake"]["strategy"], "transcript", "{habit} {version}: {loaded}");
            let notes = notes(&client);
            assert!(notes.len() == 1 && notes[0].contains(words), "{habit} {version}: {notes:?}");
            assert!(notes[0].contains("transcript"), "{habit} {version}: {notes:?}");
            client.prompt(&session, "say two").await;
            let saw = world.model_saw().join("\n");
            assert!(saw.contains("<conversation-so-far>") && saw.contains("say one"), "{habit} {version}: {saw}");
            client.hang_up().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_was_cut_short_is_not_shown_as_running_when_its_session_is_loaded() {
    for (version, status) in [(1, "failed"), (2, "cancelled")] {
        let world = World::new("strange_load");
        let mut client = start(&world, version).await;
        let session = client.new_session().await;
        let text = "write b.txt one\nedit a.txt\nhang";
        let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] });
        let id = client.send("session/prompt", params).await;
        let is_edit = |told: &Value| told["params"]["update"]["toolCallId"] == "call-0-1";
        let shown = client.wait(is_edit).await["params"]["update"].clone();
        assert_eq!(shown["status"], "in_progress", "{version}: {shown}");
        client.notify("session/cancel", json!({ "sessionId": session })).await;
        match version {
            1 => drop(client.answer(id).await),
            _ => drop(client.wait(|told| told["params"]["update"]["state"] == "idle").await),
        }
        client.hang_up().await;
        let mut client = start(&world, version).await;
        client.load(&session).await.unwrap_or_else(|error| panic!("{version}: {error}"));
        let told: Vec<Value> = client.told.iter().map(|told| told["params"]["update"].clone()).collect();
        let status_of =
            |id: &str| told.iter().rfind(|told| told["toolCallId"] == id).map(|told| told["status"].clone());
        assert_eq!(status_of("call-0-1"), Some(status.into()), "{version}: {told:#?}");
        assert_eq!(status_of("call-0-0"), Some("completed".into()), "{version}: {told:#?}");
        client.hang_up().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_agents_own_session_is_used_again_if_nothing_was_said_since() {
    let world = World::new("strange_load");
    let session = one_turn(&world).await;
    let mut client = world.client().await;
    client.load(&session).await.expect("it is loaded from the log");
    client.hang_up().await;
    world.go("repaired");
    let mut client = world.client().await;
    client.load(&session).await.expect("the agent loads it");
    assert_eq!(notes(&client), Vec::<String>::new());
    client.prompt(&session, "say two").await;
    assert_eq!(world.model_saw(), ["user: say one", "agent: one", "user: say two"]);
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_that_may_work_the_next_time_is_not_replaced_by_the_transcript() {
    for (habit, code, words) in
        [("locked_load", -32603, "database is locked"), ("unauthorized_load", -32000, "Authentication required")]
    {
        let world = World::new(habit);
        let session = one_turn(&world).await;
        let mut client = world.client().await;
        for _ in 0..2 {
            let error = client.load(&session).await.expect_err("the agent refuses");
            assert_eq!(error["code"], code, "{habit}: {error}");
            assert!(error["message"].as_str().is_some_and(|text| text.contains(words)), "{habit}: {error}");
        }
        world.go("repaired");
        client.load(&session).await.expect("the agent loads it");
        client.prompt(&session, "say two").await;
        assert_eq!(world.model_saw(), ["user: say one", "agent: one", "user: say two"], "{habit}");
        client.hang_up().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_does_not_answer_a_load_keeps_its_session() {
    let mut world = World::new("");
    let session = one_turn(&world).await;
    world.patience.answer = Duration::from_millis(300);
    // It answers when it is let go, which is too late.
    let world = world.with("gated_load");
    let mut client = world.client().await;
    let error = client.load(&session).await.expect_err("the agent does not answer");
    assert_eq!(error["data"]["reason"], json!("silence"), "{error}");
    world.go("load");
    client.hang_up().await;
}
