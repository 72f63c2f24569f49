//! Being told to stop, and turns that are not what one hoped for.

use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::live::Turn;
use super::{Agent, text};
use crate::sandbox::Run;

#[test]
fn whoever_tells_it_to_stop_it_stops_in_good_order() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let agent = Agent::new();
        agent.sandbox.write("a.txt", "one\n");
        agent.model.calls("bash", json!({"command": "echo two > a.txt; echo ready; sleep 1000"}));
        let mut turn = Turn::begin(&agent, "change a, slowly");
        turn.until("call_output");
        kill_process(Pid::from_child(&turn.child), signal).expect("it runs");
        assert_eq!(turn.until("turn_ended")["reason"], "interrupted", "{signal:?}");
        assert_eq!(turn.child.wait().expect("it ends").code(), Some(130), "{signal:?}");
        let operations = agent.json(["ops"]);
        assert_eq!(operations["operations"][0]["state"], "done", "{operations}");
        agent.retake(["undo"]).succeeds();
        assert_eq!(std::fs::read(agent.sandbox.ws("a.txt")).expect("it is there"), b"one\n");
    }
}

#[test]
fn undoing_turn_after_turn_gives_each_prompt_back_in_its_turn() {
    let agent = Agent::new();
    for prompt in ["first", "second"] {
        agent.model.says("Yes.");
        if prompt == "first" {
            agent.turn(prompt, [])
        } else {
            agent.turn(prompt, ["--continue"])
        };
    }
    for prompt in ["second", "first"] {
        agent.retake(["undo"]).succeeds();
        assert_eq!(agent.json(["resume"])["draft"][0]["text"], prompt);
    }
}

#[test]
fn an_answer_that_was_cut_and_tried_again_is_printed_once() {
    let agent = Agent::new();
    agent.model.says("A long answer").cuts_after(3);
    agent.model.says("A long answer, whole.");
    let run = agent.retake(["run", "-p", "tell me"]).succeeds();
    assert_eq!(std::str::from_utf8(&run.stdout), Ok("A long answer, whole.\n"));
    run.says("trying again");
}

#[test]
fn a_path_goes_back_without_the_conversation_and_never_with_it() {
    let agent = Agent::new();
    agent.sandbox.write("a.txt", "one\n");
    agent.model.calls("bash", json!({"command": "echo two > a.txt; echo two > b.txt"}));
    agent.model.says("Done.");
    let ended = agent.turn("change both", []);
    let prompt = text(&ended["prompt"]);
    Run::of(agent.command().args(["rewind", prompt, "--path", "a.txt", "--both"])).fails(2);
    agent.retake(["rewind", prompt, "--path", "a.txt"]).succeeds();
    assert_eq!(std::fs::read(agent.sandbox.ws("a.txt")).expect("it is there"), b"one\n");
    assert!(agent.sandbox.ws("b.txt").exists());
    assert_eq!(agent.json(["resume"])["prompts"], 1);
    agent.retake(["label", prompt, "start"]).succeeds().says(&format!("Prompt {} is now", &prompt[..8]));
    let log = agent.retake(["log"]).text();
    assert!(log.contains(&prompt[..8]), "a prompt is listed by its own id: {log}");
}

#[test]
fn a_prompt_that_cannot_be_taken_whole_is_not_taken() {
    let agent = Agent::new();
    let mut child = agent
        .command()
        .args(["run", "-p", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stdin = child.stdin.take().expect("it was asked for");
    let wrote = std::io::Write::write_all(&mut stdin, &vec![b'x'; 6 << 20]);
    drop(stdin);
    let run = Run::from_output(child.wait_with_output().expect("it ends")).fails(2);
    run.says("larger than 5 MiB");
    // It need not read what it refuses.
    drop(wrote);
    assert_eq!(agent.model.requests().len(), 0);
}
