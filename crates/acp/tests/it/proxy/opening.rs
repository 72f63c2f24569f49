//! Sessions that are not open, are about to be, or have no log.

use serde_json::{Value, json};

use super::world::{Client, World};

/// A session whose second turn was cut off, and the proxy is gone.
async fn cut(world: &World) -> String {
    let mut client = world.client().await;
    let session = client.new_session().await;
    client.prompt(&session, "say one").await;
    client.prompt(&session, "say secret").await;
    client.rewind(&session, 0).await.expect("it goes back");
    client.hang_up().await;
    session
}

fn prompt(session: &str, text: &str) -> Value {
    json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] })
}

fn ties(world: &World) -> usize {
    let stores = std::fs::read_dir(world.path("data").join("workspaces")).expect("it is there");
    let files = stores.flatten().filter_map(|store| std::fs::read_dir(store.path().join("acp")).ok());
    files.map(Iterator::count).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_of_a_session_that_is_not_open_is_one_of_what_is_retained() {
    let world = World::new("fork");
    let session = cut(&world).await;
    let mut client = world.client().await;
    let params = json!({ "sessionId": session, "cwd": world.project(), "mcpServers": [] });
    let forked = client.ask("session/fork", params).await.expect("it is forked");
    client.prompt(forked["sessionId"].as_str().expect("it has an id"), "say three").await;
    let saw = world.model_saw().join("\n");
    assert!(saw.contains("say one") && !saw.contains("secret"), "{saw}");
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_in_a_session_that_is_not_open_reaches_nobody() {
    let world = World::new("");
    let session = cut(&world).await;
    let mut client = world.client().await;
    let error = client.ask("session/prompt", prompt(&session, "say three")).await.expect_err("it is not open");
    assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(-32002), &json!("unknown_session_id")), "{error}");
    client.notify("session/cancel", json!({ "sessionId": session })).await;
    assert!(!world.model_saw().join("\n").contains("three"));
    // What nobody knows passes: it may be the agent's own.
    let error = client.ask("session/prompt", prompt("nobody", "say three")).await.expect_err("there is none");
    assert_eq!(error["message"], "no such session");
    client.load(&session).await.expect("it is loaded");
    client.prompt(&session, "say three").await;
    assert!(!world.model_saw().join("\n").contains("secret"));
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_right_behind_its_load_waits_for_it() {
    for habits in ["", "fork", "slow"] {
        let world = World::new(habits);
        let session = cut(&world).await;
        let mut client = world.client().await;
        let params = json!({ "sessionId": session, "cwd": world.project(), "mcpServers": [] });
        let load = client.send("session/load", params).await;
        let said = client.send("session/prompt", prompt(&session, "say three")).await;
        client.answer(load).await.expect("it is loaded");
        client.answer(said).await.expect("it is said");
        let saw = world.model_saw().join("\n");
        assert!(saw.contains("say one") && !saw.contains("secret") && saw.contains("three"), "{habits}: {saw}");
        assert_eq!(client.points(&session).await.len(), 2, "{habits}");
        client.hang_up().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_a_session_that_is_not_open_deletes_all_of_it() {
    let world = World::new("delete");
    let session = cut(&world).await;
    let mut client = world.client().await;
    client.ask("session/delete", json!({ "sessionId": session })).await.expect("it is deleted");
    let listed = client.ask("session/list", json!({ "cwd": world.project() })).await.expect("it lists");
    client.hang_up().await;
    assert_eq!(listed["sessions"], json!([]));
    // It is gone for good, also while its turn runs.
    let mut client = world.client().await;
    let session = client.new_session().await;
    client.send("session/prompt", prompt(&session, "say one\nhang")).await;
    client.wait(|message| message["params"]["update"]["content"]["text"] == "one").await;
    client.notify("session/cancel", json!({ "sessionId": session })).await;
    client.ask("session/delete", json!({ "sessionId": session })).await.expect("it is deleted");
    assert_eq!(world.workspace().sessions().all().expect("they can be read").len(), 0);
    client.hang_up().await;
    assert_eq!(world.workspace().sessions().all().expect("they can be read").len(), 0);
    assert_eq!(ties(&world), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_another_process_has_open_takes_nothing_here() {
    let world = World::new("");
    let mut first = world.client().await;
    let session = first.new_session().await;
    first.prompt(&session, "say one").await;
    let mut second = world.client().await;
    second.load(&session).await.expect_err("it is open elsewhere");
    second.ask("session/prompt", prompt(&session, "say two")).await.expect_err("it is open elsewhere");
    assert!(!world.model_saw().join("\n").contains("two"));
    second.hang_up().await;
    first.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_whose_log_was_deleted_begins_a_new_one_when_it_is_loaded() {
    let world = World::new("");
    let mut client = world.client().await;
    let session = client.new_session().await;
    client.prompt(&session, "say one").await;
    client.hang_up().await;
    {
        let mut workspace = world.workspace();
        let kept = workspace.sessions().all().expect("they can be read").remove(0);
        let (at, mut random) = (retake_agent::ids::now(), retake_agent::ids::random);
        let writer = workspace.sessions().open(kept.id, at, &mut random).expect("nobody has it open");
        workspace.sessions_mut().delete(writer).expect("it can be deleted");
    }
    assert_eq!(ties(&world), 0);
    let mut client = world.client().await;
    client.load(&session).await.expect("the agent has it still");
    client.prompt(&session, "say two").await;
    let named = client.told.iter().filter_map(|told| told["params"]["sessionId"].as_str());
    assert!(named.into_iter().all(|named| named == session));
    assert_eq!(client.points(&session).await.len(), 2);
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_the_same_one_from_a_directory_below() {
    let world = World::new("");
    let session = cut(&world).await;
    let (below, link, elsewhere) = (world.project().join("below"), world.path("link"), world.path("elsewhere"));
    std::fs::create_dir(&below).expect("there is room");
    std::fs::create_dir(&elsewhere).expect("there is room");
    std::os::unix::fs::symlink(world.project(), &link).expect("there is room");
    for cwd in [below, link] {
        let mut client = world.client().await;
        client.go_to(cwd);
        client.load(&session).await.expect("it is loaded");
        let said: Vec<String> = client.said().into_iter().map(|(_, _, text)| text).collect();
        assert_eq!(said, ["say one", "one"]);
        client.hang_up().await;
    }
    let mut client = world.client().await;
    client.go_to(elsewhere);
    let error = client.load(&session).await.expect_err("the agent has what was cut off by this name");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("load it there")), "{error}");
    client.hang_up().await;
}

/// What the chat says to something that is typed.
async fn type_in(client: &mut Client, session: &str, typed: &str) -> String {
    client.told.clear();
    client.prompt(session, typed).await;
    client.said().into_iter().map(|(_, _, text)| text).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_in_a_session_without_a_log_says_why_there_is_none() {
    for version in [1, 2] {
        let world = World::new("");
        let mut client = world.start();
        client.initialize(version, true).await;
        client.go_to(world.path("home"));
        let session = client.new_session().await;
        client.prompt(&session, "say one").await;
        let said = type_in(&mut client, &session, "/rewind").await;
        assert!(said.contains("somebody's home"), "{said}");
        assert_eq!(world.model_saw(), ["user: say one"]);
        let error = client.ask("_session/rewind_points", json!({ "sessionId": session })).await.expect_err("no log");
        assert!(error["message"].as_str().is_some_and(|text| text.contains("somebody's home")), "{error}");
        client.hang_up().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_that_is_called_as_an_older_session_does_not_get_at_it() {
    let world = World::new("same_ids,fork");
    let mut client = world.client().await;
    let mut older = Vec::new();
    for _ in 0..12 {
        older.push(client.new_session().await);
    }
    for session in &older {
        client.prompt(session, "say old").await;
    }
    client.hang_up().await;
    let mut client = world.client().await;
    client.load(&older[0]).await.expect("it is loaded");
    let params = json!({ "sessionId": older[0], "cwd": world.project(), "mcpServers": [] });
    let forked = client.ask("session/fork", params).await.expect("it is forked");
    let forked = forked["sessionId"].as_str().expect("it has an id").to_owned();
    assert!(!older.contains(&forked), "{forked}");
    client.prompt(&forked, "say new").await;
    for session in &older {
        client.load(session).await.expect("it is loaded");
        // Beside the conversation the user may be told that it goes on from the transcript.
        let said = client.said().into_iter().filter(|(_, id, _)| !id.starts_with("command-"));
        assert_eq!(said.map(|(_, _, text)| text).collect::<Vec<_>>(), ["say old", "old"]);
    }
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_a_session_that_is_closed() {
    let world = World::new("");
    let mut client = world.client().await;
    let session = client.new_session().await;
    client.prompt(&session, "say one").await;
    let sockets = || std::fs::read_dir(world.path("sockets")).expect("it is there").count();
    let open = sockets();
    for _ in 0..3 {
        client.ask("session/close", json!({ "sessionId": session })).await.expect("it is closed");
        assert_eq!(sockets(), open - 1);
        client.load(&session).await.expect("it is loaded");
        assert_eq!(sockets(), open);
    }
    client.prompt(&session, "say two").await;
    assert_eq!(client.points(&session).await.len(), 2);
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_in_a_session_has_a_bound() {
    let mut world = World::new("fork,mute");
    world.patience.stop = std::time::Duration::from_millis(300);
    world.patience.leave = world.patience.stop;
    let mut client = world.client().await;
    let session = client.new_session().await;
    client.prompt(&session, "say one").await;
    // Before this one a point is to be kept, which the agent never answers.
    client.send("session/prompt", prompt(&session, "say two")).await;
    for _ in 0..1_100 {
        client.send("session/set_mode", json!({ "sessionId": session, "modeId": "m" })).await;
    }
    let refused = client.wait(|message| message["error"]["data"]["reason"] == "busy").await;
    assert_eq!(refused["error"]["code"], -32603);
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_words_is_kept_whole() {
    let world = World::new("");
    let mut client = world.client().await;
    let session = client.new_session().await;
    client.prompt(&session, "flood 10000").await;
    client.load(&session).await.expect("it is loaded");
    let said: String = client.said().into_iter().map(|(_, _, text)| text).collect();
    assert!(said.contains("9999 ") && said.contains("4567 "), "{}", said.len());
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_closed_can_be_loaded_at_once_again_and_again() {
    let world = World::new("");
    let mut client = world.client().await;
    let session = client.new_session().await;
    client.prompt(&session, "say one").await;
    for _ in 0..30 {
        client.ask("session/close", json!({ "sessionId": session })).await.expect("it is closed");
        client.load(&session).await.expect("it is loaded");
    }
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_behind_a_close_is_answered() {
    for _ in 0..5 {
        let world = World::new("");
        let mut client = world.client().await;
        let session = client.new_session().await;
        client.prompt(&session, "say one").await;
        let about = json!({ "sessionId": session });
        client.send("session/close", about.clone()).await;
        let set = client.send("session/set_mode", json!({ "sessionId": session, "modeId": "m" })).await;
        let points = client.send("_session/rewind_points", about.clone()).await;
        let load = json!({ "sessionId": session, "cwd": world.project(), "mcpServers": [] });
        let load = client.send("session/load", load).await;
        let again = client.send("_session/rewind_points", about).await;
        let mut open = vec![set, points, load, again];
        // Those that come when it is closed already may overtake those that waited for that.
        while !open.is_empty() {
            let message = client.next().await.expect("the proxy is still there");
            open.retain(|id| message["id"] != *id);
        }
        client.load(&session).await.expect("it is open, or can be loaded");
        assert_eq!(client.points(&session).await.len(), 1);
        client.hang_up().await;
    }
}
