//! Events to the clients of a session: each gets its number here, is folded into the view that a new client gets, and is kept for a while.
//!
//! Whoever writes a session owns its publisher: the controller, or the proxy for another agent. The conversation is in the writer alone;
//! here are only the ids of the entries that were published, so that a long conversation is not in memory twice. Publishing never waits
//! for a client: one that is too slow attaches again.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use retake_engine::id::EntryId;
use retake_engine::session::entry::{Entry, Part};
use tokio::sync::broadcast;

use crate::contract::{Event, EventKind, OperationRef, State};
use crate::controller::{Attached, Beginning};
use crate::view::View;
use crate::{ids, limits};

/// Publishes the events of a session.
#[derive(Debug)]
pub struct Publisher {
    /// All but the entries.
    view: View,
    entries: Vec<EntryId>,
    kept: VecDeque<Arc<Event>>,
    events: broadcast::Sender<Arc<Event>>,
    last: Arc<AtomicU64>,
    /// The request that events come of now.
    pub request: Option<String>,
}

impl Publisher {
    /// A publisher of a session with this view, whose entries are `entries`.
    pub fn new(view: View, entries: &[Entry]) -> Self {
        // Numbers go on after a restart, so that none is ever given twice: an earlier process had fewer than a thousand events in a
        // millisecond.
        let seq = u64::try_from(ids::now().0).unwrap_or_default() * 1_000;
        Self {
            view: View { seq, entries: Vec::new(), ..view },
            entries: entries.iter().map(|entry| entry.id).collect(),
            kept: VecDeque::new(),
            events: broadcast::channel(limits::KEPT_EVENTS).0,
            last: Arc::new(AtomicU64::new(seq)),
            request: None,
        }
    }

    /// The view, but for the entries.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// The view with all `entries` of the session.
    pub fn view_with(&self, entries: &[Entry]) -> View {
        View { entries: entries.to_vec(), ..self.view.clone() }
    }

    /// The number of the last event, kept up to date.
    pub(crate) fn last(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.last)
    }

    /// Publishes an event. What lasts is on disk by now.
    pub fn publish(&mut self, kind: EventKind) {
        let event = Arc::new(Event { seq: self.view.seq + 1, request: self.request.clone(), kind });
        self.view.apply(&event);
        self.view.entries.clear();
        if self.kept.len() == limits::KEPT_EVENTS {
            self.kept.pop_front();
        }
        self.kept.push_back(Arc::clone(&event));
        self.last.store(event.seq, Ordering::Release);
        // Nobody may be listening.
        self.events.send(event).ok();
    }

    /// Publishes the entries at the end of `now` that were not published.
    pub fn appended(&mut self, now: &[Entry]) {
        for entry in now.get(self.entries.len()..).unwrap_or_default() {
            self.entries.push(entry.id);
            self.publish(EventKind::Appended { entry: entry.clone() });
        }
    }

    /// Publishes that the conversation is `now`, if that is news.
    pub fn head_moved(&mut self, now: &[Entry], operation: Option<OperationRef>) {
        let same = self.entries.iter().zip(now).take_while(|(published, now)| **published == now.id).count();
        if same == now.len() && same == self.entries.len() {
            return;
        }
        self.entries.truncate(same);
        self.entries.extend(now[same..].iter().map(|entry| entry.id));
        let keep = same.checked_sub(1).map(|last| now[last].id);
        self.publish(EventKind::HeadMoved { operation, keep, added: now[same..].to_vec() });
    }

    /// Publishes the draft, if that is news.
    pub fn draft(&mut self, parts: &[Part]) {
        if parts != self.view.draft {
            self.publish(EventKind::DraftChanged { parts: parts.to_vec() });
        }
    }

    /// Publishes the state, if that is news.
    pub fn state(&mut self, state: State) {
        if state != self.view.state {
            self.publish(EventKind::StateChanged { state });
        }
    }

    /// Attaches a client: with the events after number `from` if all of them are kept, else with the view.
    pub fn attach(&self, entries: &[Entry], from: Option<u64>) -> Attached {
        let events = self.events.subscribe();
        let oldest = self.kept.front().map_or(self.view.seq + 1, |event| event.seq);
        let beginning = match from {
            Some(from) if oldest <= from.saturating_add(1) && from <= self.view.seq => {
                Beginning::Missed(self.kept.iter().filter(|event| event.seq > from).cloned().collect())
            }
            _ => Beginning::View(Box::new(self.view_with(entries))),
        };
        Attached { beginning, events }
    }
}
