//! What is shown of sessions and turns, and what a terminal is spared.

use retake_testkit::model::Answer;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::live::Turn;
use super::{Agent, text};
use crate::sandbox::Run;
use crate::terminal;

#[test]
fn a_turn_that_runs_elsewhere_is_not_mixed_with_the_one_before() {
    let agent = Agent::new();
    agent.model.says("First answer.");
    let first = agent.turn("first", []);
    let gate = agent.model.says("Second answer.").pauses();
    let mut turn = Turn::begin_in(&agent, text(&first["session"]), "second");
    turn.until("state_changed");
    let resumed = agent.json(["resume"]);
    assert_eq!(
        (&resumed["live"], &resumed["prompt"], &resumed["text"], &resumed["ended"]),
        (&json!(true), &json!("second"), &json!(""), &json!(null))
    );
    let shown = agent.retake(["resume"]).text();
    assert!(shown.contains("open in another process") && shown.contains("running"), "{shown}");
    assert!(!shown.contains("First answer"), "{shown}");
    gate.open();
    turn.until("turn_ended");
    turn.child.wait().expect("it ends");
}

#[test]
fn a_prompt_that_begins_with_a_hyphen_is_a_prompt() {
    let agent = Agent::new();
    agent.model.says("Yes.");
    agent.turn("- do this", []);
    agent.model.says("That too.");
    agent.retake(["resume", "-p", "- and that"]).succeeds();
    assert_eq!(agent.json(["resume"])["prompt"], "- and that");
}

#[test]
fn each_call_of_a_turn_is_printed_once() {
    let agent = Agent::new();
    agent.model.calls("write_file", json!({"path": "a.txt", "content": "one\n"}));
    agent.model.calls("edit_file", json!({"path": "a.txt", "old": "one", "new": "two"}));
    agent.model.says("Done.");
    let run = agent.retake(["run", "--allow", "all", "-p", "write"]).succeeds();
    let calls: Vec<&str> = run.stderr.lines().filter(|line| line.starts_with('•')).collect();
    assert_eq!(calls, ["• write a.txt", "• edit a.txt"]);
}

#[test]
fn a_prompt_of_one_endless_line_is_cut_where_it_is_listed() {
    let agent = Agent::new();
    agent.model.says("Yes.");
    let ended = agent.turn(&"long ".repeat(10_000), []);
    let session = text(&ended["session"]);
    for args in [&["sessions"][..], &["log", "--session", session], &["log"], &["ops"], &["resume"]] {
        let listed = Run::of(agent.command().args(args)).text();
        assert!(listed.len() < 1_000, "{args:?}: {} bytes", listed.len());
    }
    agent.retake(["undo"]).succeeds();
    assert_eq!(text(&agent.json(["resume"])["draft"][0]["text"]).len(), 50_000, "what was said is whole");
}

#[test]
fn a_session_with_nothing_but_a_draft_shows_it_and_is_not_gone_on_with() {
    let agent = Agent::new();
    agent.model.says("Yes.");
    agent.turn("said", []);
    let url = retake_testkit::model::ScriptedModel::refusing_url();
    Run::of(agent.command().env("RETAKE_BASE_URL", &url).args(["run", "-p", "not said"])).fails(1);
    let listed = agent.retake(["sessions"]).text();
    assert!(listed.contains("to be said: not said"), "{listed}");
    assert_eq!(agent.json(["sessions"])["sessions"][0]["draft"], "not said");
    agent.model.says("Again.");
    agent.turn("more", ["--continue"]);
    let sessions = agent.json(["sessions"]);
    let prompts = sessions["sessions"].as_array().expect("a list").iter().map(|one| &one["prompts"]);
    assert_eq!(prompts.collect::<Vec<_>>(), [0, 2]);
}

#[test]
fn an_undo_of_a_turn_that_came_to_nothing_promises_no_redo() {
    let agent = Agent::new();
    let _gate = agent.model.says("Slowly.").pauses();
    let mut turn = Turn::begin(&agent, "first");
    turn.until("state_changed");
    let run = agent.retake(["undo", "--interrupt"]).succeeds();
    assert!(String::from_utf8_lossy(&run.stdout).contains("waits to be said again"));
    assert!(!run.stderr.contains("redo"), "{}", run.stderr);
    turn.child.wait().expect("it ends");
    agent.retake(["redo"]).fails(1);
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let agent = Agent::new();
    agent.model.says("Yes.");
    let ended = agent.turn("hello", []);
    let prompt = text(&ended["prompt"]);
    for odd in [&["--discard", "--code"][..], &["--exact", "--conversation"], &["--discard", "--path", "a"]] {
        Run::of(agent.command().args(["rewind", prompt]).args(odd)).fails(2);
    }
    let log = agent.retake(["log", "--session", text(&ended["session"]), "--search", "nowhere"]).succeeds();
    log.says("No prompt here matches \"nowhere\"");
}

#[test]
fn an_answer_that_was_cut_is_a_warning_for_people_and_programs() {
    let agent = Agent::new();
    for _ in 0..2 {
        agent.model.says("Half an ans").stops(retake_testkit::model::Stop::Length);
    }
    agent.retake(["run", "-p", "tell me"]).succeeds().says("the answer was cut");
    let run = agent.retake(["run", "--json", "-p", "tell me"]).succeeds();
    let warnings = super::lines(&run.stdout).into_iter().filter(|line| line["type"] == "warning").count();
    assert_eq!(warnings, 1);
}

#[test]
fn what_a_model_or_a_server_says_makes_a_terminal_do_nothing() {
    let agent = Agent::new();
    let evil = "evil \u{1b}]0;pwned\u{7} \u{1b}[2J\u{9b}2J\n\ttext";
    agent.model.says(evil);
    let mut command = agent.command();
    command.args(["run", "-p", "hello"]);
    let (seen, status) = terminal::typing(command, "");
    let is_clean =
        |seen: &str| !["\u{1b}]", "\u{1b}[2J", "\u{7}", "\u{9b}"].iter().any(|sequence| seen.contains(sequence));
    assert!(status.success() && is_clean(&seen) && seen.contains("\\u{1b}]0;pwned"), "{seen:?}");
    let mut command = agent.command();
    command.args(["resume", "--status"]);
    let (seen, _) = terminal::typing(command, "");
    assert!(is_clean(&seen) && seen.contains("\\u{1b}[2J"), "{seen:?}");
    agent.model.fails_with(400, "boo \u{1b}[2J");
    let mut command = agent.command();
    command.args(["run", "-p", "again"]);
    let (seen, _) = terminal::typing(command, "");
    assert!(is_clean(&seen) && seen.contains("boo"), "{seen:?}");
    agent.model.says(evil);
    let piped = agent.retake(["run", "-p", "once more"]).succeeds();
    assert_eq!(piped.stdout, format!("{evil}\n").into_bytes(), "to a program it is told as it is");
}

#[test]
fn a_command_that_waits_for_servers_can_be_stopped() {
    let agent = Agent::new();
    agent.sandbox.config("[mcp.slow]\ncommand = \"sleep\"\nargs = [\"1000\"]\n");
    let mut command = agent.command();
    command.args(["run", "-p", "hello"]).stderr(std::process::Stdio::piped());
    let child = command.spawn().expect("it starts");
    let pid = Pid::from_child(&child);
    // The server is its child once it is starting.
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    let has_child = || std::fs::read_to_string(&children).is_ok_and(|text| !text.trim().is_empty());
    while !has_child() {
        std::thread::yield_now();
    }
    kill_process(pid, Signal::INT).expect("it runs");
    let run = Run::from_output(child.wait_with_output().expect("it ends"));
    assert_eq!(run.says("before it was said").code(), Some(130));
    assert_eq!(agent.model.requests().len(), 0);
}

#[test]
fn whoever_reads_slowly_misses_nothing() {
    let agent = Agent::new();
    // More than a session keeps for those who come back.
    let answer = (0..5_000).fold(Answer::default(), |answer, _| answer.says("word "));
    agent.model.answers(answer);
    let mut child = agent
        .command()
        .args(["run", "--json", "-p", "talk"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("it starts");
    // All of the answer has come before any of it is read.
    while agent.json(["sessions"])["sessions"][0]["usage"]["output"].as_u64().is_none_or(|tokens| tokens == 0) {}
    let mut stdout = Vec::new();
    std::io::Read::read_to_end(&mut child.stdout.take().expect("it was asked for"), &mut stdout).expect("it is read");
    assert!(child.wait().expect("it ends").success());
    let numbers: Vec<u64> = super::lines(&stdout).iter().map(|line| line["seq"].as_u64().expect("a number")).collect();
    assert!(5_000 < numbers.len() && numbers.windows(2).all(|pair| pair[1] == pair[0] + 1));
    super::last_line(&stdout);
}
