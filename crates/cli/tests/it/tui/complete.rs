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
fn a_file_with_blanks_in_its_name_goes_along_too() {
    let scene = Scene::new();
    scene.write("my notes.txt", "Buy cheese.\n");
    scene.model().says("Noted.");
    let terminal = scene.open();
    terminal.type_text("read @notes").wait_for("my notes.txt").key("Tab").wait_for("> read @\"my notes.txt\"");
    terminal.key("Enter").wait_for("Noted.").wait_for(READY);
    assert!(scene.model().last_request().transcript().contains("Buy cheese."));
}

#[test]
fn a_mentioned_file_is_sent_as_it_is_now_when_its_prompt_is_said_again() {
    let scene = Scene::new();
    scene.write("a.txt", "old content\n");
    scene.model().says("Seen once.");
    scene.model().says("Seen twice.");
    let terminal = scene.open();
    terminal.ask("read @a.txt now", "Seen once.").key("C-r").wait_for("1 prompt").wait_for("What would change");
    terminal
        .key("Enter")
        .wait_for("2 Conversation only")
        .key("2")
        .wait_for("Went back to")
        .wait_for("> read @a.txt now");
    scene.write("a.txt", "new content\n");
    terminal.type_text(" please").key("Enter").wait_for("Seen twice.").wait_for(READY);
    let transcript = scene.model().last_request().transcript();
    assert!(transcript.contains("new content") && !transcript.contains("old content"), "{transcript}");
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
    terminal.say("make it").is_asked("May it?").key("y").wait_for("Made.").wait_for(READY);
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
