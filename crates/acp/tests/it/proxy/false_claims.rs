//! What is believed of an agent that says what is not so, and what is done about one that fails only this time.

use std::time::{Duration, Instant};

use retake_acp::proxy::Patience;
use serde_json::{Value, json};

use super::world::{Client, World};

/// A session with these prompts.
async fn session_of(client: &mut Client, prompts: &[&str]) -> String {
    let session = client.new_session().await;
    for text in prompts {
        client.prompt(&session, text).await;
    }
    session
}

/// How often the inner agent was asked for this.
fn asked(world: &World, method: &str) -> usize {
    let lines = std::fs::read_to_string(world.path("inner/in")).expect("it was asked something");
    lines.matches(&format!("\"method\":\"{method}\"")).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_says_yes_to_everything_is_not_believed() {
    for habits in ["lax", "lax,echo", "rewind_to,echo,lying_cut", "qwen,lying_cut"] {
        let world = World::new(habits);
        let mut client = world.client().await;
        let session = session_of(&mut client, &["say one", "say two", "say three"]).await;
        for (number, gone) in [(0, "say three"), (0, "say two")] {
            let rewound = client.rewind(&session, number).await.expect("it goes back");
            assert_eq!(rewound["_meta"]["retake"]["strategy"], "transcript", "{habits}: {rewound}");
            client.prompt(&session, "say four").await;
            let saw = world.model_saw().join("\n");
            assert!(saw.contains("say one") && !saw.contains(gone), "{habits}: {saw}");
            client.rewind(&session, 0).await.expect("it goes back");
        }
        client.hang_up().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_that_fails_once_is_not_taken_for_one_at_a_message() {
    for habits in ["fork,unsaved_fork", "fork,echoing_fork"] {
        let world = World::new(habits);
        let mut client = world.client().await;
        let session = session_of(&mut client, &["say one", "say two", "say three"]).await;
        let rewound = client.rewind(&session, 1).await.expect("it goes back");
        assert_ne!(rewound["_meta"]["retake"]["strategy"], "fork_at_message", "{habits}: {rewound}");
        client.prompt(&session, "say four").await;
        let saw = world.model_saw().join("\n");
        assert!(saw.contains("say one") && !saw.contains("say two") && !saw.contains("say three"), "{habits}: {saw}");
        client.hang_up().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_that_fails_once_is_told_and_costs_nothing() {
    let world = World::new("busy_load");
    let mut client = world.client().await;
    let session = session_of(&mut client, &["say one"]).await;
    client.hang_up().await;
    let mut client = world.client().await;
    let error = client.load(&session).await.expect_err("the agent refuses");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("database is locked")), "{error}");
    client.load(&session).await.expect("the agent is asked again");
    client.prompt(&session, "say two").await;
    assert_eq!(world.model_saw(), ["user: say one", "agent: one", "user: say two"]);
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_the_agent_has_no_more_goes_on_from_the_transcript() {
    let world = World::new("");
    let mut client = world.client().await;
    let session = session_of(&mut client, &["say one"]).await;
    client.hang_up().await;
    std::fs::remove_file(world.path("inner").join(format!("{session}.session"))).expect("it was there");
    let mut client = world.client().await;
    client.load(&session).await.expect("it is loaded");
    client.prompt(&session, "say two").await;
    let saw = world.model_saw().join("\n");
    assert!(saw.contains("<conversation-so-far>") && saw.contains("say one"), "{saw}");
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_that_fails_once_changes_nothing_and_is_made_the_next_time() {
    for habits in ["qwen,busy_cut", "rewind_to,echo,busy_cut"] {
        let world = World::new(habits);
        let mut client = world.client().await;
        let session = session_of(&mut client, &["write a.txt one", "write a.txt two"]).await;
        let error = client.rewind(&session, 0).await.expect_err("the agent refuses");
        let text = error["message"].as_str().unwrap_or_default();
        assert!(text.contains("nothing was changed") && text.contains("try again"), "{habits}: {error}");
        assert_eq!(world.files(), [("a.txt".to_owned(), "two".to_owned())], "{habits}");
        client.rewind(&session, 0).await.expect("it goes back");
        assert_eq!(world.files(), [("a.txt".to_owned(), "one".to_owned())], "{habits}");
        client.prompt(&session, "say three").await;
        assert_eq!(world.model_saw(), ["user: write a.txt one", "agent: did 1", "user: say three"], "{habits}");
        client.hang_up().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_of_which_nobody_knows_how_it_went_is_not_relied_on() {
    let mut world = World::new("qwen,mute_cut");
    world.patience.answer = Duration::from_secs(3);
    let mut client = world.client().await;
    let session = session_of(&mut client, &["write a.txt one", "write a.txt two"]).await;
    let error = client.rewind(&session, 0).await.expect_err("the agent does not answer");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("nothing was changed")), "{error}");
    assert_eq!(world.files(), [("a.txt".to_owned(), "two".to_owned())]);
    client.prompt(&session, "say three").await;
    let saw = world.model_saw().join("\n");
    assert!(saw.contains("<conversation-so-far>") && saw.contains("a.txt one") && saw.contains("a.txt two"), "{saw}");
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_ignores_what_it_does_not_know_is_asked_once_and_not_for_long() {
    assert!(Patience::default().probe <= Duration::from_secs(3));
    // The other one answers when nobody waits any more.
    for (habits, patience) in [("deaf", 200), ("slow", 20)] {
        let mut world = World::new(habits);
        world.patience.probe = Duration::from_millis(patience);
        let mut client = world.client().await;
        let session = session_of(&mut client, &["say one", "say two"]).await;
        let began = Instant::now();
        client.rewind(&session, 0).await.expect("it goes back");
        client.prompt(&session, "say three").await;
        client.prompt(&session, "say four").await;
        client.rewind(&session, 0).await.expect("it goes back");
        client.prompt(&session, "say five").await;
        let saw = world.model_saw().join("\n");
        assert!(saw.contains("say one") && saw.contains("say three"), "{habits}: {saw}");
        assert!(!saw.contains("say two") && !saw.contains("say four"), "{habits}: {saw}");
        assert!(began.elapsed() < Duration::from_secs(20), "{habits}: {:?}", began.elapsed());
        for method in ["_rewind/to", "qwen/control/session/rewind"] {
            assert_eq!(asked(&world, method), 1, "{habits}: {method}");
        }
        let is_nobodys = |told: &&Value| told.get("method").is_none() && !told["id"].is_u64();
        assert_eq!(client.told.iter().find(is_nobodys), None, "{habits}");
        client.hang_up().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_agent_asks_before_it_has_made_a_session_is_asked_in_ours() {
    let world = World::new("asks_in_new");
    let mut client = world.client().await;
    let session = session_of(&mut client, &["say one", "say two"]).await;
    let point = client.points(&session).await[0]["messageId"].clone();
    let rewind = client.send("_session/rewind", json!({ "sessionId": session, "beforeMessageId": point })).await;
    let question = client.wait(|message| message["method"] == "fs/read_text_file").await;
    assert_eq!(question["params"]["sessionId"], session.as_str(), "{question}");
    client.reply(&question["id"], json!({ "content": "be kind" })).await;
    client.answer(rewind).await.expect("it goes back");
    client.prompt(&session, "say three").await;
    assert!(!world.model_saw().join("\n").contains("say two"));
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_agent_asks_about_a_point_is_refused_at_once() {
    let world = World::new("fork,asks_in_fork");
    let mut client = world.client().await;
    let session = client.new_session().await;
    let began = Instant::now();
    for text in ["say one", "say two"] {
        client.prompt(&session, text).await;
    }
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert!(!client.told.iter().any(|told: &Value| told["method"] == "fs/read_text_file"));
    let rewound = client.rewind(&session, 0).await.expect("it goes back");
    assert_eq!(rewound["_meta"]["retake"]["strategy"], "kept_session", "{rewound}");
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_before_the_prompt_that_brought_the_transcript_does_not_lose_it() {
    for habits in ["qwen", "rewind_to,echo"] {
        let world = World::new(habits);
        let mut client = world.client().await;
        let session = session_of(&mut client, &["say one", "say two"]).await;
        client.rewind(&session, 0).await.expect("it goes back");
        client.ask("_session/undo", json!({ "sessionId": session })).await.expect("it is undone");
        client.prompt(&session, "say three").await;
        assert!(world.model_saw().join("\n").contains("<conversation-so-far>"), "{habits}");
        client.rewind(&session, 0).await.expect("it goes back");
        client.prompt(&session, "say four").await;
        let saw = world.model_saw().join("\n");
        assert!(saw.contains("say one") && saw.contains("say two") && !saw.contains("say three"), "{habits}: {saw}");
        client.hang_up().await;
    }
}
