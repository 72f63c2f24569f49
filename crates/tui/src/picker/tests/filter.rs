//! Typing to filter.

use retake_agent::contract::Query;

use super::*;

fn asked_for(scene: &Scene) -> Vec<&str> {
    let query = |command: &&Command| matches!(command, Command::Query(Query::Targets { query: Some(_) }));
    let commands = scene.commands().into_iter().filter(query);
    commands
        .filter_map(
            |command| if let Command::Query(Query::Targets { query }) = command { query.as_deref() } else { None },
        )
        .collect()
}

#[test]
fn letters_filter_at_once_whatever_their_case() {
    let mut scene = Scene::ready();
    scene.type_text("MAKE");
    assert_eq!(scene.numbers(), [3]);
    assert_eq!(scene.chosen(), Some(id(3)));
    scene.press(KeyCode::Backspace);
    assert_eq!(scene.numbers(), [3]);
    scene.ctrl('w');
    assert_eq!(scene.numbers(), [4, 3, 2, 1]);
    // What was chosen stays chosen.
    assert_eq!(scene.chosen(), Some(id(3)));
    scene.type_text("übersetze");
    assert_eq!(scene.numbers(), [2]);
}

#[test]
fn labels_tools_and_numbers_are_looked_through() {
    for (text, numbers) in [("before", vec![3]), ("npm", vec![4]), ("2", vec![2]), ("日本", vec![2]), ("zebra", vec![])]
    {
        let mut scene = Scene::ready();
        scene.type_text(text);
        assert_eq!(scene.numbers(), numbers, "{text}");
    }
}

#[test]
fn every_word_has_to_match_somewhere() {
    let mut scene = Scene::ready();
    scene.type_text("login npm");
    assert_eq!(scene.numbers(), [4]);
    scene.type_text(" tests");
    scene.answer_all(plan(4));
    assert_eq!(scene.numbers(), [0_u64; 0]);
    assert!(scene.drawn(80, 20).contains("No prompt, label, tool or changed file has all these words."));
}

#[test]
fn a_number_chooses_that_prompt_and_not_one_that_contains_it() {
    let mut scene = Scene::opened();
    let many: Vec<Target> = (1..=30).rev().map(|number| target(number, "Fix issue 3")).collect();
    scene.answer_lists(&plan(4), &many);
    scene.type_text("3");
    assert_eq!(scene.chosen(), Some(id(3)));
    assert_eq!(scene.numbers().len(), 30);
    scene.press(KeyCode::Esc);
    scene.type_text("#3");
    assert_eq!(scene.numbers(), [3]);
}

#[test]
fn files_are_asked_for_word_by_word_and_merged() {
    let mut scene = Scene::ready();
    let steps = scene.picker.paste("lock make");
    scene.keep(steps);
    assert_eq!(asked_for(&scene), ["lock", "make"]);
    assert_eq!(scene.numbers(), [0_u64; 0]);
    assert!(scene.drawn(80, 20).contains("Looking through the names of changed files …"));
    let found = Reply::Targets { head: Some(id(40)), targets: vec![target(3, "Make the tests pass"), target(1, "x")] };
    scene.answer(Ok(found));
    assert_eq!(scene.numbers(), [3]);
    assert!(scene.drawn(80, 20).contains("file `lock`"));
    // A new list keeps what was found until it is found again.
    scene.view(State::Running);
    assert_eq!(scene.numbers(), [3]);
    assert_eq!(asked_for(&scene), ["make", "lock", "make"]);
}

#[test]
fn an_answer_about_a_word_that_is_not_looked_for_any_more_changes_nothing() {
    let mut scene = Scene::ready();
    scene.type_text("qq");
    assert_eq!(asked_for(&scene), ["q", "qq"]);
    scene.answer(Ok(Reply::Targets { head: Some(id(40)), targets: targets() }));
    assert_eq!(scene.numbers(), [0_u64; 0]);
    scene.answer(Ok(Reply::Targets { head: Some(id(40)), targets: vec![target(2, "x")] }));
    assert_eq!(scene.numbers(), [2]);
}

#[test]
fn escape_clears_the_filter_and_then_closes() {
    let mut scene = Scene::ready();
    scene.type_text("make");
    assert!(!scene.press(KeyCode::Esc).contains(&PickerStep::Close));
    assert_eq!(scene.numbers(), [4, 3, 2, 1]);
    assert_eq!(scene.press(KeyCode::Esc), [PickerStep::Close]);
}

#[test]
fn pasted_text_is_one_line() {
    let mut scene = Scene::ready();
    scene.picker.paste("make\n\tthe\u{1b}");
    assert!(scene.drawn(80, 20).starts_with("Rewind: make the␛▏"));
}

#[test]
fn what_is_looked_for_is_marked() {
    use ratatui::style::Modifier;
    let mut scene = Scene::ready();
    scene.type_text("tests");
    let buffer = scene.buffer(80, 20);
    let marked: String = (0..80)
        .filter(|x| buffer[(*x, 1)].modifier.contains(Modifier::UNDERLINED))
        .map(|x| buffer[(x, 1)].symbol())
        .collect();
    assert_eq!(marked, "teststests");
}
