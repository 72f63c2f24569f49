//! Prompts: streaming, ids, stop reasons, cancelling, being held.

use serde_json::json;

use crate::client::{Client, both, cuts, messages, update, updates};

#[test]
fn an_answer_streams_under_the_id_that_it_keeps() {
    both(|client| {
        client.model.thinks("hm").says("Hello ").says("there");
        let prompt = client.turn("hi");
        let live = messages(&client.log);
        let (role, id, text) = live.last().unwrap().clone();
        assert_eq!((role.as_str(), text.as_str()), ("agent", "Hello there"));
        let thoughts = updates(&client.log, "agent_thought_chunk");
        assert_eq!(thoughts[0]["messageId"], format!("{id}-thought"));
        client.reconnect();
        let expected = [("user", prompt.as_str(), "hi"), ("agent", id.as_str(), "Hello there")];
        let replayed = client.history();
        let replayed: Vec<_> = replayed.iter().map(|(a, b, c)| (a.as_str(), b.as_str(), c.as_str())).collect();
        assert_eq!(replayed, expected);
    });
}

#[test]
fn the_states_of_a_turn_are_told_in_version_2() {
    let mut client = Client::start(2, true);
    client.model.says("one");
    let prompt = client.turn("hi");
    let states: Vec<_> = updates(&client.log, "state_update").into_iter().map(|one| one["state"].clone()).collect();
    assert_eq!(states, ["running", "idle"]);
    let said = updates(&client.log, "user_message");
    assert_eq!(said[0]["messageId"], prompt);
    assert!(!updates(&client.log, "usage_update").is_empty());
    client.hang_up();
}

#[test]
fn a_turn_that_is_cancelled_before_any_word_leaves_nothing() {
    both(|client| {
        let gate = client.model.says("never").pauses();
        let id = client.say("tell");
        gate.wait_until_reached();
        let params = client.with(json!({}));
        client.notify("session/cancel", &params);
        assert_eq!(client.end_of(id).0, "cancelled");
        assert_eq!(cuts(&client.log), [json!(null)], "a client that shows the prompt is told that it is gone");
        assert_eq!(client.history(), []);
    });
}

#[test]
fn a_failed_turn_says_why() {
    for version in [1, 2] {
        let mut client = Client::start(version, true);
        client
            .model
            .fails_with(400, r#"{"type":"error","error":{"type":"invalid_request_error","message":"no such thing"}}"#);
        let id = client.say("hi");
        let text = match version {
            1 => client.answer(id).unwrap_err()["message"].clone(),
            _ => {
                let idle = client.until(|message| message["params"]["update"]["state"] == "idle").pop().unwrap();
                assert_eq!(idle["params"]["update"]["stopReason"], "error");
                idle["params"]["update"]["error"]["message"].clone()
            }
        };
        assert!(text.as_str().unwrap().contains("no such thing"), "{text}");
        client.hang_up();
    }
}

#[test]
fn a_prompt_during_a_turn_is_said_after_it() {
    both(|client| {
        let gate = client.model.says_slowly(["First", " done"]);
        client.model.says("Second done");
        let first = client.say("one");
        client.until(|message| update(message) == Some("agent_message_chunk"));
        let second = client.say("two");
        gate.open();
        if client.version == 1 {
            assert_eq!(client.end_of(first).0, "end_turn");
        }
        assert_eq!(client.end_of(second).0, "end_turn");
        let said: Vec<_> = client.history().into_iter().map(|(_, _, text)| text).collect();
        assert_eq!(said, ["one", "First done", "two", "Second done"]);
    });
}

#[test]
fn a_held_prompt_is_cancelled_with_the_turn_before_it() {
    both(|client| {
        let gate = client.model.says_slowly(["First", " done"]);
        client.say("one");
        client.until(|message| update(message) == Some("agent_message_chunk"));
        gate.wait_until_reached();
        let second = client.say("two");
        let params = client.with(json!({}));
        client.notify("session/cancel", &params);
        let answer = client.answer(second);
        match client.version {
            1 => assert_eq!(answer.unwrap()["stopReason"], "cancelled"),
            _ => assert_eq!(answer.unwrap_err()["code"], -32800),
        }
    });
}

#[test]
fn images_and_embedded_files_reach_the_model() {
    both(|client| {
        const PIXEL: &str =
            "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
        client.model.says("seen");
        client.write("linked.txt", "what the link leads to");
        let uri = format!("file://{}", client.root().join("linked.txt").display());
        let params = client.with(json!({ "prompt": [
            { "type": "text", "text": "look" },
            { "type": "image", "mimeType": "image/png", "data": PIXEL },
            { "type": "resource", "resource": { "uri": "file:///x/a.txt", "text": "embedded words" } },
            { "type": "resource_link", "uri": uri, "name": "linked.txt" },
        ] }));
        let id = client.send("session/prompt", params);
        client.end_of(id);
        let request = client.model.requests().pop().unwrap();
        for part in [PIXEL, "embedded words", "what the link leads to"] {
            assert!(request.text.contains(part), "{part}");
        }
        client.history();
    });
}
