//! What goes wrong while the inner agent's conversation is cut, or between a prompt and its answer.

use serde_json::json;

use super::world::{Client, World};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_saved_while_the_agent_is_cut_stays_and_nobody_else_waits() {
    let world = World::new("gated_new");
    let mut client = world.client().await;
    let session = client.new_session().await;
    world.go("new");
    let other = client.new_session().await;
    std::fs::remove_file(world.path("inner").join("new")).expect("it was there");
    client.prompt(&session, "write a.txt one").await;
    client.prompt(&session, "write a.txt two").await;
    let point = client.points(&session).await[0]["messageId"].clone();
    let rewind = json!({ "sessionId": session, "beforeMessageId": point });
    let id = client.send("_session/rewind", rewind).await;
    world.wait_for_sent("session/new", 3).await;
    assert!(client.points(&other).await.is_empty(), "others are answered meanwhile");
    world.save("a.txt", "the person's");
    world.go("new");
    let error = client.answer(id).await.expect_err("the files are not those that were looked at");
    assert_eq!(error["data"]["reason"], "stale_plan", "{error}");
    assert_eq!(world.files(), [("a.txt".to_owned(), "the person's".to_owned())]);
    assert_eq!(client.points(&session).await.len(), 2, "the conversation is whole");
    client.prompt(&session, "say three").await;
    let saw = world.model_saw().join("\n");
    assert!(saw.contains("a.txt one") && saw.contains("a.txt two"), "{saw}");
    client.hang_up().await;
}

async fn fails(client: &mut Client, session: &str) {
    let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "fail" }] });
    client.ask("session/prompt", params).await.expect_err("it is refused");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_that_fails_after_a_cut_takes_nothing_of_the_history_with_it() {
    let world = World::new("");
    let mut client = world.client().await;
    let session = client.new_session().await;
    client.prompt(&session, "say one").await;
    client.prompt(&session, "say two").await;
    let rewound = client.rewind(&session, 0).await.expect("it goes back");
    assert_eq!(rewound["_meta"]["retake"]["strategy"], "transcript", "{rewound}");
    fails(&mut client, &session).await;
    client.prompt(&session, "say three").await;
    let saw = world.model_saw().join("\n");
    assert!(saw.contains("say one") && !saw.contains("say two"), "{saw}");
    client.hang_up().await;

    // Nor if it is the last thing before a restart.
    let mut client = world.client().await;
    client.load(&session).await.expect("it is loaded");
    client.rewind(&session, 0).await.expect("it goes back");
    fails(&mut client, &session).await;
    client.hang_up().await;
    let mut client = world.client().await;
    client.load(&session).await.expect("it is loaded");
    client.prompt(&session, "say four").await;
    let saw = world.model_saw().join("\n");
    assert!(saw.contains("say one") && !saw.contains("say three"), "{saw}");
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_that_failed_is_not_counted_on() {
    let world = World::new("qwen");
    let mut client = world.client().await;
    let session = client.new_session().await;
    client.prompt(&session, "say one").await;
    fails(&mut client, &session).await;
    client.prompt(&session, "say two").await;
    client.prompt(&session, "say three").await;
    client.rewind(&session, 0).await.expect("it goes back");
    client.prompt(&session, "say four").await;
    let saw = world.model_saw().join("\n");
    assert!(saw.contains("say two") && !saw.contains("say three"), "{saw}");
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_busy_once_is_not_taken_for_one_that_forks_at_messages() {
    let world = World::new("fork,busy_fork");
    let mut client = world.client().await;
    let session = client.new_session().await;
    for text in ["say one", "say two", "say three"] {
        client.prompt(&session, text).await;
    }
    client.rewind(&session, 1).await.expect("it goes back");
    client.prompt(&session, "say four").await;
    let saw = world.model_saw().join("\n");
    assert!(saw.contains("say one") && !saw.contains("say two") && !saw.contains("say three"), "{saw}");
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_after_a_cut_inside_a_turn_is_told_what_is_due() {
    let world = World::new("fork,no_ids");
    let mut client = world.client().await;
    let session = client.new_session().await;
    client.prompt(&session, "say one").await;
    client.prompt(&session, "say kept\nwrite x.txt 1\nsay gone").await;
    let kept = client.said().into_iter().find(|(_, _, text)| text == "kept").expect("it was said").1;
    let rewind = json!({ "sessionId": session, "toMessageId": kept });
    client.ask("_session/rewind", rewind).await.expect("it goes back into the turn");
    let params = json!({ "sessionId": session, "cwd": world.project(), "mcpServers": [] });
    let forked = client.ask("session/fork", params).await.expect("it forks");
    let forked = forked["sessionId"].as_str().expect("it has an id").to_owned();
    client.prompt(&forked, "say three").await;
    let saw = world.model_saw().join("\n");
    assert!(saw.contains("say one") && saw.contains("Assistant: kept") && !saw.contains("Assistant: gone"), "{saw}");
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_agent_does_after_the_proxy_was_killed_is_not_taken_for_what_it_was() {
    let work = "write b.txt x\nwait go";
    for (habits, text) in [("", work), ("", "wait go"), ("qwen", work), ("fork", work)] {
        let world = World::new(habits);
        let mut client = world.client().await;
        let session = client.new_session().await;
        client.prompt(&session, "say one").await;
        // The copy is what is left when it is killed in the middle of the turn.
        let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] });
        let id = client.send("session/prompt", params).await;
        world.wait_for_sent("session/prompt", 2).await;
        if text.contains("write") {
            client.wait(|message| message["params"]["update"]["status"] == "completed").await;
        }
        // Everything before this is written when it is answered.
        client.points(&session).await;
        let killed = world.copy_data();
        world.go("go");
        client.answer(id).await.expect("the agent finishes its turn");
        client.hang_up().await;
        world.put_data(&killed);
        // The fork that was kept before that turn is gone: only the session itself is left.
        for file in std::fs::read_dir(world.path("inner")).expect("it is there").flatten() {
            let name = file.file_name().into_string().expect("it is UTF-8");
            if name.ends_with(".session") && !name.starts_with(&session) {
                std::fs::remove_file(file.path()).expect("it can be removed");
            }
        }

        let mut client = world.client().await;
        client.load(&session).await.expect("it is loaded");
        if text.contains("write") {
            client.rewind(&session, 0).await.expect("it goes back");
        }
        client.prompt(&session, "say three").await;
        let saw = world.model_saw().join("\n");
        assert!(saw.contains("say one") && !saw.contains("wait go"), "{habits} {text}: {saw}");
        client.hang_up().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_is_stopped_when_the_editor_goes_and_a_stopped_one_does_not_cost_the_session() {
    let world = World::new("");
    let mut client = world.client().await;
    let session = client.new_session().await;
    client.prompt(&session, "say one").await;
    let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "hang" }] });
    client.send("session/prompt", params).await;
    world.wait_for_sent("session/prompt", 2).await;
    client.hang_up().await;
    world.wait_for_sent("session/cancel", 1).await;
    let mut client = world.client().await;
    client.load(&session).await.expect("it is loaded");
    client.prompt(&session, "say two").await;
    let saw = world.model_saw().join("\n");
    assert!(saw.contains("say one") && !saw.contains("conversation-so-far"), "{saw}");
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_that_is_said_while_a_turn_runs_is_a_turn_of_its_own() {
    for version in [1, 2] {
        let world = World::new("");
        let mut client = world.start();
        client.initialize(version, true).await;
        let session = client.new_session().await;
        client.prompt(&session, "say zero").await;
        let say = |text: &str| json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] });
        let first = client.send("session/prompt", say("wait one\nwrite a.txt A")).await;
        let second = client.send("session/prompt", say("wait two\nwrite b.txt B")).await;
        world.wait_for_sent("session/prompt", 3).await;
        world.go("one");
        client.answer(first).await.expect("it is answered");
        if version == 2 {
            client.answer(second).await.expect("it is taken");
        }
        // The snapshot of the second is taken when this is answered.
        assert_eq!(client.points(&session).await.len(), 3, "version {version}");
        world.go("two");
        match version {
            1 => drop(client.answer(second).await.expect("it is answered")),
            _ => drop(client.wait(|message| message["params"]["update"]["state"] == "idle").await),
        }
        let points = client.points(&session).await;
        let texts: Vec<&serde_json::Value> = points.iter().map(|point| &point["text"]).collect();
        assert_eq!(texts, ["wait two", "wait one", "say zero"], "version {version}");
        client.rewind(&session, 0).await.expect("it goes back");
        assert_eq!(world.files(), [("a.txt".to_owned(), "A".to_owned())], "version {version}");
        client.prompt(&session, "say three").await;
        let saw = world.model_saw().join("\n");
        assert!(saw.contains("a.txt A") && !saw.contains("b.txt B"), "version {version}: {saw}");
        client.hang_up().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn undo_takes_back_a_turn_after_which_the_agent_said_more() {
    let world = World::new("late_updates");
    let mut client = world.client().await;
    let session = client.new_session().await;
    client.prompt(&session, "write a.txt one").await;
    client.prompt(&session, "write a.txt two").await;
    // What is late has come by then.
    client.ask("_echo", json!({})).await.expect("it answers");
    let undone = client.ask("_session/undo", json!({ "sessionId": session })).await.expect("it is undone");
    assert_eq!(undone["content"][0]["text"], "write a.txt two", "{undone}");
    assert_eq!(world.files(), [("a.txt".to_owned(), "one".to_owned())]);
    assert_eq!(client.points(&session).await.len(), 1);
    let is_truncated = |told: &serde_json::Value| told["method"] == "_session/history_truncated";
    assert!(client.told.iter().any(is_truncated), "the client is told");
    client.prompt(&session, "say three").await;
    assert!(!world.model_saw().join("\n").contains("a.txt two"));
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_the_agents_that_is_not_what_it_was_is_not_relied_on() {
    for (version, habits) in [(1, "qwen"), (2, "qwen"), (1, "qwen,no_ids")] {
        let world = World::new(habits);
        let mut client = world.start();
        client.initialize(version, true).await;
        let session = client.new_session().await;
        let file = world.path("inner").join(format!("{session}.session"));
        let read = || std::fs::read(&file).expect("the agent has written it");
        client.prompt(&session, "say one").await;
        let first = read();
        client.prompt(&session, "say two").await;
        let both = read();
        client.hang_up().await;

        // It has lost a turn.
        std::fs::write(&file, &first).expect("it can be written");
        let mut client = world.start();
        client.initialize(version, true).await;
        client.load(&session).await.expect("it is loaded");
        client.prompt(&session, "say three").await;
        let saw = world.model_saw().join("\n");
        assert!(["say one", "say two", "say three"].iter().all(|prompt| saw.contains(prompt)), "{habits}: {saw}");
        client.hang_up().await;

        // It has one that was cut off.
        let world = World::new(habits);
        let mut client = world.start();
        client.initialize(version, true).await;
        let session = client.new_session().await;
        let file = world.path("inner").join(format!("{session}.session"));
        client.prompt(&session, "say one").await;
        client.prompt(&session, "say two").await;
        let rewound = client.rewind(&session, 0).await.expect("it goes back");
        assert_eq!(rewound["_meta"]["retake"]["strategy"], "turn_rewind", "{rewound}");
        client.hang_up().await;
        std::fs::write(&file, &both).expect("it can be written");
        let mut client = world.start();
        client.initialize(version, true).await;
        client.load(&session).await.expect("it is loaded");
        client.prompt(&session, "say three").await;
        let saw = world.model_saw().join("\n");
        assert!(saw.contains("say one") && !saw.contains("say two"), "{habits}: {saw}");
        client.hang_up().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_of_a_session_that_was_left_in_a_turn_is_not_taken_for_what_it_was_before() {
    for version in [1, 2] {
        let world = World::new("fork");
        let mut client = world.start();
        client.initialize(version, true).await;
        let session = client.new_session().await;
        client.prompt(&session, "say one").await;
        let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "hang" }] });
        client.send("session/prompt", params).await;
        world.wait_for_sent("session/prompt", 2).await;
        let killed = world.copy_data();
        client.hang_up().await;
        world.put_data(&killed);
        // The fork that was kept before that turn is gone: only the session itself is left.
        for file in std::fs::read_dir(world.path("inner")).expect("it is there").flatten() {
            let name = file.file_name().into_string().expect("it is UTF-8");
            if name.ends_with(".session") && !name.starts_with(&session) {
                std::fs::remove_file(file.path()).expect("it can be removed");
            }
        }

        let mut client = world.start();
        client.initialize(version, true).await;
        client.load(&session).await.expect("it is loaded");
        let is_shown = client.said().iter().any(|(_, _, text)| text == "hang");
        client.prompt(&session, "say three").await;
        let saw = world.model_saw();
        assert_eq!(saw.iter().any(|said| said.contains("hang")), is_shown, "version {version}: {saw:?}");
        assert!(saw.iter().any(|said| said.contains("say one")), "version {version}: {saw:?}");
        client.hang_up().await;
    }
}
