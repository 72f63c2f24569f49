//! R37, R38: what the model was told once it is told in the same bytes again, whatever went back and came back in between.

use retake_agent::contract::Action;
use retake_engine::id::EntryId;
use retake_engine::session::Scope;
use serde_json::json;

use crate::scene::{Scene, Wire};

const BOTH: [Wire; 2] = [Wire::Anthropic, Wire::OpenAi];

/// Three turns with thoughts, parallel calls and several rounds; the prompts.
fn three_turns(scene: &mut Scene) -> [EntryId; 3] {
    scene.model.thinks("Look first.").calls("read_file", json!({"path": "a.txt"})).calls("list_dir", json!({}));
    scene.model.thinks("Now write.").says("I write.").calls("write_file", json!({"path": "b.txt", "content": "b\n"}));
    scene.model.says("First is done.");
    let first = scene.prompt("first");
    scene.model.calls("bash", json!({"command": "echo c > c.txt; echo told"}));
    scene.model.says("Second is done.");
    let second = scene.prompt("second");
    scene.model.says("Third is done.");
    let third = scene.prompt("third");
    [first, second, third]
}

/// The body of a request, open at its end: everything that goes on from it begins with this.
fn beginning(body: &str) -> &str {
    body.strip_suffix("]}").expect("messages come last")
}

#[test]
fn the_same_prompt_after_a_rewind_makes_the_same_request() {
    for wire in BOTH {
        let mut scene = Scene::with(wire).file("a.txt", "a\n").start();
        let [_, second, third] = three_turns(&mut scene);
        let requests = scene.model.requests();
        let (asked_second, asked_third) = (requests[3].text_without_marks(), requests[5].text_without_marks());
        scene.rewind(third, Scope::Both);
        scene.check();
        scene.model.says("Again.");
        let third = scene.prompt("third");
        assert_eq!(scene.last_request().text_without_marks(), asked_third);
        scene.rewind(third, Scope::Both);
        scene.rewind(second, Scope::Both);
        scene.restart();
        scene.check();
        scene.model.says("Once more.");
        scene.prompt("second");
        assert_eq!(scene.last_request().text_without_marks(), asked_second);
        scene.model.assert_exhausted();
    }
}

#[test]
fn undo_redo_and_a_restart_change_no_byte_of_what_was_said() {
    for wire in BOTH {
        let mut scene = Scene::with(wire).file("a.txt", "a\n").start();
        let [_, second, _] = three_turns(&mut scene);
        let whole = scene.context();
        let last = scene.last_request().text_without_marks();
        assert!(whole.starts_with(beginning(&last)), "{last}\n{whole}");
        scene.rewind(second, Scope::Both);
        let shorter = scene.context();
        assert!(whole.starts_with(beginning(&shorter)) && shorter.len() < whole.len());
        scene.undo();
        assert_eq!(scene.context(), whole);
        scene.redo();
        assert_eq!(scene.context(), shorter);
        scene.restart();
        assert_eq!(scene.context(), shorter);
        scene.undo();
        scene.restart();
        assert_eq!(scene.context(), whole);
        scene.check();
        scene.model.says("Fourth is done.");
        scene.prompt("fourth");
        assert!(scene.last_request().text_without_marks().starts_with(beginning(&whole)));
        scene.model.assert_exhausted();
    }
}

#[test]
fn going_back_to_one_of_several_results_keeps_its_siblings() {
    for wire in BOTH {
        let mut scene = Scene::with(wire).file("a.txt", "alpha\n").file("b.txt", "beta\n").start();
        scene.model.calls("read_file", json!({"path": "a.txt"})).calls("read_file", json!({"path": "b.txt"}));
        scene.model.says("Both were read.");
        scene.prompt("read both");
        let asked = scene.last_request().text_without_marks();
        let results =
            scene.stored().entries().iter().filter(|entry| is_result(entry)).map(|entry| entry.id).collect::<Vec<_>>();
        scene.rewind(results[0], Scope::Conversation);
        scene.check();
        assert_eq!(scene.context(), asked, "the first result is there, and so is the other");
        scene.model.assert_exhausted();
    }
}

fn is_result(entry: &retake_engine::session::entry::Entry) -> bool {
    matches!(entry.body, retake_engine::session::entry::Body::ToolResult { .. })
}

#[test]
fn clearing_cuts_what_the_model_sees_and_can_be_undone() {
    for wire in BOTH {
        let mut scene = Scene::with(wire).file("AGENTS.md", "Be kind.\n").start();
        scene.model.says("Noted.");
        let first = scene.prompt("remember 42");
        let whole = scene.context();
        scene.request(Action::Clear).unwrap();
        scene.check();
        scene.model.says("What was it?");
        let second = scene.prompt("go on");
        let transcript = scene.last_request().transcript();
        assert!(!transcript.contains("remember 42") && transcript.contains("Be kind."), "{transcript}");
        assert_eq!(scene.targets().iter().map(|target| target.id).collect::<Vec<_>>(), [second, first]);
        scene.undo();
        scene.undo();
        assert_eq!(scene.context(), whole, "as if nothing had been cleared");
        scene.redo();
        scene.redo();
        scene.rewind(first, Scope::Both);
        scene.check();
        assert_eq!(scene.draft(), "remember 42", "what was cleared can be gone back to");
        scene.model.assert_exhausted();
    }
}
