//! What passes: everything, as it came.

use retake_testkit::fake_agent::odd;
use serde_json::{Value, json};

use super::world::World;

fn lines(world: &World, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(world.path("inner").join(name)).expect("it was written");
    text.lines().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_byte_passes_in_both_directions() {
    let world = World::new("");
    let mut client = world.client().await;
    let session = client.new_session().await;
    let odd = [
        r#"{"zebra":{"deep":[1.0,1e400,123456789012345678901234567890]},"method":"_echo","params":{"b":1,"a":[ ]},"id":"x-1","jsonrpc":"2.0"}"#.to_owned(),
        format!(r#"{{"jsonrpc":"2.0","method":"_unknown/notice","params":{{"sessionId":"{session}","é":"\u00e9\/"}}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":"y","method":"session/set_mode","params":{{"modeId":"m","sessionId":"{session}","extra":-0.0}}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":77,"method":"_echo","params":{{"large":"{}"}}}}"#, "x".repeat(3 << 20)),
        r#"{"jsonrpc":"2.0","id":"z","method":"nobody/knows","params":null}"#.to_owned(),
    ];
    for line in &odd {
        client.write(line).await;
    }
    let unknown = client.wait(|message| message["id"] == "z").await;
    assert_eq!(unknown["error"]["code"], -32601);
    let prompt = format!(
        r#"{{"id":"p","jsonrpc":"2.0","method":"session/prompt","params":{{"prompt":[{{"text":"think hm\nwrite a.txt x","type":"text","annotations":{{"x":1.50}}}}],"sessionId":"{session}","_meta":{{"own":true}}}}}}"#
    );
    client.write(&prompt).await;
    client.wait(|message| message["id"] == "p").await;
    let came = lines(&world, "in");
    for line in odd.iter().chain([&prompt]) {
        assert!(came.contains(line), "{}", &line[..line.len().min(300)]);
    }
    let mut passed = 0;
    for line in lines(&world, "out") {
        let value: Value = serde_json::from_str(&line).expect("this one has no vices");
        let is_ours = value["result"]["protocolVersion"] == 1
            || value["id"] == "p" && value["result"]["stopReason"] == "end_turn"
            || value["params"]["update"]["sessionUpdate"] == "available_commands_update";
        if !is_ours {
            assert!(client.lines.contains(&line), "{}", &line[..line.len().min(300)]);
            passed += 1;
        }
    }
    assert!(passed >= 9, "{passed}");
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_capability_and_the_commands_are_added_to_those_of_the_agent() {
    let world = World::new("fork");
    let mut client = world.start();
    let result = client.initialize(1, false).await;
    let rewind = &result["agentCapabilities"]["_meta"]["retake"]["rewind"];
    assert_eq!(rewind["version"], 1);
    assert_eq!(result["agentCapabilities"]["sessionCapabilities"]["fork"], json!({}));
    client.new_session().await;
    let update =
        client.wait(|message| message["params"]["update"]["availableCommands"].to_string().contains("\"own\"")).await;
    let names: Vec<&str> = update["params"]["update"]["availableCommands"]
        .as_array()
        .expect("it is a list")
        .iter()
        .filter_map(|command| command["name"].as_str())
        .collect();
    assert_eq!(names, ["own", "rewind", "undo", "redo", "checkpoints", "label", "fork"]);
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conductor_is_answered_as_an_editor_is() {
    let world = World::new("");
    let mut client = world.start();
    let result = client.ask("proxy/initialize", json!({ "protocolVersion": 1 })).await.expect("it is understood");
    assert_eq!(result["agentCapabilities"]["_meta"]["retake"]["rewind"]["version"], 1);
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_client_writes_that_is_no_message_is_answered() {
    let world = World::new("");
    let mut client = world.client().await;
    client.write("this is nothing").await;
    let answer = client.wait(|message| message["error"]["code"] == -32700).await;
    assert_eq!(answer["id"], Value::Null);
    let error = client.ask("_session/rewind", json!({ "sessionId": "nobody" })).await.expect_err("there is none");
    assert_eq!((&error["code"], &error["data"]["sessionId"]), (&json!(-32002), &json!("nobody")));
    client.new_session().await;
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forks_that_only_keep_a_point_are_not_listed() {
    let world = World::new("fork");
    let mut client = world.client().await;
    let session = client.new_session().await;
    for text in ["say one", "say two", "say three"] {
        client.prompt(&session, text).await;
    }
    client.rewind(&session, 0).await.expect("it goes back");
    let listed = client.ask("session/list", json!({ "cwd": world.project() })).await.expect("there is one");
    let ids: Vec<&Value> =
        listed["sessions"].as_array().expect("it is a list").iter().map(|one| &one["sessionId"]).collect();
    assert_eq!(ids, [&json!(session)]);
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_never_overtakes_its_prompt() {
    let world = World::new("");
    let mut client = world.client().await;
    let session = client.new_session().await;
    for _ in 0..3 {
        let prompt = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "say on it\nhang" }] });
        let id = client.send("session/prompt", prompt).await;
        client.notify("session/cancel", json!({ "sessionId": session })).await;
        assert_eq!(client.answer(id).await.expect("it ends")["stopReason"], "cancelled");
    }
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_capability_is_added_however_little_the_agent_says_of_itself() {
    for habit in ["bare", "null", "nothing"] {
        let world = World::new(habit);
        let mut client = world.start();
        let result = client.initialize(1, false).await;
        let capabilities = &result["agentCapabilities"];
        assert_eq!(capabilities["_meta"]["retake"]["rewind"]["version"], 1, "{habit}: {result}");
        assert_eq!(capabilities["loadSession"], true, "{habit}: {result}");
        client.hang_up().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_our_values_cannot_hold_reaches_the_right_session_as_it_came() {
    let world = World::new("");
    let mut client = world.client().await;
    let session = client.new_session().await;
    client.prompt(&session, "say one").await;
    client.prompt(&session, "say two").await;
    client.rewind(&session, 0).await.expect("it goes back");
    let odd = odd();
    // To the agent: after the cut it has another session.
    let prompt = format!(
        r#"{{"jsonrpc":"2.0","id":"odd","method":"session/prompt","params":{{"sessionId":"{session}",{odd},"prompt":[{{"type":"text","text":"say three \ud83d"}}]}}}}"#
    );
    client.write(&prompt).await;
    let answer = client.wait(|message| message["id"] == "odd").await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    let saw = world.model_saw().join("\n");
    assert!(saw.contains("say one") && !saw.contains("say two") && saw.contains("three"), "{saw}");
    assert!(lines(&world, "in").iter().any(|line| line.contains(&odd) && line.contains(r"three \ud83d")));
    assert_eq!(client.points(&session).await[0]["text"], "say three \u{FFFD}");
    // From the agent: it calls the session something else.
    let raw = r#"raw {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"$S",$ODD,"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"odd"}}}}"#;
    client.told.clear();
    client.prompt(&session, raw).await;
    let of_others: Vec<_> = client.told.iter().filter(|one| one["params"]["sessionId"] != session.as_str()).collect();
    assert!(of_others.is_empty(), "{of_others:?}");
    assert!(client.said().iter().any(|(_, id, text)| text == "odd" && !id.is_empty()));
    assert!(client.lines.iter().any(|line| line.contains(&odd) && line.contains(&session)));
    // An answer ends its turn.
    client.prompt(&session, r#"answer {"stopReason":"end_turn","_meta":{$ODD}}"#).await;
    let point = client.points(&session).await[0]["messageId"].clone();
    let wish = json!({ "sessionId": session, "beforeMessageId": point, "interrupt": false });
    client.ask("_session/rewind", wish).await.expect("no turn runs");
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_cancelled_by_its_id_is_cancelled_at_the_agent() {
    let world = World::new("");
    let mut client = world.client().await;
    let session = client.new_session().await;
    for _ in 0..3 {
        let prompt = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "say on it\nhang" }] });
        let id = client.send("session/prompt", prompt).await;
        client.notify("$/cancel_request", json!({ "requestId": id })).await;
        assert_eq!(client.answer(id).await.expect("it ends")["stopReason"], "cancelled");
    }
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_nothing_is_one() {
    let world = World::new("undefined");
    let mut client = world.client().await;
    let session = client.new_session().await;
    let params = json!({ "sessionId": session, "modeId": "m" });
    client
        .write(&json!({ "jsonrpc": "2.0", "id": "x", "method": "session/set_mode", "params": params }).to_string())
        .await;
    client.wait(|message| message["id"] == "x").await;
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_has_one_id_however_often_the_agent_tells_it() {
    for (version, habits) in [(1, "echo,twice"), (2, "")] {
        let world = World::new(habits);
        let mut client = world.start();
        client.initialize(version, true).await;
        let session = client.new_session().await;
        let answer = client.prompt(&session, "say one").await;
        let told = client.said().into_iter().filter(|(kind, ..)| kind == "user_message").map(|(_, id, _)| id);
        let mut ids: Vec<String> = told.chain(answer["messageId"].as_str().map(str::to_owned)).collect();
        assert_eq!(ids.len(), 2, "{ids:?}");
        ids.dedup();
        assert_eq!(json!(ids), json!([client.points(&session).await[0]["messageId"]]));
        // One that is edited is told here first.
        let edit =
            json!({ "sessionId": session, "messageId": ids[0], "content": [{ "type": "text", "text": "say two" }] });
        client.told.clear();
        client.ask("_session/edit_prompt", edit).await.expect("it is said");
        if version == 2 {
            client.wait(|message| message["params"]["update"]["state"] == "idle").await;
        }
        let told = client.said().into_iter().filter(|(kind, ..)| kind == "user_message");
        let mut ids: Vec<String> = told.map(|(_, id, _)| id).collect();
        ids.dedup();
        assert_eq!(json!(ids), json!([client.points(&session).await[0]["messageId"]]), "{version}");
        client.hang_up().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_in_one_session_is_not_lost_when_another_one_is_not_forked() {
    let world = World::new("fork,busy");
    let mut client = world.client().await;
    client.go_to(world.path("home"));
    let unkept = client.new_session().await;
    client.go_to(world.project());
    let session = client.new_session().await;
    client.prompt(&session, "say one").await;
    // A point is to be kept before this prompt.
    client.told.clear();
    client.prompt(&session, "say two").await;
    let of_other: Vec<&Value> = client
        .told
        .iter()
        .filter(|told| told["params"]["sessionId"] == unkept.as_str())
        .map(|told| &told["method"])
        .collect();
    assert_eq!(of_other, ["session/update", "session/request_permission"]);
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_the_agent_takes_back_is_taken_back_at_the_client() {
    let world = World::new("takes_back");
    let mut client = world.client().await;
    let session = client.new_session().await;
    let prompt = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "ask may I" }] });
    let id = client.send("session/prompt", prompt).await;
    let asked = client.wait(|message| message["method"] == "session/request_permission").await["id"].clone();
    let taken_back = client.wait(|message| message["method"] == "$/cancel_request").await;
    assert_eq!(taken_back["params"]["requestId"], asked);
    let error = json!({ "code": -32800, "message": "cancelled" });
    client.write(&json!({ "jsonrpc": "2.0", "id": asked, "error": error }).to_string()).await;
    assert_eq!(client.answer(id).await.expect("the agent was answered")["stopReason"], "end_turn");
    assert!(lines(&world, "in").iter().any(|line| line.contains("-32800")));
    client.hang_up().await;
}
