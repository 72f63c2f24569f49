//! What other agents say of their tools in `rawInput`, without a kind, or twice: files are theirs by it, and each command is listed once.

use serde_json::{Value, json};

use super::ownership::{PERSONS, begin, files, say, tick, wait_for_update, work, world};
use super::world::World;

/// Has the agent announce `told` and write agent.txt, while the person works; then all goes back.
async fn rewound(world: &World, told: &Value) -> Result<Value, Value> {
    let (mut client, session) = begin(world).await;
    let ended = json!({ "toolCallId": "c1", "status": "completed" });
    let script = format!("call {told}\nwait go\nput agent.txt x\nupdate {ended}");
    let id = say(&mut client, &session, &script).await;
    wait_for_update(&mut client, "toolCallId", "c1").await;
    // It is noted when this is answered.
    client.points(&session).await;
    work(world);
    world.go("go");
    client.answer(id).await.expect("it ends");
    let rewound = client.rewind(&session, 0).await;
    client.hang_up().await;
    rewound
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_that_names_its_path_in_its_raw_input_owns_that_file_and_no_other() {
    let place = |world: &World| world.project().join("agent.txt");
    let inputs: [fn(Value) -> Value; 7] = [
        |path| json!({ "path": path }),
        |path| json!({ "file_path": path, "content": "x" }),
        |path| json!({ "filePath": path, "newString": "x" }),
        |path| json!({ "notebook_path": path, "new_source": "x" }),
        |path| json!({ "edits": [{ "path": path, "new_text": "x" }] }),
        |path| json!({ "files": [{ "file_path": "/elsewhere" }, { "file_path": path }] }),
        // Relative to where the session was begun.
        |_| json!({ "path": "agent.txt", "content": "x" }),
    ];
    for input in inputs {
        let world = world("");
        let raw = input(json!(place(&world)));
        let told =
            json!({ "toolCallId": "c1", "title": "edit", "kind": "edit", "status": "in_progress", "rawInput": raw });
        let rewound = rewound(&world, &told).await.unwrap_or_else(|error| panic!("{raw}: {error}"));
        assert_eq!(world.files(), files(&PERSONS), "{raw}");
        assert_eq!(rewound.get("ledger"), None, "{raw}: {rewound}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_that_names_a_relative_path_means_the_directory_of_its_session() {
    let world = world("");
    std::fs::create_dir(world.project().join("inside")).expect("there is room");
    world.save("inside/agent.txt", "original");
    let mut client = world.client().await;
    client.go_to(world.project().join("inside"));
    let session = client.new_session().await;
    client.prompt(&session, super::ownership::CALLS).await;
    let raw = json!({ "path": "agent.txt", "content": "x" });
    let told = json!({ "toolCallId": "c1", "title": "edit", "kind": "edit", "status": "in_progress", "rawInput": raw });
    let ended = json!({ "toolCallId": "c1", "status": "completed" });
    let script = format!("call {told}\nwait go\nput inside/agent.txt x\nupdate {ended}");
    let id = say(&mut client, &session, &script).await;
    wait_for_update(&mut client, "toolCallId", "c1").await;
    client.points(&session).await;
    tick();
    world.go("go");
    client.answer(id).await.expect("it ends");
    client.rewind(&session, 0).await.expect("nothing is in the way");
    let text = std::fs::read_to_string(world.project().join("inside/agent.txt")).expect("it is there");
    assert_eq!(text, "original");
    client.hang_up().await;
}

/// Whether an update has all that the agent said.
fn is_said(update: &Value, says: &Value) -> bool {
    says.as_object().expect("it is an object").iter().all(|(key, value)| update[key] == *value)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_without_a_kind_is_not_listed_as_a_command() {
    let inputs: [fn(Value) -> Value; 3] = [
        |path| json!({ "locations": [{ "path": path }] }),
        |path| json!({ "rawInput": { "file_path": path, "content": "x" } }),
        |path| json!({ "kind": "other", "content": [{ "type": "diff", "path": path, "oldText": "", "newText": "x" }] }),
    ];
    for input in inputs {
        let world = world("");
        let (mut client, session) = begin(&world).await;
        // The call says its path after it was announced and before it writes.
        let begins = json!({ "toolCallId": "c1", "title": "make a file", "status": "pending" });
        let mut says = input(json!(world.project().join("agent.txt")));
        says["toolCallId"] = "c1".into();
        let ended = json!({ "toolCallId": "c1", "status": "completed" });
        let script = format!("call {begins}\nupdate {says}\nwait go\nput agent.txt x\nupdate {ended}");
        let id = say(&mut client, &session, &script).await;
        client.wait(|message| is_said(&message["params"]["update"], &says)).await;
        client.points(&session).await;
        tick();
        world.go("go");
        client.answer(id).await.expect("it ends");
        let rewound = client.rewind(&session, 0).await.unwrap_or_else(|error| panic!("{says}: {error}"));
        assert_eq!(rewound["files"]["deleted"], json!(["agent.txt"]), "{says}: {rewound}");
        assert_eq!(rewound.get("ledger"), None, "{says}: {rewound}");
        client.hang_up().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_without_a_kind_that_runs_a_command_is_listed() {
    let world = world("");
    let raw = json!({ "command": "make", "path": world.project().join("agent.txt") });
    let told = json!({ "toolCallId": "c1", "title": "make", "status": "in_progress", "rawInput": raw });
    let (mut client, session) = begin(&world).await;
    let ended = json!({ "toolCallId": "c1", "status": "completed" });
    let id = say(&mut client, &session, &format!("call {told}\nupdate {ended}")).await;
    client.answer(id).await.expect("it ends");
    let rewound = client.rewind(&session, 0).await.expect("nothing is in the way");
    assert_eq!(rewound["ledger"], json!([{ "kind": "command", "what": "make" }]), "{rewound}");
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_is_announced_and_asked_about_is_listed_once() {
    // Asked about before it runs, or while it does.
    for status in ["pending", "in_progress"] {
        let world = world("");
        let (mut client, session) = begin(&world).await;
        let begins = json!({ "toolCallId": "c1", "title": "make", "kind": "execute", "status": status });
        let ended = json!({ "toolCallId": "c1", "status": "completed" });
        let script = format!("call {begins}\npermit c1\nupdate {ended}");
        let id = say(&mut client, &session, &script).await;
        let asked = client.wait(|message| message["method"] == "session/request_permission").await;
        client.reply(&asked["id"], json!({ "outcome": { "outcome": "selected", "optionId": "yes" } })).await;
        client.answer(id).await.expect("it ends");
        let rewound = client.rewind(&session, 0).await.expect("nothing is in the way");
        assert_eq!(rewound["ledger"], json!([{ "kind": "command", "what": "make" }]), "{status}: {rewound}");
        client.hang_up().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_was_refused_is_not_listed() {
    let world = world("");
    let (mut client, session) = begin(&world).await;
    let begins = json!({ "toolCallId": "c1", "title": "make", "kind": "execute", "status": "pending" });
    let id = say(&mut client, &session, &format!("call {begins}\npermit c1\nput agent.txt x")).await;
    let asked = client.wait(|message| message["method"] == "session/request_permission").await;
    client.reply(&asked["id"], json!({ "outcome": { "outcome": "selected", "optionId": "no" } })).await;
    client.answer(id).await.expect("it ends");
    let rewound = client.rewind(&session, 0).await.expect("nothing is in the way");
    assert_eq!(rewound.get("ledger"), None, "{rewound}");
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undo_of_a_rewind_quotes_nothing() {
    let world = World::new("");
    let mut client = world.client().await;
    let session = client.new_session().await;
    client.prompt(&session, "write a.txt one").await;
    client.rewind(&session, 0).await.expect("it goes back");
    client.told.clear();
    client.prompt(&session, "/undo").await;
    let said: String = client.said().into_iter().map(|(_, _, text)| text).collect();
    assert!(said.contains("Undone.") && !said.contains("You had said") && !said.contains('>'), "{said}");
    client.hang_up().await;
}
