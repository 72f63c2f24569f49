//! Tool calls and permissions.

use serde_json::{Value, json};

use crate::client::{Client, both, update, updates};

/// The updates of the one call that there is, oldest first.
fn of_call(client: &Client) -> Vec<&Value> {
    let is_call = |message: &&Value| matches!(update(message), Some("tool_call" | "tool_call_update"));
    client.log.iter().filter(is_call).map(|message| &message["params"]["update"]).collect()
}

#[test]
fn an_edit_is_asked_about_with_its_diff_and_told_when_it_is_done() {
    both(|client| {
        client.write("a.txt", "one\ntwo\n");
        client.model.calls("edit_file", json!({ "path": "a.txt", "old": "two", "new": "2" }));
        client.model.says("done");
        let id = client.say("edit");
        let asked = client.until(|message| message["method"] == "session/request_permission").pop().unwrap();
        let (call, options) = match client.version {
            1 => (&asked["params"]["toolCall"], &asked["params"]["options"]),
            _ => (&asked["params"]["subject"]["toolCall"], &asked["params"]["options"]),
        };
        let kinds: Vec<_> = options.as_array().unwrap().iter().map(|one| one["kind"].clone()).collect();
        assert_eq!(kinds, ["allow_once", "allow_always", "reject_once"]);
        let diff = &call["content"][0];
        match client.version {
            1 => assert_eq!((&diff["oldText"], &diff["newText"]), (&json!("one\ntwo\n"), &json!("one\n2\n"))),
            _ => assert!(diff["patch"]["text"].as_str().unwrap().contains("-two\n+2\n"), "{diff}"),
        }
        client.choose(&asked, "allow");
        assert_eq!(client.end_of(id).0, "end_turn");
        assert_eq!(client.read("a.txt").unwrap(), "one\n2\n");
        let all = of_call(client);
        let statuses: Vec<_> = all.iter().map(|one| one["status"].as_str().unwrap_or("")).collect();
        assert_eq!(statuses, ["pending", "in_progress", "completed"]);
        assert_eq!(all[0]["kind"], "edit");
        assert_eq!(all[2]["locations"][0]["path"], client.root().join("a.txt").to_str().unwrap());
        assert_eq!(all[2]["locations"][0]["line"], 2);
        assert_eq!(all[0]["content"][0]["type"], "diff");
        assert_eq!(all[2].get("content"), None, "what it changes stays as it was told");
        assert!(all.iter().all(|one| one["toolCallId"] == all[0]["toolCallId"]));
    });
}

#[test]
fn what_is_rejected_is_not_done() {
    both(|client| {
        client.model.calls("write_file", json!({ "path": "a.txt", "content": "x" }));
        client.model.says("a pity");
        let id = client.say("write");
        let asked = client.until(|message| message["method"] == "session/request_permission").pop().unwrap();
        client.choose(&asked, "reject");
        assert_eq!(client.end_of(id).0, "end_turn");
        assert_eq!(client.read("a.txt"), None);
        assert_eq!(of_call(client).last().unwrap()["status"], "failed");
    });
}

#[test]
fn what_is_always_allowed_is_asked_about_once() {
    both(|client| {
        client.model.calls("write_file", json!({ "path": "a.txt", "content": "x" }));
        client.model.calls("write_file", json!({ "path": "b.txt", "content": "x" }));
        client.model.says("done");
        let id = client.say("write");
        let asked = client.until(|message| message["method"] == "session/request_permission").pop().unwrap();
        client.choose(&asked, "always");
        assert_eq!(client.end_of(id).0, "end_turn");
        assert!(client.read("b.txt").is_some());
        let count = client.log.iter().filter(|message| message["method"] == "session/request_permission").count();
        assert_eq!(count, 1);
    });
}

#[test]
fn a_question_that_nobody_answers_any_more_is_withdrawn() {
    both(|client| {
        client.model.calls("bash", json!({ "command": "echo hi" }));
        let id = client.say("run");
        client.until(|message| message["method"] == "session/request_permission");
        let params = client.with(json!({}));
        client.notify("session/cancel", &params);
        assert_eq!(client.end_of(id).0, "cancelled");
        let is_withdrawal = |message: &Value| message["method"] == "$/cancel_request";
        // It may come after the answer to the prompt: nothing is said about their order.
        if !client.log.iter().any(is_withdrawal) {
            client.until(is_withdrawal);
        }
    });
}

#[test]
fn output_and_kind_of_a_command_are_told() {
    both(|client| {
        client.model.calls("bash", json!({ "command": "echo one; echo two" }));
        client.model.says("done");
        client.turn("run");
        let all = of_call(client);
        assert_eq!(all[0]["kind"], "execute");
        let text = all.last().unwrap()["content"][0]["content"]["text"].as_str().unwrap();
        assert!(text.contains("one\ntwo"), "{text}");
    });
}

#[test]
fn the_todo_list_is_a_plan() {
    both(|client| {
        let items = json!([{ "text": "first", "state": "done" }, { "text": "second", "state": "active" }]);
        client.model.calls("todo", json!({ "items": items }));
        client.model.says("planned");
        client.turn("plan");
        let entries = match client.version {
            1 => updates(&client.log, "plan")[0]["entries"].clone(),
            _ => updates(&client.log, "plan_update")[0]["plan"]["entries"].clone(),
        };
        assert_eq!(entries[0]["status"], "completed");
        assert_eq!(entries[1]["content"], "second");
        client.reconnect();
        client.history();
        assert!(!updates(&client.log, "plan").is_empty() || !updates(&client.log, "plan_update").is_empty());
    });
}

#[test]
fn calls_are_replayed_with_what_came_of_them() {
    both(|client| {
        client.model.says("I look.").calls("list_dir", json!({ "path": "." }));
        client.model.says("done");
        client.turn("look");
        client.reconnect();
        client.history();
        let all = of_call(client);
        assert_eq!(all.first().unwrap()["kind"], "search");
        assert_eq!(all.last().unwrap()["status"], "completed");
    });
}
