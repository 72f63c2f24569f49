//! A scripted model: a real HTTP server that answers what the test wrote down, in any of three wire formats.
//!
//! ```
//! # use retake_testkit::ScriptedModel;
//! # use serde_json::json;
//! let model = ScriptedModel::start();
//! model.says("I will look.").calls("read_file", json!({"path": "a.txt"}));
//! model.thinks("hmm").says("done");
//! # model.clear();
//! ```
//!
//! Each request takes one answer, in order. The server checks requests as strictly as the real ones do and refuses what they would
//! refuse; a request that nobody expected is answered with 417. Both are held against the code under test by
//! [`ScriptedModel::assert_exhausted`]. Ids differ in every answer and every run, so no test can come to depend on them.
//!
//! It runs on threads of its own. Waiting for it blocks: from an async test, wait on a runtime with several threads.

mod answer;
mod anthropic;
mod check;
mod gate;
mod http;
mod openai;
mod received;
mod responses;
mod script;
mod serve;

use std::net::TcpListener;
use std::sync::Arc;

pub use answer::{Answer, Stop, Tokens};
pub use gate::Gate;
pub use http::Split;
pub use received::{Received, Wire};
pub use script::Scripting;
use serde_json::Value;
use serve::{ServerState, Shared};

/// A model that answers by a script.
pub struct ScriptedModel {
    shared: Arc<Shared>,
    port: u16,
}

impl ScriptedModel {
    /// Starts one whose script is still empty.
    pub fn start() -> Self {
        Self::serve(None)
    }

    /// Starts one whose answers depend on the request.
    pub fn answering(answer: impl Fn(&Received) -> Answer + Send + Sync + 'static) -> Self {
        Self::serve(Some(Box::new(answer)))
    }

    fn serve(answerer: Option<serve::Answerer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port on the loopback device");
        let port = listener.local_addr().expect("a bound listener has an address").port();
        let shared = Arc::new(Shared::new(answerer));
        serve::accept_in_background(listener, &shared);
        Self { shared, port }
    }

    /// Where it is; works as the base URL of every wire format.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// A base URL at which nothing listens.
    pub fn refusing_url() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port on the loopback device");
        format!("http://{}", listener.local_addr().expect("a bound listener has an address"))
    }

    /// Cuts the bytes of all later answers up in this way.
    pub fn splits(&self, split: Split) {
        self.shared.lock().split = split;
    }

    /// From now on checks nothing and keeps only the newest request: for benches, whose conversations are long.
    pub fn hurries(&self) {
        self.shared.lock().hurries = true;
    }

    /// From now on also answers what it has to complain of: for clients that others wrote, which do what only their own servers take.
    pub fn tolerates(&self) {
        self.shared.lock().tolerates = true;
    }

    /// Adds an answer that says `text`; more can be chained. It counts once the statement ends.
    pub fn says(&self, text: &str) -> Scripting<'_> {
        self.script().says(text)
    }

    /// Adds an answer that thinks `text` first.
    pub fn thinks(&self, text: &str) -> Scripting<'_> {
        self.script().thinks(text)
    }

    /// Adds an answer that calls a tool.
    #[allow(clippy::needless_pass_by_value, reason = "a literal in a scene reads better without a reference")]
    pub fn calls(&self, tool: &str, arguments: Value) -> Scripting<'_> {
        self.script().calls(tool, arguments)
    }

    /// Adds an answer that says `pieces` one by one; each after the first waits until the gate is opened once more.
    pub fn says_slowly<const N: usize>(&self, pieces: [&str; N]) -> Gate {
        let gate = Gate::new();
        let mut script = self.script();
        for (at, piece) in pieces.into_iter().enumerate() {
            script = if at > 0 { script.waits_for(&gate) } else { script };
            script = script.says(piece);
        }
        gate
    }

    /// Adds a failure.
    pub fn fails_with(&self, status: u16, body: &str) -> Scripting<'_> {
        self.script().with(|answer| answer.fails_with(status, body))
    }

    /// Adds an answer of exactly these bytes, for what only some servers do.
    pub fn streams(&self, events: &str) -> Scripting<'_> {
        self.script().with(|answer| answer.streams(events))
    }

    /// Adds a connection that is closed without a word.
    pub fn hangs_up(&self) {
        self.answers(Answer::default().hangs_up());
    }

    /// Adds an answer.
    pub fn answers(&self, answer: Answer) {
        self.shared.lock().queue.push_back(answer);
    }

    /// Forgets the answers that nobody asked for yet.
    pub fn clear(&self) {
        self.shared.lock().queue.clear();
    }

    fn script(&self) -> Scripting<'_> {
        Scripting::new(self)
    }

    /// Every request so far, those that were refused included; the newest only after [`ScriptedModel::hurries`].
    pub fn requests(&self) -> Vec<Received> {
        self.shared.lock().received.clone()
    }

    /// The newest request; panics if there is none.
    pub fn last_request(&self) -> Received {
        self.requests().pop().expect("no request was made")
    }

    /// Waits until `n` requests were made, and gives the `n`th.
    pub fn wait_for_request(&self, n: usize) -> Received {
        assert!(n > 0, "requests are counted from one");
        let find = |state: &ServerState| state.received.get(n.checked_sub(1 + state.forgotten)?).cloned();
        self.shared.wait_until(&format!("{n} requests"), find)
    }

    /// Waits until `n` connections were closed by the other side in the middle of an answer.
    pub fn wait_for_hang_up(&self, n: usize) {
        self.shared.wait_until(&format!("{n} hang-ups"), |state| (state.hang_ups >= n).then_some(()));
    }

    /// How many connections were made.
    pub fn connections(&self) -> usize {
        self.shared.lock().connections
    }

    /// What the server had to refuse, and why.
    pub fn complaints(&self) -> Vec<String> {
        self.shared.lock().complaints.clone()
    }

    /// Panics if an answer was not asked for, a request not expected, or one refused.
    pub fn assert_exhausted(&self) {
        let state = self.shared.lock();
        assert!(state.complaints.is_empty(), "the model had to complain: {:#?}", state.complaints);
        assert!(state.queue.is_empty(), "answers that nobody asked for: {:#?}", state.queue);
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        self.shared.stop(self.port);
    }
}
