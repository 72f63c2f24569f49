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

#[test]
fn the_history_of_a_path_tells_who_changed_it() {
    let s = Sandbox::new();
    s.write("src/a", "1\n").write("b", "1\n");
    s.retake(["exec", "-m", "start", "--", "sh", "-c", "echo 2 > src/a"]).succeeds();
    s.write("src/a", "mine\n").chmod("src/a", 0o600).write("src/new", "");
    s.checkpoint();
    s.retake(["rewind", "start", "--exact", "--yes"]).succeeds();
    let text = s.retake(["log", "--", "src"]).text();
    let lines: Vec<&str> =
        text.lines().map(|line| line.split_once("just now").map_or(line, |(_, rest)| rest.trim())).collect();
    let operation = s.retake(["ops", "--json"]).json()["operations"][0]["id"].as_str().expect("text")[..8].to_owned();
    assert_eq!(
        lines,
        [
            format!("- src/new  retake {operation}"),
            format!("~ src/a  retake {operation}"),
            "+ src/new  outside".to_owned(),
            "~ src/a  outside".to_owned(),
            "~ src/a  sh -c 'echo 2 > src/a' (presumed)".to_owned(),
        ]
    );
    assert_eq!(s.retake_in(s.ws("src"), ["log", "-n", "1", "--", "a", "new"]).text().lines().count(), 1);
    let changes = s.retake(["log", "--json", "--", "src/a"]).json()["changes"].clone();
    let owners: Vec<&str> =
        changes.as_array().expect("a list").iter().filter_map(|c| c["owner"]["kind"].as_str()).collect();
    assert_eq!(owners, ["retake", "outside", "session"]);
    assert_eq!(changes[2]["owner"]["certainty"], "presumed");
    assert_eq!((&changes[1]["before"]["mode"], &changes[1]["after"]["mode"]), (&"0644".into(), &"0600".into()));
    assert_eq!(s.retake(["log", "--", "."]).text().lines().count(), 5);
    s.retake(["log", "--", "b"]).succeeds().says("No change was found there");
    s.retake(["log", "--", "/etc"]).fails(2);
}

#[test]
fn two_sessions_at_once_contest_what_changed() {
    let s = Sandbox::new();
    s.write("a", "1\n");
    // Without the variable, what is inside does not know what it is in.
    let inner = format!("env -u RETAKE_SESSION {} exec -- sh -c 'echo 2 > a'", env!("CARGO_BIN_EXE_retake"));
    s.exec(&inner).succeeds();
    assert!(s.retake(["log", "--", "a"]).text().trim_end().ends_with("~ a  contested"));
    s.retake(["undo"]).fails(3).says("a: more than one may have changed it (keep, overwrite, stop)");
    s.retake(["undo", "--on-conflict", "overwrite"]).succeeds();
    assert_eq!(s.read("a"), "1\n");
}
