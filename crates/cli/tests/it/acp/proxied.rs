//! `retake acp -- AGENT` as a process, with a fake agent inside, and what commands of other processes see and do meanwhile.

use std::path::{Path, PathBuf};
use std::process::Command;

use retake_testkit::fake_agent;
use serde_json::{Value, json};

use super::{Editor, refuses_a_stale_plan};
use crate::agent::Agent;
use crate::sandbox::Run;
use crate::stale_plan::saving;

/// An editor, the program between, and the fake agent, which has these habits.
pub(super) struct Stage {
    pub(super) agent: Agent,
    habits: &'static str,
}

impl Stage {
    pub(super) fn new(habits: &'static str) -> Self {
        let agent = Agent::new();
        std::fs::create_dir(agent.sandbox.path("inner")).expect("there is room");
        Self { agent, habits }
    }

    pub(super) fn editor(&self) -> Editor {
        self.editor_with(self.agent.command())
    }

    /// With this `retake`.
    fn editor_with(&self, mut command: Command) -> Editor {
        let directory = self.agent.sandbox.path("inner");
        command.current_dir(self.agent.sandbox.path("ws"));
        command.env(fake_agent::VARIABLE, format!("{},{}", directory.display(), self.habits));
        command.args(["acp", "--"]).arg(fake_agent());
        let mut editor = Editor::run(command);
        editor.greet();
        editor
    }

    pub(super) fn file(&self) -> String {
        self.agent.sandbox.read("a.txt")
    }

    /// What the inner agent's model was sent at the last prompt.
    fn model_saw(&self) -> String {
        fake_agent::model_requests(&self.agent.sandbox.path("inner")).pop().expect("it was asked").join("\n")
    }

    /// The session in Retake's own log, and its prompts, newest first.
    fn logged(&self) -> (String, Vec<String>) {
        let session = self.agent.json(["sessions"])["sessions"][0]["id"].as_str().expect("an id").to_owned();
        let log = self.agent.json(["log", "--session", &session]);
        let id = |prompt: &Value| prompt["id"].as_str().expect("an id").to_owned();
        (session, log["prompts"].as_array().expect("prompts").iter().map(id).collect())
    }
}

fn fake_agent() -> PathBuf {
    let tests = std::env::current_exe().expect("it runs");
    let program = tests.parent().and_then(Path::parent).expect("it is in `deps`").join("examples/fake_agent");
    assert!(program.is_file(), "it is an example: `cargo build -p retake --example fake_agent`");
    program
}

/// Two turns, which write `one` and `two` into a file.
fn two_turns(stage: &Stage) -> (Editor, String) {
    let mut editor = stage.editor();
    let session = editor.begin(&stage.agent);
    editor.turn(&session, "write a.txt one");
    editor.turn(&session, "write a.txt two");
    assert_eq!(stage.file(), "two\n");
    (editor, session)
}

#[test]
fn another_agent_is_given_rewind_by_putting_retake_before_it() {
    for (habits, strategy) in [("", "transcript"), ("air", "fork_at_message")] {
        let stage = Stage::new(habits);
        let (mut editor, session) = two_turns(&stage);
        let points = editor.call("_session/rewind_points", json!({ "sessionId": session }));
        let second = &points["points"][0]["messageId"];
        let rewound = editor.call("_session/rewind", json!({ "sessionId": session, "beforeMessageId": second }));
        assert_eq!(rewound["_meta"]["retake"]["strategy"], strategy);
        assert_eq!(stage.file(), "one\n");
        editor.turn(&session, "say three");
        let saw = stage.model_saw();
        assert!(saw.contains("a.txt one") && saw.ends_with("say three") && !saw.contains("a.txt two"), "{saw}");
        let (code, stderr) = editor.leave();
        assert_eq!((code, stderr.as_str()), (Some(0), ""));
    }
}

#[test]
fn other_commands_see_a_proxied_session_and_the_live_proxy_does_what_they_say() {
    let stage = Stage::new("");
    let (mut editor, session) = two_turns(&stage);
    let (logged, prompts) = stage.logged();
    assert_eq!((prompts.len(), &stage.agent.json(["sessions"])["sessions"][0]["live"]), (2, &json!(true)));
    let diff = stage.agent.retake(["diff", "--turn", &prompts[0]]).succeeds();
    assert!(String::from_utf8_lossy(&diff.stdout).contains("-one\n+two\n"), "{diff:?}");
    stage.agent.retake(["undo", "--yes"]).fails(3).says("--session");

    let done = stage.agent.json(["rewind", &prompts[0], "--both", "--yes"]);
    assert_eq!((&done["applied"], &done["conversation_moved"]), (&json!(true), &json!(true)));
    assert_eq!(stage.file(), "one\n");
    let is_cut = |message: Value| message["method"] == "_session/history_truncated";
    assert!(std::iter::repeat_with(|| editor.next()).take(100).any(is_cut), "the editor is told");
    editor.turn(&session, "say three");
    let saw = stage.model_saw();
    assert!(saw.contains("a.txt one") && !saw.contains("a.txt two"), "{saw}");

    // The turn that was said since, then the rewind.
    stage.agent.json(["undo", "--session", &logged, "--yes"]);
    stage.agent.json(["undo", "--session", &logged, "--yes"]);
    assert_eq!(stage.file(), "two\n");
    editor.turn(&session, "say four");
    let saw = stage.model_saw();
    assert!(saw.contains("a.txt two") && !saw.contains("say three"), "{saw}");

    let refused = stage.agent.retake(["run", "--session", &logged, "-p", "hi"]);
    refused.fails(1).says("this session belongs to another agent that an editor talks to");
    assert_eq!(editor.leave().0, Some(0));
    assert_eq!(stage.agent.json(["sessions"])["sessions"][0]["live"], false);
}

#[test]
fn what_is_taken_back_while_no_proxy_runs_is_gone_when_the_session_is_loaded() {
    let stage = Stage::new("air");
    let (editor, session) = two_turns(&stage);
    assert_eq!(editor.leave().0, Some(0));
    let (logged, _) = stage.logged();
    stage.agent.json(["undo", "--session", &logged, "--yes"]);
    assert_eq!(stage.file(), "one\n");
    let mut editor = stage.editor();
    let cwd = stage.agent.sandbox.path("ws");
    let id = editor.send("session/load", json!({ "sessionId": session, "cwd": cwd, "mcpServers": [] }));
    let told: Vec<Value> = std::iter::repeat_with(|| editor.next()).take_while(|message| message["id"] != id).collect();
    let text = json!(told).to_string();
    assert!(text.contains("a.txt one") && !text.contains("a.txt two"), "{text}");
    editor.turn(&session, "say three");
    assert!(!stage.model_saw().contains("a.txt two"));
    assert_eq!(editor.leave().0, Some(0));
}

#[test]
fn an_agent_that_dies_gives_its_exit_code_and_whoever_waits_is_told() {
    let stage = Stage::new("");
    let mut editor = stage.editor();
    let session = editor.begin(&stage.agent);
    let prompt = json!([{ "type": "text", "text": "write a.txt one\ncrash" }]);
    let id = editor.send("session/prompt", json!({ "sessionId": session, "prompt": prompt }));
    let answer = editor.answer(id);
    assert_eq!(answer["error"]["data"]["reason"], "agent_exited", "{answer}");
    let (code, stderr) = editor.wait();
    assert_eq!(code, Some(7), "{stderr}");
    // What it did is known all the same.
    let (logged, _) = stage.logged();
    stage.agent.json(["undo", "--session", &logged, "--yes"]);
    assert!(!stage.agent.sandbox.ws("a.txt").exists());
}

#[test]
fn a_program_that_there_is_not_is_named() {
    let agent = Agent::new();
    let run = Run::of(agent.command().args(["acp", "--", "no-such-agent"]));
    run.fails(1).says("cannot start the agent `no-such-agent`");
}

#[test]
fn a_session_is_named_as_the_editor_names_it() {
    let stage = Stage::new("");
    let (editor, session) = two_turns(&stage);
    let listed = stage.agent.json(["sessions"])["sessions"][0].clone();
    assert_eq!(listed["editor_id"], json!(session), "{listed}");
    let text = stage.agent.retake(["sessions"]).text();
    assert!(text.contains(&format!("in the editor: {session}")), "{text}");
    let log = stage.agent.json(["log", "--session", &session]);
    assert_eq!((&log["session"], log["prompts"].as_array().map(Vec::len)), (&listed["id"], Some(2)));
    stage.agent.json(["undo", "--session", &session, "--yes"]);
    assert_eq!(stage.file(), "one\n");
    stage.agent.json(["redo", "--session", &session, "--yes"]);
    let prompt = log["prompts"][0]["id"].as_str().expect("an id").to_owned();
    stage.agent.json(["rewind", &prompt, "--session", &session, "--both", "--yes"]);
    assert_eq!(stage.file(), "one\n");
    assert_eq!(editor.leave().0, Some(0));

    for command in ["context", "ops", "log"] {
        stage.agent.retake([command, "--session", &session]).succeeds();
    }
    stage.agent.retake(["diff", "--by", &session]).succeeds();
    // A beginning will do, as with every other id, and one that nothing has is said to be unknown.
    let beginning = &session[..session.len() - 1];
    assert_eq!(stage.agent.json(["log", "--session", beginning])["session"], listed["id"]);
    stage.agent.retake(["log", "--session", "no-such-session"]).fails(1).says("no-such-session");
    stage.agent.retake(["sessions", "rm", &session, "--yes"]).succeeds();
    stage.agent.retake(["log", "--session", &session]).fails(1).says(&session);
}

#[test]
fn prompts_that_were_taken_back_are_in_no_list_but_that_of_all() {
    let stage = Stage::new("");
    let (editor, session) = two_turns(&stage);
    assert_eq!(editor.leave().0, Some(0));
    let (_, prompts) = stage.logged();
    let log = || stage.agent.retake(["log"]).text();
    assert!(log().contains("> write a.txt two"), "{}", log());
    stage.agent.json(["rewind", &prompts[0], "--both", "--yes"]);
    assert!(log().contains("> write a.txt one") && !log().contains("a.txt two"), "{}", log());
    assert!(!stage.agent.json(["log"]).to_string().contains("a.txt two"));
    let all = stage.agent.retake(["log", "--all"]).text();
    let left = all.lines().find(|line| line.contains("> write a.txt two")).expect("it is there");
    assert!(left.ends_with("left behind"), "{all}");
    let kept = all.lines().find(|line| line.contains("> write a.txt one")).expect("it is there");
    assert!(!kept.contains("left behind"), "{all}");
    // What somebody named is there to be gone back to by that name.
    stage.agent.retake(["label", &prompts[0], "second"]).succeeds();
    assert!(log().lines().any(|line| line.contains("second") && line.ends_with("left behind")), "{}", log());
    stage.agent.retake(["label", &prompts[0], "--remove"]).succeeds();
    let mut editor = stage.editor();
    let cwd = stage.agent.sandbox.path("ws");
    editor.call("session/load", json!({ "sessionId": session, "cwd": cwd, "mcpServers": [] }));
    assert_eq!(editor.leave().0, Some(0));
}

#[test]
fn what_is_beside_an_agent_that_is_named_by_its_path_is_found() {
    let agent = Agent::new();
    let bin = agent.sandbox.path("bin");
    std::fs::create_dir(&bin).expect("there is room");
    for (name, text) in [("script", "#!/usr/bin/env interpreter\n"), ("interpreter", "#!/bin/sh\nexit 23\n")] {
        std::fs::write(bin.join(name), text).expect("there is room");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(bin.join(name), mode).expect("it is ours");
    }
    let mut command = agent.command();
    command.env("PATH", "/usr/bin:/bin").args(["acp", "--"]).arg(bin.join("script"));
    // It is not the client that leaves.
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().expect("it starts");
    let stdin = child.stdin.take();
    assert_eq!(child.wait().expect("it ends").code(), Some(23));
    drop(stdin);
}

#[test]
fn a_save_after_the_plan_was_shown_refuses_the_rewind_of_another_agent() {
    let stage = Stage::new("");
    let mut editor = stage.editor_with(saving(&stage.agent.sandbox, stage.agent.command()));
    let session = editor.begin(&stage.agent);
    editor.turn(&session, "write a.txt one");
    editor.turn(&session, "write a.txt two");
    refuses_a_stale_plan(&mut editor, &session);
    assert_eq!(stage.file(), "mine\n");
}
