//! Prompts that come while a turn runs.

use retake_agent::contract::{Action, Change, Command, EventKind, Reason, Reply, Request, State, WhileRunning};
use retake_engine::id::EntryId;
use retake_engine::session::Scope;
use retake_engine::session::entry::Part;
use serde_json::json;

use crate::scene::{Scene, rewind_goal};

fn hold(scene: &mut Scene, text: &str) -> usize {
    match scene.request(Action::prompt(vec![Part::text(text)])).unwrap() {
        Reply::Held { count, .. } => count,
        other => panic!("not held: {other:?}"),
    }
}

/// Waits for the end of the next turn, and gives its prompt.
fn until_any_ended(scene: &mut Scene) -> EntryId {
    match scene.until(|kind| matches!(kind, EventKind::TurnEnded { .. })) {
        EventKind::TurnEnded { prompt, .. } => prompt,
        _ => unreachable!(),
    }
}

#[test]
fn held_prompts_are_said_after_the_turn_in_order_and_the_draft_stays() {
    let mut scene = Scene::new().start();
    let gate = scene.model.says("One.").pauses();
    scene.model.says("Two.");
    scene.model.says("Three.");
    scene.say("first");
    assert_eq!((hold(&mut scene, "second"), hold(&mut scene, "third")), (1, 2));
    scene.request(Action::Draft { parts: vec![Part::text("half a thou")] }).unwrap();
    assert_eq!(scene.draft(), "half a thou", "what is held is not about to be said again");
    let stored = scene.workspace().sessions().draft(scene.session()).unwrap();
    assert_eq!(
        stored,
        [Part::text("second\n\nthird\n\nhalf a thou")],
        "but should the process die, all of it is there"
    );
    gate.open();
    for _ in 0..3 {
        until_any_ended(&mut scene);
    }
    let transcript = scene.last_request().transcript();
    assert!(
        transcript.ends_with("user: first\nassistant: One.\nuser: second\nassistant: Two.\nuser: third"),
        "{transcript}"
    );
    assert_eq!((scene.draft().as_str(), scene.view().held), ("half a thou", 0));
    scene.check();
    scene.model.assert_exhausted();
}

#[test]
fn a_held_prompt_can_be_withdrawn_until_it_is_said_and_its_turn_carries_its_request() {
    let mut scene = Scene::new().start();
    let send = |scene: &Scene, id: &str, command: Command| {
        scene.runtime().block_on(scene.handle().send(Request { id: id.to_owned(), command }))
    };
    let withdraw = |request: &str| Action::Withdraw { request: request.to_owned() };
    let gate = scene.model.says("One.").pauses();
    scene.model.says("Three.");
    scene.say("first");
    for (id, text, count) in [("h2", "second", 1), ("h3", "third", 2)] {
        let held = send(&scene, id, Action::prompt(vec![Part::text(text)]).into()).unwrap();
        assert_eq!(held, Reply::Held { count, request: Some(id.to_owned()) });
    }
    scene.request(Action::Draft { parts: vec![Part::text("half")] }).unwrap();
    assert_eq!(send(&scene, "w", withdraw("h2").into()).unwrap(), Reply::Done);
    assert_eq!(send(&scene, "w", withdraw("h2").into()).unwrap_err().reason, Reason::NotFound);
    assert_eq!((scene.view().held, scene.draft().as_str()), (1, "half"));
    assert_eq!(scene.workspace().sessions().draft(scene.session()).unwrap(), [Part::text("third\n\nhalf")]);
    gate.open();
    until_any_ended(&mut scene);
    let third = until_any_ended(&mut scene);
    assert_eq!(send(&scene, "w", withdraw("h3").into()).unwrap_err().reason, Reason::NotFound, "it is said");
    let of_third = scene.requests_of(|kind| match kind {
        EventKind::Appended { entry } => entry.id == third,
        EventKind::Delta { turn, .. } => *turn == third,
        EventKind::TurnEnded { prompt, .. } => *prompt == third,
        _ => false,
    });
    assert!(3 <= of_third.len() && of_third.iter().all(|one| one.as_deref() == Some("h3")), "{of_third:?}");
    let transcript = scene.last_request().transcript();
    assert!(transcript.ends_with("user: first\nassistant: One.\nuser: third"), "{transcript}");
    assert_eq!(scene.draft(), "half");
    scene.check();
    scene.model.assert_exhausted();
}

#[test]
fn an_interrupt_gives_held_prompts_back() {
    let mut scene = Scene::new().start();
    let _gate = scene.model.says_slowly(["One", " more."]);
    let first = scene.say("first");
    scene.until(|kind| matches!(kind, EventKind::Delta { .. }));
    hold(&mut scene, "second");
    scene.interrupt(first);
    assert_eq!((scene.draft().as_str(), scene.view().held, scene.state()), ("second", 0, State::Paused));
    scene.check();
    assert_eq!(scene.model.requests().len(), 1, "nothing runs by itself");
}

#[test]
fn whoever_waits_for_a_held_prompt_is_told_that_it_is_not_said() {
    let mut scene = Scene::new().start();
    let _gate = scene.model.says_slowly(["One", " more."]);
    let first = scene.say("first");
    scene.until(|kind| matches!(kind, EventKind::Delta { .. }));
    for id in ["b", "c"] {
        let command = Action::prompt(vec![Part::text(id)]);
        scene.runtime().block_on(scene.handle().send(Request { id: id.to_owned(), command: command.into() })).unwrap();
    }
    scene.interrupt(first);
    let returned = scene.requests_of(|kind| matches!(kind, EventKind::Returned));
    assert_eq!(returned, [Some("b".to_owned()), Some("c".to_owned())]);
    assert_eq!(scene.draft(), "b\n\nc");
}

#[test]
fn what_is_said_after_an_interrupt_is_said_when_the_turn_has_settled() {
    let mut scene = Scene::new().start();
    scene.model.calls("bash", json!({"command": "trap '' TERM; echo on; while :; do sleep 0.1; done"}));
    scene.model.says("Right.");
    scene.say("loop");
    scene.until(|kind| matches!(kind, EventKind::CallOutput { .. }));
    scene.request(Action::Interrupt { turn: None }).unwrap();
    scene.request(Action::prompt(vec![Part::text("something else")])).unwrap();
    until_any_ended(&mut scene);
    until_any_ended(&mut scene);
    assert!(scene.last_request().transcript().ends_with("user: something else"));
    scene.check();
    scene.model.assert_exhausted();
}

#[test]
fn a_failed_turn_does_not_go_on_to_what_is_held() {
    let mut scene = Scene::new().start();
    let gate = scene.model.fails_with(401, "{}").pauses();
    scene.say("first");
    hold(&mut scene, "second");
    gate.open();
    until_any_ended(&mut scene);
    assert_eq!(scene.draft(), "first\n\nsecond", "both are to be said again");
    scene.check();
    assert_eq!(scene.model.requests().len(), 1);
}

#[test]
fn a_rewind_of_a_paused_session_cancels_the_question_and_gives_held_prompts_back() {
    let mut scene = Scene::new().interactive().start();
    scene.model.calls("write_file", json!({"path": "a.txt", "content": "a\n"}));
    let first = scene.say("write a");
    let question = scene.until_asked();
    scene.until(|kind| matches!(kind, EventKind::StateChanged { state: State::Paused }));
    hold(&mut scene, "then b");
    let document = scene.rewind(first, Scope::Both);
    assert!(document.applied);
    assert_eq!((scene.draft().as_str(), scene.files().as_str()), ("write a\n\nthen b", ""));
    let told = scene.told();
    assert!(told.contains(&EventKind::PermissionSettled { call: question.call.clone(), allowed: false }));
    let view = scene.view();
    assert_eq!(
        (view.conversation().prompts().count(), view.questions.len(), view.held, view.state),
        (0, 0, 0, State::Idle)
    );
    scene.check();
    let late = Action::Answer { call: question.call, answer: retake_agent::contract::PermissionAnswer::Allow };
    assert!(scene.request(late).is_err(), "an answer that comes late allows nothing");
    scene.model.assert_exhausted();
}

#[test]
fn a_rewind_that_interrupts_gives_held_prompts_back_too() {
    let mut scene = Scene::new().start();
    scene.model.says("One.");
    let first = scene.prompt("first");
    let _gate = scene.model.says_slowly(["Two", "."]);
    scene.say("second");
    scene.until(|kind| matches!(kind, EventKind::Delta { .. }));
    hold(&mut scene, "third");
    scene.apply(Change::new(rewind_goal(first, Scope::Both)), WhileRunning::Interrupt).unwrap();
    assert_eq!((scene.draft().as_str(), scene.view().held), ("first\n\nthird", 0));
    scene.check();
    scene.restart();
    assert_eq!(scene.draft(), "first\n\nthird");
    scene.check();
}
