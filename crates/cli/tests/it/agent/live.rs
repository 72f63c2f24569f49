//! Commands on a session that another process has open.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};

use serde_json::{Value, json};

use rustix::process::{Pid, Signal, kill_process};

use retake_testkit::privilege::{give_to_nobody, is_root};

use super::{Agent, text};
use crate::sandbox::Run;

/// A turn of a session that is open already, in another process still.
fn say(agent: &Agent, prompt: &str) -> Child {
    let mut command = agent.command();
    command.args(["run", "--continue", "--allow", "all", "-p", prompt]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("it runs");
}

fn end(child: Child) -> Run {
    Run::from_output(child.wait_with_output().expect("it ends"))
}

/// A turn in another process.
pub(super) struct Turn {
    pub(super) child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Turn {
    pub(super) fn begin(agent: &Agent, prompt: &str) -> Self {
        Self::of(agent.command().args(["run", "--json", "--allow", "all", "-p", prompt]))
    }

    pub(super) fn begin_in(agent: &Agent, session: &str, prompt: &str) -> Self {
        Self::of(agent.command().args(["run", "--json", "--session", session, "-p", prompt]))
    }

    fn of(command: &mut std::process::Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let lines = BufReader::new(child.stdout.take().expect("it was asked for")).lines();
        Self { child, lines }
    }

    /// Waits for an event of this type.
    pub(super) fn until(&mut self, wanted: &str) -> Value {
        for line in self.lines.by_ref() {
            let event: Value = serde_json::from_str(&line.expect("text")).expect("a document");
            if event["type"] == wanted {
                return event;
            }
        }
        panic!("there was no {wanted}");
    }
}

#[test]
fn a_rewind_of_a_running_session_is_refused_or_stops_it_first() {
    let agent = Agent::new();
    agent.sandbox.write("a.txt", "one\n");
    agent.model.calls("bash", json!({"command": "echo two > a.txt; echo ready; sleep 1000"}));
    let mut turn = Turn::begin(&agent, "change a, slowly");
    let prompt = turn.until("appended");
    let prompt = if prompt["entry"]["type"] == "prompt" { prompt } else { turn.until("appended") };
    let prompt = text(&prompt["entry"]["id"]).to_owned();
    turn.until("call_output");
    agent.retake(["rewind", &prompt]).fails(3).says("a turn is running").says("--interrupt");
    let document = agent.json(["rewind", &prompt, "--interrupt"]);
    assert_eq!((&document["applied"], &document["conversation_moved"]), (&json!(true), &json!(true)));
    assert_eq!(std::fs::read(agent.sandbox.ws("a.txt")).expect("it is there"), b"one\n");
    assert_eq!(turn.until("turn_ended")["reason"], "interrupted");
    turn.child.wait().expect("it ends");
    assert_eq!(agent.json(["resume"])["draft"][0]["text"], "change a, slowly");
}

#[test]
fn a_prompt_to_a_session_that_runs_elsewhere_is_said_there_when_its_turn_has_ended() {
    let agent = Agent::new();
    let gate = agent.model.says("Slowly.").pauses();
    agent.model.says("Then this.");
    let mut turn = Turn::begin(&agent, "first");
    gate.wait_until_reached();
    let sessions = agent.json(["sessions"]);
    assert_eq!(sessions["sessions"][0]["live"], true);
    let session = text(&sessions["sessions"][0]["id"]).to_owned();
    let mut command = agent.command();
    command.args(["run", "--session", &session, "-p", "second"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let second = command.spawn().expect("it starts");
    turn.until("held");
    gate.open();
    turn.until("turn_ended");
    let second = Run::from_output(second.wait_with_output().expect("it ends")).succeeds();
    assert_eq!(second.stdout, b"Then this.\n");
    turn.child.wait().expect("it ends");
    let said = agent.json(["resume"]);
    assert_eq!(said["prompts"], 2, "{said}");
}

#[test]
fn a_file_of_the_user_counts_neither_for_the_turn_beside_it_nor_for_its_operation() {
    let agent = Agent::new();
    agent.model.calls("bash", json!({"command": "echo 1 > one.txt"}));
    let gate = agent.model.says("Done.").pauses();
    let mut turn = Turn::begin(&agent, "write one");
    gate.wait_until_reached();
    agent.sandbox.write("mine.txt", "my own\n");
    gate.open();
    turn.until("turn_ended");
    turn.child.wait().expect("it ends");
    let session = text(&agent.json(["sessions"])["sessions"][0]["id"]).to_owned();
    let listed = agent.json(["log", "--session", &session]);
    assert_eq!(listed["prompts"][0]["files"]["added"], 1, "{listed}");
    let operations = agent.json(["ops"]);
    assert_eq!(operations["operations"][0]["kind"], "turn", "{operations}");
    assert_eq!(operations["operations"][0]["changed"]["added"], 1, "{operations}");
}

#[test]
fn a_turn_that_runs_can_be_stopped_and_undone_at_once() {
    let agent = Agent::new();
    agent.sandbox.write("a.txt", "one\n");
    agent.model.says("I begin.").calls("bash", json!({"command": "echo two > a.txt; echo ready; sleep 1000"}));
    let mut turn = Turn::begin(&agent, "change a, slowly");
    turn.until("call_output");
    agent.retake(["undo"]).fails(3).says("is still running");
    let document = agent.json(["undo", "--interrupt"]);
    assert_eq!(document["applied"], true, "{document}");
    assert_eq!(turn.until("turn_ended")["reason"], "interrupted");
    turn.child.wait().expect("it ends");
    assert_eq!(std::fs::read(agent.sandbox.ws("a.txt")).expect("it is there"), b"one\n");
    assert_eq!(agent.json(["resume"])["draft"][0]["text"], "change a, slowly");
}

#[test]
fn what_a_prompt_may_do_is_said_with_it_wherever_it_is_carried_out() {
    let agent = Agent::new();
    let gate = agent.model.says("Slowly.").pauses();
    agent.model.calls("bash", json!({"command": "touch two.txt"}));
    agent.model.says("I may not.");
    let mut turn = Turn::begin(&agent, "first");
    gate.wait_until_reached();
    let mut command = agent.command();
    command
        .args(["run", "--continue", "--allow", "none", "-p", "second"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let second = command.spawn().expect("it starts");
    turn.until("held");
    gate.open();
    let second = Run::from_output(second.wait_with_output().expect("it ends")).succeeds();
    second.says("not allowed: bash: touch two.txt");
    turn.child.wait().expect("it ends");
    assert!(!agent.sandbox.ws("two.txt").exists());
}

#[test]
fn whoever_stops_waiting_withdraws_their_own_prompt_and_nobody_elses_turn() {
    let agent = Agent::new();
    let gate = agent.model.says("Slowly.").pauses();
    let mut turn = Turn::begin(&agent, "first");
    gate.wait_until_reached();
    agent.model.says("To the third.");
    let second = say(&agent, "second");
    turn.until("held");
    let third = say(&agent, "third");
    turn.until("held");
    signal(&second, Signal::INT);
    let second = end(second);
    assert_eq!(second.code(), Some(130));
    second.says("withdrawn");
    gate.open();
    assert_eq!(turn.until("turn_ended")["reason"], "done");
    assert_eq!(end(third).succeeds().stdout, b"To the third.\n");
    turn.child.wait().expect("it ends");
    assert_eq!(agent.json(["resume"])["prompts"], 2);
    agent.model.assert_exhausted();
}

#[test]
fn a_process_that_only_serves_others_says_so_and_stops_them_when_asked_twice() {
    for asked in [1, 2] {
        let agent = Agent::new();
        let first = agent.model.says("One.").pauses();
        let second = agent.model.says("Two.").pauses();
        let mut command = agent.command();
        command.args(["run", "-p", "first"]).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut serving = command.spawn().expect("it starts");
        first.wait_until_reached();
        let waiting = say(&agent, "second");
        let mut talk = BufReader::new(serving.stderr.take().expect("it was asked for")).lines();
        let mut until = |wanted: &str| while !talk.next().expect("it says it").expect("text").contains(wanted) {};
        // It is held once the session says so.
        while agent.json(["resume"])["draft"].as_array().is_none_or(Vec::is_empty) {}
        first.open();
        until("stays open");
        second.wait_until_reached();
        signal(&serving, Signal::INT);
        until("Once more");
        if asked == 2 {
            signal(&serving, Signal::INT);
            assert_eq!(end(waiting).says("taken back").code(), Some(130));
        } else {
            second.open();
            assert_eq!(end(waiting).succeeds().stdout, b"Two.\n");
        }
        serving.wait().expect("it ends");
    }
}

#[test]
fn a_session_whose_process_is_suspended_does_not_answer_and_does_nothing_of_it_later() {
    let agent = Agent::new();
    let gate = agent.model.says("One.").pauses();
    let turn = Turn::begin(&agent, "first");
    gate.wait_until_reached();
    signal(&turn.child, Signal::STOP);
    for args in [&["run", "--continue", "-p", "second"][..], &["context"], &["undo", "--interrupt"]] {
        Run::of(agent.command().args(args)).fails(3).says("does not answer");
    }
    signal(&turn.child, Signal::CONT);
    gate.open();
    assert!(turn.child.wait_with_output().expect("it ends").status.success());
    let resumed = agent.json(["resume"]);
    assert_eq!((&resumed["prompts"], &resumed["text"]), (&json!(1), &json!("One.")));
    agent.model.assert_exhausted();
}

#[test]
fn whoever_waits_behind_a_turn_that_is_stopped_is_told_where_their_prompt_is() {
    let agent = Agent::new();
    let _gate = agent.model.says("Slowly.").pauses();
    let mut turn = Turn::begin(&agent, "first");
    let waiting = {
        turn.until("state_changed");
        say(&agent, "second")
    };
    turn.until("held");
    signal(&turn.child, Signal::INT);
    assert_eq!(end(waiting).says("was not said").says("draft").code(), Some(1));
    turn.child.wait().expect("it ends");
    assert_eq!(agent.json(["resume"])["draft"][0]["text"], "first\n\nsecond");
    let shown = agent.retake(["resume"]).text();
    assert!(shown.ends_with("You were about to say:\n  first\n  second\n"), "{shown}");
}

#[test]
fn a_prompt_that_comes_while_the_session_closes_is_said_all_the_same() {
    let agent = Agent::new();
    agent.model.says("Begun.");
    agent.turn("begin", []);
    for n in 0..10 {
        agent.model.says("One.");
        agent.model.says("Other.");
        let mut command = agent.command();
        let mut first = command
            .args(["run", "--json", "--continue", "-p", "one"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut lines = BufReader::new(first.stdout.take().expect("it was asked for")).lines();
        // About when it closes.
        let ended = |line: std::io::Result<String>| line.is_ok_and(|line| line.contains("turn_ended"));
        assert!(lines.any(ended));
        end(say(&agent, "other")).succeeds();
        assert!(first.wait().expect("it ends").success());
        assert_eq!(agent.json(["resume"])["prompts"], 3 + 2 * n);
    }
    agent.model.assert_exhausted();
}

#[test]
fn another_users_directory_of_sockets_is_not_used() {
    if !is_root() {
        // Nobody else can make a directory for another user; the socket's own tests try one of root's.
        return;
    }
    let agent = Agent::new();
    agent.sandbox.write("a.txt", "one\n");
    agent.model.says("Hello.");
    let session = agent.turn("hello", [])["session"].clone();
    let session = text(&session);
    // The temporary directory is everybody's, and the other user was there first.
    let temp = agent.sandbox.path("tmp");
    let theirs = temp.join("retake-0");
    std::fs::create_dir_all(&theirs).expect("it is new");
    let listener = std::os::unix::net::UnixListener::bind(theirs.join(format!("{session}.sock"))).expect("it is free");
    listener.set_nonblocking(true).expect("it can be");
    give_to_nobody(&theirs);
    let elsewhere = || {
        let mut command = agent.command();
        command.env_remove("XDG_RUNTIME_DIR").env("TMPDIR", &temp);
        command
    };
    // A session that no process has open is opened here.
    agent.model.says("Again.");
    let run = Run::of(elsewhere().args(["run", "--session", session, "-p", "a secret"])).succeeds();
    run.says("cannot listen in").says("belongs to another user");
    // One that another process has open is out of reach, and nothing is sent.
    agent.model.calls("bash", json!({"command": "echo ready; sleep 1000"}));
    let mut turn =
        Turn::of(agent.command().args(["run", "--json", "--allow", "all", "--session", session, "-p", "wait"]));
    turn.until("call_output");
    for args in [["run", "--session", session, "-p", "a secret"].as_slice(), &["context", "--session", session]] {
        let run = Run::of(elsewhere().args(args)).fails(3);
        run.says("belongs to another user; nothing was sent").says("XDG_RUNTIME_DIR");
    }
    let refused = listener.accept().expect_err("nobody has connected");
    assert_eq!(refused.kind(), std::io::ErrorKind::WouldBlock);
    signal(&turn.child, Signal::TERM);
    turn.child.wait().expect("it ends");
}
