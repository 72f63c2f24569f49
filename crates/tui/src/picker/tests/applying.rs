//! What is sent, exactly once, and what comes of it.

use retake_agent::contract::{Action, Extent, OperationRef, Query, SessionRef, Summarised};
use retake_engine::session::entry::Usage;

use super::*;

fn menu(document: RewindDocument) -> Scene {
    let mut scene = Scene::ready_with(document);
    scene.press(KeyCode::Enter);
    scene
}

#[test]
fn enter_twice_goes_back_with_files_and_conversation() {
    let mut scene = menu(plan(4));
    assert_eq!(scene.press(KeyCode::Enter), apply(rewind(4, Scope::Both)));
}

#[test]
fn each_digit_is_one_thing() {
    let summarise = |extent| {
        let command = Action::Summarise { extent, instructions: None };
        vec![PickerStep::Ask(PickerRequest::Summarise, Box::new(command.into()))]
    };
    let expected = [
        ('1', apply(rewind(4, Scope::Both))),
        ('2', apply(rewind(4, Scope::Conversation))),
        ('3', apply(rewind(4, Scope::Code))),
        ('4', vec![PickerStep::Ask(PickerRequest::Fork, Box::new(Action::Fork { entry: id(4) }.into()))]),
        ('5', summarise(Extent::From { entry: id(4) })),
        ('6', summarise(Extent::UpTo { entry: id(4) })),
        ('7', Vec::new()),
        ('8', Vec::new()),
    ];
    for (digit, steps) in expected {
        assert_eq!(menu(plan(4)).press(KeyCode::Char(digit)), steps, "{digit}");
    }
}

#[test]
fn a_second_enter_sends_nothing_and_escape_hides_nothing() {
    let mut scene = menu(plan(4));
    assert_eq!(scene.press(KeyCode::Enter).len(), 1);
    for code in [KeyCode::Enter, KeyCode::Esc, KeyCode::Char('1'), KeyCode::Tab, KeyCode::Down, KeyCode::Backspace] {
        assert_eq!(scene.press(code), [], "{code:?}");
    }
    assert_eq!(scene.ctrl('c'), [], "that is for the app to decide");
    assert!(scene.drawn(80, 20).contains("Rewinding …"));
    // Its own change of the head is no news.
    assert_eq!(scene.view(State::Running), []);
    let done = RewindDocument { applied: true, ..plan(4) };
    let reply = Reply::Change { document: Box::new(done.clone()) };
    assert_eq!(scene.answer(Ok(reply)), [PickerStep::Rewound(Box::new(done))]);
}

#[test]
fn a_key_held_down_decides_nothing() {
    use crossterm::event::KeyEventKind;
    let mut scene = Scene::ready();
    let held = |code| KeyEvent::new_with_kind(code, KeyModifiers::NONE, KeyEventKind::Repeat);
    scene.press(KeyCode::Enter);
    assert_eq!(scene.picker.key(held(KeyCode::Enter)), []);
    assert_eq!(scene.press(KeyCode::Enter), apply(rewind(4, Scope::Both)));
    assert_eq!(Scene::ready().picker.key(held(KeyCode::Esc)), []);
    let released = KeyEvent::new_with_kind(KeyCode::Esc, KeyModifiers::NONE, KeyEventKind::Release);
    assert_eq!(Scene::ready().picker.key(released), []);
}

#[test]
fn escape_goes_back_step_by_step_with_nothing_changed() {
    let mut scene = Scene::ready_with(with_branch(with_conflicts(4)));
    let stages = |scene: &mut Scene| {
        let drawn = scene.drawn(80, 24);
        let marks = ["Yes, go on", "need a decision", "Summarise up to here"];
        marks.into_iter().find(|mark| drawn.contains(mark)).unwrap_or("rows")
    };
    scene.press(KeyCode::Enter);
    scene.press(KeyCode::Enter);
    scene.press(KeyCode::Enter);
    let mut seen = vec![stages(&mut scene)];
    for _ in 0..3 {
        let steps = scene.press(KeyCode::Esc);
        assert!(!steps.iter().any(|step| matches!(step, PickerStep::Close | PickerStep::Ask(PickerRequest::Apply, _))));
        seen.push(stages(&mut scene));
    }
    assert_eq!(seen, ["Yes, go on", "need a decision", "Summarise up to here", "rows"]);
    assert_eq!(scene.press(KeyCode::Esc), [PickerStep::Close]);
}

#[test]
fn control_c_closes_from_anywhere_while_nothing_is_under_way() {
    assert_eq!(Scene::opened().ctrl('c'), [PickerStep::Close]);
    assert_eq!(menu(plan(4)).ctrl('c'), [PickerStep::Close]);
}

#[test]
fn a_stale_head_is_told_and_everything_is_asked_again() {
    let mut scene = menu(plan(4));
    scene.press(KeyCode::Enter);
    scene.answer(Err(refusal(Reason::StaleHead, "the conversation has moved on since; nothing was changed")));
    assert!(scene.drawn(80, 20).contains("the conversation has moved on since; nothing was changed"));
    assert_eq!(scene.commands(), [&Query::Targets { query: None }]);
    scene.answer(Ok(Reply::Targets { head: Some(id(41)), targets: targets() }));
    assert_eq!(scene.commands(), [&Query::Plan { change: rewind(4, Scope::Both) }]);
    assert_eq!(scene.chosen(), Some(id(4)));
    scene.answer(Ok(Reply::Change { document: Box::new(plan(4)) }));
    scene.press(KeyCode::Enter);
    let head_seen = Some(SeenHead { head: Some(id(41)) });
    let change = rewind(4, Scope::Both);
    let command = Action::Apply { change, head_seen, plan_seen: None, running: WhileRunning::Refuse };
    assert_eq!(scene.press(KeyCode::Enter), [PickerStep::Ask(PickerRequest::Apply, Box::new(command.into()))]);
}

#[test]
fn a_stale_plan_is_told_and_can_be_sent_again_once_it_is_new() {
    let mut scene = menu(plan(4));
    scene.press(KeyCode::Enter);
    scene.answer(Err(refusal(Reason::StalePlan, "files have changed since")));
    assert!(scene.drawn(80, 20).contains("files have changed since"));
    assert_eq!(scene.press(KeyCode::Enter), [], "the plan is old");
    scene.answer_all(plan(4));
    assert_eq!(scene.press(KeyCode::Enter), apply(rewind(4, Scope::Both)));
}

#[test]
fn a_hint_is_told_too() {
    let mut scene = menu(plan(4));
    scene.press(KeyCode::Enter);
    let hint = Some("wait for it".to_owned());
    scene.answer(Err(Refusal { hint, ..refusal(Reason::InUse, "other tools are at work") }));
    assert!(scene.drawn(80, 20).contains("other tools are at work; wait for it"));
}

#[test]
fn conflicts_that_turn_up_while_applying_are_put_to_the_user() {
    let mut scene = menu(plan(4));
    scene.press(KeyCode::Char('3'));
    let document = Some(Box::new(with_conflicts(4)));
    scene.answer(Err(Refusal { document, ..refusal(Reason::Conflicts, "somebody changed 2 files") }));
    let drawn = scene.drawn(80, 20);
    assert!(drawn.contains("somebody changed 2 files") && drawn.contains("2 files need a decision"), "{drawn}");
    scene.answer_all(with_conflicts(4));
    let choices = vec![(path("a.rs"), OnConflict::Keep), (path("b.rs"), OnConflict::Keep)];
    assert_eq!(scene.press(KeyCode::Enter), apply(Change { choices, ..rewind(4, Scope::Code) }));
}

#[test]
fn another_branch_needs_a_second_yes_and_no_is_the_default() {
    let mut scene = menu(with_branch(plan(4)));
    assert_eq!(scene.press(KeyCode::Enter), []);
    assert!(scene.drawn(80, 20).contains("the branch `topic` is checked out, and it was `main` then"));
    assert_eq!(scene.press(KeyCode::Enter), [], "that was no");
    scene.press(KeyCode::Enter);
    scene.press(KeyCode::Down);
    let change = Change { across_branches: true, ..rewind(4, Scope::Both) };
    assert_eq!(scene.press(KeyCode::Enter), apply(change.clone()));
    let mut scene = menu(with_branch(plan(4)));
    scene.press(KeyCode::Enter);
    assert_eq!(scene.press(KeyCode::Char('y')), apply(change));
}

#[test]
fn a_directory_that_nothing_can_replace_stops_files_only() {
    let mut scene = menu(RewindDocument { blocked: vec![path("build")], ..plan(4) });
    assert_eq!(scene.press(KeyCode::Char('1')), []);
    assert!(scene.drawn(80, 20).contains("holds files that stay"));
    assert_eq!(scene.press(KeyCode::Char('2')), apply(rewind(4, Scope::Conversation)));
}

#[test]
fn code_alone_is_not_offered_when_the_files_are_there_already() {
    let mut scene = menu(RewindDocument { files: Vec::new(), ..plan(4) });
    assert_eq!(scene.press(KeyCode::Char('3')), []);
    assert!(scene.drawn(80, 20).contains("nothing to do, the files are there already"));
    assert_eq!(scene.press(KeyCode::Char('1')), apply(rewind(4, Scope::Both)));
}

#[test]
fn a_fork_tells_its_session() {
    let mut scene = menu(plan(4));
    scene.press(KeyCode::Char('4'));
    assert!(scene.drawn(80, 20).contains("Forking …"));
    let (session, operation) = (SessionRef::from("abc"), OperationRef::from("def"));
    let reply = Reply::Forked { session: session.clone(), operation, draft: Vec::new(), differing: Vec::new() };
    assert_eq!(scene.answer(Ok(reply)), [PickerStep::Forked { session }]);
}

#[test]
fn a_summary_is_waited_for() {
    let mut scene = menu(plan(4));
    scene.press(KeyCode::Char('6'));
    assert!(scene.drawn(80, 20).contains("The model writes the summary …"));
    assert_eq!(scene.press(KeyCode::Esc), []);
    let summary = Box::new(Summarised {
        entry: id(50),
        operation: "op".into(),
        range: (id(1), id(2)),
        text: "Short".to_owned(),
        usage: Usage::default(),
        bytes: (1000, 10),
    });
    let reply = Reply::Summarised { summary: Some(summary.clone()) };
    assert_eq!(scene.answer(Ok(reply)), [PickerStep::Summarised(summary)]);
}

#[test]
fn nothing_to_summarise_is_told() {
    let mut scene = menu(plan(4));
    scene.press(KeyCode::Char('5'));
    assert_eq!(scene.answer(Ok(Reply::Summarised { summary: None })), []);
    assert!(scene.drawn(80, 20).contains("there is nothing to summarise there; nothing was changed"));
    assert_eq!(scene.press(KeyCode::Char('1')), apply(rewind(4, Scope::Both)));
}

#[test]
fn a_label_is_written_in_place_and_an_empty_one_takes_it_away() {
    let mut scene = Scene::ready();
    scene.press(KeyCode::Down);
    scene.answer_all(plan(3));
    scene.ctrl('l');
    scene.picker.paste(" ran\n");
    assert!(scene.drawn(80, 20).contains("label: before testsran▏"));
    scene.ctrl('w');
    scene.press(KeyCode::Char('x'));
    let label = |label: Option<&str>| {
        let command = Action::Label { prompt: id(3), label: label.map(str::to_owned) };
        vec![PickerStep::Ask(PickerRequest::Label, Box::new(command.into()))]
    };
    assert_eq!(scene.press(KeyCode::Enter), label(Some("before x")));
    scene.answer(Ok(Reply::Done));
    assert_eq!(scene.commands(), [&Query::Targets { query: None }]);
    scene.answer_all(plan(3));
    scene.ctrl('l');
    scene.ctrl('u');
    assert_eq!(scene.press(KeyCode::Enter), label(None));
    scene.answer(Err(refusal(Reason::Invalid, "a label may not be that")));
    assert!(scene.drawn(80, 20).contains("a label may not be that"));
    scene.ctrl('l');
    assert_eq!(scene.press(KeyCode::Esc), []);
    assert_eq!(scene.press(KeyCode::Esc), [PickerStep::Close]);
}

#[test]
fn with_nothing_to_go_back_to_there_is_nothing_to_do() {
    let mut scene = Scene::opened();
    assert!(scene.drawn(80, 20).contains("Looking for what there is to go back to …"));
    scene.answer_lists(&plan(4), &[]);
    assert!(scene.drawn(80, 20).contains("Nothing was said yet: there is nothing to go back to."));
    for code in [KeyCode::Enter, KeyCode::Down, KeyCode::End, KeyCode::PageDown] {
        assert_eq!(scene.press(code), []);
    }
    assert_eq!(scene.ctrl('l'), []);
    assert_eq!(scene.press(KeyCode::Esc), [PickerStep::Close]);
}
