//! The proxy: rewind for any agent that speaks the protocol, in any editor that does.
//!
//! ```text
//! editor ──line──> relay ──> session queue ──> prompt, change, slash ──line──> inner agent
//!        <──line── relay <────────────────────────────────────────────line──
//!                    │ what passes by
//!                    v
//!                  scribe (log) ──> keeper (snapshots, windows, rewinds)
//! ```
//!
//! - `edit` changes single places of a line; every other byte passes as it came. Ids are the inner agent's own for as long as they are
//!   unique: then a line passes whole.
//! - `relay` takes lines of both sides, in order, and waits neither for the inner agent nor for the store, but for the last snapshot of a
//!   turn, a second at most, and while what is to be written gets too much; `route` finds the session that a
//!   message of the client's is about, and has it opened first if need be.
//! - `open` finds or begins the log of a session, `fork` one that begins with what was said in another; `session` is what goes on in one, `naming` what its messages are called, `ties` what of the inner agent belongs to it.
//! - `prompt` has a snapshot taken before a prompt goes on (and waits only so long), `change` rewinds, `cut` cuts the inner conversation.
//! - `extension` is the door for clients and, with the commands in the chat, for people; `serve` is the one for commands of Retake.
//!
//! It never decides what the inner agent or the editor should do, and never changes what they say to each other beyond ids, the commands
//! and the capability that it adds, and what has to be told before a prompt. If the log cannot be kept, the conversation goes on without
//! it; if the inner agent goes, whoever waits for it is told, and the session is there when it comes back.

mod change;
mod cut;
mod edit;
mod extension;
mod fork;
mod inner;
mod naming;
mod open;
mod prompt;
mod relay;
mod replay;
mod route;
mod scribe;
mod serve;
mod session;
mod shape;
mod ties;
mod transcript;
mod watch;

use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use retake_agent::keeper::Keeper;
use retake_agent::socket;
use retake_engine::Environment;
use serde_json::{Value, json};
use tokio::runtime;

use crate::peer::Peer;
use crate::wire::{Message, RpcError};
use cut::Offer;
use relay::Asked;
use route::{Unkept, Waiting};
use session::Session;
use shape::Version;

pub use inner::{Ended, StartError, run};

/// Finds out about the workspace of a directory.
pub type Environments = dyn Fn(&Path) -> Result<Environment, String> + Send + Sync;

/// All that a proxy needs.
pub struct Setup {
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
    /// For a turn to stop that it cancelled, and for the inner agent to end.
    pub stop: Duration,
    /// For a line of the inner agent to be read: what it does meanwhile is still its own.
    pub notice: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            snapshot: Duration::from_secs(5),
            answer: Duration::from_secs(60),
            stop: Duration::from_secs(10),
            notice: Duration::from_millis(50),
        }
    }
}

/// The proxy.
struct Proxy {
    client: Peer,
    agent: Peer,
    setup: Setup,
    /// What the inner agent is called in the log.
    name: String,
    runtime: runtime::Handle,
    state: Mutex<State>,
    offer: Mutex<Offer>,
    /// Whoever passes on what the inner agent says.
    order: tokio::sync::Mutex<()>,
    /// Threads that have something to store before the process ends.
    threads: Mutex<Vec<thread::JoinHandle<()>>>,
}

/// What is true now.
#[derive(Default)]
struct State {
    version: Version,
    /// Whether the inner agent has answered `initialize`.
    is_greeted: bool,
    /// Whether the client wants to be told that history was cut.
    wants: bool,
    /// Version 1: sessions can be resumed and not loaded.
    resumes_only: bool,
    /// By what the client calls them.
    sessions: HashMap<String, Arc<Session>>,
    /// By what the inner agent calls them: those that its process has made or loaded, those that only keep a point to go back to included.
    inners: HashMap<String, Arc<Session>>,
    /// What is said in sessions that are being opened.
    opening: HashMap<String, Waiting>,
    /// Sessions that have no log.
    unkept: HashMap<String, Unkept>,
    /// Requests of the client that the inner agent has not answered.
    requests: HashMap<String, Asked>,
    /// How many sessions are about to be known.
    expected: usize,
    /// What the inner agent said of sessions that are not known yet.
    strays: VecDeque<(Message, Vec<u8>)>,
    keepers: HashMap<PathBuf, (Keeper, PathBuf)>,
    /// By what the client calls their sessions.
    served: HashMap<String, socket::Served>,
    is_gone: bool,
}

/// Somebody is about to make a session known; what the inner agent says of it waits until then.
struct Expecting {
    proxy: Arc<Proxy>,
    is_over: bool,
}

impl Proxy {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn offers(&self) -> MutexGuard<'_, Offer> {
        self.offer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn offer(&self) -> Offer {
        *self.offers()
    }

    /// With what an inner session is begun, loaded or forked.
    fn birth(&self, session: &Session) -> Value {
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
        match tokio::time::timeout(self.setup.patience.answer, self.agent.request(method, params)).await {
            Ok(answer) => answer,
            Err(_) => Err(RpcError::new(RpcError::INTERNAL, format!("the agent does not answer `{method}`"))
                .with_reason("silence")),
        }
    }

    /// Holds back what the inner agent says of sessions that are not known.
    fn expect(self: &Arc<Self>) -> Expecting {
        self.state().expected += 1;
        Expecting { proxy: Arc::clone(self), is_over: false }
    }

    /// Tells the client something about a session.
    async fn update(&self, session: &Session, update: Value) {
        let params = json!({ "sessionId": session.outer, "update": update });
        // A client that is gone needs to be told nothing.
        self.client.notify("session/update", params).await.ok();
    }
}

impl Expecting {
    /// The session is known, or will never be: what was held back goes on. Boxed, because what goes on may make another one known.
    fn end(mut self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.is_over = true;
        Box::pin(release(Arc::clone(&self.proxy)))
    }
}

impl Drop for Expecting {
    fn drop(&mut self) {
        if !self.is_over {
            // Nobody made it known; what was held back may be of another one, which waits for it.
            self.proxy.runtime.spawn(release(Arc::clone(&self.proxy)));
        }
    }
}

/// One session less is expected: after the last one, what was held back goes on.
async fn release(proxy: Arc<Proxy>) {
    let _order = proxy.order.lock().await;
    let strays = {
        let mut state = proxy.state();
        state.expected -= 1;
        match state.expected {
            0 => std::mem::take(&mut state.strays),
            _ => VecDeque::new(),
        }
    };
    for (message, line) in strays {
        proxy.pass_to_client(message, line).await;
    }
}

impl State {
    /// Holds back what the inner agent says of a session that is not known yet. An agent that tells a whole history anew before it answers
    /// is listened to no longer than so.
    fn hold_back(&mut self, message: Message, line: Vec<u8>) {
        if self.strays.len() >= MAX_STRAYS {
            let oldest = self.strays.iter().position(|(message, _)| matches!(message, Message::Notification { .. }));
            oldest.map(|at| self.strays.remove(at));
        }
        self.strays.push_back((message, line));
    }
}

/// Messages that are held back.
const MAX_STRAYS: usize = 4_096;

/// Tells people something; the editor keeps what an agent writes to stderr.
fn complain(text: &str) {
    use std::io::Write;
    // Nobody may be reading.
    writeln!(std::io::stderr(), "retake acp: {text}").ok();
}
