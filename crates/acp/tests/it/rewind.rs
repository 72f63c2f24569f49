//! The rewind extension, in both versions.

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

/// What the model was sent last.
fn last_request(client: &Client) -> String {
    client.model.requests().pop().unwrap().text_without_marks()
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
fn an_exclusive_rewind_takes_the_message_its_answer_and_its_files() {
    both(|client| {
        let (_, second) = two_turns(client);
        let before = client.log.len();
        let params = client.with(json!({ "beforeMessageId": second }));
        let answer = client.call("_session/rewind", params);
        assert_eq!(answer["content"][0]["text"], "write b.txt");
        assert_eq!(answer["files"]["deleted"], json!(["b.txt"]));
        assert!(answer["operation"].is_string());
        assert_eq!(cuts(&client.log[before..]), [answer["lastMessageId"].clone()], "told before the answer");
        assert_eq!((client.read("a.txt").as_deref(), client.read("b.txt")), (Some("first"), None));
        assert_eq!(texts(client), ["write a.txt", "wrote a.txt"]);
        assert_eq!(client.history().pop().unwrap().1, answer["lastMessageId"].as_str().unwrap());

        client.model.says("third");
        client.turn("and now");
        let sent = last_request(client);
        assert!(sent.contains("write a.txt") && sent.contains("and now") && !sent.contains("b.txt"), "{sent}");
        client.reconnect();
        assert_eq!(texts(client), ["write a.txt", "wrote a.txt", "and now", "third"]);
    });
}

#[test]
fn an_inclusive_rewind_keeps_the_message() {
    both(|client| {
        let (_, second) = two_turns(client);
        let params = client.with(json!({ "toMessageId": second }));
        let answer = client.call("_session/rewind", params);
        assert_eq!(answer["lastMessageId"], second.as_str());
        assert_eq!(answer.get("content"), None);
        assert_eq!(client.read("b.txt"), None, "files are as they were when it was said");
        assert_eq!(texts(client), ["write a.txt", "wrote a.txt", "write b.txt"]);
        client.model.says("third");
        client.turn("on second thoughts");
        let sent = last_request(client);
        assert!(sent.contains("write b.txt") && !sent.contains("wrote b.txt"), "{sent}");
        client.reconnect();
        assert_eq!(texts(client), ["write a.txt", "wrote a.txt", "write b.txt", "on second thoughts", "third"]);
    });
}

#[test]
fn an_inclusive_rewind_to_an_answer_keeps_it() {
    both(|client| {
        client.model.says("one");
        client.turn("first");
        let answer_id = client.history().pop().unwrap().1;
        client.model.says("two");
        client.turn("second");
        let params = client.with(json!({ "toMessageId": answer_id }));
        let answer = client.call("session/rewind", params);
        assert_eq!(answer["lastMessageId"], answer_id.as_str());
        assert_eq!(answer.get("files"), None, "the proposal's name means the conversation only");
        assert_eq!(texts(client), ["first", "one"]);
    });
}

#[test]
fn a_rewind_to_before_the_first_message_leaves_nothing() {
    both(|client| {
        let (first, _) = two_turns(client);
        let params = client.with(json!({ "beforeMessageId": first, "scope": "both" }));
        let answer = client.call("_session/rewind", params);
        assert_eq!(answer["lastMessageId"], Value::Null);
        assert_eq!(cuts(&client.log), [Value::Null]);
        assert_eq!((client.read("a.txt"), client.read("b.txt")), (None, None));
        assert_eq!(client.history(), []);
    });
}

#[test]
fn a_rewind_in_the_middle_of_a_turn_stops_it_first() {
    both(|client| {
        let first = writes(client, "a.txt", "first");
        let gate = client.model.says_slowly(["On my way", " there"]);
        let running = client.say("go on");
        client.until(|message| update(message) == Some("agent_message_chunk"));
        gate.wait_until_reached();
        let params = client.with(json!({ "beforeMessageId": first, "interrupt": false }));
        let error = client.refused("_session/rewind", params);
        assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(-32602), &json!("running")));
        let before = client.log.len();
        let params = client.with(json!({ "beforeMessageId": first }));
        let answer = client.call("_session/rewind", params);
        assert_eq!(answer["lastMessageId"], Value::Null);
        let told = &client.log[before..];
        assert_eq!(cuts(told), [Value::Null]);
        let is_end = |message: &Value| match client.version {
            1 => message["id"] == running && message["result"]["stopReason"] == "cancelled",
            _ => message["params"]["update"]["stopReason"] == "cancelled",
        };
        let (end, cut) =
            (told.iter().position(is_end), told.iter().position(|one| !cuts(std::slice::from_ref(one)).is_empty()));
        assert!(end.unwrap() < cut.unwrap(), "the turn is cancelled, then history is cut");
        assert_eq!(client.history(), []);
    });
}

#[test]
fn an_edited_prompt_takes_the_place_of_the_old_one() {
    both(|client| {
        let (_, second) = two_turns(client);
        client.model.says("instead");
        let before = client.log.len();
        let content = json!([{ "type": "text", "text": "write c.txt" }]);
        let params = client.with(json!({ "messageId": second, "content": content }));
        let id = client.send("_session/edit_prompt", params);
        let (stop, message) = client.end_of(id);
        assert_eq!(stop, "end_turn");
        assert_ne!(message, second);
        let told = &client.log[before..];
        let cut = told.iter().position(|one| !cuts(std::slice::from_ref(one)).is_empty()).unwrap();
        let answer = told.iter().position(|one| update(one) == Some("agent_message_chunk")).unwrap();
        assert!(cut < answer);
        if client.version == 2 {
            let said = told.iter().position(|one| update(one) == Some("user_message")).unwrap();
            assert!(cut < said && said < answer);
        }
        assert_eq!(client.read("b.txt"), None);
        assert_eq!(texts(client), ["write a.txt", "wrote a.txt", "write c.txt", "instead"]);
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
fn a_head_that_has_moved_is_refused() {
    both(|client| {
        let first = writes(client, "a.txt", "first");
        let params = client.with(json!({}));
        let head = client.call("_session/rewind_points", params)["head"].clone();
        let params = client.with(json!({ "beforeMessageId": first, "expectedHead": head, "dryRun": true }));
        client.call("_session/rewind", params);
        writes(client, "b.txt", "second");
        let params = client.with(json!({ "beforeMessageId": first, "expectedHead": head }));
        let error = client.refused("_session/rewind", params);
        assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(-32602), &json!("stale_head")));
        assert_eq!(client.read("a.txt").as_deref(), Some("first"));
        let last = client.history().pop().unwrap().1;
        let params = client.with(json!({ "beforeMessageId": first, "expectedHead": last }));
        client.call("_session/rewind", params);
    });
}

#[test]
fn conflicts_are_refused_until_they_are_decided() {
    both(|client| {
        client.write("a.txt", "mine\n");
        client.model.calls("edit_file", json!({ "path": "a.txt", "old": "mine", "new": "its" }));
        client.model.says("edited");
        let prompt = client.turn("edit");
        client.write("a.txt", "its, and mine again\n");
        let params = client.with(json!({ "beforeMessageId": prompt }));
        let error = client.refused("_session/rewind", params);
        assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(-32602), &json!("conflicts")));
        assert_eq!(error["data"]["conflicts"][0]["path"], "a.txt");
        assert_eq!(cuts(&client.log), [0; 0], "nothing was changed");
        let params = client.with(json!({ "beforeMessageId": prompt, "onConflict": "keep" }));
        let answer = client.call("_session/rewind", params);
        assert_eq!(answer["files"]["kept"], json!(["a.txt"]));
        assert_eq!(client.read("a.txt").unwrap(), "its, and mine again\n");
    });
}

#[test]
fn a_dry_run_changes_nothing_and_tells_everything() {
    both(|client| {
        let (_, second) = two_turns(client);
        let last = client.history()[1].1.clone();
        let params = client.with(json!({ "beforeMessageId": second, "dryRun": true }));
        let plan = client.call("_session/rewind", params);
        assert_eq!(plan["files"]["deleted"], json!(["b.txt"]));
        assert_eq!(plan.get("operation"), None);
        assert_eq!(cuts(&client.log), [0; 0]);
        assert_eq!(client.read("b.txt").as_deref(), Some("second"));
        assert_eq!(texts(client).len(), 4);
        assert_ne!(plan["lastMessageId"], Value::Null);
        assert!(!last.is_empty());
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
fn undo_and_redo_bring_back_both_halves() {
    both(|client| {
        let (_, second) = two_turns(client);
        let params = client.with(json!({ "beforeMessageId": second }));
        let operation = client.call("_session/rewind", params)["operation"].clone();
        let before = client.log.len();
        let params = client.with(json!({ "operation": operation }));
        let answer = client.call("_session/undo", params);
        assert_eq!(client.read("b.txt").as_deref(), Some("second"));
        let back = crate::client::messages(&client.log[before..]);
        assert_eq!(
            back.first().map(|(_, id, text)| (id.as_str(), text.as_str())),
            Some((second.as_str(), "write b.txt"))
        );
        assert_eq!(back.last().unwrap().1, answer["lastMessageId"].as_str().unwrap());
        let params = client.with(json!({}));
        client.call("_session/redo", params);
        assert_eq!(client.read("b.txt"), None);
        assert_eq!(texts(client), ["write a.txt", "wrote a.txt"]);
        let params = client.with(json!({}));
        let error = client.refused("_session/redo", params);
        assert_eq!(error["data"]["reason"], "nothing");
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
