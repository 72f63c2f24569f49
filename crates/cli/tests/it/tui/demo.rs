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
            .wait_for("5 files · undoes this prompt only")
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
