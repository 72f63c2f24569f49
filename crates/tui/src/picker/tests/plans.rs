//! Asking what would change: for the chosen row, one question at a time, and late answers are dropped.

use retake_agent::contract::{DiffOf, Query};

use super::*;

fn planned(number: u8) -> Command {
    Query::Plan { change: rewind(number, Scope::Both) }.into()
}

fn change(document: RewindDocument) -> Result<Reply, Refusal> {
    Ok(Reply::Change { document: Box::new(document) })
}

#[test]
fn the_newest_prompt_is_planned_first_and_then_its_lines() {
    let mut scene = Scene::opened();
    assert_eq!(scene.commands(), [&Query::Targets { query: None }]);
    scene.answer(Ok(Reply::Targets { head: Some(id(40)), targets: targets() }));
    assert_eq!(scene.commands(), [&planned(4)]);
    scene.answer(change(plan(4)));
    let diff = Query::Diff { of: DiffOf::Change { change: rewind(4, Scope::Both) } };
    assert_eq!(scene.commands(), [&diff]);
    scene.answer(Ok(Reply::Diff { files: diffs(), plan: None }));
    assert_eq!(scene.commands(), [&Query::Ping; 0]);
}

#[test]
fn a_key_held_down_asks_only_for_where_it_stops() {
    let mut scene = Scene::ready();
    scene.press(KeyCode::Down);
    scene.press(KeyCode::Down);
    scene.press(KeyCode::Up);
    scene.press(KeyCode::Down);
    assert_eq!(scene.commands(), [&planned(3)]);
    scene.answer(change(RewindDocument { foreign: 9, ..plan(3) }));
    assert!(!scene.drawn(80, 20).contains("never wrote"), "a late answer is not shown");
    assert_eq!(scene.commands(), [&planned(2)]);
}

#[test]
fn a_late_plan_of_the_same_row_is_dropped_too() {
    let mut scene = Scene::ready();
    scene.press(KeyCode::Down);
    scene.press(KeyCode::Up);
    scene.answer(change(RewindDocument { foreign: 9, ..plan(3) }));
    assert_eq!(scene.commands(), [&planned(4)]);
    scene.answer_all(plan(4));
    assert!(!scene.drawn(80, 20).contains("never wrote"));
}

#[test]
fn late_lines_are_dropped() {
    let mut scene = Scene::ready();
    scene.press(KeyCode::Down);
    scene.answer(change(plan(3)));
    scene.press(KeyCode::Down);
    scene.answer(Ok(Reply::Diff { files: diffs(), plan: None }));
    assert_eq!(scene.commands(), [&planned(2)]);
}

#[test]
fn the_old_preview_stays_dimmed_while_a_new_one_is_worked_out() {
    use ratatui::style::Modifier;
    let mut scene = Scene::ready();
    scene.press(KeyCode::Down);
    let drawn = scene.drawn(80, 20);
    assert!(drawn.contains("working out what would change …") && drawn.contains("2 files"), "{drawn}");
    let buffer = scene.buffer(80, 20);
    let line = drawn.lines().position(|line| line.contains("2 files")).unwrap();
    assert!(buffer[(0, u16::try_from(line).unwrap())].modifier.contains(Modifier::DIM));
    scene.answer_all(plan(3));
    assert!(!scene.drawn(80, 20).contains("working out"));
}

#[test]
fn of_a_prompt_whose_files_are_gone_only_the_conversation_is_planned() {
    let mut scene = Scene::ready();
    scene.press(KeyCode::End);
    assert_eq!(scene.commands(), [&Query::Plan { change: rewind(1, Scope::Conversation) }]);
    let document = RewindDocument { scope: Some(Scope::Conversation), files: Vec::new(), ..plan(1) };
    scene.answer(change(document));
    assert_eq!(scene.commands(), [&Query::Ping; 0]);
    scene.press(KeyCode::Enter);
    assert_eq!(scene.press(KeyCode::Char('1')), []);
    assert_eq!(scene.press(KeyCode::Char('3')), []);
    assert_eq!(scene.press(KeyCode::Char('2')), apply(rewind(1, Scope::Conversation)));
}

#[test]
fn the_menu_can_be_opened_before_the_plan_is_there_but_files_wait_for_it() {
    let mut scene = Scene::ready();
    scene.press(KeyCode::Down);
    scene.press(KeyCode::Enter);
    assert_eq!(scene.press(KeyCode::Enter), []);
    assert!(scene.drawn(80, 20).contains("Code and conversation: working out what would change …"));
    scene.answer_all(plan(3));
    assert_eq!(scene.press(KeyCode::Enter), apply(rewind(3, Scope::Both)));
}

#[test]
fn a_turn_that_begins_disables_going_back_until_it_has_ended() {
    let mut scene = Scene::ready();
    scene.press(KeyCode::Enter);
    scene.view(State::Running);
    scene.answer_all(plan(4));
    let drawn = scene.drawn(80, 20);
    assert!(drawn.contains("a turn is running: stop it first, or wait until it has ended"), "{drawn}");
    for digit in ['1', '2', '3', '5', '6'] {
        assert_eq!(scene.press(KeyCode::Char(digit)), [], "{digit}");
    }
    scene.view(State::Idle);
    assert!(scene.drawn(80, 20).contains("the turn has ended; this is what there is now"));
    assert_eq!(scene.press(KeyCode::Char('1')), [], "the plan is of before");
    scene.answer_all(plan(4));
    assert_eq!(scene.press(KeyCode::Char('1')), apply(rewind(4, Scope::Both)));
}

#[test]
fn a_view_in_which_nothing_new_is_asks_for_nothing() {
    let mut scene = Scene::ready();
    assert_eq!(scene.view(State::Idle), []);
    scene.view(State::Running);
    scene.answer_all(plan(4));
    assert_eq!(scene.view(State::Running), []);
}

#[test]
fn a_head_that_moved_is_the_one_that_is_sent() {
    let mut scene = Scene::ready();
    scene.view(State::Running);
    scene.view(State::Idle);
    scene.asked.retain(|(asked, _)| matches!(asked, PickerRequest::Targets { .. } | PickerRequest::Plan { .. }));
    // The first list is late: a newer one was asked for.
    let reply = |head| Reply::Targets { head: Some(id(head)), targets: targets() };
    let lists =
        |scene: &Scene| scene.asked.iter().position(|(asked, _)| matches!(asked, PickerRequest::Targets { .. }));
    for head in [41, 42] {
        let at = lists(&scene).unwrap();
        let (asked, _) = scene.asked.remove(at);
        let steps = scene.picker.answered(asked, Ok(reply(head)));
        scene.keep(steps);
    }
    assert_eq!(scene.picker.head, Some(SeenHead { head: Some(id(42)) }));
}

#[test]
fn a_menu_about_a_prompt_that_left_the_conversation_closes() {
    let mut scene = Scene::ready();
    scene.press(KeyCode::Enter);
    scene.view(State::Running);
    scene.view(State::Idle);
    scene.answer_lists(&plan(3), &targets()[1..]);
    assert_eq!(scene.chosen(), Some(id(3)));
    assert!(scene.drawn(80, 20).contains("is not in the list any more; nothing was changed"));
    assert_eq!(
        scene.press(KeyCode::Char('1')),
        [
            PickerStep::Ask(
                PickerRequest::Found { word: "1".to_owned() },
                Box::new(Query::Targets { query: Some("1".to_owned()) }.into())
            ),
            PickerStep::Ask(
                PickerRequest::Plan { generation: scene.picker.preview.generation() },
                Box::new(Query::Plan { change: rewind(1, Scope::Conversation) }.into())
            )
        ],
        "it is a filter again"
    );
}

#[test]
fn keys_move_by_rows_and_pages_and_stop_at_the_ends() {
    let mut scene = Scene::opened();
    let many: Vec<Target> = (1..=50).rev().map(|number| target(number, "x")).collect();
    scene.answer_lists(&plan(4), &many);
    scene.drawn(80, 20);
    let at = |scene: &mut Scene, code| {
        scene.press(code);
        scene.picker.list.chosen().and_then(|row| row.number).unwrap()
    };
    assert_eq!(at(&mut scene, KeyCode::Up), 50);
    assert_eq!(at(&mut scene, KeyCode::Down), 49);
    assert_eq!(at(&mut scene, KeyCode::PageDown), 41);
    assert_eq!(at(&mut scene, KeyCode::PageUp), 49);
    assert_eq!(at(&mut scene, KeyCode::End), 1);
    assert_eq!(at(&mut scene, KeyCode::PageDown), 1);
    assert_eq!(at(&mut scene, KeyCode::Home), 50);
    scene.ctrl('n');
    scene.ctrl('n');
    scene.ctrl('p');
    assert_eq!(scene.chosen(), Some(id(49)));
}

#[test]
fn the_preview_scrolls_and_stops_at_its_end() {
    let mut scene = Scene::ready();
    let first = scene.drawn(80, 16);
    scene.ctrl('d');
    let second = scene.drawn(80, 16);
    assert_ne!(first, second);
    scene.picker.wheel(1000);
    let end = scene.drawn(80, 16);
    assert!(end.trim_end().ends_with("session's own."), "{end}");
    scene.picker.wheel(-1000);
    assert_eq!(scene.drawn(80, 16), first);
    scene.chord(KeyCode::Down, KeyModifiers::SHIFT);
    scene.chord(KeyCode::Up, KeyModifiers::SHIFT);
    assert_eq!(scene.drawn(80, 16), first);
}

#[test]
fn an_answer_to_a_picker_that_was_closed_is_dropped() {
    let mut old = Scene::opened();
    old.answer(Ok(Reply::Targets { head: Some(id(40)), targets: targets() }));
    let (asked, _) = old.asked.remove(0);
    let mut scene = Scene::opened();
    scene.answer(Ok(Reply::Targets { head: Some(id(40)), targets: targets() }));
    let steps = scene.picker.answered(asked, change(RewindDocument { foreign: 9, ..plan(4) }));
    assert_eq!(steps, []);
    assert!(!scene.drawn(80, 20).contains("never wrote"));
    scene.answer_all(plan(4));
    assert!(scene.drawn(80, 20).contains("2 files"));
}
