//! A session as the client knows it, and what is going on in it.
//!
//! Its id and those of its messages never change, whatever the inner agent calls them. [`LiveState`] is what is only true now; what has to
//! survive is in the log and in the session map.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use retake_engine::id::EntryId;
use retake_engine::id::SessionId;
use retake_engine::session::entry::{EndReason, Part};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};

use super::cut::ReplayedHistory;
use super::log_writer::{LogHandle, spoken};
use super::message_ids::{MessageIds, WaitingPrompt};
use super::session_map::{MapFile, MapRecord, Mapping, SessionMap};
use super::shape::Version;
use crate::slash::{Chat, SlashKind};
use crate::wire::Message;

/// A session as the client knows it.
#[derive(Debug)]
pub(super) struct ProxiedSession {
    /// What the client calls it.
    pub(super) outer: String,
    /// What it is in the log.
    pub(super) id: SessionId,
    pub(super) log: LogHandle,
    session_map: Mutex<SessionMap>,
    /// What the client says, in order.
    inbox: mpsc::Sender<(Message, Vec<u8>)>,
    /// Requests in the inbox, and the one that is being taken.
    queued: Mutex<Vec<Value>>,
    live: Mutex<LiveState>,
    /// What goes on in its chat beside the conversation.
    pub(super) chat: Chat,
    /// Whether a turn runs.
    pub(super) running: watch::Sender<bool>,
    /// Whoever changes what is retained, or is about to say something.
    pub(super) changing: tokio::sync::Mutex<()>,
}

/// What is true now.
#[derive(Debug, Default)]
pub(super) struct LiveState {
    /// The session of the inner agent that speaks.
    pub(super) inner: String,
    /// With what the client began it, or loaded it.
    pub(super) birth: Value,
    /// What the client has set since, by what it is about.
    pub(super) settings: Vec<(String, String, Value)>,
    /// The commands that the inner agent offers in it.
    commands: Vec<Value>,
    /// What the inner agent told of the session when it was begun or loaded.
    pub(super) facts: Value,
    /// The prompt of the turn that runs, or ran last.
    pub(super) prompt: Option<EntryId>,
    /// What the client was told that it is called.
    pub(super) prompt_name: Option<String>,
    /// What the inner agent calls it.
    pub(super) prompt_id: Option<String>,
    /// Whether the inner agent has still to be heard of it, or of those that wait.
    is_open: bool,
    /// Version 2: the inner agent has taken it.
    is_taken: bool,
    /// Version 2: the inner agent has come to rest before it has taken all.
    is_idle: bool,
    /// What was said while another turn ran: it becomes a turn when the inner agent comes to it.
    pub(super) waiting: VecDeque<WaitingPrompt>,
    /// Whether the inner agent's conversation may be another than ours.
    pub(super) out_of_step: bool,
    /// What comes with the next prompt, until one was answered: what was said after this entry. Without it, only notes.
    pub(super) due: Option<Option<EntryId>>,
    /// Nobody waits for the end of the turn any more.
    is_left: bool,
    /// The conversation was cut: what still comes of it is late, until the next prompt.
    pub(super) is_muted: bool,
    /// A history is told again that is not passed on.
    pub(super) replay: Option<ReplayedHistory>,
    /// The client is told a history that we do not have yet.
    pub(super) is_importing: bool,
    pub(super) names: MessageIds,
    /// Requests of the inner agent that the client has not answered.
    pub(super) asked: Vec<(Value, String)>,
    /// Its turn is being stopped: the user is asked nothing more.
    pub(super) is_stopping: bool,
    /// Sessions of the inner agent that its process has open.
    pub(super) loaded: HashSet<String>,
    /// Those of them that it has forked and not loaded since.
    pub(super) forked: HashSet<String>,
}

impl ProxiedSession {
    pub(super) fn new(
        outer: String,
        id: SessionId,
        log: LogHandle,
        session_map: SessionMap,
        inbox: mpsc::Sender<(Message, Vec<u8>)>,
    ) -> Self {
        let names = MessageIds::new(session_map.known.outer_ids());
        let live = LiveState { names, inner: session_map.known.current.clone(), ..LiveState::default() };
        let (running, _) = watch::channel(false);
        let queued = Mutex::default();
        Self {
            outer,
            id,
            log,
            session_map: Mutex::new(session_map),
            inbox,
            queued,
            live: Mutex::new(live),
            chat: Chat::new(SlashKind::ANY),
            running,
            changing: tokio::sync::Mutex::default(),
        }
    }

    pub(super) fn live(&self) -> MutexGuard<'_, LiveState> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All that is known of the inner agent's sessions.
    pub(super) fn known(&self) -> Arc<Mapping> {
        Arc::clone(&self.session_map().known)
    }

    pub(super) fn session_map(&self) -> MutexGuard<'_, SessionMap> {
        self.session_map.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes facts down.
    pub(super) fn record(&self, session_map: impl IntoIterator<Item = MapRecord>) {
        let (noted, page) = self.note(session_map);
        write(noted, &page);
    }

    /// Has facts written down before whatever the log writer is told next, and does not wait for it.
    pub(super) fn tie_soon(&self, session_map: impl IntoIterator<Item = MapRecord>) {
        let (noted, page) = self.note(session_map);
        self.log.run(move |_| write(noted, &page));
    }

    /// Writes facts down so that they survive a loss of power.
    pub(super) fn tie_durably(&self, session_map: impl IntoIterator<Item = MapRecord>) -> Result<(), String> {
        let (noted, page) = self.note(session_map);
        noted.and_then(|()| page.sync()).map_err(|error| format!("Retake's store cannot be written: {error}"))
    }

    fn note(&self, session_map: impl IntoIterator<Item = MapRecord>) -> (std::io::Result<()>, Arc<MapFile>) {
        let mut kept = self.session_map();
        (session_map.into_iter().try_for_each(|record| kept.note(record)), kept.page())
    }

    /// Puts what the client says behind all that it has said before; gives it back if too much waits.
    pub(super) fn queue(&self, message: Message, line: Vec<u8>) -> Result<(), (Message, Vec<u8>)> {
        if let Message::Request { id, .. } = &message {
            self.queued().push(id.clone());
        }
        match self.inbox.try_send((message, line)) {
            Err(mpsc::error::TrySendError::Full((message, line))) => {
                if let Message::Request { id, .. } = &message {
                    self.unqueue(id);
                }
                Err((message, line))
            }
            // Whoever takes it ends only with the session.
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => Ok(()),
        }
    }

    /// Whether a request has not gone on yet: what is said of it has to wait behind it.
    pub(super) fn is_queued(&self, request: &Value) -> bool {
        self.queued().contains(request)
    }

    /// A request has gone on, or was answered.
    pub(super) fn unqueue(&self, request: &Value) {
        self.queued().retain(|one| one != request);
    }

    fn queued(&self) -> MutexGuard<'_, Vec<Value>> {
        self.queued.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The inner agent has told its commands: ours make way where they are called the same.
    pub(super) fn note_commands(&self, commands: &Value) {
        let commands = commands.as_array().cloned().unwrap_or_default();
        let names = commands.iter().filter_map(|command| command["name"].as_str().map(str::to_owned));
        self.chat.make_way(names.collect());
        self.live().commands = commands;
    }

    /// All commands: the inner agent's, and ours.
    pub(super) fn commands(&self, version: Version) -> Vec<Value> {
        let own = self.live().commands.clone();
        own.into_iter().chain(self.chat.commands(version)).collect()
    }

    pub(super) fn is_running(&self) -> bool {
        *self.running.borrow()
    }

    /// The inner agent has answered a prompt with the end of its turn (version 1), or has failed at it. Tells when the last snapshot is
    /// taken, if nothing else is under way.
    pub(super) fn answered(self: &Arc<Self>, version: Version, reason: EndReason) -> Option<oneshot::Receiver<()>> {
        let next = {
            let mut live = self.live();
            let next = live.waiting.pop_front();
            let is_another = version == Version::V2 && live.is_taken;
            let is_over = live.waiting.is_empty() && live.is_idle;
            let next = match next {
                // It was one that waited that failed.
                Some(_) if is_another && !is_over => return None,
                Some(_) if is_another => None,
                next => next,
            };
            live.is_open = next.is_some();
            next
        };
        match next {
            Some(next) => {
                self.end_one(reason);
                self.go_on(next);
                None
            }
            None => Some(self.end_turn(reason)),
        }
    }

    /// Version 2: the inner agent has taken a prompt.
    pub(super) fn taken(self: &Arc<Self>) {
        let next = {
            let mut live = self.live();
            let next = if live.is_taken { live.waiting.pop_front() } else { None };
            live.is_taken = true;
            live.is_idle &= next.is_none();
            next
        };
        if let Some(next) = next {
            self.go_on(next);
        }
    }

    /// Version 2: the inner agent has come to rest.
    pub(super) fn rests(self: &Arc<Self>, reason: EndReason) -> Option<oneshot::Receiver<()>> {
        {
            let mut live = self.live();
            live.is_idle = !live.waiting.is_empty();
            if !live.is_idle {
                live.is_open = false;
                drop(live);
                return Some(self.end_turn(reason));
            }
        }
        self.end_one(reason);
        None
    }

    /// A turn has ended, and another one waits.
    fn end_one(self: &Arc<Self>, reason: EndReason) {
        let (session, inner) = (Arc::clone(self), self.live().inner.clone());
        self.log.run(move |log| {
            log.end(reason);
            let head = spoken(log.entries()).last().map(|entry| entry.id);
            session.record([MapRecord::Holds { id: inner, head }]);
        });
    }

    /// The inner agent goes on with what was said while it was at something else; nobody can make it wait for a snapshot now.
    fn go_on(self: &Arc<Self>, next: WaitingPrompt) {
        let WaitingPrompt { prompt, parts, name, id } = next;
        let inner = {
            let mut live = self.live();
            live.prompt = Some(prompt);
            (live.prompt_name, live.prompt_id) = (name, id);
            live.names.begin();
            live.due = None;
            live.inner.clone()
        };
        let session = Arc::clone(self);
        self.log.run(move |log| {
            let (tell, _) = oneshot::channel();
            if let Err(why) = log.begin(prompt, parts, tell) {
                super::complain(&format!("this prompt cannot be gone back to: {why}"));
            }
            session.record([MapRecord::Prompted { id: inner, prompt }, MapRecord::Late { entry: prompt }]);
        });
    }

    /// Lets go of its log, however many still know of it; over when that is done.
    pub(super) fn close(&self) -> oneshot::Receiver<()> {
        let (tell, closed) = oneshot::channel();
        self.log.run(move |log| {
            log.close();
            tell.send(()).ok();
        });
        closed
    }

    /// Nobody waits any more for the turn to end: what the inner agent makes of it is not known.
    pub(super) fn leave_turn(self: &Arc<Self>) {
        self.live().is_left = true;
        drop(self.end_turn(EndReason::Interrupted));
    }

    /// The turn has ended. Tells when its last snapshot is taken: what changes until then is taken for the agent's.
    pub(super) fn end_turn(self: &Arc<Self>, reason: EndReason) -> oneshot::Receiver<()> {
        let (tell, settled) = oneshot::channel();
        if !self.is_running() {
            return settled;
        }
        let (inner, is_known) = {
            let mut live = self.live();
            live.names.interrupt();
            live.is_open = false;
            live.waiting.clear();
            // One that failed at a prompt may not even have heard what came with it.
            let is_known = match &reason {
                EndReason::Failed { .. } => live.due.is_none(),
                _ => !live.is_left,
            };
            if is_known {
                live.due = None;
            }
            (live.inner.clone(), is_known)
        };
        let session = Arc::clone(self);
        self.log.run(move |log| {
            log.end(reason);
            let head = spoken(log.entries()).last().map(|entry| entry.id);
            if is_known {
                session.record([MapRecord::Holds { id: inner, head }]);
            }
            log.workspace_thread().run(move |_| tell.send(()).unwrap_or_default());
        });
        // Whoever waits for this finds the end of it in the log.
        self.running.send_replace(false);
        settled
    }
}

fn write(noted: std::io::Result<()>, page: &MapFile) {
    if let Err(error) = noted.and_then(|()| page.write()) {
        super::complain(&format!("Retake's store cannot be written: {error}"));
    }
}

impl LiveState {
    /// A prompt is about to be sent.
    pub(super) fn begin(&mut self, prompt: EntryId) {
        self.prompt = Some(prompt);
        (self.prompt_name, self.prompt_id) = (None, None);
        self.names.begin();
        self.is_muted = false;
        self.is_left = false;
        (self.is_open, self.is_taken, self.is_idle) = (true, false, false);
    }

    /// Something is said while a turn runs; gives it back if none does.
    pub(super) fn wait(&mut self, prompt: EntryId, parts: Vec<Part>) -> Result<(), Vec<Part>> {
        if !self.is_open {
            return Err(parts);
        }
        self.waiting.push_back(WaitingPrompt { prompt, parts, name: None, id: None });
        Ok(())
    }
}
