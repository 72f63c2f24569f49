//! The writer: one at a time, refused when the head is elsewhere, and what a process that died has left is put in order.

use std::process::Stdio;

use retake_engine::operation::OperationState;
use retake_engine::progress::NoProgress;
use retake_engine::session::SessionError;
use retake_engine::session::entry::{Body, EndReason, Outcome, Part};
use retake_engine::{Durability, Workspace};
use retake_testkit::rerun;

use super::{Desk, conversation, open};
use crate::scanners::environment;

const CHILD: &str = "session::writing::holds_a_session_open_in_a_child_process";

#[test]
fn there_is_one_writer_at_a_time() {
    let mut desk = Desk::new();
    let session = desk.session;
    assert!(desk.workspace().sessions().is_live(session));
    let refused = open(&mut desk.bench, session);
    assert!(matches!(refused, Err(SessionError::Live { .. })), "{refused:?}");
    let other = conversation(&mut desk.bench);
    open(&mut desk.bench, other).unwrap();
    desk.close();
    assert!(!desk.workspace().sessions().is_live(session));
    open(&mut desk.bench, session).unwrap();
    let commands = desk.bench.session();
    let refused = open(&mut desk.bench, commands);
    assert!(matches!(refused, Err(SessionError::NotAConversation { .. })), "{refused:?}");
}

#[test]
fn a_writer_in_another_process_counts_until_it_is_gone() {
    let mut desk = Desk::new();
    desk.close();
    let session = desk.session;
    let mut child = rerun::test(CHILD)
        .env("RETAKE_TEST_ROOT", &desk.bench.root)
        .env("RETAKE_TEST_SESSION", session.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let opened = desk.bench.root.with_file_name("opened");
    while !opened.exists() {
        assert!(child.try_wait().unwrap().is_none(), "the other process ended");
        std::thread::yield_now();
    }
    assert!(desk.workspace().sessions().is_live(session));
    assert!(matches!(open(&mut desk.bench, session), Err(SessionError::Live { .. })));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!desk.workspace().sessions().is_live(session));
    open(&mut desk.bench, session).unwrap();
}

/// The body of the other process; on its own it has nothing to do.
#[test]
fn holds_a_session_open_in_a_child_process() {
    let Some(root) = std::env::var_os("RETAKE_TEST_ROOT").map(std::path::PathBuf::from) else { return };
    let Ok(session) = std::env::var("RETAKE_TEST_SESSION") else { return };
    let workspace = Workspace::open(environment(&root, root.with_file_name("store"))).unwrap();
    let session = workspace.sessions().resolve(&session).unwrap();
    let _writer = workspace.sessions().open(session.id, session.at, &mut || [1; 10]).unwrap();
    std::fs::write(root.with_file_name("opened"), "").unwrap();
    // Until it is killed.
    std::io::read_to_string(std::io::stdin()).unwrap();
}

#[test]
fn a_writer_whose_head_was_moved_is_refused() {
    let mut desk = Desk::new();
    desk.writes("one", "a", "1");
    let Desk { bench, writer, .. } = &mut desk;
    let head = writer.as_ref().unwrap().conversation().head();
    let database = bench.root.with_file_name("store");
    move_head_by_hand(&find_database(&database));
    let entry = super::new_entry(bench, Body::Cleared);
    let refused = writer.as_mut().unwrap().append(vec![entry], Durability::Soon);
    assert!(matches!(refused, Err(SessionError::StaleHead)), "{refused:?}");
    assert_eq!(writer.as_ref().unwrap().conversation().head(), head, "nothing was written");
}

fn find_database(below: &std::path::Path) -> std::path::PathBuf {
    for entry in std::fs::read_dir(below).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            let found = find_database(&path);
            if found.exists() {
                return found;
            }
        } else if entry.file_name() == "retake.db" {
            return path;
        }
    }
    below.join("none")
}

fn move_head_by_hand(database: &std::path::Path) {
    let connection = rusqlite::Connection::open(database).unwrap();
    connection.execute("UPDATE sessions SET head = (SELECT min(seq) FROM entries) WHERE kind = 1", []).unwrap();
}

#[test]
fn a_conversation_of_many_thousand_entries_is_read_as_it_was_written() {
    let mut desk = Desk::new();
    // More than are read at a time, with a length that is no multiple of anything.
    let note = |number: u32| Body::Note { about: Vec::new(), text: format!("{number}: \u{1F600}\n\"") };
    let new = (0..12_345).map(|number| desk.entry(note(number))).collect();
    desk.writer().append(new, Durability::Soon).unwrap();
    desk.assert_one_truth();
    let written = desk.conversation();
    desk.reopen();
    assert!(desk.conversation() == written);
}

#[test]
fn what_a_process_that_died_has_left_is_put_in_order() {
    let mut desk = Desk::new();
    desk.writes("one", "a", "1");
    let before = desk.conversation();
    let turn = desk.say("two");
    let (_, calls) = desk.reply("three calls", 3);
    desk.tool(turn, &["a"], |root| std::fs::write(root.join("a"), "2").unwrap());
    desk.result(&calls[1], "the second one came first");
    desk.reopen();
    let entries = desk.conversation();
    let tail: Vec<&Body> = entries.entries().iter().rev().take(3).map(|entry| &entry.body).collect();
    assert_eq!(*tail[0], Body::Ended { reason: EndReason::Interrupted });
    for (body, call) in [(tail[1], &calls[2]), (tail[2], &calls[0])] {
        assert!(
            matches!(body, Body::ToolResult { call: of, title, outcome: Outcome::Interrupted, .. } if of == call && title == "bash"),
            "{body:?}"
        );
    }
    let operation = desk.workspace().operations().all().unwrap().remove(0);
    assert_eq!((operation.id, operation.state), (turn.operation, OperationState::Done));
    let settled = desk.conversation();
    desk.reopen();
    assert_eq!(desk.conversation(), settled, "once");
    desk.undo().unwrap();
    assert_eq!((desk.conversation(), desk.bench.read("a").as_deref()), (before, Some("1")));
    assert_eq!(desk.draft(), [Part::text("two")]);
    desk.redo().unwrap();
    assert_eq!((desk.conversation(), desk.bench.read("a").as_deref()), (settled, Some("2")));
}

#[test]
fn what_a_tool_did_until_its_process_died_is_undone_with_the_turn() {
    let mut desk = Desk::new();
    let turn = desk.say("one");
    desk.reply("on it", 1);
    let window = retake_engine::window::NewWindow {
        session: desk.session,
        turn: None,
        tool: "bash: work".to_owned(),
        reach: retake_engine::window::Reach::Everything,
        declared: Vec::new(),
        operation: retake_engine::window::PartOf::Turn(turn.operation),
    };
    let new = crate::scanners::numbered(desk.bench.tick());
    let began = desk.workspace().windows().begin(window, new, &NoProgress).unwrap();
    desk.bench.write("a", "half done");
    drop(began);
    desk.reopen();
    let new = crate::scanners::numbered(desk.bench.tick());
    desk.workspace().windows().settle(new, &NoProgress).unwrap().unwrap();
    desk.undo().unwrap();
    assert_eq!((desk.bench.read("a").as_deref(), desk.prompts().len()), (Some("0"), 0));
}

#[test]
fn a_turn_that_died_before_any_output_is_taken_back() {
    let mut desk = Desk::new();
    desk.writes("one", "a", "1");
    let before = desk.conversation();
    desk.say("two");
    desk.reopen();
    assert_eq!((desk.conversation(), desk.draft()), (before.clone(), vec![Part::text("two")]));
    desk.reopen();
    assert_eq!((desk.conversation(), desk.draft()), (before, vec![Part::text("two")]));
    desk.undo().unwrap();
    assert_eq!((desk.prompts().len(), desk.bench.read("a").as_deref()), (0, Some("0")), "the turn before it");
}

#[test]
fn what_was_about_to_be_said_next_is_not_lost_with_a_turn_that_died() {
    let mut desk = Desk::new();
    desk.say("two");
    desk.writer().set_draft(vec![Part::text("three"), Part::Paste { text: "four".to_owned() }]).unwrap();
    desk.reopen();
    let both = [Part::text("two\n\nthree"), Part::Paste { text: "four".to_owned() }];
    assert_eq!((desk.prompts().len(), desk.draft()), (0, both.to_vec()));
}

#[test]
fn a_turn_that_came_to_nothing_is_taken_back() {
    let mut desk = Desk::new();
    let turn = desk.say("one");
    desk.writer().take_back_turn(turn.operation).unwrap();
    desk.assert_one_truth();
    assert_eq!((desk.prompts().len(), desk.draft()), (0, vec![Part::text("one")]));
    assert!(desk.undo().is_err(), "it never happened");
    let next = desk.writes("one, better", "a", "1");
    assert_eq!((desk.targets().len(), desk.targets()[0].id, desk.draft()), (1, next.prompt, vec![]));
}

#[test]
fn a_prompt_says_what_was_in_the_draft() {
    let mut desk = Desk::new();
    desk.writer().set_draft(vec![Part::text("one")]).unwrap();
    desk.reopen();
    assert_eq!(desk.draft(), [Part::text("one")]);
    desk.writes("one", "a", "1");
    assert_eq!(desk.draft(), []);
    desk.assert_one_truth();
}

#[test]
fn points_are_found_by_the_beginning_of_an_id_or_by_a_label() {
    let mut desk = Desk::new();
    let first = desk.writes("one", "a", "1");
    desk.writes("two", "a", "2");
    let text = first.prompt.to_string();
    match desk.workspace().sessions().resolve_point(&text[..10], None).unwrap() {
        retake_engine::session::Point::Entry { entry, checkpoint, .. } => {
            assert_eq!(entry.id, first.prompt);
            assert!(checkpoint.is_some());
        }
        retake_engine::session::Point::Checkpoint(other) => panic!("{other:?}"),
    }
    let other = conversation(&mut desk.bench);
    assert!(desk.workspace().sessions().resolve_point(&text, Some(other)).is_err(), "of that session only");
    assert!(desk.workspace().sessions().resolve_point("feedfeedfeed", None).is_err());
}
