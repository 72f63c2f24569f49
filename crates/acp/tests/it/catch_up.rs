//! A session tells more than is kept for a client that is slow: it is told how it all stands, and nobody waits in vain.
//!
//! The session is a fake whose list of events holds one: whatever is told at once is missed.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use retake_acp::agent::{self, Close, Host, HostError, ListedSession, OpenSession, Wish};
use retake_agent::contract::{Action, Command, Event, EventKind, Reply, RequestOutcome, State};
use retake_agent::controller::{self, Attached, Beginning, ControllerMessage, Handle};
use retake_agent::live::LiveSession;
use retake_agent::view::View;
use retake_engine::Timestamp;
use retake_engine::id::EntryId;
use retake_engine::id::SessionId;
use retake_engine::session::entry::{Entry, Part};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::broadcast;

/// The session, as the test has it stand.
#[derive(Clone)]
struct Fake {
    handle: Handle,
    view: Arc<Mutex<View>>,
    events: broadcast::Sender<Arc<Event>>,
}

impl Fake {
    /// One that holds every prompt, or says it.
    fn start(holds: bool) -> Self {
        let (handle, mut inbox) = controller::channel(SessionId::new(Timestamp(0), [7; 10]));
        let view = View { session: handle.session().into(), seq: 1, ..View::default() };
        let fake = Self { handle, view: Arc::new(Mutex::new(view)), events: broadcast::channel(1).0 };
        let (view, events) = (Arc::clone(&fake.view), fake.events.clone());
        tokio::spawn(async move {
            while let Some(message) = inbox.recv().await {
                match message {
                    ControllerMessage::Attach { answer, .. } => {
                        let beginning = Beginning::View(Box::new(view.lock().unwrap().clone()));
                        answer.send(Attached { beginning, events: events.subscribe() }).ok();
                    }
                    ControllerMessage::Request { request, answer } => {
                        let reply = match request.command {
                            Command::Action(Action::Prompt { .. }) if holds => {
                                Reply::Held { count: 1, request: Some(request.id) }
                            }
                            Command::Action(Action::Prompt { .. }) => Reply::Said { prompt: id(1) },
                            _ => Reply::Done,
                        };
                        answer.send(RequestOutcome::Ok(reply)).ok();
                    }
                    ControllerMessage::CloseIfIdle { .. } => {}
                }
            }
        });
        fake
    }

    /// It stands like this now, and all that led to it was told while nobody listened.
    fn jumps(&self, entries: &[Value], state: State) {
        let mut view = self.view.lock().unwrap();
        view.entries =
            entries.iter().map(|entry| serde_json::from_value(entry.clone()).unwrap()).collect::<Vec<Entry>>();
        view.state = state;
        for _ in 0..5 {
            view.seq += 1;
            let kind = EventKind::Warning { text: "missed".to_owned() };
            self.events.send(Arc::new(Event { seq: view.seq, request: None, kind })).unwrap();
        }
    }
}

impl Host for Fake {
    async fn open(&self, _: Wish) -> Result<OpenSession, HostError> {
        let (view, live) = LiveSession::here(self.handle.clone()).await.unwrap();
        let close: Close = Box::new(|_| Box::pin(async {}));
        Ok(OpenSession { view, live, close })
    }

    async fn list(&self, _: Option<PathBuf>) -> Result<Vec<ListedSession>, HostError> {
        Ok(Vec::new())
    }

    async fn delete(&self, _: String) -> Result<(), HostError> {
        Ok(())
    }

    fn warn(&self, _: &str) {}
}

struct Client {
    to: WriteHalf<DuplexStream>,
    from: BufReader<ReadHalf<DuplexStream>>,
    session: String,
    next: u64,
}

impl Client {
    async fn start(fake: &Fake, version: u32, knows_rewind: bool) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (input, output) = tokio::io::split(theirs);
        tokio::spawn(agent::serve(input, output, fake.clone(), std::future::pending()));
        let (from, to) = tokio::io::split(ours);
        let mut client = Self { to, from: BufReader::new(from), session: String::new(), next: 0 };
        let meta = if knows_rewind { json!({ "retake": {} }) } else { json!({}) };
        let key = if version == 1 { "clientCapabilities" } else { "capabilities" };
        let params =
            json!({ "protocolVersion": version, "info": { "name": "t", "version": "1" }, key: { "_meta": meta } });
        client.send("initialize", params).await;
        client.until(|message| message["id"] == 1).await;
        client.send("session/new", json!({ "cwd": "/", "mcpServers": [] })).await;
        let begun = client.until(|message| message["id"] == 2).await.pop().unwrap();
        client.session = begun["result"]["sessionId"].as_str().unwrap().to_owned();
        client.until(|message| kind(message) == "available_commands_update").await;
        client
    }

    async fn send(&mut self, method: &str, params: Value) {
        self.next += 1;
        let line = json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params });
        self.to.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    async fn say(&mut self, text: &str) {
        let prompt = json!([{ "type": "text", "text": text }]);
        self.send("session/prompt", json!({ "sessionId": self.session, "prompt": prompt })).await;
    }

    /// All that comes until `is_it`, which is the last.
    async fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut all: Vec<Value> = Vec::new();
        while !all.last().is_some_and(&is_it) {
            let mut line = String::new();
            let read = tokio::time::timeout(std::time::Duration::from_secs(15), self.from.read_line(&mut line)).await;
            read.unwrap_or_else(|_| panic!("nothing comes after {all:#?}")).unwrap();
            all.push(serde_json::from_str(&line).unwrap());
        }
        all
    }
}

fn kind(message: &Value) -> &str {
    message["params"]["update"]["sessionUpdate"].as_str().unwrap_or_default()
}

/// What the agent said, as far as it was told.
fn said(told: &[Value]) -> String {
    let chunks = told.iter().filter(|message| kind(message) == "agent_message_chunk");
    chunks.filter_map(|message| message["params"]["update"]["content"]["text"].as_str()).collect()
}

fn id(number: u8) -> EntryId {
    EntryId::new([number; 10])
}

fn entry(number: u8, mut body: Value) -> Value {
    body["id"] = json!(id(number));
    body["parent"] = json!((number > 1).then(|| id(number - 1)));
    body["at"] = json!(0);
    body
}

/// A turn, to its end: `text`, answered by `answer`.
fn turn(first: u8, text: &str, answer: &str) -> [Value; 3] {
    let usage = json!({ "input": 0, "output": 0, "cache_read": 0, "cache_write": 0 });
    let blocks = json!([{ "type": "text", "text": answer }]);
    [
        entry(first, json!({ "type": "prompt", "parts": [Part::text(text)] })),
        entry(first + 1, json!({ "type": "reply", "blocks": blocks, "model": "m", "usage": usage, "stop": "done" })),
        entry(first + 2, json!({ "type": "ended", "reason": { "why": "done" } })),
    ]
}

#[tokio::test]
async fn a_turn_that_was_missed_is_told_and_answered() {
    for (version, knows_rewind, holds) in
        [(1, true, false), (1, false, false), (2, true, false), (2, false, false), (1, false, true), (2, true, true)]
    {
        let fake = Fake::start(holds);
        let mut client = Client::start(&fake, version, knows_rewind).await;
        client.say("hello").await;
        // The session has taken the prompt before it goes on.
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        fake.jumps(&turn(1, "hello", "there"), State::Idle);
        let told = match version {
            1 => client.until(|message| message["id"] == 3).await,
            _ => client.until(|message| message["params"]["update"]["state"] == "idle").await,
        };
        assert_eq!(said(&told), "there", "{told:#?}");
        let answer = told.iter().find(|message| message["id"] == 3).unwrap_or_else(|| panic!("{told:#?}"));
        match version {
            1 => assert_eq!(answer["result"]["stopReason"], "end_turn"),
            _ => assert_eq!(answer["result"]["messageId"], json!(id(1))),
        }
    }
}

#[tokio::test]
async fn a_held_prompt_that_was_given_back_unheard_is_answered() {
    for version in [1, 2] {
        let fake = Fake::start(true);
        let mut client = Client::start(&fake, version, true).await;
        client.say("hello").await;
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        fake.jumps(&turn(1, "somebody else's", "there"), State::Idle);
        let answer = client.until(|message| message["id"] == 3).await.pop().unwrap();
        match version {
            1 => assert_eq!(answer["result"]["stopReason"], "cancelled"),
            _ => assert_eq!(answer["error"]["code"], -32800),
        }
    }
}

#[tokio::test]
async fn a_cut_that_was_missed_is_told_to_whoever_wants_to_know() {
    let fake = Fake::start(false);
    fake.view.lock().unwrap().entries = turn(1, "hello", "there")
        .into_iter()
        .chain(turn(4, "more", "of it"))
        .map(|entry| serde_json::from_value(entry).unwrap())
        .collect();
    let mut client = Client::start(&fake, 1, true).await;
    fake.jumps(&turn(1, "hello", "there"), State::Idle);
    let told = client.until(|message| message["method"] == "_session/history_truncated").await;
    assert_eq!(told.last().unwrap()["params"]["lastMessageId"], json!(id(2)));
}
