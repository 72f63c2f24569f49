//! `retake demo` in a terminal, followed by its own hints.

use retake_testkit::Terminal;

use super::{LARGE, NARROW, Scene, User};

#[test]
fn the_demo_can_be_followed_to_its_end_by_its_hints() {
    for size in [LARGE, NARROW] {
        let scene = Scene::new();
        let terminal = Terminal::start(&scene.command(["demo"]), size);
        terminal.wait_for("Demo 1/10").key("Enter").wait_for("Demo 2/10");
        allow_until(&terminal, "Demo 3/10");
        terminal.key("Enter").wait_for("Demo 4/10");
        allow_until(&terminal, "Demo 5/10");
        terminal
            .key("C-r")
            .wait_for("Demo 6/10")
            .wait_for("4 files and 1 directory · this prompt leaves")
            .key("Enter")
            .wait_for("› 1 Code and conversation");
        terminal.key("Enter").wait_for("Demo 7/10").wait_for("Tidy up the project");
        terminal.type_text(" Leave my text files alone!").key("Enter").wait_for("Demo 8/10");
        allow_until(&terminal, "Demo 9/10");
        terminal.say("/undo").wait_for("Demo 10/10").wait_for("Leave my text files alone!").say("/quit");
        assert_eq!(terminal.wait_for_end(), "0");
        assert_eq!(scene.requests(), 0, "the demo has a model of its own");
    }
}

/// What a newcomer does before the mistake.
fn to_the_mistake(scene: &Scene, size: (u16, u16)) -> Terminal {
    let terminal = Terminal::start(&scene.command(["demo"]), size);
    terminal.wait_for("Demo 1/10").key("Enter").wait_for("Demo 2/10");
    allow_until(&terminal, "Demo 3/10");
    terminal.key("Enter").wait_for("Demo 4/10");
    terminal
}

#[test]
fn a_prompt_that_is_sent_again_unchanged_is_met_with_a_hint_that_says_so() {
    let scene = Scene::new();
    let terminal = to_the_mistake(&scene, LARGE);
    allow_until(&terminal, "Demo 5/10");
    terminal.key("C-r").wait_for("Demo 6/10").wait_for("4 files and 1 directory · this prompt leaves").key("Enter");
    terminal.wait_for("› 1 Code and conversation").key("Enter").wait_for("Demo 7/10").wait_for("> Tidy up the project");
    // Two lines to read: an Enter right after a rewind is taken for the picker's.
    terminal
        .is_asked("Demo 7/10")
        .is_asked("and press Enter")
        .key("Enter")
        .wait_for("Demo 8/10")
        .wait_for("the same words, so the same command");
    assert!(!terminal.screen().contains("it goes another way now"));
    terminal.is_asked("y Yes, this once").key("n").wait_for("I have not done it").wait_for("Demo 7/10");
    terminal.wait_for("notes.txt is still there");
    terminal.say("tidy up, but keep my text files").wait_for("it goes another way now");
    allow_until(&terminal, "Demo 9/10");
    terminal.say("/undo").wait_for("Demo 10/10").key("C-c").say("/quit");
    assert_eq!(terminal.wait_for_end(), "0");
}

#[test]
fn a_newcomer_who_denies_and_wanders_is_led_on() {
    let scene = Scene::new();
    let terminal = Terminal::start(&scene.command(["demo"]), LARGE);
    terminal
        .wait_for("Demo 1/10")
        .key("C-r")
        .wait_for("this is the picker")
        .key("Escape")
        .wait_for("Demo 1/10: the agent");
    terminal.key("Enter").wait_for("Demo 2/10").is_asked("y Yes, this once").key("n");
    terminal.wait_for("I have not done it").wait_for("Demo 3/10: you did not allow it");
    terminal
        .key("C-u")
        .say("how are you?")
        .wait_for("know this little project only")
        .wait_for("Demo 3/10: that was one turn");
    terminal.say("Tidy up!").wait_for("Demo 4/10").is_asked("y Yes, this once").key("n");
    terminal.wait_for("Demo 3/10: you stopped it, and notes.txt is still there");
    assert!(!terminal.screen().contains("Tidied up"), "a denied command is not reported as done");
    terminal
        .wait_for("> Tidy up the project")
        .key("Enter")
        .wait_for("Demo 4/10")
        .is_asked("› y Yes, this once")
        .key("Enter");
    terminal.wait_for("Demo 5/10").wait_for("Tidied up: the script is in");
    terminal.say("/undo").wait_for("Demo 7/10: notes.txt is back");
    terminal.key("C-c").key("C-d");
    assert_eq!(terminal.wait_for_end(), "0");
}

#[test]
fn hints_speak_only_of_what_has_happened() {
    let scene = Scene::new();
    let terminal = Terminal::start(&scene.command(["demo"]), LARGE);
    terminal.wait_for("Demo 1/10").key("C-u").say("tidy up, but keep my text files").wait_for("Demo 4/10");
    terminal.is_asked("y Yes, this once").shows("deletes nothing").shows_no("what you left behind").key("Escape");
    terminal.wait_for("Demo 3/10: you stopped it").wait_for("Stopped. /undo takes the turn back");
    terminal.key("C-u").say("tidy up!").wait_for("Demo 4/10").is_asked("y Yes, this once").key("Escape");
    terminal.wait_for("Demo 3/10: you stopped it, and notes.txt is still there").shows_no("it left your files alone");
    terminal.key("C-c").key("C-d");
    assert_eq!(terminal.wait_for_end(), "0");
}

/// Allows whatever is asked until a hint is shown.
#[track_caller]
fn allow_until(terminal: &Terminal, hint: &str) {
    loop {
        let is_next = |screen: &str| retake_testkit::tmux::shows(screen, hint) || screen.contains("y Yes, this once");
        terminal.wait_until(&format!("`{hint}`, or a question"), is_next);
        if retake_testkit::tmux::shows(&terminal.screen(), hint) {
            return;
        }
        terminal.is_asked("y Yes, this once").key("y").wait_until_gone("y Yes, this once");
    }
}
