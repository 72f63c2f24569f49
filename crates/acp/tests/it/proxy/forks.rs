//! Forks and labels that are asked for in the chat.

use serde_json::{Value, json};

use super::world::{Client, World};

/// What the chat says to something that is typed.
async fn type_in(client: &mut Client, session: &str, typed: &str) -> String {
    client.told.clear();
    client.prompt(session, typed).await;
    client.said().into_iter().map(|(_, _, text)| text).filter(|text| text != typed).collect()
}

/// The name of a fork, as the chat tells it.
fn named(said: &str) -> String {
    let name = said.split("session is `").nth(1).and_then(|rest| rest.split('`').next());
    name.unwrap_or_else(|| panic!("no fork: {said}")).to_owned()
}

async fn listed(client: &mut Client) -> Vec<Value> {
    let list = client.ask("session/list", json!({})).await.expect("it lists");
    list["sessions"].as_array().expect("it is a list").clone()
}

/// What a session that is loaded shows.
async fn shown(client: &mut Client, session: &str) -> Vec<String> {
    client.load(session).await.expect("it is loaded");
    client.said().into_iter().map(|(_, _, text)| text).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_from_the_chat_goes_on_from_its_place_and_leaves_the_other_alone() {
    // Agents that fork at a message, that fork their head, that load and cannot fork, and that can nothing.
    for (habits, version) in [("air", 1), ("air", 2), ("fork", 1), ("fork", 2), ("", 1), ("qwen", 1), ("no_load", 1)] {
        let world = World::new(habits);
        let mut client = world.start();
        client.initialize(version, true).await;
        let session = client.new_session().await;
        for text in ["say one", "say two", "say three"] {
            client.prompt(&session, text).await;
        }
        type_in(&mut client, &session, "/rewind").await;
        let early = named(&type_in(&mut client, &session, "/fork 2").await);
        let late = named(&type_in(&mut client, &session, "/fork").await);
        // What is said in the one is not in the other, also if it is said before that is loaded.
        client.prompt(&session, "say four").await;
        assert_eq!(shown(&mut client, &early).await, ["say one", "one"], "{habits}");
        client.prompt(&early, "say other").await;
        assert!(world.model_saw().concat().contains("one"), "{habits}: {:?}", world.model_saw());
        for word in ["two", "three", "four"] {
            assert!(!world.model_saw().concat().contains(word), "{habits}: {:?}", world.model_saw());
        }
        client.hang_up().await;

        let mut client = world.start();
        client.initialize(version, true).await;
        let all = ["say one", "one", "say two", "two", "say three", "three"];
        assert_eq!(shown(&mut client, &late).await, all, "{habits}");
        client.prompt(&late, "say five").await;
        let saw = world.model_saw().concat();
        assert!(saw.contains("three") && !saw.contains("four") && !saw.contains("other"), "{habits}: {saw}");
        assert_eq!(shown(&mut client, &early).await, ["say one", "one", "say other", "other"], "{habits}");
        let parent = ["say one", "one", "say two", "two", "say three", "three", "say four", "four"];
        assert_eq!(shown(&mut client, &session).await, parent, "{habits}");
        client.prompt(&session, "say six").await;
        let saw = world.model_saw().concat();
        assert!(saw.contains("four") && !saw.contains("other") && !saw.contains("five"), "{habits}: {saw}");
        client.hang_up().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_that_the_agent_does_not_know_is_listed_beside_its_own() {
    for habits in ["", "fork"] {
        let world = World::new(habits);
        let mut client = world.client().await;
        let session = client.new_session().await;
        client.prompt(&session, "say one").await;
        let fork = named(&type_in(&mut client, &session, "/fork").await);
        let ids = |list: Vec<Value>| -> Vec<String> {
            list.iter().map(|one| one["sessionId"].as_str().expect("it has an id").to_owned()).collect()
        };
        assert!(ids(listed(&mut client).await).contains(&fork), "{habits}");
        client.hang_up().await;
        let mut client = world.client().await;
        let params = json!({ "cwd": world.project() });
        let list = client.ask("session/list", params).await.expect("it lists")["sessions"].clone();
        let list = list.as_array().expect("it is a list").clone();
        let one = list.iter().find(|one| one["sessionId"] == fork.as_str()).expect("it is listed after a restart");
        if habits.is_empty() {
            assert_eq!((&one["cwd"], &one["title"]), (&json!(world.project()), &"say one".into()));
        }
        // Once it is loaded, the agent has it, and it is listed once.
        client.load(&fork).await.expect("it is loaded");
        client.prompt(&fork, "say two").await;
        let found = ids(listed(&mut client).await);
        assert_eq!(found.iter().filter(|id| **id == fork).count(), 1, "{habits}: {found:?}");
        client.hang_up().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_has_the_files_of_its_past_to_go_back_to() {
    let world = World::new("");
    let mut client = world.client().await;
    let session = client.new_session().await;
    client.prompt(&session, "write a.txt one").await;
    client.prompt(&session, "write a.txt two").await;
    let fork = named(&type_in(&mut client, &session, "/fork").await);
    client.load(&fork).await.expect("it is loaded");
    assert_eq!(client.points(&fork).await.len(), 2);
    client.rewind(&fork, 0).await.expect("it goes back");
    assert_eq!(world.files(), [("a.txt".to_owned(), "one".to_owned())]);
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_can_be_forked_before_anything_was_said() {
    let world = World::new("fork");
    let mut client = world.client().await;
    let session = client.new_session().await;
    let said = type_in(&mut client, &session, "/fork").await;
    assert!(said.contains("nothing was said yet"), "{said}");
    client.prompt(&session, "say one").await;
    type_in(&mut client, &session, "/rewind").await;
    let fork = named(&type_in(&mut client, &session, "/fork 1").await);
    assert_eq!(shown(&mut client, &fork).await, Vec::<String>::new());
    client.prompt(&fork, "say two").await;
    assert_eq!(world.model_saw(), ["user: say two"]);
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn points_are_labelled_in_the_chat_and_by_the_extension() {
    for version in [1, 2] {
        let world = World::new("");
        let mut client = world.start();
        client.initialize(version, true).await;
        let session = client.new_session().await;
        client.prompt(&session, "write a.txt one").await;
        client.prompt(&session, "say two").await;
        type_in(&mut client, &session, "/rewind").await;
        let said = type_in(&mut client, &session, "/label 2 it still works").await;
        assert!(said.contains("\"it still works\""), "{said}");
        let points = client.points(&session).await;
        assert_eq!(points[0]["label"], "it still works");
        let label =
            |message: &Value, label: Value| json!({ "sessionId": session, "messageId": message, "label": label });
        let first = points[1]["messageId"].clone();
        client.ask("_session/label", label(&first, "the start".into())).await.expect("it is labelled");
        client.ask("_session/label", label(&points[0]["messageId"], Value::Null)).await.expect("it is taken away");
        let labels: Vec<Value> = client.points(&session).await.iter().map(|point| point["label"].clone()).collect();
        assert_eq!(labels, [Value::Null, "the start".into()]);
        assert!(type_in(&mut client, &session, "/rewind").await.contains("[the start]"));
        for (wrong, reason) in [
            (label(&first, 7.into()), "invalid_params"),
            (json!({ "sessionId": session, "messageId": first }), "invalid_params"),
            (label(&"nowhere".into(), "x".into()), "unknown_message_id"),
            (label(&points[0]["messageId"], "the start".into()), "conflicts"),
        ] {
            let error = client.ask("_session/label", wrong.clone()).await.expect_err("it is refused");
            assert_eq!(error["data"]["reason"], reason, "{wrong}: {error}");
        }
        let said = type_in(&mut client, &session, "/label 1").await;
        assert!(said.contains("no label any more"), "{said}");
        let said = type_in(&mut client, &session, "/label").await;
        assert!(said.contains("number or id"), "{said}");
        client.hang_up().await;
    }
}
