//! The graph of all branches.

use std::collections::HashSet;

use retake_agent::contract::{Action, Query, TreePrompt};

use super::super::tree::layout;
use super::*;

fn prompt(number: u8, parent: Option<u8>, retained: Option<u64>) -> TreePrompt {
    TreePrompt {
        id: id(number),
        parent: parent.map(id),
        at: Timestamp(NOW.0 - 60_000),
        text: format!("Prompt {number}"),
        number: retained,
        label: None,
        files: None,
        forks: Vec::new(),
        end: None,
    }
}

/// Two were left behind after the second, and one before the first.
pub fn prompts() -> Vec<TreePrompt> {
    vec![
        prompt(11, None, None),
        prompt(1, None, Some(1)),
        prompt(2, Some(1), Some(2)),
        prompt(12, Some(2), None),
        TreePrompt { forks: vec!["3fa29c41deadbeef".into()], ..prompt(13, Some(12), None) },
        TreePrompt { label: Some("good".to_owned()), ..prompt(3, Some(2), Some(3)) },
        prompt(4, Some(3), Some(4)),
    ]
}

fn graph(head: Option<u8>, prompts: &[TreePrompt]) -> String {
    let nodes = layout(head.map(id), prompts, &HashSet::new());
    nodes.iter().map(|node| format!("{} {}\n", node.graph, node.row.text)).collect()
}

#[test]
fn what_is_retained_is_a_straight_line_and_the_rest_branches_off() {
    let expected = "\
┌─○ Prompt 11
● Prompt 1
● Prompt 2
├─○ Prompt 12
│ ○ Prompt 13
● Prompt 3
● Prompt 4
";
    assert_eq!(graph(Some(4), &prompts()), expected);
}

#[test]
fn after_a_head_that_went_back_everything_branches_off() {
    let prompts = [
        prompt(1, None, Some(1)),
        prompt(2, Some(1), None),
        prompt(3, Some(2), None),
        prompt(4, Some(2), None),
        prompt(5, Some(1), None),
    ];
    let expected = "\
● Prompt 1
├─○ Prompt 2
│ ├─○ Prompt 3
│ └─○ Prompt 4
└─○ Prompt 5
";
    assert_eq!(graph(Some(1), &prompts), expected);
}

#[test]
fn a_prompt_whose_parent_is_gone_begins_a_branch() {
    assert_eq!(graph(None, &[prompt(2, Some(1), None), prompt(3, Some(2), None)]), "○ Prompt 2\n○ Prompt 3\n");
    assert_eq!(graph(None, &[]), "");
}

#[test]
fn a_very_long_conversation_is_laid_out() {
    let entry = |number: u16| EntryId::new(std::array::from_fn(|at| number.to_be_bytes()[at % 2]));
    let prompts: Vec<TreePrompt> = (0..20_000)
        .map(|at| TreePrompt { id: entry(at), parent: at.checked_sub(1).map(entry), ..prompt(1, None, Some(1)) })
        .collect();
    assert_eq!(layout(None, &prompts, &HashSet::new()).len(), 20_000);
}

#[test]
fn tab_shows_the_tree_at_the_same_prompt_and_back() {
    let mut scene = Scene::ready();
    scene.press(KeyCode::Down);
    scene.answer_all(plan(3));
    scene.press(KeyCode::Tab);
    assert_eq!(scene.commands(), [&Query::Tree]);
    scene.answer_all(plan(3));
    assert_eq!(scene.chosen(), Some(id(3)));
    scene.ctrl('t');
    assert_eq!(scene.chosen(), Some(id(3)));
    assert_eq!(scene.numbers(), [4, 3, 2, 1]);
}

#[test]
fn a_prompt_that_was_left_behind_can_be_gone_back_to_but_not_summarised() {
    let mut scene = Scene::ready();
    scene.press(KeyCode::Tab);
    scene.answer_all(plan(4));
    scene.press(KeyCode::Up);
    scene.press(KeyCode::Up);
    assert_eq!(scene.chosen(), Some(id(13)));
    let line = PromptLine { id: id(12), text: "Prompt 12".to_owned() };
    let mut document = plan(3);
    document.conversation.as_mut().unwrap().returns.push(line);
    scene.answer_all(document);
    scene.press(KeyCode::Enter);
    assert_eq!(scene.press(KeyCode::Char('5')), []);
    let drawn = scene.drawn(80, 20);
    assert!(drawn.contains("Summarise from here: it is not in the conversation now"), "{drawn}");
    assert!(drawn.contains("2 files go back, 2 prompts leave, 1 comes back"), "{drawn}");
    assert_eq!(scene.press(KeyCode::Char('1')), apply(rewind(13, Scope::Both)));
}

#[test]
fn a_place_that_cannot_be_gone_back_to_says_why_and_can_still_be_forked() {
    let mut scene = Scene::ready();
    scene.press(KeyCode::Tab);
    scene.answer_all(plan(4));
    scene.press(KeyCode::Home);
    assert_eq!(scene.chosen(), Some(id(11)));
    scene.answer(Err(refusal(Reason::NotFound, "the files as they were then are not kept")));
    scene.press(KeyCode::Enter);
    assert_eq!(scene.press(KeyCode::Char('1')), []);
    let drawn = scene.drawn(80, 24);
    assert!(drawn.contains("Code and conversation: the files as they were then are not kept"), "{drawn}");
    let fork = Action::Fork { entry: id(11) };
    assert_eq!(scene.press(KeyCode::Char('4')), [PickerStep::Ask(PickerRequest::Fork, Box::new(fork.into()))]);
}

#[test]
fn a_session_without_a_tree_stays_in_the_list() {
    let mut scene = Scene::ready();
    scene.press(KeyCode::Tab);
    scene.answer(Err(refusal(Reason::Invalid, "this cannot be asked yet")));
    assert_eq!(scene.numbers(), [4, 3, 2, 1]);
    assert!(scene.drawn(80, 20).contains("this cannot be asked yet"));
}

#[test]
fn the_filter_of_the_tree_dims_and_skips_what_is_not_looked_for() {
    let mut scene = Scene::ready();
    scene.press(KeyCode::Tab);
    scene.answer_all(plan(4));
    scene.type_text("prompt 1");
    scene.answer_all(plan(4));
    assert_eq!(scene.chosen(), Some(id(13)));
    scene.press(KeyCode::Up);
    assert_eq!(scene.chosen(), Some(id(12)));
    scene.press(KeyCode::Up);
    assert_eq!(scene.chosen(), Some(id(1)));
    assert!(scene.drawn(80, 20).contains("Prompt 4"));
}
