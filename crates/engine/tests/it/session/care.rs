//! What is kept and for how long: retention, the budget, labels, deleting a session.

use retake_engine::operation::OperationError;
use retake_engine::progress::NoProgress;
use retake_engine::rewind::RewindError;
use retake_engine::session::Scope;
use retake_engine::session::entry::{Body, Part};
use retake_engine::{Timestamp, Workspace};

use super::{Desk, identities, is_stored, open};
use crate::scanners::environment;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Cleans up `days` after everything happened.
pub(super) fn collect(desk: &mut Desk, days: i64) {
    let now = Timestamp(1_700_000_000_000 + days * DAY_MS);
    desk.workspace().maintenance_mut().gc(now, &NoProgress).unwrap();
}

fn all(desk: &Desk) -> usize {
    desk.bench.workspace.sessions().all_entries(desk.session).unwrap().len()
}

#[test]
fn a_branch_that_was_left_goes_with_retention_and_not_before() {
    let mut desk = Desk::new();
    let first = desk.writes("one", "a", "1");
    let said = all(&desk);
    desk.rewind(first.prompt, Scope::Both).unwrap();
    desk.writes("other", "a", "2");
    let kept = desk.conversation();
    let whole = all(&desk);
    assert_eq!(whole, said + kept.entries().len());
    collect(&mut desk, 1);
    assert_eq!(all(&desk), whole);
    collect(&mut desk, 100);
    assert_eq!(all(&desk), whole, "the session is open: what it did can be undone");
    desk.undo().unwrap();
    desk.undo().unwrap();
    assert_eq!(desk.prompts(), ["one"]);
    desk.redo().unwrap();
    desk.redo().unwrap();
    desk.close();
    // The newest point always stays, and what leads to it is another one by then.
    desk.bench.checkpoint();
    collect(&mut desk, 100);
    desk.writer = Some(open(&mut desk.bench, desk.session).unwrap());
    assert_eq!((desk.conversation(), all(&desk)), (kept.clone(), kept.entries().len()), "only what is retained");
}

#[test]
fn a_target_whose_files_are_gone_says_so_and_what_was_said_can_still_go_back() {
    let mut desk = Desk::new();
    let first = desk.writes("one", "a", "1");
    desk.writes("two", "a", "2");
    desk.close();
    desk.bench.checkpoint();
    collect(&mut desk, 100);
    desk.writer = Some(open(&mut desk.bench, desk.session).unwrap());
    assert_eq!(desk.targets().iter().map(|target| target.has_files).collect::<Vec<_>>(), [false, false]);
    for scope in [Scope::Both, Scope::Code] {
        let refused = desk.rewind(first.prompt, scope);
        assert!(matches!(refused, Err(RewindError::FilesGone { .. })), "{refused:?}");
    }
    desk.rewind(first.prompt, Scope::Conversation).unwrap();
    assert_eq!((desk.prompts().len(), desk.bench.read("a").as_deref()), (0, Some("2")));
    desk.undo().unwrap();
    assert_eq!(desk.prompts(), ["one", "two"]);
}

#[test]
fn where_it_is_not_known_any_more_which_files_differ_the_model_is_told_that() {
    let mut desk = Desk::new();
    desk.append(Body::Instructions { source: "retake".to_owned(), text: "x".to_owned() });
    let first = desk.writes("one", "a", "1");
    let answer = desk.conversation().entries()[2].id;
    let second = desk.writes("two", "a", "2");
    desk.close();
    desk.bench.checkpoint();
    collect(&mut desk, 100);
    desk.writer = Some(open(&mut desk.bench, desk.session).unwrap());
    for target in [second.prompt, answer] {
        desk.rewind(target, Scope::Conversation).unwrap();
        let entries = desk.conversation();
        let Some(Body::Note { about, text }) = entries.entries().last().map(|entry| &entry.body) else {
            panic!("{entries:?}");
        };
        assert!(about.is_empty() && text.contains("may differ"), "{text}");
        desk.undo().unwrap();
    }
    desk.rewind(first.prompt, Scope::Conversation).unwrap();
    assert_eq!(desk.notes().len(), 0, "who has seen nothing has nothing to read again");
}

#[test]
fn a_labelled_branch_stays() {
    let mut desk = Desk::new();
    let first = desk.writes("one", "a", "1");
    let point = desk.workspace().sessions().resolve_point(&first.prompt.to_string(), None).unwrap();
    desk.workspace().checkpoints_mut().set_label(point.checkpoint_id().unwrap(), Some("here")).unwrap();
    assert_eq!(desk.targets()[0].label.as_deref(), Some("here"));
    desk.rewind(first.prompt, Scope::Both).unwrap();
    desk.writes("other", "b", "2");
    desk.close();
    desk.bench.checkpoint();
    collect(&mut desk, 100);
    desk.writer = Some(open(&mut desk.bench, desk.session).unwrap());
    let entries = desk.bench.workspace.sessions().all_entries(desk.session).unwrap();
    assert!(entries.iter().any(|entry| entry.id == first.prompt));
    desk.rewind(first.prompt, Scope::Both).unwrap();
}

#[test]
fn an_undo_does_not_pass_over_what_can_no_longer_be_undone() {
    let mut desk = Desk::new();
    let first = desk.writes("one", "a", "1");
    let point = desk.workspace().sessions().resolve_point(&first.prompt.to_string(), None).unwrap();
    desk.workspace().checkpoints_mut().set_label(point.checkpoint_id().unwrap(), Some("here")).unwrap();
    desk.writes("two", "b", "2");
    desk.close();
    desk.bench.checkpoint();
    collect(&mut desk, 100);
    desk.writer = Some(open(&mut desk.bench, desk.session).unwrap());
    let kinds: Vec<_> = desk.workspace().operations().all().unwrap().iter().map(|operation| operation.id).collect();
    assert_eq!(kinds, [first.operation], "the point before it has a label");
    for _ in 0..2 {
        let refused = desk.undo();
        assert!(
            matches!(&refused, Err(RewindError::Operation(OperationError::NewestGone { operation })) if operation.id == first.operation),
            "{refused:?}"
        );
        // What comes after that can be undone, and then it is refused again.
        desk.writes("three", "c", "3");
        desk.undo().unwrap();
    }
    desk.undo_of(first.operation).unwrap();
    assert_eq!(desk.bench.read("a").as_deref(), Some("0"));
}

#[test]
fn a_session_is_deleted_with_everything_that_only_it_needs() {
    let mut desk = Desk::new();
    let first = desk.writes("one", "a", "1");
    desk.rewind(first.prompt, Scope::Code).unwrap();
    desk.writes("two", "a", "2");
    desk.bench.command(|root| std::fs::write(root.join("b"), "command").unwrap());
    let writer = desk.writer.take().unwrap();
    let deleted = desk.workspace().sessions_mut().delete(writer).unwrap();
    assert!(deleted.entries > 8 && deleted.checkpoints > 4, "{deleted:?}");
    let session = desk.session;
    assert!(desk.workspace().sessions().conversation(session).is_err());
    assert!(desk.workspace().sessions().all().unwrap().iter().all(|known| known.id != session));
    assert!(!desk.workspace().sessions().is_live(session));
    assert!(desk.workspace().sessions().resolve_point(&first.prompt.to_string(), None).is_err());
    assert_eq!((desk.bench.read("a").as_deref(), desk.bench.read("b").as_deref()), (Some("2"), Some("command")));
    assert!(desk.workspace().maintenance().check().unwrap().damage.is_empty());
    desk.bench.undo().unwrap();
    assert_eq!(desk.bench.read("b"), None, "what others did can still be undone");
    desk.bench.checkpoint();
    let locks = find(&desk.bench.root.with_file_name("store"), &format!("{session}.lock"));
    assert_eq!(locks, 0, "nothing of it is left");
}

#[test]
fn what_was_said_in_a_deleted_session_is_in_no_file_of_the_store() {
    let mut desk = Desk::new();
    desk.writes("one", "a", "1");
    let turn = desk.say("two");
    desk.reply(&"SECRET ".repeat(2_000), 0);
    desk.end(turn);
    desk.writer().set_draft(vec![Part::text("SECRET ".repeat(2_000))]).unwrap();
    desk.writer().set_draft(Vec::new()).unwrap();
    let writer = desk.writer.take().unwrap();
    desk.workspace().sessions_mut().delete(writer).unwrap();
    assert!(!is_stored(&desk.bench.root.with_file_name("store"), b"SECRET"));
}

fn find(below: &std::path::Path, name: &str) -> usize {
    let entries = std::fs::read_dir(below).unwrap().map(Result::unwrap);
    let found = |entry: std::fs::DirEntry| match entry.file_type().unwrap().is_dir() {
        true => find(&entry.path(), name),
        false => usize::from(entry.file_name() == name),
    };
    entries.map(found).sum()
}

#[test]
fn a_session_of_one_workspace_can_be_read_without_being_opened() {
    let mut desk = Desk::new();
    desk.append(Body::Instructions { source: "retake".to_owned(), text: "x".to_owned() });
    desk.writes("one", "a", "1");
    let store = desk.bench.root.with_file_name("store");
    let reader = Workspace::open(environment(&desk.bench.root, store)).unwrap();
    assert_eq!(reader.sessions().conversation(desk.session).unwrap(), desk.conversation());
    assert_eq!(reader.sessions().targets(desk.session).unwrap(), desk.targets());
    let new = identities(&mut desk.bench);
    assert!(new.note != identities(&mut desk.bench).note, "each note has an id of its own");
}
