//! Commands that are typed: each does what its help says, on the screen, on disk and for the model.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::rewind::say_two_turns;
use super::{READY, Scene, User};

#[test]
fn a_fork_goes_on_in_a_session_of_its_own() {
    let scene = Scene::new();
    scene.model().says("First answer.");
    scene.model().says("In the fork.");
    let terminal = scene.open();
    terminal.ask("first prompt", "First answer.");
    let parent = scene.json(["resume", "--status"])["session"].clone();
    terminal.say("/fork").wait_for("This is a fork of session").shows("First answer.").ask("go on", "In the fork.");
    assert!(scene.model().last_request().transcript().contains("user: first prompt"));
    let sessions = scene.json(["sessions"]);
    let sessions = sessions["sessions"].as_array().expect("a list");
    assert_eq!(sessions.len(), 2, "{sessions:#?}");
    let original = sessions.iter().find(|session| session["id"] == parent).expect("the parent is there");
    assert_eq!(original["prompts"], 1, "the parent is untouched: {original}");
}

#[test]
fn a_fork_from_the_picker_begins_before_the_prompt_and_leaves_the_parent_alone() {
    let scene = Scene::new();
    scene.model().says("First answer.");
    scene.model().says("Second answer.");
    let terminal = scene.open();
    terminal.ask("first prompt", "First answer.").ask("second prompt", "Second answer.");
    terminal.key("C-r").wait_for("2 prompts").wait_for("What would change").key("Enter").wait_for("4 Fork from here");
    terminal.key("4").wait_until_gone("Fork from here").wait_until_gone("Second answer.").wait_for("First answer.");
    terminal.wait_for(READY);
    assert_eq!(scene.json(["sessions"])["sessions"].as_array().map(Vec::len), Some(2));
    assert_eq!(scene.requests(), 2);
}

#[test]
fn compact_has_the_model_write_a_summary_which_it_then_sees_instead() {
    let scene = Scene::new();
    scene.model().says("A long story.");
    let terminal = scene.open();
    terminal.ask("tell me of ships", "A long story.");
    let gate = scene.model().says("SUMMARY: the user asked about ships.").pauses();
    terminal.say("/compact keep the names");
    gate.wait_until_reached();
    terminal.wait_for("the model writes a summary");
    gate.open();
    terminal.wait_for("Summarised:").shows("/undo takes it back").shows("SUMMARY: the user asked about ships.");
    assert!(scene.model().last_request().transcript().contains("keep the names"));
    scene.model().says("Going on.");
    terminal.ask("and boats?", "Going on.");
    let transcript = scene.model().last_request().transcript();
    assert!(transcript.contains("SUMMARY: the user asked") && !transcript.contains("A long story."), "{transcript}");
}

#[test]
fn summarising_from_the_picker_keeps_what_came_before_and_can_be_undone() {
    let scene = Scene::new();
    scene.model().says("Answer one.");
    scene.model().says("Answer two.");
    scene.model().says("SUMMARY of the second.");
    let terminal = scene.open();
    terminal.ask("prompt one", "Answer one.").ask("prompt two", "Answer two.");
    terminal
        .key("C-r")
        .wait_for("2 prompts")
        .wait_for("What would change")
        .key("Enter")
        .wait_for("5 Summarise from here");
    terminal.key("5").wait_for("Summarised:").wait_for("SUMMARY of the second.");
    scene.model().says("Answer three.");
    terminal.ask("prompt three", "Answer three.");
    let transcript = scene.model().last_request().transcript();
    assert!(transcript.contains("Answer one.") && transcript.contains("SUMMARY of the second."), "{transcript}");
    assert!(!transcript.contains("Answer two."), "{transcript}");
    terminal.say("/undo").wait_for("Undid").key("C-u").say("/undo").wait_until_gone("SUMMARY of the second.");
    scene.model().says("Answer four.");
    terminal.key("C-u").ask("prompt four", "Answer four.");
    let transcript = scene.model().last_request().transcript();
    assert!(transcript.contains("Answer two.") && !transcript.contains("SUMMARY"), "{transcript}");
}

#[test]
fn a_part_is_summarised_by_its_number() {
    let scene = Scene::new();
    scene.model().says("Answer one.");
    scene.model().says("Answer two.");
    let terminal = scene.open();
    terminal.ask("prompt one", "Answer one.").ask("prompt two", "Answer two.");
    terminal.say("/summarize up to 9").wait_for("the numbers are those of the picker");
    scene.model().says("SUMMARY of the first.");
    terminal.say("/summarize up to 2").wait_for("Summarised:").wait_for("SUMMARY of the first.");
    scene.model().says("Answer three.");
    terminal.ask("prompt three", "Answer three.");
    let transcript = scene.model().last_request().transcript();
    assert!(transcript.contains("SUMMARY of the first.") && transcript.contains("Answer two."), "{transcript}");
    assert!(!transcript.contains("Answer one."), "{transcript}");
    // Without a number it is chosen in the picker.
    terminal.say("/summarize").wait_for("3 prompts").shows("Choose a prompt");
}

#[test]
fn clear_cuts_what_the_model_sees_and_nothing_else() {
    let scene = Scene::new();
    scene.model().says("Answer one.");
    scene.model().says("Answer two.");
    let terminal = scene.open();
    terminal.ask("prompt one", "Answer one.").say("/clear").wait_for("the model sees nothing above");
    terminal.ask("prompt two", "Answer two.").shows("Answer one.");
    assert!(!scene.model().last_request().transcript().contains("prompt one"));
}

#[test]
fn a_label_is_shown_in_the_picker_and_found_there() {
    let scene = Scene::new();
    scene.write("a.txt", "one\n");
    let terminal = scene.open();
    terminal.say("/label too early").wait_for("Nothing has been said");
    say_two_turns(&scene, &terminal);
    terminal.say("/label all tests pass").wait_for("is `all tests pass` now").key("C-r").wait_for("[all tests pass]");
    terminal.type_text("tests").wait_for("1 of 2").shows("make another");
    // In the picker any prompt can be named.
    terminal.key("Escape").wait_for("2 prompts").key("Down").wait_for("R a.txt").key("C-l").wait_for("label: ▏");
    terminal.type_text("the start").wait_for("label: the start").key("Enter").wait_for("[the start]");
    let listed = scene.json(["log", "--session", text(&scene.json(["resume", "--status"])["session"])]);
    let mut labels: Vec<&str> =
        listed["prompts"].as_array().expect("a list").iter().map(|it| text(&it["label"])).collect();
    labels.sort_unstable();
    assert_eq!(labels, ["all tests pass", "the start"]);
}

#[test]
fn sessions_are_listed_filtered_and_switched_and_a_draft_waits_in_each() {
    let scene = Scene::new();
    scene.model().says("About ships.");
    scene.model().says("About trains.");
    let terminal = scene.open();
    terminal.ask("ships please", "About ships.").say("/new").wait_until_gone("About ships.").wait_for(READY);
    terminal.ask("trains please", "About trains.").type_text("half a thought").wait_for("> half a thought");
    terminal.key("C-u").say("/sessions").wait_for("Sessions of this directory").shows("ships please").shows("this one");
    terminal.type_text("ships").wait_until_gone("trains please").key("Enter").wait_for("About ships.").wait_for(READY);
    terminal.shows_no("About trains.");
    assert_eq!(scene.requests(), 2);
    scene.model().says("More ships.");
    terminal.ask("more", "More ships.");
    let transcript = scene.model().last_request().transcript();
    assert!(transcript.contains("ships please") && !transcript.contains("trains please"), "{transcript}");
}

#[test]
fn what_was_being_typed_waits_in_its_session() {
    let scene = Scene::new();
    scene.model().says("Hello.");
    let terminal = scene.open();
    terminal.ask("hello", "Hello.").type_text("half a thought").wait_for("> half a thought").signal(Signal::TERM);
    terminal.wait_for_end();
    let terminal = scene.run(["resume"]);
    terminal.wait_for("Hello.").wait_for("> half a thought");
    // What Ctrl+C takes away can be called back.
    terminal.key("C-c").wait_until_gone("half a thought").key("Up").wait_for("> half a thought");
    assert_eq!(scene.requests(), 1);
}

#[test]
fn diff_shows_what_the_last_turn_changed() {
    let scene = Scene::new();
    scene.write("a.txt", "one\n");
    let terminal = scene.open();
    terminal.say("/diff").wait_for("Nothing has been said");
    say_two_turns(&scene, &terminal);
    terminal.say("/diff").wait_for("What the last turn changed").shows("b.txt").shows("+ new").shows_no("a.txt");
    terminal.key("Escape").wait_for("Second done.");
}

#[test]
fn checkpoints_are_listed_shown_and_gone_back_to() {
    let scene = Scene::new();
    scene.write("a.txt", "one\n");
    scene.agent.sandbox.retake(["checkpoint", "-m", "before all"]).succeeds();
    let terminal = scene.open();
    say_two_turns(&scene, &terminal);
    terminal.say("/checkpoints").wait_for("Checkpoints of this directory").type_text("before all");
    terminal.wait_for("before all").key("Enter").wait_for("\"before all\": the whole workspace").shows("Enter applies");
    terminal.shows("a.txt").shows("b.txt").shows("− two").shows("+ one");
    assert_eq!(scene.read("a.txt"), "two\n");
    terminal.key("Enter").wait_for("Went back to").wait_for("Second done.");
    assert_eq!((scene.read("a.txt"), scene.exists("b.txt")), ("one\n".into(), false));
    terminal.say("/undo").wait_for("Undid");
    assert_eq!((scene.read("a.txt"), scene.read("b.txt")), ("two\n".into(), "new\n".into()));
}

#[test]
fn a_checkpoint_means_the_whole_workspace_and_a_persons_changes_are_asked_about() {
    let scene = Scene::new();
    scene.write("a.txt", "one\n").write("mine.txt", "one\n");
    scene.agent.sandbox.retake(["checkpoint", "-m", "before all"]).succeeds();
    let terminal = scene.open();
    say_two_turns(&scene, &terminal);
    scene.write("mine.txt", "my own\n");
    terminal.say("/checkpoints").wait_for("Checkpoints of this directory").type_text("before all");
    terminal
        .wait_for("before all")
        .key("Enter")
        .wait_for("the whole workspace")
        .shows("k keeps")
        .shows("changed by you");
    terminal.key("Enter").wait_for("Nothing was changed yet");
    assert_eq!((scene.read("a.txt"), scene.read("mine.txt")), ("two\n".into(), "my own\n".into()));
    terminal.key("k").wait_for("Went back to").wait_for("1 is kept as it is now");
    assert_eq!((scene.read("a.txt"), scene.read("mine.txt")), ("one\n".into(), "my own\n".into()));
    terminal.say("/checkpoints").wait_for("Checkpoints of this directory").type_text("before all");
    terminal.wait_for("before all").key("Enter").wait_for("the whole workspace").key("o").wait_for("Went back to");
    assert_eq!(scene.read("mine.txt"), "one\n");
}

#[test]
fn a_prompts_checkpoint_means_this_sessions_changes_as_on_the_command_line() {
    let scene = Scene::new();
    scene.write("a.txt", "one\n").write("mine.txt", "one\n");
    let terminal = scene.open();
    say_two_turns(&scene, &terminal);
    scene.write("mine.txt", "my own\n");
    let listed = scene.json(["log"]);
    let points = listed["checkpoints"].as_array().expect("a list");
    let second = points.iter().find(|point| point["note"] == "make another").expect("the prompt's point");
    let plan = scene.json(["rewind", text(&second["id"]), "--dry-run"]);
    let what = text(&plan["what"]);
    assert!(what.ends_with(" before \"make another\"") && plan["means"] == "session", "{plan}");
    terminal
        .say("/checkpoints")
        .wait_for("Checkpoints of this directory")
        .type_text("make another")
        .wait_for("> make another");
    terminal.key("Enter").wait_for(&format!("Rewind to {what}: this session's changes"));
    terminal.shows("b.txt").shows_no("mine.txt").shows("the conversation stays");
    terminal.key("Enter").wait_for("Went back to").wait_for("Second done.");
    assert_eq!((scene.exists("b.txt"), scene.read("mine.txt")), (false, "my own\n".into()));
    terminal.say("/undo").wait_for("Undid");
    assert_eq!(scene.read("b.txt"), "new\n");
}

#[test]
fn another_model_is_asked_from_the_next_prompt_on_and_nonsense_is_refused() {
    let scene = Scene::new();
    scene.model().says("Hello from the other one.");
    let terminal = scene.open();
    terminal.say("/model").wait_for("anthropic/scripted").say("/model nonsense").wait_for("✗");
    terminal
        .say("/model anthropic/other")
        .wait_for("anthropic/other is asked from now on")
        .ask("hello", "Hello from the other");
    assert_eq!(scene.model().last_request().model(), "other");
}

#[test]
fn the_conversation_is_exported_and_no_file_is_written_over() {
    let scene = Scene::new();
    scene.model().says("Hello.");
    let terminal = scene.open();
    terminal.ask("hello", "Hello.").say("/export talk.jsonl").wait_for("Written to");
    let exported = scene.read("talk.jsonl");
    let entries: Vec<Value> = exported.lines().map(|line| serde_json::from_str(line).expect("JSON lines")).collect();
    assert!(
        entries.iter().any(|entry| entry["type"] == "prompt") && entries.iter().any(|entry| entry["type"] == "reply")
    );
    terminal.say("/export talk.jsonl").wait_for("is there already");
    assert_eq!(scene.read("talk.jsonl"), exported);
}

#[test]
fn background_jobs_are_counted_listed_and_ended() {
    let scene = Scene::new();
    scene.model().calls("bash", json!({"command": "sleep 1000", "background": true}));
    scene.model().says("It runs.");
    let terminal = scene.open();
    terminal.say("start it").is_asked("May it?").key("y").wait_for("It runs.").wait_for("1 in the background");
    terminal.say("/jobs").wait_for("(runs)").shows("sleep 1000").shows("`/jobs end JOB` ends one");
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
