//! `retake undo`, `retake redo` and `retake ops`.

use std::io::{Read, Write};
use std::process::Stdio;

use serde_json::json;

use crate::sandbox::{Run, Sandbox};

#[test]
fn a_rewind_is_undone_and_redone() {
    let s = Sandbox::new();
    s.write("a", "1\n");
    let id = s.checkpoint();
    s.write("a", "2\n").write("uncommitted", "never checkpointed\n");
    s.retake(["rewind", &id, "--yes"]).succeeds();
    assert!(!s.ws("uncommitted").exists());
    let document = s.retake(["undo", "--json"]).json();
    assert_eq!(document["applied"], true);
    assert_eq!(document["what"], format!("rewind {}", &id[..8]));
    assert_eq!((s.read("a"), s.read("uncommitted")), ("2\n".to_owned(), "never checkpointed\n".to_owned()));
    assert_eq!(s.retake(["redo", "--json"]).json()["applied"], true);
    assert_eq!(s.read("a"), "1\n");
    s.retake(["redo"]).fails(1).says("there is nothing to redo");
    s.retake(["undo"]).succeeds();
    s.exec("echo 5 > b").succeeds();
    s.retake(["redo"]).fails(1).says("there is nothing to redo");
}

#[test]
fn an_earlier_operation_is_undone_by_its_id() {
    let s = Sandbox::new();
    s.write("a", "1\n").write("b", "1\n");
    s.exec("echo 2 > a").succeeds();
    s.exec("echo 2 > b").succeeds();
    let operations = s.retake(["ops", "--json"]).json()["operations"].clone();
    let first = operations[1]["id"].as_str().expect("an id is text");
    s.retake(["undo", &first[..8], "--dry-run"]).succeeds();
    s.retake(["undo", &first[..8]]).succeeds();
    assert_eq!((s.read("a"), s.read("b")), ("1\n".to_owned(), "2\n".to_owned()));
    s.retake(["undo", &first[..8]]).fails(1).says("is undone already");
    let undo = s.retake(["ops", "--json"]).json()["operations"][0]["id"].as_str().expect("an id is text").to_owned();
    s.retake(["undo", &undo]).fails(1);
    s.retake(["undo", "ffffffff"]).fails(1).says("there is no operation `ffffffff`");
}

#[test]
fn later_changes_to_the_same_file_are_conflicts() {
    let s = Sandbox::new();
    s.write("a", "1\n").write("b", "1\n");
    s.exec("echo 2 > a; echo 2 > b").succeeds();
    s.write("a", "mine\n");
    s.retake(["undo"]).fails(3).says("a: changed since by you or another program (keep, overwrite, stop)");
    let document = s.retake(["undo", "--json"]).refused_with_json();
    assert_eq!(document["conflicts"][0]["path"], "a");
    assert_eq!(s.read("b"), "2\n");
    s.retake(["undo", "--on-conflict", "keep"]).succeeds();
    assert_eq!((s.read("a"), s.read("b")), ("mine\n".to_owned(), "1\n".to_owned()));
}

#[test]
fn directories_are_counted_beside_files() {
    let s = Sandbox::new();
    s.write("a", "1\n");
    let said = |script: &str| {
        s.exec(script).succeeds();
        let undone = s.retake(["undo"]).text();
        undone.lines().next().and_then(|line| line.rsplit_once(": ")).expect("a line of counts").1.to_owned()
    };
    assert_eq!(said("mkdir -p new/empty; echo 2 > new/b; echo 2 > a"), "1 restored, 1 deleted, 2 directories deleted");
    assert_eq!(said("mkdir only"), "1 directory deleted");
    s.write("old/c", "1\n");
    assert_eq!(said("rm -r old"), "1 recreated, 1 directory recreated");
}

#[test]
fn operations_are_listed_newest_first() {
    let s = Sandbox::new();
    assert_eq!(s.retake(["ops", "--json"]).json()["operations"], json!([]));
    s.write("a", "1\n");
    s.exec("echo 2 > a").succeeds();
    s.retake(["undo"]).succeeds();
    let text = s.retake(["ops"]).text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[0].contains("  undo    exec sh -c 'echo 2 > a'  1 modified"), "{text}");
    assert!(lines[1].contains("  exec    sh -c 'echo 2 > a'  1 modified") && lines[1].ends_with("  undone"), "{text}");
    let operations = s.retake(["ops", "--json"]).json()["operations"].clone();
    assert_eq!(operations[0]["reverses"], operations[1]["id"]);
    assert_eq!((&operations[1]["kind"], &operations[1]["state"]), (&json!("exec"), &json!("done")));
    assert_eq!(operations[1]["undone"], true);
    assert_eq!(operations[0]["changed"], json!({"added": 0, "modified": 1, "deleted": 0}));
    assert!(operations[0]["before"].is_string() && operations[0]["after"].is_string());
}

#[test]
fn there_may_be_nothing_to_undo() {
    let s = Sandbox::new();
    s.write("a", "1\n");
    s.retake(["undo"]).fails(1);
    s.checkpoint();
    s.retake(["undo"]).fails(1).says("there is nothing to undo");
    assert_eq!(s.retake(["recover"]).text(), "Nothing was interrupted\n");
    assert_eq!(s.retake(["recover", "--json"]).json()["outcome"], "nothing");
}

#[test]
fn points_that_rewinds_made_are_listed_on_demand() {
    let s = Sandbox::new();
    s.write("a", "1\n");
    let id = s.checkpoint();
    s.write("a", "2\n");
    s.retake(["rewind", &id, "--yes"]).succeeds();
    assert_eq!(s.retake(["log"]).text().lines().count(), 1);
    let all = s.retake(["log", "--all", "--json"]).json()["checkpoints"].clone();
    let origins: Vec<&str> = all.as_array().expect("a list").iter().filter_map(|p| p["origin"].as_str()).collect();
    assert_eq!(origins, ["rewound", "safety", "checkpoint"]);
    let safety = all[1]["id"].as_str().expect("an id is text");
    s.retake(["rewind", safety]).succeeds();
    assert_eq!(s.read("a"), "2\n", "one can go back to any of them");
}

#[test]
fn a_command_that_is_still_running_is_not_undone() {
    let s = Sandbox::new();
    s.write("a", "1\n");
    s.exec("echo 2 > a").succeeds();
    let mut command = s.retake_command();
    command.args(["exec", "--", "sh", "-c", "echo ready; read answer"]).stdin(Stdio::piped());
    let mut running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut ready = [0; 6];
    running.stdout.as_mut().expect("it is piped").read_exact(&mut ready).expect("the command runs");
    for args in [["undo", "--yes"], ["undo", "--dry-run"]] {
        s.retake(args).fails(3).says("`sh -c 'echo ready; read answer'` is still running");
    }
    let mut waiting = s.retake_command();
    waiting.args(["undo", "--wait", "--yes"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut waiting = waiting.spawn().expect("it starts");
    let mut told = [0; 11];
    waiting.stderr.as_mut().expect("it is piped").read_exact(&mut told).expect("it says that it waits");
    assert_eq!(&told, b"Waiting for");
    running.stdin.take().expect("it is piped").write_all(b"go\n").expect("it waits");
    Run::from_output(running.wait_with_output().expect("it ends")).succeeds();
    Run::from_output(waiting.wait_with_output().expect("it ends")).succeeds();
    assert_eq!(s.read("a"), "1\n");
}

#[test]
fn commands_that_changed_nothing_are_passed_over() {
    let s = Sandbox::new();
    s.write("a", "1\n");
    s.exec("rm a").succeeds();
    s.exec("ls").succeeds();
    assert!(s.retake(["undo"]).text().starts_with("Undid exec sh -c 'rm a': 1 recreated"));
    assert_eq!(s.read("a"), "1\n");
    s.exec("ls").succeeds();
    s.retake(["redo"]).succeeds();
    assert!(!s.ws("a").exists(), "what changes nothing does not keep from repeating");
    s.retake(["undo"]).succeeds();
    s.retake(["undo"]).fails(1).says("there is nothing to undo");
}

#[test]
fn what_was_all_kept_is_not_announced_as_undone() {
    let s = Sandbox::new();
    s.write("a", "1\n");
    s.exec("echo 2 > a").succeeds();
    s.write("a", "mine\n");
    let run = s.retake(["undo", "--on-conflict", "keep"]).succeeds();
    let text = String::from_utf8_lossy(&run.stdout);
    assert_eq!(text, "Nothing was undone of exec sh -c 'echo 2 > a': every path stays as it is\n");
    run.says("warning: 1 path changed since then and did not go back\n  a: changed since by you or another program\n");
    assert!(!run.stderr.contains("`retake redo`"), "{}", run.stderr);
    let operations = s.retake(["ops", "--json"]).json()["operations"].clone();
    assert_eq!((operations.as_array().map(Vec::len), &operations[0]["undone"]), (Some(1), &json!(false)));
    s.retake(["undo", "--on-conflict", "overwrite"]).succeeds();
    assert_eq!(s.read("a"), "1\n", "it can still be undone");
}

#[test]
fn hard_links_that_an_undo_separates_are_named() {
    let s = Sandbox::new();
    s.write("one", "1\n").write("other", "1\n");
    std::fs::hard_link(s.ws("one"), s.ws("two")).expect("it is new");
    s.exec("echo 2 > one; echo 2 > other").succeeds();
    let run = s.retake(["undo", "--yes"]).succeeds();
    run.says("2 paths were hard links and are files of their own now\n  one\n  two\n");
    assert_eq!((s.read("one"), s.read("two")), ("1\n".to_owned(), "1\n".to_owned()));
    assert!(!run.stderr.contains("  other\n"), "{}", run.stderr);
    // What is separate stays so, and is not named again.
    s.exec("echo 3 > one").succeeds();
    let run = s.retake(["undo", "--yes"]).succeeds();
    assert!(!run.stderr.contains("hard link"), "{}", run.stderr);
    std::fs::hard_link(s.ws("other"), s.ws("third")).expect("it is new");
    s.exec("echo 4 > other").succeeds();
    let document = s.retake(["undo", "--json"]).json();
    let gaps: Vec<_> =
        document["gaps"].as_array().expect("a list").iter().map(|gap| (&gap["path"], &gap["kind"])).collect();
    assert_eq!(gaps, [(&json!("other"), &json!("hard_link")), (&json!("third"), &json!("hard_link"))]);
}
