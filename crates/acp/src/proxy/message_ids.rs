//! The ids of messages: the client has one id for each, whatever the inner agent calls it and however it sends it.
//!
//! A message of the inner agent is identified by its role and its id within a turn. It may continue after a tool or a thought, and in
//! version 2 the agent may send it anew. A message without an id ends where something else begins. The log is append-only, so a continuation
//! is an entry of its own with the same client id; the log writer decides where an entry begins.

use std::collections::{HashMap, HashSet};

use retake_agent::ids;
use retake_engine::id::EntryId;
use retake_engine::session::entry::Part;

use super::log_writer::Voice;
use super::session::LiveState;
use super::session_map::MapRecord;

/// The messages of the turn, and all names that were ever given.
#[derive(Debug, Default)]
pub(super) struct MessageIds {
    used: HashSet<(Voice, String)>,
    /// By what the inner agent calls them.
    messages: HashMap<(Voice, String), NamedMessage>,
    /// One that has no id and may go on.
    nameless: Option<(Voice, NamedMessage)>,
    /// Who spoke last.
    last: Option<Voice>,
}

#[derive(Clone, Debug)]
struct NamedMessage {
    entry: EntryId,
    outer: String,
}

/// What was said while another turn ran.
#[derive(Debug)]
pub(super) struct WaitingPrompt {
    pub(super) prompt: EntryId,
    pub(super) parts: Vec<Part>,
    /// What the client was told that it is called.
    pub(super) name: Option<String>,
    /// What the inner agent calls it.
    pub(super) id: Option<String>,
}

/// A message of the inner agent, as the client is told it.
#[derive(Debug)]
pub(super) struct Named {
    /// Its first entry.
    pub(super) entry: EntryId,
    pub(super) outer: String,
    /// Set if it has just begun.
    pub(super) record: Option<MapRecord>,
}

impl MessageIds {
    /// Those that the client knows already are not given again.
    pub(super) fn new<'a>(used: impl Iterator<Item = &'a String>) -> Self {
        let all = used.flat_map(|id| [Voice::User, Voice::Agent, Voice::Thought].map(|voice| (voice, id.clone())));
        Self { used: all.collect(), ..Self::default() }
    }

    /// A turn begins, in which ids may come again that were in another.
    pub(super) fn begin(&mut self) {
        self.messages.clear();
        (self.nameless, self.last) = (None, None);
    }

    /// Something else than a message has come: without an id the next one is another.
    pub(super) fn interrupt(&mut self) {
        self.nameless = None;
    }

    /// One that the inner agent says more of, if it has begun.
    fn find(&mut self, voice: Voice, id: Option<&str>) -> Option<NamedMessage> {
        let last = self.last.replace(voice);
        // Who speaks after the agent begins a turn, in a history that is told too.
        if voice == Voice::User && last != Some(Voice::User) {
            self.begin();
            self.last = Some(voice);
        }
        match id {
            Some(id) => {
                self.nameless = None;
                self.messages.get(&(voice, id.to_owned())).cloned()
            }
            None => self.nameless.clone().filter(|(of, _)| *of == voice).map(|(_, message)| message),
        }
    }

    /// A new one keeps its id if no other has it.
    fn give(&mut self, voice: Voice, id: Option<&str>) -> NamedMessage {
        let entry = ids::entry();
        let outer = self.free(voice, id).unwrap_or_else(|| entry.to_string());
        self.used.insert((voice, outer.clone()));
        let message = NamedMessage { entry, outer };
        match id {
            Some(id) => drop(self.messages.insert((voice, id.to_owned()), message.clone())),
            None => self.nameless = Some((voice, message.clone())),
        }
        message
    }

    /// An id, if it can be a name; it is taken from now on.
    fn free(&mut self, voice: Voice, id: Option<&str>) -> Option<String> {
        id.filter(|id| self.used.insert((voice, (*id).to_owned()))).map(str::to_owned)
    }
}

impl LiveState {
    /// The name of a message that the inner agent says more of.
    pub(super) fn name(&mut self, voice: Voice, id: Option<&str>) -> Named {
        if let Some(NamedMessage { entry, outer }) = self.names.find(voice, id) {
            return Named { entry, outer, record: None };
        }
        let NamedMessage { entry, outer } = self.names.give(voice, id);
        let record =
            MapRecord::Message { entry, outer: outer.clone(), inner: self.inner.clone(), id: id.map(str::to_owned) };
        Named { entry, outer, record: Some(record) }
    }

    /// The name of the prompt of the turn that runs, now that the inner agent has one for it, or of one that waits if that has another id.
    /// It keeps the first that it was told by.
    pub(super) fn name_prompt(&mut self, id: Option<&str>) -> Option<Named> {
        let is_other = self.prompt_id.as_deref().is_some_and(|known| id.is_some_and(|id| id != known));
        let is_it = |one: &&mut WaitingPrompt| one.id.is_none() || one.id.as_deref() == id;
        let waiting = self.waiting.iter_mut().filter(|_| is_other).find(is_it);
        let (entry, name, known) = match waiting {
            Some(WaitingPrompt { prompt, name, id, .. }) => (*prompt, name, id),
            None => (self.prompt?, &mut self.prompt_name, &mut self.prompt_id),
        };
        if known.is_none() {
            *known = id.map(str::to_owned);
        }
        let names = &mut self.names;
        let outer =
            name.get_or_insert_with(|| names.free(Voice::User, id).unwrap_or_else(|| entry.to_string())).clone();
        let record =
            MapRecord::Message { entry, outer: outer.clone(), inner: self.inner.clone(), id: id.map(str::to_owned) };
        Some(Named { entry, outer, record: Some(record) })
    }
}
