//! Whose the files are that change while another agent has its turn: a person's work is never taken for the agent's.

use std::time::Duration;

use retake_engine::window::FileTime;
use serde_json::{Value, json};

use super::world::{Client, World};

/// An agent whose lines count as read at once, so that only what happens in between decides.
pub(super) fn world(habits: &str) -> World {
    let mut world = World::new(habits);
    world.patience.notice = Duration::ZERO;
    world.patience.doubt = Duration::ZERO;
    world.save("notes.txt", "original");
    world
}

/// Waits until what changes from now on is later than all that changed before, also for the kernel's clock.
pub(super) fn tick() {
    let now = FileTime::now();
    while FileTime::floor() <= now {
        std::thread::yield_now();
    }
}

/// What a person does: changes a file and makes another.
pub(super) fn work(world: &World) {
    tick();
    world.save("notes.txt", "the person's words");
    world.save("mine.txt", "the person's file");
    tick();
}

pub(super) fn files(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

pub(super) const PERSONS: [(&str, &str); 2] = [("mine.txt", "the person's file"), ("notes.txt", "the person's words")];

/// A session with an agent that has announced a tool before.
pub(super) async fn begin(world: &World) -> (Client, String) {
    let mut client = world.client().await;
    let session = client.new_session().await;
    client.prompt(&session, CALLS).await;
    (client, session)
}

pub(super) const CALLS: &str = r#"call {"toolCallId":"c0","title":"look","kind":"read","status":"in_progress"}
update {"toolCallId":"c0","status":"completed"}"#;

pub(super) async fn say(client: &mut Client, session: &str, script: &str) -> u64 {
    let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": script }] });
    client.send("session/prompt", params).await
}

pub(super) async fn wait_for_update(client: &mut Client, key: &str, value: &str) -> Value {
    client.wait(|message| message["params"]["update"][key] == value).await
}

async fn wait_for_word(client: &mut Client, word: &str) {
    client.wait(|message| message["params"]["update"]["content"]["text"] == word).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_person_does_while_the_agent_thinks_or_talks_is_theirs() {
    let world = world("");
    let (mut client, session) = begin(&world).await;
    let id = say(&mut client, &session, "say hm\nwait go\nsay done").await;
    wait_for_word(&mut client, "hm").await;
    work(&world);
    world.go("go");
    client.answer(id).await.expect("it ends");
    let rewound = client.rewind(&session, 0).await.expect("nothing is in the way");
    assert_eq!(world.files(), files(&PERSONS));
    assert_eq!(rewound["files"]["restored"], json!([]), "{rewound}");
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_person_does_before_a_tool_runs_is_theirs_and_what_it_does_is_the_agents() {
    let world = world("");
    let (mut client, session) = begin(&world).await;
    let script = r#"say hm
wait go
call {"toolCallId":"c1","title":"make","kind":"execute","status":"in_progress"}
wait on
put agent.txt x
update {"toolCallId":"c1","status":"completed"}"#;
    let id = say(&mut client, &session, script).await;
    wait_for_word(&mut client, "hm").await;
    work(&world);
    world.go("go");
    wait_for_update(&mut client, "toolCallId", "c1").await;
    // It is noted when this is answered.
    client.points(&session).await;
    tick();
    world.go("on");
    client.answer(id).await.expect("it ends");
    client.rewind(&session, 0).await.expect("nothing is in the way");
    assert_eq!(world.files(), files(&PERSONS));
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_person_does_while_they_are_asked_is_theirs_whatever_they_answer() {
    for answer in ["yes", "no"] {
        for version in [1, 2] {
            let world = world("");
            let mut client = world.start();
            client.initialize(version, true).await;
            let session = client.new_session().await;
            client.prompt(&session, CALLS).await;
            let script = r#"call {"toolCallId":"c1","title":"make","kind":"execute","status":"pending"}
permit c1
put agent.txt x
update {"toolCallId":"c1","status":"completed"}"#;
            let id = say(&mut client, &session, script).await;
            let asked = client.wait(|message| message["method"] == "session/request_permission").await;
            work(&world);
            client.reply(&asked["id"], json!({ "outcome": { "outcome": "selected", "optionId": answer } })).await;
            match version {
                1 => drop(client.answer(id).await.expect("it ends")),
                _ => drop(wait_for_update(&mut client, "state", "idle").await),
            }
            assert_eq!(world.files().len(), if answer == "yes" { 3 } else { 2 });
            client.rewind(&session, 0).await.expect("nothing is in the way");
            assert_eq!(world.files(), files(&PERSONS), "{answer}, version {version}");
            client.hang_up().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_person_mends_between_two_tools_is_a_conflict() {
    let world = world("");
    let (mut client, session) = begin(&world).await;
    let script = r#"call {"toolCallId":"c1","title":"one","kind":"execute","status":"in_progress"}
wait go
put a.txt agent
update {"toolCallId":"c1","status":"completed"}
wait on
call {"toolCallId":"c2","title":"two","kind":"execute","status":"in_progress"}
wait end
put b.txt agent
update {"toolCallId":"c2","status":"completed"}"#;
    let id = say(&mut client, &session, script).await;
    wait_for_update(&mut client, "toolCallId", "c1").await;
    // It is noted when this is answered.
    client.points(&session).await;
    tick();
    world.go("go");
    wait_for_update(&mut client, "status", "completed").await;
    // Its snapshot is taken when this is answered.
    client.points(&session).await;
    tick();
    world.save("a.txt", "the person mends it");
    tick();
    world.go("on");
    wait_for_update(&mut client, "toolCallId", "c2").await;
    client.points(&session).await;
    tick();
    world.go("end");
    client.answer(id).await.expect("it ends");
    let error = client.rewind(&session, 0).await.expect_err("it has to be decided");
    assert_eq!(error["data"]["reason"], "conflicts", "{error}");
    let paths: Vec<&Value> =
        error["data"]["conflicts"].as_array().expect("a list").iter().map(|one| &one["path"]).collect();
    assert_eq!(paths, ["a.txt"], "{error}");
    assert_eq!(world.files()[0].1, "the person mends it");
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_tool_that_is_announced_when_it_has_ended_only_declared_paths_are_certain() {
    for declares in [true, false] {
        let world = world("");
        let (mut client, session) = begin(&world).await;
        let paths = if declares { json!([{ "path": world.project().join("agent.txt") }]) } else { json!([]) };
        let call =
            json!({ "toolCallId": "c1", "title": "late", "kind": "edit", "status": "completed", "locations": paths });
        let id = say(&mut client, &session, &format!("say hm\nwait go\nput agent.txt x\ncall {call}")).await;
        wait_for_word(&mut client, "hm").await;
        work(&world);
        world.go("go");
        client.answer(id).await.expect("it ends");
        let rewound = client.rewind(&session, 0).await;
        match declares {
            true => {
                rewound.expect("nothing is in the way");
                assert_eq!(world.files(), files(&PERSONS));
            }
            false => {
                let error = rewound.expect_err("nobody knows whose they are");
                assert_eq!(error["data"]["conflicts"].as_array().expect("a list").len(), 3, "{error}");
                assert_eq!(world.files().len(), 3, "nothing was changed");
            }
        }
        client.hang_up().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_declared_path_was_changed_to_while_the_agent_thought_is_contested() {
    let world = world("");
    let (mut client, session) = begin(&world).await;
    let path = world.project().join("notes.txt");
    let call = json!({ "toolCallId": "c1", "title": "edit", "kind": "edit", "status": "in_progress", "locations": [{ "path": path }] });
    let script = format!(
        "say hm\nwait go\ncall {call}\nwait on\nput notes.txt agent\nupdate {}",
        r#"{"toolCallId":"c1","status":"completed"}"#
    );
    let id = say(&mut client, &session, &script).await;
    wait_for_word(&mut client, "hm").await;
    work(&world);
    world.go("go");
    wait_for_update(&mut client, "toolCallId", "c1").await;
    // Its snapshot is taken when this is answered.
    client.points(&session).await;
    tick();
    world.go("on");
    client.answer(id).await.expect("it ends");
    let error = client.rewind(&session, 0).await.expect_err("both changed it");
    assert_eq!(error["data"]["conflicts"][0]["path"], "notes.txt", "{error}");
    assert_eq!(world.files(), files(&[PERSONS[0], ("notes.txt", "agent")]), "nothing was changed");
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_changed_shortly_before_a_tool_was_announced_is_asked_about() {
    for (kind, begins) in [("execute", "in_progress"), ("edit", "pending")] {
        let mut world = world("");
        world.patience.doubt = Duration::from_secs(600);
        let (mut client, session) = begin(&world).await;
        // Its work is done before it comes to say so, and it says where only then.
        let call = json!({ "toolCallId": "c1", "title": "work", "kind": kind, "status": begins });
        let locations = json!([{ "path": world.project().join("notes.txt") }]);
        let ended = json!({ "toolCallId": "c1", "status": "completed", "locations": locations });
        let script =
            format!("say hm\nwait put\nput notes.txt agent\nput new.txt agent\nwait go\ncall {call}\nupdate {ended}");
        let id = say(&mut client, &session, &script).await;
        wait_for_word(&mut client, "hm").await;
        // It is noted when this is answered.
        client.points(&session).await;
        tick();
        world.go("put");
        world.wait_for_file("project/new.txt", "agent").await;
        tick();
        world.go("go");
        client.answer(id).await.expect("it ends");
        let error = client.rewind(&session, 0).await.expect_err("it is not passed over");
        let conflicts = error["data"]["conflicts"].as_array().expect("a list");
        let paths: Vec<&str> = conflicts.iter().filter_map(|conflict| conflict["path"].as_str()).collect();
        // One that edits and has said where by the time that somebody looks does nothing else.
        assert!(paths.contains(&"notes.txt") && (kind == "edit" || paths.len() == 2), "{kind}: {error}");
        client.hang_up().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_does_that_never_announces_a_tool_has_to_be_decided() {
    let world = world("silent");
    let mut client = world.client().await;
    let session = client.new_session().await;
    client.prompt(&session, "write a.txt one").await;
    client.prompt(&session, "write a.txt two").await;
    let error = client.rewind(&session, 0).await.expect_err("it could be anybody's");
    assert_eq!(error["data"]["conflicts"][0]["path"], "a.txt", "{error}");
    assert_eq!(world.files()[0].1, "two");
    let point = client.points(&session).await[0]["messageId"].clone();
    let params = json!({ "sessionId": session, "beforeMessageId": point, "onConflict": "overwrite" });
    client.ask("_session/rewind", params).await.expect("that is decided");
    assert_eq!(world.files()[0].1, "one");
    client.hang_up().await;
}
