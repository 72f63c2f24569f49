//! Commands in the chat: what is asked about is what is done, and a question that nobody answers holds nobody up.

use retake_acp::proxy::ProxyEnd;
use serde_json::{Value, json};

use super::world::{Client, World};

/// A client that has begun a session with files of its own, which the agent then changed; the prompts were listed.
async fn listed(world: &World, version: u64, files: &[&str]) -> (Client, String) {
    for file in files {
        std::fs::write(world.project().join(file), "0\n").expect("it can be written");
    }
    let mut client = world.start();
    client.initialize(version, true).await;
    let session = client.new_session().await;
    let script: Vec<String> = files.iter().map(|file| format!("write {file} 1")).collect();
    client.prompt(&session, &script.join("\n")).await;
    client.prompt(&session, "/rewind").await;
    client.told.clear();
    (client, session)
}

fn write(world: &World, file: &str, text: &str) {
    std::fs::write(world.project().join(file), format!("{text}\n")).expect("it can be written");
}

fn said(text: &str) -> Value {
    json!([{ "type": "text", "text": text }])
}

/// Types something that is asked about: the request, and the question.
async fn asked(client: &mut Client, session: &str, typed: &str) -> (u64, Value) {
    let id = client.send("session/prompt", json!({ "sessionId": session, "prompt": said(typed) })).await;
    (id, question(client).await)
}

async fn question(client: &mut Client) -> Value {
    client.wait(|message| message["method"] == "session/request_permission").await
}

async fn choose(client: &mut Client, question: &Value, option: &str) {
    client.reply(&question["id"], json!({ "outcome": { "outcome": "selected", "optionId": option } })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_was_asked_about_is_overwritten_and_what_is_new_is_asked_anew() {
    let world = World::new("");
    let (mut client, session) = listed(&world, 1, &["a.txt", "b.txt"]).await;
    write(&world, "a.txt", "person");
    let (id, first) = asked(&mut client, &session, "/rewind 1").await;
    let text = first["params"]["toolCall"]["content"].to_string();
    assert!(text.contains("a.txt") && !text.contains("b.txt"), "{text}");
    let options = first["params"]["options"].as_array().expect("they are a list");
    let kinds: Vec<&Value> = options.iter().map(|option| &option["kind"]).collect();
    assert!(
        kinds.iter().all(|kind| *kind == "allow_once" || *kind == "reject_once"),
        "nothing is for always: {kinds:?}"
    );
    write(&world, "b.txt", "saved while the question was open");
    choose(&mut client, &first, "overwrite").await;
    let second = question(&mut client).await;
    let text = second["params"]["toolCall"]["content"].to_string();
    assert!(text.contains("b.txt"), "{text}");
    choose(&mut client, &second, "keep").await;
    client.answer(id).await.expect("it is done");
    let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    assert_eq!(world.files(), [file("a.txt", "person"), file("b.txt", "saved while the question was open")]);
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_changes_again_while_it_is_asked_about_is_asked_about_again() {
    let world = World::new("");
    let (mut client, session) = listed(&world, 1, &["a.txt"]).await;
    write(&world, "a.txt", "person");
    let (id, first) = asked(&mut client, &session, "/rewind 1").await;
    write(&world, "a.txt", "person, better");
    choose(&mut client, &first, "overwrite").await;
    let second = question(&mut client).await;
    choose(&mut client, &second, "cancel").await;
    client.answer(id).await.expect("it is answered");
    assert_eq!(world.files(), [("a.txt".to_owned(), "person, better".to_owned())]);
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_merges_cleanly_can_be_merged() {
    let world = World::new("");
    let lines = |first: &str, last: &str| format!("{first}\n2\n3\n4\n5\n6\n7\n{last}\n");
    std::fs::write(world.project().join("a.txt"), lines("1", "8")).expect("it can be written");
    let mut client = world.client().await;
    let session = client.new_session().await;
    client.prompt(&session, "shell sed -i s/1/agent/ a.txt").await;
    client.prompt(&session, "/rewind").await;
    std::fs::write(world.project().join("a.txt"), lines("agent", "person")).expect("it can be written");
    let (id, question) = asked(&mut client, &session, "/rewind 1").await;
    choose(&mut client, &question, "merge").await;
    client.answer(id).await.expect("it is done");
    let text = std::fs::read_to_string(world.project().join("a.txt")).expect("it is there");
    assert_eq!(text, lines("1", "person"));
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_nobody_answers_holds_nobody_up_and_can_be_cancelled() {
    let world = World::new("");
    let (mut client, session) = listed(&world, 1, &["a.txt"]).await;
    write(&world, "a.txt", "person");
    let (id, _) = asked(&mut client, &session, "/rewind 1").await;
    assert_eq!(client.points(&session).await.len(), 1);
    client.notify("session/cancel", json!({ "sessionId": session })).await;
    assert_eq!(client.answer(id).await.expect("it is answered")["stopReason"], "cancelled");
    let (id, _) = asked(&mut client, &session, "/rewind 1").await;
    client.notify("$/cancel_request", json!({ "requestId": id })).await;
    assert_eq!(client.answer(id).await.expect("it is answered")["stopReason"], "cancelled");
    // What was asked in another conversation than this one is not done any more.
    let (id, question) = asked(&mut client, &session, "/rewind 1").await;
    client.prompt(&session, "say hello").await;
    choose(&mut client, &question, "overwrite").await;
    client.answer(id).await.expect("it is answered");
    let told: String = client.said().into_iter().map(|(_, _, text)| text).collect();
    assert!(told.contains("Not done: the conversation has moved on"), "{told}");
    assert_eq!(world.files(), [("a.txt".to_owned(), "person".to_owned())]);
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_and_leaving_do_not_wait_for_an_answer() {
    let world = World::new("");
    let (mut client, session) = listed(&world, 1, &["a.txt"]).await;
    write(&world, "a.txt", "person");
    let (id, _) = asked(&mut client, &session, "/rewind 1").await;
    let close = client.send("session/close", json!({ "sessionId": session })).await;
    assert_eq!(client.answer(id).await.expect("it is answered")["stopReason"], "cancelled");
    client.answer(close).await.expect("it is closed");
    client.load(&session).await.expect("it is opened again");
    client.prompt(&session, "/rewind").await;
    asked(&mut client, &session, "/rewind 1").await;
    client.send("session/prompt", json!({ "sessionId": session, "prompt": said("say hello") })).await;
    assert_eq!(client.hang_up().await, ProxyEnd::ByClient);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_in_version_two_is_told_as_a_state() {
    let world = World::new("");
    let (mut client, session) = listed(&world, 2, &["a.txt"]).await;
    write(&world, "a.txt", "person");
    let (_, question) = asked(&mut client, &session, "/rewind 1").await;
    choose(&mut client, &question, "keep").await;
    client.wait(|message| message["params"]["update"]["state"] == "idle").await;
    let states: Vec<Value> = client
        .told
        .iter()
        .map(|told| told["params"]["update"]["state"].clone())
        .filter(|state| !state.is_null())
        .collect();
    assert_eq!(states, ["running", "requires_action", "running"]);
    let cut = client.told.iter().find(|told| told["params"]["update"]["sessionUpdate"] == "_history_truncated");
    assert_eq!(cut.expect("it is told")["params"]["update"]["sessionId"], session);
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_during_a_turn_does_not_end_it_in_version_two() {
    let world = World::new("");
    let (mut client, session) = listed(&world, 2, &["a.txt"]).await;
    let prompt = json!({ "sessionId": session, "prompt": said("say on my way\nhang") });
    client.send("session/prompt", prompt).await;
    let says = |message: &Value, words: &str| {
        message["params"]["update"]["content"]["text"].as_str().is_some_and(|text| text.starts_with(words))
    };
    client.wait(|message| says(message, "on my way")).await;
    client.told.clear();
    let typed = json!({ "sessionId": session, "prompt": said("/checkpoints") });
    client.send("session/prompt", typed).await;
    client.wait(|message| says(message, "Checkpoints")).await;
    client.notify("session/cancel", json!({ "sessionId": session })).await;
    let is_idle = |told: &Value| told["params"]["update"]["state"] == "idle";
    let idle = client.wait(is_idle).await;
    assert_eq!(idle["params"]["update"]["stopReason"], "cancelled", "it is the turn's");
    assert!(!client.told.iter().any(is_idle), "{:?}", client.told);
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_is_shown_by_an_id_that_commands_take() {
    let world = World::new("");
    let (mut client, session) = listed(&world, 1, &["a.txt"]).await;
    client.prompt(&session, "/checkpoints").await;
    let told: String = client.said().into_iter().map(|(_, _, text)| text).collect();
    let id = told.split('`').nth(1).expect("there is one").to_owned();
    world.workspace().checkpoints().resolve(&id).expect("it is known by that");
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agents_own_command_stays_its_own() {
    let world = World::new("own_undo");
    let (mut client, session) = listed(&world, 1, &["a.txt"]).await;
    client.prompt(&session, "/undo").await;
    assert!(world.model_saw().join("\n").ends_with("user: /undo"), "it is the agent's");
    client.told.clear();
    client.prompt(&session, "/retake-undo").await;
    let told: String = client.said().into_iter().map(|(_, _, text)| text).collect();
    assert!(told.contains("Undone") && told.contains("`/redo` does it again"), "{told}");
    let names = announced(&client);
    assert_eq!(names, ["own", "undo", "rewind", "retake-undo", "redo", "checkpoints", "label", "fork"]);
    client.hang_up().await;
}

/// The commands that the client was last told, and that it shows.
fn announced(client: &Client) -> Vec<String> {
    let lines = client.lines.iter().rev().map(|line| serde_json::from_str::<Value>(line).expect("it is JSON"));
    let mut updates = lines.map(|line| line["params"]["update"].clone());
    let last = updates.find(|update| update["sessionUpdate"] == "available_commands_update").expect("some are told");
    let commands = last["availableCommands"].as_array().into_iter().flatten();
    commands.filter_map(|command| command["name"].as_str().map(str::to_owned)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_that_are_told_before_the_session_is_stay() {
    for version in [1, 2] {
        let world = World::new("own_undo,early_commands");
        let (mut client, session) = listed(&world, version, &["a.txt"]).await;
        let all = ["own", "undo", "rewind", "retake-undo", "redo", "checkpoints", "label", "fork"];
        assert_eq!(announced(&client), all, "version {version}");
        client.prompt(&session, "/undo").await;
        assert!(world.model_saw().join("\n").ends_with("user: /undo"), "it is the agent's");
        client.hang_up().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_loaded_again_has_the_agents_commands_too() {
    let world = World::new("");
    let (mut client, session) = listed(&world, 1, &["a.txt"]).await;
    client.load(&session).await.expect("it is open");
    client.prompt(&session, "say on").await;
    assert_eq!(announced(&client), ["own", "rewind", "undo", "redo", "checkpoints", "label", "fork"]);
    client.hang_up().await;
}
