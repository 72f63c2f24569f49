//! The trait [`SessionBackend`]: what the extension and the chat commands need of a session and its client.
//!
//! Retake's own agent implements it in `agent::backend`, the proxy in `proxy::backend`. The methods of the extension decide nothing: a
//! backend that cannot do something returns the session's refusal.

use std::path::PathBuf;

use retake_agent::contract::{Change, Command, Refusal, Reply, SeenHead, WhileRunning};
use retake_agent::rewind_document::RewindDocument;
use retake_engine::id::EntryId;
use retake_engine::session::entry::{Entry, Part};
use serde_json::{Value, json};

use super::Version;
use super::answer::Snapshot;
use crate::rpc_peer::Peer;
use crate::slash::Chat;

/// A session that can be gone back in. Retake's own agent has one, and so has the proxy.
pub(crate) trait SessionBackend: Send + Sync {
    /// What is spoken with the client.
    fn version(&self) -> Version;

    /// What the client calls the session.
    fn session(&self) -> &str;

    /// The client.
    fn client(&self) -> &Peer;

    /// What was shown in its chat, and what is being asked there.
    fn chat(&self) -> &Chat;

    /// Whether a turn runs.
    fn is_busy(&self) -> bool;

    /// What is retained, and where the workspace is.
    fn standing(&self) -> impl Future<Output = SessionContents> + Send;

    /// Has a question answered, or a command carried out that is no change.
    fn ask(&self, command: Command) -> impl Future<Output = Result<Reply, Refusal>> + Send;

    /// Makes a change. When this is over, the client has been told what it means for what it shows.
    fn apply(&self, wanted: ChangeRequest) -> impl Future<Output = Result<AppliedChange, Refusal>> + Send;

    /// Begins a new session from an entry: before it if it is a prompt, else after it.
    fn fork(&self, entry: EntryId) -> impl Future<Output = Result<Fork, Refusal>> + Send;

    /// What the client calls an entry.
    fn name_of(&self, entry: EntryId) -> String;

    /// The entries that the client calls so: a message may be several.
    fn entries(&self, name: &str) -> Vec<EntryId>;

    /// Whether the snapshot before a prompt was complete in time.
    fn snapshot_of(&self, prompt: EntryId) -> Snapshot;

    /// The content blocks that a prompt was given as, or that its parts are.
    fn content(&self, prompt: Option<EntryId>, parts: &[Part]) -> impl Future<Output = Vec<Value>> + Send;

    /// Tells the client something about the session. One that is gone needs not to know.
    fn update(&self, update: Value) -> impl Future<Output = ()> + Send {
        async move {
            let params = json!({ "sessionId": self.session(), "update": update });
            self.client().notify("session/update", params).await.ok();
        }
    }

    /// Tells a state, in version 2.
    fn tell_state(&self, state: &str) -> impl Future<Output = ()> + Send {
        async move {
            if self.version() == Version::V2 {
                self.update(json!({ "sessionUpdate": "state_update", "state": state })).await;
            }
        }
    }
}

/// How a session stands.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionContents {
    /// What is retained.
    pub(crate) entries: Vec<Entry>,
    /// The workspace.
    pub(crate) root: PathBuf,
}

/// A session that was forked from another.
#[derive(Clone, Debug)]
pub(crate) struct Fork {
    /// What the client calls it.
    pub(crate) name: String,
    /// The command that opens it where the client does not.
    pub(crate) command: Option<String>,
}

/// A change that is wanted.
#[derive(Clone, Debug)]
pub(crate) struct ChangeRequest {
    pub(crate) change: Change,
    /// Where the head was seen: it is refused if it is somewhere else.
    pub(crate) head_seen: Option<SeenHead>,
    /// The fingerprint of the plan that was seen: it is refused if it would come to something else by now.
    pub(crate) plan_seen: Option<String>,
    pub(crate) running: WhileRunning,
}

/// A change that was made.
#[derive(Clone, Debug)]
pub(crate) struct AppliedChange {
    pub(crate) document: Box<RewindDocument>,
    /// How another agent's conversation was cut, if it was.
    pub(crate) strategy: Option<&'static str>,
    /// What the user has to know of that.
    pub(crate) warnings: Vec<String>,
}
