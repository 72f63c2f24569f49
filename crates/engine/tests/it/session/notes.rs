//! The model is never left with a falsehood: what it is told when only one half went back.

use retake_engine::rewind::{OnConflict, RewindRequest};
use retake_engine::session::Scope;
use retake_engine::session::context::Message;
use retake_engine::session::entry::{Body, Part};

use super::Desk;

fn last_message(desk: &Desk) -> String {
    match desk.conversation().context().messages.pop().unwrap() {
        Message::User { parts } => match &parts[0] {
            Part::Text { text } => text.clone(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn after_a_code_rewind_the_model_is_told_which_files_went_back() {
    let mut desk = Desk::new();
    let first = desk.turn("one", |root| {
        std::fs::write(root.join("a"), "1").unwrap();
        std::fs::create_dir(root.join("dir")).unwrap();
        std::fs::write(root.join("dir/new"), "1").unwrap();
    });
    let before = desk.conversation();
    desk.rewind(first.prompt, Scope::Code).unwrap();
    assert_eq!(desk.notes(), [["a", "dir/new"]], "files, not directories");
    assert_eq!(desk.conversation().entries()[..before.entries().len()], *before.entries());
    let told = last_message(&desk);
    assert!(told.contains("- a\n- dir/new") && told.contains("earlier state"), "{told}");
    desk.undo().unwrap();
    assert_eq!(desk.conversation(), before, "undo retracts it");
    desk.redo().unwrap();
    assert_eq!(desk.notes(), [["a", "dir/new"]], "redo brings it back");
    let next = desk.say("what now?");
    let entries = desk.conversation();
    let position = |wanted: &dyn Fn(&Body) -> bool| entries.entries().iter().position(|entry| wanted(&entry.body));
    let note = position(&|body| matches!(body, Body::Note { .. })).unwrap();
    assert_eq!(entries.entries()[note + 1].id, next.prompt, "before the next prompt");
}

#[test]
fn after_a_conversation_rewind_the_model_is_told_which_files_differ() {
    let mut desk = Desk::new();
    desk.writes("one", "a", "1");
    let before = desk.conversation();
    let second = desk.writes("two", "a", "2");
    desk.turn("three", |root| {
        std::fs::write(root.join("b"), "3").unwrap();
        std::fs::write(root.join("c"), "3").unwrap();
        std::fs::remove_file(root.join("c")).unwrap();
    });
    desk.bench.write("by-hand", "x");
    let whole = desk.conversation();
    desk.rewind(second.prompt, Scope::Conversation).unwrap();
    assert_eq!(desk.notes(), [["a", "b", "by-hand"]], "what came and went does not differ");
    assert_eq!(desk.conversation().entries()[..before.entries().len()], *before.entries());
    assert!(last_message(&desk).contains("differ from what you last saw"));
    desk.undo().unwrap();
    assert_eq!(desk.conversation(), whole, "undo retracts it");
}

#[test]
fn nothing_is_told_when_nothing_differs() {
    let mut desk = Desk::new();
    let first = desk.turn("talk", |_| {});
    desk.rewind(first.prompt, Scope::Conversation).unwrap();
    assert_eq!(desk.conversation().entries(), []);
    desk.undo().unwrap();
    desk.rewind(first.prompt, Scope::Code).unwrap();
    assert_eq!(desk.notes(), Vec::<Vec<String>>::new());
}

#[test]
fn what_was_left_as_it_is_is_told() {
    let mut desk = Desk::new();
    let first = desk.turn("one", |root| {
        std::fs::write(root.join("a"), "1").unwrap();
        std::fs::write(root.join("b"), "1").unwrap();
    });
    desk.bench.write("b", "by hand");
    let request = RewindRequest { on_conflict: OnConflict::Keep, ..desk.goal(first.prompt, Scope::Both) };
    desk.apply(&request).unwrap();
    assert_eq!(desk.bench.read("b").as_deref(), Some("by hand"));
    assert_eq!(desk.notes(), [["b"]], "the model has never seen it like this");
    desk.undo().unwrap();
    assert_eq!((desk.notes().len(), desk.prompts().len()), (0, 1));
}

#[test]
fn what_was_merged_is_told() {
    let mut desk = Desk::new();
    desk.bench.write("a", "1\n2\n3\n4\n5\n");
    let first = desk.writes("one", "a", "ONE\n2\n3\n4\n5\n");
    desk.bench.write("a", "ONE\n2\n3\n4\nby hand\n");
    let request = RewindRequest { on_conflict: OnConflict::Merge, ..desk.goal(first.prompt, Scope::Both) };
    desk.apply(&request).unwrap();
    assert_eq!(desk.bench.read("a").as_deref(), Some("1\n2\n3\n4\nby hand\n"));
    assert_eq!(desk.notes(), [["a"]], "it is neither what the model saw nor what it was");
}

#[test]
fn a_file_that_somebody_saved_meanwhile_is_not_said_to_have_gone_back() {
    let mut desk = Desk::new();
    let first = desk.turn("one", |root| {
        std::fs::write(root.join("a"), "1").unwrap();
        std::fs::write(root.join("b"), "1").unwrap();
    });
    desk.bench.write("b", "by hand");
    let request = RewindRequest { on_conflict: OnConflict::Keep, ..desk.goal(first.prompt, Scope::Code) };
    desk.apply(&request).unwrap();
    assert_eq!(desk.notes(), [["a"]]);
}

#[test]
fn what_a_deleted_session_changed_is_told_too() {
    let mut desk = Desk::new();
    desk.writes("one", "a", "1");
    let second = desk.writes("two", "b", "2");
    let other = super::conversation(&mut desk.bench);
    let (session, writer) = desk.move_to(other);
    desk.writes("elsewhere", "a", "theirs");
    desk.close();
    let gone = super::open(&mut desk.bench, other).unwrap();
    desk.workspace().sessions_mut().delete(gone).unwrap();
    drop(writer);
    desk.session = session;
    desk.reopen();
    desk.bench.checkpoint();
    desk.rewind(second.prompt, Scope::Conversation).unwrap();
    assert_eq!(desk.notes(), [["a", "b"]]);
}
