//! Turns and rewinds as a person sees them.

use retake_engine::session::Scope;
use serde_json::json;

use crate::scene::{Scene, Wire};

#[test]
fn rewinding_both_restores_files_and_forgets_the_turn() {
    for wire in [Wire::Anthropic, Wire::OpenAi] {
        let mut scene = Scene::with(wire).file("a.txt", "one\n").start();
        scene.model.says("I will.").calls("bash", json!({"command": "echo two > a.txt; echo new > b.txt"}));
        scene.model.says("Done.");
        let first = scene.prompt("change a");
        assert_eq!(scene.files(), "a.txt: two\nb.txt: new\n");
        scene.check();
        let document = scene.rewind(first, Scope::Both);
        assert_eq!(document.conversation_moved, Some(true), "{document:#?}");
        assert_eq!(scene.files(), "a.txt: one\n");
        assert_eq!(scene.draft(), "change a");
        scene.check();
        scene.model.says("Hello.");
        scene.prompt("start over");
        let transcript = scene.last_request().transcript();
        assert!(transcript.ends_with("user: start over"), "{transcript}");
        assert!(!transcript.contains("change a"), "{transcript}");
        scene.model.assert_exhausted();
    }
}
