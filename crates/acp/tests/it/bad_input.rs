//! What no client should send.

use serde_json::{Value, json};

use crate::client::{Client, both};

#[test]
fn what_is_no_message_is_answered_and_the_next_one_is_read() {
    let mut client = Client::start(1, true);
    for (text, code) in [
        ("this is no JSON\n", -32700),
        ("{\"jsonrpc\": \"2.0\", \"id\": {}, \"method\": \"x\"}\n", -32600),
        ("[]\n", -32600),
        ("{\"jsonrpc\": \"2.0\", \"id\": 123456789012345678901234567890, \"method\": \"x\"}\n", -32600),
        ("{\"jsonrpc\": \"1.0\", \"id\": 1, \"method\": \"x\"}\n", -32600),
        // Many leave the version out, and nobody who reads them minds.
        ("{\"id\": 1, \"method\": \"x\"}\n", -32601),
    ] {
        client.send_text(text);
        let answer = client.next();
        assert_eq!(answer["error"]["code"], code, "{text}");
    }
    client.send_text("\n\r\n");
    client.model.says("still here");
    client.turn("hello");
    client.hang_up();
}

#[test]
fn unknown_methods_are_answered_and_unknown_notifications_are_not() {
    both(|client| {
        for method in ["_other/thing", "session/nonsense", "fs/read_text_file"] {
            assert_eq!(client.refused(method, json!({}))["code"], -32601, "{method}");
        }
        client.notify("_other/happened", &json!({}));
        client.notify("session/nonsense", &Value::Null);
        client.notify("session/cancel", &json!({ "sessionId": "unknown" }));
        client.send_text("{\"jsonrpc\":\"2.0\",\"id\":999,\"result\":{}}\n");
        client.model.says("fine");
        let before = client.log.len();
        client.turn("hello");
        assert!(client.log[before..].iter().all(|message| message.get("error").is_none()));
    });
}

#[test]
fn parameters_of_the_wrong_type_are_named() {
    both(|client| {
        for (method, params) in [
            ("session/prompt", json!({ "prompt": "hello" })),
            ("session/prompt", json!({ "prompt": [{ "type": "text" }] })),
            ("session/prompt", json!({ "prompt": [{ "type": "text", "text": "  " }] })),
            ("session/set_config_option", json!({ "configId": "none", "value": "x" })),
            ("_session/rewind", json!({ "beforeMessageId": 7 })),
            ("_session/edit_prompt", json!({ "messageId": "00000000000000000000", "content": [] })),
        ] {
            let params = client.with(params);
            assert_eq!(client.refused(method, params.clone())["code"], -32602, "{method} {params}");
        }
        assert_eq!(client.refused("session/prompt", Value::Null)["code"], -32602);
    });
}

#[test]
fn a_client_that_leaves_in_the_middle_of_a_turn_and_of_a_line_loses_nothing() {
    both(|client| {
        let gate = client.model.says_slowly(["Half a", " word"]);
        client.say("tell");
        client.until_said("Half a");
        gate.wait_until_reached();
        client.send_text("{\"jsonrpc\":\"2.0\",\"meth");
        client.reconnect();
        assert_eq!(client.history()[1].2, "Half a");
    });
}

#[test]
fn a_connection_is_greeted_once() {
    both(|client| {
        let other = 3 - client.version;
        let again = client.refused("initialize", json!({ "protocolVersion": other }));
        assert_eq!(
            (&again["code"], &again["data"]["reason"]),
            (&json!(-32600), &json!("already_initialized")),
            "{again}"
        );
        assert_eq!(again["data"]["protocolVersion"], client.version, "{again}");
        // It goes on in the version that was agreed on.
        client.model.says("still here");
        client.turn("hello");
    });
}

#[test]
fn a_version_that_is_not_spoken_can_be_followed_by_one_that_is() {
    let mut client = Client::silent(1, true);
    assert_eq!(client.refused("initialize", json!({ "protocolVersion": 0 }))["code"], -32022);
    client.call("initialize", json!({ "protocolVersion": 1 }));
    client.hang_up();
}
