//! What is offered while something is typed: commands and files.

use serde_json::json;

use super::{READY, Scene, User};

#[test]
fn a_file_is_completed_and_its_content_goes_to_the_model() {
    let scene = Scene::new();
    scene
        .write("src/engine.rs", "fn engine() {}\n")
        .write("src/other.rs", "fn other() {}\n")
        .write("notes.md", "Notes.\n");
    scene.model().says("I see it.");
    let terminal = scene.open();
    terminal.type_text("explain @eng").wait_for("› @src/engine.rs").shows_no("other.rs");
    terminal.key("Tab").wait_for("> explain @src/engine.rs").type_text("please").key("Enter");
    terminal.wait_for("I see it.").wait_for(READY);
    let transcript = scene.model().last_request().transcript();
    assert!(
        transcript.contains("explain @src/engine.rs please") && transcript.contains("fn engine() {}"),
        "{transcript}"
    );
    assert!(!transcript.contains("fn other()"), "{transcript}");
}

#[test]
fn a_file_is_chosen_with_arrow_keys_and_enter_and_that_sends_nothing() {
    let scene = Scene::new();
    scene.write("one.txt", "1\n").write("two.txt", "2\n");
    let terminal = scene.open();
    terminal.type_text("@txt").wait_for("› @one.txt").key("Down").wait_for("› @two.txt").key("Enter");
    terminal.wait_until_gone("@one.txt").wait_for("> @two.txt");
    assert_eq!(scene.requests(), 0);
}

#[test]
fn a_file_that_the_agent_made_is_offered_at_once() {
    let scene = Scene::new();
    scene.write("old.txt", "old\n");
    scene.model().calls("write_file", json!({"path": "brand_new.txt", "content": "new\n"}));
    scene.model().says("Made.");
    let terminal = scene.open();
    terminal.say("make it").wait_for("May it?").key("y").wait_for("Made.").wait_for(READY);
    terminal.type_text("@brand").wait_for("› @brand_new.txt");
}

#[test]
fn commands_are_offered_with_what_they_are_for() {
    let scene = Scene::new();
    let terminal = scene.open();
    terminal.type_text("/").wait_for("› /rewind").shows("go back to a prompt");
    terminal.type_text("che").wait_for("› /checkpoints").wait_until_gone("/rewind");
    terminal.key("Tab").wait_for("> /checkpoints").key("Enter").wait_for("Checkpoints of this directory");
    terminal.key("Escape").wait_until_gone("Checkpoints of this directory");
    // Enter takes the offer.
    terminal.type_text("/hel").wait_for("› /help").key("Enter").wait_for("Going back").shows("Ctrl+R, Esc Esc");
    terminal.key("Escape").wait_until_gone("Going back");
    // Esc closes what is offered and leaves what is typed.
    terminal.type_text("/mod").wait_for("› /model").key("Escape").wait_until_gone("› /model").shows("> /mod");
    assert_eq!(scene.requests(), 0);
}

#[test]
fn what_is_no_command_is_said_to_be_none_and_not_sent() {
    let scene = Scene::new();
    let terminal = scene.open();
    terminal.say("/rewnd").wait_for("there is no command /rewnd").shows("> /rewnd");
    assert_eq!(scene.requests(), 0);
}

#[test]
fn help_opens_with_a_question_mark_and_closes_with_esc() {
    let scene = Scene::new();
    let terminal = scene.open();
    terminal.type_text("?").wait_for("Saying something").key("End").wait_for("/quit").key("Escape");
    terminal.wait_until_gone("/quit");
    terminal.type_text("really?").wait_for("> really?");
}
