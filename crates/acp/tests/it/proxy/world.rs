//! A client, the proxy and the fake inner agent around a scratch workspace.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use retake_acp::proxy::{self, Patience, ProxyEnd, ProxySetup};
use retake_engine::{Breadth, Environment, Settings, Workspace};
use retake_testkit::acp::Schemas;
use retake_testkit::fake_agent;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// How long anything may take.
const LIMIT: Duration = Duration::from_secs(30);

/// The directories that outlive a proxy.
pub struct World {
    scratch: tempfile::TempDir,
    habits: String,
    pub patience: Patience,
}

/// A proxy, and its client's side.
pub struct Client {
    to: WriteHalf<DuplexStream>,
    from: BufReader<ReadHalf<DuplexStream>>,
    running: JoinHandle<Result<ProxyEnd, proxy::StartError>>,
    next: u64,
    version: u64,
    cwd: PathBuf,
    /// What came and was not asked for yet.
    pub told: VecDeque<Value>,
    /// Every line, as it came.
    pub lines: Vec<String>,
    /// What was asked, by id.
    asked: HashMap<u64, String>,
    schemas: [Schemas; 2],
    stop: Arc<Notify>,
}

impl World {
    /// With an inner agent of these habits, each after a comma.
    pub fn new(habits: &str) -> Self {
        let scratch = tempfile::tempdir().expect("there is room");
        for name in ["project", "data", "inner", "sockets"] {
            std::fs::create_dir(scratch.path().join(name)).expect("there is room");
        }
        // How busy the machine is must not decide whose a file is.
        let patience = Patience { notice: LIMIT, ..Patience::default() };
        Self { scratch, habits: habits.to_owned(), patience }
    }

    /// The same one, with an agent of other habits.
    pub fn with(self, habits: &str) -> Self {
        Self { habits: habits.to_owned(), ..self }
    }

    /// A person saves a file.
    pub fn save(&self, name: &str, text: &str) {
        std::fs::write(self.project().join(name), text).expect("it is writable");
    }

    /// Lets the agent go on that waits for this.
    pub fn go(&self, name: &str) {
        std::fs::write(self.path("inner").join(name), "").expect("it is writable");
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    pub fn project(&self) -> PathBuf {
        self.path("project")
    }

    /// The files of the workspace and what is in them.
    pub fn files(&self) -> Vec<(String, String)> {
        let files = std::fs::read_dir(self.project()).expect("it is there");
        let mut files: Vec<(String, String)> = files
            .map(|file| {
                let file = file.expect("it can be read");
                let text = std::fs::read_to_string(file.path()).expect("it is text");
                (file.file_name().into_string().expect("it is UTF-8"), text.trim_end().to_owned())
            })
            .collect();
        files.sort();
        files
    }

    /// Waits for a file that has such lines, and returns what is in it.
    pub async fn wait_for_file(&self, name: &str, has: &str) -> String {
        let end = std::time::Instant::now() + LIMIT;
        loop {
            match std::fs::read_to_string(self.path(name)) {
                Ok(text) if text.ends_with('\n') && text.contains(has) => return text.trim_end().to_owned(),
                _ => assert!(std::time::Instant::now() < end, "{name} is not there"),
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// What the inner agent's model was sent at the last prompt.
    pub fn model_saw(&self) -> Vec<String> {
        fake_agent::model_requests(&self.path("inner")).pop().expect("it was asked")
    }

    /// Waits until this text is somewhere in the store.
    pub async fn wait_for_stored(&self, text: &str) {
        let end = std::time::Instant::now() + LIMIT;
        while !is_below(&self.path("data"), text.as_bytes()) {
            assert!(std::time::Instant::now() < end, "`{text}` is not stored");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// What is stored at this moment, as a process leaves it that is killed.
    pub fn copy_data(&self) -> tempfile::TempDir {
        let copy = tempfile::tempdir().expect("there is room");
        let copied = std::process::Command::new("cp").arg("-a").arg(self.path("data")).arg(copy.path()).status();
        assert!(copied.expect("it runs").success());
        copy
    }

    /// Puts that back.
    pub fn put_data(&self, copy: &tempfile::TempDir) {
        std::fs::remove_dir_all(self.path("data")).expect("it was there");
        std::fs::rename(copy.path().join("data"), self.path("data")).expect("it fits there");
    }

    /// Waits until the inner agent was sent so many lines with this in them.
    pub async fn wait_for_sent(&self, text: &str, count: usize) {
        let sent = || std::fs::read_to_string(self.path("inner").join("in")).unwrap_or_default().matches(text).count();
        let end = std::time::Instant::now() + LIMIT;
        while sent() < count {
            assert!(std::time::Instant::now() < end, "the agent was never sent `{text}`");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    pub fn environment(&self) -> Environment {
        environment(&self.path("data"), &self.project())
    }

    pub fn workspace(&self) -> Workspace {
        Workspace::open(self.environment()).expect("it is one")
    }

    /// Starts the proxy; nothing is said yet.
    pub fn start(&self) -> Client {
        let example = std::env::current_exe().expect("it runs");
        let example = example.parent().and_then(Path::parent).expect("it is in `deps`").join("examples/inner_agent");
        let (inner, project) = (self.path("inner"), self.project());
        let variable = format!("{}={},{}", fake_agent::VARIABLE, inner.display(), self.habits);
        let command = ["env", "-C"].into_iter().map(Into::into);
        let command = command.chain([project.into(), variable.into(), example.into_os_string()]);
        self.start_with(command.collect())
    }

    /// Starts the proxy around any command.
    pub fn start_with(&self, command: Vec<OsString>) -> Client {
        let (data, project) = (self.path("data"), self.project());
        let setup = ProxySetup {
            command,
            environments: Box::new(move |cwd| match cwd.file_name().and_then(|name| name.to_str()) {
                Some("home") => Err("it is somebody's home".to_owned()),
                // A directory of a workspace.
                Some("inside") => Ok(environment(&data, cwd.parent().unwrap_or(cwd))),
                _ => Ok(environment(&data, cwd)),
            }),
            sockets: self.path("sockets"),
            patience: self.patience,
        };
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (from, to) = tokio::io::split(theirs);
        let stop = Arc::new(Notify::new());
        let stopped = Arc::clone(&stop);
        let running = tokio::spawn(async move { proxy::run(setup, from, to, stopped.notified()).await });
        let (from, to) = tokio::io::split(ours);
        let from = BufReader::new(from);
        let (told, lines) = (VecDeque::new(), Vec::new());
        let (asked, schemas) = (HashMap::new(), [Schemas::of(1), Schemas::of(2)]);
        Client { to, from, running, next: 0, version: 1, cwd: project, told, lines, asked, schemas, stop }
    }

    /// Starts the proxy, and agrees on version 1.
    pub async fn client(&self) -> Client {
        let mut client = self.start();
        client.initialize(1, true).await;
        client
    }
}

/// Whether a file below a directory has these bytes.
fn is_below(directory: &Path, bytes: &[u8]) -> bool {
    let files = std::fs::read_dir(directory).into_iter().flatten().flatten();
    files.into_iter().any(|file| match file.path().is_dir() {
        true => is_below(&file.path(), bytes),
        false => std::fs::read(file.path()).is_ok_and(|text| text.windows(bytes.len()).any(|part| part == bytes)),
    })
}

fn environment(data: &Path, root: &Path) -> Environment {
    Environment {
        root: root.to_owned(),
        data_dir: data.to_owned(),
        global_excludes: None,
        homes: vec![],
        breadth: Breadth::Guarded,
        settings: Settings::default(),
        threads: 1,
    }
}

impl Client {
    pub async fn initialize(&mut self, version: u64, wants: bool) -> Value {
        let key = if version == 1 { "clientCapabilities" } else { "capabilities" };
        let meta = if wants { json!({ "_meta": { "retake": {} } }) } else { json!({}) };
        let params = json!({ "protocolVersion": version, "info": { "name": "test", "version": "0" }, key: meta });
        let result = self.ask("initialize", params).await.expect("it is understood");
        self.version = result["protocolVersion"].as_u64().expect("there is one");
        result
    }

    /// Writes a line as it is.
    pub async fn write(&mut self, line: &str) {
        self.to.write_all(format!("{line}\n").as_bytes()).await.expect("the proxy reads");
    }

    pub async fn send(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        let id = self.next;
        self.asked.insert(id, method.to_owned());
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()).await;
        id
    }

    pub async fn notify(&mut self, method: &str, params: Value) {
        self.write(&json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string()).await;
    }

    pub async fn reply(&mut self, id: &Value, result: Value) {
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string()).await;
    }

    /// The next line; `None` at the end.
    pub async fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        let read = tokio::time::timeout(LIMIT, self.from.read_line(&mut line)).await.expect("the proxy is not wedged");
        if read.expect("it can be read") == 0 {
            return None;
        }
        self.lines.push(line.trim_end_matches('\n').to_owned());
        let message = serde_json::from_str(&fake_agent::readable(&line)).expect("it is JSON");
        self.check(&message);
        Some(message)
    }

    /// What comes is right by the protocol's own schemas: the inner agent's messages are, so ours must be.
    fn check(&self, message: &Value) {
        let schemas = &self.schemas[usize::from(self.version == 2)];
        let asked = message["id"].as_u64().and_then(|id| self.asked.get(&id));
        let wrong = match (message["method"].as_str(), message.get("error"), asked) {
            (Some(method), ..) => schemas.call(method, &message["params"]),
            (None, Some(error), _) => schemas.error(error),
            // The version is what it says.
            (None, None, Some(method)) if method != "initialize" && method != "proxy/initialize" => {
                schemas.answer(method, &message["result"])
            }
            (None, None, _) => Vec::new(),
        };
        assert!(wrong.is_empty(), "version {}: {message:#}\n{wrong:#?}", self.version);
    }

    /// Waits for a message; what comes before it is kept.
    pub async fn wait(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.next().await.expect("the proxy is still there");
            if is_it(&message) {
                return message;
            }
            self.told.push_back(message);
        }
    }

    pub async fn answer(&mut self, id: u64) -> Result<Value, Value> {
        let answer = self.wait(|message| message["id"] == id && message.get("method").is_none()).await;
        match answer.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(answer["result"].clone()),
        }
    }

    pub async fn ask(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.send(method, params).await;
        self.answer(id).await
    }

    pub async fn new_session(&mut self) -> String {
        let params = json!({ "cwd": self.cwd, "mcpServers": [] });
        let result = self.ask("session/new", params).await.expect("it begins");
        result["sessionId"].as_str().expect("it has an id").to_owned()
    }

    /// From now on, sessions are begun and loaded for another directory.
    pub fn go_to(&mut self, cwd: PathBuf) {
        self.cwd = cwd;
    }

    pub async fn load(&mut self, session: &str) -> Result<Value, Value> {
        let mut params = json!({ "sessionId": session, "cwd": self.cwd, "mcpServers": [] });
        let method = if self.version == 1 { "session/load" } else { "session/resume" };
        if self.version == 2 {
            params["replayFrom"] = json!({ "type": "start" });
        }
        self.told.clear();
        self.ask(method, params).await
    }

    /// Says something, and waits for the end of the turn.
    pub async fn prompt(&mut self, session: &str, text: &str) -> Value {
        let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] });
        let result = self.ask("session/prompt", params).await.expect("it is said");
        if self.version == 2 {
            self.wait(|message| message["params"]["update"]["state"] == "idle").await;
        }
        result
    }

    /// The points, newest first.
    pub async fn points(&mut self, session: &str) -> Vec<Value> {
        let answer = self.ask("_session/rewind_points", json!({ "sessionId": session })).await;
        answer.expect("there are some")["points"].as_array().expect("it is a list").clone()
    }

    /// Goes back to before the newest prompt but `number`, counted from 0.
    pub async fn rewind(&mut self, session: &str, number: usize) -> Result<Value, Value> {
        let point = self.points(session).await[number]["messageId"].clone();
        self.ask("_session/rewind", json!({ "sessionId": session, "beforeMessageId": point })).await
    }

    /// What was told of conversation since it was last looked at: kind, message id and text.
    pub fn said(&mut self) -> Vec<(String, String, String)> {
        let told = std::mem::take(&mut self.told);
        let updates = told.into_iter().filter(|message| message["method"] == "session/update");
        let updates = updates.map(|message| message["params"]["update"].clone());
        updates
            .filter(|update| update["sessionUpdate"].as_str().is_some_and(|kind| kind.contains("message")))
            .map(|update| {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let content = match &update["content"] {
                    Value::Array(blocks) => blocks.iter().map(|block| text(&block["text"])).collect(),
                    block => text(&block["text"]),
                };
                let kind = text(&update["sessionUpdate"]).replace("_chunk", "");
                (kind, text(&update["messageId"]), content)
            })
            .collect()
    }

    /// Has the proxy stop as a signal does, and waits for it to end.
    pub async fn stop(self) -> ProxyEnd {
        self.stop.notify_one();
        self.end().await
    }

    /// Hangs up, and waits for the proxy to end.
    pub async fn hang_up(mut self) -> ProxyEnd {
        self.to.shutdown().await.expect("it can be");
        self.end().await
    }

    /// Waits for the proxy to end by itself.
    pub async fn end(mut self) -> ProxyEnd {
        tokio::time::timeout(LIMIT, &mut self.running)
            .await
            .expect("it ends")
            .expect("it does not panic")
            .expect("it began")
    }
}
