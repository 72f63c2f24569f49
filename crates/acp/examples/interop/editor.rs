//! An editor as simple as one can be: it asks, waits for the answer, and allows everything.

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

pub struct Editor {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    next: u64,
    project: PathBuf,
    /// What was told and not looked at yet.
    told: Vec<Value>,
    /// What the agent calls itself.
    pub agent: Value,
}

impl Editor {
    pub fn start(retake: &Path, command: &[OsString], home: &Path, project: &Path, url: &str) -> Self {
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
        let mut editor =
            Self { child, to, from, next: 0, project: project.to_owned(), told: Vec::new(), agent: json!(null) };
        let capabilities = json!({ "_meta": { "retake": {} } });
        let result = editor.ask("initialize", &json!({ "protocolVersion": 1, "clientCapabilities": capabilities }));
        editor.agent = result["agentInfo"].clone();
        editor
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.to, "{message}").unwrap();
    }

    /// Asks, allows whatever the agent wants meanwhile, and gives the answer.
    pub fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        let id = json!(self.next);
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let message = self.from.recv_timeout(LIMIT).unwrap_or_else(|_| panic!("`{method}` is not answered"));
            match (message.get("method"), message.get("id")) {
                (None, Some(answered)) if *answered == id => {
                    assert!(message.get("error").is_none(), "`{method}` is refused: {message}");
                    return message["result"].clone();
                }
                (Some(method), Some(asked)) if method == "session/request_permission" => {
                    let options = message["params"]["options"].as_array().cloned().unwrap_or_default();
                    let is_yes =
                        |option: &&Value| option["kind"].as_str().is_some_and(|kind| kind.starts_with("allow"));
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
    }

    pub fn new_session(&mut self) -> String {
        let params = json!({ "cwd": self.project, "mcpServers": [] });
        self.ask("session/new", &params)["sessionId"].as_str().unwrap().to_owned()
    }

    pub fn prompt(&mut self, session: &str, text: &str) {
        let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] });
        self.ask("session/prompt", &params);
    }

    /// What is shown when the session is loaded.
    pub fn load(&mut self, session: &str) -> String {
        self.told.clear();
        let params = json!({ "sessionId": session, "cwd": self.project, "mcpServers": [] });
        self.ask("session/load", &params);
        Value::Array(std::mem::take(&mut self.told)).to_string()
    }

    pub fn hang_up(self) {
        let Self { mut child, to, .. } = self;
        drop(to);
        child.wait().unwrap();
    }
}
