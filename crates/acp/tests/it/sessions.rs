//! Several sessions: list, load, fork, close, delete.

use serde_json::json;

use crate::client::{Client, both, messages, update};

#[test]
fn sessions_are_listed_with_their_titles() {
    both(|client| {
        client.model.says("one");
        client.turn("the first thing");
        let root = client.root();
        let listed = client.call("session/list", json!({ "cwd": root }));
        assert_eq!(listed["sessions"][0]["sessionId"], client.session.as_str());
        assert_eq!(listed["sessions"][0]["title"], "the first thing");
        assert_eq!(listed["sessions"][0]["cwd"], root.to_str().unwrap());
    });
}

#[test]
fn two_sessions_run_at_the_same_time() {
    both(|client| {
        let first = client.session.clone();
        client.begin();
        let second = client.session.clone();
        assert_ne!(first, second);
        let gate = client.model.says_slowly(["slow", " answer"]);
        let slow = client.say("one");
        gate.wait_until_reached();
        client.session = first;
        client.model.says("quick");
        client.turn("two");
        gate.open();
        client.session = second;
        assert_eq!(client.end_of(slow).0, "end_turn");
    });
}

#[test]
fn a_session_that_is_closed_can_be_loaded_and_one_that_is_deleted_cannot() {
    both(|client| {
        client.model.says("one");
        client.turn("first");
        let params = client.with(json!({}));
        client.call("session/close", params.clone());
        let error =
            client.refused("session/prompt", client.with(json!({ "prompt": [{ "type": "text", "text": "x" }] })));
        assert_eq!((&error["code"], &error["data"]["sessionId"]), (&json!(-32002), &json!(client.session)));
        assert_eq!(client.history().len(), 2);
        client.call("session/delete", params);
        let root = client.root();
        let error = client.refused("session/resume", client.with(json!({ "cwd": root, "mcpServers": [] })));
        assert_eq!(error["code"], -32002);
    });
}

#[test]
fn resuming_without_a_replay_tells_only_how_it_stands() {
    both(|client| {
        client.model.says("one");
        client.turn("first");
        client.reconnect();
        let root = client.root();
        let params = client.with(json!({ "cwd": root }));
        client.call("session/resume", params);
        assert_eq!(messages(&client.log), []);
        client.model.says("two");
        client.turn("second");
        assert!(client.model.requests().pop().unwrap().text.contains("first"));
    });
}

#[test]
fn a_cursor_that_nobody_gave_is_refused() {
    let mut client = Client::start(2, true);
    let root = client.root();
    let params = client.with(json!({ "cwd": root, "replayFrom": { "type": "_elsewhere" } }));
    assert_eq!(client.refused("session/resume", params)["code"], -32602);
    let error = client.refused("session/load", client.with(json!({ "cwd": root, "mcpServers": [] })));
    assert_eq!(error["code"], -32601, "version 2 has no load");
    client.hang_up();
}

#[test]
fn the_beginning_of_an_id_is_none() {
    both(|client| {
        client.model.says("hello");
        client.turn("hi");
        client.reconnect();
        let (method, root) = (if client.version == 1 { "session/load" } else { "session/resume" }, client.root());
        let params = json!({ "sessionId": client.session[..10], "cwd": root, "mcpServers": [] });
        let error = client.refused(method, params);
        assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(-32002), &json!("unknown_session_id")));
        client.history();
    });
}

#[test]
fn who_loads_a_session_twice_at_once_is_told_everything_once() {
    let mut client = Client::start(1, true);
    client.model.says("one");
    client.turn("first");
    client.reconnect();
    let params = client.with(json!({ "cwd": client.root(), "mcpServers": [] }));
    let begun = client.log.len();
    let loads = [(); 3].map(|()| client.send("session/load", params.clone()));
    // In whatever order they are answered.
    let is_answered = |log: &[serde_json::Value], load: u64| log.iter().any(|message| message["id"] == load);
    while !loads.iter().all(|load| is_answered(&client.log[begun..], *load)) {
        client.next();
    }
    client.until(|message| update(message) == Some("available_commands_update"));
    let before = client.log.len();
    client.model.says("two");
    client.turn("second");
    let said: Vec<String> = messages(&client.log[before..]).into_iter().map(|(_, _, text)| text).collect();
    assert_eq!(said, ["two"]);
}
