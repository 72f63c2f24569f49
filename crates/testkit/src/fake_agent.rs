//! An agent that speaks the Agent Client Protocol and has every vice that one asks it to have, for a proxy to be put around it.
//!
//! A prompt is its script, a command a line: `write FILE TEXT`, `shell COMMAND`, `say TEXT`, `think TEXT`, `ask TEXT`, `sleep MS`,
//! `crash`, `garbage`, `hang`, `edit FILE` (a tool that is announced and never ends), `read FILE` (through the client), `raw LINE`,
//! `answer JSON`, `huge BYTES` (an answer of that size), `flood COUNT`, `orphan` (it goes, what it started stays), `put FILE TEXT` (written
//! without a word), `wait NAME` (until that file is beside its sessions), `call JSON` and `update JSON` (what is said of a tool), `permit CALL`
//! (asks whether it may run; if not, this is the end of the script), `fail` (the prompt is refused), `tools` (says which MCP servers the
//! session has); anything else is answered. In a raw line `$S` is the session and `$ODD` is [`odd`]. Its sessions are files, so that they outlive it; what a model would have been sent at
//! each prompt is in `model.jsonl`, and every line that came or went in `in` and `out`.

mod misbehaviour;
mod sessions;
mod tools;
mod turn;

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, mpsc};

use serde_json::{Value, json};

use sessions::Sessions;
pub use sessions::Turn;
use tools::Tools;

/// The environment variable with a directory, and after it, each after a comma, the vices and skills.
pub const VARIABLE: &str = "RETAKE_FAKE_AGENT";

/// Nesting that is deeper than our values can be.
const DEEP: usize = 200;

/// The agent.
struct FakeAgent {
    habits: Vec<String>,
    sessions: Sessions,
    tools: Tools,
    out: Arc<Mutex<Out>>,
    incoming: mpsc::Receiver<Value>,
    /// Requests that came while a turn ran.
    waiting: Vec<Value>,
    version: u64,
    next_request: u64,
    /// What it does only once and has done.
    spent: HashSet<String>,
}

/// Where it writes.
struct Out {
    log: File,
}

impl Out {
    fn line(&mut self, line: &str) {
        let mut bytes = line.as_bytes().to_vec();
        bytes.push(b'\n');
        self.raw(&bytes);
    }

    fn raw(&mut self, bytes: &[u8]) {
        self.log.write_all(bytes).expect("the log is writable");
        let mut stdout = std::io::stdout();
        // Whoever reads may be gone.
        stdout.write_all(bytes).and_then(|()| stdout.flush()).ok();
    }
}

/// Runs the agent until its stdin ends.
pub fn main() {
    let setting = std::env::var(VARIABLE).expect("the variable says where and how");
    let mut parts = setting.split(',');
    let directory = PathBuf::from(parts.next().expect("there is a directory"));
    let habits: Vec<String> = parts.map(str::to_owned).collect();
    let append = |name: &str| {
        let file = OpenOptions::new().create(true).append(true).open(directory.join(name));
        file.expect("the directory is writable")
    };
    let (tell, incoming) = mpsc::channel();
    let mut log = append("in");
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            log.write_all(format!("{line}\n").as_bytes()).expect("the log is writable");
            let Ok(value) = serde_json::from_str(&readable(&line)) else { continue };
            if tell.send(value).is_err() {
                return;
            }
        }
    });
    let out = Arc::new(Mutex::new(Out { log: append("out") }));
    let sessions = Sessions::new(&directory, habits.iter().any(|habit| habit == "same_ids"));
    let (waiting, spent) = (Vec::new(), HashSet::new());
    let tools = Tools::default();
    let mut agent = FakeAgent { habits, sessions, tools, out, incoming, waiting, version: 1, next_request: 0, spent };
    agent.serve();
}

impl FakeAgent {
    fn has(&self, habit: &str) -> bool {
        self.habits.iter().any(|one| one == habit)
    }

    fn serve(&mut self) {
        loop {
            let message = match self.waiting.is_empty() {
                false => self.waiting.remove(0),
                true => match self.incoming.recv() {
                    Ok(message) => message,
                    Err(_) => return,
                },
            };
            self.take(&message);
        }
    }

    fn take(&mut self, message: &Value) {
        let (id, params) = (&message["id"], &message["params"]);
        if self.has("slow") {
            std::thread::sleep(std::time::Duration::from_millis(150));
        }
        if self.has("garbage") {
            self.raw(b"this is no JSON\n\n{\"half\":\n");
        }
        if self.stumbles(message) {
            return;
        }
        match message["method"].as_str() {
            Some("initialize") => self.initialize(id, params),
            Some("session/new") if self.has("one_session") && !self.sessions.all().is_empty() => {
                self.refuse(id, -32603, "one session is enough");
            }
            Some("session/new") => {
                if self.has("gated_new") && !self.sessions.all().is_empty() {
                    self.wait_for_file("new");
                }
                let is_first = self.sessions.all().is_empty();
                let session = self.sessions.create(&[]);
                self.tools.open(&session, &params["mcpServers"]);
                if self.has("early_commands") {
                    self.tell_commands(&session);
                    return self.answer(id, json!({ "sessionId": session }));
                }
                if !is_first {
                    self.asks_first("asks_in_new", &session);
                }
                self.answer(id, json!({ "sessionId": session }));
                self.tell_commands(&session);
            }
            Some("session/prompt") => self.prompt(id, params),
            Some("session/load" | "session/resume") => self.load(id, params),
            Some("session/fork") if self.has("mute") => {}
            Some("session/close") => {
                self.tools.close(params["sessionId"].as_str().unwrap_or_default());
                self.answer(id, json!({}));
            }
            Some("session/fork") if self.has("fork") || self.has("air") => self.fork(id, params),
            Some("_rewind/to") if self.has("rewind_to") => {
                let message = params["messageId"].as_str().unwrap_or_default();
                self.cut(id, params, |turns| turns.iter().position(|turn| turn.user_id == message));
            }
            Some("qwen/control/session/rewind") if self.has("qwen") => {
                let index = params["targetTurnIndex"].as_u64().unwrap_or(u64::MAX) as usize;
                self.cut(id, params, |turns| (index < turns.len()).then_some(index));
            }
            Some("session/list") => {
                let all: Vec<Value> =
                    self.sessions.all().into_iter().map(|id| json!({ "sessionId": id, "cwd": "/" })).collect();
                self.answer(id, json!({ "sessions": all }));
            }
            Some("session/delete") if self.has("delete") => {
                match self.sessions.remove(params["sessionId"].as_str().unwrap_or_default()) {
                    true => self.answer(id, json!({})),
                    false => self.refuse(id, -32002, "no such session"),
                }
            }
            Some("session/set_mode") if self.has("undefined") => {
                self.raw(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id}}}\n").as_bytes())
            }
            Some("session/set_mode") => self.answer(id, json!({})),
            Some("_echo") => self.answer(id, params.clone()),
            Some(_) if id.is_null() => {}
            Some(method) => self.take_unknown(id, method),
            None => {}
        }
    }

    fn tell_commands(&self, session: &str) {
        let mut command = json!({ "name": "own", "description": "its own" });
        if self.version == 2 {
            command["type"] = "command".into();
        }
        let mut all = vec![command.clone()];
        if self.has("own_undo") {
            command["name"] = "undo".into();
            all.push(command);
        }
        self.update(session, json!({ "sessionUpdate": "available_commands_update", "availableCommands": all }));
    }

    fn initialize(&mut self, id: &Value, params: &Value) {
        let wanted = params["protocolVersion"].as_u64().unwrap_or(1);
        self.version = if wanted >= 2 && !self.has("v1") { 2 } else { 1 };
        let mut skills = json!({});
        if self.has("fork") || self.has("air") {
            skills["fork"] = json!({});
        }
        if self.has("close") && self.version == 1 {
            skills["close"] = json!({});
        }
        let mut result = match self.version {
            1 if self.has("bare") => json!({ "protocolVersion": 1, "agentCapabilities": {} }),
            1 if self.has("null") => json!({ "protocolVersion": 1, "agentCapabilities": { "_meta": null } }),
            1 if self.has("nothing") => json!({ "protocolVersion": 1 }),
            1 => json!({
                "protocolVersion": 1,
                "agentCapabilities": { "loadSession": !self.has("no_load"), "sessionCapabilities": skills },
            }),
            _ => json!({
                "protocolVersion": 2,
                "info": { "name": "fake", "version": "0" },
                "capabilities": { "session": skills },
            }),
        };
        if self.has("images") {
            match self.version {
                1 => result["agentCapabilities"]["promptCapabilities"] = json!({ "image": true }),
                _ => result["capabilities"]["session"]["prompt"] = json!({ "image": {} }),
            }
        }
        self.answer(id, result);
    }

    /// Tells the history of a session, then answers.
    fn load(&mut self, id: &Value, params: &Value) {
        let session = params["sessionId"].as_str().unwrap_or_default().to_owned();
        let Some(mut turns) = self.sessions.turns(&session).filter(|_| !self.has("no_load")) else {
            return self.refuse(id, -32002, "no such session");
        };
        if self.has("new_ids_on_load") {
            turns.iter_mut().for_each(|turn| self.sessions.renumber(turn));
            self.sessions.store(&session, &turns);
        }
        self.tools.open(&session, &params["mcpServers"]);
        let replays = self.version == 1 || params["replayFrom"].is_object();
        if self.has("gated_load") {
            let told = turns.len().min(2);
            self.replay(&session, &turns[..told]);
            self.wait_for_file("load");
            turns.drain(..told);
        }
        if replays {
            self.replay(&session, &turns);
        }
        if self.has("commands_first") {
            self.tell_commands(&session);
        }
        self.answer(id, json!({}));
    }

    fn replay(&mut self, session: &str, turns: &[Turn]) {
        for turn in turns {
            self.chunk(session, "user_message_chunk", &turn.user_id, &turn.user);
            self.chunk(session, "agent_message_chunk", &turn.answer_id, &turn.answer);
        }
    }

    /// At a message, if it understands that; else the head, told and numbered anew before it answers.
    fn fork(&mut self, id: &Value, params: &Value) {
        let session = params["sessionId"].as_str().unwrap_or_default();
        let Some(mut turns) = self.sessions.turns(session) else { return self.refuse(id, -32002, "no such session") };
        if self.has("busy") {
            // It refuses, and speaks of something else first.
            let other = self.sessions.all().into_iter().find(|other| other != session).unwrap_or_default();
            self.chunk(&other, "agent_message_chunk", "m-other", "by the way");
            let params = json!({ "sessionId": other, "toolCall": { "toolCallId": "t" }, "options": [] });
            self.send(
                &json!({ "jsonrpc": "2.0", "id": "q", "method": "session/request_permission", "params": params }),
            );
            return self.refuse(id, -32603, "busy");
        }
        let message = params["_meta"]["jetbrains"]["air"]["fork"]["messageId"].as_str();
        if let (true, Some(message)) = (self.has("air"), message) {
            let Some(at) = turns.iter().position(|turn| turn.answer_id == message) else {
                return self.refuse(id, -32602, &format!("fork point {message} was not found"));
            };
            turns.truncate(at + 1);
        }
        if !self.has("air") {
            turns.iter_mut().for_each(|turn| self.sessions.renumber(turn));
        }
        let fork = self.sessions.create(&turns);
        match self.has("drops_tools") {
            true => self.tools.open(&fork, &Value::Null),
            false => self.tools.open(&fork, &params["mcpServers"]),
        }
        self.tools.note_fork(&fork);
        if !self.has("air") {
            self.replay(&fork, &turns);
        }
        self.asks_first("asks_in_fork", &fork);
        self.answer(id, json!({ "sessionId": fork }));
        self.update(&fork, json!({ "sessionUpdate": "available_commands_update", "availableCommands": [] }));
    }

    fn cut(&mut self, id: &Value, params: &Value, find: impl FnOnce(&[Turn]) -> Option<usize>) {
        let session = params["sessionId"].as_str().unwrap_or_default();
        let Some(mut turns) = self.sessions.turns(session) else { return self.refuse(id, -32002, "no such session") };
        if self.has("cut_fails") {
            return self.refuse(id, -32603, "it cannot be cut now");
        }
        let Some(at) = find(&turns) else { return self.refuse(id, -32602, "there is no such message") };
        if self.once("busy_cut") {
            return self.refuse(id, -32603, "busy, try again");
        }
        if self.has("mute_cut") {
            return;
        }
        if !self.has("lying_cut") {
            turns.truncate(at);
            self.sessions.store(session, &turns);
        }
        self.answer(id, json!({}));
    }

    fn chunk(&self, session: &str, kind: &str, id: &str, text: &str) {
        let mut update = json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } });
        if !self.has("no_ids") {
            let id = if self.has("repeated_ids") { "always-the-same" } else { id };
            update["messageId"] = id.into();
        }
        self.update(session, update);
    }

    fn update(&self, session: &str, update: impl Into<Value>) {
        let params = json!({ "sessionId": session, "update": update.into() });
        self.send(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }));
    }

    fn answer(&self, id: &Value, result: impl Into<Value>) {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result.into() }));
    }

    fn refuse(&self, id: &Value, code: i64, message: &str) {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } }));
    }

    fn send(&self, message: &Value) {
        self.out.lock().expect("nobody panics with it").line(&message.to_string());
    }

    fn raw(&self, bytes: &[u8]) {
        self.out.lock().expect("nobody panics with it").raw(bytes);
    }
}

/// Fields of an object that are right JSON and that our values cannot hold: half an emoji, too large a number, too deep a list.
pub fn odd() -> String {
    format!(r#""half\ud83d":1e400,"deep":{}{}"#, "[".repeat(DEEP), "]".repeat(DEEP))
}

/// A line with something else for what our values cannot hold; see [`odd`].
pub fn readable(line: &str) -> String {
    let shallow = line.replace(&"[".repeat(DEEP), "[").replace(&"]".repeat(DEEP), "]");
    shallow.replace("\\ud83d", "\\ufffd").replace("1e400", "1")
}

/// What a model would have been sent at each prompt, oldest first: what was said, in order.
pub fn model_requests(directory: &Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(directory.join("model.jsonl")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("the agent wrote it")).collect()
}
