//! An editor as simple as one can be: it asks, waits for the answer, and allows everything. It speaks either version of the protocol; in
//! the second one the end of a turn is not an answer, but told.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use serde_json::{Value, json};

use super::configure;

/// How long anything may take.
const LIMIT: Duration = Duration::from_secs(120);

/// A version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    V1,
    V2,
}

/// How the agent is had: what is run, and where.
pub struct Setting<'a> {
    pub retake: &'a Path,
    pub command: &'a [OsString],
    pub version: Version,
    pub home: &'a Path,
    pub project: &'a Path,
    pub url: &'a str,
}

pub struct Editor {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    next: u64,
    version: Version,
    project: PathBuf,
    /// What was told and not looked at yet.
    told: Vec<Value>,
    /// What the agent calls itself.
    pub agent: Value,
}

impl Editor {
    pub fn start(setting: &Setting<'_>) -> Self {
        let Setting { retake, command, version, home, project, url } = *setting;
        let mut child = Command::new(retake)
            .args(["acp", "--"])
            .args(command)
            .current_dir(project)
            // What the user of this machine has set is not to be found by an agent.
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .envs(configure::variables(home, url))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::options().create(true).append(true).open(home.join("stderr")).unwrap())
            .spawn()
            .unwrap();
        let (to, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (tell, from) = mpsc::channel();
        let mut log = std::fs::File::options().create(true).append(true).open(home.join("wire")).unwrap();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                let Ok(line) = line else { return };
                writeln!(log, "{line}").unwrap();
                let value = serde_json::from_str(&line).expect("stdout carries messages and nothing else");
                if tell.send(value).is_err() {
                    return;
                }
            }
        });
        let (project, told, agent) = (project.to_owned(), Vec::new(), json!(null));
        let mut editor = Self { child, to, from, next: 0, version, project, told, agent };
        let capabilities = json!({ "_meta": { "retake": {} } });
        let info = json!({ "name": "interop", "version": "0" });
        let (params, name) = match version {
            Version::V1 => (json!({ "protocolVersion": 1, "clientCapabilities": capabilities }), "agentInfo"),
            Version::V2 => (json!({ "protocolVersion": 2, "info": info, "capabilities": capabilities }), "info"),
        };
        let result = editor.ask("initialize", &params);
        assert_eq!(result["protocolVersion"], params["protocolVersion"], "the agent speaks another version: {result}");
        editor.agent = result[name].clone();
        editor
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.to, "{message}").unwrap();
    }

    /// Asks, allows whatever the agent wants meanwhile, and gives the answer.
    pub fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.try_to(method, params).unwrap_or_else(|error| panic!("`{method}` is refused: {error}"))
    }

    /// Asks for a change. Where it cannot be told whether a file is the agent's, a person would be asked: it is, and its path is kept.
    pub fn change(&mut self, method: &str, params: &Value, asked: &mut Vec<String>) -> Value {
        let error = match self.try_to(method, params) {
            Ok(answer) => return answer,
            Err(error) => error,
        };
        let conflicts =
            error["data"]["conflicts"].as_array().unwrap_or_else(|| panic!("`{method}` is refused: {error}"));
        for conflict in conflicts {
            assert_eq!(conflict["reason"], "contested", "nobody else is at work: {error}");
            asked.extend(conflict["path"].as_str().map(str::to_owned));
        }
        let mut params = params.clone();
        params["onConflict"] = "overwrite".into();
        self.ask(method, &params)
    }

    fn try_to(&mut self, method: &str, params: &Value) -> Result<Value, Value> {
        self.next += 1;
        let id = json!(self.next);
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let message = self.hear(method);
            if message.get("method").is_none() && message["id"] == id {
                return match message.get("error") {
                    Some(error) => Err(error.clone()),
                    None => Ok(message["result"].clone()),
                };
            }
            self.take(message);
        }
    }

    fn hear(&mut self, what_for: &str) -> Value {
        self.from.recv_timeout(LIMIT).unwrap_or_else(|_| panic!("`{what_for}` is not answered"))
    }

    /// Allows what the agent wants, and keeps what it tells.
    fn take(&mut self, message: Value) {
        match (message["method"].as_str(), message.get("id")) {
            (Some("session/request_permission"), Some(asked)) => {
                let options = message["params"]["options"].as_array().cloned().unwrap_or_default();
                let is_yes = |option: &&Value| option["kind"].as_str().is_some_and(|kind| kind.starts_with("allow"));
                let option = options.iter().find(is_yes).expect("one can allow it")["optionId"].clone();
                let outcome = json!({ "outcome": { "outcome": "selected", "optionId": option } });
                self.send(&json!({ "jsonrpc": "2.0", "id": asked, "result": outcome }));
            }
            (Some(_), Some(asked)) => {
                let error = json!({ "code": -32601, "message": "not here" });
                self.send(&json!({ "jsonrpc": "2.0", "id": asked, "error": error }));
            }
            _ => self.told.push(message),
        }
    }

    pub fn new_session(&mut self) -> String {
        let params = json!({ "cwd": self.project, "mcpServers": [] });
        self.ask("session/new", &params)["sessionId"].as_str().unwrap().to_owned()
    }

    /// Says something, and waits for the end of the turn.
    pub fn prompt(&mut self, session: &str, text: &str) {
        self.told.clear();
        let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] });
        self.ask("session/prompt", &params);
        let is_over = |message: &Value| {
            let update = &message["params"]["update"];
            message["params"]["sessionId"] == session
                && update["sessionUpdate"] == "state_update"
                && update["state"] == "idle"
        };
        while self.version == Version::V2 && !self.told.iter().any(is_over) {
            let message = self.hear("session/prompt");
            self.take(message);
        }
    }

    /// What is shown when the session is loaded.
    pub fn load(&mut self, session: &str) -> String {
        self.told.clear();
        let mut params = json!({ "sessionId": session, "cwd": self.project, "mcpServers": [] });
        let method = match self.version {
            Version::V1 => "session/load",
            Version::V2 => {
                params["replayFrom"] = json!({ "type": "start" });
                "session/resume"
            }
        };
        self.ask(method, &params);
        Value::Array(std::mem::take(&mut self.told)).to_string()
    }

    pub fn hang_up(self) {
        let Self { mut child, to, .. } = self;
        drop(to);
        child.wait().unwrap();
    }
}
