//! `retake acp -- AGENT` that is killed: nothing of the agent is left running, and its last work is taken back or asked about.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::PATIENCE;
use super::proxied::Stage;
use crate::agent::Agent;

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process is there and runs: one that nobody has waited for yet does not.
fn runs(process: &str) -> bool {
    let state = std::process::Command::new("ps").args(["-o", "stat=", "-p", process]).output().expect("there is `ps`");
    let state = String::from_utf8_lossy(&state.stdout).trim().to_owned();
    !state.is_empty() && !state.starts_with('Z')
}

/// Whether a process that was sent a stop has stopped: on a busy machine its threads go on until one of them has taken the signal.
fn has_stopped(process: u32) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else {
        let state = std::process::Command::new("ps").args(["-o", "stat=", "-p", &process.to_string()]).output();
        return state.expect("there is `ps`").stdout.starts_with(b"T");
    };
    let is_stopped = |stat: String| stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T'));
    threads.flatten().all(|thread| std::fs::read_to_string(thread.path().join("stat")).is_ok_and(is_stopped))
}

/// Whether a file below a directory has this text.
fn is_stored(directory: &Path, text: &str) -> bool {
    let files = std::fs::read_dir(directory).into_iter().flatten().flatten();
    files.into_iter().any(|file| match file.path().is_dir() {
        true => is_stored(&file.path(), text),
        false => {
            std::fs::read(file.path()).is_ok_and(|all| all.windows(text.len()).any(|part| part == text.as_bytes()))
        }
    })
}

#[test]
fn an_agent_and_what_it_started_do_not_outlive_a_proxy_that_is_killed() {
    let agent = Agent::new();
    let pids = agent.sandbox.path("pids");
    // A wrapper that does not look at its input, and the agent that it started; neither ends when it is asked to.
    let script = format!("trap '' TERM; sleep 600 & echo \"$$ $!\" > '{}'; while :; do wait; done", pids.display());
    let mut command = agent.command();
    command.args(["acp", "--", "sh", "-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut proxy = command.spawn().expect("it starts");
    let started = || std::fs::read_to_string(&pids).unwrap_or_default();
    wait_until("the agent says who it is", || started().ends_with('\n'));
    let started = started();
    let all: Vec<&str> = started.split_whitespace().collect();
    assert!(all.len() == 2 && all.iter().all(|process| runs(process)), "{started}");
    proxy.kill().expect("it runs");
    proxy.wait().expect("it has ended");
    wait_until("the agent has ended", || !all.iter().any(|process| runs(process)));
}

#[test]
fn nothing_watches_over_an_agent_that_has_ended() {
    let stage = Stage::new("");
    let editor = stage.editor();
    let proxy = editor.child.id().to_string();
    let children = || {
        let found = std::process::Command::new("pgrep").args(["-P", &proxy]).output();
        let found = found.expect("there is `pgrep`");
        let text = String::from_utf8_lossy(&found.stdout).into_owned();
        text.split_whitespace().map(str::to_owned).collect::<Vec<String>>()
    };
    let started = children();
    assert_eq!(started.len(), 2, "the agent, and the one that ends it: {started:?}");
    assert_eq!(editor.leave().0, Some(0));
    assert!(!started.iter().any(|process| runs(process)), "{started:?}");
}

#[test]
fn what_an_agent_did_unread_before_the_proxy_was_killed_is_asked_about() {
    let stage = Stage::new("");
    let mut editor = stage.editor();
    let session = editor.begin(&stage.agent);
    editor.turn(&session, "write a.txt zero");
    let prompt = json!([{ "type": "text", "text": "say quicksilver\nwait go\nwrite a.txt one\nwait end" }]);
    editor.send("session/prompt", json!({ "sessionId": session, "prompt": prompt }));
    let data = stage.agent.sandbox.path("data");
    wait_until("its words are stored", || is_stored(&data, "\"quicksilver\""));
    // From here on it reads nothing, as if the machine were busy.
    let proxy = Pid::from_child(&editor.child);
    kill_process(proxy, Signal::STOP).expect("it runs");
    wait_until("it has stopped", || has_stopped(editor.child.id()));
    std::fs::write(stage.agent.sandbox.path("inner").join("go"), "").expect("it is writable");
    wait_until("the agent has written", || stage.file() == "one\n");
    kill_process(proxy, Signal::KILL).expect("it can be killed");
    editor.wait();

    let mut editor = stage.editor();
    let cwd = stage.agent.sandbox.path("ws");
    editor.call("session/load", json!({ "sessionId": session, "cwd": cwd, "mcpServers": [] }));
    let points = editor.call("_session/rewind_points", json!({ "sessionId": session }));
    let mut wish = json!({ "sessionId": session, "beforeMessageId": points["points"][0]["messageId"] });
    let id = editor.send("_session/rewind", wish.clone());
    let refused = editor.answer(id);
    assert_eq!(refused["error"]["data"]["conflicts"][0]["path"], "a.txt", "{refused}");
    assert_eq!(stage.file(), "one\n");
    wish["onConflict"] = "overwrite".into();
    editor.call("_session/rewind", wish);
    assert_eq!(stage.file(), "zero\n");
    assert_eq!(editor.leave().0, Some(0));
}

#[test]
fn a_dry_run_does_not_plan_an_older_undo_than_the_one_that_follows_a_kill() {
    let stage = Stage::new("");
    let mut editor = stage.editor();
    let session = editor.begin(&stage.agent);
    editor.turn(&session, "write a.txt zero");
    let prompt = json!([{ "type": "text", "text": "shell echo made > made.txt\nwait end" }]);
    editor.send("session/prompt", json!({ "sessionId": session, "prompt": prompt }));
    let made = stage.agent.sandbox.path("ws").join("made.txt");
    wait_until("the tool has written", || made.exists());
    kill_process(Pid::from_child(&editor.child), Signal::KILL).expect("it can be killed");
    editor.wait();

    let planned = stage.agent.retake(["undo", "--dry-run", "--session", &session]);
    assert_eq!(planned.code(), Some(3), "{}", planned.stderr);
    assert!(planned.stderr.contains("turn `shell echo made > made.txt` was cut off"), "{}", planned.stderr);
    assert!(planned.stderr.contains("recovers the turn first and then takes it back"), "{}", planned.stderr);
    assert!(made.exists() && stage.file() == "zero\n", "it only shows");
    stage.agent.retake(["undo", "--session", &session]).succeeds();
    assert!(!made.exists() && stage.file() == "zero\n", "the cut turn is undone and none before it");
}
