//! The plan that the user saw is the plan that is applied: a save at the last moment refuses it, in every front end. The save is made
//! where the engine has its lock and has not looked at the files yet.

use std::process::Command;

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::sandbox::{Run, Sandbox};

/// A person who saves `a.txt` when the engine begins a rewind.
pub(crate) fn saving(sandbox: &Sandbox, mut command: Command) -> Command {
    std::fs::write(sandbox.path("mine"), "mine\n").expect("there is room");
    let save = format!("cp {} {}", sandbox.path("mine").display(), sandbox.ws("a.txt").display());
    command.env("FAILPOINTS", format!("rewind-begins=return({save})"));
    command
}

/// A session with one prompt, whose turn has changed `a.txt` from one to two with a command.
pub(crate) fn one_turn(agent: &Agent) -> (String, String) {
    agent.sandbox.write("a.txt", "one\n");
    agent.model.calls("bash", json!({"command": "echo two > a.txt"}));
    agent.model.says("Done.");
    let ended = agent.turn("change it", []);
    let text = |value: &Value| value.as_str().expect("an id is text").to_owned();
    (text(&ended["session"]), text(&ended["prompt"]))
}

#[test]
fn a_save_after_the_fingerprint_was_taken_refuses_the_plan_of_the_command_line() {
    let s = Sandbox::new();
    s.write("a.txt", "one\n");
    let id = s.checkpoint();
    s.exec("echo two > a.txt").succeeds();
    let rewind = |seen: &str| Run::of(saving(&s, s.retake_command()).args(["rewind", &id, "--yes", "--plan", seen]));
    let planned = s.retake(["rewind", &id, "--dry-run", "--json"]).json();
    let seen = planned["fingerprint"].as_str().expect("a plan has one");
    rewind(seen).fails(3).says("nothing was changed: the plan has changed since it was shown");
    assert_eq!(s.read("a.txt"), "mine\n");
    let planned = s.retake(["rewind", &id, "--dry-run", "--json"]).refused_with_json();
    rewind(planned["fingerprint"].as_str().expect("a plan has one")).succeeds();
    assert_eq!(s.read("a.txt"), "one\n", "the same file again is the same plan");
    s.retake(["rewind", &id, "--plan", "nonsense"]).fails(3).says("the plan has changed");
}

#[test]
fn a_fingerprint_is_of_files_and_choices_and_not_of_the_ledger() {
    let s = Sandbox::new();
    s.write("a.txt", "one\n").write("b.txt", "one\n");
    let id = s.checkpoint();
    s.exec("echo two > a.txt").succeeds();
    let fingerprint = |more: &[&str]| {
        let run = Run::of(s.retake_command().args(["rewind", &id, "--dry-run", "--json"]).args(more));
        let document: Value = serde_json::from_slice(&run.stdout).expect("it is one JSON document");
        document["fingerprint"].as_str().expect("a plan has one").to_owned()
    };
    let first = fingerprint(&[]);
    s.exec("true").succeeds();
    assert_eq!(fingerprint(&[]), first, "a command more that changed no file");
    s.write("b.txt", "mine\n");
    let open = fingerprint(&[]);
    assert_ne!(open, first);
    let (keep, overwrite) = (fingerprint(&["--on-conflict", "keep"]), fingerprint(&["--on-conflict", "overwrite"]));
    assert!(keep != overwrite && keep != open, "{keep} {overwrite} {open}");
    s.retake(["rewind", &id, "--on-conflict", "overwrite", "--plan", &keep]).fails(3).says("the plan has changed");
    s.retake(["rewind", &id, "--on-conflict", "keep", "--plan", &open]).succeeds();
    assert_eq!((s.read("a.txt"), s.read("b.txt")), ("one\n".to_owned(), "mine\n".to_owned()));
}

#[test]
fn a_save_after_the_plan_was_shown_refuses_the_rewind_of_the_browser() {
    let agent = Agent::new();
    let (session, prompt) = one_turn(&agent);
    let served = crate::agent::serve::Served::start_with(saving(&agent.sandbox, agent.command()), ["--port", "0"]);
    let change = json!({"do": "rewind", "entry": prompt, "scope": "both", "on_conflict": "overwrite"});
    let plan = served.browser.command(&session, &json!({"type": "plan", "change": change}));
    let seen = &plan["ok"]["document"]["fingerprint"];
    let applied = served
        .browser
        .command(&session, &json!({"type": "apply", "change": change, "plan_seen": seen, "running": "refuse"}));
    assert_eq!(applied["refused"]["reason"], "stale_plan", "{applied:#}");
    assert_eq!(agent.sandbox.read("a.txt"), "mine\n");
}
