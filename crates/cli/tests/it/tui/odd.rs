//! What does not happen every day: failures, other letters, other clients, hostile text, hardly any room.

use retake_testkit::model::{Answer, Split};
use serde_json::json;

use super::rewind::say_two_turns;
use super::{READY, Scene, User};

#[test]
fn a_model_that_fails_is_said_to_and_the_prompt_is_not_lost() {
    let scene = Scene::new();
    let error = r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#;
    drop(scene.model().fails_with(401, error));
    scene.model().says("Better.");
    let terminal = scene.open();
    terminal.say("hello").wait_for("invalid x-api-key").wait_for("> hello").wait_until_gone("Esc stops");
    terminal.key("C-u").ask("again", "Better.");
    assert!(!scene.model().last_request().transcript().contains("user: hello"));
}

#[test]
fn a_model_that_is_busy_is_asked_again_and_the_wait_is_shown() {
    let scene = Scene::new();
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    scene.model().answers(Answer::default().fails_with(529, error).header("retry-after", "1"));
    scene.model().says("Now.");
    let terminal = scene.open();
    terminal.say("hello").wait_for("Asking again in").wait_for("Now.").wait_for(READY);
}

#[test]
fn what_the_model_writes_cannot_drive_the_terminal() {
    let scene = Scene::new();
    let hostile = "Title: \u{1b}]0;pwned\u{7} and \u{1b}[31mred\u{1b}[0m and \u{9b}2J \u{202e}reversed \u{8}\u{8} end.";
    scene.model().says(hostile).calls("bash", json!({"command": "printf '\\033]0;%s\\007\\033[2Jvis%s' pwned ible"}));
    scene.model().says("After it.");
    let terminal = scene.open();
    terminal.record().say("be evil").is_asked("May it?").shows("end.").key("y").wait_for("After it.").wait_for(READY);
    terminal.shows("visible").key("C-r").wait_for("1 prompt").wait_for("What would change");
    let raw = String::from_utf8_lossy(&terminal.raw_output()).into_owned();
    for escape in ["\u{1b}]0;", "\u{7}", "\u{9b}", "\u{202e}", "\u{1b}[31mred"] {
        assert!(!raw.contains(escape), "{escape:?} was written");
    }
}

#[test]
fn letters_of_all_widths_are_typed_said_shown_and_brought_back() {
    let scene = Scene::new();
    scene.model().says("それは日本語です。 Ünïcödé 👩‍👩‍👧 ok");
    let terminal = scene.open();
    terminal.ask("日本語を話す café 🎉", "ok").shows("> 日本語を話す café 🎉").shows("それは日本語です。");
    assert!(scene.model().last_request().transcript().ends_with("user: 日本語を話す café 🎉"));
    terminal.is_drawn_right();
    terminal
        .key("C-r")
        .wait_for("日本語を話す")
        .type_text("日本")
        .wait_for("1 of 1")
        .key("Enter")
        .wait_for("1 Code and");
    terminal.key("Enter").wait_for("Went back").wait_for("> 日本語を話す café 🎉").keys(["BSpace", "BSpace"]);
    terminal.type_text("!").wait_for("> 日本語を話す café!").is_drawn_right();
}

#[test]
fn hardly_any_room_is_no_reason_to_break() {
    let scene = Scene::new();
    let gate = scene.model().says_slowly(["Some words", " and more."]);
    let terminal = scene.open();
    terminal.say("hello").wait_for("Some words").resize(8, 3).wait_for("too sm").resize(12, 4).wait_until_gone("too");
    gate.open();
    terminal
        .resize(20, 5)
        .wait_for("more.")
        .wait_for(READY)
        .key("C-r")
        .resize(1, 1)
        .resize(100, 30)
        .wait_for("1 prompt · list");
    terminal.key("Escape").wait_for("Some words and more.").wait_for(READY);
}

#[test]
fn what_is_read_stays_in_place_while_more_comes_below() {
    let scene = Scene::new();
    let lines = |from: usize, to: usize| -> String { (from..to).map(|number| format!("- row {number}\n")).collect() };
    let gate = scene.model().says_slowly([&lines(0, 60), &lines(60, 70)]);
    let terminal = scene.open();
    terminal.say("list").wait_for("row 59").key("PPage").wait_until_gone("row 59");
    let reading = rows(&terminal.screen());
    gate.open();
    terminal.wait_for(READY);
    assert_eq!(rows(&terminal.screen()), reading);
    terminal.key("C-End").wait_for("row 69");
    // The wheel, as a terminal tells it.
    terminal.type_text("\u{1b}[<64;10;10M").wait_until_gone("row 69").type_text("\u{1b}[<65;10;10M").wait_for("row 69");
    terminal.key("C-Home").wait_for("> list").key("Escape").wait_for("row 69").is_drawn_right();
}

fn rows(screen: &str) -> Vec<String> {
    screen.lines().filter(|row| row.contains("row ")).map(str::to_owned).collect()
}

#[test]
fn a_command_from_outside_is_carried_out_in_the_open_session() {
    let scene = Scene::new();
    scene.write("a.txt", "one\n");
    let terminal = scene.open();
    say_two_turns(&scene, &terminal);
    let session = scene.json(["resume", "--status"])["session"].as_str().expect("an id is text").to_owned();
    let undone = scene.json(["undo", "--session", &session]);
    assert_eq!(undone["applied"], true, "{undone}");
    terminal.wait_until_gone("Second done.").wait_for("Another client");
    assert!(!scene.exists("b.txt"));
    let redone = scene.json(["redo", "--session", &session]);
    assert_eq!(redone["applied"], true, "{redone}");
    terminal.wait_for("Second done.");
    assert_eq!(scene.read("b.txt"), "new\n");
    scene.model().says("From outside.");
    scene.agent.retake(["run", "--continue", "-p", "said elsewhere"]).succeeds();
    terminal.wait_for("> said elsewhere").wait_for("From outside.");
}

#[test]
fn resuming_a_session_that_is_open_joins_it() {
    let scene = Scene::new();
    scene.model().says("Hello.");
    scene.model().says("To both.");
    let here = scene.open();
    here.ask("hello", "Hello.");
    let there = scene.run(["resume"]);
    there.wait_for("Hello.").wait_for(READY);
    here.ask("once more", "To both.");
    there.wait_for("To both.");
}

#[test]
fn an_open_picker_follows_what_another_terminal_does() {
    let scene = Scene::new();
    scene.write("a.txt", "one\n");
    let here = scene.open();
    say_two_turns(&scene, &here);
    let there = scene.run(["attach"]);
    there.wait_for("Second done.").key("C-r").wait_for("2 prompts").wait_for("D b.txt");
    here.say("/undo").wait_for("Undid");
    there
        .wait_for("1 prompt · list")
        .wait_until_gone("D b.txt")
        .wait_for("R a.txt")
        .shows("the conversation has moved on");
    there.key("Enter").wait_for("1 Code and").key("Enter").wait_for("Went back to");
    here.wait_until_gone("First done.");
    assert_eq!(scene.read("a.txt"), "one\n");
}

#[test]
fn the_tree_shows_what_was_left_behind_and_goes_there() {
    let scene = Scene::new();
    scene.write("a.txt", "one\n");
    let terminal = scene.open();
    say_two_turns(&scene, &terminal);
    terminal.key("C-r").wait_for("D b.txt").key("Enter").wait_for("1 Code and").key("Enter").wait_for("> make another");
    scene.model().says("Another way.");
    terminal.key("C-u").ask("otherwise", "Another way.");
    terminal.key("C-r").wait_for("2 prompts · list").shows_no("make another").key("Tab").wait_for("· tree");
    terminal.wait_for("make another").shows("otherwise").shows("○").shows("●");
    terminal.key("Tab").wait_for("· list").wait_until_gone("make another");
}

#[test]
fn todos_are_shown_while_there_are_some_to_do() {
    let scene = Scene::new();
    let todos = |first: &str, second: &str| json!({"items": [{"text": "look", "state": first}, {"text": "mend", "state": second}]});
    scene.model().calls("todo", todos("active", "pending"));
    let gate = scene.model().says("Working").pauses();
    let terminal = scene.open();
    terminal.say("work");
    gate.wait_until_reached();
    terminal.wait_for("To do: 0 of 2 done").shows("[>] look").shows("[ ] mend").key("C-t").wait_until_gone("To do:");
    gate.open();
    terminal.wait_for("Working").wait_for(READY);
}

#[test]
fn a_flood_of_words_leaves_room_for_typing_and_ends_up_right() {
    let scene = Scene::new();
    let words: String =
        (0..4_000).map(|number| format!("word{number}{}", if number % 12 == 11 { "\n" } else { " " })).collect();
    scene.model().splits(Split::Bytes(64));
    let gate = scene.model().says_slowly(["It begins.\n\n", &words, "\n\nIt ends."]);
    let terminal = scene.open();
    terminal.say("flood").wait_for("It begins.");
    gate.open();
    terminal.type_text("typed meanwhile").wait_for("> typed meanwhile").wait_for("word3999");
    gate.open();
    terminal.wait_for("It ends.").wait_for(READY).shows("word3999").shows("> typed meanwhile").is_drawn_right();
}

#[test]
fn a_very_large_paste_is_taken_and_said_whole() {
    let scene = Scene::new();
    scene.model().says("Read all of it.");
    let pasted: String = (0..20_000).map(|number| format!("line {number} of many\n")).collect();
    let terminal = scene.open();
    terminal.paste(&pasted).wait_for("[pasted 20000 lines]").key("Enter").wait_for("Read all of it.").wait_for(READY);
    assert!(scene.model().last_request().transcript().contains(pasted.trim_end()));
}

#[test]
fn long_output_is_folded_and_unfolded_by_key_and_click() {
    let scene = Scene::new();
    scene.model().calls("bash", json!({"command": "seq 1 20 | sed 's/^/out /'"}));
    scene.model().says("Counted.");
    let terminal = scene.open();
    terminal.say("count").is_asked("May it?").key("y").wait_for("Counted.").wait_for(READY);
    terminal.shows("more").wait_until("it is folded", |screen| screen.matches("out ").count() < 12);
    terminal.key("C-o").wait_until("it is unfolded", |screen| {
        screen.matches("\n    out ").count() + screen.matches("\n  out ").count() >= 20
    });
    terminal.key("C-o").wait_until("it is folded again", |screen| screen.matches("out ").count() < 12);
    let row = terminal.screen().lines().position(|row| row.contains("out ")).expect("it is shown") + 1;
    // A click with the left button, as a terminal tells it.
    terminal
        .type_text(&format!("\u{1b}[<0;10;{row}M\u{1b}[<0;10;{row}m"))
        .wait_until("it is unfolded", |screen| screen.matches("out ").count() >= 20);
    terminal.is_drawn_right();
}
