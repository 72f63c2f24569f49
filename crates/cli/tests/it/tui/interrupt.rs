//! Stopping a turn, by Esc and by dying.

use serde_json::json;

use super::{READY, Scene, User, assert_gone};

/// A command that tells its process, and then takes its time.
const SLOW: &str = "echo $$ > pid; echo half > half.txt; printf 'it %s\\n' runs; sleep 1000; echo whole > whole.txt";

#[test]
fn esc_stops_an_answer_in_the_middle_and_what_was_said_so_far_stays() {
    let scene = Scene::new();
    let _gate = scene.model().says_slowly(["The first half", " and the second."]);
    scene.model().says("Going on.");
    let terminal = scene.open();
    terminal.say("talk").wait_for("The first half").key("Escape").wait_for("Stopped.").wait_until_gone("Esc stops");
    scene.model().wait_for_hang_up(1);
    terminal.shows("The first half").shows("interrupted").shows_no("and the second");
    terminal.ask("go on", "Going on.");
    let transcript = scene.model().last_request().transcript();
    assert!(transcript.contains("The first half") && transcript.ends_with("user: go on"), "{transcript}");
}

#[test]
fn esc_before_anything_has_come_gives_the_prompt_back() {
    let scene = Scene::new();
    let gate = scene.model().says("Never said.").pauses();
    let terminal = scene.open();
    terminal.say("think hard");
    gate.wait_until_reached();
    terminal.wait_for("Esc stops").key("Escape").wait_for("Nothing came of it").wait_for("> think hard");
    assert_eq!(scene.json(["resume", "--status"])["prompts"], 0);
}

#[test]
fn esc_ends_a_command_that_runs_and_all_that_it_started() {
    let scene = Scene::new();
    scene.model().calls("bash", json!({"command": SLOW}));
    let terminal = scene.open();
    terminal.say("run it").is_asked("May it?").key("y").wait_for("it runs").shows("Esc stops");
    let process = scene.read("pid");
    terminal.key("Escape").wait_for("Stopped.").wait_for("interrupted");
    assert_gone(process.trim());
    assert!(scene.exists("half.txt") && !scene.exists("whole.txt"));
    assert_eq!(scene.requests(), 1, "the model was not asked again");
    // What it did so far can be taken back.
    terminal.say("/undo").wait_for("Undid");
    assert!(!scene.exists("half.txt"));
}

#[test]
fn after_a_kill_in_the_middle_of_a_turn_the_session_is_there_and_goes_on() {
    let scene = Scene::new();
    scene.write("a.txt", "one\n");
    scene.model().says("I begin.").calls("bash", json!({"command": "echo two > a.txt"}));
    let _gate = scene.model().says_slowly(["Half an ans", "wer."]);
    let terminal = scene.open();
    terminal.say("change a").is_asked("May it?").key("y").wait_for("Half an ans").kill_9();
    let status = scene.json(["resume", "--status"]);
    assert_eq!(status["ended"]["why"], "interrupted", "{status}");
    scene.model().says("I go on.");
    let terminal = scene.run(["resume"]);
    terminal.wait_for("interrupted").shows("> change a").shows("I begin.");
    terminal.ask("go on", "I go on.");
    let transcript = scene.model().last_request().transcript();
    assert!(transcript.contains("user: change a") && transcript.ends_with("user: go on"), "{transcript}");
    terminal.say("/undo").wait_for("Undid").wait_until_gone("I go on.").key("C-u").say("/undo");
    terminal.wait_until_gone("I begin.");
    assert_eq!(scene.read("a.txt"), "one\n");
}

#[test]
fn a_terminal_that_is_closed_leaves_nothing_running_and_loses_nothing() {
    let scene = Scene::new();
    scene.model().calls("bash", json!({"command": SLOW}));
    let terminal = scene.open();
    terminal.say("run it").is_asked("May it?").key("y").wait_for("it runs");
    let process = scene.read("pid");
    drop(terminal);
    assert_gone(process.trim());
    let terminal = scene.run(["resume"]);
    terminal.wait_for("> run it").wait_for("interrupted").wait_for(READY);
}

#[test]
fn after_a_kill_at_a_question_nothing_has_run_and_nothing_is_asked() {
    let scene = Scene::new();
    scene.model().says("I ask.").calls("bash", json!({"command": "touch one.txt"}));
    let terminal = scene.open();
    terminal.say("make a file").is_asked("May it?").kill_9();
    let terminal = scene.run(["resume"]);
    terminal.wait_for("interrupted").shows("I ask.").shows_no("May it?");
    assert!(!scene.exists("one.txt"));
    scene.model().says("Then not.");
    terminal.ask("never mind", "Then not.");
    assert!(!scene.exists("one.txt"));
    scene.model().assert_exhausted();
}
