//! Where the data goes may be full or gone: the first is told, the second ends in silence, and what was done is done.

use std::fs::File;
use std::process::Stdio;

use serde_json::json;

use crate::sandbox::{Run, Sandbox, noise};

/// A workspace with a checkpoint and a change, and commands that print about it, some of them much.
fn commands() -> (Sandbox, Vec<Vec<String>>) {
    let s = Sandbox::new();
    let lines: String = (0..50_000).map(|n| format!("line {n}\n")).collect();
    s.write("long", &lines).write("bin", noise(1, 500_000));
    let id = s.checkpoint();
    s.write("long", lines.to_uppercase()).write("bin", noise(2, 500_000));
    let file = format!("{id}:long");
    let commands: [&[&str]; 16] = [
        &["log"],
        &["log", "--json"],
        &["diff"],
        &["diff", "--stat"],
        &["diff", "--name-only"],
        &["diff", "--json"],
        &["show", &id],
        &["show", &file],
        &["show", &format!("{id}:")],
        &["du"],
        &["checkpoint"],
        &["completions", "bash"],
        &["man"],
        &["--help"],
        &["--version"],
        &[],
    ];
    let owned = commands.iter().map(|args| args.iter().map(|&arg| arg.to_owned()).collect()).collect();
    (s, owned)
}

#[test]
fn with_json_an_error_is_a_document_too() {
    let s = Sandbox::new();
    s.write("a", "1\n");
    let id = s.checkpoint();
    let error = s.retake(["show", "nosuch", "--json"]).fails_with_json(1);
    assert_eq!(error["message"], "there is no checkpoint `nosuch`");
    assert_eq!((&error["hint"], &error["causes"]), (&json!("`retake log` lists the points"), &json!([])));
    s.retake(["undo", "--json"]).fails_with_json(1);
    s.retake(["rewind", &id, "--path", "nosuch", "--json"]).fails_with_json(1);
    s.retake(["log", "--json", "-n", "many"]).fails_with_json(2);
    let error = s.retake(["exec", "--json", "--session", "ffffffff", "--", "true"]).fails_with_json(1);
    assert_eq!(error["causes"], json!(["there is no session `ffffffff`"]));
    // What is behind `--` is not ours.
    s.retake(["exec", "--nosuch", "--", "--json"]).fails(2);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let (s, commands) = commands();
    for args in &commands {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = s.retake_command().args(args).stdout(writer).output().expect("it starts");
        assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn output_that_cannot_be_written_is_said_to_be_the_output() {
    let (s, commands) = commands();
    // macOS has no /dev/full.
    let Ok(full) = File::options().write(true).open("/dev/full") else { return };
    for args in &commands {
        let stdout = full.try_clone().expect("a file descriptor");
        let run = Run::of(s.retake_command().args(args).stdout(stdout).stderr(Stdio::piped())).fails(1);
        let told = "error: cannot write the output\n  caused by: No space left on device (os error 28)\nhint: ";
        assert!(run.stderr.starts_with(told), "{args:?}: {}", run.stderr);
    }
    let made = s.retake(["log", "--json"]).json()["checkpoints"].as_array().map(Vec::len);
    assert_eq!(made, Some(2), "a checkpoint is made although nobody could be told");
}
