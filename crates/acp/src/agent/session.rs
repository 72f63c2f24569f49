//! One live session on this connection: the way to it, what is known of it, and what waits for it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use retake_agent::contract::{Command, OperationRef, Reason, Refusal, Reply};
use retake_agent::live::{Asker, LiveError};
use retake_agent::view::View;
use retake_engine::id::EntryId;
use retake_engine::session::entry::{Body, Part};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot, watch};

use super::Version;
use super::host::{Close, McpServer, OpenSession, Parting, WantedSession, Wish};
use super::initialize::Initialized;
use super::options::{self, Permissions};
use super::pump;
use super::shape::update::Updates;
use crate::extension::answer;
use crate::extension::backend::SessionBackend;
use crate::rpc_peer::Peer;
use crate::slash::{Chat, SlashKind};
use crate::wire::RpcError;

/// How long an answer waits for what it is about to be told first. What is told comes from this very machine.
const TELLING: Duration = Duration::from_secs(10);
/// Errands that wait for the pump.
const ERRANDS: usize = 16;

/// A session on this connection.
pub(super) struct Session {
    /// Its id.
    pub(super) id: String,
    /// What the client said of itself.
    pub(super) client: Initialized,
    /// The client.
    pub(super) peer: Peer,
    /// Makes what it is told.
    pub(super) updates: Updates,
    /// The way to the session.
    pub(super) asker: Asker,
    /// Prompts that the client waits for. Locked while one is handed in, so that what comes of it finds it here.
    pub(super) pending: tokio::sync::Mutex<Vec<PendingPrompt>>,
    /// What goes on in its chat beside the conversation.
    pub(super) chat: Chat,
    known: Mutex<SessionState>,
    told: watch::Sender<Delivered>,
    errands: mpsc::Sender<PumpTask>,
    close: Mutex<Option<Close>>,
    /// The directory that it is about, and the servers that the client wants it to have.
    birth: (PathBuf, Vec<McpServer>),
    /// Tells people what the protocol has no place for.
    pub(super) warn: Box<dyn Fn(&str) + Send + Sync>,
}

/// What is known of a session.
#[derive(Clone)]
pub(super) struct SessionState {
    /// How it stands, as far as the client has been told.
    pub(super) view: View,
    /// The prompt whose turn runs.
    pub(super) running: Option<EntryId>,
    /// What may run without being asked about.
    pub(super) permissions: Permissions,
    /// The models that were asked in it, or can be.
    pub(super) models: Vec<String>,
    /// Prompts as they were given on this connection, where their parts do not say it all, and those parts.
    pub(super) given: HashMap<EntryId, (Vec<Value>, Vec<Part>)>,
}

/// How far the client has been told.
#[derive(Clone, Debug, Default)]
pub(super) struct Delivered {
    /// The last operation that moved the head.
    pub(super) operation: Option<OperationRef>,
    /// The head.
    pub(super) head: Option<EntryId>,
    /// The entry before the head, if the head is a note, which an operation may leave.
    pub(super) before_note: Option<EntryId>,
    /// Whether the session is over.
    pub(super) is_over: bool,
}

/// A prompt that the client waits for.
#[derive(Debug)]
pub(super) struct PendingPrompt {
    /// The request to the session.
    pub(super) request: String,
    /// The client's request.
    pub(super) id: Value,
    /// What it says.
    pub(super) parts: Vec<Part>,
    /// Whether the session has taken it.
    pub(super) is_taken: bool,
    /// Whether it was held, because a turn was running.
    pub(super) was_held: bool,
    /// The prompt, once it is said.
    pub(super) prompt: Option<EntryId>,
    /// As it was given, if its parts do not say it all, and those parts.
    pub(super) given: Option<(Vec<Value>, Vec<Part>)>,
}

/// How much of a session the client is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplayExtent {
    /// Its state, and the whole conversation.
    Everything,
    /// Its state alone.
    State,
}

/// What the pump does between events.
pub(super) enum PumpTask {
    /// Send the client the session's state.
    Replay { extent: ReplayExtent, done: oneshot::Sender<()> },
    /// Tell the client nothing more: it does not want to know.
    Leave,
}

impl Session {
    /// Begins to tell the client of a session. With one `before` that was told of until it was over, what was missed since.
    pub(super) fn begin(
        open: OpenSession,
        birth: (PathBuf, Vec<McpServer>),
        client: Initialized,
        peer: Peer,
        before: Option<&Self>,
        warn: impl Fn(&str) + Send + Sync + 'static,
    ) -> Arc<Self> {
        let OpenSession { view, live, close } = open;
        let (errands, wanted) = mpsc::channel(ERRANDS);
        let (known, news) = match before {
            None => (SessionState::of(*view.clone()), None),
            Some(before) => (before.known().clone(), Some(view.clone())),
        };
        let session = Arc::new(Self {
            id: view.session.to_string(),
            client,
            peer,
            updates: Updates { version: client.version, root: view.workspace.clone().into() },
            asker: live.asker,
            pending: tokio::sync::Mutex::default(),
            chat: Chat::new(SlashKind::ALL),
            told: watch::Sender::new(Delivered::of(&known.view, None)),
            known: Mutex::new(known),
            errands,
            close: Mutex::new(Some(close)),
            birth,
            warn: Box::new(warn),
        });
        tokio::spawn(pump::run(Arc::clone(&session), live.told, wanted, news));
        session
    }

    /// What is known of it.
    pub(super) fn known(&self) -> MutexGuard<'_, SessionState> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets how far the client has been told.
    pub(super) fn tell_how_far(&self, told: Delivered) {
        self.told.send_replace(told);
    }

    /// How far the client has been told.
    pub(super) fn how_far(&self) -> Delivered {
        self.told.borrow().clone()
    }

    /// Whether it is over.
    pub(super) fn is_over(&self) -> bool {
        self.told.borrow().is_over
    }

    /// Waits until it is over, for a while.
    pub(super) async fn until_over(&self) {
        tokio::time::timeout(TELLING, self.told.subscribe().wait_for(|told| told.is_over)).await.ok();
    }

    /// What it takes to open it again.
    pub(super) fn again(&self) -> Wish {
        let (cwd, servers) = self.birth.clone();
        Wish { cwd, which: WantedSession::Existing(self.id.clone()), servers }
    }

    /// Tells a state, in version 2.
    pub(super) async fn state(&self, state: &str, more: Map<String, Value>) {
        if let Some(update) = self.updates.state(state, more) {
            self.update(update).await;
        }
    }

    /// Has the client told how the session stands.
    pub(super) async fn replay(&self, extent: ReplayExtent) -> Result<(), RpcError> {
        let (done, told) = oneshot::channel();
        self.errands.send(PumpTask::Replay { extent, done }).await.map_err(|_| self.over())?;
        told.await.map_err(|_| self.over())
    }

    /// Has a command carried out.
    pub(super) async fn ask(&self, command: impl Into<Command>) -> Result<Reply, RpcError> {
        match self.asker.ask(command).await {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(refusal)) => Err(self.refused(&refusal)),
            Err(error) => Err(self.gone(&error)),
        }
    }

    /// Waits until the client has been told that an operation moved the head to `to`, or that it was there already.
    pub(super) async fn until_told(&self, operation: &str, to: Option<EntryId>) {
        // A note may follow.
        let is_told = |told: &Delivered| {
            told.is_over
                || told.operation.as_deref() == Some(operation)
                || told.head == to
                || told.before_note.is_some_and(|before| Some(before) == to)
        };
        let mut told = self.told.subscribe();
        // If it is told never, the answer is better than none.
        tokio::time::timeout(TELLING, told.wait_for(is_told)).await.ok();
    }

    /// Takes a model that is asked now in among those that can be.
    pub(super) fn learn_model(&self, model: &str) {
        let mut known = self.known();
        known.view.model = model.to_owned();
        if !known.models.iter().any(|one| one == model) {
            known.models.push(model.to_owned());
        }
    }

    /// What can be configured, as answers and updates have it.
    pub(super) fn options(&self) -> Value {
        let known = self.known();
        options::options(self.client.version, &known.view.model, &known.models, known.permissions)
    }

    /// What a session is introduced with.
    pub(super) fn introduction(&self) -> Map<String, Value> {
        let mut fields = Map::new();
        fields.insert("configOptions".into(), self.options());
        match self.client.version {
            Version::V1 => fields.insert("modes".into(), options::modes(self.known().permissions)),
            Version::V2 => fields.insert("availableCommands".into(), self.chat.commands(self.client.version).into()),
        };
        fields
    }

    /// Closes it, if this process serves it and nobody else is to keep it. Whoever waits for it is told.
    pub(super) async fn close(&self, parting: Parting) {
        self.chat.stop_asking();
        let close = self.close.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(close) = close {
            close(parting).await;
        }
        // If it is over, there is nothing to leave.
        self.errands.send(PumpTask::Leave).await.ok();
    }

    fn over(&self) -> RpcError {
        self.gone(&LiveError::Ended)
    }

    /// A session that is gone, as clients are told.
    pub(super) fn gone(&self, error: &LiveError) -> RpcError {
        let text = format!("{error}; load it again");
        RpcError::new(RpcError::NOT_FOUND, text).with_reason("ended").with("sessionId", self.id.as_str())
    }

    /// A refusal, as clients are told.
    pub(super) fn refused(&self, refusal: &Refusal) -> RpcError {
        match refusal.reason {
            Reason::Ended => self.over(),
            _ => answer::error(&self.id, refusal),
        }
    }
}

impl SessionState {
    fn of(view: View) -> Self {
        Self {
            models: vec![view.model.clone()],
            running: pump::running(&view),
            view,
            permissions: Permissions::default(),
            given: HashMap::new(),
        }
    }
}

impl Delivered {
    /// What a view that was told means.
    pub(super) fn of(view: &View, operation: Option<OperationRef>) -> Self {
        let note = view.entries.last().filter(|entry| matches!(entry.body, Body::Note { .. }));
        let before_note = note.and_then(|note| note.parent);
        Self { operation, head: view.head(), before_note, is_over: false }
    }
}
