//! The extension, the commands in the chat and the socket.

use retake_agent::contract::{Action, Change, ChangeGoal, Reply};
use retake_agent::live::LiveSession;
use retake_agent::socket::Client as SocketClient;
use serde_json::{Value, json};

use super::world::{Client, World};

async fn two_turns(world: &World) -> (Client, String) {
    let mut client = world.client().await;
    let session = client.new_session().await;
    client.prompt(&session, "write a.txt one").await;
    client.prompt(&session, "write a.txt two").await;
    client.told.clear();
    (client, session)
}

fn text(world: &World) -> String {
    std::fs::read_to_string(world.project().join("a.txt")).unwrap_or_default().trim_end().to_owned()
}

/// Types something, and returns what is answered in the chat.
async fn type_in(client: &mut Client, session: &str, typed: &str) -> String {
    client.told.clear();
    client.prompt(session, typed).await;
    client.said().into_iter().map(|(_, _, text)| text).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_kept_or_not_as_it_was_asked() {
    let world = World::new("");
    let (mut client, session) = two_turns(&world).await;
    let points = client.points(&session).await;
    let second = points[0]["messageId"].clone();
    // Inclusive, a prompt: it stays, unanswered, and comes with the next one.
    let kept =
        client.ask("_session/rewind", json!({ "sessionId": session, "toMessageId": second })).await.expect("it can");
    assert_eq!((&kept["lastMessageId"], text(&world).as_str()), (&second, "one"));
    assert!(kept.get("content").is_none(), "{kept}");
    client.prompt(&session, "say three").await;
    let saw = world.model_saw().join("\n");
    assert!(saw.contains("a.txt two") && !saw.contains("did 2") && saw.ends_with("say three"), "{saw}");
    // Inclusive, an answer.
    client.load(&session).await.expect("it is loaded");
    let said = client.said();
    let first_answer = said.iter().find(|(_, _, text)| text == "did 1").expect("it is retained").1.clone();
    let kept = client.ask("_session/rewind", json!({ "sessionId": session, "toMessageId": first_answer })).await;
    assert_eq!(kept.expect("it can")["lastMessageId"], first_answer);
    // Before the first one there is nothing.
    let first = points[1]["messageId"].clone();
    let nothing = client.ask("_session/rewind", json!({ "sessionId": session, "beforeMessageId": first })).await;
    assert_eq!(nothing.expect("it can")["lastMessageId"], Value::Null);
    assert_eq!(world.files(), []);
    client.prompt(&session, "say anew").await;
    assert_eq!(world.model_saw(), ["user: say anew"]);
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_makes_no_sense_is_refused_with_a_word() {
    let world = World::new("");
    let (mut client, session) = two_turns(&world).await;
    let answer = client.ask("_session/rewind", json!({ "sessionId": session })).await.expect_err("nothing is named");
    assert_eq!(answer["code"], -32602);
    let unknown = json!({ "sessionId": session, "toMessageId": "nobody" });
    let answer = client.ask("_session/rewind", unknown).await.expect_err("it is unknown");
    assert_eq!((&answer["code"], &answer["data"]["reason"]), (&json!(-32002), &json!("unknown_message_id")));
    client.load(&session).await.expect("it is loaded");
    let reply = client.said()[1].1.clone();
    let no_prompt = json!({ "sessionId": session, "beforeMessageId": reply });
    let answer = client.ask("session/rewind", no_prompt).await.expect_err("it is no prompt");
    assert_eq!(answer["data"]["reason"], "not_a_user_message");
    let point = client.points(&session).await[0]["messageId"].clone();
    let stale = json!({ "sessionId": session, "beforeMessageId": point, "expectedHead": reply });
    let answer = client.ask("_session/rewind", stale).await.expect_err("it has moved on");
    assert_eq!(answer["data"]["reason"], "stale_head");
    let dry = json!({ "sessionId": session, "beforeMessageId": point, "dryRun": true });
    let plan = client.ask("_session/rewind", dry).await.expect("it can be planned");
    assert_eq!(plan["files"]["restored"], json!(["a.txt"]));
    assert_eq!((text(&world).as_str(), client.points(&session).await.len()), ("two", 2));
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_somebody_else_changed_is_a_conflict() {
    let world = World::new("");
    let (mut client, session) = two_turns(&world).await;
    std::fs::write(world.project().join("a.txt"), "mine\n").expect("it can be written");
    let error = client.rewind(&session, 0).await.expect_err("it needs a decision");
    assert_eq!(error["data"]["reason"], "conflicts", "{error}");
    assert_eq!((text(&world).as_str(), client.points(&session).await.len()), ("mine", 2));
    let point = client.points(&session).await[0]["messageId"].clone();
    let keep = json!({ "sessionId": session, "beforeMessageId": point, "onConflict": "keep" });
    client.ask("_session/rewind", keep).await.expect("it is decided");
    assert_eq!((text(&world).as_str(), client.points(&session).await.len()), ("mine", 1));
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_user_changes_while_the_agent_talks_is_theirs() {
    let world = World::new("");
    let mut client = world.client().await;
    let session = client.new_session().await;
    let script = "say begins\nsleep 600\nsay goes on\nsleep 600\nsay still\nsleep 300\nwrite a.txt agent";
    let prompt = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": script }] });
    let id = client.send("session/prompt", prompt).await;
    client.wait(|message| message["params"]["update"]["content"]["text"] == "begins").await;
    std::fs::write(world.project().join("mine.txt"), "mine\n").expect("it can be written");
    client.answer(id).await.expect("it ends");
    client.rewind(&session, 0).await.expect("it goes back");
    assert_eq!(world.files(), [("mine.txt".to_owned(), "mine".to_owned())]);
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_half_goes_back_and_the_agent_is_told_of_the_other() {
    let world = World::new("air");
    let (mut client, session) = two_turns(&world).await;
    let point = client.points(&session).await[0]["messageId"].clone();
    let code = json!({ "sessionId": session, "beforeMessageId": point, "scope": "code" });
    client.ask("_session/rewind", code).await.expect("files go back");
    assert_eq!((text(&world).as_str(), client.points(&session).await.len()), ("one", 2));
    client.prompt(&session, "say after").await;
    let saw = world.model_saw().join("\n");
    assert!(saw.contains("a.txt two") && saw.contains("<note-from-retake>") && saw.ends_with("say after"), "{saw}");
    client.prompt(&session, "say later").await;
    assert_eq!(world.model_saw().join("\n").matches("<note-from-retake>").count(), 1);
    // By the name of the proposal only the conversation goes.
    client.prompt(&session, "write a.txt three").await;
    let point = client.points(&session).await[0]["messageId"].clone();
    let talk = client.ask("session/rewind", json!({ "sessionId": session, "beforeMessageId": point })).await;
    assert!(talk.expect("it goes back").get("files").is_none());
    assert_eq!(text(&world), "three");
    client.prompt(&session, "say end").await;
    let saw = world.model_saw().pop().expect("there is one");
    assert!(saw.contains("<note-from-retake>") && saw.contains("a.txt"), "{saw}");
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_is_edited() {
    let world = World::new("rewind_to,echo");
    let (mut client, session) = two_turns(&world).await;
    let point = client.points(&session).await[0]["messageId"].clone();
    let content = json!([{ "type": "text", "text": "write a.txt edited" }]);
    let edit = json!({ "sessionId": session, "messageId": point, "content": content });
    let answer = client.ask("_session/edit_prompt", edit).await.expect("it is said");
    assert_eq!(answer["stopReason"], "end_turn");
    let points = client.points(&session).await;
    assert_eq!((&points[0]["messageId"], points.len()), (&answer["_meta"]["retake"]["messageId"], 2));
    assert_eq!(text(&world), "edited");
    let saw = world.model_saw().join("\n");
    assert!(saw.contains("a.txt one") && !saw.contains("a.txt two"), "{saw}");
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_runs_is_stopped_first() {
    let world = World::new("");
    let (mut client, session) = two_turns(&world).await;
    let prompt =
        json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "write a.txt three\nask may I?" }] });
    let id = client.send("session/prompt", prompt).await;
    let asked = client.wait(|message| message["method"] == "session/request_permission").await;
    let point = client.points(&session).await[0]["messageId"].clone();
    let patient = json!({ "sessionId": session, "beforeMessageId": point, "interrupt": false });
    let refused = client.ask("_session/rewind", patient).await.expect_err("a turn runs");
    assert_eq!(refused["data"]["reason"], "running");
    let back = client.send("_session/rewind", json!({ "sessionId": session, "beforeMessageId": point })).await;
    assert_eq!(client.answer(id).await.expect("it ends")["stopReason"], "cancelled");
    client.answer(back).await.expect("it goes back");
    assert_eq!(text(&world), "two");
    // Too late: the agent has its answer.
    client.reply(&asked["id"], json!({ "outcome": { "outcome": "selected", "optionId": "yes" } })).await;
    client.prompt(&session, "say four").await;
    assert!(!world.model_saw().join("\n").contains("three"));
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_can_be_done_in_the_chat() {
    let world = World::new("fork");
    let mut client = world.start();
    client.initialize(1, false).await;
    let session = client.new_session().await;
    assert!(type_in(&mut client, &session, "/rewind").await.contains("nothing to go back to"));
    client.prompt(&session, "write a.txt one").await;
    client.prompt(&session, "write a.txt two").await;
    let list = type_in(&mut client, &session, "/rewind").await;
    assert!(list.contains("**2.** write a.txt two, files: 1 modified"), "{list}");
    assert!(list.contains("**1.** write a.txt one, files: 1 added"), "{list}");
    client.prompt(&session, "write a.txt three").await;
    let stale = type_in(&mut client, &session, "/rewind 1").await;
    assert!(stale.contains("moved on") && text(&world) == "three", "{stale}");
    type_in(&mut client, &session, "/rewind").await;
    let back = type_in(&mut client, &session, "/rewind 2").await;
    assert!(back.contains("Back to before prompt 2, \"write a.txt two\"") && text(&world) == "one", "{back}");
    assert!(type_in(&mut client, &session, "/undo").await.contains("Undone"));
    assert_eq!(text(&world), "three");
    assert!(type_in(&mut client, &session, "/redo").await.contains("Redone"));
    assert_eq!(text(&world), "one");
    assert!(type_in(&mut client, &session, "/checkpoints").await.contains("- `"));
    client.prompt(&session, "say end").await;
    let saw = world.model_saw();
    assert!(saw.len() == 3 && !saw.iter().any(|line| line.contains('/')), "{saw:?}");
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_is_decided_in_the_chat() {
    let world = World::new("");
    let (mut client, session) = two_turns(&world).await;
    std::fs::write(world.project().join("a.txt"), "mine\n").expect("it can be written");
    type_in(&mut client, &session, "/rewind").await;
    let prompt = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "/rewind 2" }] });
    let id = client.send("session/prompt", prompt).await;
    let asked = client.wait(|message| message["method"] == "session/request_permission").await;
    client.reply(&asked["id"], json!({ "outcome": { "outcome": "selected", "optionId": "overwrite" } })).await;
    client.answer(id).await.expect("it is done");
    assert_eq!((text(&world).as_str(), client.points(&session).await.len()), ("one", 1));
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_names_the_change_before_it_is_made_and_says_first_what_it_means() {
    let world = World::new("");
    let (mut client, session) = two_turns(&world).await;
    type_in(&mut client, &session, "/rewind").await;
    let questions = [
        ("/undo", "Undo turn write a.txt two", "takes back the changes of this operation"),
        ("/rewind 2", "Rewind to before prompt 2, \"write a.txt two\"", "this session's changes"),
    ];
    std::fs::write(world.project().join("a.txt"), "mine\n").expect("it can be written");
    for (command, title, meaning) in questions {
        let prompt = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": command }] });
        let id = client.send("session/prompt", prompt).await;
        let asked = client.wait(|message| message["method"] == "session/request_permission").await;
        let call = &asked["params"]["toolCall"];
        assert_eq!(call["title"], title);
        let text = call["content"][0]["content"]["text"].as_str().expect("a text");
        assert_eq!(text.lines().next(), Some(format!("{title}: {meaning}").as_str()), "{text}");
        client.reply(&asked["id"], json!({ "outcome": { "outcome": "selected", "optionId": "cancel" } })).await;
        client.answer(id).await.expect("it ends");
    }
    assert_eq!(text(&world), "mine");
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_of_retake_reach_a_live_session() {
    let world = World::new("air");
    let (mut client, session) = two_turns(&world).await;
    let id = world.workspace().sessions().all().expect("it can be read")[0].id;
    let socket = SocketClient::connect(&world.path("sockets"), id).await.expect("it listens").expect("somebody does");
    let (view, live) = LiveSession::attach(socket, id).await.expect("it can be attached to");
    assert_eq!(view.conversation().prompts().count(), 2);
    let change = Change::new(ChangeGoal::Undo { operation: None });
    let command = Action::Apply { change, head_seen: None, plan_seen: None, running: Default::default() };
    let Ok(Ok(Reply::Change { document })) = live.asker.ask(command).await else { panic!("it is undone") };
    assert!(document.applied);
    assert_eq!((text(&world).as_str(), client.points(&session).await.len()), ("one", 1));
    client.prompt(&session, "say three").await;
    let saw = world.model_saw().join("\n");
    assert!(saw.contains("a.txt one") && !saw.contains("a.txt two"), "{saw}");
    client.hang_up().await;
    assert!(SocketClient::connect(&world.path("sockets"), id).await.expect("it can be tried").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rewind_while_no_proxy_runs_is_made_up_for_when_the_session_is_loaded() {
    for habits in ["air", "fork", "qwen", ""] {
        let world = World::new(habits);
        let (client, session) = two_turns(&world).await;
        client.hang_up().await;
        {
            let mut workspace = world.workspace();
            let id = workspace.sessions().all().expect("it can be read")[0].id;
            let mut writer = workspace
                .sessions()
                .open(id, retake_agent::ids::now(), &mut retake_agent::ids::random)
                .expect("nobody has it open");
            let goal = retake_engine::rewind::Goal::Undo { operation: None, session: Some(id) };
            let request = retake_engine::rewind::RewindRequest::new(goal);
            let new = retake_agent::ids::rewind();
            workspace
                .rewinds_mut()
                .apply_in(&mut writer, &request, None, &new, &retake_engine::progress::NoProgress)
                .expect("it is undone");
        }
        let mut client = world.client().await;
        client.load(&session).await.expect("it is loaded");
        assert!(!client.said().iter().any(|(_, _, text)| text.contains("two")), "{habits}");
        client.prompt(&session, "say three").await;
        let saw = world.model_saw().join("\n");
        assert!(saw.contains("a.txt one") && !saw.contains("a.txt two"), "{habits}: {saw}");
        client.hang_up().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn version_two_is_rewound_too() {
    for (habits, strategy) in [("", "transcript"), ("air", "fork_at_message"), ("qwen", "turn_rewind")] {
        let world = World::new(habits);
        let mut client = world.start();
        let result = client.initialize(2, true).await;
        assert_eq!(result["capabilities"]["session"]["_meta"]["retake"]["rewind"]["version"], 1);
        let session = client.new_session().await;
        client.prompt(&session, "write a.txt one").await;
        let second = client.prompt(&session, "write a.txt two").await["messageId"].clone();
        let params = json!({ "sessionId": session, "beforeMessageId": second });
        client.told.clear();
        let rewound = client.ask("_session/rewind", params).await.expect("it goes back");
        assert_eq!(rewound["_meta"]["retake"]["strategy"], strategy);
        let is_truncated = |told: &Value| told["params"]["update"]["sessionUpdate"] == "_history_truncated";
        let told = client.told.iter().find(|told| is_truncated(told)).expect("it is told");
        assert_eq!(told["params"]["update"]["lastMessageId"], rewound["lastMessageId"]);
        assert_eq!(text(&world), "one");
        client.prompt(&session, "say three").await;
        assert!(!world.model_saw().join("\n").contains("two"));
        client.hang_up().await;
        let mut client = world.start();
        client.initialize(2, true).await;
        client.load(&session).await.expect("it is resumed");
        let texts: Vec<String> = client.said().into_iter().map(|(_, _, text)| text).collect();
        assert_eq!(texts, ["write a.txt one", "did 1", "say three", "three"], "{habits}");
        client.hang_up().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_from_before_the_proxy_is_taken_in_when_it_is_loaded() {
    let world = World::new("qwen");
    let turns = json!([["say zero", "u-0", "zero", "m-0"], ["say half", "u-1", "half", "m-1"]]);
    std::fs::write(world.path("inner").join("old.session"), turns.to_string()).expect("it can be written");
    let mut client = world.client().await;
    client.load("old").await.expect("it is loaded");
    assert_eq!(client.said().len(), 4);
    client.prompt("old", "write a.txt one").await;
    let points = client.points("old").await;
    assert_eq!(points.len(), 3, "{points:?}");
    assert!(points[2]["reason"].is_string(), "{points:?}");
    let back = json!({ "sessionId": "old", "beforeMessageId": points[1]["messageId"], "scope": "conversation" });
    client.ask("_session/rewind", back).await.expect("the conversation goes back");
    client.prompt("old", "say end").await;
    assert_eq!(world.model_saw()[..2], ["user: say zero", "agent: zero"]);
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_can_do_is_found_out_when_it_matters() {
    let world = World::new("air");
    let (client, session) = two_turns(&world).await;
    client.hang_up().await;
    let mut client = world.client().await;
    client.load(&session).await.expect("it is loaded");
    let rewound = client.rewind(&session, 0).await.expect("it goes back");
    assert_eq!(rewound["_meta"]["retake"]["strategy"], "fork_at_message");
    client.hang_up().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_agents_in_one_directory_never_take_back_each_others_work() {
    let world = World::new("");
    let (mut one, mut two) = (world.client().await, world.client().await);
    let (first, second) = (one.new_session().await, two.new_session().await);
    // One after the other each has its own.
    one.prompt(&first, "write a.txt one").await;
    two.prompt(&second, "write b.txt two").await;
    one.rewind(&first, 0).await.expect("nobody else changed it");
    assert_eq!(world.files(), [("b.txt".to_owned(), "two".to_owned())]);
    // While tools of both are at work, nobody knows whose a change is.
    let prompt = json!({ "sessionId": first, "prompt": [{ "type": "text", "text": "edit d.txt\nsay busy\nhang" }] });
    let running = one.send("session/prompt", prompt).await;
    one.wait(|message| message["params"]["update"]["content"]["text"] == "busy").await;
    two.prompt(&second, "shell echo three > c.txt").await;
    let refused = two.rewind(&second, 0).await.expect_err("the other one is at work");
    assert!(["in_use", "conflicts"].contains(&refused["data"]["reason"].as_str().expect("a reason")), "{refused}");
    one.notify("session/cancel", json!({ "sessionId": first })).await;
    one.answer(running).await.expect("it ends");
    let refused = two.rewind(&second, 0).await.expect_err("it may be the other one's");
    let conflict = &refused["data"]["conflicts"][0];
    assert_eq!((&refused["data"]["reason"], &conflict["path"]), (&json!("conflicts"), &json!("c.txt")), "{refused}");
    assert!(conflict["text"].as_str().is_some_and(|text| text.contains("more than one")), "{conflict}");
    assert_eq!(world.files().len(), 2, "nothing was taken back");
    let point = two.points(&second).await[0]["messageId"].clone();
    let params = json!({ "sessionId": second, "beforeMessageId": point, "onConflict": "overwrite" });
    two.ask("_session/rewind", params).await.expect("it was decided");
    assert_eq!(world.files(), [("b.txt".to_owned(), "two".to_owned())]);
    one.hang_up().await;
    two.hang_up().await;
}
