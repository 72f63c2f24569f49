//! Rewinding an agent that knows nothing of it, in each of the ways that agents can be cut.

use serde_json::{Value, json};

use super::world::{Client, World};

const FIRST: &str = "write a.txt one\nshell echo shell > b.txt";
const SECOND: &str = "write a.txt two\nshell rm b.txt; echo new > c.txt";

fn files(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

/// Two prompts, back to before the second, a third one; then undone.
async fn story(world: &World, mut client: Client, strategy: &str, sees_transcript: bool) {
    let session = client.new_session().await;
    client.prompt(&session, FIRST).await;
    client.prompt(&session, SECOND).await;
    assert_eq!(world.files(), files(&[("a.txt", "two"), ("c.txt", "new")]));
    let said_before: Vec<_> = client.said();
    client.told.clear();
    let rewound = client.rewind(&session, 0).await.expect("it goes back");
    assert_eq!(rewound["_meta"]["retake"]["strategy"], strategy, "{rewound}");
    assert_eq!(rewound["content"][0]["text"], SECOND);
    assert_eq!(world.files(), files(&[("a.txt", "one"), ("b.txt", "shell")]));
    let truncated = client.told.iter().find(|told| told["method"] == "_session/history_truncated");
    assert_eq!(truncated.expect("it is told")["params"]["lastMessageId"], rewound["lastMessageId"]);

    client.prompt(&session, "say three").await;
    let saw = world.model_saw();
    check_saw(&saw, sees_transcript);
    let third = client.points(&session).await;
    assert_eq!(third.len(), 2);
    client.hang_up().await;

    // After a restart the history is the cut one, with the ids that the client knows.
    let mut client = world.client().await;
    client.load(&session).await.expect("it is loaded");
    let said = client.said();
    let texts: Vec<&str> = said.iter().map(|(_, _, text)| text.as_str()).collect();
    assert_eq!(texts, [FIRST, "did 1", "say three", "three"]);
    let ids: Vec<&Value> = third.iter().map(|point| &point["messageId"]).collect();
    assert_eq!([&json!(said[2].1), &json!(said[0].1)], ids[..]);
    assert!(said_before.iter().any(|(_, id, text)| text == "did 1" && *id == said[1].1), "{said_before:?} {said:?}");
    client.prompt(&session, "say four").await;
    let saw = world.model_saw();
    assert!(saw.iter().any(|line| line.contains("three")), "{saw:#?}");
    assert!(!saw.iter().any(|line| line.contains("a.txt two")), "{saw:#?}");

    // The fourth and the third turn, then the rewind itself.
    for _ in 0..3 {
        client.ask("_session/undo", json!({ "sessionId": session })).await.expect("it is undone");
    }
    assert_eq!(world.files(), files(&[("a.txt", "two"), ("c.txt", "new")]));
    client.prompt(&session, "say five").await;
    let saw = world.model_saw().join("\n");
    assert!(saw.contains("a.txt one") && saw.contains("a.txt two"), "{saw}");
    assert!(!saw.contains("three") && !saw.contains("four"), "{saw}");
    client.hang_up().await;
}

/// The model saw turn one and the new prompt, and nothing of turn two.
fn check_saw(saw: &[String], sees_transcript: bool) {
    let all = saw.join("\n");
    assert!(all.contains("a.txt one") && all.ends_with("say three"), "{all}");
    assert!(!all.contains("a.txt two") && !all.contains("c.txt"), "{all}");
    match sees_transcript {
        true => assert!(saw.len() == 1 && all.contains("<conversation-so-far>"), "{all}"),
        false => assert!(saw.len() == 3 && !all.contains("<conversation-so-far>"), "{all}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_offers_nothing_is_told_a_transcript() {
    let world = World::new("");
    story(&world, world.client().await, "transcript", true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_forks_at_a_message_is_forked_there() {
    let world = World::new("air");
    story(&world, world.client().await, "fork_at_message", false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_forks_its_head_keeps_a_fork_of_each_turn() {
    let world = World::new("fork");
    story(&world, world.client().await, "kept_session", false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_rewinds_to_a_message_is_asked_to() {
    let world = World::new("rewind_to,echo");
    story(&world, world.client().await, "rewind_to", false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_tells_ids_only_when_it_is_loaded_is_loaded_for_them() {
    let world = World::new("rewind_to");
    story(&world, world.client().await, "rewind_to", false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_rewinds_by_number_is_told_the_number() {
    let world = World::new("qwen");
    story(&world, world.client().await, "turn_rewind", false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_waits_for_the_editor_is_rewound_too() {
    for answers in [true, false] {
        let mut world = World::new("");
        world.patience.stop = std::time::Duration::from_secs(if answers { 10 } else { 1 });
        let mut client = world.client().await;
        let session = client.new_session().await;
        client.prompt(&session, "write a.txt one").await;
        let text = json!([{ "type": "text", "text": "write a.txt two\nread /somewhere" }]);
        let prompt = client.send("session/prompt", json!({ "sessionId": session, "prompt": text })).await;
        let asked = client.wait(|message| message["method"] == "fs/read_text_file").await;
        let point = client.points(&session).await[0]["messageId"].clone();
        let wish = json!({ "sessionId": session, "beforeMessageId": point });
        let rewind = client.send("_session/rewind", wish).await;
        world.wait_for_file("inner/in", "session/cancel").await;
        if answers {
            client.reply(&asked["id"], json!({ "content": "text" })).await;
        }
        assert_eq!(client.answer(prompt).await.expect("it ends")["stopReason"], "cancelled");
        client.answer(rewind).await.expect("it goes back");
        assert_eq!(world.files(), [("a.txt".to_owned(), "one".to_owned())]);
        if !answers {
            // It comes too late, and is nobody's.
            client.reply(&asked["id"], json!({ "content": "text" })).await;
        }
        let said = client.said().into_iter().map(|(_, _, text)| text).collect::<Vec<_>>();
        let expected = if answers { "text" } else { "error -32800" };
        assert!(said.iter().any(|text| text == expected), "{said:?}");
        client.prompt(&session, "say three").await;
        client.hang_up().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn images_go_along_with_a_transcript_to_an_agent_that_takes_them() {
    for takes_images in [true, false] {
        let world = World::new(if takes_images { "images" } else { "" });
        let mut client = world.client().await;
        let session = client.new_session().await;
        let image = json!({ "type": "image", "mimeType": "image/png", "data": "aGVsbG8=", "uri": "file:///x.png" });
        let blocks = json!([{ "type": "text", "text": "look at this" }, image, { "type": "text", "text": "say seen" }]);
        client.ask("session/prompt", json!({ "sessionId": session, "prompt": blocks })).await.expect("it is said");
        client.prompt(&session, "say two").await;
        let rewound = client.rewind(&session, 0).await.expect("it goes back");
        assert_eq!(rewound["_meta"]["retake"]["strategy"], "transcript", "{rewound}");
        client.prompt(&session, "say three").await;
        let sent = std::fs::read_to_string(world.path("inner").join("in")).expect("it was asked");
        let mut prompts = sent.lines().filter(|line| line.contains("\"session/prompt\""));
        let last: Value = serde_json::from_str(prompts.next_back().expect("there are some")).expect("it is JSON");
        let blocks = last["params"]["prompt"].as_array().expect("blocks");
        let transcript = blocks[0]["text"].as_str().expect("it comes first");
        assert!(transcript.contains("look at this"), "{transcript}");
        assert_eq!(blocks.last().expect("there are some")["text"], "say three");
        match takes_images {
            true => {
                assert!(transcript.contains("[image 1, which follows this transcript]"), "{transcript}");
                assert_eq!((blocks.len(), &blocks[1]), (3, &image), "{blocks:?}");
            }
            false => {
                assert!(transcript.contains("[an image, which cannot be shown here]"), "{transcript}");
                assert_eq!(blocks.len(), 2, "{blocks:?}");
            }
        }
        client.hang_up().await;
    }
}
