//! Undo and redo: of turns, rewinds and clears, again and again, across restarts.

use retake_engine::operation::{MadeBy, OperationError, OperationKind, OperationState};
use retake_engine::progress::NoProgress;
use retake_engine::rewind::{Conflict, Goal, RewindError, RewindRequest};
use retake_engine::session::Scope;
use retake_engine::session::entry::Part;

use super::Desk;
use crate::rewind::conflicts;

fn state(desk: &Desk) -> (Vec<String>, Option<String>, Vec<Part>) {
    (desk.prompts(), desk.bench.read("a"), desk.draft())
}

#[test]
fn undo_and_redo_walk_through_turns_rewinds_and_clears_across_restarts() {
    let mut desk = Desk::new();
    let mut states = vec![(desk.conversation(), desk.bench.read("a"))];
    let mut seen = |desk: &Desk| states.push((desk.conversation(), desk.bench.read("a")));
    let first = desk.writes("one", "a", "1");
    seen(&desk);
    desk.writes("two", "a", "2");
    seen(&desk);
    desk.rewind(first.prompt, Scope::Code).unwrap();
    seen(&desk);
    desk.clear();
    seen(&desk);
    desk.writes("three", "a", "3");
    seen(&desk);
    desk.rewind(first.prompt, Scope::Both).unwrap();
    seen(&desk);
    desk.rewind(first.prompt, Scope::Conversation).unwrap();
    for round in 0..2 {
        for expected in states.iter().rev() {
            desk.undo().unwrap();
            if round == 1 {
                desk.reopen();
            }
            assert_eq!((desk.conversation(), desk.bench.read("a")), *expected);
            assert_eq!(desk.conversation().context(), expected.0.context());
        }
        let nothing = desk.undo();
        assert!(matches!(nothing, Err(RewindError::Operation(OperationError::NothingToUndo))), "{nothing:?}");
        for expected in &states[1..] {
            desk.redo().unwrap();
            if round == 1 {
                desk.reopen();
            }
            assert_eq!((desk.conversation(), desk.bench.read("a")), *expected);
        }
        desk.redo().unwrap();
        assert!(matches!(desk.redo(), Err(RewindError::Operation(OperationError::NothingToRedo))));
    }
}

#[test]
fn the_draft_becomes_the_prompt_and_undo_takes_an_unedited_one_back() {
    let mut desk = Desk::new();
    let parts = vec![
        Part::text("look at"),
        Part::Paste { text: "pasted\nblock".to_owned() },
        Part::File { path: "a".to_owned(), text: "0".to_owned() },
        Part::Image { media_type: "image/png".to_owned(), data: "aGk=".to_owned() },
    ];
    let turn = desk.say_parts(parts.clone());
    desk.reply("seen", 0);
    desk.end(turn);
    desk.writer().set_draft(vec![Part::text("about to say")]).unwrap();
    desk.rewind(turn.prompt, Scope::Both).unwrap();
    assert_eq!(desk.draft(), parts);
    desk.reopen();
    assert_eq!(desk.draft(), parts, "it survives a restart");
    desk.undo().unwrap();
    assert_eq!(desk.draft(), [Part::text("about to say")], "unedited, it goes back");
    desk.redo().unwrap();
    assert_eq!(desk.draft(), parts);
    desk.writer().set_draft(vec![Part::text("edited")]).unwrap();
    desk.undo().unwrap();
    assert_eq!(desk.draft(), [Part::text("edited")], "edited, it is the user's");
    desk.redo().unwrap();
    assert_eq!(desk.draft(), [Part::text("edited")]);
}

#[test]
fn undoing_a_turn_gives_its_prompt_back_as_the_draft() {
    let mut desk = Desk::new();
    desk.writes("one", "a", "1");
    let after = state(&desk);
    desk.undo().unwrap();
    assert_eq!(state(&desk), (vec![], Some("0".to_owned()), vec![Part::text("one")]));
    desk.redo().unwrap();
    assert_eq!(state(&desk), after);
    desk.writer().set_draft(vec![Part::text("next")]).unwrap();
    desk.undo().unwrap();
    assert_eq!(desk.draft(), [Part::text("next")], "what the user is writing stays");
}

#[test]
fn a_new_turn_ends_what_could_be_redone() {
    let mut desk = Desk::new();
    desk.writes("one", "a", "1");
    desk.undo().unwrap();
    desk.writes("other", "a", "2");
    assert!(matches!(desk.redo(), Err(RewindError::Operation(OperationError::NothingToRedo))));
    desk.undo().unwrap();
    assert_eq!(state(&desk), (vec![], Some("0".to_owned()), vec![Part::text("other")]));
}

#[test]
fn undoing_an_older_turn_takes_back_its_files_and_leaves_the_conversation() {
    let mut desk = Desk::new();
    let first = desk.writes("one", "a", "1");
    desk.writes("two", "b", "2");
    let before = desk.conversation();
    let goal = Goal::Undo { operation: Some(first.operation), session: None };
    let plan = desk.workspace().rewinds().plan(&RewindRequest::new(goal), &NoProgress).unwrap();
    assert!(plan.conversation.unwrap().went_on, "the plan says that the conversation went on");
    assert_eq!(plan.scope, Scope::Code);
    let applied = desk.undo_of(first.operation).unwrap();
    assert_eq!(applied.conversation_moved, None);
    assert_eq!((desk.bench.read("a").as_deref(), desk.bench.read("b").as_deref()), (Some("0"), Some("2")));
    assert_eq!((desk.prompts().len(), desk.notes()), (2, vec![vec!["a".to_owned()]]));
    let again = desk.undo_of(first.operation);
    assert!(matches!(again, Err(RewindError::Operation(OperationError::AlreadyUndone { .. }))), "{again:?}");
    desk.redo().unwrap();
    assert_eq!((desk.bench.read("a").as_deref(), desk.conversation()), (Some("1"), before));
}

#[test]
fn a_later_turn_is_not_taken_for_somebody_else() {
    let mut desk = Desk::new();
    let first = desk.writes("one", "a", "1");
    desk.writes("two", "a", "2");
    assert_eq!(conflicts(desk.undo_of(first.operation)), [("a".to_owned(), Conflict::ChangedLater)]);
    desk.bench.write("a", "by hand");
    desk.bench.checkpoint();
    assert_eq!(conflicts(desk.undo_of(first.operation)), [("a".to_owned(), Conflict::ChangedByOthers)]);
}

#[test]
fn a_branch_that_was_left_does_not_come_back_by_itself() {
    let mut desk = Desk::new();
    let first = desk.writes("one", "a", "1");
    desk.rewind(first.prompt, Scope::Both).unwrap();
    desk.reopen();
    assert_eq!(desk.prompts().len(), 0);
    desk.writes("other", "a", "2");
    desk.reopen();
    assert_eq!(desk.prompts(), ["other"]);
    assert_eq!(desk.targets().len(), 1);
    let all = desk.bench.workspace.sessions().all_entries(desk.session).unwrap();
    assert!(all.iter().any(|entry| entry.id == first.prompt), "but it is still there");
}

#[test]
fn without_a_session_undo_considers_what_commands_did() {
    let mut desk = Desk::new();
    desk.writes("one", "a", "1");
    let next = desk.workspace().operations().next_to_undo(None);
    assert!(matches!(next, Err(OperationError::NewerInSession { .. })), "a client of the session made it: {next:?}");
    desk.bench.command(|root| std::fs::write(root.join("b"), "command").unwrap());
    let command = desk.workspace().operations().next_to_undo(None).unwrap();
    assert_eq!(command.kind, OperationKind::Exec);
    let turn = desk.writes("two", "c", "2");
    match desk.workspace().operations().next_to_undo(None) {
        Err(OperationError::NewerInSession { operations }) => {
            let ids: Vec<_> = operations.iter().map(|operation| operation.id).collect();
            assert_eq!(ids, [turn.operation, command.id], "both are told");
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(desk.bench.undo(), Err(RewindError::Operation(OperationError::NewerInSession { .. }))));
    desk.close();
    assert_eq!(desk.workspace().operations().next_to_undo(None).unwrap().id, command.id, "nobody has it open any more");
    desk.bench.undo().unwrap();
    assert_eq!((desk.bench.read("b"), desk.bench.read("c").as_deref()), (None, Some("2")));
}

#[test]
fn a_rewind_that_a_command_made_is_undone_by_a_command() {
    let mut desk = Desk::new();
    let first = desk.writes("one", "a", "1");
    let request = RewindRequest { made_by: MadeBy::Command, ..desk.goal(first.prompt, Scope::Both) };
    desk.apply(&request).unwrap();
    let next = desk.workspace().operations().next_to_undo(None).unwrap();
    assert_eq!((next.kind, next.session), (OperationKind::Rewind, Some(desk.session)));
    desk.apply(&RewindRequest::new(Goal::Undo { operation: None, session: None })).unwrap();
    assert_eq!((desk.prompts(), desk.bench.read("a").as_deref()), (vec!["one".to_owned()], Some("1")));
    desk.apply(&RewindRequest::new(Goal::Redo { session: None })).unwrap();
    assert_eq!(desk.prompts().len(), 0);
}

#[test]
fn a_turn_that_is_running_is_not_undone() {
    let mut desk = Desk::new();
    desk.writes("one", "a", "1");
    desk.say("two");
    let refused = desk.undo();
    assert!(matches!(refused, Err(RewindError::Operation(OperationError::Running { .. }))), "{refused:?}");
    let operations = desk.workspace().operations().all().unwrap();
    assert_eq!(operations[0].state, OperationState::Running);
}

#[test]
fn a_note_of_an_undo_does_not_keep_the_next_undo_from_the_conversation() {
    let mut desk = Desk::new();
    let first = desk.writes("one", "a", "1");
    let between = desk.conversation();
    desk.writes("two", "b", "2");
    desk.undo_of(first.operation).unwrap();
    let noted = desk.conversation();
    let applied = desk.undo().unwrap();
    assert_eq!(applied.conversation_moved, Some(true));
    assert_eq!((desk.prompts(), desk.bench.read("b")), (vec!["one".to_owned()], None));
    assert_eq!(desk.notes(), [["a"]], "the model is told again what it could not know otherwise");
    assert_eq!(desk.conversation().entries()[..between.entries().len()], *between.entries());
    desk.redo().unwrap();
    assert_eq!((desk.conversation(), desk.bench.read("b").as_deref()), (noted, Some("2")));
    desk.redo().unwrap();
    assert_eq!((desk.notes().len(), desk.bench.read("a").as_deref()), (0, Some("1")));
}

#[test]
fn a_code_rewind_in_force_keeps_an_older_turn_in_the_conversation() {
    let mut desk = Desk::new();
    let first = desk.writes("one", "a", "1");
    desk.rewind(first.prompt, Scope::Code).unwrap();
    desk.undo_of(first.operation).unwrap();
    assert_eq!(desk.prompts(), ["one"], "the head has moved since");
    desk.undo().unwrap();
    assert_eq!((desk.prompts(), desk.bench.read("a").as_deref()), (vec!["one".to_owned()], Some("1")));
}

#[test]
fn undo_takes_a_draft_back_even_if_nothing_else_moved() {
    let mut desk = Desk::new();
    let first = desk.turn("one", |_| {});
    desk.rewind(first.prompt, Scope::Both).unwrap();
    desk.writer().set_draft(vec![Part::text("two")]).unwrap();
    desk.rewind(first.prompt, Scope::Both).unwrap();
    assert_eq!(desk.draft(), [Part::text("one")]);
    desk.undo().unwrap();
    assert_eq!(desk.draft(), [Part::text("two")]);
    desk.redo().unwrap();
    assert_eq!(desk.draft(), [Part::text("one")]);
}

#[test]
fn a_file_that_a_turn_wrote_several_times_is_in_nobodys_way_once_that_is_undone() {
    let mut desk = Desk::new();
    desk.writes("one", "a", "1");
    for contents in [["2", "3"], ["2", "1"]] {
        let turn = desk.say("two");
        let (_, calls) = desk.reply("twice", 2);
        for (content, call) in contents.iter().zip(&calls) {
            desk.tool(turn, &["a"], |root| std::fs::write(root.join("a"), content).unwrap());
            desk.result(call, "written");
        }
        desk.end(turn);
        desk.undo().unwrap();
        desk.undo().unwrap();
        assert_eq!((desk.prompts().len(), desk.bench.read("a").as_deref()), (0, Some("0")), "{contents:?}");
        desk.redo().unwrap();
    }
}
