//! Agents that do what they should not: the proxy survives each.

use retake_acp::proxy::ProxyEnd;
use serde_json::json;

use super::world::World;

/// Two turns, back to before the second, another one, a restart: it holds whatever the agent does.
async fn holds(habits: &str) {
    let world = World::new(habits);
    let mut client = world.client().await;
    let session = client.new_session().await;
    client.prompt(&session, "write a.txt one").await;
    client.prompt(&session, "write a.txt two").await;
    client.rewind(&session, 0).await.expect("it goes back");
    assert_eq!(world.files(), [("a.txt".to_owned(), "one".to_owned())], "{habits}");
    client.prompt(&session, "say three").await;
    let saw = world.model_saw().join("\n");
    assert!(saw.contains("a.txt one") && !saw.contains("a.txt two"), "{habits}: {saw}");
    client.hang_up().await;
    let mut client = world.client().await;
    client.load(&session).await.expect("it is loaded");
    let (first, mut ids) = (client.said(), std::collections::HashSet::new());
    // What is late belongs to the message before it.
    let messages = first.chunk_by(|one, other| (&one.0, &one.1) == (&other.0, &other.1)).map(|message| &message[0].1);
    assert!(messages.into_iter().all(|id| !id.is_empty() && ids.insert(id.clone())), "{habits}: {first:?}");
    let texts: Vec<&str> = first.iter().map(|(_, _, text)| text.as_str()).collect();
    assert!(texts.iter().any(|text| text.contains("a.txt one")) && texts.contains(&"say three"), "{habits}: {texts:?}");
    assert!(!texts.iter().any(|text| text.contains("two")), "{habits}: {texts:?}");
    client.prompt(&session, "write b.txt four").await;
    let saw = world.model_saw().join("\n");
    assert!(saw.contains("three") && !saw.contains("a.txt two"), "{habits}: {saw}");
    // What is late has come by then.
    client.ask("_echo", json!({})).await.expect("it answers");
    client.load(&session).await.expect("it is loaded again");
    let second = client.said();
    assert_eq!(first[..], second[..first.len()], "{habits}: ids stay the same");
    client.rewind(&session, 0).await.expect("it goes back again");
    assert_eq!(world.files(), [("a.txt".to_owned(), "one".to_owned())], "{habits}");
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_without_ids() {
    holds("no_ids").await;
    holds("no_ids,fork").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_all_have_the_same_id() {
    holds("repeated_ids").await;
    holds("repeated_ids,air").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_that_change_when_a_session_is_loaded() {
    holds("new_ids_on_load").await;
    holds("new_ids_on_load,rewind_to,echo").await;
    holds("new_ids_on_load,air").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn updates_after_the_answer() {
    holds("late_updates").await;
    holds("late_updates,qwen").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_that_cannot_be_loaded() {
    holds("no_load").await;
    holds("no_load,fork").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_on_stdout_and_slowness() {
    holds("garbage,slow").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_that_the_agent_refuses_is_made_another_way() {
    holds("cut_fails,qwen,rewind_to,echo").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_session_that_is_called_as_an_older_one_does_not_get_at_it() {
    let world = World::new("same_ids");
    let mut client = world.client().await;
    let old = client.new_session().await;
    client.prompt(&old, "say old").await;
    client.hang_up().await;
    std::fs::remove_file(world.path("inner").join(format!("{old}.session"))).expect("it was there");
    let mut client = world.client().await;
    let new = client.new_session().await;
    assert_ne!(new, old);
    client.prompt(&new, "say new").await;
    client.load(&old).await.expect("it is loaded");
    assert_eq!(client.said().iter().map(|(_, _, text)| text.as_str()).collect::<Vec<_>>(), ["say old", "old"]);
    // Each goes on in its own, also after another restart.
    for _ in 0..2 {
        for (session, own, others) in [(&new, "say new", "say old"), (&old, "say old", "say new")] {
            client.told.clear();
            client.prompt(session, "say more").await;
            let mut told = client.told.iter().map(|told| &told["params"]);
            assert!(told.any(|told| told["sessionId"] == **session && told["update"]["content"]["text"] == "more"));
            let saw = world.model_saw().join("\n");
            assert!(saw.contains(own) && !saw.contains(others), "{saw}");
        }
        client.hang_up().await;
        client = world.client().await;
        client.load(&old).await.expect("it is loaded");
        client.load(&new).await.expect("it is loaded");
    }
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_crashes_in_a_turn_loses_nothing() {
    let world = World::new("");
    let mut client = world.client().await;
    let session = client.new_session().await;
    client.prompt(&session, "write a.txt one").await;
    let crash = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "write a.txt two\nsay so far\nedit b.txt\ncrash" }] });
    let error = client.ask("session/prompt", crash).await.expect_err("it is told");
    assert_eq!(error["data"]["reason"], "agent_exited", "{error}");
    assert_eq!(client.end().await, ProxyEnd::ByAgent(Some(7)));
    let mut client = world.client().await;
    client.load(&session).await.expect("it is loaded");
    let said = client.said();
    assert!(said.iter().any(|(_, _, text)| text == "so far"), "{said:?}");
    client.rewind(&session, 0).await.expect("it goes back");
    assert_eq!(world.files(), [("a.txt".to_owned(), "one".to_owned())]);
    client.prompt(&session, "say three").await;
    let saw = world.model_saw().join("\n");
    assert!(saw.contains("a.txt one") && !saw.contains("so far"), "{saw}");
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_that_fails_restores_nothing() {
    let world = World::new("one_session");
    let mut client = world.client().await;
    let session = client.new_session().await;
    client.prompt(&session, "write a.txt one").await;
    client.prompt(&session, "write a.txt two").await;
    let error = client.rewind(&session, 0).await.expect_err("it cannot be cut");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("nothing was changed")), "{error}");
    assert_eq!(world.files(), [("a.txt".to_owned(), "two".to_owned())]);
    assert_eq!(client.points(&session).await.len(), 2);
    client.prompt(&session, "say three").await;
    assert!(world.model_saw().join("\n").contains("a.txt two"));
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_that_is_late_is_shown() {
    let mut world = World::new("");
    let mut client = world.client().await;
    let session = client.new_session().await;
    client.prompt(&session, "write a.txt one").await;
    client.hang_up().await;
    // From now on, so that only the second snapshot is late, however busy the machine is.
    world.patience.snapshot = std::time::Duration::from_millis(50);
    let mut client = world.client().await;
    client.load(&session).await.expect("it is loaded");
    // Whoever owns the store, as a rewind elsewhere does, keeps all others from taking one.
    let lock = std::fs::File::open(world.workspace().store_dir().join("lock")).expect("it is there");
    lock.lock().expect("it can be had");
    client.prompt(&session, "write a.txt two").await;
    drop(lock);
    let points = client.points(&session).await;
    let text = points[0]["reason"].as_str().unwrap_or_default();
    assert!(text.contains("not complete") && points[1].get("reason").is_none(), "{points:?}");
    let typed = client.prompt(&session, "/rewind").await;
    let listed: String = client.said().into_iter().map(|(_, _, text)| text).collect();
    assert!(listed.contains("not complete"), "{typed} {listed}");

    let mut back = json!({ "sessionId": session, "beforeMessageId": points[0]["messageId"], "dryRun": true });
    let plan = client.ask("_session/rewind", back.clone()).await.expect("it is worked out");
    assert_eq!(plan["gaps"][0]["kind"], "late_snapshot", "{plan}");
    back["beforeMessageId"] = points[1]["messageId"].clone();
    let plan = client.ask("_session/rewind", back).await.expect("it is worked out");
    assert_eq!(plan.get("gaps"), None, "{plan}");
    let undo = client.ask("_session/undo", json!({ "sessionId": session, "dryRun": true })).await;
    assert_eq!(undo.expect("it is worked out")["gaps"][0]["kind"], "late_snapshot");
    client.hang_up().await;
}
