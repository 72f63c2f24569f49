//! R31: what waits to be said belongs to whoever typed it. A prompt takes only that away which it says.

use retake_agent::contract::{Action, EventKind, Mentions, Reply};
use retake_engine::session::Scope;
use retake_engine::session::entry::Part;

use crate::scene::Scene;

/// Somebody has typed this, and looks elsewhere.
fn typed(scene: &Scene, text: &str) {
    scene.request(Action::Draft { parts: vec![Part::text(text)] }).unwrap();
}

/// Says `text`, which was made from `draft`, and waits for the end of the turn.
fn say_from(scene: &mut Scene, text: &str, draft: &str) {
    let (parts, draft) = (vec![Part::text(text)], Some(vec![Part::text(draft)]));
    let said = scene
        .request(Action::Prompt { parts, allow: None, unprotected: false, draft, mentions: Mentions::Leave })
        .unwrap();
    let Reply::Said { prompt } = said else { panic!("not said: {said:?}") };
    scene.until_ended(prompt);
}

#[test]
fn a_prompt_of_one_client_leaves_what_another_has_typed() {
    let mut scene = Scene::new().start();
    typed(&scene, "a long thought");
    scene.model.says("One.");
    scene.prompt("something short");
    assert_eq!(scene.draft(), "a long thought");
    let changes = scene.told().iter().filter(|kind| matches!(kind, EventKind::DraftChanged { .. })).count();
    assert_eq!(changes, 1, "nobody is told of it again");
    scene.check();
    // While a turn runs it is the same.
    let gate = scene.model.says("Two.").pauses();
    scene.model.says("Three.");
    scene.say("second");
    let held = scene.request(Action::prompt(vec![Part::text("third")])).unwrap();
    assert!(matches!(held, Reply::Held { .. }), "{held:?}");
    assert_eq!(scene.draft(), "a long thought");
    gate.open();
    for _ in 0..2 {
        scene.until(|kind| matches!(kind, EventKind::TurnEnded { .. }));
    }
    assert_eq!(scene.draft(), "a long thought");
    scene.restart();
    assert_eq!(scene.draft(), "a long thought", "it is stored");
    // What was said by others is undone around it.
    scene.undo();
    assert_eq!(scene.draft(), "a long thought");
    scene.redo();
    assert_eq!(scene.draft(), "a long thought");
    scene.check();
}

#[test]
fn what_waits_goes_with_the_prompt_that_says_it_or_was_made_from_it() {
    let mut scene = Scene::new().start();
    scene.model.says("One.");
    scene.model.says("Two.");
    scene.model.says("Three.");
    typed(&scene, "mend it");
    scene.prompt("mend it");
    assert_eq!(scene.draft(), "", "it is what was said");
    typed(&scene, "mend this");
    say_from(&mut scene, "mend this, and test it", "mend this");
    assert_eq!(scene.draft(), "", "it was loaded and gone on with");
    typed(&scene, "another one's");
    say_from(&mut scene, "and more", "mend this");
    assert_eq!(scene.draft(), "another one's", "this one was not");
    scene.check();
}

#[test]
fn what_a_rewind_left_to_be_said_goes_with_the_next_prompt_and_comes_back_with_undo() {
    let mut scene = Scene::new().start();
    scene.model.says("One.");
    let first = scene.prompt("first");
    scene.rewind(first, Scope::Both);
    assert_eq!(scene.draft(), "first");
    scene.model.says("Two.");
    scene.prompt("something else");
    assert_eq!(scene.draft(), "", "the log has it");
    scene.undo();
    assert_eq!(scene.draft(), "something else");
    scene.check();
}
