//! What other agents' edits declare: that is theirs, ignored or not, and what they do not say is asked about.

use serde_json::{Value, json};

use super::ownership::{CALLS, PERSONS, begin, files, say, tick, wait_for_update, work, world};
use super::world::World;

/// An edit of `path`, as far as it has got.
fn edit(world: &World, status: &str, path: Option<&str>) -> Value {
    let locations: Vec<Value> = path.iter().map(|path| json!({ "path": world.project().join(path) })).collect();
    json!({ "toolCallId": "c1", "title": "edit", "kind": "edit", "status": status, "locations": locations })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_person_does_while_the_agent_edits_other_files_is_theirs() {
    // It says where at once, while it is at work, or when it has ended.
    for (begins, goes_on, ends) in [(true, false, false), (false, true, false), (false, false, true)] {
        let world = world("");
        let (mut client, session) = begin(&world).await;
        let place = |says: bool| says.then_some("agent.txt");
        let script = format!(
            "call {}\nwait go\nupdate {}\nput agent.txt x\nupdate {}",
            edit(&world, "pending", place(begins)),
            edit(&world, "in_progress", place(goes_on)),
            edit(&world, "completed", place(ends))
        );
        let id = say(&mut client, &session, &script).await;
        wait_for_update(&mut client, "toolCallId", "c1").await;
        // It is noted when this is answered.
        client.points(&session).await;
        work(&world);
        world.go("go");
        client.answer(id).await.expect("it ends");
        assert_eq!(world.files().len(), 3);
        client.rewind(&session, 0).await.expect("nothing is in the way");
        assert_eq!(world.files(), files(&PERSONS), "{begins} {goes_on} {ends}");
        client.hang_up().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_changes_while_an_edit_runs_that_never_says_where_has_to_be_decided() {
    let world = world("");
    let told = edit(&world, "in_progress", None);
    let error = rewound(&world, &[told], "put agent.txt x").await.expect_err("nobody knows whose they are");
    assert_eq!(error["data"]["conflicts"].as_array().expect("a list").len(), 3, "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_one_tool_declares_is_not_another_ones() {
    let world = world("");
    let (mut client, session) = begin(&world).await;
    let mut other = edit(&world, "in_progress", Some("notes.txt"));
    other["toolCallId"] = "c2".into();
    let script = format!(
        "call {}\nwait go\nput agent.txt x\nupdate {}\nwait on\ncall {other}\nput other.txt x\nupdate {}",
        edit(&world, "in_progress", Some("agent.txt")),
        edit(&world, "completed", Some("agent.txt")),
        json!({ "toolCallId": "c2", "status": "completed" })
    );
    let id = say(&mut client, &session, &script).await;
    wait_for_update(&mut client, "toolCallId", "c1").await;
    client.points(&session).await;
    work(&world);
    world.go("go");
    wait_for_update(&mut client, "status", "completed").await;
    // The one before has been noted to have ended when this is answered.
    client.points(&session).await;
    tick();
    world.go("on");
    client.answer(id).await.expect("it ends");
    client.rewind(&session, 0).await.expect("nothing is in the way");
    assert_eq!(world.files(), files(&[PERSONS[0], PERSONS[1], ("other.txt", "x")]), "it was not declared");
    client.hang_up().await;
}

/// A world with a file that no snapshot has.
fn secret() -> World {
    let world = world("");
    world.save(".gitignore", "*.secret\n");
    world.save("key.secret", "the person's");
    world
}

fn read(world: &World, file: &str) -> Option<String> {
    let text = std::fs::read_to_string(world.project().join(file)).ok()?;
    Some(text.trim_end().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ignored_file_that_an_edit_declares_goes_back() {
    let world = secret();
    let (mut client, session) = begin(&world).await;
    let mut begins = edit(&world, "in_progress", Some("key.secret"));
    let both = ["key.secret", "new.secret"].map(|name| json!({ "path": world.project().join(name) }));
    begins["locations"] = json!(both);
    let script = format!(
        "call {}\nwait go\nput key.secret agent\nput new.secret agent\nput newer.secret agent\nupdate {}",
        begins,
        edit(&world, "completed", Some("newer.secret"))
    );
    let id = say(&mut client, &session, &script).await;
    wait_for_update(&mut client, "toolCallId", "c1").await;
    // Its snapshot is taken when this is answered.
    client.points(&session).await;
    tick();
    world.go("go");
    client.answer(id).await.expect("it ends");
    assert_eq!(read(&world, "key.secret").as_deref(), Some("agent"));
    let rewound = client.rewind(&session, 0).await.expect("nothing is in the way");
    assert_eq!(rewound["files"]["restored"], json!(["key.secret"]), "{rewound}");
    assert_eq!(read(&world, "key.secret").as_deref(), Some("the person's"));
    assert_eq!((read(&world, "new.secret"), read(&world, "newer.secret")), (None, None));
    client.ask("_session/undo", json!({ "sessionId": session })).await.expect("it is undone");
    assert_eq!(read(&world, "key.secret").as_deref(), Some("agent"));
    client.ask("_session/undo", json!({ "sessionId": session })).await.expect("the turn is undone");
    assert_eq!(read(&world, "key.secret").as_deref(), Some("the person's"));
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ignored_file_is_captured_before_the_client_is_asked_to_have_it_written() {
    for method in ["session/request_permission", "fs/write_text_file"] {
        let world = secret();
        let (mut client, session) = begin(&world).await;
        let path = world.project().join("key.secret");
        let options = json!([{ "optionId": "yes", "name": "Yes", "kind": "allow_once" }]);
        let params = match method {
            "fs/write_text_file" => json!({ "sessionId": "$S", "path": path, "content": "agent\n" }),
            _ => {
                json!({ "sessionId": "$S", "toolCall": edit(&world, "pending", Some("key.secret")), "options": options })
            }
        };
        let request = json!({ "jsonrpc": "2.0", "id": 900, "method": method, "params": params });
        let id = say(&mut client, &session, &format!("raw {request}\nwait go\nsay done")).await;
        let asked = client.wait(|message| message["method"] == method).await;
        tick();
        let result = json!({ "outcome": { "outcome": "selected", "optionId": "yes" } });
        match method {
            "fs/write_text_file" => {
                world.save("key.secret", "agent");
                tick();
                client.reply(&asked["id"], json!({})).await;
            }
            _ => {
                client.reply(&asked["id"], result).await;
                client.points(&session).await;
                tick();
                world.save("key.secret", "agent");
            }
        }
        client.points(&session).await;
        world.go("go");
        client.answer(id).await.expect("it ends");
        client.rewind(&session, 0).await.unwrap_or_else(|error| panic!("{method}: {error}"));
        assert_eq!(read(&world, "key.secret").as_deref(), Some("the person's"), "{method}");
        client.hang_up().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ignored_file_that_is_declared_when_it_is_written_has_to_be_decided_about() {
    let world = secret();
    let (mut client, session) = begin(&world).await;
    let script = format!(
        "put a.txt x\nput key.secret agent\ncall {}\nupdate {}",
        edit(&world, "in_progress", Some("key.secret")),
        edit(&world, "completed", Some("a.txt"))
    );
    tick();
    let id = say(&mut client, &session, &script).await;
    client.answer(id).await.expect("it ends");
    for undo in [false, true] {
        let error = match undo {
            true => client.ask("_session/undo", json!({ "sessionId": session })).await,
            false => client.rewind(&session, 0).await,
        };
        let error = error.expect_err("nobody knows what was there");
        let told = error["data"]["conflicts"].as_array().expect("a list");
        let told = told.iter().find(|conflict| conflict["path"] == "key.secret").expect("it is told");
        assert_eq!(told["reason"], "unknown_then", "undo {undo}: {error}");
    }
    let point = client.points(&session).await[0]["messageId"].clone();
    let params = json!({ "sessionId": session, "beforeMessageId": point, "onConflict": "keep" });
    client.ask("_session/rewind", params).await.expect("that is decided");
    assert_eq!(read(&world, "key.secret").as_deref(), Some("agent"));
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_an_edit_names_by_a_link_is_its_own() {
    for named in ["link.txt", "linked/agent.txt", "../linked project/dir/agent.txt"] {
        let world = world("");
        std::fs::create_dir(world.project().join("dir")).expect("it can be made");
        world.save("dir/agent.txt", "original");
        let link =
            |to: &str, at: &str| std::os::unix::fs::symlink(to, world.project().join(at)).expect("it can be made");
        link("dir/agent.txt", "link.txt");
        link("dir", "linked");
        link(world.project().to_str().expect("plain"), "../linked project");
        let (mut client, session) = begin(&world).await;
        let script = format!(
            "call {}\nwait go\nput dir/agent.txt x\nupdate {}",
            edit(&world, "in_progress", Some(named)),
            edit(&world, "completed", None)
        );
        let id = say(&mut client, &session, &script).await;
        wait_for_update(&mut client, "toolCallId", "c1").await;
        client.points(&session).await;
        tick();
        world.go("go");
        client.answer(id).await.expect("it ends");
        client.rewind(&session, 0).await.expect("nothing is in the way");
        assert_eq!(read(&world, "dir/agent.txt").as_deref(), Some("original"), "{named}");
        client.hang_up().await;
    }
}

/// An agent does `doing` while the tool that `told` is about is open; the person works meanwhile, and all goes back.
async fn rewound(world: &World, told: &[Value], doing: &str) -> Result<Value, Value> {
    let (mut client, session) = begin(world).await;
    let calls: Vec<String> = told.iter().map(|told| format!("update {told}")).collect();
    let ended = json!({ "toolCallId": "c1", "status": "completed" });
    let id = say(&mut client, &session, &format!("{}\nwait go\n{doing}\nupdate {ended}", calls.join("\n"))).await;
    for _ in told {
        wait_for_update(&mut client, "toolCallId", "c1").await;
    }
    client.points(&session).await;
    work(world);
    world.go("go");
    client.answer(id).await.expect("it ends");
    let rewound = client.rewind(&session, 0).await;
    client.hang_up().await;
    rewound
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_that_follow_one_another_at_once_all_go_back() {
    let world = World::new("");
    let names: Vec<String> = (0..40).map(|number| format!("f{number:02}.txt")).collect();
    names.iter().for_each(|name| world.save(name, "original"));
    let mut client = world.client().await;
    let session = client.new_session().await;
    let script: Vec<String> = names.iter().map(|name| format!("write {name} agent")).collect();
    client.prompt(&session, &script.join("\n")).await;
    client.rewind(&session, 0).await.expect("nothing is in the way");
    let left: Vec<_> = world.files().into_iter().filter(|(_, text)| text != "original").collect();
    assert_eq!(left, []);
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_ignored_files_that_are_made_at_once_none_is_passed_over() {
    let world = World::new("");
    world.save(".gitignore", "*.secret");
    let mut client = world.client().await;
    let session = client.new_session().await;
    client.prompt(&session, CALLS).await;
    let script: Vec<String> = (0..40).map(|number| format!("write f{number:02}.secret agent")).collect();
    client.prompt(&session, &script.join("\n")).await;
    // Those of which it cannot be told who made them first have to be decided about.
    let point = client.points(&session).await[0]["messageId"].clone();
    let params = json!({ "sessionId": session, "beforeMessageId": point, "onConflict": "overwrite" });
    client.ask("_session/rewind", params).await.expect("that is decided");
    let left: Vec<_> = world.files().into_iter().filter(|(name, _)| name.ends_with(".secret")).collect();
    assert_eq!(left, []);
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_is_declared_goes_back_with_what_is_in_it() {
    for ignored in [false, true] {
        let world = world("");
        std::fs::create_dir(world.project().join("dir")).expect("it can be made");
        world.save("dir/file.txt", "original");
        if ignored {
            world.save(".gitignore", "dir");
        }
        let mut told = edit(&world, "in_progress", Some("dir"));
        told["kind"] = "delete".into();
        let rewound = rewound(&world, &[told], "remove dir").await;
        match ignored {
            false => {
                rewound.expect("nothing is in the way");
                assert_eq!(read(&world, "dir/file.txt").as_deref(), Some("original"));
            }
            true => {
                let error = rewound.expect_err("nobody knows what was in it");
                assert_eq!(error["data"]["conflicts"][0]["reason"], "unknown_then", "{error}");
            }
        }
        assert_eq!(read(&world, "mine.txt").as_deref(), Some("the person's file"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_that_does_not_say_all_of_where_has_others_asked_about() {
    let world_of = || {
        let world = world("");
        world.save("a.txt", "original");
        world
    };
    let told = |world: &World, kind: &str, path: &str| {
        let mut told = edit(world, "in_progress", Some(path));
        told["kind"] = kind.into();
        told
    };
    // Where a file went, and not from where; what is no place in the workspace; a directory; somewhere, and not what it does.
    for (kind, path) in [("move", "agent.txt"), ("edit", "/elsewhere/a.txt"), ("edit", "../project"), ("", "a.txt")] {
        let world = world_of();
        let mut told = told(&world, kind, path);
        if kind.is_empty() {
            told.as_object_mut().expect("it is one").remove("kind");
        }
        let error = rewound(&world, &[told], "put agent.txt x").await.expect_err("it may be anybody's");
        let conflicts = error["data"]["conflicts"].as_array().expect("a list");
        let paths: Vec<&str> = conflicts.iter().filter_map(|conflict| conflict["path"].as_str()).collect();
        assert!(paths.contains(&"mine.txt") && paths.contains(&"notes.txt"), "{kind} {path}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_told_when_the_user_was_asked_counts() {
    let world = world("");
    let (mut client, session) = begin(&world).await;
    let options = json!([{ "optionId": "yes", "name": "Yes", "kind": "allow_once" }]);
    let params =
        json!({ "sessionId": "$S", "toolCall": edit(&world, "pending", Some("agent.txt")), "options": options });
    let request = json!({ "jsonrpc": "2.0", "id": 900, "method": "session/request_permission", "params": params });
    let ended = json!({ "toolCallId": "c1", "status": "completed" });
    let script = format!("raw {request}\nwait go\nput agent.txt x\nupdate {ended}");
    let id = say(&mut client, &session, &script).await;
    let asked = client.wait(|message| message["method"] == "session/request_permission").await;
    client.reply(&asked["id"], json!({ "outcome": { "outcome": "selected", "optionId": "yes" } })).await;
    client.points(&session).await;
    work(&world);
    world.go("go");
    client.answer(id).await.expect("it ends");
    client.rewind(&session, 0).await.expect("nothing is in the way");
    assert_eq!(world.files(), files(&PERSONS));
    client.hang_up().await;
}
