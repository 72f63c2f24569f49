//! Going back over files that the user has changed since: each gets its own decision.

use retake_testkit::Terminal;
use serde_json::json;

use super::{LARGE, READY, Scene, User, ready};
use crate::stale_plan::saving;

const FILES: [&str; 3] = ["keep.txt", "merge.txt", "overwrite.txt"];

/// A file as it was, with these lines in place of its first and last one.
fn content(first: &str, last: &str) -> String {
    let middle: String = (2..=8).map(|number| format!("line {number}\n")).collect();
    format!("{first}\n{middle}{last}\n")
}

/// A turn that changed the first line of three files, of which the user has changed the last line since.
fn three_conflicts() -> (Scene, Terminal) {
    let scene = Scene::new();
    for name in FILES {
        scene.write(name, &content("first", "last"));
    }
    let edit = |name: &str| json!({"path": name, "old": "first", "new": "AGENT"});
    scene
        .model()
        .calls("edit_file", edit(FILES[0]))
        .calls("edit_file", edit(FILES[1]))
        .calls("edit_file", edit(FILES[2]));
    scene.model().says("All changed.");
    let terminal = scene.open();
    terminal.say("change them").is_asked("May it?").keys(["a", "Enter"]).wait_for("All changed.").wait_for(READY);
    for name in FILES {
        assert_eq!(scene.read(name), content("AGENT", "last"));
        scene.write(name, &content("AGENT", "MINE"));
    }
    terminal.key("C-r").wait_for("3 conflicts").shows("To be decided first:").shows("! keep.txt").key("Enter");
    terminal.wait_for("› 1 Code and conversation").shows("3 conflicts to decide").key("Enter");
    terminal.wait_for("3 files need a decision");
    (scene, terminal)
}

#[test]
fn each_file_is_kept_overwritten_or_merged_on_its_own() {
    let (scene, terminal) = three_conflicts();
    // The safe choice is made until another one is.
    terminal.shows("› keep.txt").wait_for("is kept: nothing changes in it");
    assert_eq!(terminal.screen().matches("[keep]").count(), 3, "{}", terminal.screen());
    terminal
        .key("Down")
        .wait_for("› merge.txt")
        .key("m")
        .wait_for("[merge]")
        .wait_for("is merged: only the session's own");
    // What the merge would do is shown.
    terminal.wait_for("− AGENT").shows("+ first").wait_until_gone("− MINE");
    terminal.key("Down").wait_for("› overwrite.txt").key("o").wait_for("[overwrite]").wait_for("is overwritten;");
    terminal.wait_for("− MINE").key("Enter").wait_for("Went back to").shows("1 is kept as it is now");
    assert_eq!(scene.read("keep.txt"), content("AGENT", "MINE"));
    assert_eq!(scene.read("merge.txt"), content("first", "MINE"));
    assert_eq!(scene.read("overwrite.txt"), content("first", "last"));
    terminal.wait_for("> change them");
    assert_eq!(scene.requests(), 2);
    // Nothing is lost, whatever was decided.
    terminal.key("C-u").say("/undo").wait_for("Undid").wait_for("All changed.");
    FILES.iter().for_each(|name| assert_eq!(scene.read(name), content("AGENT", "MINE"), "{name}"));
}

#[test]
fn one_key_decides_for_all_and_esc_decides_nothing() {
    let (scene, terminal) = three_conflicts();
    terminal.type_text("O").wait_until("all are overwritten", |screen| screen.matches("[overwrite]").count() == 3);
    terminal.key("Escape").wait_for("› 1 Code and conversation").key("Escape").wait_until_gone("1 Code and");
    terminal.key("Escape").wait_for("All changed.");
    FILES.iter().for_each(|name| assert_eq!(scene.read(name), content("AGENT", "MINE"), "{name}"));
    assert_eq!(scene.operations().iter().filter(|kind| *kind == "rewind").count(), 0);
}

#[test]
fn a_file_that_changes_while_it_is_decided_about_is_not_overwritten_blindly() {
    let (scene, terminal) = three_conflicts();
    terminal.type_text("O").wait_until("all are overwritten", |screen| screen.matches("[overwrite]").count() == 3);
    scene.write("new.txt", "a file of the user's\n");
    terminal.key("Enter").wait_for("Went back to");
    // What the session never touched stays.
    assert_eq!(scene.read("new.txt"), "a file of the user's\n");
    FILES.iter().for_each(|name| assert_eq!(scene.read(name), content("first", "last"), "{name}"));
    terminal.wait_for("> change them").key("C-u").say("/undo").wait_for("Undid");
    FILES.iter().for_each(|name| assert_eq!(scene.read(name), content("AGENT", "MINE"), "{name}"));
}

#[test]
fn a_save_after_the_plan_was_shown_refuses_the_rewind_of_the_terminal() {
    let scene = Scene::new();
    scene.write("a.txt", "one\n");
    let terminal = ready(&saving(&scene.agent.sandbox, scene.command([])), LARGE);
    scene.model().calls("bash", json!({"command": "echo two > a.txt"}));
    scene.model().says("Changed.");
    terminal.say("change it").is_asked("May it?").key("y").wait_for("Changed.").wait_for(READY);
    scene.write("a.txt", "three\n");
    terminal.key("C-r").wait_for("1 conflict").shows("this session's changes").key("Enter");
    terminal.wait_for("› 1 Code and conversation").key("Enter").wait_for("1 file needs a decision");
    terminal.key("o").wait_for("[overwrite]").wait_for("is overwritten;").key("Enter");
    terminal.wait_for("the plan has changed since it was shown");
    assert_eq!(scene.read("a.txt"), "mine\n");
}
