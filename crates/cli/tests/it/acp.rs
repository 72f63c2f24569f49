//! `retake acp` as a process: what is on its pipes, what other commands see, and real clients.

mod clients;
mod killed;
mod proxied;
mod setup;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::agent::Agent;
use crate::sandbox::Sandbox;
use crate::stale_plan::saving;

/// How long a test waits for what has to come.
const PATIENCE: Duration = Duration::from_secs(30);

/// An editor that has started the agent.
struct Editor {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    next: u64,
}

impl Editor {
    fn start(mut command: Command) -> Self {
        command.arg("acp");
        let mut editor = Self::run(command);
        editor.greet();
        editor
    }

    /// An editor that has said nothing yet.
    fn run(mut command: Command) -> Self {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = child.spawn().expect("it starts");
        let (send, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().expect("it has a stdout"));
        std::thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
        let stdin = child.stdin.take();
        Self { child, stdin, lines, next: 0 }
    }

    fn greet(&mut self) {
        let capabilities = json!({ "_meta": { "retake": {} } });
        self.call("initialize", json!({ "protocolVersion": 1, "clientCapabilities": capabilities }));
    }

    #[allow(clippy::needless_pass_by_value, reason = "a literal reads better without a reference")]
    fn send(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        let message = json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params });
        writeln!(self.stdin.as_mut().expect("it is connected"), "{message}").expect("the agent reads");
        self.next
    }

    fn next(&self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("the agent says something");
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("this is no message: {line}"))
    }

    /// Waits for an answer; whatever is asked meanwhile is allowed.
    fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.next();
            if message["method"] == "session/request_permission" {
                let outcome = json!({ "outcome": { "outcome": "selected", "optionId": "allow" } });
                let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": outcome });
                writeln!(self.stdin.as_mut().expect("it is connected"), "{answer}").expect("the agent reads");
            } else if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        let answer = self.answer(id);
        assert!(answer.get("error").is_none(), "{method}: {answer:#}");
        answer["result"].clone()
    }

    fn begin(&mut self, agent: &Agent) -> String {
        let cwd = agent.sandbox.path("ws");
        let answer = self.call("session/new", json!({ "cwd": cwd, "mcpServers": [] }));
        answer["sessionId"].as_str().expect("it has an id").to_owned()
    }

    fn turn(&mut self, session: &str, text: &str) -> Value {
        let prompt = json!([{ "type": "text", "text": text }]);
        self.call("session/prompt", json!({ "sessionId": session, "prompt": prompt }))
    }

    /// Ends the connection: the exit code, and what was said on stderr.
    fn leave(mut self) -> (Option<i32>, String) {
        drop(self.stdin.take());
        self.wait()
    }

    fn wait(self) -> (Option<i32>, String) {
        let output = self.child.wait_with_output().expect("it ends");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

#[test]
fn what_an_editor_does_is_seen_by_the_other_commands_and_they_act_on_it() {
    let agent = Agent::new();
    let mut editor = Editor::start(agent.command());
    let session = editor.begin(&agent);
    agent.model.calls("write_file", json!({ "path": "a.txt", "content": "1" }));
    agent.model.says("written");
    editor.turn(&session, "write quicksilver");
    let listed = agent.json(["sessions"]);
    assert_eq!((&listed["sessions"][0]["id"], &listed["sessions"][0]["live"]), (&json!(session), &json!(true)));
    let undone = agent.json(["undo", "--session", &session, "--yes"]);
    assert_eq!(undone["applied"], true);
    assert!(!agent.sandbox.ws("a.txt").exists());
    agent.model.says("again");
    editor.turn(&session, "once more");
    let sent = agent.model.last_request().text;
    assert!(!sent.contains("quicksilver") && sent.contains("once more"), "{sent}");
    let (code, stderr) = editor.leave();
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert_eq!(agent.json(["sessions"])["sessions"][0]["live"], false);
}

#[test]
fn a_session_that_another_process_has_open_is_joined() {
    let agent = Agent::new();
    let mut first = Editor::start(agent.command());
    let session = first.begin(&agent);
    agent.model.says("hello");
    first.turn(&session, "hi");
    let mut second = Editor::start(agent.command());
    let cwd = agent.sandbox.path("ws");
    let load = json!({ "sessionId": session, "cwd": cwd, "mcpServers": [] });
    second.call("session/load", load.clone());
    agent.model.says("from the second");
    second.turn(&session, "over there");
    // The one that serves it sees what the other one said.
    let seen =
        std::iter::repeat_with(|| first.next()).take(100).any(|message| message.to_string().contains("over there"));
    assert!(seen);
    // A rewind by one of them is told both, before the answer.
    let points = second.call("_session/rewind_points", json!({ "sessionId": session }));
    let target = &points["points"][0]["messageId"];
    let id = second.send("_session/rewind", json!({ "sessionId": session, "beforeMessageId": target }));
    let told: Vec<Value> = std::iter::repeat_with(|| second.next()).take_while(|message| message["id"] != id).collect();
    let is_cut = |message: &Value| message["method"] == "_session/history_truncated";
    assert!(told.iter().any(is_cut), "{told:?}");
    assert!(std::iter::repeat_with(|| first.next()).take(100).any(|message| is_cut(&message)));
    assert_eq!(second.leave().0, Some(0));
    assert_eq!(first.leave().0, Some(0));
    let mut third = Editor::start(agent.command());
    third.call("session/load", load);
    assert_eq!(third.leave().0, Some(0));
}

#[test]
fn a_signal_in_the_middle_of_a_turn_ends_it_in_good_order() {
    let agent = Agent::new();
    let mut editor = Editor::start(agent.command());
    let session = editor.begin(&agent);
    let gate = agent.model.says_slowly(["Half", " of it"]);
    let prompt = json!([{ "type": "text", "text": "tell" }]);
    editor.send("session/prompt", json!({ "sessionId": session, "prompt": prompt }));
    gate.wait_until_reached();
    let mut said = String::new();
    while said != "Half" {
        said.push_str(editor.next()["params"]["update"]["content"]["text"].as_str().unwrap_or_default());
    }
    let id = Pid::from_child(&editor.child);
    kill_process(id, Signal::TERM).expect("it can be signalled");
    assert_eq!(editor.wait().0, Some(0));
    let standing = agent.json(["resume", "--status"]);
    assert_eq!(standing["text"], "Half");
}

#[test]
fn without_a_model_a_session_is_refused_with_what_to_do() {
    let agent = Agent::new();
    let mut command = agent.command();
    command.env_remove("RETAKE_MODEL").env_remove("RETAKE_BASE_URL");
    let mut editor = Editor::start(command);
    let cwd = agent.sandbox.path("ws");
    let id = editor.send("session/new", json!({ "cwd": cwd, "mcpServers": [] }));
    let answer = editor.answer(id);
    assert!(answer["error"]["message"].as_str().expect("a message").contains("no model is set"), "{answer}");
    assert_eq!(editor.leave().0, Some(0));
}

#[test]
fn an_agent_that_ends_before_it_says_anything_is_told_of() {
    let agent = Agent::new();
    let mut command = agent.command();
    command.args(["acp", "--", "sh", "-c", "exit 9"]).stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    // It is not the client that leaves.
    let stdin = child.stdin.take();
    let output = child.wait_with_output().expect("it ends");
    drop(stdin);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(9));
    assert!(stderr.contains("the agent `sh` has ended (exit status: 9) before it answered"), "{stderr}");
}

#[test]
fn closing_a_session_leaves_it_to_another_editor_that_has_it_open() {
    let agent = Agent::new();
    let mut first = Editor::start(agent.command());
    let session = first.begin(&agent);
    agent.model.says("hello");
    first.turn(&session, "hi");
    let mut second = Editor::start(agent.command());
    let load = json!({ "sessionId": session, "cwd": agent.sandbox.path("ws"), "mcpServers": [] });
    second.call("session/load", load.clone());
    let gate = agent.model.says_slowly(["Slowly", " does it"]);
    let prompt = json!([{ "type": "text", "text": "tell" }]);
    let telling = second.send("session/prompt", json!({ "sessionId": session, "prompt": prompt }));
    gate.wait_until_reached();
    // It is closed for the one that opened it, and for nobody else.
    first.call("session/close", json!({ "sessionId": session }));
    let id = first.send("_session/rewind_points", json!({ "sessionId": session }));
    assert_eq!(first.answer(id)["error"]["data"]["reason"], "unknown_session_id");
    gate.open();
    let told = second.answer(telling);
    assert_eq!(told["result"]["stopReason"], "end_turn", "{told}");
    // It can come back to it.
    first.call("session/load", load);
    agent.model.says("both are here");
    first.turn(&session, "again");
    first.call("session/close", json!({ "sessionId": session }));
    assert_eq!(first.leave(), (Some(0), String::new()));
    // The process that had it is gone: whoever goes on has it.
    agent.model.says("alone");
    assert_eq!(second.turn(&session, "once more")["stopReason"], "end_turn");
    let sent = agent.model.last_request().text;
    assert!(sent.contains("Slowly does it") && sent.contains("both are here"), "{sent}");
    assert_eq!(agent.json(["sessions"])["sessions"][0]["live"], true);
    assert_eq!(second.leave(), (Some(0), String::new()));
    assert_eq!(agent.json(["log", "--session", &session])["prompts"].as_array().map(Vec::len), Some(4));
    assert_eq!(agent.json(["sessions"])["sessions"][0]["live"], false);
}

#[test]
fn whoever_comes_back_to_a_session_that_ended_elsewhere_is_told_what_was_missed() {
    let agent = Agent::new();
    let mut first = Editor::start(agent.command());
    let session = first.begin(&agent);
    for text in ["one", "two"] {
        agent.model.says(text);
        first.turn(&session, text);
    }
    let mut second = Editor::start(agent.command());
    second.call("session/load", json!({ "sessionId": session, "cwd": agent.sandbox.path("ws"), "mcpServers": [] }));
    assert_eq!(first.leave(), (Some(0), String::new()));
    // Nobody has it open, and it is taken back by a command.
    agent.json(["undo", "--session", &session, "--yes"]);
    agent.model.says("three");
    let prompt = json!([{ "type": "text", "text": "three" }]);
    let id = second.send("session/prompt", json!({ "sessionId": session, "prompt": prompt }));
    let told: Vec<Value> = std::iter::repeat_with(|| second.next()).take_while(|message| message["id"] != id).collect();
    assert!(told.iter().any(|message| message["method"] == "_session/history_truncated"), "{told:?}");
    assert!(!agent.model.last_request().text.contains("two"));
    assert_eq!(second.leave().0, Some(0));
}

#[test]
fn what_an_agent_writes_that_is_no_message_is_shown_without_commands_to_a_terminal() {
    let s = Sandbox::new();
    let script = r"printf '\033]0;title\007 \302\233 2J \342\200\256 reversed\n'; cat > /dev/null";
    let mut command = s.retake_command();
    command.args(["acp", "--", "sh", "-c", script]).stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut proxy = command.spawn().expect("the proxy starts");
    // The editor stays until the line is there: what an agent still writes to an editor that has gone is read by nobody.
    let mut lines = BufReader::new(proxy.stderr.take().expect("it is piped")).lines().map_while(Result::ok);
    let shown = lines.find(|line| line.contains("what is no message")).expect("the line is shown");
    assert!(shown.ends_with(r"\u{1b}]0;title\u{7} \u{9b} 2J \u{202e} reversed"), "{shown:?}");
    drop(proxy.stdin.take());
    proxy.wait().expect("it ends");
}

#[test]
fn a_save_after_the_plan_was_shown_refuses_the_rewind_of_the_editor() {
    let agent = Agent::new();
    agent.sandbox.write("a.txt", "one\n");
    let mut editor = Editor::start(saving(&agent.sandbox, agent.command()));
    let session = editor.begin(&agent);
    agent.model.calls("bash", json!({ "command": "echo two > a.txt" }));
    agent.model.says("written");
    editor.turn(&session, "write it");
    refuses_a_stale_plan(&mut editor, &session);
    assert_eq!(agent.sandbox.read("a.txt"), "mine\n");
}

/// Asks for the plan of going back to before the last prompt, and for that plan; a person saves in between.
fn refuses_a_stale_plan(editor: &mut Editor, session: &str) {
    let points = editor.call("_session/rewind_points", json!({ "sessionId": session }));
    let last = &points["points"][0]["messageId"];
    let mut params =
        json!({ "sessionId": session, "beforeMessageId": last, "onConflict": "overwrite", "dryRun": true });
    let plan = editor.call("_session/rewind", params.clone());
    assert_eq!(plan["means"], "session", "{plan:#}");
    params["expectedPlan"] = plan["fingerprint"].clone();
    params["dryRun"] = false.into();
    let id = editor.send("_session/rewind", params);
    let answer = editor.answer(id);
    assert_eq!(answer["error"]["data"]["reason"], "stale_plan", "{answer:#}");
}
