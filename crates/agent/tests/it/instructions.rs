//! Instructions of the workspace are entries, and go back with the rest.

use retake_agent::contract::EventKind;
use retake_engine::session::Scope;

use crate::scene::{Scene, Wire};

#[test]
fn a_changed_file_of_instructions_is_told_anew_and_nothing_before_it_changes() {
    for wire in [Wire::Anthropic, Wire::OpenAi] {
        let mut scene = Scene::with(wire).file("AGENTS.md", "Use tabs.\n").start();
        scene.model.says("Tabs.");
        scene.prompt("hello");
        let first = scene.last_request();
        scene.model.says("Still tabs.");
        scene.prompt("and?");
        assert_eq!(scene.last_request().text.matches("Use tabs.").count(), 1, "what has not changed is not told again");
        scene.write("AGENTS.md", "Use spaces.\n");
        scene.model.says("Spaces.");
        let third = scene.prompt("format");
        let asked = scene.last_request();
        assert!(asked.messages().starts_with(&first.messages()));
        let transcript = asked.transcript();
        let (_, after) = transcript.split_once("Still tabs.").unwrap();
        assert!(after.contains("Use spaces."), "{transcript}");
        scene.rewind(third, Scope::Conversation);
        scene.write("AGENTS.md", "Use tabs.\n");
        scene.model.says("Tabs again.");
        scene.prompt("format");
        let transcript = scene.last_request().transcript();
        assert!(!transcript.contains("Use spaces."), "what was told with the prompt went with it: {transcript}");
        assert!(transcript.contains("Use tabs."), "{transcript}");
        scene.check();
        scene.model.assert_exhausted();
    }
}

#[test]
fn instructions_that_are_gone_are_said_to_be_gone_once() {
    let mut scene = Scene::new().file("AGENTS.md", "Use tabs.\n").start();
    scene.model.says("Yes.");
    scene.prompt("hello");
    std::fs::remove_file(scene.root().join("AGENTS.md")).unwrap();
    for prompt in ["one", "two"] {
        scene.model.says("Yes.");
        scene.prompt(prompt);
    }
    assert_eq!(scene.last_request().text.matches("holds no longer").count(), 1);
    scene.model.assert_exhausted();
}

#[test]
fn a_link_to_instructions_outside_the_workspace_is_not_followed_and_people_are_told() {
    let mut scene = Scene::new().start();
    let outside = scene.root().with_file_name("outside");
    std::fs::write(&outside, "SECRET\n").unwrap();
    std::os::unix::fs::symlink(&outside, scene.root().join("AGENTS.md")).unwrap();
    scene.model.says("Yes.");
    scene.prompt("hello");
    assert!(!scene.last_request().text.contains("SECRET"));
    let is_warning = |kind: &EventKind| matches!(kind, EventKind::Warning { text } if text.contains("`AGENTS.md`"));
    assert!(scene.told().iter().any(is_warning));
    std::fs::remove_file(scene.root().join("AGENTS.md")).unwrap();
    scene.write("docs/rules.md", "Use tabs.\n");
    std::os::unix::fs::symlink("docs/rules.md", scene.root().join("AGENTS.md")).unwrap();
    scene.model.says("Yes.");
    scene.prompt("and now?");
    assert!(scene.last_request().text.contains("Use tabs."), "one that stays inside is followed");
    scene.model.assert_exhausted();
}

#[test]
fn a_file_of_instructions_that_is_no_text_or_too_long_does_no_harm() {
    let mut scene = Scene::new().start();
    std::fs::write(scene.root().join("AGENTS.md"), [0xff, 0xfe, 0]).unwrap();
    scene.model.says("Yes.");
    scene.prompt("hello");
    assert!(!scene.last_request().text.contains("AGENTS.md"));
    scene.write("AGENTS.md", &"語".repeat(40_000));
    scene.model.says("Yes.");
    scene.prompt("and now?");
    assert!(scene.last_request().text.contains("the rest of the file was left out"));
    scene.model.assert_exhausted();
}
