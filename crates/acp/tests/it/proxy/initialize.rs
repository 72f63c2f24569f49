//! A client and an agent that speak different versions of the protocol.

use serde_json::json;

use super::world::World;

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_version_2_is_told_that_the_agent_speaks_only_version_1() {
    let world = World::new("v1");
    let mut client = world.start();
    let greeting = json!({ "protocolVersion": 2, "info": { "name": "test", "version": "0" }, "capabilities": {} });
    let error = client.ask("initialize", greeting).await.expect_err("they have no version in common");
    assert_eq!((&error["code"], &error["data"]["requested"]), (&json!(-32022), &json!(2)), "{error}");
    assert_eq!(error["data"]["supported"], json!([1]), "{error}");
    let text = error["message"].as_str().unwrap_or_default();
    assert!(text.contains("only version 1") && text.contains("version 2"), "{error}");
    // A client that speaks version 1 too goes on with that.
    let greeted = client.initialize(1, true).await;
    assert_eq!(greeted["protocolVersion"], 1, "{greeted}");
    let session = client.new_session().await;
    client.prompt(&session, "say one").await;
    assert_eq!(client.points(&session).await.len(), 1);
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_greets_in_both_versions_is_answered_in_the_agents() {
    let world = World::new("v1");
    let mut client = world.start();
    let greeting = json!({
        "protocolVersion": 2,
        "info": { "name": "test", "version": "0" },
        "capabilities": {},
        "clientCapabilities": { "_meta": { "retake": {} } },
    });
    let greeted = client.ask("initialize", greeting).await.expect("version 1 is spoken");
    assert_eq!(greeted["protocolVersion"], 1, "{greeted}");
    let session = client.new_session().await;
    client.prompt(&session, "say one").await;
    client.rewind(&session, 0).await.expect("it goes back");
    let is_cut = |told: &serde_json::Value| told["method"] == "_session/history_truncated";
    assert!(client.told.iter().any(is_cut), "the capability counts in the version that is spoken");
    client.hang_up().await;
}
