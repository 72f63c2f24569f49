//! `retake purge`: confirmed, thorough, and honest about what stays.

use std::fs;

use crate::sandbox::Sandbox;

/// A workspace with a secret in two checkpoints.
fn leaked() -> Sandbox {
    let s = Sandbox::new();
    s.write("src/a", "1").write("keys/api", "a secret");
    s.checkpoint();
    s.write("keys/api", "another secret");
    s.checkpoint();
    s
}

#[test]
fn purging_needs_a_confirmation_and_then_says_what_went() {
    let s = leaked();
    s.retake(["purge", "keys/api"]).fails(3).says("`--yes`");
    assert_eq!(s.retake(["show", &format!("{}:keys/api", newest(&s))]).text(), "another secret");
    let run = s.retake(["purge", "keys/api", "--yes"]).succeeds();
    run.says("the next checkpoint captures these again");
    run.says(".retakeignore");
    assert!(run.text().starts_with("Purged `keys/api`: 2 contents from 2 checkpoints"));
    s.retake(["show", &format!("{}:keys/api", newest(&s))]).fails(1);
    let shown = s.retake(["show", &newest(&s), "--json"]).json();
    assert_eq!(shown["checkpoint"]["gaps"][0]["kind"], "purged");
    fs::remove_file(s.ws("keys/api")).expect("it was there");
    let again = s.retake(["purge", "keys/api", "--yes"]).text();
    assert_eq!(again, "No checkpoint holds `keys/api`\n");
}

#[test]
fn a_purge_tells_as_json_who_else_holds_it() {
    let s = leaked();
    s.write("copy", "a secret");
    s.checkpoint();
    let document = s.retake(["purge", "keys", "--yes", "--json"]).json();
    assert_eq!(document["checkpoints"], 3);
    assert_eq!(document["held_by"], serde_json::json!(["copy"]));
    assert_eq!(document["on_disk"], serde_json::json!(["keys"]));
}

#[test]
fn the_whole_workspace_and_what_is_outside_are_not_purged() {
    let s = leaked();
    s.retake(["purge", ".", "--yes"]).fails(2);
    s.retake(["purge", "../elsewhere", "--yes"]).fails(2);
    s.retake(["purge"]).fails(2);
    assert_eq!(s.retake(["log", "--json"]).json()["checkpoints"].as_array().map(Vec::len), Some(2));
}

fn newest(s: &Sandbox) -> String {
    s.retake(["log", "--json"]).json()["checkpoints"][0]["id"].as_str().expect("an id is text").to_owned()
}
