//! `retake exec`.

use std::fs;
use std::io::{Read, Write};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::sandbox::{Run, Sandbox};

#[test]
fn a_command_gets_a_point_before_and_after() {
    let s = Sandbox::new();
    s.write("a", "1\n").write("gone", "1\n");
    let run = s.exec("echo 2 > a; echo new > b; rm gone; echo data; echo talk >&2").succeeds();
    assert_eq!(run.stdout, b"data\n", "stdout is the command's");
    run.says("talk\n");
    run.says("1 added, 1 modified, 1 deleted; `retake undo` or `retake rewind ");
    let log = s.retake(["log"]).text();
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines.len(), 2, "{log}");
    assert!(lines[0].contains("+1   ~1   -1") && lines[0].contains("after sh -c 'echo 2 > a"), "{log}");
    assert!(lines[1].contains("before sh -c 'echo 2 > a"), "{log}");
    let points = s.retake(["log", "--json"]).json()["checkpoints"].clone();
    assert_eq!((&points[0]["origin"], &points[1]["origin"]), (&"after".into(), &"before".into()));
    assert!(points[0]["session"].is_string() && points[0]["session"] == points[1]["session"]);
}

#[test]
fn a_command_that_redirects_gits_global_excludes_stops_no_capture() {
    let s = Sandbox::new();
    s.write("f", "f\n");
    s.checkpoint();
    let redirect = "printf '[core]\\n\\texcludesFile = ~/ex\\n' > ~/.gitconfig; echo f > ~/ex";
    s.exec(redirect).succeeds().says("a command changed an ignore rule that hides 1 file: still captured");
    s.write("f", "a day of work\n");
    s.exec("echo CLOBBER > f").succeeds().says("1 modified");
    s.retake(["undo", "--yes"]).succeeds();
    assert_eq!(s.read("f"), "a day of work\n");
}

#[test]
fn new_paths_that_a_command_hides_are_named() {
    let s = Sandbox::new();
    s.write("a/file", "1");
    let id = s.checkpoint();
    let hide = "echo 'X*' > .gitignore; echo > Xhid; mkdir Xd; echo > Xd/z; mv a b; echo b/ >> .gitignore";
    let run = s.exec(hide).succeeds();
    run.says("1 added, 1 deleted; `retake undo`");
    run.says("3 paths are new and hidden by an ignore rule: not captured and not counted; going back deletes them");
    run.says("\n  Xd\n  Xhid\n  b\n");
    s.retake(["rewind", &id, "--yes"]).succeeds();
    assert_eq!(s.read("a/file"), "1");
    assert!(["Xhid", "Xd", "b", ".gitignore"].iter().all(|name| !s.ws(name).exists()));
    let document = s.retake(["exec", "--json", "--", "sh", "-c", hide]).json();
    assert_eq!(document["hidden"], json!(["Xd", "Xhid", "b"]), "{document}");
}

#[test]
fn a_file_that_a_command_hides_in_gits_own_excludes_goes_back() {
    let s = Sandbox::new();
    s.git_init();
    let id = s.checkpoint();
    s.exec("mkdir -p .git/info; echo 'x*' >> .git/info/exclude; echo h > xhid; echo v > v").succeeds().says("  xhid\n");
    s.retake(["rewind", &id, "--yes"]).succeeds();
    assert!(!s.ws("xhid").exists() && !s.ws("v").exists());
    s.retake(["undo"]).succeeds();
    assert_eq!(s.read("xhid"), "h\n");
}

#[test]
fn the_exit_code_is_the_commands() {
    let s = Sandbox::new();
    s.write("not-executable", "#!/bin/sh\n");
    assert_eq!(s.exec("exit 7").code(), Some(7));
    assert_eq!(s.exec("kill -TERM $$").code(), Some(128 + 15));
    let missing = s.retake(["exec", "--", "nosuchcommand"]);
    assert_eq!(missing.code(), Some(127));
    missing.says("cannot start `nosuchcommand`");
    assert_eq!(s.retake(["exec", "--", "./not-executable"]).code(), Some(126));
    s.retake(["exec"]).fails(2);
    s.retake(["exec", "ls"]).fails(2);
}

#[test]
fn a_command_runs_where_it_was_started() {
    let s = Sandbox::new();
    s.git_init().write("sub/a", "");
    let run = s.retake_in(s.ws("sub"), ["exec", "--", "pwd"]).succeeds();
    assert_eq!(String::from_utf8_lossy(&run.stdout).trim_end(), s.ws("sub").to_string_lossy());
    run.says("No captured file changed");
}

#[test]
fn the_point_before_can_be_named() {
    let s = Sandbox::new();
    s.write("a", "1\n");
    s.retake(["exec", "-m", "start", "--", "rm", "a"]).succeeds();
    s.retake(["rewind", "start"]).succeeds();
    assert_eq!(s.read("a"), "1\n");
    s.retake(["exec", "-m", "start", "--", "rm", "a"]).fails(3);
    assert_eq!(s.read("a"), "1\n", "it was not run");
    s.retake(["exec", "-m", " ", "--", "rm", "a"]).fails(2);
}

#[test]
fn commands_can_share_a_session() {
    let s = Sandbox::new();
    s.write("a", "1\n");
    s.exec("echo 2 > a").succeeds();
    let first = s.retake(["ops", "--json"]).json()["operations"][0].clone();
    let session = first["session"].as_str().expect("exec has a session").to_owned();
    s.retake(["exec", "--session", &session[..8], "--", "sh", "-c", "echo 3 > a"]).succeeds();
    s.exec("echo 4 > b").succeeds();
    assert_eq!(s.retake(["ops", "--session", &session[..8]]).text().lines().count(), 2);
    assert_eq!(s.retake(["log", "--session", &session[..8]]).text().lines().count(), 4);
    s.retake(["undo", "--session", &session]).succeeds();
    assert_eq!((s.read("a"), s.read("b")), ("2\n".to_owned(), "4\n".to_owned()));
    s.retake(["exec", "--session", "ffffffff", "--", "rm", "a"]).fails(1).says("there is no session `ffffffff`");
    assert_eq!(s.read("a"), "2\n", "it was not run");
}

#[test]
fn without_the_checkpoint_before_nothing_is_run_unless_insisted_on() {
    let s = Sandbox::new();
    s.config("[store]\nbudget = '1 KiB'\n").write("a", "1\n");
    let run = s.exec("rm a");
    assert_eq!(run.code(), Some(3), "{}", run.stderr);
    run.says("the command was not run");
    assert_eq!(s.read("a"), "1\n");
    let run = s.retake(["exec", "--unprotected", "--", "rm", "a"]).succeeds();
    run.says("this cannot be undone");
    assert!(!s.ws("a").exists());
}

#[test]
fn wrong_usage_and_open_questions_never_run_a_command_unprotected() {
    let s = Sandbox::new();
    s.write("a", "1\n");
    s.retake(["exec", "-m", "taken", "--", "true"]).succeeds();
    s.retake(["exec", "--unprotected", "-m", "taken", "--", "rm", "a"]).fails(3);
    s.retake(["exec", "--unprotected", "-m", " ", "--", "rm", "a"]).fails(2);
    s.retake(["exec", "--unprotected", "--session", "ffffffff", "--", "rm", "a"]).fails(1);
    let home = s.path("home").to_string_lossy().into_owned();
    s.retake(["-C", &home, "exec", "--unprotected", "--", "rm", "a"]).fails(3);
    assert_eq!(s.read("a"), "1\n", "it was not run");
    for file in ["retake.db-wal", "retake.db-shm", "retake.db"] {
        fs::remove_file(s.store().join(file)).ok();
    }
    s.retake(["exec", "--unprotected", "--", "rm", "a"]).succeeds().says("this cannot be undone");
    assert!(!s.ws("a").exists());
}

#[test]
fn json_tells_what_a_command_did_and_nothing_else_is_on_stdout() {
    let s = Sandbox::new();
    s.write("a", "1\n");
    let run = s.retake(["exec", "--json", "--", "sh", "-c", "echo 2 > a; echo output; exit 7"]);
    assert_eq!(run.code(), Some(7), "{}", run.stderr);
    run.says("output\n");
    let document: Value = serde_json::from_slice(&run.stdout).expect("it is one JSON document");
    let operation = s.retake(["ops", "--json"]).json()["operations"][0].clone();
    assert_eq!(document["version"], 1);
    assert_eq!((&document["operation"], &document["exit_code"]), (&operation["id"], &json!(7)));
    for key in ["session", "before", "after", "changed"] {
        assert_eq!(document[key], operation[key], "{key}");
    }
    assert_eq!((&document["changed"]["modified"], &document["contested"]), (&json!(1), &json!(0)));

    let s = Sandbox::new();
    s.config("[store]\nbudget = '1 KiB'\n").write("a", "1\n");
    let document = s.retake(["exec", "--json", "--unprotected", "--", "rm", "a"]).json();
    assert_eq!((&document["operation"], &document["exit_code"]), (&json!(null), &json!(0)));
}

#[test]
fn what_another_session_may_have_changed_is_said_to_be_contested() {
    let s = Sandbox::new();
    s.write("a", "1\n").write("b", "1\n");
    let mut command = s.retake_command();
    command.args(["exec", "--", "sh", "-c", "echo ready; read answer; echo 2 > a"]).stdin(Stdio::piped());
    let mut outer = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut ready = [0; 6];
    outer.stdout.as_mut().expect("it is piped").read_exact(&mut ready).expect("the command runs");
    let contested = "warning: 1 path is contested: another session, or somebody after the command had ended, could have made the change";
    let inner = s.exec("echo 2 > b").succeeds();
    inner.says("1 modified; `retake undo` or `retake rewind ");
    inner.says(" takes that back, once you decide on what is contested\n");
    inner.says(contested);
    outer.stdin.take().expect("it is piped").write_all(b"go\n").expect("it waits");
    let outer = Run::from_output(outer.wait_with_output().expect("it ends")).succeeds();
    outer.says(contested);
    let operations = s.retake(["ops", "--json"]).json()["operations"].clone();
    let id = operations[1]["id"].as_str().expect("an id is text");
    outer.says(&format!("2 modified; `retake undo {}` or `retake rewind ", &id[..8]));
    let changed: Vec<&Value> = [0, 1].iter().map(|at| &operations[at]["changed"]["modified"]).collect();
    assert_eq!(changed, [1, 2], "`ops` counts as `exec` does");
    s.retake(["undo", &id[..8]]).fails(3).says("  b: more than one may have changed it");
}

#[test]
fn a_command_inside_another_belongs_to_its_session() {
    let s = Sandbox::new();
    s.write("a", "1\n").write("b", "1\n");
    let retake = env!("CARGO_BIN_EXE_retake");
    let nested = |s: &Sandbox| {
        let run = s.exec(&format!("echo 2 > a; {retake} exec -- sh -c 'echo 2 > b'; echo 3 > a")).succeeds();
        assert!(!run.stderr.contains("contested"), "{}", run.stderr);
        run
    };
    let run = nested(&s);
    run.says("1 modified; `retake undo` or `retake rewind ");
    let operations = s.retake(["ops", "--json"]).json()["operations"].clone();
    assert_eq!(operations[0]["session"], operations[1]["session"]);
    let outer = operations[1]["before"].as_str().expect("an id is text");
    run.says(&format!(
        "2 modified; `retake rewind {}` takes that back, `retake undo` one command run inside it at a time\n",
        &outer[..8]
    ));
    s.retake(["undo"]).succeeds();
    assert_eq!((s.read("a"), s.read("b")), ("3\n".to_owned(), "1\n".to_owned()), "the inner one first");
    s.retake(["undo"]).succeeds();
    assert_eq!(s.read("a"), "1\n", "then the outer one");
    nested(&s);
    let operations = s.retake(["ops", "--json"]).json()["operations"].clone();
    s.retake(["rewind", operations[1]["before"].as_str().expect("an id is text")]).succeeds();
    assert_eq!((s.read("a"), s.read("b")), ("1\n".to_owned(), "1\n".to_owned()));
    // A variable that a command has left behind means nothing.
    let ended = operations[1]["session"].as_str().expect("it has one");
    Run::of(s.retake_command().env("RETAKE_SESSION", ended).args(["exec", "--", "true"])).succeeds();
    assert_ne!(s.retake(["ops", "--json"]).json()["operations"][0]["session"], ended);
}

#[test]
fn a_command_that_was_killed_with_retake_can_be_undone() {
    let s = Sandbox::new();
    s.write("a", "1\n");
    s.exec("echo 2 > a").succeeds();
    assert_eq!(s.exec("echo 3 > a; kill -KILL $PPID").code(), None);
    let planned = s.retake(["undo", "--dry-run"]);
    assert_eq!(planned.code(), Some(3), "not the command before it: {}", planned.stderr);
    assert!(planned.stderr.contains("recovers the exec first and then takes it back"), "{}", planned.stderr);
    s.retake(["undo"]).succeeds();
    assert_eq!(s.read("a"), "2\n");
    s.retake(["undo"]).succeeds();
    assert_eq!(s.read("a"), "1\n");
}

#[test]
fn interrupting_the_command_does_not_lose_the_point_after() {
    let s = Sandbox::new();
    s.write("a", "1\n");
    // As the terminal does it, but to one process after the other; SIGTERM is passed on.
    let script = "trap 'exit 5' INT TERM; echo 2 > a; echo ready; while :; do sleep 1 & wait $!; done";
    let mut child = s.retake_command();
    child.args(["exec", "--", "sh", "-c", script]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().expect("it starts");
    let mut ready = [0; 6];
    child.stdout.as_mut().expect("it is piped").read_exact(&mut ready).expect("the command runs");
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process has a number");
    for signal in [Signal::INT, Signal::INT, Signal::TERM] {
        kill_process(pid, signal).expect("it is ours");
    }
    let run = Run::from_output(child.wait_with_output().expect("it ends"));
    assert_eq!(run.code(), Some(5), "{}", run.stderr);
    run.says("1 modified");
    s.retake(["undo"]).succeeds();
    assert_eq!(s.read("a"), "1\n");
}

#[test]
fn a_first_exec_makes_the_workspace_one() {
    let s = Sandbox::new();
    fs::create_dir(s.ws("d")).expect("it is new");
    s.exec("rmdir d").succeeds().says("only directories changed");
    s.retake(["undo"]).succeeds();
    assert!(s.ws("d").is_dir());
}

#[test]
fn what_a_command_leaves_behind_is_told() {
    let s = Sandbox::new();
    s.write("a", "1\n");
    // What was started is still the shell for a moment.
    let wait = "while [ -e /proc/$! ] && ! grep -q sleep /proc/$!/comm; do :; done";
    let run = s.exec(&format!("echo now > now; sleep 60 >/dev/null 2>&1 & echo $! > pid; {wait}")).succeeds();
    run.says("it left processes behind");
    let pid: i32 = s.read("pid").trim().parse().expect("it works");
    run.says(&format!("`sleep 60` ({pid})"));
    let plan = s.retake(["--json", "undo", "--dry-run"]).json();
    let running = json!({"kind": "running", "what": format!("`sleep 60` ({pid})")});
    assert!(plan["ledger"].as_array().expect("it works").contains(&running), "{plan}");
    kill_process(Pid::from_raw(pid).expect("it works"), Signal::KILL).expect("it works");
    let quiet = s.exec("echo again > now").succeeds();
    assert!(!quiet.stderr.contains("left processes"), "{}", quiet.stderr);
}

#[test]
fn what_was_not_captured_and_is_gone_is_told() {
    let s = Sandbox::new();
    s.write("small", "1\n");
    fs::File::create(s.ws("big")).expect("it works").set_len(70 << 20).expect("it works");
    let run = s.exec("rm big small").succeeds();
    run.says("1 path is not captured: nothing takes this back\n  big: is gone; larger than `capture.max_file`");
    let undo = s.retake(["undo", "--yes"]).succeeds();
    undo.says("1 path changed since then and did not go back\n  big: is gone; larger than `capture.max_file`");
    assert_eq!(s.read("small"), "1\n");
    assert!(!s.exec("rm small").succeeds().stderr.contains("big"));
}

#[test]
fn a_file_that_shrinks_below_the_limit_is_modified_and_not_added() {
    let s = Sandbox::new();
    s.config("[capture]\nmax_file = 10\n").write("big", "more than ten bytes").write("a", "1");
    let run = s.exec("echo small > big").succeeds();
    run.says("1 modified, and nothing takes that back");
    run.says("1 path is not captured: nothing takes this back\n  big: has changed; larger than `capture.max_file`");
    s.write("big", "more than ten bytes");
    let run = s.exec("echo small > big; echo 2 > a; echo 3 > new").succeeds();
    run.says("1 added, 1 modified; `retake undo --on-conflict keep` or ");
    s.retake(["undo", "--on-conflict", "keep"]).succeeds();
    assert_eq!((s.read("a"), s.read("big"), s.ws("new").exists()), ("1".to_owned(), "small\n".to_owned(), false));
    s.write("big", "more than ten bytes");
    let run = s.retake(["exec", "--json", "--", "sh", "-c", "echo small > big; echo 3 > new"]).json();
    assert_eq!(run["changed"], json!({"added": 1, "modified": 1, "deleted": 0}), "{run}");
}

#[test]
fn a_repository_that_is_gone_is_told_without_advice() {
    let s = Sandbox::new();
    s.git_init().write("a", "1\n");
    s.exec("rm -rf .git a").succeeds();
    let undo = s.retake(["undo", "--yes"]).succeeds();
    undo.says("git: the git repository is gone, and it is not captured");
    assert!(!undo.stderr.contains("symbolic-ref"), "{}", undo.stderr);
}

#[test]
fn the_exit_code_is_told_even_if_the_checkpoint_after_fails() {
    let s = Sandbox::new();
    s.write("a", "1\n");
    let run = s.exec("rm -r \"$RETAKE_DATA_DIR\"; : > \"$RETAKE_DATA_DIR\"; exit 5");
    assert_eq!(run.code(), Some(5));
    run.says("the checkpoint after it could not be taken");
}
