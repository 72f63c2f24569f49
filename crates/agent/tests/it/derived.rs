//! R30, R31, R32: what leaves the conversation leaves everything that follows from it.

use retake_agent::contract::{Action, ChangeGoal, PermissionAnswer};
use retake_engine::rewind::Files;
use retake_engine::session::entry::TodoState;
use retake_engine::session::{Discard, Scope};
use retake_testkit::model::Tokens;
use serde_json::json;

use crate::scene::{Scene, rewind_goal};

fn todo(state: &str) -> serde_json::Value {
    json!({"items": [{"text": "paint", "state": state}]})
}

#[test]
fn todo_ticks_usage_and_title_go_back() {
    let mut scene = Scene::new().start();
    scene.model.calls("todo", todo("pending")).costs(Tokens { input: 10, output: 1, cache_read: 0, cache_write: 0 });
    scene.model.says("Listed.").costs(Tokens { input: 20, output: 2, cache_read: 0, cache_write: 0 });
    let first = scene.prompt("plan the painting");
    scene.model.calls("todo", todo("done"));
    scene.model.says("Painted.");
    let second = scene.prompt("paint");
    assert_eq!(scene.view().todos()[0].state, TodoState::Done);
    scene.rewind(second, Scope::Both);
    assert_eq!(scene.view().todos()[0].state, TodoState::Pending);
    assert_eq!((scene.view().usage().input, scene.view().usage().output), (30, 3));
    assert_eq!(title(&scene), "plan the painting");
    scene.check();
    scene.rewind(first, Scope::Both);
    assert!(scene.view().todos().is_empty());
    assert_eq!((scene.view().usage().input, title(&scene).as_str()), (0, ""));
    scene.undo();
    scene.undo();
    assert_eq!(scene.view().todos()[0].state, TodoState::Done);
    scene.restart();
    assert_eq!((scene.view().usage().output, title(&scene).as_str()), (43, "plan the painting"));
    scene.check();
    scene.model.assert_exhausted();
}

fn title(scene: &Scene) -> String {
    let sessions = scene.workspace().sessions().all().unwrap();
    sessions.into_iter().find(|session| session.id == scene.session()).unwrap().title
}

#[test]
fn what_was_allowed_after_the_target_is_asked_for_again() {
    let mut scene = Scene::new().interactive().start();
    let write = || json!({"path": "a.txt", "content": "a\n"});
    scene.model.calls("write_file", write());
    scene.model.says("Written.");
    let first = scene.say("write");
    let question = scene.until_asked();
    let rule = question.rule.clone().unwrap();
    scene.answer(&question, PermissionAnswer::AllowAlways { rule });
    scene.until_ended(first);
    scene.model.calls("write_file", write());
    scene.model.says("Again.");
    scene.prompt("write again");
    scene.rewind(first, Scope::Both);
    scene.model.calls("write_file", write());
    scene.model.says("Written.");
    let again = scene.say("write");
    let question = scene.until_asked();
    scene.answer(&question, PermissionAnswer::Allow);
    scene.until_ended(again);
    assert_eq!(scene.files(), "a.txt: a\n");
    scene.model.assert_exhausted();
}

#[test]
fn a_branch_that_was_left_does_not_come_back_after_a_reload() {
    let mut scene = Scene::new().start();
    scene.model.says("One.");
    scene.prompt("first");
    scene.model.says("Two.");
    let second = scene.prompt("second");
    scene.rewind(second, Scope::Both);
    scene.restart();
    scene.check();
    assert_eq!(scene.draft(), "second");
    let texts = |scene: &Scene| scene.targets().into_iter().map(|target| target.text).collect::<Vec<_>>();
    assert_eq!(texts(&scene), ["first"]);
    scene.model.says("Another two.");
    scene.prompt("another second");
    scene.restart();
    assert_eq!(texts(&scene), ["another second", "first"]);
    assert!(!scene.context().contains("Two."));
    scene.check();
    scene.model.assert_exhausted();
}

#[test]
fn what_is_discarded_is_gone_and_what_is_not_can_be_gone_back_to() {
    let mut scene = Scene::new().start();
    scene.model.says("One.");
    let first = scene.prompt("first");
    scene.model.says("Two.");
    let second = scene.prompt("second");
    scene.rewind(second, Scope::Both);
    scene.model.says("Other.");
    scene.prompt("other");
    // The tree still has the branch, and one can go to it.
    let all = scene.workspace().sessions().all_entries(scene.session()).unwrap();
    let left = all.iter().rfind(|entry| entry.parent == Some(second)).unwrap().id;
    scene.rewind(left, Scope::Both);
    scene.check();
    assert!(scene.context().contains("Two.") && !scene.context().contains("Other."));
    let goal = ChangeGoal::Rewind { entry: first, scope: Scope::Both, files: Files::Selective, discard: Discard::Now };
    let document = scene.change(goal).unwrap();
    assert!(document.conversation.unwrap().discards);
    scene.check();
    assert!(scene.change(rewind_goal(second, Scope::Both)).is_err());
    scene.restart();
    scene.check();
    scene.model.assert_exhausted();
}

#[test]
fn a_session_that_was_taken_back_to_nothing_is_still_there_to_be_undone() {
    let mut scene = Scene::new().file("a.txt", "a\n").start();
    scene.model.calls("bash", json!({"command": "echo b > b.txt"}));
    scene.model.says("Done.");
    let first = scene.prompt("make b");
    scene.rewind(first, Scope::Both);
    scene.request(retake_agent::contract::Action::Draft { parts: Vec::new() }).unwrap();
    scene.restart();
    assert_eq!(scene.files(), "a.txt: a\n");
    scene.undo();
    assert_eq!(scene.files(), "a.txt: a\nb.txt: b\n");
    scene.check();
}

#[test]
fn an_unedited_draft_is_taken_back_by_undo_and_an_edited_one_is_not() {
    use retake_engine::session::entry::Part;
    let mut scene = Scene::new().start();
    scene.model.says("One.");
    let first = scene.prompt("first");
    scene.rewind(first, Scope::Both);
    assert_eq!(scene.draft(), "first");
    scene.undo();
    assert_eq!(scene.draft(), "");
    scene.rewind(first, Scope::Both);
    scene.request(Action::Draft { parts: vec![Part::text("first, but better")] }).unwrap();
    scene.undo();
    assert_eq!(scene.draft(), "first, but better");
    scene.check();
}

#[test]
fn a_file_that_was_read_or_written_in_what_is_retained_is_known_after_a_restart() {
    let write = |content: &str| json!({"path": "a.txt", "content": content});
    let mut scene = Scene::new().file("a.txt", "one\n").file("b.txt", "one\n").start();
    scene.model.calls("read_file", json!({"path": "a.txt"}));
    scene.model.says("One.");
    scene.prompt("read a");
    scene.restart();
    scene.model.calls("write_file", write("two\n"));
    scene.model.says("Two.");
    let second = scene.prompt("write a");
    assert_eq!(scene.read("a.txt").as_deref(), Some("two\n"));
    scene.restart();
    scene.model.calls("write_file", write("three\n"));
    scene.model.says("Three.");
    scene.prompt("write a again");
    assert_eq!(scene.read("a.txt").as_deref(), Some("three\n"), "what it wrote itself it knows");
    scene.rewind(second, Scope::Both);
    scene.model.calls("write_file", write("four\n"));
    scene.model.says("Four.");
    scene.prompt("write a once more");
    assert_eq!(scene.read("a.txt").as_deref(), Some("four\n"), "what was read is still told, and true again");
    scene.model.assert_exhausted();
}

#[test]
fn what_the_conversation_does_not_show_as_it_is_now_is_not_overwritten_after_a_restart() {
    let long: String = (0..3000).map(|n| format!("{n}\n")).collect();
    let mut scene = Scene::new().file("a.txt", "one\n").file("long.txt", &long).file("latin.txt", "x").start();
    std::fs::write(scene.root().join("latin.txt"), b"caf\xe9\n").unwrap();
    for name in ["a.txt", "long.txt", "latin.txt"] {
        scene.model.calls("read_file", json!({"path": name}));
        scene.model.says("Read.");
        scene.prompt("read it");
    }
    scene.restart();
    scene.write("a.txt", "by hand\n");
    for (name, kept) in [("a.txt", b"by hand\n".as_slice()), ("long.txt", long.as_bytes()), ("latin.txt", b"caf\xe9\n")]
    {
        scene.model.calls("write_file", json!({"path": name, "content": "mine\n"}));
        scene.model.says("Refused.");
        scene.prompt("write it");
        assert_eq!(std::fs::read(scene.root().join(name)).unwrap(), kept, "{name}");
    }
    scene.model.assert_exhausted();
}
