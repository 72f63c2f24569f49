//! A session as the client knows it, and what is going on in it.
//!
//! Its id and those of its messages never change, whatever the inner agent calls them. [`Live`] is what is only true now; what has to
//! survive is in the log and in the ties.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use retake_agent::fresh;
use retake_engine::SessionId;
use retake_engine::session::entry::{EndReason, EntryId};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};

use super::scribe::{Desk, Voice, spoken};
use super::ties::{Known, Tie, Ties};
use crate::wire::Message;

/// A session as the client knows it.
#[derive(Debug)]
pub(super) struct Session {
    /// What the client calls it.
    pub(super) outer: String,
    /// What it is in the log.
    pub(super) id: SessionId,
    pub(super) desk: Desk,
    ties: Mutex<Ties>,
    /// What the client says, in order.
    pub(super) inbox: mpsc::UnboundedSender<(Message, Vec<u8>)>,
    live: Mutex<Live>,
    /// Whether a turn runs.
    pub(super) running: watch::Sender<bool>,
}

/// What is true now.
#[derive(Debug, Default)]
pub(super) struct Live {
    /// The session of the inner agent that speaks.
    pub(super) inner: String,
    /// With what the client began it, or loaded it.
    pub(super) birth: Value,
    /// What the client has set since, by what it is about.
    pub(super) settings: Vec<(String, String, Value)>,
    /// What the inner agent told of the session when it was begun or loaded.
    pub(super) facts: Value,
    /// The prompt of the turn that runs, or ran last.
    pub(super) prompt: Option<EntryId>,
    /// Whether the inner agent's conversation may be another than ours.
    pub(super) out_of_step: bool,
    /// What comes with the next prompt: what was said after this entry. Without it, only notes.
    pub(super) due: Option<Option<EntryId>>,
    /// The conversation was cut: what still comes of it is late, until the next prompt.
    pub(super) is_muted: bool,
    /// A history is told again that is not passed on; the ids of its messages.
    pub(super) replay: Option<Vec<(Voice, String)>>,
    /// The client is told a history that we do not have yet.
    pub(super) is_importing: bool,
    /// The message that is coming.
    message: Option<Coming>,
    used: HashSet<(Voice, String)>,
    /// Requests of the inner agent that the client has not answered.
    pub(super) asked: Vec<(Value, String)>,
    /// Its turn is being stopped: the user is asked nothing more.
    pub(super) is_stopping: bool,
    /// The list that was last shown, and where the head was.
    pub(super) listed: Option<(Option<EntryId>, Vec<EntryId>)>,
    /// Sessions of the inner agent that its process has open.
    pub(super) loaded: HashSet<String>,
}

#[derive(Debug)]
struct Coming {
    voice: Voice,
    inner: Option<String>,
    entry: EntryId,
    outer: String,
}

/// A message of the inner agent, as the client is told it.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) entry: EntryId,
    pub(super) outer: String,
    /// Set if it has just begun.
    pub(super) tie: Option<Tie>,
}

impl Session {
    pub(super) fn new(
        outer: String,
        id: SessionId,
        desk: Desk,
        ties: Ties,
        inbox: mpsc::UnboundedSender<(Message, Vec<u8>)>,
    ) -> Self {
        let used = ties
            .known
            .outer_ids()
            .flat_map(|id| [Voice::User, Voice::Agent, Voice::Thought].map(|voice| (voice, id.clone())));
        let live = Live { used: used.collect(), inner: ties.known.current.clone(), ..Live::default() };
        let (running, _) = watch::channel(false);
        Self { outer, id, desk, ties: Mutex::new(ties), inbox, live: Mutex::new(live), running }
    }

    pub(super) fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All that is known of the inner agent's sessions.
    pub(super) fn known(&self) -> Known {
        self.ties().known.clone()
    }

    pub(super) fn ties(&self) -> MutexGuard<'_, Ties> {
        self.ties.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes facts down.
    pub(super) fn tie(&self, ties: impl IntoIterator<Item = Tie>) {
        let mut kept = self.ties();
        if let Err(error) = ties.into_iter().try_for_each(|tie| kept.add(tie)) {
            super::complain(&format!("Retake's store cannot be written: {error}"));
        }
    }

    /// Writes facts down so that they survive a loss of power.
    pub(super) fn tie_durably(&self, ties: impl IntoIterator<Item = Tie>) -> Result<(), String> {
        let mut kept = self.ties();
        let added = ties.into_iter().try_for_each(|tie| kept.add(tie)).and_then(|()| kept.sync());
        added.map_err(|error| format!("Retake's store cannot be written: {error}"))
    }

    pub(super) fn is_running(&self) -> bool {
        *self.running.borrow()
    }

    /// The turn has ended. Tells when its last snapshot is taken: what changes until then is taken for the agent's.
    pub(super) fn end_turn(self: &Arc<Self>, reason: EndReason) -> oneshot::Receiver<()> {
        let (tell, settled) = oneshot::channel();
        if !self.running.send_replace(false) {
            return settled;
        }
        let inner = {
            let mut live = self.live();
            live.message = None;
            live.inner.clone()
        };
        let session = Arc::clone(self);
        self.desk.run(move |scribe| {
            scribe.end(reason);
            let head = spoken(scribe.entries()).last().map(|entry| entry.id);
            session.tie([Tie::Holds { id: inner, head }]);
            scribe.keeper().run(move |_| tell.send(()).unwrap_or_default());
        });
        settled
    }
}

impl Live {
    /// The name of a message that the inner agent says more of. It keeps its own if it has one that no other message had.
    pub(super) fn name(&mut self, voice: Voice, id: Option<&str>) -> Named {
        if let Some(coming) = &self.message
            && coming.voice == voice
            && coming.inner.as_deref() == id
        {
            return Named { entry: coming.entry, outer: coming.outer.clone(), tie: None };
        }
        let entry = fresh::entry();
        let free = id.filter(|id| !self.used.contains(&(voice, (*id).to_owned())));
        let outer = free.map_or_else(|| entry.to_string(), str::to_owned);
        self.used.insert((voice, outer.clone()));
        let inner = id.map(str::to_owned);
        let tie = Tie::Message { entry, outer: outer.clone(), inner: self.inner.clone(), id: inner.clone() };
        self.message = Some(Coming { voice, inner, entry, outer: outer.clone() });
        Named { entry, outer, tie: Some(tie) }
    }

    /// The name of the prompt of the turn that runs, now that the inner agent has one for it.
    pub(super) fn name_prompt(&mut self, id: Option<&str>) -> Option<Named> {
        let entry = self.prompt?;
        let free = id.filter(|id| self.used.insert((Voice::User, (*id).to_owned())));
        let outer = free.map_or_else(|| entry.to_string(), str::to_owned);
        let tie = Tie::Message { entry, outer: outer.clone(), inner: self.inner.clone(), id: id.map(str::to_owned) };
        Some(Named { entry, outer, tie: Some(tie) })
    }

    /// Something else than a message has come: the next one is another.
    pub(super) fn interrupt_message(&mut self) {
        if self.message.as_ref().is_some_and(|message| message.inner.is_none()) {
            self.message = None;
        }
    }

    /// A prompt is about to be sent.
    pub(super) fn begin(&mut self, prompt: EntryId) {
        self.prompt = Some(prompt);
        self.message = None;
        self.is_muted = false;
        self.due = None;
    }
}
