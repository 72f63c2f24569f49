//! Versions, capabilities, the model and the permissions.

use serde_json::json;

use crate::client::{Client, both, updates};

#[test]
fn the_highest_version_that_both_speak_is_spoken() {
    let mut client = Client::silent(2, true);
    let info = json!({ "name": "test", "version": "1" });
    let error = client.refused("initialize", json!({ "protocolVersion": 0, "info": info }));
    assert_eq!(error["code"], -32022);
    assert_eq!(error["data"], json!({ "requested": 0, "supported": [1, 2] }));
    let answer = client.call("initialize", json!({ "protocolVersion": 7, "info": info }));
    assert_eq!(answer["protocolVersion"], 2);
    assert_eq!(answer["capabilities"]["session"]["_meta"]["retake"]["rewind"]["version"], 1);
    client.hang_up();
    let mut client = Client::silent(1, true);
    let answer = client.greet();
    assert_eq!(answer["protocolVersion"], 1);
    assert_eq!(answer["agentCapabilities"]["_meta"]["retake"]["rewind"]["undo"], json!({}));
    client.hang_up();
}

#[test]
fn nothing_is_done_before_the_greeting() {
    let mut client = Client::silent(1, true);
    let root = client.root();
    assert_eq!(client.refused("session/new", json!({ "cwd": root, "mcpServers": [] }))["code"], -32600);
    client.greet();
    assert_eq!(client.refused("session/new", json!({ "cwd": "here", "mcpServers": [] }))["code"], -32602);
    client.hang_up();
}

#[test]
fn another_model_can_be_chosen() {
    both(|client| {
        let params = client.with(json!({ "configId": "model", "type": "id", "value": "anthropic/other" }));
        let answer = client.call("session/set_config_option", params);
        assert_eq!(answer["configOptions"][0]["currentValue"], "anthropic/other");
        client.model.says("hello");
        client.turn("hi");
        assert_eq!(client.model.requests().pop().unwrap().model(), "other");
        let params = client.with(json!({ "configId": "model", "type": "id", "value": "anthropic/none" }));
        assert_eq!(client.refused("session/set_config_option", params)["code"], -32602);
    });
}

#[test]
fn permissions_can_be_given_once_for_all() {
    both(|client| {
        let params = client.with(json!({ "configId": "mode", "type": "id", "value": "all" }));
        client.call("session/set_config_option", params);
        client.model.calls("bash", json!({ "command": "echo x > x.txt" }));
        client.model.says("done");
        client.turn("run");
        assert!(client.log.iter().all(|message| message["method"] != "session/request_permission"));
        assert!(client.read("x.txt").is_some());
    });
}

#[test]
fn with_edits_allowed_commands_are_asked_about() {
    both(|client| {
        let params = client.with(json!({ "configId": "mode", "type": "id", "value": "edit" }));
        client.call("session/set_config_option", params);
        client.model.calls("write_file", json!({ "path": "a.txt", "content": "x" }));
        client.model.calls("bash", json!({ "command": "echo x > b.txt" }));
        client.model.says("done");
        let id = client.say("go");
        let asked = client.until(|message| message["method"] == "session/request_permission").pop().unwrap();
        assert!(client.read("a.txt").is_some() && client.read("b.txt").is_none(), "{asked}");
        client.choose(&asked, "allow");
        assert_eq!(client.end_of(id).0, "end_turn");
        assert!(client.read("b.txt").is_some());
    });
}

#[test]
fn modes_are_the_same_permissions() {
    let mut client = Client::start(1, true);
    let params = client.with(json!({ "modeId": "read" }));
    client.call("session/set_mode", params);
    assert_eq!(updates(&client.log, "current_mode_update")[0]["currentModeId"], "read");
    client.model.calls("write_file", json!({ "path": "a.txt", "content": "x" }));
    client.model.says("refused");
    client.turn("write");
    assert_eq!(client.read("a.txt"), None);
    client.hang_up();
}
