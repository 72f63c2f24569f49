//! R36: the model is never left with a falsehood about files.

use retake_engine::session::Scope;
use retake_engine::session::entry::Body;
use serde_json::json;

use crate::scene::{Scene, Wire};

#[test]
fn after_files_alone_went_back_the_model_is_told_which() {
    for wire in [Wire::Anthropic, Wire::OpenAi] {
        let mut scene = Scene::with(wire).file("a.txt", "one\n").start();
        scene.model.calls("bash", json!({"command": "echo two > a.txt"}));
        scene.model.says("Changed.");
        let first = scene.prompt("change a");
        let before = scene.context();
        let document = scene.rewind(first, Scope::Code);
        assert!(document.conversation.as_ref().is_some_and(|planned| planned.leaves.is_empty()), "{document:#?}");
        assert_eq!((scene.files().as_str(), scene.draft().as_str()), ("a.txt: one\n", ""));
        scene.check();
        scene.model.says("I see.");
        let second = scene.prompt("and now?");
        let transcript = scene.last_request().transcript();
        let (_, after) = transcript.split_once("Changed.").unwrap();
        assert!(after.contains("taken these files back") && after.contains("a.txt"), "{transcript}");
        assert!(after.trim_end().ends_with("and now?"), "{transcript}");
        scene.rewind(second, Scope::Both);
        scene.undo();
        scene.undo();
        assert_eq!(scene.files(), "a.txt: one\n", "the prompt after it was undone");
        scene.undo();
        assert_eq!(
            (scene.files().as_str(), scene.context()),
            ("a.txt: two\n", before),
            "and then the rewind, with its note"
        );
        scene.check();
        scene.model.assert_exhausted();
    }
}

#[test]
fn after_words_alone_went_back_the_model_is_told_which_files_differ() {
    for wire in [Wire::Anthropic, Wire::OpenAi] {
        let mut scene = Scene::with(wire).file("a.txt", "one\n").start();
        scene.model.says("Hello.");
        scene.prompt("hello");
        scene.model.calls("bash", json!({"command": "echo two > a.txt"}));
        scene.model.says("Changed.");
        let second = scene.prompt("change a");
        let whole = scene.context();
        let document = scene.rewind(second, Scope::Conversation);
        assert!(document.files.is_empty(), "{document:#?}");
        assert!(!document.ledger.is_empty(), "what the command did stays, and that is said");
        assert_eq!((scene.files().as_str(), scene.draft().as_str()), ("a.txt: two\n", "change a"));
        scene.check();
        scene.model.says("I see.");
        scene.prompt("change it differently");
        let transcript = scene.last_request().transcript();
        let (_, after) = transcript.split_once("Hello.").unwrap();
        assert!(
            after.contains("but not the files") && after.contains("a.txt") && !after.contains("Changed."),
            "{transcript}"
        );
        scene.undo();
        scene.undo();
        assert_eq!(scene.context(), whole, "undo takes the note back");
        scene.check();
        scene.model.assert_exhausted();
    }
}

#[test]
fn nothing_is_said_of_files_that_are_as_the_model_saw_them() {
    let mut scene = Scene::new().file("a.txt", "one\n").start();
    scene.model.says("Hello.");
    scene.prompt("hello");
    let before = scene.context();
    scene.model.says("Yes.");
    let second = scene.prompt("are you there?");
    scene.rewind(second, Scope::Conversation);
    assert_eq!(scene.context(), before);
    scene.check();
}

#[test]
fn notes_and_instructions_are_no_targets_and_do_not_count() {
    let mut scene = Scene::new().file("AGENTS.md", "Be kind.\n").start();
    scene.model.calls("write_file", json!({"path": "a.txt", "content": "a\n"}));
    scene.model.says("Done.");
    let first = scene.prompt("  write a\nand nothing else");
    scene.rewind(first, Scope::Code);
    scene.model.says("Yes.");
    let second = scene.prompt("really?");
    let targets = scene.targets();
    let shown: Vec<_> = targets.iter().map(|target| (target.number, target.id, target.text.as_str())).collect();
    assert_eq!(shown, [(2, second, "really?"), (1, first, "write a")], "labels are what was typed");
    let view = scene.view();
    let synthetic =
        view.entries.iter().filter(|entry| matches!(entry.body, Body::Note { .. } | Body::Instructions { .. }));
    let synthetic: Vec<_> = synthetic.map(|entry| entry.id).collect();
    assert_eq!(synthetic.len(), 3, "{:#?}", view.entries);
    for entry in synthetic {
        let refusal = scene.change(crate::scene::rewind_goal(entry, Scope::Both)).unwrap_err();
        assert_eq!(refusal.reason, retake_agent::contract::Reason::Invalid, "{refusal:?}");
    }
    scene.check();
    scene.model.assert_exhausted();
}
