//! What is asked on a terminal before files are touched.

use std::process::Command;

use crate::sandbox::Sandbox;
use crate::terminal::{answering, typing};

/// `retake` with `args`, for a terminal without colours.
fn retake(s: &Sandbox, args: &[&str]) -> Command {
    let mut command = s.retake_command();
    command.env("TERM", "xterm").env("NO_COLOR", "1").args(args);
    command
}

fn two_conflicts() -> Sandbox {
    let s = Sandbox::new();
    let text: String = (0..20).map(|n| format!("line {n}\n")).collect();
    s.write("both", &text).write("tail", "1\n").write("plain", "1\n");
    s.retake([
        "exec",
        "-m",
        "start",
        "--",
        "sh",
        "-c",
        "sed -i 's/line 1$/agent/' both; echo 2 > plain; echo 2 > tail",
    ])
    .succeeds();
    s.write("both", s.read("both").replace("line 18\n", "mine\n")).write("tail", "3\n");
    s
}

#[test]
fn the_plan_is_shown_and_nothing_is_done_without_a_yes() {
    let s = Sandbox::new();
    s.write("a", "1\n");
    let id = s.checkpoint();
    s.write("a", "2\n");
    for answer in ["n\n", "\n", "\u{4}"] {
        let (seen, status) = typing(retake(&s, &["rewind", &id]), answer);
        assert_eq!(status.code(), Some(1), "{seen}");
        assert!(seen.contains("R a  +1 -1") && seen.contains("Apply and replace them? [y/N/keep]"), "{seen}");
        assert!(seen.contains("nothing was changed"), "{seen}");
        assert_eq!(s.read("a"), "2\n");
    }
    let (seen, status) = typing(retake(&s, &["rewind", &id]), "y\n");
    assert!(status.success() && seen.contains("Rewound to "), "{seen}");
    assert_eq!(s.read("a"), "1\n");
    let (seen, status) = typing(retake(&s, &["undo", "--yes"]), "");
    assert!(status.success() && !seen.contains("Apply?"), "{seen}");
    assert_eq!(s.read("a"), "2\n");
}

#[test]
fn each_conflict_gets_its_own_choice_with_the_diff_in_view() {
    let s = two_conflicts();
    let (seen, status) = typing(retake(&s, &["rewind", "start"]), "merge\nkeep\ny\n");
    assert!(status.success(), "{seen}");
    assert!(seen.contains("both: keep, overwrite, merge, stop [stop]"), "{seen}");
    assert!(seen.contains("tail: keep, overwrite, stop [stop]"), "no merge is offered where none is clean: {seen}");
    assert!(seen.contains("-agent\n+line 1\n"), "the diff is shown: {seen}");
    assert!(seen.contains("to the merged file:"), "{seen}");
    assert!(!s.read("both").contains("agent") && s.read("both").contains("mine\n"));
    assert_eq!((s.read("tail"), s.read("plain")), ("3\n".to_owned(), "1\n".to_owned()));
    s.retake(["undo"]).succeeds();
    assert!(s.read("both").contains("agent") && s.read("both").contains("mine\n"));
}

#[test]
fn stopping_at_a_conflict_changes_nothing() {
    let s = two_conflicts();
    let before = s.everything_in_the_workspace();
    for answers in ["stop\n", "overwrite\n\n", "nonsense\nstop\n", "overwrite\nkeep\nn\n"] {
        let (seen, status) = typing(retake(&s, &["rewind", "start"]), answers);
        assert_eq!(status.code(), Some(1), "{seen}");
        assert_eq!(s.everything_in_the_workspace(), before, "{answers:?}");
    }
}

#[test]
fn another_branch_is_asked_about() {
    let s = Sandbox::new();
    s.git_init().write("a", "1\n");
    let id = s.checkpoint();
    retake_testkit::repos::git(&s.path("ws"), &["symbolic-ref", "HEAD", "refs/heads/other"]);
    s.write("a", "2\n");
    let (seen, status) = typing(retake(&s, &["rewind", &id]), "n\n");
    assert_eq!(status.code(), Some(1), "{seen}");
    assert!(seen.contains("Another branch is checked out: other, and it was main then"), "{seen}");
    let (seen, status) = typing(retake(&s, &["rewind", &id]), "y\ny\n");
    assert!(status.success(), "{seen}");
    assert_eq!(s.read("a"), "1\n");
}

#[test]
fn a_plan_that_does_not_hold_any_more_is_not_applied() {
    let s = Sandbox::new();
    s.write("a", "1\n").write("b", "1\n");
    let id = s.checkpoint();
    s.write("a", "2\n");
    let prompt = "Apply and replace them? [y/N/keep]";
    let save = |path, content| {
        s.write(path, content);
    };
    let (seen, status) = answering(retake(&s, &["rewind", &id]), prompt, || save("a", "saved meanwhile\n"), "y\n");
    assert_eq!(status.code(), Some(3), "{seen}");
    assert!(seen.contains("nothing was changed: the plan has changed since it was shown"), "{seen}");
    assert_eq!(s.read("a"), "saved meanwhile\n");
    let (seen, status) = answering(retake(&s, &["rewind", &id, "--path", "a"]), prompt, || save("b", "2\n"), "y\n");
    assert!(status.success(), "what is not affected does not matter: {seen}");
    assert_eq!((s.read("a"), s.read("b")), ("1\n".to_owned(), "2\n".to_owned()));
}

#[test]
#[cfg(target_os = "linux")]
fn ctrl_c_is_the_commands_and_the_point_after_is_taken() {
    let s = Sandbox::new();
    s.write("a", "1\n");
    let mut command = s.command("setsid");
    command.args(["--ctty", "--wait", env!("CARGO_BIN_EXE_retake"), "exec", "--"]);
    // A shell may swallow the signal between two commands; `tail` dies of it from the moment it has printed.
    command.args(["sh", "-c", "echo 2 > a; echo running > b; exec tail -f b"]).env("TERM", "xterm");
    let (seen, status) = answering(command, "running", || {}, "\u{3}");
    assert_eq!(status.code(), Some(130), "{seen}");
    assert!(seen.contains("1 added, 1 modified; `retake undo`"), "{seen}");
    s.retake(["undo"]).succeeds();
    assert_eq!(s.read("a"), "1\n");
}

#[test]
fn colours_tell_what_happens_to_a_path() {
    let s = Sandbox::new();
    s.write("a", "1\n");
    let id = s.checkpoint();
    s.write("a", "2\n").write("new", "");
    let mut command = s.retake_command();
    command.env("TERM", "xterm").args(["rewind", &id]);
    let (seen, _) = typing(command, "n\n");
    assert!(seen.contains("\u{1b}[33mR\u{1b}[0m a") && seen.contains("\u{1b}[31mD\u{1b}[0m new"), "{seen:?}");
}

#[test]
fn a_merge_of_ones_own_changes_is_shown_before_it_is_applied() {
    let s = Sandbox::new();
    s.write("a", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    let id = s.checkpoint();
    s.exec("sed -i s/2/two/ a").succeeds();
    s.write("a", "1\ntwo\n3\n4\n5\n6\n7\n8\nnine\n");
    let (seen, status) = typing(retake(&s, &["rewind", &id]), "merge\ny\n");
    assert!(status.success(), "{seen}");
    let (before, after) = seen.split_once("Apply? [y/N]").expect("it asks once more");
    assert!(before.contains("From what is there now to the merged file:") && before.contains("-two"), "{seen}");
    assert!(!before.contains("-nine") && after.contains("merged"), "{seen}");
    assert_eq!(s.read("a"), "1\n2\n3\n4\n5\n6\n7\n8\nnine\n");
}
