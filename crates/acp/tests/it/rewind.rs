//! What the rewind extension adds to what every client can do (`scenarios`): what is told, in which order and by which names.

use serde_json::{Value, json};

use crate::client::{Client, both, cuts, update};

/// A client after two turns that wrote a file each: the ids of the prompts.
fn two_turns(client: &mut Client) -> (String, String) {
    let first = writes(client, "a.txt", "first");
    let second = writes(client, "b.txt", "second");
    (first, second)
}

fn writes(client: &mut Client, path: &str, text: &str) -> String {
    client.model.calls("write_file", json!({ "path": path, "content": text }));
    client.model.says(&format!("wrote {path}"));
    client.turn(&format!("write {path}"))
}

fn texts(client: &mut Client) -> Vec<String> {
    client.history().into_iter().map(|(_, _, text)| text).collect()
}

/// Where the first message is that `is_it`.
fn place(log: &[Value], is_it: impl FnMut(&Value) -> bool) -> usize {
    log.iter().position(is_it).unwrap_or_else(|| panic!("it did not come: {log:#?}"))
}

fn is_cut(message: &Value) -> bool {
    !cuts(std::slice::from_ref(message)).is_empty()
}

#[test]
fn points_are_listed_newest_first() {
    both(|client| {
        let (first, second) = two_turns(client);
        let params = client.with(json!({}));
        let answer = client.call("_session/rewind_points", params);
        let ids: Vec<_> = answer["points"].as_array().unwrap().iter().map(|one| one["messageId"].clone()).collect();
        assert_eq!(ids, [second.as_str(), first.as_str()]);
        assert_eq!(answer["points"][0]["files"], json!({ "added": 1, "modified": 0, "deleted": 0 }));
        assert_eq!(answer["points"][0]["index"], 2);
        let params = client.with(json!({ "query": "a.txt" }));
        assert_eq!(client.call("_session/rewind_points", params)["points"].as_array().unwrap().len(), 1);
    });
}

#[test]
fn a_cut_is_told_before_the_answer_and_only_if_it_was_made() {
    both(|client| {
        let (first, second) = two_turns(client);
        client.write("b.txt", "mine\n");
        let params = client.with(json!({ "beforeMessageId": second, "dryRun": true }));
        assert_eq!(client.call("_session/rewind", params)["files"]["conflicts"], json!(["b.txt"]));
        let params = client.with(json!({ "beforeMessageId": second }));
        let error = client.refused("_session/rewind", params);
        assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(-32602), &json!("conflicts")));
        assert_eq!(error["data"]["conflicts"][0]["choices"][0], "keep");
        assert_eq!(cuts(&client.log), [0; 0], "nothing was cut");
        let params = client.with(json!({ "beforeMessageId": second, "onConflict": "keep" }));
        let answer = client.call("_session/rewind", params);
        assert_eq!(cuts(&client.log), [answer["lastMessageId"].clone()]);
        let params = client.with(json!({ "beforeMessageId": first, "scope": "conversation" }));
        client.call("_session/rewind", params);
        assert_eq!(cuts(&client.log)[1..], [Value::Null], "nothing is left");
    });
}

#[test]
fn what_comes_back_is_told_with_the_ids_that_it_had() {
    both(|client| {
        let (_, second) = two_turns(client);
        let params = client.with(json!({ "beforeMessageId": second }));
        let operation = client.call("_session/rewind", params)["operation"].clone();
        let before = client.log.len();
        let params = client.with(json!({ "operation": operation }));
        let answer = client.call("_session/undo", params);
        let back = crate::client::messages(&client.log[before..]);
        let ends = [back.first().unwrap(), back.last().unwrap()].map(|(_, id, _)| id.as_str());
        assert_eq!(ends, [second.as_str(), answer["lastMessageId"].as_str().unwrap()]);
    });
}

#[test]
fn a_redo_that_names_an_operation_repeats_that_one_or_nothing() {
    both(|client| {
        let (_, second) = two_turns(client);
        let params = client.with(json!({ "beforeMessageId": second }));
        let rewind = client.call("_session/rewind", params)["operation"].clone();
        let params = client.with(json!({}));
        let undo = client.call("_session/undo", params.clone())["operation"].clone();
        let turn = client.call("_session/undo", params)["operation"].clone();
        for wrong in [&rewind, &undo] {
            let error = client.refused("_session/redo", client.with(json!({ "operation": wrong })));
            assert_eq!(error["data"]["reason"], "nothing", "{error}");
        }
        let error = client.refused("_session/redo", client.with(json!({ "operation": "nonsense" })));
        assert_eq!(error["data"]["reason"], "not_found", "{error}");
        assert_eq!(client.read("b.txt"), None);
        let params = client.with(json!({ "operation": turn }));
        client.call("_session/redo", params);
        assert_eq!(client.read("b.txt").as_deref(), Some("second"));
    });
}

#[test]
fn a_turn_is_cancelled_before_history_is_cut() {
    both(|client| {
        let first = writes(client, "a.txt", "first");
        let gate = client.model.says_slowly(["On my way", " there"]);
        let running = client.say("go on");
        client.until(|message| update(message) == Some("agent_message_chunk"));
        gate.wait_until_reached();
        let before = client.log.len();
        let params = client.with(json!({ "beforeMessageId": first }));
        client.call("_session/rewind", params);
        let told = &client.log[before..];
        let is_end = |message: &Value| match client.version {
            1 => message["id"] == running && message["result"]["stopReason"] == "cancelled",
            _ => message["params"]["update"]["stopReason"] == "cancelled",
        };
        assert!(place(told, is_end) < place(told, is_cut), "{told:#?}");
    });
}

#[test]
fn an_edit_is_told_as_a_cut_and_then_as_a_turn() {
    both(|client| {
        let (_, second) = two_turns(client);
        client.model.says("instead");
        let before = client.log.len();
        let content = json!([{ "type": "text", "text": "write c.txt" }]);
        let params = client.with(json!({ "messageId": second, "content": content }));
        let id = client.send("_session/edit_prompt", params);
        assert_eq!(client.end_of(id).0, "end_turn");
        let told = &client.log[before..];
        let answer = place(told, |one| update(one) == Some("agent_message_chunk"));
        assert!(place(told, is_cut) < answer);
        if client.version == 2 {
            let said = place(told, |one| update(one) == Some("user_message"));
            assert!(place(told, is_cut) < said && said < answer);
        }
    });
}

#[test]
fn the_last_message_is_a_head_to_name_too() {
    both(|client| {
        let (first, second) = two_turns(client);
        let history = client.history();
        for (head, refused) in [(&second, true), (&history[3].1, false)] {
            let params = client.with(json!({ "beforeMessageId": first, "expectedHead": head, "dryRun": true }));
            let id = client.send("_session/rewind", params);
            let reason = client.answer(id).err().map(|error| error["data"]["reason"].clone());
            assert_eq!(reason, refused.then(|| json!("stale_head")), "{head}");
        }
    });
}

#[test]
fn the_proposed_name_for_a_rewind_leaves_the_files() {
    both(|client| {
        let (_, second) = two_turns(client);
        let params = client.with(json!({ "beforeMessageId": second }));
        let answer = client.call("session/rewind", params);
        assert_eq!(answer.get("files"), None);
        assert_eq!(client.read("b.txt").as_deref(), Some("second"));
        assert_eq!(texts(client), ["write a.txt", "wrote a.txt"]);
    });
}

#[test]
fn an_edit_that_says_nothing_changes_nothing() {
    both(|client| {
        let (_, second) = two_turns(client);
        let content = json!([{ "type": "text", "text": " " }]);
        let params = client.with(json!({ "messageId": second, "content": content }));
        assert_eq!(client.refused("_session/edit_prompt", params)["code"], -32602);
        assert_eq!(client.read("b.txt").as_deref(), Some("second"));
        assert_eq!(texts(client).len(), 4);
    });
}

#[test]
fn the_proposed_name_for_an_edit_leaves_the_files() {
    both(|client| {
        let (_, second) = two_turns(client);
        client.model.says("instead");
        let content = json!([{ "type": "text", "text": "write c.txt" }]);
        let params = client.with(json!({ "messageId": second, "content": content }));
        let id = client.send("session/edit_prompt", params);
        client.end_of(id);
        assert_eq!(client.read("b.txt").as_deref(), Some("second"));
    });
}

#[test]
fn only_some_paths_go_back() {
    both(|client| {
        let first = writes(client, "a.txt", "first");
        writes(client, "b.txt", "second");
        let path = client.root().join("a.txt");
        let params = client.with(json!({ "beforeMessageId": first, "scope": "code", "paths": [path] }));
        let answer = client.call("_session/rewind", params);
        assert_eq!(answer["files"]["deleted"], json!(["a.txt"]));
        assert_eq!(client.read("b.txt").as_deref(), Some("second"));
        assert_eq!(texts(client).len(), 4, "the conversation stays");
    });
}

#[test]
fn wrong_targets_are_named() {
    both(|client| {
        let (first, second) = two_turns(client);
        let reply = client.history()[1].1.clone();
        for (params, code, reason) in [
            (json!({}), -32602, "no_target"),
            (json!({ "toMessageId": first, "beforeMessageId": second }), -32602, "ambiguous_target"),
            (json!({ "beforeMessageId": reply }), -32602, "not_a_user_message"),
            (json!({ "beforeMessageId": "nonsense" }), -32002, "unknown_message_id"),
            (json!({ "toMessageId": "00000000000000000000" }), -32002, "unknown_message_id"),
            (json!({ "beforeMessageId": first, "scope": "everything" }), -32602, "invalid_params"),
        ] {
            let params = client.with(params);
            let error = client.refused("_session/rewind", params.clone());
            assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(code), &json!(reason)), "{params}");
        }
        let error = client.refused("_session/rewind", json!({ "sessionId": "x", "beforeMessageId": first }));
        assert_eq!((&error["code"], &error["data"]["sessionId"]), (&json!(-32002), &json!("x")));
    });
}

#[test]
fn who_does_not_know_the_extension_is_not_told_of_cuts() {
    for version in [1, 2] {
        let mut client = Client::start(version, false);
        let (_, second) = two_turns(&mut client);
        let params = client.with(json!({ "beforeMessageId": second }));
        client.call("_session/rewind", params);
        assert_eq!(cuts(&client.log), [0; 0]);
        client.hang_up();
    }
}
