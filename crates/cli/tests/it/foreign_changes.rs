//! Exact rewinds and what a person changed: it is listed as yours, and lost only if the user says so.

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::sandbox::{Run, Sandbox};
use crate::terminal::typing;

/// A checkpoint, a command that changed `theirs`, and a person who changed `mine`, made `new` and deleted `gone`.
fn changed() -> (Sandbox, String) {
    let s = Sandbox::new();
    s.write("mine", "1\n").write("theirs", "1\n").write("gone", "1\n");
    let id = s.checkpoint();
    s.exec("echo 2 > theirs").succeeds();
    s.write("mine", "my own\n").write("new", "my own\n").remove("gone");
    (s, id)
}

fn is_there(s: &Sandbox, name: &str) -> bool {
    s.ws(name).exists()
}

#[test]
fn without_a_terminal_changes_of_a_person_need_yes_or_a_choice() {
    let (s, id) = changed();
    let before = s.everything_in_the_workspace();
    let refused = s.retake(["rewind", &id]).fails(3);
    refused.says("2 paths hold your own changes").says("`--yes` replaces them").says("  mine\n").says("  new\n");
    assert!(!refused.stderr.contains("theirs") && !refused.stderr.contains("gone"), "{}", refused.stderr);
    s.retake(["rewind", &id, "--on-conflict", "merge"]).fails(3);
    assert_eq!(s.everything_in_the_workspace(), before);
    s.retake(["rewind", &id, "--on-conflict", "keep"]).succeeds();
    assert_eq!((s.read("mine"), s.read("theirs")), ("my own\n".to_owned(), "1\n".to_owned()));
    assert!(is_there(&s, "new") && is_there(&s, "gone"), "to bring back what was deleted loses nothing");
    s.retake(["undo"]).succeeds();
    s.retake(["rewind", &id, "--yes"]).succeeds();
    assert_eq!((s.read("mine"), s.read("gone")), ("1\n".to_owned(), "1\n".to_owned()));
    assert!(!is_there(&s, "new"));
    let again = s.retake(["rewind", &id, "--json"]).json();
    assert_eq!((&again["operation"], &again["files"]), (&Value::Null, &json!([])), "a fixed point: {again:#}");
}

#[test]
fn json_marks_the_paths_that_are_yours_and_says_what_the_point_means() {
    let (s, id) = changed();
    let plan = s.retake(["rewind", &id, "--dry-run", "--json"]).refused_with_json();
    let yours = |document: &Value| -> Vec<String> {
        let files = document["files"].as_array().expect("a list").iter().filter(|file| file["yours"] == true);
        files.map(|file| file["path"].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!((&plan["means"], yours(&plan)), (&json!("workspace"), vec!["gone".into(), "mine".into(), "new".into()]));
    let conflicts: Vec<&Value> = plan["conflicts"].as_array().expect("a list").iter().collect();
    let whys: Vec<&Value> = conflicts.iter().map(|conflict| &conflict["why"]).collect();
    assert_eq!(whys, [&json!("yours"), &json!("yours")], "{plan:#}");
    let done = s.retake(["rewind", &id, "--yes", "--json"]).json();
    assert_eq!((&done["means"], yours(&done).len(), &done["conflicts"]), (&json!("workspace"), 3, &json!([])));
}

#[test]
fn on_a_terminal_one_question_is_about_all_that_is_yours() {
    let (s, id) = changed();
    let rewind = || {
        let mut command = s.retake_command();
        command.env("TERM", "xterm").env("NO_COLOR", "1").args(["rewind", &id]);
        command
    };
    let (seen, status) = typing(rewind(), "\n");
    assert_eq!(status.code(), Some(1), "{seen}");
    assert!(seen.contains(": the whole workspace\n"), "{seen}");
    assert!(seen.contains("mine    +1 -1  yours (needs your decision)"), "{seen}");
    assert!(seen.contains("2 paths hold your own changes. Apply and replace them? [y/N/keep]"), "{seen}");
    assert_eq!(s.read("mine"), "my own\n");
    let (seen, status) = typing(rewind(), "keep\ny\n");
    assert!(status.success() && seen.contains("yours (is kept)"), "{seen}");
    assert_eq!((s.read("mine"), s.read("theirs")), ("my own\n".to_owned(), "1\n".to_owned()));
    let (seen, status) = typing(rewind(), "y\n");
    assert!(status.success(), "{seen}");
    assert_eq!(s.read("mine"), "1\n");
}

#[test]
fn a_prompt_means_the_sessions_changes_and_a_checkpoint_the_workspace() {
    let agent = Agent::new();
    agent.sandbox.write("a.txt", "one\n");
    agent.retake(["checkpoint", "-m", "start"]).succeeds();
    agent.model.calls("bash", json!({"command": "echo two > a.txt"}));
    agent.model.says("Done.");
    let ended = agent.turn("change it", []);
    let prompt = ended["prompt"].as_str().expect("an id");
    agent.sandbox.write("b.txt", "mine\n");
    for (point, means, words) in
        [(prompt, "session", "this session's changes"), ("start", "workspace", "the whole workspace")]
    {
        let shown = Run::of(agent.command().args(["rewind", point, "--dry-run"]));
        let text = String::from_utf8(shown.stdout).expect("it is text");
        let first = text.lines().next().expect("a plan has a first line");
        assert!(first.starts_with("Rewind to ") && first.ends_with(&format!(": {words}")), "{text}");
        let run = Run::of(agent.command().args(["rewind", point, "--dry-run", "--json"]));
        let document: Value = serde_json::from_slice(&run.stdout).expect("a document");
        assert_eq!(document["means"], means);
    }
}

#[test]
fn authors_are_those_of_the_files_in_the_plan_and_no_command_is_in_both_lists() {
    let s = Sandbox::new();
    s.write("a", "1\n").write("b", "1\n");
    s.retake(["checkpoint", "-m", "start"]).succeeds();
    for script in ["sed -i s/1/2/ a", "echo 3 > b", "true"] {
        s.exec(script).succeeds();
    }
    let plan = |more: &[&str]| Run::of(s.retake_command().args(["rewind", "start", "--yes"]).args(more));
    let lists = || {
        let run = Run::of(s.retake_command().args(["rewind", "start", "--dry-run", "--json"]));
        let document: Value = serde_json::from_slice(&run.stdout).expect("a document");
        let texts = |values: &Value, key: Option<&str>| -> Vec<String> {
            let values = values.as_array().expect("a list").iter();
            values.map(|value| key.map_or(value, |key| &value[key]).as_str().expect("text").to_owned()).collect()
        };
        (texts(&document["undoes"], None), texts(&document["ledger"], Some("what")))
    };
    let (undoes, stays) = lists();
    assert_eq!(undoes.len(), 2, "{undoes:?}");
    assert!(stays.iter().all(|what| !undoes.contains(what)) && stays.len() == 1, "{undoes:?} {stays:?}");
    for _ in 0..2 {
        s.retake(["undo"]).succeeds();
    }
    s.write("a", "mine\n").write("b", "mine\n");
    let (undoes, stays) = lists();
    assert!(undoes.is_empty(), "a person made these changes: {undoes:?}");
    assert!(stays.iter().all(|what| what.contains("true")), "undone commands are not named: {stays:?}");
    plan(&[]).succeeds();
    assert_eq!(s.read("a"), "1\n");
}

#[test]
fn work_that_was_brought_back_needs_a_decision_too() {
    let s = Sandbox::new();
    s.write("a", "1\n");
    s.retake(["checkpoint", "-m", "start"]).succeeds();
    s.write("a", "mine\n").write("thesis", "t\n");
    s.retake(["rewind", "start", "--yes"]).succeeds();
    s.retake(["undo", "--yes"]).succeeds();
    let refused = s.retake(["rewind", "start"]).fails(3);
    refused.says("2 paths hold your own changes").says("  a\n").says("  thesis\n");
    s.exec("rm thesis").succeeds();
    s.retake(["undo", "--yes"]).succeeds();
    s.retake(["rewind", "start"]).fails(3).says("  thesis\n");
    assert_eq!((s.read("a"), s.read("thesis")), ("mine\n".to_owned(), "t\n".to_owned()));
}

#[test]
fn a_dry_run_needs_the_decisions_that_the_rewind_needs() {
    let (s, id) = changed();
    let dry = s.retake(["rewind", &id, "--dry-run"]);
    dry.says("2 paths hold your own changes");
    assert_eq!(dry.code(), Some(3));
    let plan = s.retake(["rewind", &id, "--dry-run", "--json"]).refused_with_json();
    let status = |document: &Value, path: &str| -> Value {
        let files = document["files"].as_array().expect("a list");
        files.iter().find(|file| file["path"] == path).expect("it is in the plan")["status"].clone()
    };
    assert_eq!((status(&plan, "mine"), status(&plan, "theirs")), (json!("conflict"), json!("planned")));
    let decided = s.retake(["rewind", &id, "--yes", "--dry-run", "--json"]).json();
    assert_eq!((status(&decided, "mine"), decided["applied"].clone()), (json!("planned"), json!(false)));
    s.retake(["rewind", &id, "--on-conflict", "keep", "--dry-run"]).succeeds();
}

#[test]
fn a_merge_is_announced_as_one() {
    let s = Sandbox::new();
    s.write("a", "1\n2\n3\n4\n5\n");
    s.retake(["checkpoint", "-m", "start"]).succeeds();
    s.exec("sed -i s/1/x/ a").succeeds();
    s.write("a", "x\n2\n3\n4\nmine\n");
    let merge = ["rewind", "start", "--on-conflict", "merge"];
    let merged = s.retake(merge).succeeds();
    assert!(String::from_utf8_lossy(&merged.stdout).trim_end().ends_with(": 1 merged"));
    merged.says("1 path changed since then and did not go back\n  a: merged: what others changed in it stays");
    assert_eq!(s.read("a"), "1\n2\n3\n4\nmine\n");
    let again = s.retake(merge).succeeds();
    assert!(String::from_utf8_lossy(&again.stdout).contains("every path stays as it is"), "a fixed point");
    s.retake(["undo"]).succeeds();
    let document = Run::of(s.retake_command().args(merge).arg("--json")).json();
    assert_eq!((&document["files"][0]["action"], &document["files"][0]["status"]), (&json!("merge"), &json!("done")));
    assert_eq!(document["not_restored"][0]["why"], "merged");
}

#[test]
fn an_undo_and_a_redo_mean_the_changes_of_one_operation() {
    let s = Sandbox::new();
    s.write("a", "1\n");
    s.exec("echo 2 > a").succeeds();
    for command in ["undo", "redo"] {
        let plan = s.retake([command, "--dry-run", "--json"]).json();
        let done = s.retake([command, "--json"]).json();
        assert_eq!((&plan["means"], &done["means"]), (&json!("operation"), &json!("operation")), "{command}");
    }
    s.write("a", "mine\n");
    assert_eq!(s.retake(["undo", "--json"]).refused_with_json()["means"], "operation");
}

#[test]
fn what_a_command_left_uncaptured_names_the_command() {
    let s = Sandbox::new();
    s.config("[capture]\nmax_file = 10\n");
    s.write("a", "1\n");
    s.retake(["checkpoint", "-m", "start"]).succeeds();
    s.exec("printf 'more than ten bytes' > a").succeeds();
    let refused = s.retake(["rewind", "start"]).fails(3);
    refused.says("  a: changed by `").says("and not captured since");
    assert!(!refused.stderr.contains("your own changes"), "{}", refused.stderr);
    s.retake(["rewind", "start", "--yes"]).succeeds();
    assert_eq!(s.read("a"), "1\n");
}
