//! What changed and did not go back: every command that takes something back names it, and so does `exec` for what no undo can take
//! back.

use std::fs::{self, File};

use retake_testkit::repos::git;
use serde_json::{Value, json};

use crate::sandbox::{Run, Sandbox};

/// A workspace whose files may have ten bytes.
fn ten_bytes() -> Sandbox {
    let s = Sandbox::new();
    s.config("[capture]\nmax_file = 10\n");
    s
}

fn resize(s: &Sandbox, name: &str, len: u64) {
    File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(s.ws(name))
        .expect("it opens")
        .set_len(len)
        .expect("its length is set");
}

/// The paths of a list of facts, each with why.
fn named(facts: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().expect("it is text").to_owned();
    facts.as_array().expect("a list").iter().map(|one| (text(&one["path"]), text(&one["why"]))).collect()
}

fn pair(path: &str, why: &str) -> (String, String) {
    (path.to_owned(), why.to_owned())
}

#[test]
fn a_rewind_names_a_large_file_that_changed_and_stays() {
    let s = ten_bytes();
    resize(&s, "big.dat", 100);
    resize(&s, "same.dat", 100);
    s.write("s.txt", "s\n");
    let id = s.checkpoint();
    s.write("s.txt", "t\n");
    resize(&s, "big.dat", 90);
    let plan = s.retake(["rewind", &id, "--yes", "--dry-run", "--json"]).json();
    assert_eq!(named(&plan["not_restored"]), [pair("big.dat", "too_large")], "{plan}");
    let run = s.retake(["rewind", &id, "--yes"]).succeeds();
    assert!(String::from_utf8_lossy(&run.stdout).contains("1 restored"));
    run.says("1 path changed since then and did not go back\n  big.dat: has changed; larger than `capture.max_file`");
    assert!(!run.stderr.contains("same.dat"), "{}", run.stderr);
    s.retake(["undo"]).succeeds();
    let document = s.retake(["rewind", &id, "--yes", "--json"]).json();
    assert_eq!(named(&document["not_restored"]), [pair("big.dat", "too_large")], "{document}");
    assert_eq!(document["not_restored"][0]["change"], "changed");
}

#[test]
fn an_undo_names_what_its_command_changed_and_no_other_large_file() {
    let s = ten_bytes();
    resize(&s, "big.dat", 100);
    resize(&s, "mine.dat", 100);
    resize(&s, "gone.dat", 100);
    s.write("s.txt", "s\n");
    s.exec("truncate -s 90 big.dat; rm gone.dat; truncate -s 50 new.dat; echo t > s.txt").succeeds();
    resize(&s, "mine.dat", 90);
    resize(&s, "later.dat", 90);
    let run = s.retake(["undo"]).succeeds();
    run.says("3 paths changed since then and did not go back\n");
    run.says("  big.dat: has changed; ").says("  gone.dat: is gone; ").says("  new.dat: is new since then");
    assert!(!run.stderr.contains("mine.dat") && !run.stderr.contains("later.dat"), "{}", run.stderr);
    let redone = s.retake(["redo", "--json"]).json();
    assert_eq!(named(&redone["not_restored"]), [], "{redone}");
    let undone = s.retake(["undo", "--json"]).json();
    let expected = [pair("big.dat", "too_large"), pair("gone.dat", "too_large"), pair("new.dat", "not_captured")];
    assert_eq!(named(&undone["not_restored"]), expected, "{undone}");
}

#[test]
fn a_large_file_with_another_time_may_have_changed() {
    let s = ten_bytes();
    resize(&s, "big.dat", 100);
    s.write("s.txt", "s\n");
    s.exec("touch big.dat; echo t > s.txt").succeeds();
    s.retake(["undo"]).succeeds().says("big.dat: may have changed; larger than `capture.max_file`");
}

#[test]
fn kept_conflicts_and_kept_directories_are_named() {
    let s = Sandbox::new();
    s.write("a", "1\n").write("b", "1\n").write(".gitignore", "*.o\n");
    s.exec("echo 2 > a; echo 2 > b; mkdir out; echo 1 > out/x").succeeds();
    s.write("a", "mine\n").write("out/x.o", "mine\n");
    let undone = s.retake(["undo", "--on-conflict", "keep", "--json"]).json();
    let expected = [pair("a", "changed_since"), pair("out", "holds_others")];
    assert_eq!(named(&undone["not_restored"]), expected, "{undone}");
}

#[test]
fn an_ignored_directory_that_is_gone_is_named_by_exec_and_by_undo() {
    let s = Sandbox::new();
    s.write(".gitignore", "target/\n").write("target/x", "1\n").write("a", "1\n");
    let run = s.exec("rm -r target; echo 2 > a").succeeds();
    run.says("target: is gone; it was ignored: not captured");
    let run = s.retake(["undo"]).succeeds();
    run.says("target: is gone; it was ignored: not captured");
    assert_eq!(s.read("a"), "1\n");
}

#[test]
fn exec_never_says_that_nothing_changed_when_something_did() {
    let s = ten_bytes();
    s.git_init().write("a", "1\n").write(".gitignore", "cache/\n").write("cache/x", "1\n");
    git(&s.path("ws"), &["add", "."]);
    git(&s.path("ws"), &["commit", "--quiet", "-m", "one"]);
    let commit = "git -c user.name=a -c user.email=a@b commit --quiet --allow-empty -m two";
    for (script, said) in [
        ("truncate -s 90 big.dat", "big.dat: is new; larger than `capture.max_file`"),
        ("truncate -s 80 big.dat", "big.dat: has changed; larger than `capture.max_file`"),
        ("rm big.dat", "big.dat: is gone; larger than `capture.max_file`"),
        ("mkfifo pipe", "pipe: is new; socket, fifo or device"),
        ("rm -r cache", "cache: is gone; it was ignored"),
        (commit, "HEAD went from "),
        ("git branch other", "No captured file changed"),
        ("echo 1 > ../outside", "No captured file changed"),
    ] {
        let run = s.exec(script).succeeds();
        run.says(said);
        assert!(!run.stderr.contains("Nothing changed"), "{script}: {}", run.stderr);
        assert!(!run.stderr.contains("`retake undo`"), "nothing of this can be undone: {}", run.stderr);
    }
    s.exec("true").succeeds().says("No captured file changed\n");
    let document = s.retake(["exec", "--json", "--", "sh", "-c", &format!("mkfifo other; {commit}")]).json();
    assert_eq!(named(&document["uncaptured"]), [pair("other", "special")], "{document}");
    assert_eq!(document["uncaptured"][0]["change"], "new");
    assert_eq!(document["ledger"][0]["kind"], "git", "{document}");
    let quiet = s.retake(["exec", "--json", "--", "true"]).json();
    assert_eq!((&quiet["uncaptured"], &quiet["ledger"]), (&json!([]), &json!([])));
}

#[test]
fn an_undo_without_effect_is_not_used_up() {
    let s = Sandbox::new();
    s.git_init().write("a", "1\n");
    let ws = s.path("ws");
    git(&ws, &["add", "."]);
    git(&ws, &["commit", "--quiet", "-m", "one"]);
    s.exec("echo 2 > a").succeeds();
    git(&ws, &["stash", "--quiet"]);
    let run = s.retake(["undo"]).succeeds();
    let text = String::from_utf8_lossy(&run.stdout);
    assert!(text.starts_with("Nothing was undone of exec sh -c 'echo 2 > a'"), "{text}");
    let operations = s.retake(["ops", "--json"]).json()["operations"].clone();
    assert_eq!((operations.as_array().map(Vec::len), &operations[0]["undone"]), (Some(1), &json!(false)));
    git(&ws, &["stash", "pop", "--quiet"]);
    assert_eq!(s.read("a"), "2\n");
    s.retake(["undo"]).succeeds();
    assert_eq!(s.read("a"), "1\n", "it can still be undone");
}

#[test]
fn a_dry_run_wins_over_yes() {
    let s = Sandbox::new();
    s.write("a", "1\n");
    s.exec("echo 2 > a").succeeds();
    for args in [["undo", "--yes", "--dry-run"], ["undo", "--dry-run", "-y"]] {
        assert!(s.retake(args).text().starts_with("Undo exec "));
        assert_eq!(s.read("a"), "2\n");
    }
    s.retake(["undo", "-y"]).succeeds();
    assert!(s.retake(["redo", "--yes", "--dry-run"]).text().starts_with("Redo exec "));
    assert_eq!(s.read("a"), "1\n");
}

#[test]
fn the_log_leaves_out_commands_that_changed_nothing() {
    let s = Sandbox::new();
    s.write("a", "1\n");
    let id = s.checkpoint();
    s.exec("true").succeeds();
    s.retake(["exec", "-m", "named", "--", "true"]).succeeds();
    s.write("a", "2\n");
    s.exec("true").succeeds();
    let log = s.retake(["log"]).text();
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines.len(), 3, "{log}");
    assert!(lines[0].contains("~1") && lines[0].contains("before sh -c true"), "it holds what somebody changed: {log}");
    assert!(lines[1].contains("named") && lines[2].starts_with(&id[..8]), "{log}");
    assert_eq!(s.retake(["log", "--all"]).text().lines().count(), 7);
    fs::create_dir(s.ws("dir")).expect("a directory");
    s.exec("rmdir dir").succeeds();
    assert_eq!(s.retake(["log"]).text().lines().count(), 5, "a directory is something");
}

#[test]
fn a_command_that_moved_git_stays_in_the_log() {
    let s = Sandbox::new();
    s.git_init().write("a", "1\n");
    git(&s.path("ws"), &["add", "."]);
    git(&s.path("ws"), &["commit", "--quiet", "-m", "one"]);
    s.checkpoint();
    s.exec("git -c user.name=a -c user.email=a@b commit --quiet --allow-empty -m two").succeeds();
    let log = s.retake(["log"]).text();
    assert!(log.lines().next().is_some_and(|line| line.contains("after sh -c")), "{log}");
}

#[test]
fn a_refused_rewind_leaves_no_point_in_the_log() {
    use std::io::{Read, Write};
    use std::process::Stdio;
    let s = Sandbox::new();
    s.write("a", "1\n");
    let id = s.checkpoint();
    let mut command = s.retake_command();
    command.args(["exec", "--", "sh", "-c", "echo ready; read answer"]).stdin(Stdio::piped());
    let mut running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut ready = [0; 6];
    running.stdout.as_mut().expect("it is piped").read_exact(&mut ready).expect("the command runs");
    s.write("a", "2\n");
    let before = s.retake(["log"]).text().lines().count();
    s.retake(["rewind", &id, "--yes"]).fails(3).says("still at work here");
    assert_eq!(s.retake(["log"]).text().lines().count(), before);
    running.stdin.take().expect("it is piped").write_all(b"go\n").expect("it waits");
    Run::from_output(running.wait_with_output().expect("it ends")).succeeds();
}

#[test]
fn a_large_file_that_a_command_changed_and_hid_is_named() {
    let s = ten_bytes();
    resize(&s, "big.dat", 100);
    s.write("s.txt", "s\n");
    s.checkpoint();
    let run = s.exec("truncate -s 90 big.dat; echo big.dat > .gitignore; echo t > s.txt").succeeds();
    run.says("1 path is not captured: nothing takes this back\n  big.dat: may have changed; larger than");
    s.retake(["undo", "--yes"])
        .succeeds()
        .says("1 path may have changed since then and did not go back\n  big.dat: may have changed; larger than");
}

#[test]
fn a_captured_file_that_a_command_grew_beyond_the_limit_can_be_brought_back_and_exec_says_so() {
    let s = ten_bytes();
    s.write("f", "one\n");
    let id = s.checkpoint();
    let run = s.exec("echo 'far more than ten bytes' > f").succeeds();
    run.says("1 captured file changed and cannot be captured now; `retake undo` or `retake rewind ");
    run.says(
        "1 path is not captured as it is now: going back restores how it was before the command\n  f: has changed",
    );
    assert!(!run.stderr.contains("nothing to undo") && !run.stderr.contains("nothing takes"), "{}", run.stderr);
    s.retake(["rewind", &id, "--yes"]).succeeds();
    assert_eq!(s.read("f"), "one\n");
    s.write("g", "one\n");
    let command =
        ["exec", "--json", "--", "sh", "-c", "echo 'far more than ten bytes' > g; echo 'more than ten' > new"];
    let document = s.retake(command).json();
    let facts = document["uncaptured"].as_array().expect("a list");
    let facts: Vec<_> = facts.iter().map(|one| (&one["path"], &one["was_captured"])).collect();
    assert_eq!(facts, [(&json!("g"), &json!(true)), (&json!("new"), &json!(false))], "{document}");
}

#[test]
fn a_command_that_removes_a_rule_adds_nothing_and_goes_back() {
    let s = Sandbox::new();
    s.write(".gitignore", "node_modules\n").write("node_modules/a", "1").write("node_modules/b", "1");
    let run = s.retake(["exec", "--", "rm", ".gitignore"]).succeeds();
    run.says("1 deleted; `retake undo`");
    run.says("2 files are captured now and not before the command");
    assert!(!run.stderr.contains("added"), "{}", run.stderr);
    s.retake(["undo", "--yes"]).succeeds();
    assert_eq!(s.read(".gitignore"), "node_modules\n");
    let document = s.retake(["exec", "--json", "--", "rm", ".gitignore"]).json();
    let counts = json!({"added": 0, "modified": 0, "deleted": 1});
    assert_eq!((&document["changed"], &document["newly_captured"]), (&counts, &json!(2)), "{document}");
}

#[test]
fn a_rewind_that_leaves_something_does_not_claim_that_the_files_are_as_they_were() {
    let s = Sandbox::new();
    s.write("d/a", "1");
    let id = s.checkpoint();
    s.exec("echo '*' > d/.retakeignore").succeeds();
    s.write("d/mine", "m");
    s.retake(["rewind", &id, "--yes"]).succeeds();
    let again = s.retake(["rewind", &id, "--yes"]).succeeds();
    let said = String::from_utf8_lossy(&again.stdout);
    assert!(said.starts_with("Nothing was rewound to ") && !said.contains("as they were"), "{said}");
    again.says("d/mine");
}
