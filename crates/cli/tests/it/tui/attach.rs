//! A second terminal on the same session: both show the same, and what is done in one holds in the other.

use retake_testkit::Terminal;
use serde_json::json;

use super::rewind::say_two_turns;
use super::{READY, Scene, User};

/// A session in two terminals.
fn two_terminals() -> (Scene, Terminal, Terminal) {
    let scene = Scene::new();
    scene.write("a.txt", "one\n");
    let here = scene.open();
    let there = scene.run(["attach"]);
    there.wait_for(READY);
    (scene, here, there)
}

#[test]
fn both_follow_prompts_rewinds_and_undo() {
    let (scene, here, there) = two_terminals();
    say_two_turns(&scene, &here);
    there.wait_for("Second done.").shows("> change the first").shows("First done.").wait_for(READY);
    // A rewind there holds here, and what is in the composer here is nobody else's business.
    here.type_text("my own words").wait_for("> my own words");
    there.key("C-r").wait_for("D b.txt").key("Enter").wait_for("› 1 Code").key("Enter").wait_for("Went back to");
    there.wait_for("> make another");
    here.wait_until_gone("Second done.").wait_for("Another client").shows("> my own words");
    assert!(!scene.exists("b.txt"));
    // An undo here holds there.
    here.key("C-u").say("/undo").wait_for("Undid").wait_for("Second done.");
    there.wait_for("Second done.");
    assert_eq!(scene.read("b.txt"), "new\n");
    assert_eq!(scene.requests(), 4);
    assert_eq!(conversation(&here), conversation(&there));
}

#[test]
fn an_answer_streams_into_both_and_either_may_stop_it() {
    let (scene, here, there) = two_terminals();
    let _gate = scene.model().says_slowly(["Half an answer", " and more."]);
    here.say("talk").wait_for("Half an answer");
    there.wait_for("Half an answer").shows("Esc stops").key("Escape");
    here.wait_for("interrupted").wait_until_gone("Esc stops");
    there.wait_for("interrupted");
    scene.model().wait_for_hang_up(1);
}

#[test]
fn a_question_that_is_answered_there_is_settled_here() {
    let (scene, here, there) = two_terminals();
    scene.model().calls("bash", json!({"command": "touch one.txt"}));
    scene.model().says("Made it.");
    here.say("make a file").is_asked("May it? bash: touch one.txt");
    there.is_asked("May it? bash: touch one.txt").key("y");
    here.wait_for("Made it.").wait_for(READY).shows_no("May it?");
    there.wait_for("Made it.").wait_for(READY).shows_no("May it?");
    assert!(scene.exists("one.txt"));
}

#[test]
fn a_prompt_from_there_is_said_in_the_same_session() {
    let (scene, here, there) = two_terminals();
    scene.model().says("To here.");
    scene.model().says("To there.");
    here.ask("from here", "To here.");
    there.wait_for("To here.").wait_for(READY).ask("from there", "To there.");
    here.wait_for("To there.").shows("> from there");
    assert!(scene.model().last_request().transcript().contains("user: from here"));
    assert_eq!(scene.json(["sessions"])["sessions"].as_array().map(Vec::len), Some(1));
}

#[test]
fn leaving_there_changes_nothing_here_and_leaving_here_ends_there() {
    let (scene, here, there) = two_terminals();
    scene.model().says("Hello.");
    there.say("/quit");
    assert_eq!(there.wait_for_end(), "0");
    here.ask("hello", "Hello.");
    let there = scene.run(["attach"]);
    there.wait_for("Hello.").wait_for(READY);
    here.say("/quit");
    assert_eq!(here.wait_for_end(), "0");
    assert_ne!(there.wait_for_end(), "0", "it did not leave by itself, and says so");
    there.wait_for("error: the session was closed where it was open");
    assert_eq!(there.fact("alternate_on"), "0");
}

#[test]
fn a_session_that_is_open_elsewhere_is_joined_from_the_list() {
    let (scene, here, there) = two_terminals();
    scene.model().says("In the first.");
    here.ask("the first session", "In the first.");
    there.wait_for("In the first.").say("/new").wait_until_gone("In the first.").wait_for(READY);
    scene.model().says("In the second.");
    there.ask("the second session", "In the second.");
    there.say("/sessions").wait_for("Sessions of this directory").shows("open elsewhere: you join it");
    there
        .type_text("first")
        .wait_until_gone("the second session")
        .key("Enter")
        .wait_for("In the first.")
        .wait_for(READY);
    scene.model().says("To both.");
    there.ask("said there", "To both.");
    here.wait_for("> said there").wait_for("To both.");
    let transcript = scene.model().last_request().transcript();
    assert!(transcript.contains("the first session") && !transcript.contains("the second session"), "{transcript}");
}

#[test]
fn a_client_that_dies_takes_nothing_with_it() {
    let (scene, here, there) = two_terminals();
    let gate = scene.model().says_slowly(["Half", " and whole."]);
    there.say("talk").wait_for("Half").kill_9();
    gate.open();
    here.wait_for("Half and whole.").wait_for(READY);
}

#[test]
fn attaching_to_nothing_says_so() {
    let scene = Scene::new();
    scene.write("a.txt", "one\n");
    let terminal = scene.run(["attach"]);
    assert_ne!(terminal.wait_for_end(), "0");
    terminal.shows("error:");
}

/// The conversation, without what is below it.
fn conversation(terminal: &Terminal) -> String {
    let screen = terminal.screen();
    let end = screen.find("Second done.").expect("it is shown");
    screen[..end].to_owned()
}
