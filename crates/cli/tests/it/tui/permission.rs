//! Whether a call may run: what is asked, and what becomes of each answer.

use serde_json::json;

use super::{READY, Scene, User};

#[test]
fn a_command_waits_until_it_is_allowed_and_is_asked_about_again() {
    let scene = Scene::new();
    scene.model().calls("bash", json!({"command": "touch one.txt"}));
    scene.model().calls("bash", json!({"command": "touch two.txt"}));
    scene.model().says("Both made.");
    let terminal = scene.open();
    terminal
        .say("make files")
        .is_asked("May it? bash: touch one.txt")
        .shows("? waits for you")
        .shows("y Yes, this once");
    assert!(!scene.exists("one.txt"));
    terminal.key("y").is_asked("May it? bash: touch two.txt");
    assert!(scene.exists("one.txt") && !scene.exists("two.txt"));
    terminal.key("y").wait_for("Both made.").wait_for(READY);
    assert!(scene.exists("two.txt"));
}

#[test]
fn what_is_always_allowed_is_not_asked_about_again() {
    let scene = Scene::new();
    scene.model().calls("bash", json!({"command": "touch one.txt"}));
    scene.model().calls("bash", json!({"command": "touch two.txt"}));
    scene.model().says("Both made.");
    let terminal = scene.open();
    terminal.say("make files").is_asked("May it? bash: touch one.txt").shows("always `bash: touch");
    terminal.keys(["a", "Enter"]).wait_for("Both made.").wait_for(READY).shows("allowed from now on: `bash: touch");
    assert!(scene.exists("one.txt") && scene.exists("two.txt"));
}

#[test]
fn a_no_with_a_reason_reaches_the_model() {
    let scene = Scene::new();
    scene.model().calls("bash", json!({"command": "touch one.txt"}));
    scene.model().says("As you wish.");
    let terminal = scene.open();
    terminal.say("make a file").is_asked("May it?").key("w").wait_for("Why not? The model is told.");
    terminal.say("use another name").wait_for("As you wish.").wait_for(READY);
    assert!(!scene.exists("one.txt"));
    let transcript = scene.model().last_request().transcript();
    assert!(transcript.contains("did not allow this call") && transcript.contains("use another name"), "{transcript}");
    // The reason was an answer, and is no prompt.
    assert!(!transcript.contains("user: use another name"), "{transcript}");
}

#[test]
fn a_no_can_be_reconsidered_before_it_is_said() {
    let scene = Scene::new();
    scene.model().calls("bash", json!({"command": "touch one.txt"}));
    scene.model().says("Made.");
    let terminal = scene.open();
    terminal.say("make a file").is_asked("May it?").key("w").type_text("becau").wait_for("> becau");
    terminal.key("Escape").wait_until_gone("becau").key("y").wait_for("Made.").wait_for(READY);
    assert!(scene.exists("one.txt"));
}

#[test]
fn an_edit_is_asked_about_with_the_lines_that_it_would_change() {
    let scene = Scene::new();
    scene.write("a.txt", "one\ntwo\nthree\n");
    scene.model().calls("edit_file", json!({"path": "a.txt", "old": "two", "new": "second"}));
    scene.model().says("Edited.");
    let terminal = scene.open();
    terminal.say("edit a").is_asked("May it?").shows("− two").shows("+ second").shows("y Yes, this once");
    assert_eq!(scene.read("a.txt"), "one\ntwo\nthree\n");
    terminal.key("y").wait_for("Edited.").wait_for(READY);
    assert_eq!(scene.read("a.txt"), "one\nsecond\nthree\n");
}

#[test]
fn while_something_is_asked_another_prompt_can_be_typed_and_is_held() {
    let scene = Scene::new();
    scene.model().calls("bash", json!({"command": "touch one.txt"}));
    scene.model().says("Made.");
    scene.model().says("And this.");
    let terminal = scene.open();
    terminal.say("make a file").is_asked("May it?").key("Tab").wait_for("goes back to the answers");
    terminal.say("say more").wait_for("1 held");
    assert!(!scene.exists("one.txt"));
    terminal
        .wait_until_gone("goes back to the answers")
        .is_asked("› y Yes")
        .key("y")
        .wait_for("And this.")
        .wait_for(READY);
    assert!(scene.exists("one.txt"));
    assert!(scene.model().last_request().transcript().ends_with("user: say more"));
}

#[test]
fn esc_at_a_question_stops_the_turn_and_nothing_runs() {
    let scene = Scene::new();
    scene.model().calls("bash", json!({"command": "touch one.txt"}));
    let terminal = scene.open();
    terminal.say("make a file").is_asked("May it?").key("Escape").wait_until_gone("May it?").wait_for("Stopped.");
    assert!(!scene.exists("one.txt"));
    assert_eq!(scene.requests(), 1);
}
