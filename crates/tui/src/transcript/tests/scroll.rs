//! Where the conversation is looked at, and that it does not move by itself.

use retake_agent::view::View;
use retake_engine::session::entry::{Body, Outcome};

use super::build::*;
use crate::transcript::Transcript;

/// Prompts and answers that are told apart by their numbers.
fn long(count: usize) -> View {
    let turn = |n: usize| [prompt(&format!("question {n}")), says(&format!("answer {n}\n\nmore of {n}"))];
    view((0..count).flat_map(turn))
}

#[test]
fn the_end_is_shown_and_followed() {
    let mut view = long(50);
    let mut transcript = Transcript::new();
    assert_eq!(frame(&mut transcript, &view, 40, 5), ["> question 49", "", "answer 49", "", "more of 49"]);
    add(&mut view, prompt("new"));
    view.coming.text = "com\n\ning".to_owned();
    assert_eq!(frame(&mut transcript, &view, 40, 5), ["> new", "", "com", "", "ing"]);
    assert!(transcript.is_at_bottom());
}

#[test]
fn a_short_conversation_begins_at_the_top_and_does_not_scroll() {
    let view = long(1);
    let mut transcript = Transcript::new();
    transcript.scroll(-3);
    assert!(!transcript.is_at_bottom());
    let rows = frame(&mut transcript, &view, 40, 8);
    assert_eq!(rows[..5], ["> question 0", "", "answer 0", "", "more of 0"]);
    assert!(transcript.is_at_bottom());
}

#[test]
fn what_is_read_stays_in_place_while_more_comes() {
    let mut view = long(50);
    let mut transcript = Transcript::new();
    frame(&mut transcript, &view, 40, 6);
    transcript.scroll(-9);
    let rows = frame(&mut transcript, &view, 40, 6);
    assert!(!transcript.is_at_bottom());
    for n in 0..20 {
        view.coming.text.push_str("words that are coming\n\n");
        view.seq += 1;
        assert_eq!(frame(&mut transcript, &view, 40, 6), rows, "{n}");
    }
    let said = says(&std::mem::take(&mut view.coming.text));
    add(&mut view, said);
    add(&mut view, prompt("next"));
    assert_eq!(frame(&mut transcript, &view, 40, 6), rows);
    transcript.to_bottom();
    assert_eq!(frame(&mut transcript, &view, 40, 6)[5], "> next");
    assert!(transcript.is_at_bottom());
}

#[test]
fn text_that_is_coming_stays_in_place_when_it_becomes_a_reply() {
    let mut view = long(2);
    view.coming.text = (0..30).map(|n| format!("- line {n}\n")).collect();
    let mut transcript = Transcript::new();
    frame(&mut transcript, &view, 40, 6);
    transcript.scroll(-10);
    let rows = frame(&mut transcript, &view, 40, 6);
    assert_eq!(rows[0], "- line 14");
    let said = says(&std::mem::take(&mut view.coming.text));
    add(&mut view, said);
    assert_eq!(frame(&mut transcript, &view, 40, 6), rows);
    add(&mut view, prompt("next"));
    assert_eq!(frame(&mut transcript, &view, 40, 6), rows);
}

#[test]
fn going_down_to_the_end_follows_it_again() {
    let mut view = long(50);
    let mut transcript = Transcript::new();
    frame(&mut transcript, &view, 40, 6);
    transcript.scroll(-7);
    frame(&mut transcript, &view, 40, 6);
    transcript.scroll(6);
    frame(&mut transcript, &view, 40, 6);
    assert!(!transcript.is_at_bottom());
    transcript.scroll(3);
    frame(&mut transcript, &view, 40, 6);
    assert!(transcript.is_at_bottom());
    add(&mut view, prompt("new"));
    assert_eq!(frame(&mut transcript, &view, 40, 6)[5], "> new");
}

#[test]
fn every_line_is_met_once_on_the_way_down() {
    let view = long(12);
    let whole = frame(&mut Transcript::new(), &view, 30, 71);
    let mut transcript = Transcript::new();
    transcript.to_top();
    let mut met = frame(&mut transcript, &view, 30, 7);
    while !transcript.is_at_bottom() {
        transcript.scroll(1);
        let rows = frame(&mut transcript, &view, 30, 7);
        met.push(rows[6].clone());
    }
    assert_eq!(met, whole);
    transcript.page(-1);
    assert_eq!(frame(&mut transcript, &view, 30, 7), whole[71 - 7 - 5..71 - 5]);
}

#[test]
fn another_width_shows_the_same_text() {
    let text: String = (0..200).map(|n| format!("word{n} ")).collect();
    let view = view([prompt("a"), says(&text), prompt("b"), says(&text)]);
    let mut transcript = Transcript::new();
    frame(&mut transcript, &view, 80, 6);
    transcript.scroll(-26);
    let before = frame(&mut transcript, &view, 80, 6);
    let number = |row: &str| row.split("word").nth(1).and_then(|rest| rest.split(' ').next()?.parse::<i32>().ok());
    let after = frame(&mut transcript, &view, 40, 6);
    let (before, after) = (number(&before[0]).expect("a word"), number(&after[0]).expect("a word"));
    assert!((before - after).abs() < 12, "{before} {after}");
}

#[test]
fn a_place_that_is_gone_is_the_end() {
    let mut view = long(50);
    let mut transcript = Transcript::new();
    frame(&mut transcript, &view, 40, 6);
    transcript.scroll(-40);
    frame(&mut transcript, &view, 40, 6);
    view.entries.truncate(4);
    assert_eq!(frame(&mut transcript, &view, 40, 6)[5], "more of 1");
    assert!(transcript.is_at_bottom());
}

#[test]
fn a_click_unfolds_below_and_moves_nothing_above() {
    let mut view = long(3);
    add(&mut view, calls("bash", r#"{"command":"seq 20"}"#));
    let output: String = (1..=20).map(|n| format!("{n}\n")).collect();
    add(&mut view, result("bash: seq 20", Outcome::Done, &output));
    let mut transcript = Transcript::new();
    let before = frame(&mut transcript, &view, 40, 12);
    assert_eq!(before[3..6], ["", "● bash: seq 20", "  … 14 more lines, Ctrl+O shows all"]);
    assert!(!transcript.click(0), "an answer does not fold");
    assert!(transcript.click(5));
    let after = frame(&mut transcript, &view, 40, 12);
    assert_eq!((&after[..5], after[5].as_str()), (&before[..5], "  1"));
    assert!(transcript.click(5));
    assert_eq!(frame(&mut transcript, &view, 40, 12), before);
    assert!(transcript.is_at_bottom());
    transcript.toggle_all();
    assert_eq!(frame(&mut transcript, &view, 40, 12)[11], "  20");
    assert!(transcript.is_at_bottom());
}

#[test]
fn a_prompt_that_the_model_no_longer_sees_is_dim() {
    let mut view = view([prompt("old"), Body::Cleared, prompt("new")]);
    let is_dim = |view: &View, row: u16| {
        let area = ratatui::layout::Rect::new(0, 0, 40, 6);
        let mut buf = ratatui::buffer::Buffer::empty(area);
        Transcript::new().draw(view, 0, area, &mut buf, &crate::theme::Theme::default());
        buf[(2, row)].modifier.contains(ratatui::style::Modifier::DIM)
    };
    assert!(is_dim(&view, 0) && !is_dim(&view, 4));
    view.entries.truncate(1);
    assert!(!is_dim(&view, 0));
}

#[test]
fn an_area_without_room_is_no_trouble() {
    let view = long(3);
    let mut transcript = Transcript::new();
    for (width, height) in [(0, 5), (5, 0), (1, 1), (3, 2), (7, 3)] {
        let area = ratatui::layout::Rect::new(0, 0, width, height);
        let mut buf = ratatui::buffer::Buffer::empty(area);
        transcript.draw(&view, 0, area, &mut buf, &crate::theme::Theme::default());
        transcript.page(-1);
    }
}
