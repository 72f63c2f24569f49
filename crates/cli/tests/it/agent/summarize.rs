//! `retake summarize`, the model's own checkpoints, and what a turn changed, on the real program.

use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::live::Turn;
use super::{Agent, text};

/// Two turns, each of which writes a file; the ids of their prompts, and the session.
fn two_turns(agent: &Agent) -> (String, String, String) {
    let mut prompts = Vec::new();
    let mut session = String::new();
    for (word, more) in [("one", &[][..]), ("two", &["--continue"][..])] {
        agent.model.calls("bash", json!({"command": format!("echo {word} > {word}.txt")}));
        agent.model.says(&format!("said {word}"));
        let mut command = agent.command();
        command.args(["run", "--json", "--allow", "all", "-p", &format!("prompt {word}")]).args(more);
        let ended = super::last_line(&crate::sandbox::Run::of(&mut command).succeeds().stdout);
        prompts.push(text(&ended["prompt"]).to_owned());
        text(&ended["session"]).clone_into(&mut session);
    }
    let second = prompts.pop().expect("two were said");
    (prompts.pop().expect("two were said"), second, session)
}

fn context(agent: &Agent) -> String {
    agent.retake(["context"]).text()
}

#[test]
fn a_summary_takes_the_place_of_the_past_and_can_be_undone() {
    let agent = Agent::new();
    let (first, second, session) = two_turns(&agent);
    let whole = context(&agent);
    agent.model.says("SUMMARY of one");
    let run = agent.retake(["summarize", "--up-to", &second[..8], "--instructions", "- be brief"]).succeeds();
    assert_eq!(std::str::from_utf8(&run.stdout), Ok("SUMMARY of one\n"));
    run.says("`retake undo` takes this back");
    assert!(agent.model.last_request().text.contains("- be brief"));
    let now = context(&agent);
    assert!(now.contains("SUMMARY of one") && now.contains("said two") && !now.contains("said one"), "{now}");
    assert!(agent.retake(["ops"]).text().contains("up to \"prompt two\""));
    let listed = agent.json(["log", "--session", &session]);
    assert_eq!(listed["prompts"].as_array().map(Vec::len), Some(2), "every prompt is still a point");
    assert_eq!((&listed["prompts"][0]["seen"], &listed["prompts"][1]["seen"]), (&json!(true), &json!(false)));
    agent.retake(["undo", "--yes"]).succeeds();
    assert_eq!(context(&agent), whole);
    agent.retake(["redo", "--yes"]).succeeds();
    assert_eq!(context(&agent), now);
    agent.retake(["rewind", &first[..8], "--yes"]).succeeds();
    assert!(!context(&agent).contains("SUMMARY"));
    assert!(!agent.sandbox.ws("one.txt").exists());
    agent.model.assert_exhausted();
}

#[test]
fn the_document_tells_the_summary_and_an_empty_range_is_said() {
    let agent = Agent::new();
    let (first, second, _) = two_turns(&agent);
    agent.retake(["summarize", "--up-to", &first[..8]]).succeeds().says("nothing to summarise");
    assert_eq!(agent.json(["summarize", "--up-to", &first[..8]])["summary"], Value::Null);
    agent.model.says("SUMMARY");
    let made = agent.json(["summarize", "--from", &second[..8]]);
    assert_eq!(made["version"], 1);
    assert_eq!(made["summary"]["text"], "SUMMARY");
    assert_eq!(made["summary"]["range"][0], second);
    let checkpoint = agent.json(["checkpoint", "-m", "mine"]);
    agent.retake(["summarize", "--from", "mine"]).fails(1).says("is no prompt");
    agent.retake(["summarize"]).fails(2);
    agent.retake(["summarize", "--all", "--from", &second[..8]]).fails(2);
    assert_eq!(checkpoint["version"], 1);
    agent.model.fails_with(401, r#"{"type":"error","error":{"type":"authentication_error","message":"bad key"}}"#);
    agent.retake(["summarize", "--all"]).fails(1).says("nothing was changed");
}

#[test]
fn with_the_setting_the_model_goes_back_by_itself() {
    let agent = Agent::new();
    let config = agent.sandbox.path("config.toml");
    std::fs::write(&config, "[tools]\ncheckpoint = true\n[model]\ncontext = 100000\n").expect("a file");
    agent.model.calls("checkpoint", json!({"goal": "look"}));
    agent.model.calls("bash", json!({"command": "printf %s-%s OM EGA"}));
    agent.model.calls("rewind", json!({"report": "It ends with omega."}));
    agent.model.says("Done.");
    let mut command = agent.command();
    command.env("RETAKE_CONFIG", &config).args(["run", "--allow", "all", "-p", "look"]);
    crate::sandbox::Run::of(&mut command).succeeds();
    let last = agent.model.last_request();
    assert!(last.text.contains("It ends with omega.") && !last.text.contains("OM-EGA"), "{}", last.text);
    std::fs::write(&config, "[tools]\ncheckpoint = 1\n").expect("a file");
    let mut command = agent.command();
    command.env("RETAKE_CONFIG", &config).args(["run", "-p", "look"]);
    crate::sandbox::Run::of(&mut command).fails(1).says("tools.checkpoint");
}

#[test]
fn what_a_turn_changed_can_be_seen_alone() {
    let agent = Agent::new();
    let (first, second, _) = two_turns(&agent);
    agent.sandbox.write("three.txt", "mine\n");
    let names = |prompt: &str| agent.retake(["diff", "--name-only", "--turn", prompt]).text();
    assert_eq!((names(&first[..8]), names(&second[..8])), ("one.txt\n".to_owned(), "two.txt\n".to_owned()));
    agent.retake(["checkpoint", "-m", "mine"]).succeeds();
    agent.retake(["diff", "--turn", "mine"]).fails(1).says("is no prompt");
    agent.retake(["diff", &first[..8], "--turn", &second[..8]]).fails(2);
}

#[test]
fn stopping_it_leaves_nothing_and_what_others_say_meanwhile_is_said() {
    let agent = Agent::new();
    let (_, _, session) = two_turns(&agent);
    let whole = context(&agent);
    let begin = || {
        let mut command = agent.command();
        command.args(["summarize", "--all"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("it starts")
    };
    let gate = agent.model.says("SUMMARY one").pauses();
    let summarising = begin();
    gate.wait_until_reached();
    kill_process(Pid::from_child(&summarising), Signal::INT).expect("it runs");
    let output = summarising.wait_with_output().expect("it ends");
    gate.open();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(context(&agent), whole);
    let gate = agent.model.says("SUMMARY two").pauses();
    let summarising = begin();
    gate.wait_until_reached();
    agent.model.says("said three");
    let mut saying = Turn::begin_in(&agent, &session, "prompt three");
    saying.until("held");
    gate.open();
    assert_eq!(saying.until("turn_ended")["reason"], "done");
    assert!(saying.child.wait().expect("it ends").success());
    assert!(summarising.wait_with_output().expect("it ends").status.success());
    let last = agent.model.last_request();
    assert!(last.text.contains("SUMMARY two") && last.text.contains("prompt three"), "{}", last.text);
}
