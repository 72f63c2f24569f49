//! What is believed of an agent that says what is not so, and what is done about one that fails only this time.

use serde_json::json;

use super::world::{Client, World};

/// A session with these prompts.
async fn session_of(client: &mut Client, prompts: &[&str]) -> String {
    let session = client.new_session().await;
    for text in prompts {
        client.prompt(&session, text).await;
    }
    session
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
