//! R61: who may do what.

use retake_agent::contract::{Action, Allow, EventKind, Mentions, PermissionAnswer, Reply, State};
use retake_agent::permission::Allowed;
use retake_engine::id::EntryId;
use retake_engine::session::entry::Part;
use serde_json::{Value, json};

use crate::scene::{Scene, Wire};

const BOTH: [Wire; 2] = [Wire::Anthropic, Wire::OpenAi];

fn write(path: &str) -> Value {
    json!({"path": path, "content": "x\n"})
}

#[test]
fn the_user_is_asked_and_the_session_is_paused_until_they_answer() {
    let mut scene = Scene::new().interactive().start();
    scene.model.calls("bash", json!({"command": "echo x > a.txt"}));
    scene.model.says("Done.");
    let prompt = scene.say("write");
    let question = scene.until_asked();
    assert_eq!((question.tool.as_str(), question.title.as_str()), ("bash", "bash: echo x > a.txt"));
    scene.until(|kind| matches!(kind, EventKind::StateChanged { state: State::Paused }));
    assert_eq!(scene.files(), "");
    scene.check();
    scene.answer(&question, PermissionAnswer::Allow);
    scene.until_ended(prompt);
    assert_eq!((scene.files().as_str(), scene.state()), ("a.txt: x\n", State::Idle));
    scene.check();
    scene.model.assert_exhausted();
}

#[test]
fn a_denied_call_is_told_to_the_model_with_the_reason() {
    for wire in BOTH {
        let mut scene = Scene::with(wire).interactive().start();
        scene.model.calls("write_file", write("a.txt"));
        scene.model.says("Sorry.");
        let prompt = scene.say("write");
        let question = scene.until_asked();
        scene.answer(&question, PermissionAnswer::Deny { why: Some("not there".to_owned()) });
        scene.until_ended(prompt);
        let transcript = scene.last_request().transcript();
        assert!(
            transcript.contains("tool: The user did not allow this call.") && transcript.contains("not there"),
            "{transcript}"
        );
        assert_eq!(scene.files(), "");
        scene.check();
        scene.model.assert_exhausted();
    }
}

#[test]
fn what_is_allowed_always_is_not_asked_again_after_a_restart_either() {
    let mut scene = Scene::new().interactive().start();
    scene.model.calls("write_file", write("a.txt")).calls("write_file", write("b.txt"));
    scene.model.says("Both.");
    let prompt = scene.say("write two");
    let question = scene.until_asked();
    let rule = question.rule.clone().unwrap();
    scene.answer(&question, PermissionAnswer::AllowAlways { rule });
    // The other one is of the same kind, and nobody has to answer for it.
    scene.until_ended(prompt);
    assert_eq!(scene.files(), "a.txt: x\nb.txt: x\n");
    assert!(scene.view().questions.is_empty());
    scene.restart();
    scene.model.calls("write_file", write("c.txt"));
    scene.model.says("Written.");
    scene.prompt("a third");
    assert_eq!(scene.files(), "a.txt: x\nb.txt: x\nc.txt: x\n");
    scene.check();
    scene.model.assert_exhausted();
}

#[test]
fn reading_is_free_and_comes_before_a_question_that_follows_it() {
    let mut scene = Scene::new().interactive().file("a.txt", "alpha\n").start();
    scene.model.calls("read_file", json!({"path": "a.txt"})).calls("write_file", write("b.txt"));
    scene.model.says("Done.");
    let prompt = scene.say("both");
    scene.until(|kind| matches!(kind, EventKind::Appended { entry } if format!("{entry:?}").contains("alpha")));
    let question = scene.until_asked();
    scene.answer(&question, PermissionAnswer::Allow);
    scene.until_ended(prompt);
    scene.check();
    scene.model.assert_exhausted();
}

#[test]
fn a_call_sees_what_those_before_it_in_the_answer_have_done() {
    for wire in BOTH {
        let mut scene = Scene::with(wire).start();
        scene
            .model
            .calls("bash", json!({"command": "sleep 0.2; echo made > a.txt"}))
            .calls("read_file", json!({"path": "a.txt"}))
            .calls("list_dir", json!({}));
        scene.model.says("Done.");
        scene.prompt("make and read");
        let transcript = scene.last_request().transcript();
        assert!(transcript.contains("made") && !transcript.contains("There is no file"), "{transcript}");
        scene.check();
        scene.model.assert_exhausted();
    }
}

#[test]
fn without_anybody_to_ask_the_flag_decides() {
    for (allowed, files, words) in [
        (Allowed::None, "", "--allow none"),
        (Allowed::Edits, "a.txt: x\n", "--allow edits"),
        (Allowed::All, "a.txt: x\nb.txt: x\n", ""),
    ] {
        let mut scene = Scene::new().allowing(allowed).start();
        scene.model.calls("write_file", write("a.txt")).calls("bash", json!({"command": "echo x > b.txt"}));
        scene.model.says("Done.");
        scene.prompt("both");
        assert_eq!(scene.files(), files, "{allowed:?}");
        assert!(scene.last_request().transcript().contains(words), "{allowed:?}");
        scene.check();
        scene.model.assert_exhausted();
    }
}

#[test]
fn a_prompt_can_say_what_may_run_in_its_turn_and_in_no_other() {
    let mut scene = Scene::new().start();
    let bash = |scene: &Scene, file: &str| {
        scene.model.calls("bash", json!({"command": format!("echo x > {file}")}));
        scene.model.says("Done.");
    };
    let reading_only = |text: &str| Action::Prompt {
        parts: vec![Part::text(text)],
        allow: Some(Allow::None),
        unprotected: false,
        draft: None,
        mentions: Mentions::Leave,
    };
    let ended = |scene: &mut Scene| -> EntryId {
        match scene.until(|kind| matches!(kind, EventKind::TurnEnded { .. })) {
            EventKind::TurnEnded { prompt, .. } => prompt,
            _ => unreachable!(),
        }
    };
    bash(&scene, "a.txt");
    scene.prompt("as the session");
    bash(&scene, "b.txt");
    let Reply::Said { prompt } = scene.request(reading_only("reading only")).unwrap() else { panic!("not said") };
    scene.until_ended(prompt);
    assert!(scene.last_request().transcript().contains("--allow none"), "{}", scene.last_request().transcript());
    let gate = scene.model.says("Wait.").pauses();
    let held = scene.say("slow");
    scene.request(reading_only("reading only, held")).unwrap();
    bash(&scene, "c.txt");
    gate.open();
    scene.until_ended(held);
    ended(&mut scene);
    assert_eq!(scene.files(), "a.txt: x\n");
    bash(&scene, "d.txt");
    scene.prompt("as the session again");
    assert_eq!(scene.files(), "a.txt: x\nd.txt: x\n");
    scene.check();
    scene.model.assert_exhausted();
}

#[test]
fn a_question_about_a_command_of_many_lines_tells_all_of_it() {
    let mut scene = Scene::new().interactive().start();
    let command = "\necho one\nrm -rf x\necho three\n";
    scene.model.calls("bash", json!({"command": command}));
    scene.model.says("No.");
    let prompt = scene.say("run");
    let question = scene.until_asked();
    assert_eq!((question.title.as_str(), question.detail.as_deref()), ("bash: echo one … (+2 lines)", Some(command)));
    scene.answer(&question, PermissionAnswer::Deny { why: None });
    scene.until_ended(prompt);
    scene.model.assert_exhausted();
}

#[test]
fn nothing_is_written_outside_the_workspace() {
    let mut scene = Scene::new().start();
    scene.model.calls("write_file", write("../outside.txt"));
    scene.model.says("No.");
    scene.prompt("write outside");
    assert!(!scene.dir.path().join("outside.txt").exists());
    assert!(scene.last_request().transcript().contains("outside"));
    scene.model.assert_exhausted();
}
