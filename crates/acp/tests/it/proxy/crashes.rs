//! What survives when everything ends at the wrong moment: in the first load of a session, or while an answer comes.

use std::time::Duration;

use retake_agent::ids;
use retake_engine::Durability;
use retake_engine::progress::NoProgress;
use retake_engine::window::FileTime;
use serde_json::json;

use super::ownership;
use super::world::{Client, World};

/// A session of three turns that the agent had before Retake.
async fn before_retake(world: &World) -> String {
    let nothing = world.copy_data();
    let mut client = world.client().await;
    let session = client.new_session().await;
    for text in ["say one", "say two", "say three"] {
        client.prompt(&session, text).await;
    }
    client.hang_up().await;
    world.put_data(&nothing);
    session
}

fn texts(client: &mut Client) -> Vec<String> {
    client.said().into_iter().map(|(_, _, text)| text).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_load_that_is_interrupted_is_done_anew() {
    for is_killed in [false, true] {
        let mut world = World::new("gated_load,delete");
        world.patience.stop = Duration::from_millis(300);
        world.patience.leave = world.patience.stop;
        let session = before_retake(&world).await;
        let mut client = world.client().await;
        let load = json!({ "sessionId": session, "cwd": world.project(), "mcpServers": [] });
        client.send("session/load", load).await;
        client.wait(|message| message["params"]["update"]["content"]["text"] == "two").await;
        world.wait_for_stored("say two").await;
        let killed = is_killed.then(|| world.copy_data());
        client.hang_up().await;
        if let Some(killed) = killed {
            world.put_data(&killed);
        }
        world.go("load");
        let mut client = world.client().await;
        client.load(&session).await.expect("it is loaded");
        let said = texts(&mut client);
        assert_eq!(said, ["say one", "one", "say two", "two", "say three", "three"], "killed: {is_killed}");
        assert_eq!(client.points(&session).await.len(), 3);
        client.prompt(&session, "say four").await;
        let saw = world.model_saw();
        assert_eq!((saw.len(), saw[4].as_str(), saw[6].as_str()), (7, "user: say three", "user: say four"), "{saw:?}");
        client.hang_up().await;
        assert_eq!(world.workspace().sessions().all().expect("they can be read").len(), 1);
        // From now on it is the log that is told.
        let mut client = world.client().await;
        client.load(&session).await.expect("it is loaded");
        assert_eq!(texts(&mut client).len(), 8);
        client.hang_up().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_whose_first_load_was_interrupted_can_be_deleted() {
    let mut world = World::new("gated_load,delete");
    world.patience.stop = Duration::from_millis(300);
    world.patience.leave = world.patience.stop;
    let session = before_retake(&world).await;
    let mut client = world.client().await;
    let load = json!({ "sessionId": session, "cwd": world.project(), "mcpServers": [] });
    client.send("session/load", load).await;
    client.wait(|message| message["params"]["update"]["content"]["text"] == "two").await;
    client.hang_up().await;
    let mut client = world.client().await;
    client.ask("session/delete", json!({ "sessionId": session })).await.expect("it is deleted");
    client.hang_up().await;
    assert_eq!(world.workspace().sessions().all().expect("they can be read").len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_passed_on_survives_a_kill_in_the_middle_of_a_message() {
    let world = World::new("");
    let mut client = world.client().await;
    let session = client.new_session().await;
    client.prompt(&session, "say one").await;
    let script = "say so far\nwait more\nsay , and on\nwait go";
    let prompt = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": script }] });
    let asked = client.send("session/prompt", prompt).await;
    client.wait(|message| message["params"]["update"]["content"]["text"] == "so far").await;
    world.wait_for_stored("\"so far").await;
    let early = world.copy_data();
    world.go("more");
    world.wait_for_stored("\"so far, and on").await;
    let late = world.copy_data();
    world.go("go");
    client.answer(asked).await.expect("it is answered");
    client.load(&session).await.expect("it is loaded");
    let whole = client.said();
    client.hang_up().await;
    for (killed, answer) in [(early, "so far"), (late, "so far, and on")] {
        world.put_data(&killed);
        let mut client = world.client().await;
        client.load(&session).await.expect("it is loaded");
        let mut expected = whole.clone();
        expected[3].2 = answer.to_owned();
        assert_eq!(client.said(), expected, "ids stay the same");
        assert_eq!(client.points(&session).await.len(), 2);
        client.prompt(&session, "say three").await;
        let saw = world.model_saw().join("\n");
        assert!(saw.contains(&format!("Assistant: {answer}\n")), "{saw}");
        client.hang_up().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_of_which_only_a_tool_was_told_survives_a_kill() {
    let world = World::new("");
    let mut client = world.client().await;
    let session = client.new_session().await;
    let prompt = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "edit b.txt\nwait go" }] });
    client.send("session/prompt", prompt).await;
    client.wait(|message| message["params"]["update"]["toolCallId"].is_string()).await;
    world.wait_for_stored("interrupted").await;
    let killed = world.copy_data();
    world.go("go");
    client.hang_up().await;
    world.put_data(&killed);
    let mut client = world.client().await;
    client.load(&session).await.expect("it is loaded");
    assert!(client.told.iter().any(|told| told["params"]["update"]["toolCallId"].is_string()));
    assert_eq!(texts(&mut client), ["edit b.txt\nwait go"]);
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_only_the_conversation_can_go_back_that_is_said() {
    let world = World::new("");
    let session = before_retake(&world).await;
    let mut client = world.client().await;
    client.load(&session).await.expect("it is loaded");
    client.prompt(&session, "write a.txt four").await;
    let points = client.points(&session).await;
    assert_eq!((&points[0]["scopes"], &points[1]["scopes"]), (&json!(null), &json!(["conversation"])), "{points:?}");
    let mut wish = json!({ "sessionId": session, "beforeMessageId": points[1]["messageId"] });
    let error = client.ask("_session/rewind", wish.clone()).await.expect_err("its files are not kept");
    // The message is known: it is this way of going back that there is not.
    assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(-32602), &json!("no_files")), "{error}");
    assert_eq!(error["data"]["scopes"], json!(["conversation"]), "{error}");
    let text = error["message"].as_str().expect("a text");
    assert!(text.contains("not kept") && text.contains("only the conversation can go back"), "{error}");
    client.prompt(&session, "/rewind").await;
    client.said();
    client.prompt(&session, "/rewind 3").await;
    let told = texts(&mut client).concat();
    assert!(told.contains("/rewind 3 conversation"), "{told}");
    wish["scope"] = "conversation".into();
    client.ask("_session/rewind", wish).await.expect("that can be done");
    assert_eq!(client.points(&session).await.len(), 2);
    assert_eq!(world.files(), [("a.txt".to_owned(), "four".to_owned())]);
    client.hang_up().await;
}

/// Has the agent say `script` in a turn until it has written agent.txt, and leaves what is stored then as a process does that is killed.
async fn killed(world: &World, script: &str, go: &[&str]) -> String {
    let (mut client, session) = ownership::begin(world).await;
    let id = ownership::say(&mut client, &session, &format!("say quicksilver\nwait go\n{script}\nwait end")).await;
    world.wait_for_stored("quicksilver").await;
    ownership::tick();
    world.go("go");
    while !world.project().join("agent.txt").exists() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    if !go.is_empty() {
        // Another process finds it before the agent says what it was.
        let mut workspace = world.workspace();
        workspace.checkpoints_mut().take(ids::checkpoint(), Durability::Soon, &NoProgress).expect("there is room");
    }
    for name in go {
        world.go(name);
        client.wait(|message| message["params"]["update"]["toolCallId"] == "c1").await;
        // It is noted when this is answered.
        client.points(&session).await;
    }
    let killed = world.copy_data();
    world.go("end");
    client.answer(id).await.expect("the agent finishes its turn");
    client.hang_up().await;
    world.put_data(&killed);
    session
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_was_found_before_its_tool_was_announced_goes_back_after_a_kill() {
    let world = World::new("");
    let place = world.project().join("agent.txt");
    let told = json!({
        "toolCallId": "c1", "title": "edit", "kind": "edit", "status": "in_progress", "locations": [{ "path": place }],
    });
    let session = killed(&world, &format!("put agent.txt x\nwait on\ncall {told}"), &["on"]).await;
    let mut client = world.client().await;
    client.load(&session).await.expect("it is loaded");
    let rewound = client.rewind(&session, 0).await.expect("nothing is in the way");
    assert_eq!(rewound["files"]["deleted"], json!(["agent.txt"]), "{rewound}");
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_a_tool_that_nobody_read_of_before_the_kill_has_to_be_decided() {
    let world = ownership::world("");
    let session = killed(&world, "put agent.txt x", &[]).await;
    // The process was there for as long as this after its last sign of life.
    let gone = FileTime::now().plus(Duration::from_secs(1));
    while FileTime::floor() <= gone {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    world.save("mine.txt", "the person's file");
    let mut client = world.client().await;
    client.load(&session).await.expect("it is loaded");
    let error = client.rewind(&session, 0).await.expect_err("nobody knows whose it is");
    let conflicts = error["data"]["conflicts"].as_array().expect("a list");
    let paths: Vec<&str> = conflicts.iter().filter_map(|conflict| conflict["path"].as_str()).collect();
    assert_eq!(paths, ["agent.txt"], "what was saved since is the person's: {error}");
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_saved_after_the_proxy_was_killed_while_a_tool_ran_is_the_persons() {
    let world = ownership::world("");
    let told = json!({ "toolCallId": "c1", "title": "make", "kind": "execute", "status": "in_progress" });
    let session = killed(&world, &format!("call {told}\nput agent.txt x\nwait on"), &["on"]).await;
    // The process was there for as long as this after its last sign of life.
    let gone = FileTime::now().plus(Duration::from_secs(1));
    while FileTime::floor() <= gone {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    world.save("mine.txt", "the person's file");
    let mut client = world.client().await;
    client.load(&session).await.expect("it is loaded");
    let rewound = client.rewind(&session, 0).await.expect("nothing is in the way");
    assert_eq!(rewound["files"]["deleted"], json!(["agent.txt"]), "{rewound}");
    let persons = [("mine.txt", "the person's file"), ("notes.txt", "original")];
    assert_eq!(world.files(), ownership::files(&persons));
    client.hang_up().await;
}
