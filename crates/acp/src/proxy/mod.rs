//! The proxy: rewind for any agent that speaks the protocol, in any editor that does.
//!
//! ```text
//! editor ──line──> relay ──> session queue ──> prompt, change, slash ──line──> inner agent
//!        <──line── relay <────────────────────────────────────────────line──
//!                    │ what passes by
//!                    v
//!                  log writer (log) ──> workspace thread (snapshots, windows, rewinds)
//! ```
//!
//! - `json_edit` changes single places of a line; every other byte passes as it came. Ids are the inner agent's own for as long as they are
//!   unique: then a line passes whole.
//! - `relay` takes lines of both sides, in order, and waits neither for the inner agent nor for the store, but for the last snapshot of a
//!   turn, a second at most, and while what is to be written gets too much; `route` finds the session that a
//!   message of the client's is about, and has it opened first if need be.
//! - `open` finds or begins the log of a session, `fork` one that begins with what was said in another; `session` is what goes on in one, `message_ids` what its messages are called, `session_map` what of the inner agent belongs to it.
//! - `prompt` has a snapshot taken before a prompt goes on (and waits only so long), `change` rewinds, `cut` cuts the inner conversation.
//! - `agent_process` runs the inner agent, and `watchdog` ends it if Retake is killed.
//! - `backend` serves the extension and the chat commands; `socket_server` serves other commands of Retake.
//!
//! It never decides what the inner agent or the editor should do, and never changes what they say to each other beyond ids, the commands
//! and the capability that it adds, and what has to be told before a prompt. If the log cannot be kept, the conversation goes on without
//! it; if the inner agent goes, whoever waits for it is told, and the session is there when it comes back.

mod agent_process;
mod backend;
mod change;
mod cut;
mod fork;
pub(crate) mod json_edit;
mod log_writer;
mod message_ids;
mod open;
mod prompt;
mod relay;
mod replay;
mod route;
mod session;
mod session_map;
mod shape;
mod socket_server;
mod tool_timeline;
mod transcript;
mod turn_window;
mod watchdog;

use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use retake_agent::ids;
use retake_agent::workspace_thread::WorkspaceThread;
use retake_agent::{escape, socket};
use retake_engine::Environment;
use serde_json::{Value, json};
use tokio::runtime;

use crate::rpc_peer::Peer;
use crate::wire::{Message, RpcError};
use cut::Offer;
use relay::{PendingKind, PendingRequest};
use route::{Unkept, WaitingMessages};
use session::ProxiedSession;
use shape::Version;

pub use agent_process::{ProxyEnd, StartError, run};
pub use session_map::names;

/// Finds out about the workspace of a directory.
pub type Environments = dyn Fn(&Path) -> Result<Environment, String> + Send + Sync;

/// All that a proxy needs.
pub struct ProxySetup {
    /// The inner agent's command and its arguments.
    pub command: Vec<OsString>,
    /// The workspace of a directory.
    pub environments: Box<Environments>,
    /// Where live sessions listen.
    pub sockets: PathBuf,
    /// How long it waits.
    pub patience: Patience,
}

/// How long the proxy waits.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For the snapshot before a prompt; then the prompt goes on without it, which is told.
    pub snapshot: Duration,
    /// For what it asks the inner agent itself.
    pub answer: Duration,
    /// For an answer to what the inner agent may know nothing of: some leave such a request unanswered.
    pub probe: Duration,
    /// For a turn to stop that it cancelled.
    pub stop: Duration,
    /// For the inner agent to do or say anything once the client has gone, and to end once nobody will say anything to it any more. Editors
    /// do not wait for long.
    pub leave: Duration,
    /// For a line of the inner agent to be read: what it does meanwhile is still its own.
    pub notice: Duration,
    /// For a tool to be announced that has been at work: what changed so shortly before may be its work.
    pub doubt: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            snapshot: Duration::from_secs(5),
            answer: Duration::from_secs(60),
            probe: Duration::from_secs(3),
            stop: Duration::from_secs(10),
            leave: Duration::from_secs(2),
            notice: Duration::from_millis(50),
            doubt: Duration::from_secs(1),
        }
    }
}

/// The proxy.
struct Proxy {
    client: Peer,
    agent: Peer,
    setup: ProxySetup,
    /// What the inner agent is called in the log.
    name: String,
    runtime: runtime::Handle,
    state: Mutex<ProxyState>,
    offer: Mutex<Offer>,
    /// Whoever passes on what the inner agent says.
    order: tokio::sync::Mutex<()>,
    /// When the inner agent was last heard, or the client hung up.
    last_sign: Mutex<Instant>,
    /// Threads that have something to store before the process ends.
    threads: Mutex<Vec<thread::JoinHandle<()>>>,
}

/// What is true now.
#[derive(Default)]
struct ProxyState {
    version: Version,
    /// Whether the inner agent has answered `initialize`.
    is_greeted: bool,
    /// Whether the client wants to be told that history was cut.
    wants: bool,
    /// Whether the client shows notices.
    shows_notices: bool,
    /// Version 1: sessions can be resumed and not loaded.
    resumes_only: bool,
    /// By what the client calls them.
    sessions: HashMap<String, Arc<ProxiedSession>>,
    /// By what the inner agent calls them: those that its process has made or loaded, those that only keep a point to go back to included.
    inners: HashMap<String, Arc<ProxiedSession>>,
    /// What is said in sessions that are being opened.
    opening: HashMap<String, WaitingMessages>,
    /// Sessions that have no log.
    unkept: HashMap<String, Unkept>,
    /// Requests of the client that the inner agent has not answered.
    requests: HashMap<String, PendingRequest>,
    /// How many sessions are about to be known.
    expected: usize,
    /// Those of them that the inner agent was asked to make, each with the session of ours that it is to speak in, if it is.
    ordered: Vec<Option<Arc<ProxiedSession>>>,
    /// What the inner agent said of sessions that are not known yet.
    strays: VecDeque<(Message, Vec<u8>)>,
    /// Commands that the inner agent told of sessions that it has not answered for yet.
    early: HashMap<String, Value>,
    keepers: HashMap<PathBuf, (WorkspaceThread, PathBuf)>,
    /// By what the client calls their sessions.
    served: HashMap<String, socket::Served>,
    is_gone: bool,
}

/// Somebody is about to make a session known; what the inner agent says of it waits until then.
struct Expecting {
    proxy: Arc<Proxy>,
    awaits: Awaits,
    is_over: bool,
}

/// For what it takes until a session is known.
#[derive(Clone)]
enum Awaits {
    /// For its log to be opened.
    Log,
    /// For the inner agent, who may want to know something before it answers.
    Agent(Option<Arc<ProxiedSession>>),
}

impl Proxy {
    fn state(&self) -> MutexGuard<'_, ProxyState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn offers(&self) -> MutexGuard<'_, Offer> {
        self.offer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn offer(&self) -> Offer {
        *self.offers()
    }

    /// With what an inner session is begun, loaded or forked.
    fn birth(&self, session: &ProxiedSession) -> Value {
        let mut birth = session.live().birth.clone();
        if let Value::Object(fields) = &mut birth {
            fields.remove("sessionId");
            fields.remove("replayFrom");
            fields.entry("mcpServers").or_insert_with(|| json!([]));
        }
        birth
    }

    /// Asks the inner agent something of our own, and waits only so long.
    async fn ask_agent(&self, method: &str, params: Value) -> Result<Value, RpcError> {
        self.ask_for(method, params, self.setup.patience.answer).await
    }

    /// Asks the inner agent something of our own, and waits for so long.
    async fn ask_for(&self, method: &str, params: Value, patience: Duration) -> Result<Value, RpcError> {
        match tokio::time::timeout(patience, self.agent.request(method, params)).await {
            Ok(answer) => answer,
            Err(_) => Err(RpcError::new(RpcError::INTERNAL, format!("the agent does not answer `{method}`"))
                .with_reason("silence")),
        }
    }

    /// From now on, silence counts anew.
    fn note_sign(&self) {
        *self.last_sign.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Waits until the inner agent has been silent for so long that it will not react any more. Once the client has gone.
    async fn silence(&self) {
        loop {
            let since = self.last_sign.lock().unwrap_or_else(PoisonError::into_inner).elapsed();
            match self.setup.patience.leave.checked_sub(since) {
                Some(rest) => tokio::time::sleep(rest).await,
                None => return,
            }
        }
    }

    /// Holds back what the inner agent says of sessions that are not known.
    fn expect(self: &Arc<Self>) -> Expecting {
        self.state().expected += 1;
        Expecting { proxy: Arc::clone(self), awaits: Awaits::Log, is_over: false }
    }

    /// The same for one that the inner agent is asked to make, to speak in `session` or only to keep a point.
    fn expect_of_agent(self: &Arc<Self>, session: Option<&Arc<ProxiedSession>>) -> Expecting {
        let mut state = self.state();
        state.expected += 1;
        state.ordered.push(session.cloned());
        Expecting { proxy: Arc::clone(self), awaits: Awaits::Agent(session.cloned()), is_over: false }
    }

    /// Tells the client something about a session.
    async fn update(&self, session: &ProxiedSession, update: Value) {
        let params = json!({ "sessionId": session.outer, "update": update });
        // A client that is gone needs to be told nothing.
        self.client.notify("session/update", params).await.ok();
    }

    /// Tells the user something that is no part of the conversation: as a notice, or in the chat where there are none.
    async fn tell_user(&self, session: &ProxiedSession, text: &str) {
        let update = match self.state().shows_notices {
            true => json!({ "sessionUpdate": "notice", "severity": "warning", "title": text }),
            false => {
                let (id, content) = (format!("command-{}", ids::entry()), json!({ "type": "text", "text": text }));
                json!({ "sessionUpdate": "agent_message_chunk", "messageId": id, "content": content })
            }
        };
        self.update(session, update).await;
    }
}

impl Expecting {
    /// The session is known, or will never be: what was held back goes on. Boxed, because what goes on may make another one known.
    fn end(mut self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.is_over = true;
        Box::pin(release(Arc::clone(&self.proxy), self.awaits.clone()))
    }
}

impl Drop for Expecting {
    fn drop(&mut self) {
        if !self.is_over {
            // Nobody made it known; what was held back may be of another one, which waits for it.
            self.proxy.runtime.spawn(release(Arc::clone(&self.proxy), self.awaits.clone()));
        }
    }
}

/// One session less is expected: what waits for none of the others goes on.
async fn release(proxy: Arc<Proxy>, awaited: Awaits) {
    let _order = proxy.order.lock().await;
    let released = {
        let mut state = proxy.state();
        state.expected -= 1;
        if let Awaits::Agent(session) = awaited {
            let is_it =
                |one: &Option<Arc<ProxiedSession>>| one.as_ref().map(Arc::as_ptr) == session.as_ref().map(Arc::as_ptr);
            let at = state.ordered.iter().position(is_it);
            at.map(|at| state.ordered.remove(at));
        }
        let strays = std::mem::take(&mut state.strays);
        let (released, held) = strays.into_iter().partition(|(message, _)| !state.is_stray(message));
        state.strays = held;
        released
    };
    let released: VecDeque<(Message, Vec<u8>)> = released;
    for (message, line) in released {
        proxy.pass_to_client(message, line).await;
    }
}

impl ProxyState {
    /// Whether what the inner agent says is of a session that may become known. A question of its waits only for a log: it may ask it before
    /// it makes the session.
    fn is_stray(&self, message: &Message) -> bool {
        let (inner, is_question) = match message {
            Message::Request { params, .. } => (params["sessionId"].as_str(), true),
            Message::Notification { params, .. } => (params["sessionId"].as_str(), false),
            Message::Response { .. } => return false,
        };
        let expected = if is_question { self.expected - self.ordered.len() } else { self.expected };
        // One without a log is known as well as it will ever be.
        let is_known = |inner| self.inners.contains_key(inner) || self.unkept.contains_key(inner);
        expected > 0 && inner.is_some_and(|inner| !is_known(inner))
    }

    /// Whether the inner agent asks about a session that it is just making, and in which of ours the client is asked.
    fn asked_early(&self, message: &Message, inner: &str) -> Early {
        let is_known = self.inners.contains_key(inner) || self.unkept.contains_key(inner);
        let is_making =
            |asked: &PendingRequest| matches!(asked.what, PendingKind::New { .. } | PendingKind::Fork { .. });
        match (message, self.ordered.as_slice()) {
            (Message::Request { .. }, [_, ..]) if is_known || self.requests.values().any(is_making) => Early::No,
            (Message::Request { .. }, [Some(session)]) => Early::In(Arc::clone(session)),
            (Message::Request { .. }, [_, ..]) => Early::InNone,
            _ => Early::No,
        }
    }

    /// Holds back what the inner agent says of a session that is not known yet. An agent that tells a whole history anew before it answers
    /// is listened to no longer than so.
    fn hold_back(&mut self, message: Message, line: Vec<u8>) {
        if self.strays.len() >= MAX_STRAYS {
            let oldest = self.strays.iter().position(|(message, _)| matches!(message, Message::Notification { .. }));
            oldest.map(|at| self.strays.remove(at));
        }
        self.strays.push_back((message, line));
    }

    /// Keeps the commands of a session that is not known, for when it is.
    fn note_early(&mut self, inner: &str, update: &Value) {
        if update["sessionUpdate"] != "available_commands_update" {
            return;
        }
        // Those that nobody ever asks for are not kept for ever.
        if self.early.len() >= MAX_EARLY {
            self.early.clear();
        }
        self.early.insert(inner.to_owned(), update["availableCommands"].clone());
    }
}

/// What the inner agent asks about a session that it is just making.
enum Early {
    No,
    In(Arc<ProxiedSession>),
    InNone,
}

/// Messages that are held back.
const MAX_STRAYS: usize = 4_096;

/// Sessions of which commands are kept before they are known.
const MAX_EARLY: usize = 64;

/// Tells people something; the editor keeps what an agent writes to stderr.
fn complain(text: &str) {
    use std::io::Write;
    // Nobody may be reading.
    writeln!(std::io::stderr(), "retake acp: {}", escape::one_line(text)).ok();
}
