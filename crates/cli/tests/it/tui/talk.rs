//! Saying something, and what comes of it.

use retake_testkit::model::Split;
use serde_json::json;

use super::{LARGE, READY, Scene, User, ready};

#[test]
fn an_answer_is_streamed_and_its_markdown_is_drawn() {
    let scene = Scene::new();
    let gate = scene.model().says_slowly(["## A title\n\nSome **bold** words", " and `code`.\n\n- one\n- two\n"]);
    let terminal = scene.open();
    terminal.say("hello there").wait_for("Some bold words").shows("Esc stops").shows_no("**").shows_no("and code");
    let coloured = terminal.coloured_screen();
    assert!(coloured.contains("\u{1b}[1mbold"), "{coloured}");
    gate.open();
    terminal
        .wait_for("Some bold words and code.")
        .wait_for(READY)
        .shows("A title")
        .shows("- one")
        .shows("> hello there");
    assert!(scene.model().last_request().transcript().ends_with("user: hello there"));
    scene.model().assert_exhausted();
}

#[test]
fn a_tools_work_is_shown_with_what_it_changed_and_ends_in_files() {
    let scene = Scene::new();
    scene.write("a.txt", "one\n");
    scene.model().says("I will look.").calls("read_file", json!({"path": "a.txt"}));
    scene.model().calls("write_file", json!({"path": "b.txt", "content": "two\nthree\n"}));
    scene.model().says("Done with it.");
    let terminal = scene.open();
    terminal.say("write b").is_asked("May it?").key("y").wait_for("Done with it.").wait_for(READY);
    terminal.shows("read a.txt").shows("write b.txt").shows("+ two").shows("+ three");
    assert_eq!(scene.read("b.txt"), "two\nthree\n");
    assert!(scene.model().requests()[1].transcript().contains("one"), "the model was given what it read");
    scene.model().assert_exhausted();
}

#[test]
fn what_is_said_while_a_turn_runs_is_held_and_said_after_it() {
    let scene = Scene::new();
    let gate = scene.model().says_slowly(["First", " answer."]);
    scene.model().says("Second answer.");
    let terminal = scene.open();
    terminal.say("one").wait_for("First").say("two").wait_for("Held until the turn has ended: two").shows("1 held");
    assert_eq!(scene.requests(), 1);
    gate.open();
    terminal.wait_for("Second answer.").wait_for(READY).wait_until_gone("held");
    assert!(scene.model().last_request().transcript().ends_with("user: one\nassistant: First answer.\nuser: two"));
}

#[test]
fn a_prompt_may_have_several_lines() {
    let scene = Scene::new();
    scene.model().says("Three lines.");
    let terminal = scene.open();
    terminal.type_text("first").key("M-Enter").type_text("second\\").key("Enter").type_text("third");
    terminal.wait_for("> first\n  second\n  third");
    assert_eq!(scene.requests(), 0);
    terminal.key("Enter").wait_for("Three lines.").wait_for(READY);
    assert!(scene.model().last_request().transcript().ends_with("user: first\nsecond\nthird"));
}

#[test]
fn a_long_paste_is_a_block_and_is_said_whole() {
    let scene = Scene::new();
    scene.model().says("Read.");
    let pasted: String = (1..=12).map(|number| format!("pasted line {number}\n")).collect();
    let terminal = scene.open();
    terminal.type_text("what is this: ").paste(&pasted).wait_for("what is this: [pasted 12 lines]");
    terminal.shows_no("pasted line 1").key("Enter").wait_for("Read.").wait_for(READY).shows("[pasted 12 lines]");
    let request = scene.model().last_request();
    assert!(request.transcript().contains(&pasted), "{}", request.transcript());
    // A line break in a paste is no Enter, however short it is.
    terminal.paste("one\ntwo").wait_for("> one\n  two");
    assert_eq!(scene.requests(), 1);
}

#[test]
fn what_was_said_before_comes_back_with_the_arrow_keys() {
    let scene = Scene::new();
    scene.model().says("Answer one.");
    scene.model().says("Answer two.");
    scene.model().says("Answer three.");
    let terminal = scene.open();
    terminal.ask("say one", "Answer one.").ask("say two", "Answer two.");
    terminal
        .type_text("half a th")
        .keys(["Up", "Up"])
        .wait_until("`say one` is typed", |screen| typed(screen) == "say one");
    terminal.keys(["Down", "Down"]).wait_until("what was typed is back", |screen| typed(screen) == "half a th");
    terminal.keys(["Up", "Up"]).type_text(" again").key("Enter").wait_for("Answer three.").wait_for(READY);
    assert!(scene.model().last_request().transcript().ends_with("user: say one again"));
}

#[test]
fn a_prompt_can_be_written_in_an_editor() {
    let scene = Scene::new();
    scene.model().says("Edited, I see.");
    let mut command = scene.command([]);
    let terminal = ready(command.env("EDITOR", "sed -i s/old/new/"), LARGE);
    terminal.type_text("an old thing").key("C-g").wait_for("> an new thing").key("Enter").wait_for("Edited, I see.");
    assert!(scene.model().last_request().transcript().ends_with("user: an new thing"));
    assert_eq!(terminal.fact("alternate_on"), "1");
}

#[test]
fn an_editor_that_fails_leaves_the_text_as_it_was() {
    let scene = Scene::new();
    let mut command = scene.command([]);
    let terminal = ready(command.env("EDITOR", "false"), LARGE);
    terminal.type_text("precious").key("C-g").wait_for("your text is as it was").shows("> precious");
    // Keys are still heard.
    terminal.type_text(" words").wait_for("> precious words");
}

/// What is in the composer.
fn typed(screen: &str) -> String {
    let rows: Vec<&str> = screen.lines().collect();
    let line = rows.iter().rposition(|row| row.starts_with("────")).expect("a line above the composer");
    rows[line + 1].trim_start_matches("> ").trim_end().to_owned()
}

#[test]
fn an_editor_has_the_terminal_to_itself() {
    let scene = Scene::new();
    let editor = "sh -c 'printf \"editor asks: \"; read line < /dev/tty; echo \"$line\" > \"$1\"' sh";
    let mut command = scene.command([]);
    let terminal = ready(command.env("EDITOR", editor), LARGE);
    terminal.type_text("before").key("C-g").wait_for("editor asks:");
    assert_eq!(terminal.fact("alternate_on"), "0");
    terminal.type_text("typed in the editor").key("Enter").wait_for("> typed in the editor").shows(READY);
    terminal.type_text(", and after it").wait_for("> typed in the editor, and after it").is_drawn_right();
}

#[test]
fn what_is_said_while_an_editor_is_open_is_there_afterwards() {
    let scene = Scene::new();
    let words: String = (0..3_000).map(|number| format!("word{number} ")).collect();
    scene.model().splits(Split::Bytes(64));
    let gate = scene.model().says_slowly(["It begins. ", &words]);
    let mut command = scene.command([]);
    let editor = "sh -c 'echo opened > opened; while [ ! -e go ]; do sleep 0.02; done; echo edited > \"$1\"' sh";
    let terminal = ready(command.env("EDITOR", editor), LARGE);
    terminal.say("flood").wait_for("It begins.").key("C-g");
    scene.wait_for_file("opened");
    gate.open();
    scene.wait_until_idle();
    scene.write("go", "");
    terminal.wait_for("word2999").wait_for("> edited").wait_for(READY).is_drawn_right();
}
