//! A client, and the scene around it: a workspace, a scripted model and the agent on two pipes.
//!
//! Everything that comes from the agent is held against the schemas as it comes, and kept.

use std::fs;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use retake_acp::agent;
use retake_testkit::ScriptedModel;
use retake_testkit::acp::Schemas;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::runtime::Runtime;

use crate::host::TestHost;

/// How long a test waits for what has to come.
const PATIENCE: Duration = Duration::from_secs(15);

pub struct Client {
    pub version: u32,
    pub model: ScriptedModel,
    pub session: String,
    /// Everything that came, in order.
    pub log: Vec<Value>,
    dir: tempfile::TempDir,
    schemas: Schemas,
    runtime: std::mem::ManuallyDrop<Runtime>,
    to: Option<WriteHalf<DuplexStream>>,
    from: Receiver<Value>,
    serving: Option<tokio::task::JoinHandle<std::io::Result<()>>>,
    next: u64,
    asked: Vec<(u64, String)>,
    knows_rewind: bool,
}

/// Runs a scene in both versions.
pub fn both(scene: impl Fn(&mut Client)) {
    for version in [1, 2] {
        let mut client = Client::start(version, true);
        scene(&mut client);
        client.hang_up();
    }
}

impl Client {
    /// A client that has begun a session.
    pub fn start(version: u32, knows_rewind: bool) -> Self {
        let mut client = Self::silent(version, knows_rewind);
        client.greet();
        client.begin();
        client
    }

    /// A client that has said nothing yet.
    pub fn silent(version: u32, knows_rewind: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("w")).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (_, from) = channel();
        let mut client = Self {
            version,
            model: ScriptedModel::start(),
            session: String::new(),
            log: Vec::new(),
            dir,
            schemas: Schemas::of(version),
            runtime: std::mem::ManuallyDrop::new(runtime),
            to: None,
            from,
            serving: None,
            next: 0,
            asked: Vec::new(),
            knows_rewind,
        };
        client.connect();
        client
    }

    fn connect(&mut self) {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (from, to) = tokio::io::split(ours);
        let (input, output) = tokio::io::split(theirs);
        let host = TestHost { dir: self.dir.path().to_owned(), model: self.model.url() };
        self.serving = Some(self.runtime.spawn(agent::serve(input, output, host, std::future::pending())));
        let (send, receive) = channel();
        self.runtime.spawn(read(from, send));
        (self.to, self.from) = (Some(to), receive);
        self.asked.clear();
    }

    pub fn root(&self) -> PathBuf {
        self.dir.path().join("w")
    }

    pub fn write(&self, path: &str, text: &str) {
        fs::write(self.root().join(path), text).unwrap();
    }

    pub fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.root().join(path)).ok()
    }

    /// Ends the connection, and the agent in good order.
    pub fn hang_up(&mut self) {
        let mut to = self.to.take().unwrap();
        self.runtime.block_on(async { to.shutdown().await }).unwrap();
        let serving = self.serving.take().unwrap();
        self.runtime.block_on(async { tokio::time::timeout(PATIENCE, serving).await }).unwrap().unwrap().unwrap();
    }

    /// Comes back with another process.
    pub fn reconnect(&mut self) {
        self.hang_up();
        self.log.clear();
        self.connect();
        self.greet();
    }

    pub fn greet(&mut self) -> Value {
        let meta = if self.knows_rewind { json!({ "retake": {} }) } else { json!({}) };
        let params = match self.version {
            1 => json!({ "protocolVersion": 1, "clientCapabilities": { "_meta": meta } }),
            _ => json!({
                "protocolVersion": 2,
                "info": { "name": "test", "version": "1" },
                "capabilities": { "_meta": meta },
            }),
        };
        self.call("initialize", params)
    }

    pub fn begin(&mut self) {
        let root = self.root();
        let answer = self.call("session/new", json!({ "cwd": root, "mcpServers": [] }));
        self.session = answer["sessionId"].as_str().unwrap().to_owned();
        // The last word of a beginning.
        self.until(|message| update(message) == Some("available_commands_update"));
    }

    /// Sends a line as it is.
    pub fn send_text(&mut self, text: &str) {
        let to = self.to.as_mut().unwrap();
        self.runtime.block_on(async { to.write_all(text.as_bytes()).await }).unwrap();
    }

    /// Sends a request; its id.
    pub fn send(&mut self, method: &str, params: Value) -> u64 {
        let wrong = self.schemas.call(method, &params);
        assert!(wrong.is_empty(), "a test sends what no client would, {method}: {wrong:?}");
        self.send_unchecked(method, params)
    }

    /// Sends a request that need not make sense.
    #[allow(clippy::needless_pass_by_value)]
    pub fn send_unchecked(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        let id = self.next;
        self.asked.push((id, method.to_owned()));
        self.send_text(&format!("{}\n", json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })));
        id
    }

    pub fn notify(&mut self, method: &str, params: &Value) {
        self.send_text(&format!("{}\n", json!({ "jsonrpc": "2.0", "method": method, "params": params })));
    }

    /// What comes next; it is valid.
    pub fn next(&mut self) -> Value {
        let message = match self.from.recv_timeout(PATIENCE) {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout) => panic!("nothing comes after {:#?}", self.log.last()),
            Err(RecvTimeoutError::Disconnected) => panic!("the agent is gone after {:#?}", self.log.last()),
        };
        self.check(&message);
        self.log.push(message.clone());
        message
    }

    fn check(&mut self, message: &Value) {
        assert_eq!(message["jsonrpc"], "2.0");
        let wrong = match (message["method"].as_str(), message.get("error")) {
            (Some(method), _) => self.schemas.call(method, &message["params"]),
            (None, Some(error)) => self.schemas.error(error),
            (None, None) => {
                let id = message["id"].as_u64().unwrap();
                let at = self.asked.iter().position(|(asked, _)| *asked == id);
                let (_, method) = self.asked.remove(at.unwrap_or_else(|| panic!("nobody asked for {message}")));
                self.schemas.answer(&method, &message["result"])
            }
        };
        assert!(wrong.is_empty(), "version {}: {message:#}\n{wrong:#?}", self.version);
    }

    /// All that comes until `is_it`, which is the last.
    pub fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut all = Vec::new();
        loop {
            all.push(self.next());
            if all.last().is_some_and(&is_it) {
                return all;
            }
        }
    }

    /// Waits until all of `text` was said: a model says it in pieces, and what is still on its way is not said.
    pub fn until_said(&mut self, text: &str) {
        let mut said = String::new();
        while said != text {
            let message = self.next();
            if update(&message) == Some("agent_message_chunk") {
                said += message.pointer("/params/update/content/text").and_then(Value::as_str).unwrap_or_default();
            }
        }
    }

    /// Waits for the answer to a request: its outcome.
    pub fn answer(&mut self, id: u64) -> Result<Value, Value> {
        let answer = self.until(|message| message["id"] == id && message.get("method").is_none()).pop().unwrap();
        match answer.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(answer["result"].clone()),
        }
    }

    pub fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.answer(id).unwrap_or_else(|error| panic!("{method}: {error:#}"))
    }

    pub fn refused(&mut self, method: &str, params: Value) -> Value {
        let id = self.send_unchecked(method, params);
        self.answer(id).expect_err(method)
    }

    /// The parameters, with the session.
    pub fn with(&self, mut params: Value) -> Value {
        params["sessionId"] = self.session.as_str().into();
        params
    }

    /// Sends a prompt; its request.
    pub fn say(&mut self, text: &str) -> u64 {
        let params = self.with(json!({ "prompt": [{ "type": "text", "text": text }] }));
        self.send("session/prompt", params)
    }

    /// Waits for the end of the turn that a request began, and tells its stop reason and the id of its prompt. The calls that are asked
    /// about are allowed.
    pub fn end_of(&mut self, id: u64) -> (String, String) {
        // In version 2 it may have been answered long ago.
        let answered = self.log.iter().find(|one| one["id"] == id && one.get("method").is_none());
        let mut message = answered.and_then(|one| one["result"]["messageId"].as_str()).map(str::to_owned);
        loop {
            let next = self.next();
            if next["method"] == "session/request_permission" {
                self.choose(&next, "allow");
            }
            if next["id"] == id && next.get("method").is_none() {
                assert!(next.get("error").is_none(), "{next:#}");
                match self.version {
                    1 => {
                        let stop = next["result"]["stopReason"].as_str().unwrap().to_owned();
                        let said = next.pointer("/result/_meta/retake/messageId").and_then(Value::as_str);
                        return (stop, said.unwrap_or_default().to_owned());
                    }
                    _ => message = next["result"]["messageId"].as_str().map(str::to_owned),
                }
            }
            let state = &next["params"]["update"];
            let is_ours = next["params"]["sessionId"] == self.session.as_str();
            if self.version == 2
                && state["state"] == "idle"
                && is_ours
                && let Some(message) = &message
            {
                return (state["stopReason"].as_str().unwrap().to_owned(), message.clone());
            }
        }
    }

    /// Says something and waits for the end of its turn: the id of the prompt.
    pub fn turn(&mut self, text: &str) -> String {
        let id = self.say(text);
        let (stop, message) = self.end_of(id);
        assert_eq!(stop, "end_turn");
        message
    }

    /// Types a command into the chat: what is answered there.
    pub fn command(&mut self, text: &str) -> String {
        let before = self.log.len();
        self.turn(text);
        self.said_since(before)
    }

    /// What the agent said since.
    pub fn said_since(&self, before: usize) -> String {
        let text = |message: &Value| {
            let is_said = update(message) == Some("agent_message_chunk");
            is_said.then(|| message["params"]["update"]["content"]["text"].as_str().unwrap().to_owned())
        };
        self.log[before..].iter().filter_map(text).collect()
    }

    /// Answers whether a call may run.
    pub fn choose(&mut self, request: &Value, option: &str) {
        let result = json!({ "outcome": { "outcome": "selected", "optionId": option } });
        self.send_text(&format!("{}\n", json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })));
    }

    /// Loads the session: the messages that are replayed, as role, id and text.
    pub fn history(&mut self) -> Vec<(String, String, String)> {
        let before = self.log.len();
        let root = self.root();
        match self.version {
            1 => {
                let params = self.with(json!({ "cwd": root, "mcpServers": [] }));
                self.call("session/load", params);
            }
            _ => {
                let params = self.with(json!({ "cwd": root, "replayFrom": { "type": "start" } }));
                self.call("session/resume", params);
            }
        }
        let messages = messages(&self.log[before..]);
        self.until(|message| update(message) == Some("available_commands_update"));
        messages
    }
}

/// What kind of update a message is.
pub fn update(message: &Value) -> Option<&str> {
    message.pointer("/params/update/sessionUpdate").and_then(Value::as_str)
}

/// The updates of this kind among messages.
pub fn updates<'a>(log: &'a [Value], kind: &str) -> Vec<&'a Value> {
    log.iter().filter(|message| update(message) == Some(kind)).map(|message| &message["params"]["update"]).collect()
}

/// The ids that the history was cut after.
pub fn cuts(log: &[Value]) -> Vec<Value> {
    let cut = |message: &Value| match (message["method"].as_str(), update(message)) {
        (Some("_session/history_truncated"), _) => Some(message["params"]["lastMessageId"].clone()),
        (_, Some("_history_truncated")) => Some(message["params"]["update"]["lastMessageId"].clone()),
        _ => None,
    };
    log.iter().filter_map(cut).collect()
}

/// The messages of the user and the agent: role, id and text.
pub fn messages(log: &[Value]) -> Vec<(String, String, String)> {
    let mut all: Vec<(String, String, String)> = Vec::new();
    for message in log {
        let Some(kind) = update(message) else { continue };
        let update = &message["params"]["update"];
        let role = match kind {
            "user_message_chunk" | "user_message" => "user",
            "agent_message_chunk" => "agent",
            _ => continue,
        };
        let blocks = if update["content"].is_array() { &update["content"] } else { &json!([update["content"]]) };
        let text: String = blocks.as_array().unwrap().iter().filter_map(|block| block["text"].as_str()).collect();
        let id = update["messageId"].as_str().unwrap();
        match all.last_mut() {
            Some((_, last, said)) if last == id => said.push_str(&text),
            _ => all.push((role.to_owned(), id.to_owned(), text)),
        }
    }
    all
}

async fn read(from: ReadHalf<DuplexStream>, send: std::sync::mpsc::Sender<Value>) {
    let mut lines = BufReader::new(from).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let message = serde_json::from_str(&line).unwrap_or_else(|error| panic!("this is no message: {line} {error}"));
        if send.send(message).is_err() {
            return;
        }
    }
}
