//! `retake log`.

use crate::sandbox::Sandbox;

#[test]
fn points_are_listed_newest_first() {
    let s = Sandbox::new();
    s.write("a", "1");
    let first = s.checkpoint();
    s.write("b", "1").write("a", "2");
    s.retake(["checkpoint", "-m", "second\nline"]).succeeds();
    let log = s.retake(["log"]).text();
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[0].contains("just now") && lines[0].contains("+1   ~1   -0"), "{log}");
    assert!(lines[0].ends_with(r"second\nline"), "a label stays on its line: {log}");
    assert!(lines[1].starts_with(&first[..8]), "{log}");
}

#[test]
fn gaps_are_marked() {
    let s = Sandbox::new();
    s.config("[capture]\nmax_file = 1\n").write("big", "22");
    s.checkpoint();
    assert!(s.retake(["log"]).text().trim_end().ends_with("! 1 gap"));
}

#[test]
fn the_list_can_be_cut() {
    let s = Sandbox::new();
    let ids = [s.checkpoint(), s.checkpoint(), s.checkpoint()];
    let log = s.retake(["log", "-n", "2"]).text();
    assert_eq!(log.lines().count(), 2);
    assert!(log.starts_with(&ids[2][..8]), "{log}");
}

#[test]
fn json_lists_every_point_with_its_facts() {
    let s = Sandbox::new();
    s.git_init().write("a", "1");
    let id = s.checkpoint();
    let document = s.retake(["log", "--json"]).json();
    assert_eq!(document["checkpoints"].as_array().map(Vec::len), Some(1));
    let point = &document["checkpoints"][0];
    assert_eq!(point["id"], id.as_str());
    assert_eq!(point["changed"]["added"], 1);
    assert_eq!(point["gaps_total"], 0);
    assert_eq!(point["git"]["branch"], "main");
    assert!(point["label"].is_null());
}

#[test]
fn an_empty_log_says_how_to_begin() {
    let s = Sandbox::new();
    let run = s.retake(["log"]).succeeds();
    run.says("`retake checkpoint`");
    assert_eq!(run.stdout, b"");
    assert_eq!(s.retake(["log", "--json"]).json()["checkpoints"], serde_json::json!([]));
    assert!(!s.path("data").exists(), "reading makes no store");
}
