//! What a user may not read or write, tried as a user who is denied things: root would be denied nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use retake_testkit::privilege::{assert_denied, give_to_nobody, run_as_nobody};
use serde_json::json;

use crate::sandbox::{Run, Sandbox};

/// Gives the sandbox to nobody, with a copy of the program, which might not be reachable where it is.
fn given_to_nobody() -> Sandbox {
    let s = Sandbox::in_memory();
    // By another program: while this one had it open for writing, a test beside this one might start a process, which inherits that.
    Run::of(s.command("cp").arg(env!("CARGO_BIN_EXE_retake")).arg(s.path("retake"))).succeeds();
    give_to_nobody(&s.path(""));
    assert_denied(&s.path(""));
    s
}

#[must_use = "say what was expected"]
fn as_nobody(s: &Sandbox, args: &[&str]) -> Run {
    let mut command = s.command(s.path("retake"));
    command.args(args);
    Run::of(&mut run_as_nobody(command))
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours or we are root");
}

/// Sets the modes of all directories and all files below `dir`, and of itself.
fn set_modes(dir: &Path, of_directories: u32, of_files: u32) {
    set_mode(dir, 0o700);
    for entry in fs::read_dir(dir).expect("it can be listed") {
        let path = entry.expect("it can be listed").path();
        if path.is_dir() {
            set_modes(&path, of_directories, of_files);
        } else {
            set_mode(&path, of_files);
        }
    }
    set_mode(dir, of_directories);
}

#[test]
fn what_cannot_be_read_is_a_gap_and_the_rest_is_captured() {
    let s = given_to_nobody();
    s.write("open", "1").write("secret", "2").write("locked/inside", "3").write("dir/secret", "4");
    give_to_nobody(&s.path("ws"));
    for path in ["secret", "locked", "dir/secret"] {
        set_mode(&s.ws(path), 0o000);
    }
    let document = as_nobody(&s, &["checkpoint", "--json"]).json();
    let gaps = document["checkpoint"]["gaps"].as_array().expect("a list");
    let told: Vec<_> = gaps.iter().map(|gap| (gap["path"].clone(), gap["kind"].clone())).collect();
    let unreadable = |path: &str| (json!(path), json!("unreadable"));
    assert_eq!(told, [unreadable("dir/secret"), unreadable("locked"), unreadable("secret")]);
    let id = document["checkpoint"]["id"].as_str().expect("an id is text").to_owned();
    assert_eq!(as_nobody(&s, &["show", &format!("{id}:open")]).text(), "1");
    let run = as_nobody(&s, &["checkpoint"]).succeeds();
    run.says("warning: this checkpoint has 3 gaps");
    run.says("locked");
    set_mode(&s.ws("locked"), 0o700);
    set_mode(&s.ws("secret"), 0o600);
    let now = as_nobody(&s, &["checkpoint", "--json"]).json();
    assert_eq!(now["checkpoint"]["gaps_total"], 1, "what can be read again is captured again");
}

#[test]
fn a_read_only_store_can_be_read_and_a_checkpoint_says_why_not() {
    let s = given_to_nobody();
    s.write("a", "1");
    let id = as_nobody(&s, &["checkpoint", "--json"]).announced().expect("it is made");
    s.write("a", "2");
    set_modes(&s.path("data"), 0o500, 0o400);
    assert!(as_nobody(&s, &["log"]).text().starts_with(&id[..8]));
    assert_eq!(as_nobody(&s, &["show", &format!("{id}:a")]).text(), "1");
    assert_eq!(as_nobody(&s, &["diff", "--name-only"]).text(), "a\n");
    as_nobody(&s, &["du"]).succeeds();
    for args in [["checkpoint"].as_slice(), &["label", &id, "named"]] {
        let run = as_nobody(&s, args).fails(1);
        run.says("cannot be written to");
        run.says("hint: make it writable, or set `RETAKE_DATA_DIR`; reading still works");
    }
    set_modes(&s.path("data"), 0o700, 0o600);
    as_nobody(&s, &["checkpoint"]).succeeds();
}

#[test]
fn a_data_directory_that_cannot_be_made_is_said() {
    let s = given_to_nobody();
    s.write("a", "1");
    fs::create_dir(s.path("locked")).expect("it is new");
    set_mode(&s.path("locked"), 0o500);
    give_to_nobody(&s.path("locked"));
    let mut command = s.command(s.path("retake"));
    command.arg("checkpoint").env("RETAKE_DATA_DIR", s.path("locked/data"));
    let run = Run::of(&mut run_as_nobody(command)).fails(1);
    run.says("cannot create `");
    run.says("locked/data");
    run.says("hint: ");
}

#[test]
fn a_data_directory_that_may_not_be_entered_is_said() {
    let s = given_to_nobody();
    s.write("a", "1").write("sub/b", "1");
    let id = as_nobody(&s, &["checkpoint", "--json"]).announced().expect("it is made");
    let store = s.store();
    for locked in [s.path("data"), s.path("data/workspaces"), store] {
        set_mode(&locked, 0o600);
        for args in [["log"].as_slice(), &["show", &id], &["diff"], &["checkpoint"], &["du"]] {
            let run = as_nobody(&s, args).fails(1);
            run.says(&format!("cannot use the data directory `{}`", s.path("data").display()));
            run.says("Permission denied");
            run.says("hint: ");
        }
        let mut below = s.command(s.path("retake"));
        below.arg("log").current_dir(s.ws("sub"));
        Run::of(&mut run_as_nobody(below)).fails(1).says("cannot use the data directory");
        set_mode(&locked, 0o700);
    }
    as_nobody(&s, &["log"]).succeeds();
}

#[test]
fn a_workspace_that_cannot_be_read_at_all_is_said() {
    let s = given_to_nobody();
    s.write("sub/a", "1");
    set_mode(&s.ws("sub"), 0o000);
    let run = as_nobody(&s, &["-C", "sub", "checkpoint"]).fails(1);
    run.says("sub");
    run.says("Permission denied");
    set_mode(&s.ws("sub"), 0o700);
}
