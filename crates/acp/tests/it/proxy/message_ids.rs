//! Messages and their ids: however an agent tells a message, the client has one by one name, and the log has all of it.

use serde_json::{Value, json};

use super::world::{Client, World};

async fn client(world: &World, version: u64) -> Client {
    let mut client = world.start();
    client.initialize(version, true).await;
    client
}

/// The agent's messages, as they were told.
fn answers(client: &mut Client) -> Vec<(String, String)> {
    let said = client.said().into_iter().filter(|(kind, ..)| kind == "agent_message");
    said.map(|(_, id, text)| (id, text)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_goes_on_after_a_tool_is_kept_whole_and_in_order() {
    for version in [1, 2] {
        let world = World::new("");
        let mut client = client(&world, version).await;
        let session = client.new_session().await;
        client.prompt(&session, "say before\nshell true\nsay THE ANSWER\nthink hm\nsay more").await;
        let live = answers(&mut client);
        assert!(live.iter().all(|(id, _)| *id == live[0].0), "{live:?}");
        for restarts in [false, true] {
            if restarts {
                client.hang_up().await;
                client = self::client(&world, version).await;
            }
            client.load(&session).await.expect("it is loaded");
            let call = client.told.iter().position(|told| told["params"]["update"]["toolCallId"].is_string());
            let answer = client.told.iter().rposition(|told| told.to_string().contains("THE ANSWER"));
            assert!(call.is_some_and(|call| answer.is_some_and(|answer| call < answer)), "{:?}", client.told);
            assert_eq!(answers(&mut client), live, "version {version}, restarts {restarts}");
        }
        // It can be named, and is the last that is kept then.
        client.prompt(&session, "say three").await;
        let to = json!({ "sessionId": session, "toMessageId": live[0].0 });
        let back = client.ask("_session/rewind", to).await.expect("it goes back");
        assert_eq!(back["lastMessageId"], json!(live[0].0));
        client.prompt(&session, "say four").await;
        let saw = world.model_saw().join("\n");
        let at = ["before", "Tool: true", "THE ANSWER", "more"].map(|text| saw.rfind(text));
        assert!(at.is_sorted() && at[0].is_some() && !saw.contains("three"), "{saw}");
        client.hang_up().await;
    }
}

/// A line of a script that has the agent say this.
fn update(kind: &str, id: &str, text: &str) -> String {
    let block = json!({ "type": "text", "text": text });
    let content = if kind.ends_with("_chunk") { block } else { json!([block]) };
    let update = json!({ "sessionUpdate": kind, "messageId": id, "content": content });
    let params = json!({ "sessionId": "$S", "update": update });
    format!("raw {}", json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }))
}

/// What a client shows of the agent's messages: each by its id, where it first came.
fn shown(client: &mut Client) -> Vec<(String, String)> {
    let mut shown: Vec<(String, String)> = Vec::new();
    for told in std::mem::take(&mut client.told) {
        let update = &told["params"]["update"];
        let Some(kind) = update["sessionUpdate"].as_str().filter(|kind| kind.starts_with("agent_message")) else {
            continue;
        };
        let text = |value: &Value| value["text"].as_str().unwrap_or_default().to_owned();
        let content = match &update["content"] {
            Value::Array(blocks) => blocks.iter().map(text).collect(),
            block => text(block),
        };
        let id = update["messageId"].as_str().unwrap_or_default();
        match shown.iter_mut().find(|(one, _)| one == id) {
            Some((_, shown)) if kind.ends_with("_chunk") => shown.push_str(&content),
            Some((_, shown)) => *shown = content,
            None => shown.push((id.to_owned(), content)),
        }
    }
    shown
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_updated_later_stays_one_message() {
    let world = World::new("");
    let mut client = client(&world, 2).await;
    let session = client.new_session().await;
    let script = [
        update("agent_message_chunk", "m1", "a"),
        update("agent_thought_chunk", "t1", "hm"),
        update("agent_message_chunk", "m1", "b"),
        update("agent_message", "m1", "ab"),
        "shell true".to_owned(),
        update("agent_message", "m1", "abc"),
        update("agent_message", "m2", "stale"),
        "shell true".to_owned(),
        update("agent_message", "m2", "fresh"),
    ];
    client.prompt(&session, &script.join("\n")).await;
    let live = shown(&mut client);
    let texts = |shown: &[(String, String)]| -> Vec<(String, String)> { shown.iter().take(2).cloned().collect() };
    let expected = [("m1", "abc"), ("m2", "fresh")].map(|(id, text)| (id.to_owned(), text.to_owned()));
    assert_eq!(texts(&live), expected);
    for version in [2, 2, 1] {
        client.load(&session).await.expect("it is loaded");
        let loaded = shown(&mut client);
        assert_eq!(loaded, live, "version {version}");
        client.hang_up().await;
        client = self::client(&world, version).await;
    }
    client.load(&session).await.expect("it is loaded");
    client.prompt(&session, "say three").await;
    client.rewind(&session, 0).await.expect("it goes back");
    client.prompt(&session, "say four").await;
    let saw = world.model_saw().join("\n");
    let (_, told) = saw.split_once("Assistant:").expect("it is told what was said");
    assert!(told.contains("fresh") && !told.contains("stale"), "{saw}");
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_that_is_said_while_another_runs_has_its_own_id() {
    for (version, habits) in [(1, "echo"), (2, ""), (2, "user_first")] {
        let world = World::new(habits);
        let mut client = client(&world, version).await;
        let session = client.new_session().await;
        let prompt = |text: &str| json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] });
        let first = client.send("session/prompt", prompt("say one\nwait go")).await;
        client.wait(|message| message["params"]["update"]["content"]["text"] == "one").await;
        let second = client.send("session/prompt", prompt("say two")).await;
        world.wait_for_sent("say two", 1).await;
        world.go("go");
        if version == 1 {
            client.answer(first).await.expect("it is answered");
        }
        client.answer(second).await.expect("it is answered");
        if version == 2 {
            client.wait(|message| message["params"]["update"]["content"]["text"] == "two").await;
            client.wait(|message| message["params"]["update"]["state"] == "idle").await;
        }
        let told = client.said().into_iter().filter(|(kind, ..)| kind == "user_message");
        let mut told: Vec<String> = told.map(|(_, id, _)| id).collect();
        told.reverse();
        let points = client.points(&session).await;
        let ids: Vec<&str> = points.iter().filter_map(|point| point["messageId"].as_str()).collect();
        assert_eq!(told, ids, "version {version}, {habits}");
        let back = json!({ "sessionId": session, "beforeMessageId": ids[1] });
        let back = client.ask("_session/rewind", back).await.expect("it goes back");
        assert_eq!(back["lastMessageId"], Value::Null, "version {version}, {habits}");
        client.hang_up().await;
    }
}
