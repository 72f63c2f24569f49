//! R50-R53: the model marks a place, explores, and goes back with a report. Asserted on what it receives.

use retake_agent::contract::{Action, Allow, ChangeGoal, EventKind, Mentions, Reply, TurnEnd, WhileRunning};
use retake_agent::ids;
use retake_engine::Durability;
use retake_engine::operation::MadeBy;
use retake_engine::session::Scope;
use retake_engine::session::entry::{Block, Body, CallId, Details, Entry, Outcome, Part, StopReason, SummaryBy, Usage};
use retake_engine::session::{NewEntry, NewTurn};
use retake_testkit::model::{Answer, Received};
use serde_json::json;

use crate::scene::{Scene, Wire};

const BOTH: [Wire; 2] = [Wire::Anthropic, Wire::OpenAi];

fn scene(wire: Wire) -> Scene {
    Scene::with(wire).exploring().file("a.txt", "ALPHA\n").file("b.txt", "BETA\n").start()
}

/// The model makes a checkpoint, reads two files and goes back.
fn explores(scene: &Scene) {
    scene.model.thinks("Where is it?").calls("checkpoint", json!({"goal": "find the bug"}));
    scene.model.says("I look around.").calls("read_file", json!({"path": "a.txt"}));
    scene.model.calls("read_file", json!({"path": "b.txt"}));
    scene.model.calls("rewind", json!({"report": "The bug is in b.txt, line 1."}));
}

fn results(scene: &Scene) -> Vec<String> {
    let text = |entry: &Entry| match &entry.body {
        Body::ToolResult { parts, .. } => Some(format!("{parts:?}")),
        _ => None,
    };
    scene.stored().entries().iter().filter_map(text).collect()
}

/// Everything that the model was told but the system's instructions, without the frame's inner lines.
fn lines(received: &Received) -> Vec<String> {
    let transcript = received.transcript();
    let roles = ["user: ", "assistant: ", "tool: "];
    transcript.lines().filter(|line| roles.iter().any(|role| line.starts_with(role))).map(str::to_owned).collect()
}

#[test]
fn after_a_rewind_the_model_is_sent_the_prefix_and_the_report_and_nothing_else() {
    for wire in BOTH {
        let mut scene = scene(wire);
        explores(&scene);
        scene.model.says("It is in b.txt.");
        scene.prompt("find it");
        let requests = scene.model.requests();
        let (marked, last) = (requests[1].messages(), requests[4].messages());
        assert_eq!(last[..marked.len()], marked, "what was before the checkpoint, byte for byte, the thought included");
        assert_eq!(last.len(), marked.len() + 1, "and one message: {last:#?}");
        let report = &last[marked.len()];
        assert!(report.contains("The bug is in b.txt, line 1."), "{report}");
        assert!(report.contains("I look around."), "what the user was shown: {report}");
        assert!(report.contains("- a.txt") && report.contains("- b.txt"), "which files were read: {report}");
        assert!(
            !scene.last_request().text.contains("ALPHA") && !scene.last_request().text.contains("BETA"),
            "nothing of what was explored"
        );
        let result = results(&scene).pop().unwrap();
        assert!(result.contains("Rewind requested"), "{result}");
        assert!(!results(&scene)[0].contains("rewind"), "nothing that lasts tells it to go back");
        assert_eq!(scene.view().entries.iter().filter(|entry| matches!(entry.body, Body::Reply { .. })).count(), 5);
        let details = scene.stored().entries().iter().find_map(|entry| match &entry.body {
            Body::ToolResult { details: Some(details @ Details::Rewound { .. }), .. } => Some(json!(details)),
            _ => None,
        });
        let details = details.expect("the result has details");
        assert_eq!((&details["report"], &details["rewound"]), (&json!("The bug is in b.txt, line 1."), &json!(true)));
        scene.check();
        let context = scene.context();
        scene.restart();
        assert_eq!(scene.context(), context);
        scene.model.assert_exhausted();
    }
}

#[test]
fn results_of_calls_beside_the_rewind_survive() {
    for wire in BOTH {
        let mut scene = scene(wire);
        scene.model.calls("checkpoint", json!({"goal": "look"})).calls("read_file", json!({"path": "a.txt"}));
        scene.model.calls("list_dir", json!({}));
        let answer = Answer::default()
            .calls("bash", json!({"command": "echo beside; exit 3"}))
            .calls("rewind", json!({"report": "Nothing."}))
            .calls("read_file", json!({"path": "b.txt"}));
        scene.model.answers(answer);
        scene.model.says("Done.");
        scene.prompt("look");
        let last = scene.last_request().messages();
        let whole = last.join("\n");
        assert_eq!(whole.matches("ALPHA").count(), 1, "a result beside the checkpoint: {whole}");
        assert_eq!(whole.matches("BETA").count(), 1, "one beside the rewind: {whole}");
        assert_eq!(
            whole.matches("beside").count(),
            1 + whole.matches("echo beside").count(),
            "one that failed: {whole}"
        );
        assert!(whole.contains("This did not work:"), "{whole}");
        assert!(!whole.contains("list_dir"), "{whole}");
        assert!(last.last().unwrap().contains("<report>"), "the report comes last");
        scene.model.assert_exhausted();
    }
}

#[test]
fn what_the_user_says_meanwhile_stays_and_can_be_gone_back_to() {
    let mut scene = scene(Wire::Anthropic);
    scene.model.calls("checkpoint", json!({"goal": "look", "name": "deep"}));
    scene.model.calls("read_file", json!({"path": "a.txt"}));
    scene.model.says("I found something odd. Shall I go on?");
    scene.prompt("look around");
    scene.model.calls("read_file", json!({"path": "b.txt"}));
    scene.model.calls("rewind", json!({"report": "It is odd.", "name": "deep"}));
    scene.model.says("It is odd indeed.");
    let second = scene.prompt("yes, go on");
    let last = scene.last_request();
    assert_eq!(last.text.matches("yes, go on").count(), 1);
    assert_eq!(last.text.matches("Shall I go on?").count(), 1, "only as what the user was shown");
    assert!(!last.text.contains("ALPHA") && !last.text.contains("BETA"));
    let lines = lines(&last);
    let at =
        |text: &str| lines.iter().position(|line| line.contains(text)).unwrap_or_else(|| panic!("{text}: {lines:#?}"));
    assert!(at("look around") < at("yes, go on"), "{lines:#?}");
    assert_eq!(scene.targets().len(), 2, "prompts in the range are targets");
    let whole = scene.context();
    scene.rewind(second, Scope::Both);
    assert!(scene.context().contains("ALPHA"), "the exploration is there again");
    scene.undo();
    assert_eq!(scene.context(), whole);
    // The checkpoint is open again when the rewind to it has left the conversation.
    scene.rewind(second, Scope::Conversation);
    scene.model.calls("rewind", json!({"report": "Another report.", "name": "deep"}));
    scene.model.says("So be it.");
    scene.prompt("stop it");
    assert!(scene.last_request().text.contains("Another report.") && !scene.last_request().text.contains("It is odd."));
    scene.check();
}

#[test]
fn every_mistake_is_explained_and_changes_nothing() {
    let mut scene = scene(Wire::Anthropic);
    let says = |scene: &Scene, wanted: &str| {
        let last = scene.last_request().messages().pop().unwrap();
        assert!(last.contains(wanted), "{wanted}: {last}");
    };
    scene.model.calls("rewind", json!({"report": "r"}));
    scene.model.calls("checkpoint", json!({"goal": "look", "name": "one"}));
    scene.model.calls("checkpoint", json!({"goal": "look", "name": "one"}));
    scene.model.calls("rewind", json!({"report": " \n"}));
    scene.model.calls("rewind", json!({"report": "x".repeat(40_000)}));
    scene.model.calls("rewind", json!({"report": "r", "name": "two"}));
    scene.model.calls("rewind", json!({}));
    scene.model.says("I give up.");
    let prompt = scene.say("try");
    for (request, wanted) in [
        (1, "No active checkpoint"),
        (3, "open checkpoint `one` already"),
        (4, "report cannot be empty"),
        (5, "at most 32768"),
        (6, "No active checkpoint `two`"),
        (7, "report"),
    ] {
        scene.model.wait_for_request(request + 1);
        let last = scene.model.requests()[request].messages().pop().unwrap();
        assert!(last.contains(wanted), "{wanted}: {last}");
    }
    assert_eq!(scene.until_ended(prompt).0, TurnEnd::Done);
    let has_gone_back = |scene: &Scene| {
        scene
            .stored()
            .entries()
            .iter()
            .any(|entry| matches!(entry.body, Body::Summary { by: SummaryBy::Model { .. }, .. }))
    };
    assert!(!has_gone_back(&scene));
    // Once gone back to, it is closed; the answer says what to do instead.
    scene.model.calls("rewind", json!({"report": "First."}));
    scene.model.calls("rewind", json!({"report": "Second.", "name": "one"}));
    scene.model.says("I see.");
    scene.prompt("go back twice");
    says(&scene, "gone back to already");
    assert!(scene.last_request().text.contains("make a new checkpoint"));
    // What the user has cleared away no longer exists.
    scene.model.calls("checkpoint", json!({"goal": "look", "name": "three"}));
    scene.model.says("Marked.");
    scene.prompt("mark");
    scene.request(Action::Clear).unwrap();
    scene.model.calls("rewind", json!({"report": "Third.", "name": "three"}));
    scene.model.says("Well.");
    scene.prompt("go back");
    says(&scene, "no longer exists");
    scene.check();
    scene.model.assert_exhausted();
}

#[test]
fn two_rewinds_in_one_message_are_one() {
    let mut scene = scene(Wire::Anthropic);
    scene.model.calls("checkpoint", json!({"goal": "outer", "name": "outer"}));
    scene.model.calls("checkpoint", json!({"goal": "inner", "name": "inner"}));
    scene.model.calls("rewind", json!({"report": "In."})).calls("rewind", json!({"report": "Out.", "name": "outer"}));
    scene.model.calls("rewind", json!({"report": "Now out."}));
    scene.model.says("Done.");
    scene.prompt("look");
    let requests = scene.model.requests();
    assert!(
        requests[3].text.contains("<report>\\nIn.\\n</report>")
            && requests[3].text.contains("requested in this message already")
    );
    let last = scene.last_request();
    assert!(
        last.text.contains("Now out.") && !last.text.contains("\\nIn.\\n"),
        "the outer one takes the inner with it"
    );
    assert_eq!(last.messages().len(), requests[1].messages().len() + 1);
    scene.check();
}

#[test]
fn checkpoints_beside_one_another_and_beside_a_rewind_are_what_the_model_is_told_of_them() {
    let mut scene = scene(Wire::Anthropic);
    let answer = Answer::default()
        .calls("checkpoint", json!({"goal": "look", "name": "one"}))
        .calls("checkpoint", json!({"goal": "look", "name": "two"}))
        .calls("checkpoint", json!({"goal": "look", "name": "one"}));
    scene.model.answers(answer);
    scene.model.calls("rewind", json!({"report": "First.", "name": "one"}));
    // The other one was made at the same place, and is still in the conversation.
    scene.model.calls("rewind", json!({"report": "Second.", "name": "two"}));
    scene.model.says("Done.");
    scene.prompt("look");
    let requests = scene.model.requests();
    assert!(requests[1].text.contains("There is an open checkpoint `one` already"), "{}", requests[1].text);
    let last = scene.last_request();
    assert!(last.text.contains("Second.") && !last.text.contains("First."), "{}", last.text);
    assert_eq!(last.messages().len(), requests[1].messages().len() + 1);
    // What is called together with a rewind is left behind: no checkpoint can be made there.
    scene.model.calls("checkpoint", json!({"goal": "look", "name": "three"}));
    for (calls, said) in [
        (["rewind", "checkpoint"], "make the checkpoint once you have gone back"),
        (["checkpoint", "rewind"], "ask for the rewind in a message of its own"),
    ] {
        let arguments = |tool: &str| match tool {
            "rewind" => json!({"report": "Third.", "name": "three"}),
            _ => json!({"goal": "look", "name": "four"}),
        };
        scene
            .model
            .answers(calls.into_iter().fold(Answer::default(), |answer, tool| answer.calls(tool, arguments(tool))));
        scene.model.says("Done.");
        scene.prompt("go on");
        let last = scene.last_request();
        assert!(last.text.contains(said), "{said}: {}", last.text);
        let is_made = last.text.contains("Checkpoint `four` made");
        assert_eq!(is_made, calls[0] == "checkpoint", "{}", last.text);
        scene.model.calls("checkpoint", json!({"goal": "look", "name": "three"}));
    }
    scene.model.clear();
    scene.check();
}

#[test]
fn files_go_back_only_if_asked_and_conflicts_are_told() {
    let mut scene = scene(Wire::Anthropic);
    scene.model.calls("checkpoint", json!({"goal": "try", "name": "try"}));
    scene.model.calls("read_file", json!({"path": "a.txt"}));
    scene.model.calls("edit_file", json!({"path": "a.txt", "old": "ALPHA", "new": "GAMMA"}));
    scene.model.calls("bash", json!({"command": "echo new > c.txt"}));
    scene.model.calls("rewind", json!({"report": "It works."}));
    scene.model.says("Kept.");
    let first = scene.prompt("try it and keep it");
    assert_eq!(scene.read("c.txt").as_deref(), Some("new\n"));
    assert!(scene.last_request().text.contains("nothing of that was taken back"), "{}", scene.last_request().text);
    scene.model.calls("checkpoint", json!({"goal": "try", "name": "again"}));
    scene.model.calls("bash", json!({"command": "echo newer > c.txt; mkdir d; echo x > d/x; rm b.txt"}));
    scene.model.calls("rewind", json!({"report": "It does not.", "restore_files": true}));
    scene.model.says("Gone.");
    let second = scene.prompt("try it and take it back");
    assert_eq!(scene.read("c.txt").as_deref(), Some("new\n"));
    assert_eq!(scene.read("b.txt").as_deref(), Some("BETA\n"));
    assert_eq!(scene.read("d/x"), None);
    let told = scene.last_request().messages().pop().unwrap();
    assert!(
        told.contains("taken back to how they were") && told.contains("- c.txt") && told.contains("- b.txt"),
        "{told}"
    );
    // It belongs to the turn: one undo takes all of it back.
    let after = scene.files();
    scene.undo();
    assert_eq!(scene.files(), after, "what the turn did to files was taken back by itself");
    assert_eq!(scene.view().head(), scene.stored().head());
    assert_eq!(scene.targets()[0].id, first);
    scene.redo();
    assert_eq!(scene.targets()[0].id, second);
    assert_eq!(scene.files(), after);
    // Somebody else's edit is never overwritten.
    scene.model.calls("checkpoint", json!({"goal": "try", "name": "third"}));
    scene.model.calls("bash", json!({"command": "echo third > c.txt"}));
    let gate = scene.model.calls("rewind", json!({"report": "No.", "restore_files": true})).pauses();
    scene.model.says("Stopped.");
    let prompt = scene.say("try once more");
    gate.wait_until_reached();
    scene.write("c.txt", "a person's\n");
    gate.open();
    assert_eq!(scene.until_ended(prompt).0, TurnEnd::Done);
    assert_eq!(scene.read("c.txt").as_deref(), Some("a person's\n"));
    let told = scene.last_request().messages().pop().unwrap();
    assert!(told.contains("NOT taken back") && told.contains("c.txt"), "{told}");
    scene.check();
    scene.model.assert_exhausted();
}

#[test]
fn the_files_of_a_turn_go_back_with_it_whatever_the_model_took_back_itself() {
    let mut scene = scene(Wire::Anthropic);
    let before = scene.files();
    scene.model.calls("bash", json!({"command": "echo 1 > c.txt; echo 1 > a.txt"}));
    scene.model.calls("checkpoint", json!({"goal": "try"}));
    scene.model.calls("bash", json!({"command": "echo 2 > c.txt; echo 2 > d.txt"}));
    scene.model.calls("rewind", json!({"report": "No.", "restore_files": true}));
    scene.model.calls("bash", json!({"command": "echo 3 > c.txt"}));
    scene.model.says("Done.");
    let prompt = scene.prompt("work");
    let after = scene.files();
    assert_eq!((scene.read("c.txt").as_deref(), scene.read("d.txt")), (Some("3\n"), None));
    scene.undo();
    assert_eq!(scene.files(), before);
    scene.redo();
    assert_eq!(scene.files(), after);
    scene.rewind(prompt, Scope::Code);
    assert_eq!(scene.files(), before);
    scene.check();
}

#[test]
fn it_holds_after_a_restart_at_every_moment() {
    let mut scene = scene(Wire::OpenAi);
    scene.model.calls("checkpoint", json!({"goal": "look"}));
    scene.model.calls("read_file", json!({"path": "a.txt"}));
    scene.model.says("More tomorrow.");
    scene.prompt("look");
    scene.restart();
    // Interrupted while a call beside the rewind runs: both calls have their results, so the model has gone back.
    let answer = Answer::default()
        .calls("rewind", json!({"report": "It is in a."}))
        .calls("bash", json!({"command": "echo started; sleep 100"}));
    scene.model.answers(answer);
    let prompt = scene.say("finish");
    scene.until(|kind| matches!(kind, retake_agent::contract::EventKind::CallOutput { .. }));
    scene.interrupt(prompt);
    let context = scene.context();
    assert!(context.contains("It is in a.") && !context.contains("ALPHA"), "{context}");
    scene.check();
    scene.restart();
    assert_eq!(scene.context(), context, "it is not done twice");
    scene.undo();
    assert!(scene.context().contains("ALPHA"));
    scene.redo();
    assert_eq!(scene.context(), context);
    scene.restart();
    assert_eq!(scene.context(), context);
    scene.check();
}

#[test]
fn without_the_setting_there_are_no_such_tools() {
    let mut scene = Scene::new().start();
    scene.model.calls("checkpoint", json!({"goal": "look"}));
    scene.model.says("No?");
    scene.prompt("look");
    assert!(!scene.last_request().body()["tools"].to_string().contains("rewind"));
    assert!(results(&scene)[0].contains("There is no tool `checkpoint`"));
}

#[test]
fn a_rewind_of_the_users_cannot_be_mixed_up_with_the_models() {
    let mut scene = scene(Wire::Anthropic);
    explores(&scene);
    scene.model.says("Found.");
    scene.prompt("find it");
    let entries = scene.stored().entries().to_vec();
    let asked = entries
        .iter()
        .find(|entry| matches!(&entry.body, Body::ToolResult { details: Some(Details::Rewound { .. }), .. }));
    // Back to just before the model's rewind took effect: what it asked for then is not done now.
    let goal = crate::scene::rewind_goal(asked.unwrap().id, Scope::Conversation);
    scene.apply(retake_agent::contract::Change::new(goal), WhileRunning::Refuse).unwrap();
    let context = scene.context();
    assert!(context.contains("ALPHA"));
    scene.restart();
    assert_eq!(scene.context(), context);
    scene.model.says("Hm.");
    scene.prompt("what now?");
    assert!(scene.last_request().text.contains("BETA"));
    scene.check();
}

#[test]
fn a_rewind_that_a_process_which_died_was_about_to_make_is_made_once() {
    let mut scene = scene(Wire::Anthropic);
    scene.model.calls("checkpoint", json!({"goal": "look"}));
    scene.model.calls("bash", json!({"command": "cat a.txt; echo tried > c.txt"}));
    scene.model.says("More tomorrow.");
    scene.prompt("look");
    let before = scene.context();
    scene.close();
    dies_before_it_goes_back(&scene);
    scene.reopen();
    let context = scene.context();
    assert!(context.contains("It is in a.") && !context.contains("ALPHA"), "{context}");
    assert!(context.contains("taken back to how they were"), "{context}");
    assert_eq!(scene.read("c.txt"), None);
    scene.check();
    scene.restart();
    assert_eq!(scene.context(), context);
    scene.undo();
    assert_eq!(scene.context(), before, "one undo takes back the turn with the rewind in it");
    assert_eq!(scene.read("c.txt").as_deref(), Some("tried\n"));
    scene.check();
}

/// Writes what a process leaves behind that is killed when the model has asked to go back.
fn dies_before_it_goes_back(scene: &Scene) {
    let workspace = scene.workspace();
    let mut writer = workspace.sessions().open(scene.session(), ids::now(), &mut ids::random).unwrap();
    let checkpoint = writer.conversation().entries().iter().find_map(|entry| match &entry.body {
        Body::ToolResult { details: Some(Details::Checkpoint { .. }), .. } => Some(entry.id),
        _ => None,
    });
    let new = |body| NewEntry { id: ids::entry(), at: ids::now(), body };
    let prompt = new(Body::Prompt { parts: vec![Part::text("finish")] });
    let turn = NewTurn {
        operation: ids::operation(),
        at: ids::now(),
        made_by: MadeBy::Client,
        entries: vec![prompt],
        draft: Vec::new(),
    };
    writer.begin_turn(turn).unwrap();
    let (call, report) = (CallId("c1".to_owned()), "It is in a.".to_owned());
    let arguments = json!({"report": report, "restore_files": true}).to_string();
    let blocks = vec![Block::Call { id: call.clone(), name: "rewind".to_owned(), arguments }];
    let model = "anthropic/scripted".to_owned();
    let reply = Body::Reply { blocks, model, usage: Usage::default(), stop: StopReason::Calls };
    let details =
        Details::Rewound { report, rewound: true, checkpoint: checkpoint.expect("one was made"), restore_files: true };
    let (title, parts) = ("rewind".to_owned(), vec![Part::text("Rewind requested.")]);
    let result = Body::ToolResult { call, title, outcome: Outcome::Done, parts, todos: None, details: Some(details) };
    writer.append(vec![new(reply), new(result)], Durability::Soon).unwrap();
}

#[test]
fn many_explorations_stay_cheap() {
    let mut scene = scene(Wire::Anthropic);
    for number in 0..40 {
        scene.model.calls("checkpoint", json!({"goal": "look", "name": number.to_string()}));
        scene.model.calls("rewind", json!({"report": format!("Report {number}.")}));
    }
    scene.model.says("Done.");
    scene.prompt("look forty times");
    assert_eq!(scene.last_request().text.matches("<report>").count(), 40);
    scene.check();
}

#[test]
fn what_a_person_does_beside_a_job_or_by_a_rewind_is_not_taken_back_by_the_model() {
    let mut scene = scene(Wire::Anthropic);
    scene.model.calls("checkpoint", json!({"goal": "serve"}));
    scene.model.calls("bash", json!({"command": "sleep 100", "background": true}));
    let gate = scene.model.says("It runs.").pauses();
    let first = scene.say("start it");
    gate.wait_until_reached();
    scene.write("a.txt", "a person's\n");
    scene.write("mine.txt", "mine\n");
    gate.open();
    scene.until_ended(first);
    scene.model.calls("rewind", json!({"report": "It ran.", "restore_files": true}));
    scene.model.says("Stopped.");
    scene.prompt("stop it");
    assert_eq!(scene.read("a.txt").as_deref(), Some("a person's\n"));
    assert_eq!(scene.read("mine.txt").as_deref(), Some("mine\n"));
    let told = scene.last_request().messages().pop().unwrap();
    assert!(told.contains("NOT taken back") && told.contains("a.txt"), "{told}");
    assert!(told.contains("Background jobs that go on") && told.contains("sleep 100"), "{told}");
    // What the user had brought back is theirs.
    scene.model.calls("bash", json!({"command": "echo 1 > b.txt"}));
    scene.model.calls("checkpoint", json!({"goal": "try"}));
    scene.model.calls("bash", json!({"command": "echo 2 > b.txt"}));
    scene.model.says("Tried.");
    let third = scene.prompt("try");
    scene.rewind(third, Scope::Code);
    assert_eq!(scene.read("b.txt").as_deref(), Some("BETA\n"));
    scene.model.calls("rewind", json!({"report": "No.", "restore_files": true}));
    scene.model.says("Well.");
    scene.prompt("go on");
    assert_eq!(scene.read("b.txt").as_deref(), Some("BETA\n"));
    assert!(scene.last_request().messages().pop().unwrap().contains("NOT taken back"));
    scene.check();
}

#[test]
fn files_go_back_only_where_edits_are_allowed_and_people_are_told() {
    let mut scene = Scene::new().exploring().file("a.txt", "ALPHA\n").start();
    scene.model.calls("checkpoint", json!({"goal": "try"}));
    scene.model.calls("bash", json!({"command": "echo 1 > a.txt"}));
    scene.model.says("Tried.");
    scene.prompt("try");
    scene.model.calls("rewind", json!({"report": "No.", "restore_files": true}));
    scene.model.calls("rewind", json!({"report": "No."}));
    scene.model.says("So be it.");
    let parts = vec![Part::text("only look")];
    let none =
        Action::Prompt { parts, allow: Some(Allow::None), unprotected: false, draft: None, mentions: Mentions::Leave };
    let Reply::Said { prompt } = scene.request(none).unwrap() else { panic!("it is said") };
    scene.until_ended(prompt);
    assert_eq!(scene.read("a.txt").as_deref(), Some("1\n"));
    assert!(scene.last_request().text.contains("<report>"));
    scene.model.calls("checkpoint", json!({"goal": "try"}));
    scene.model.calls("bash", json!({"command": "echo 2 > a.txt"}));
    scene.model.calls("rewind", json!({"report": "No.", "restore_files": true}));
    scene.model.says("Back.");
    scene.prompt("try again");
    assert_eq!(scene.read("a.txt").as_deref(), Some("1\n"));
    let told = |kind: &EventKind| matches!(kind, EventKind::Warning { text } if text.contains("took back") && text.contains("a.txt"));
    assert!(scene.told().iter().any(told));
    // It belongs to the turn, and is taken back with it.
    let made = scene.workspace().operations().all().unwrap();
    let by_model = made.iter().find(|operation| operation.made_by == MadeBy::Model).expect("the model's rewind");
    let refused = scene.change(ChangeGoal::Undo { operation: Some(by_model.id.to_string()) }).unwrap_err();
    assert!(refused.message.contains("part of the turn"), "{refused:?}");
}
