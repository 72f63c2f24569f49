//! `retake fork`: from the prompt of a real turn to a session that goes on by itself.

use serde_json::{Value, json};

use super::live::Turn;
use super::{Agent, text};
use crate::sandbox::Run;

/// An agent that was asked twice and wrote a file each time; the ids of session and prompts.
fn two_turns(agent: &Agent) -> (String, String, String) {
    agent.model.calls("write_file", json!({"path": "a.txt", "content": "one\n"}));
    agent.model.says("Wrote one.");
    agent.model.calls("write_file", json!({"path": "b.txt", "content": "two\n"}));
    agent.model.says("Wrote two.");
    let first = agent.turn("write one", []);
    let session = text(&first["session"]).to_owned();
    let second = agent.turn("write two", ["--session", &session]);
    (session, text(&first["prompt"]).to_owned(), text(&second["prompt"]).to_owned())
}

impl Run {
    /// Its data as text.
    fn out(&self) -> String {
        String::from_utf8(self.stdout.clone()).expect("it is text")
    }
}

fn sessions(agent: &Agent) -> Vec<Value> {
    agent.json(["sessions"])["sessions"].as_array().expect("a list").clone()
}

#[test]
fn a_prompt_is_forked_from_and_the_fork_goes_on_by_itself() {
    let agent = Agent::new();
    let (session, _, second) = two_turns(&agent);
    let fork = agent.json(["fork", &second]);
    assert_eq!(fork["version"], 1);
    assert_eq!(fork["forked_from"], json!({"session": session, "entry": second, "root": null}));
    assert_eq!((&fork["entry"], &fork["worktree"]), (&json!(second), &Value::Null));
    assert_eq!(fork["draft"], json!([{"type": "text", "text": "write two"}]));
    assert_eq!((&fork["differing"], &fork["gaps"]), (&json!(["b.txt"]), &json!([])));
    assert!(fork["operation"].is_string(), "{fork}");
    let id = text(&fork["session"]).to_owned();
    let listed = sessions(&agent);
    assert_eq!((&listed[0]["id"], &listed[0]["title"]), (&json!(id), &json!("write one")));
    assert_eq!(listed[0]["forked_from"], fork["forked_from"]);
    assert_eq!(listed[1]["forked_from"], Value::Null);
    agent.model.says("Another way.");
    let turn = agent.turn("another way", ["--session", &id]);
    assert_eq!(turn["session"], json!(id));
    let context = agent.json(["context", "--session", &id]).to_string();
    assert!(context.contains("forked from here") && context.contains("write one"), "{context}");
    assert!(!context.contains("write two"), "{context}");
    let context = agent.json(["context", "--session", &session]).to_string();
    assert!(context.contains("write two") && !context.contains("another way"), "{context}");
    agent.model.assert_exhausted();
}

#[test]
fn a_fork_is_undone_and_redone_by_plain_undo() {
    let agent = Agent::new();
    let (_, _, second) = two_turns(&agent);
    let run = agent.retake(["fork", &second]).succeeds();
    let told = run.says("`retake undo` takes this back").out();
    assert!(told.starts_with("Forked session ") && told.contains("before \"write two\""), "{told}");
    assert!(told.contains("To be said again: write two"), "{told}");
    let before = sessions(&agent);
    let plan = agent.json(["undo", "--dry-run"]);
    assert_eq!((&plan["applied"], &plan["files"]), (&json!(false), &json!([])));
    let told = agent.retake(["undo", "--dry-run"]).succeeds().out();
    assert!(told.contains("goes; nothing was said in it"), "{told}");
    assert_eq!(sessions(&agent), before, "that was only shown");
    let undone = agent.json(["undo"]);
    assert_eq!((&undone["applied"], &undone["files"]), (&json!(true), &json!([])));
    assert!(text(&undone["what"]).starts_with("fork "), "{undone}");
    assert_eq!(sessions(&agent), before[1..]);
    let told = agent.retake(["redo"]).succeeds().out();
    assert!(told.contains("is back as it was"), "{told}");
    assert_eq!(sessions(&agent), before);
    let told = agent.retake(["undo"]).succeeds().says("`retake redo` repeats it").out();
    assert!(told.contains("is gone"), "{told}");
    agent.retake(["undo"]).succeeds();
    assert!(!agent.sandbox.ws("b.txt").exists(), "then the turn before it");
}

#[test]
fn a_fork_that_went_on_is_left_alone() {
    let agent = Agent::new();
    let (_, _, second) = two_turns(&agent);
    let fork = agent.json(["fork", &second]);
    let (id, operation) = (text(&fork["session"]), text(&fork["operation"]));
    agent.model.says("Yes.");
    agent.turn("go on", ["--session", id]);
    let run = agent.retake(["undo", operation]).fails(3);
    run.says("has gone on since").says(&format!("retake sessions rm {}", &id[..8]));
    agent.retake(["sessions", "rm", id, "--yes"]).succeeds();
    assert_eq!(sessions(&agent).len(), 1);
    agent.retake(["undo"]).succeeds();
    assert!(!agent.sandbox.ws("b.txt").exists(), "the fork is nothing to undo any more");
}

#[test]
fn deleting_a_session_says_that_its_undone_forks_go_too() {
    let agent = Agent::new();
    let (session, _, second) = two_turns(&agent);
    let undone = agent.json(["fork", &second]);
    agent.model.says("Long work.");
    agent.turn("long work in the fork", ["--session", text(&undone["session"])]);
    agent.retake(["undo"]).succeeds();
    agent.retake(["undo"]).succeeds();
    let kept = agent.json(["fork", &second]);
    let deleted = agent.json(["sessions", "rm", &session, "--yes"]);
    assert_eq!(deleted["undone_forks"], json!([undone["session"]]), "{deleted}");
    agent.json(["fork", text(&agent.json(["log", "--session", text(&kept["session"])])["prompts"][0]["id"])]);
    agent.retake(["undo"]).succeeds();
    let run = agent.retake(["sessions", "rm", text(&kept["session"]), "--yes"]).succeeds();
    run.says("with 1 undone fork of it");
}

#[test]
fn what_it_was_forked_from_may_be_running() {
    let agent = Agent::new();
    let gate = agent.model.says("Slowly.").pauses();
    let mut turn = Turn::begin(&agent, "first");
    gate.wait_until_reached();
    let live = sessions(&agent)[0].clone();
    let targets = agent.json(["log", "--session", text(&live["id"])]);
    let prompt = text(&targets["prompts"][0]["id"]).to_owned();
    let fork = agent.json(["fork", &prompt]);
    agent.json(["undo"]);
    agent.json(["redo"]);
    gate.open();
    assert_eq!(turn.until("turn_ended")["reason"], "done", "it is not disturbed");
    turn.child.wait().expect("it ends");
    let listed = sessions(&agent);
    assert_eq!(listed[0]["id"], fork["session"]);
    assert_eq!((&listed[1]["id"], &listed[1]["prompts"]), (&live["id"], &json!(1)));
    agent.model.says("Again.");
    agent.turn("again", ["--session", text(&live["id"])]);
}

#[test]
fn a_worktree_has_the_files_of_that_point() {
    let agent = Agent::new();
    agent.sandbox.write(".gitignore", "out\n").write("out/built", "x");
    let (session, _, second) = two_turns(&agent);
    let made = agent.sandbox.path("made");
    let made_text = made.to_str().expect("plain").to_owned();
    let operations = agent.json(["ops"]);
    let fork = agent.json(["fork", &second, "--worktree", &made_text]);
    assert_eq!((&fork["worktree"], &fork["operation"]), (&json!(made_text), &Value::Null));
    assert_eq!(std::fs::read(made.join("a.txt")).expect("it is there"), b"one\n");
    assert!(!made.join("b.txt").exists() && !made.join("out").exists() && !made.join(".git").exists());
    assert_eq!(agent.json(["ops"]), operations, "here there is nothing to undo");
    let listed = sessions(&agent);
    assert_eq!(listed[0]["forks_elsewhere"][0]["root"], json!(made_text));
    let id = text(&fork["session"]);
    let there = agent.json(["-C", &made_text, "sessions"]);
    let root = agent.sandbox.ws("").canonicalize().expect("it is there");
    assert_eq!(there["sessions"][0]["id"], json!(id));
    assert_eq!(
        there["sessions"][0]["forked_from"],
        json!({"session": session, "entry": second, "root": root.to_str().expect("plain")})
    );
    agent.model.calls("write_file", json!({"path": "c.txt", "content": "three\n"}));
    agent.model.says("Wrote three.");
    agent.turn("write three", ["-C", &made_text, "--session", id]);
    assert!(made.join("c.txt").exists() && !agent.sandbox.ws("c.txt").exists());
    agent.retake(["-C", &made_text, "undo"]).succeeds();
    assert!(!made.join("c.txt").exists());
    let other = agent.sandbox.path("other");
    let run = agent.retake(["fork", &second, "--worktree", other.to_str().expect("plain")]).succeeds();
    let told = run.says("sessions rm").says("here nothing has changed").out();
    assert!(told.contains("did not come along"), "{told}");
    let inside = agent.sandbox.ws("inside");
    let run = agent.retake(["fork", &second, "--worktree", inside.to_str().expect("plain")]).fails(2);
    run.says("inside the workspace");
    agent.retake(["fork", &second, "--worktree", &made_text]).fails(2).says("there is a history");
}

#[test]
fn what_belongs_to_no_conversation_cannot_be_forked() {
    let agent = Agent::new();
    agent.sandbox.write("a.txt", "one\n");
    let point = agent.json(["checkpoint", "-m", "mine"]);
    let id = text(&point["checkpoint"]["id"]);
    for named in ["mine", id] {
        agent.retake(["fork", named]).fails(2).says("belongs to no prompt");
    }
    agent.retake(["fork", "nothing"]).fails(1).says("retake log");
    let run = Run::of(agent.command().args(["--json", "fork", "mine"]));
    let error = run.fails_with_json(2);
    assert!(text(&error["message"]).contains("belongs to no prompt"), "{error}");
}

#[test]
fn listings_show_how_sessions_hang_together() {
    let agent = Agent::new();
    let (session, first, second) = two_turns(&agent);
    let fork = agent.json(["fork", &second]);
    let id = text(&fork["session"]);
    let short = |id: &str| id[..8].to_owned();
    let listed = agent.retake(["sessions"]).succeeds().out();
    assert!(listed.contains(&format!("forked from {}", short(&session))), "{listed}");
    let graph = agent.retake(["log", "--graph", "--session", &session]).succeeds().out();
    let rows: Vec<&str> = graph.lines().collect();
    assert!(
        rows[0].contains(&short(&second)) && rows[1].contains(&short(id)) && rows[2].contains(&short(&first)),
        "{graph}"
    );
    assert!(rows[1].starts_with("| +"), "{graph}");
    let document = agent.json(["log", "--graph", "--session", &session]);
    assert_eq!(document["forks"], json!([{"session": id, "title": "write one", "entry": second}]));
    let graph = agent.retake(["log", "--graph", "--session", id]).succeeds().out();
    assert!(graph.contains(&short(&first)) && graph.contains("forked from"), "{graph}");
    assert!(!graph.contains("write two"), "{graph}");
    let document = agent.json(["log", "--session", id]);
    assert_eq!(document["prompts"][0]["id"], json!(first));
    assert_eq!(document["prompts"][0]["files"]["added"], 1, "{document}");
    assert_eq!(document["forked_from"]["session"], json!(session));
    agent.json(["rewind", &first, "--session", id]);
    assert!(!agent.sandbox.ws("a.txt").exists(), "in the fork its past can be taken back");
    assert_eq!(agent.json(["log", "--session", &session])["prompts"].as_array().map(Vec::len), Some(2));
}

#[test]
fn where_a_conversation_went_on_a_fork_is_proposed() {
    let agent = Agent::new();
    let (session, first, _) = two_turns(&agent);
    let operations = agent.json(["ops"]);
    let turns = operations["operations"].as_array().expect("a list");
    let earlier = turns.iter().find(|one| one["what"] == "write one").expect("it is there");
    let run = agent.retake(["undo", text(&earlier["id"]), "--session", &session]).succeeds();
    let told = run.out();
    assert!(told.contains("it went on since") && told.contains(&format!("retake fork {}", &first[..8])), "{told}");
}
