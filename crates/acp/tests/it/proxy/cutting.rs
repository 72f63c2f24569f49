//! What goes wrong while the inner agent's conversation is cut, or between a prompt and its answer.

use serde_json::json;

use super::world::World;

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
