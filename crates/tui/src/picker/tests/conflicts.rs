//! Conflicts: each file gets its own decision, and exactly that is sent.

use retake_agent::contract::{DiffOf, Query};

use super::*;

fn deciding() -> Scene {
    let mut scene = Scene::ready_with(with_conflicts(4));
    scene.press(KeyCode::Enter);
    scene.press(KeyCode::Enter);
    scene
}

fn choices(a: OnConflict, b: OnConflict) -> Vec<(Bytes, OnConflict)> {
    vec![(path("a.rs"), a), (path("b.rs"), b)]
}

fn change(a: OnConflict, b: OnConflict) -> Change {
    Change { choices: choices(a, b), ..rewind(4, Scope::Both) }
}

#[test]
fn the_safe_choice_is_made_beforehand() {
    let mut scene = deciding();
    assert_eq!(scene.commands(), [&Query::Plan { change: change(OnConflict::Keep, OnConflict::Keep) }]);
    assert_eq!(scene.press(KeyCode::Enter), apply(change(OnConflict::Keep, OnConflict::Keep)));
}

#[test]
fn each_file_gets_its_own_and_the_preview_follows() {
    let mut scene = deciding();
    scene.answer_all(with_conflicts(4));
    scene.press(KeyCode::Char('m'));
    let merged = change(OnConflict::Merge, OnConflict::Keep);
    assert_eq!(scene.commands(), [&Query::Plan { change: merged.clone() }]);
    scene.answer(Ok(Reply::Change { document: Box::new(with_conflicts(4)) }));
    assert_eq!(scene.commands(), [&Query::Diff { of: DiffOf::Change { change: merged } }]);
    let line = DiffLine { kind: LineKind::Added, text: "merged line".to_owned() };
    let hunks = vec![HunkLines { start: (7, 7), lines: vec![line] }];
    let file = FileDiff { path: path("a.rs"), added: 1, removed: 0, instead: None, hunks, left_out: 0, about: None };
    scene.answer(Ok(Reply::Diff { files: vec![file], plan: None }));
    let drawn = scene.drawn(80, 20);
    assert!(drawn.contains("[merge]") && drawn.contains("7 + merged line"), "{drawn}");
    scene.press(KeyCode::Down);
    scene.press(KeyCode::Char('m'));
    assert_eq!(scene.commands(), [&Query::Ping; 0], "it does not merge");
    scene.press(KeyCode::Right);
    assert_eq!(scene.press(KeyCode::Enter), apply(change(OnConflict::Merge, OnConflict::Overwrite)));
}

#[test]
fn left_and_right_go_around() {
    let mut scene = deciding();
    let words =
        |scene: &mut Scene| scene.drawn(80, 20).lines().find(|line| line.contains("› a.rs")).unwrap().to_owned();
    assert!(words(&mut scene).contains("[keep]"));
    scene.press(KeyCode::Left);
    assert!(words(&mut scene).contains("[merge]"));
    scene.press(KeyCode::Left);
    assert!(words(&mut scene).contains("[overwrite]"));
    scene.press(KeyCode::Right);
    scene.press(KeyCode::Right);
    assert!(words(&mut scene).contains("[keep]"));
}

#[test]
fn a_capital_letter_decides_for_all_that_have_the_choice() {
    let mut scene = deciding();
    scene.press(KeyCode::Char('O'));
    assert_eq!(scene.press(KeyCode::Enter), apply(change(OnConflict::Overwrite, OnConflict::Overwrite)));
    let mut scene = deciding();
    scene.chord(KeyCode::Char('O'), KeyModifiers::SHIFT);
    scene.press(KeyCode::Char('M'));
    assert_eq!(scene.press(KeyCode::Enter), apply(change(OnConflict::Merge, OnConflict::Overwrite)));
}

#[test]
fn escape_forgets_the_decisions() {
    let mut scene = deciding();
    scene.answer_all(with_conflicts(4));
    scene.press(KeyCode::Char('O'));
    scene.answer_all(with_conflicts(4));
    scene.press(KeyCode::Esc);
    assert_eq!(scene.commands(), [&Query::Plan { change: rewind(4, Scope::Both) }]);
    scene.press(KeyCode::Enter);
    assert_eq!(scene.press(KeyCode::Enter), apply(change(OnConflict::Keep, OnConflict::Keep)));
}

#[test]
fn decisions_survive_a_refusal() {
    let mut scene = deciding();
    scene.press(KeyCode::Char('o'));
    scene.press(KeyCode::Enter);
    scene.asked.retain(|(asked, _)| *asked == PickerRequest::Apply);
    let mut document = with_conflicts(4);
    document.conflicts.push(conflict("c.rs", &[OnConflict::Keep, OnConflict::Overwrite, OnConflict::Stop]));
    let refused = Refusal { document: Some(Box::new(document.clone())), ..refusal(Reason::StalePlan, "files changed") };
    scene.answer(Err(refused));
    assert!(scene.drawn(80, 20).contains("files changed"));
    assert_eq!(scene.press(KeyCode::Enter), [], "the plan is old");
    // The question that was lost is answered all the same.
    let steps = scene.picker.answered(
        PickerRequest::Plan { generation: scene.picker.preview.generation() - 1 },
        Err(refusal(Reason::Failed, "x")),
    );
    scene.keep(steps);
    scene.answer_all(document);
    let mut all = choices(OnConflict::Overwrite, OnConflict::Keep);
    all.push((path("c.rs"), OnConflict::Keep));
    assert_eq!(scene.press(KeyCode::Enter), apply(Change { choices: all, ..rewind(4, Scope::Both) }));
}

#[test]
fn a_decision_that_raises_another_question_adds_it() {
    let mut scene = deciding();
    let mut document = with_conflicts(4);
    document.conflicts.push(conflict("dir", &[OnConflict::Keep, OnConflict::Stop]));
    scene.answer(Ok(Reply::Change { document: Box::new(document) }));
    assert!(scene.drawn(80, 24).contains("3 files need a decision"));
    let mut all = choices(OnConflict::Keep, OnConflict::Keep);
    all.push((path("dir"), OnConflict::Keep));
    assert_eq!(scene.press(KeyCode::Enter), apply(Change { choices: all, ..rewind(4, Scope::Both) }));
}

#[test]
fn conflicts_that_are_gone_need_no_decision() {
    let mut scene = deciding();
    scene.answer(Ok(Reply::Change { document: Box::new(plan(4)) }));
    assert!(scene.drawn(80, 20).contains("nothing needs a decision any more"));
    assert_eq!(scene.press(KeyCode::Enter), apply(rewind(4, Scope::Both)));
}

#[test]
fn nothing_is_sent_while_a_turn_runs() {
    let mut scene = deciding();
    scene.view(State::Running);
    assert_eq!(scene.press(KeyCode::Enter), []);
    assert!(scene.drawn(80, 20).contains("a turn is running"));
}

#[test]
fn conflicts_and_another_branch_are_both_asked_about() {
    let mut scene = Scene::ready_with(with_branch(with_conflicts(4)));
    scene.press(KeyCode::Enter);
    scene.press(KeyCode::Char('3'));
    scene.press(KeyCode::Char('o'));
    assert_eq!(scene.press(KeyCode::Enter), []);
    let choices = choices(OnConflict::Overwrite, OnConflict::Keep);
    let change = Change { choices, across_branches: true, ..rewind(4, Scope::Code) };
    assert_eq!(scene.press(KeyCode::Char('y')), apply(change));
}
