//! What `exec`, a plan and `ops` promise about going back is what going back does.

use std::os::unix::fs::PermissionsExt;

use retake_testkit::repos::git;
use serde_json::json;

use crate::sandbox::{Run, Sandbox};

#[test]
fn exec_promises_only_the_deletion_of_hidden_paths_that_going_back_deletes() {
    let s = Sandbox::new();
    s.config("[rewind]\nsave_hidden = 10\n");
    s.checkpoint();
    let hide = "echo 'h*' > .gitignore; mkfifo h1; echo small > h2; echo 'more than ten bytes' > h3; mkdir -p h4/.git; \
                echo 'ref: refs/heads/main' > h4/.git/HEAD";
    let run = s.exec(hide).succeeds();
    run.says("1 path is new and hidden by an ignore rule: not captured and not counted; going back deletes it\n  h2\n");
    run.says("3 paths are new and hidden by an ignore rule: not captured and not counted; going back leaves them\n");
    run.says("  h1: ").says("  h3: ").says("  h4: ");
    s.retake(["undo"]).succeeds().says("  h1: ").says("  h3: ").says("  h4: ");
    let left = ["h1", "h2", "h3", "h4"].map(|name| s.ws(name).exists());
    assert_eq!(left, [true, false, true, true]);
    for name in ["h1", "h3"] {
        std::fs::remove_file(s.ws(name)).expect("it stayed");
    }
    std::fs::remove_dir_all(s.ws("h4")).expect("it stayed");
    let document = s.retake(["exec", "--json", "--", "sh", "-c", hide]).json();
    assert_eq!(document["hidden"], json!(["h1", "h2", "h3", "h4"]), "{document}");
    assert_eq!(document["hidden_staying"], json!(["h1", "h3", "h4"]), "{document}");
}

#[test]
fn exec_promises_no_way_back_for_a_file_that_became_a_pipe() {
    let s = Sandbox::new();
    s.write("a", "a\n");
    s.checkpoint();
    let run = s.exec("rm a; mkfifo a").succeeds();
    run.says("1 captured file changed and cannot be saved now, so nothing takes this back while it is there\n");
    run.says("1 path cannot be saved as it is now: going back leaves it\n  a: ");
    assert!(!run.stderr.contains("retake undo") && !run.stderr.contains("restores"), "{}", run.stderr);
    s.retake(["undo"]).fails(3);
    s.retake(["undo", "--on-conflict", "overwrite"]).fails(3);
    s.exec("rm a; echo back > a; echo b > b").succeeds();
    s.write("c", "c\n");
    let run = s.exec("rm c; mkfifo c; echo 2 > b").succeeds();
    run.says("1 modified; `retake undo --on-conflict keep` or `retake rewind ");
    s.retake(["undo"]).fails(3);
    s.retake(["undo", "--on-conflict", "keep"]).succeeds();
    assert_eq!(s.read("b"), "b\n");
}

#[test]
fn exec_says_that_a_decision_is_needed_for_a_file_that_grew_beyond_the_limit() {
    let s = Sandbox::new();
    s.config("[capture]\nmax_file = 10\n").write("a", "a\n").write("b", "b\n");
    s.checkpoint();
    let run = s.exec("echo 'more than ten bytes' > a; echo 2 > b").succeeds();
    run.says("1 modified; `retake undo` or `retake rewind ")
        .says(" takes that back, once you decide on what cannot be captured");
    s.retake(["undo"]).fails(3);
    s.retake(["undo", "--on-conflict", "overwrite"]).succeeds();
    assert_eq!((s.read("a"), s.read("b")), ("a\n".to_owned(), "b\n".to_owned()));
}

#[test]
fn what_may_have_changed_is_not_said_to_have_changed() {
    let s = Sandbox::new();
    s.write(".gitignore", "node_modules\n").write("node_modules/a", "1");
    let run = s.exec("rm .gitignore").succeeds();
    run.says("1 file is captured now and not before the command: nothing tells whether it changed it\n");
    let undo = s.retake(["undo"]).succeeds();
    undo.says("1 path may have changed since then and did not go back\n  node_modules: ");
}

#[test]
fn the_first_line_of_a_plan_says_what_it_is_about() {
    let s = Sandbox::new();
    s.write("d/a", "1\n").write("b", "1\n");
    s.retake(["checkpoint", "-m", "start"]).succeeds();
    s.exec("echo 2 > d/a; echo 2 > b").succeeds();
    let first = |run: Run| run.text().lines().next().unwrap_or_default().to_owned();
    let part = first(s.retake(["rewind", "start", "--path", "d", "--dry-run"]));
    assert!(part.contains("only d") && !part.contains("whole"), "{part}");
    let undo = first(s.retake(["undo", "--dry-run"]));
    assert!(undo.ends_with("this operation's changes"), "{undo}");
    s.retake(["rewind", "start", "--yes"]).succeeds();
    let document = s.retake(["undo", "--dry-run", "--json"]).json();
    assert_eq!((&document["means"], &document["session"]), (&json!("operation"), &json!(null)), "{document}");
}

#[test]
fn a_plan_that_merges_counts_the_lines_of_the_merge() {
    let s = Sandbox::new();
    s.write("a", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    s.retake(["checkpoint", "-m", "start"]).succeeds();
    s.exec("sed -i s/2/two/ a").succeeds();
    s.write("a", "1\ntwo\n3\n4\n5\n6\n7\n8\nnine\n");
    let plan = s.retake(["rewind", "start", "--on-conflict", "merge", "--dry-run"]).text();
    assert!(plan.contains("+1 -1") && plan.contains("is merged"), "{plan}");
    let s = Sandbox::new();
    s.write("a", "a\n");
    s.retake(["checkpoint", "-m", "start"]).succeeds();
    s.exec("chmod 755 a").succeeds();
    std::fs::set_permissions(s.ws("a"), std::fs::Permissions::from_mode(0o600)).expect("it is there");
    let plan = s.retake(["rewind", "start", "--on-conflict", "merge", "--dry-run"]).text();
    assert!(!plan.contains("0644") && plan.contains("is kept"), "{plan}");
}

#[test]
fn ops_says_that_no_captured_file_changed_where_something_else_did() {
    let s = Sandbox::new();
    s.git_init().write("a", "1\n").write(".gitignore", "node_modules\n").write("node_modules/x", "1");
    git(&s.path("ws"), &["add", "a"]);
    s.exec("git -c user.name=n -c user.email=e commit -qm one").succeeds();
    s.exec("rm -r node_modules").succeeds();
    s.exec("true").succeeds();
    let ops = s.retake(["ops"]).text();
    let said: Vec<bool> = ops.lines().map(|line| line.contains("no captured file changed")).collect();
    assert_eq!(said, [false, true, true], "{ops}");
}

#[test]
fn a_repository_that_a_command_made_is_named_when_it_stays() {
    let s = Sandbox::new();
    s.write("a", "1\n");
    let id = s.checkpoint();
    s.exec("git init -q sub; echo 2 > a").succeeds();
    s.retake(["rewind", &id, "--yes"]).succeeds().says("  sub: ").says("sub/.git");
    assert!(s.ws("sub/.git").exists());
}
