//! `retake checkpoint`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use serde_json::json;

use crate::sandbox::Sandbox;

#[test]
fn one_line_says_what_changed_since_the_last_one() {
    let s = Sandbox::new();
    s.write("a", "1").write("b", "1").write("c", "1");
    s.checkpoint();
    s.write("a", "2").remove("b").write("new/x", "1").write("new/y", "1");
    let line = s.retake(["checkpoint", "-m", "before lunch"]).text();
    let (id, rest) = line.strip_prefix("Checkpoint ").and_then(|line| line.split_once(' ')).expect("an id follows");
    assert!(id.len() == 8 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
    assert_eq!(rest, "\"before lunch\": 2 added, 1 modified, 1 deleted\n");
}

#[test]
fn a_checkpoint_without_changes_says_so() {
    let s = Sandbox::new();
    s.write("a", "1");
    s.checkpoint();
    assert!(s.retake(["checkpoint"]).text().ends_with(": nothing changed\n"));
}

#[test]
fn json_has_the_documented_shape() {
    let s = Sandbox::new();
    s.write("a", "1");
    let document = s.retake(["checkpoint", "-m", "first", "--json"]).json();
    assert_eq!(document["changed"], json!({"added": 1, "modified": 0, "deleted": 0}));
    let checkpoint = &document["checkpoint"];
    assert_eq!(checkpoint["label"], "first");
    assert_eq!(checkpoint["gaps"], json!([]));
    assert_eq!(checkpoint["gaps_total"], 0);
    assert_eq!(checkpoint["id"].as_str().map(str::len), Some(20));
    assert_eq!(checkpoint["snapshot"].as_str().map(str::len), Some(64));
    let at = checkpoint["at"].as_str().expect("a time is text");
    assert!(at.len() >= 20 && at.contains('T') && at.ends_with('Z'), "RFC 3339 in UTC: {at}");
}

#[test]
fn equal_content_has_an_equal_snapshot() {
    let s = Sandbox::new();
    s.write("a", "1");
    let snapshot = || s.retake(["checkpoint", "--json"]).json()["checkpoint"]["snapshot"].clone();
    let first = snapshot();
    s.write("a", "2");
    assert_ne!(snapshot(), first);
    s.write("a", "1");
    assert_eq!(snapshot(), first);
}

#[test]
fn gaps_are_said_on_stderr_and_listed_in_json() {
    let s = Sandbox::new();
    s.config("[capture]\nmax_file = 10\n").write("small", "1").write("big", "more than ten bytes");
    let run = s.retake(["checkpoint"]).succeeds();
    run.says("warning: this checkpoint has 1 gap");
    run.says("big");
    let document = s.retake(["checkpoint", "--json"]).json();
    assert_eq!(document["checkpoint"]["gaps_total"], 1);
    assert_eq!(document["checkpoint"]["gaps"][0]["path"], "big");
    assert_eq!(document["checkpoint"]["gaps"][0]["kind"], "too_large");
    assert!(document["checkpoint"]["gaps"][0]["text"].is_string());
}

#[test]
fn names_that_are_not_utf8_are_base64_in_json() {
    let s = Sandbox::new();
    s.config("[capture]\nmax_file = 10\n").write(OsStr::from_bytes(b"caf\xe9"), "more than ten bytes");
    let document = s.retake(["checkpoint", "--json"]).json();
    assert_eq!(document["checkpoint"]["gaps"][0]["path"], json!({"bytes": "Y2Fm6Q=="}));
}

#[test]
fn long_lists_of_gaps_are_cut_in_json_and_counted() {
    let s = Sandbox::new();
    s.config("[capture]\nmax_file = 1\n");
    for n in 0..1_001 {
        s.write(format!("f{n}"), "22");
    }
    let document = s.retake(["checkpoint", "--json"]).json();
    assert_eq!(document["checkpoint"]["gaps"].as_array().map(Vec::len), Some(1_000));
    assert_eq!(document["checkpoint"]["gaps_total"], 1_001);
}

#[test]
fn nothing_is_written_into_the_workspace() {
    let s = Sandbox::new();
    s.write("a", "1").git_init();
    let before = s.everything_in_the_workspace();
    s.checkpoint();
    s.retake(["diff"]).succeeds();
    s.retake(["log"]).succeeds();
    assert_eq!(s.everything_in_the_workspace(), before);
}
