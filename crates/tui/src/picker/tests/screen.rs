//! What holds for everything that can be on the screen.

use super::drawing::{crossing, deciding, everything, menu, tree, zoomed};
use super::*;

/// Everything that can be on the screen.
fn scenes() -> Vec<Scene> {
    let mut busy = menu();
    busy.press(KeyCode::Enter);
    let mut labelling = Scene::ready();
    labelling.ctrl('l');
    let mut running = Scene::ready();
    running.view(State::Running);
    let ready = [Scene::opened(), Scene::ready(), hostile(), tree(), zoomed()];
    ready.into_iter().chain([menu(), deciding(), crossing(), busy, labelling, running]).collect()
}

/// What others wrote tries to take the terminal over.
fn hostile() -> Scene {
    let evil = "\u{1b}[2J\u{202e}a\u{7}\tb\nc \u{200f}家族👨‍👩‍👧‍👦 e\u{301}";
    let mut scene = Scene::opened();
    let files = TurnSummary { tools: vec![evil.to_owned()], added: 1, ran_commands: true, ..TurnSummary::default() };
    let target = Target { label: Some(evil.to_owned()), files, ..target(4, evil) };
    let mut document = everything();
    let bytes = Bytes::new(b"caf\xe9\x1b[2J");
    document.ledger[0].what = evil.to_owned();
    document.files[0].path = bytes.clone();
    document.conflicts[0].path = bytes;
    document.conflicts[0].text = evil.to_owned();
    document.undoes = vec![evil.to_owned()];
    if let Some(planned) = &mut document.conversation {
        planned.leaves[0].text = evil.to_owned();
    }
    scene.answer_lists(&document, &[target]);
    scene.picker.paste(evil);
    scene.picker.list.filter.text.clear();
    scene.picker.list.settle();
    scene.picker.notice = Some(super::super::text_lines::clean(evil));
    scene
}

#[test]
fn nothing_is_drawn_outside_the_area_whatever_its_size() {
    let widths = [0, 1, 2, 3, 7, 13, 20, 39, 40, 71, 72, 80, 99, 100, 130];
    for mut scene in scenes() {
        for (width, height) in
            widths.into_iter().flat_map(|width| (0..=26).step_by(3).map(move |height| (width, height)))
        {
            let mut buffer = Buffer::filled(Rect::new(0, 0, 140, 30), ratatui::buffer::Cell::new("#"));
            let area = Rect::new(2, 1, width, height);
            scene.picker.draw(area, &mut buffer, &Theme::new(Colours::Terminal), NOW);
            let outside = buffer.area.positions().filter(|at| !area.contains(*at));
            let touched: Vec<_> = outside.filter(|at| buffer[*at].symbol() != "#").collect();
            assert_eq!(touched, [], "{width}×{height}");
        }
    }
}

#[test]
fn what_others_wrote_makes_the_terminal_do_nothing() {
    let is_harmful = |c: char| c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c) || c == '\u{200f}';
    for (width, height) in [(40, 40), (80, 40), (120, 40)] {
        let drawn = hostile().drawn(width, height);
        assert_eq!(drawn.replace('\n', "").find(is_harmful), None, "{drawn}");
        assert!(drawn.contains("␛[2J"), "{drawn}");
    }
}

#[test]
fn without_colours_there_are_none() {
    use ratatui::style::Color;
    for mut scene in scenes() {
        let buffer = scene.buffer(100, 24);
        assert!(buffer.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
    }
}

#[test]
fn the_chosen_row_stays_on_the_screen() {
    let mut scene = Scene::opened();
    let many: Vec<Target> = (1..=60).rev().map(|number| target(number, &format!("Prompt number {number}"))).collect();
    scene.answer_lists(&plan(4), &many);
    for code in [KeyCode::End, KeyCode::PageUp, KeyCode::PageUp, KeyCode::Home, KeyCode::PageDown, KeyCode::Down] {
        scene.press(code);
        let number = scene.picker.list.chosen().and_then(|row| row.number).unwrap();
        for width in [40, 80, 120] {
            let drawn = scene.drawn(width, 20);
            let is_chosen = |line: &str| line.starts_with('›') && line.contains(&format!("Prompt number {number}"));
            assert!(drawn.lines().any(is_chosen), "{drawn}");
        }
    }
}

#[test]
fn keys_that_do_something_are_offered() {
    for scene in scenes() {
        let is_busy = matches!(scene.picker.stage, super::super::PickerStage::Busy { .. });
        assert_eq!(scene.picker.hints().is_empty(), is_busy);
    }
}
