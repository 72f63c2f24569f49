//! Whoever listens on the socket of a session: what they were told, and how they are told more.
//!
//! What is retained is in the log alone; here are only the ids of what was told of it, so that a long conversation is not in memory twice.

use std::path::Path;
use std::sync::Arc;

use retake_agent::contract::{Event, EventKind, OperationRef};
use retake_agent::fresh;
use retake_agent::view::View;
use retake_engine::SessionWriter;
use retake_engine::session::entry::{Entry, EntryId, Part};
use tokio::sync::broadcast;

/// Events that a slow listener may be behind.
const KEPT_EVENTS: usize = 1_024;

/// What listeners were told.
pub(super) struct Telling {
    /// All but the entries.
    view: View,
    told: Vec<EntryId>,
    events: broadcast::Sender<Arc<Event>>,
}

impl Telling {
    /// Of a session that `agent` speaks in.
    pub(super) fn new(writer: &SessionWriter, root: &Path, agent: &str) -> Self {
        let view = View {
            session: writer.id().into(),
            workspace: root.display().to_string(),
            model: agent.to_owned(),
            draft: writer.draft().to_vec(),
            seq: u64::try_from(fresh::now().0).unwrap_or_default() * 1_000,
            ..View::default()
        };
        let told = writer.conversation().entries().iter().map(|entry| entry.id).collect();
        Self { view, told, events: broadcast::channel(KEPT_EVENTS).0 }
    }

    /// How it all stands with these entries, and what happens from now on.
    pub(super) fn attach(&self, entries: &[Entry]) -> (View, broadcast::Receiver<Arc<Event>>) {
        (View { entries: entries.to_vec(), ..self.view.clone() }, self.events.subscribe())
    }

    /// Tells something.
    pub(super) fn tell(&mut self, kind: EventKind) {
        let event = Arc::new(Event { seq: self.view.seq + 1, request: None, kind });
        self.view.apply(&event);
        self.view.entries.clear();
        // Nobody may be listening.
        self.events.send(event).ok();
    }

    /// Tells what `now` has at its end that was not told.
    pub(super) fn tell_appended(&mut self, now: &[Entry]) {
        for entry in now.get(self.told.len()..).unwrap_or_default() {
            self.told.push(entry.id);
            self.tell(EventKind::Appended { entry: entry.clone() });
        }
    }

    /// Tells that `now` is what is retained, if it is not what was told.
    pub(super) fn tell_moved(&mut self, now: &[Entry], operation: Option<OperationRef>) {
        let same = self.told.iter().zip(now).take_while(|(told, now)| **told == now.id).count();
        if same == now.len() && same == self.told.len() {
            return;
        }
        self.told.truncate(same);
        self.told.extend(now[same..].iter().map(|entry| entry.id));
        let keep = same.checked_sub(1).map(|last| now[last].id);
        self.tell(EventKind::HeadMoved { operation, keep, added: now[same..].to_vec() });
    }

    /// Tells what the user is about to say, if it is not what was told.
    pub(super) fn tell_draft(&mut self, parts: &[Part]) {
        if parts != self.view.draft {
            self.tell(EventKind::DraftChanged { parts: parts.to_vec() });
        }
    }
}
