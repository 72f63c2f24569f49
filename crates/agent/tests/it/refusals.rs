//! R33, R34, R35 and what others got wrong: stale, doubled, late and concurrent changes.

use retake_agent::contract::{
    Action, Change, ChangeGoal, Command, EventKind, Query, Reason, Reply, SeenHead, State, TurnEnd, WhileRunning,
};
use retake_engine::id::EntryId;
use retake_engine::rewind::OnConflict;
use retake_engine::session::Scope;
use serde_json::json;

use crate::scene::{Scene, rewind_goal};

fn apply(goal: ChangeGoal, head: Option<EntryId>) -> Command {
    Action::Apply {
        change: Change::new(goal),
        head_seen: Some(SeenHead { head }),
        plan_seen: None,
        running: WhileRunning::Refuse,
    }
    .into()
}

#[test]
fn a_change_made_from_a_stale_view_is_refused() {
    let mut scene = Scene::new().start();
    scene.model.says("One.");
    let first = scene.prompt("first");
    let seen = scene.view().head();
    scene.model.says("Two.");
    scene.prompt("second");
    let before = scene.stored();
    let refusal = scene.request(apply(rewind_goal(first, Scope::Both), seen)).unwrap_err();
    assert_eq!(refusal.reason, Reason::StaleHead);
    assert_eq!(scene.stored(), before);
    assert!(scene.request(apply(rewind_goal(first, Scope::Both), scene.stored().head())).is_ok());
    scene.check();
}

#[test]
fn the_same_request_twice_is_one_change() {
    for scope in [Scope::Both, Scope::Conversation, Scope::Code] {
        let mut scene = Scene::new().start();
        scene.model.says("One.");
        scene.prompt("first");
        scene.model.calls("bash", json!({"command": "echo b > b.txt"}));
        scene.model.says("Two.");
        let second = scene.prompt("second");
        let command = apply(rewind_goal(second, scope), scene.view().head());
        scene.request(command.clone()).unwrap();
        let after = scene.stored();
        let refusal = scene.request(command).unwrap_err();
        assert_eq!((refusal.reason, scene.stored()), (Reason::StaleHead, after), "{scope:?}");
        let undo = apply(ChangeGoal::Undo { operation: None }, scene.view().head());
        scene.request(undo.clone()).unwrap();
        assert_eq!(scene.request(undo).unwrap_err().reason, Reason::StaleHead, "{scope:?}");
        assert_eq!(scene.files(), "b.txt: b\n", "the second undo would have taken back the turn");
        scene.check();
    }
}

#[test]
fn a_plan_of_a_prompt_that_has_been_rewound_is_not_applied_again() {
    let mut scene = Scene::new().start();
    scene.model.calls("bash", json!({"command": "echo a > a.txt"}));
    scene.model.says("Done.");
    let first = scene.prompt("first");
    scene.rewind(first, Scope::Both);
    let after = scene.stored();
    // As a second client does that works its plan out again when the first one has rewound.
    let change = Change::new(rewind_goal(first, Scope::Both));
    let Ok(Reply::Change { document }) = scene.request(Query::Plan { change: change.clone() }) else {
        panic!("there is a plan")
    };
    let head_seen = Some(SeenHead { head: scene.view().head() });
    let running = WhileRunning::Refuse;
    let apply = Action::Apply { change, head_seen, plan_seen: document.fingerprint, running };
    let refusal = scene.request(apply).unwrap_err();
    assert_eq!((refusal.reason, scene.stored()), (Reason::Nothing, after));
    assert!(refusal.message.contains("not in the conversation any more"), "{refusal:?}");
    scene.check();
}

#[test]
fn a_running_turn_is_not_rewound_unless_it_may_be_interrupted() {
    let mut scene = Scene::new().start();
    scene.model.calls("bash", json!({"command": "echo a > a.txt"}));
    let gate = scene.model.says_slowly(["And now", " a lot more."]);
    let first = scene.say("first");
    scene.until(|kind| matches!(kind, EventKind::Delta { text, .. } if text.ends_with('w')));
    let refusal = scene.change(rewind_goal(first, Scope::Both)).unwrap_err();
    assert_eq!(refusal.reason, Reason::Running);
    assert!(refusal.message.contains("running") && refusal.hint.is_some(), "{refusal:?}");
    assert_eq!(scene.state(), State::Running);
    let document = scene.apply(Change::new(rewind_goal(first, Scope::Both)), WhileRunning::Interrupt).unwrap();
    assert!(document.applied);
    assert_eq!((scene.files().as_str(), scene.draft().as_str(), scene.state()), ("", "first", State::Idle));
    gate.open();
    scene.check();
    let moved = scene.told().iter().filter(|kind| matches!(kind, EventKind::HeadMoved { .. })).count();
    assert_eq!(moved, 1, "one operation");
    // Whatever the cut turn still had to say is not heard.
    let moved_at = scene.told().iter().position(|kind| matches!(kind, EventKind::HeadMoved { .. })).unwrap();
    scene.model.says("Hello.");
    scene.prompt("again");
    let late = scene.told()[moved_at..].iter().any(|kind| match kind {
        EventKind::Delta { turn, .. } | EventKind::Thinking { turn, .. } => *turn == first,
        _ => false,
    });
    assert!(!late);
    let texts = scene.told()[moved_at..].iter().filter(|kind| matches!(kind, EventKind::CallOutput { .. })).count();
    assert_eq!(texts, 0);
    scene.undo();
    scene.undo();
    assert_eq!(scene.files(), "a.txt: a\n");
    assert!(scene.context().contains("And now"), "what was cut can be had again");
    scene.check();
    scene.model.assert_exhausted();
}

#[test]
fn a_rewind_that_interrupts_a_command_takes_back_what_it_had_done() {
    let mut scene = Scene::new().file("a.txt", "one\n").start();
    scene.model.calls("bash", json!({"command": "echo two > a.txt; echo on; sleep 300"}));
    let first = scene.say("first");
    scene.until(|kind| matches!(kind, EventKind::CallOutput { .. }));
    scene.apply(Change::new(rewind_goal(first, Scope::Both)), WhileRunning::Interrupt).unwrap();
    assert_eq!((scene.files().as_str(), scene.draft().as_str()), ("a.txt: one\n", "first"));
    scene.check();
    scene.undo();
    assert_eq!(scene.files(), "a.txt: two\n");
    scene.check();
    scene.model.says("I see.");
    scene.prompt("what was it?");
    assert!(scene.last_request().transcript().contains("tool: on"));
    scene.model.assert_exhausted();
}

#[test]
fn a_turn_is_not_stopped_for_a_change_that_would_be_refused() {
    let mut scene = Scene::new().file("a.txt", "one\n").start();
    scene.model.calls("bash", json!({"command": "echo two > a.txt"}));
    scene.model.says("Done.");
    let first = scene.prompt("change a");
    scene.write("a.txt", "mine\n");
    scene.model.calls("bash", json!({"command": "echo on; while [ ! -e go ]; do sleep 0.05; done; echo b > b.txt"}));
    scene.model.says("Finished.");
    let second = scene.say("second");
    scene.until(|kind| matches!(kind, EventKind::CallOutput { .. }));
    let refusal = scene.apply(Change::new(rewind_goal(first, Scope::Both)), WhileRunning::Interrupt).unwrap_err();
    assert_eq!(refusal.reason, Reason::Conflicts, "{refusal:?}");
    assert_eq!(refusal.document.unwrap().conflicts.len(), 1);
    let nobody = Change::new(rewind_goal(EntryId::new([7; 10]), Scope::Both));
    assert_eq!(scene.apply(nobody, WhileRunning::Interrupt).unwrap_err().reason, Reason::NotFound);
    let redo = Change::new(ChangeGoal::Redo { operation: None });
    assert_eq!(scene.apply(redo, WhileRunning::Interrupt).unwrap_err().reason, Reason::Nothing);
    assert_eq!(scene.state(), State::Running);
    scene.write("go", "");
    assert_eq!(scene.until_ended(second), (TurnEnd::Done, "Finished.".to_owned()));
    assert_eq!(scene.files(), "a.txt: mine\nb.txt: b\ngo: ");
    scene.check();
    scene.model.assert_exhausted();
}

#[test]
fn a_rewind_of_both_without_files_to_go_back_is_legal_and_says_so() {
    let mut scene = Scene::new().file("a.txt", "one\n").start();
    scene.model.says("One.");
    let first = scene.prompt("first");
    let document = scene.rewind(first, Scope::Both);
    assert!(document.applied && document.operation.is_some() && document.files.is_empty(), "{document:#?}");
    assert_eq!(document.conversation_moved, Some(true));
    assert_eq!(scene.files(), "a.txt: one\n");
    scene.undo();
    assert!(scene.context().contains("One."));
    scene.check();
}

#[test]
fn the_newest_turn_is_offered_at_once_and_while_it_runs() {
    let mut scene = Scene::new().start();
    scene.model.says("One.");
    let first = scene.prompt("first");
    assert_eq!(scene.targets()[0].id, first);
    let gate = scene.model.says("Two.").pauses();
    let second = scene.say("second");
    let ids: Vec<_> = scene.targets().iter().map(|target| target.id).collect();
    assert_eq!(ids, [second, first]);
    gate.open();
    scene.until_ended(second);
    assert_eq!(scene.targets()[0].text, "second");
}

#[test]
fn targets_can_be_searched() {
    let mut scene = Scene::new().start();
    scene.model.calls("write_file", json!({"path": "deep/blue.txt", "content": "b\n"}));
    scene.model.says("One.");
    let first = scene.prompt("Paint the sea");
    scene.model.says("Two.");
    scene.prompt("Sing");
    for query in ["SEA", "blue"] {
        let reply = scene.request(Query::Targets { query: Some(query.to_owned()) }).unwrap();
        let Reply::Targets { targets, head } = reply else { panic!("{reply:?}") };
        assert_eq!(targets.iter().map(|target| target.id).collect::<Vec<_>>(), [first], "{query}");
        assert_eq!(head, scene.view().head());
    }
}

#[test]
fn what_a_person_changed_is_kept_and_said() {
    let mut scene = Scene::new().file("a.txt", "one\n").file("b.txt", "one\n").start();
    scene.model.calls("bash", json!({"command": "echo two > a.txt; echo two > b.txt"}));
    scene.model.says("Done.");
    let first = scene.prompt("change both");
    scene.write("a.txt", "mine\n");
    scene.write("c.txt", "mine too\n");
    let before = scene.stored();
    let refusal = scene.change(rewind_goal(first, Scope::Both)).unwrap_err();
    assert_eq!(refusal.reason, Reason::Conflicts);
    assert_eq!(refusal.document.unwrap().conflicts.len(), 1);
    assert_eq!(scene.files(), "a.txt: mine\nb.txt: two\nc.txt: mine too\n");
    assert_eq!(scene.stored(), before, "neither half was done");
    scene.check();
    let change = Change { on_conflict: OnConflict::Keep, ..Change::new(rewind_goal(first, Scope::Both)) };
    scene.apply(change, WhileRunning::Refuse).unwrap();
    assert_eq!(scene.files(), "a.txt: mine\nb.txt: one\nc.txt: mine too\n");
    scene.check();
    scene.undo();
    assert_eq!(scene.files(), "a.txt: mine\nb.txt: two\nc.txt: mine too\n");
    scene.check();
}

#[test]
fn what_another_session_did_is_kept() {
    let mut scene = Scene::new().start();
    scene.model.calls("bash", json!({"command": "echo ours > ours.txt"}));
    scene.model.says("Done.");
    let first = scene.prompt("write ours");
    let (model, other, _) = scene.beside();
    model.calls("bash", json!({"command": "echo theirs > theirs.txt"}));
    model.says("Done.");
    scene.say_beside(&other.handle, "write theirs");
    scene.rewind(first, Scope::Both);
    assert_eq!(scene.files(), "theirs.txt: theirs\n");
    scene.check();
    scene.runtime().block_on(other.handle.request(Action::Close)).unwrap();
    other.served.join().unwrap();
}

#[test]
fn files_are_not_rewound_while_another_session_is_at_work() {
    let mut scene = Scene::new().start();
    scene.model.calls("bash", json!({"command": "echo ours > ours.txt"}));
    scene.model.says("Done.");
    let first = scene.prompt("write ours");
    let (model, other, _) = scene.beside();
    model.calls("bash", json!({"command": "echo on > on.txt; sleep 300", "background": true}));
    model.says("Started.");
    scene.say_beside(&other.handle, "start");
    let refusal = scene.change(rewind_goal(first, Scope::Both)).unwrap_err();
    assert_eq!(refusal.reason, Reason::InUse, "{refusal:?}");
    scene.check();
    scene.rewind(first, Scope::Conversation);
    scene.check();
    scene.runtime().block_on(other.handle.request(Action::Close)).unwrap();
    other.served.join().unwrap();
}

#[test]
fn a_plan_changes_nothing_and_says_what_would_happen() {
    let mut scene = Scene::new().start();
    scene.model.calls("bash", json!({"command": "echo a > a.txt"}));
    scene.model.says("Done.");
    let first = scene.prompt("first");
    let before = scene.view();
    let change = Change::new(rewind_goal(first, Scope::Both));
    let Reply::Change { document } = scene.request(Query::Plan { change }).unwrap() else { panic!("no document") };
    assert!(!document.applied && document.operation.is_none());
    assert_eq!(document.files.len(), 1);
    assert_eq!((document.undoes.len(), document.ledger.len()), (1, 0), "a command is named once: {document:?}");
    assert_eq!((scene.view(), scene.files().as_str()), (before, "a.txt: a\n"));
    scene.check();
}

#[test]
fn what_makes_no_sense_is_refused() {
    let mut scene = Scene::new().start();
    let nobody = EntryId::new([7; 10]);
    assert_eq!(scene.change(rewind_goal(nobody, Scope::Both)).unwrap_err().reason, Reason::NotFound);
    assert_eq!(scene.change(ChangeGoal::Undo { operation: None }).unwrap_err().reason, Reason::Nothing);
    assert_eq!(scene.change(ChangeGoal::Redo { operation: None }).unwrap_err().reason, Reason::Nothing);
    let empty = Action::prompt(vec![retake_engine::session::entry::Part::text(" \n")]);
    assert_eq!(scene.request(empty).unwrap_err().reason, Reason::Invalid);
    let undo = ChangeGoal::Undo { operation: Some("ffff".to_owned()) };
    assert_eq!(scene.change(undo).unwrap_err().reason, Reason::NotFound);
    scene.check();
}
