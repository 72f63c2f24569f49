//! One session's events for all its clients: the folded view and the last events, each serialised once.
//!
//! ```text
//!   session ──► take ──►  view + the last events  ──► read(seen) ──► client
//! ```
//!
//! Clients pull: each keeps only the number of the last event that it was sent, and reads what followed when it can take more. A slow client
//! therefore costs no memory. A client that is new, or that asks for events which are no longer kept, gets the whole view.
//!
//! The buffer never waits for a client and never drops the session's end: that is the last chunk of every client.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use retake_agent::contract::{Event, State as Activity};
use retake_agent::live::{LiveError, Notification};
use retake_agent::view::View;
use serde::Serialize;
use tokio::sync::watch;

use crate::limits::{self, Limits};

/// What the clients of a session are told.
pub(crate) struct EventBuffer {
    state: Mutex<BufferState>,
    /// Changes with everything there is to tell.
    news: watch::Sender<()>,
    kept_events: usize,
    kept_bytes: usize,
}

struct BufferState {
    view: View,
    /// Events in order, as they are sent.
    kept: VecDeque<(u64, Bytes)>,
    kept_bytes: usize,
    /// A whole view as it is sent, and the last event that is in it.
    whole: Option<(u64, Bytes)>,
    /// The last word.
    over: Option<Bytes>,
}

/// What there is for a client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Chunk {
    /// This.
    More(Bytes),
    /// This, and then nothing ever.
    Last(Bytes),
    /// Nothing yet.
    Nothing,
}

/// Why there is nothing more, for programs and for people.
#[derive(Serialize)]
struct EndNotice<'a> {
    reason: &'a str,
    message: String,
}

impl EventBuffer {
    pub(crate) fn new(view: View, limits: &Limits) -> Self {
        let state = BufferState { view, kept: VecDeque::new(), kept_bytes: 0, whole: None, over: None };
        let (kept_events, kept_bytes) = (limits.kept_events, limits.kept_bytes);
        Self { state: Mutex::new(state), news: watch::Sender::new(()), kept_events, kept_bytes }
    }

    fn lock(&self) -> MutexGuard<'_, BufferState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what the session tells.
    pub(crate) fn take(&self, told: Notification) {
        let mut state = self.lock();
        match told {
            Notification::Event(event) => state.add(&event, self.kept_events, self.kept_bytes),
            Notification::Missed(view) => {
                state.view = *view;
                state.kept.clear();
                (state.kept_bytes, state.whole) = (0, None);
            }
            Notification::Over(error) => state.over = Some(last_word(&error)),
        }
        drop(state);
        self.news.send_replace(());
    }

    /// Tells when there is something new.
    pub(crate) fn news(&self) -> watch::Receiver<()> {
        self.news.subscribe()
    }

    /// What there is for a client that was given everything up to event number `seen`, which moves on; everything, if that is not known.
    pub(crate) fn read(&self, seen: &mut Option<u64>) -> Chunk {
        let mut state = self.lock();
        match seen.filter(|seen| state.knows(*seen)) {
            Some(known) if known < state.view.seq => {
                let (last, piece) = state.since(known);
                *seen = Some(last);
                Chunk::More(piece)
            }
            Some(_) => state.over.clone().map_or(Chunk::Nothing, Chunk::Last),
            None => {
                let (last, piece) = state.whole();
                *seen = Some(last);
                Chunk::More(piece)
            }
        }
    }

    /// The number of the last event.
    pub(crate) fn seq(&self) -> u64 {
        self.lock().view.seq
    }

    /// Whether there is nothing more to tell.
    pub(crate) fn is_over(&self) -> bool {
        self.lock().over.is_some()
    }

    /// Whether anything goes on that somebody may come back for: a turn, a question, a background job.
    pub(crate) fn is_busy(&self) -> bool {
        let state = self.lock();
        state.view.state == Activity::Running
            || !state.view.questions.is_empty()
            || state.view.jobs.iter().any(|job| job.ended.is_none())
    }
}

impl BufferState {
    fn add(&mut self, event: &Event, most_events: usize, most_bytes: usize) {
        self.view.apply(event);
        let frame = frame("event", Some(event.seq), event);
        self.kept_bytes += frame.len();
        self.kept.push_back((event.seq, frame));
        while self.kept.len() > most_events || self.kept_bytes > most_bytes {
            let Some((_, gone)) = self.kept.pop_front() else { break };
            self.kept_bytes -= gone.len();
        }
        if self.whole.as_ref().is_some_and(|(seq, _)| seq + limits::VIEW_AGE < event.seq || !self.knows(*seq)) {
            self.whole = None;
        }
    }

    /// Whether everything after event number `seen` is kept.
    fn knows(&self, seen: u64) -> bool {
        let oldest = self.kept.front().map_or(self.view.seq + 1, |(seq, _)| *seq);
        oldest <= seen.saturating_add(1) && seen <= self.view.seq
    }

    /// What came after event number `seen`, as much as is sent at once, and the last event of it.
    fn since(&self, seen: u64) -> (u64, Bytes) {
        let start = self.kept.partition_point(|(seq, _)| *seq <= seen);
        let (mut last, mut length, mut count) = (seen, 0, 0);
        for (seq, frame) in self.kept.range(start..) {
            if count > 0 && length + frame.len() > limits::BATCH {
                break;
            }
            (last, length, count) = (*seq, length + frame.len(), count + 1);
        }
        if count == 1 {
            return (last, self.kept[start].1.clone());
        }
        let mut bytes = Vec::with_capacity(length);
        self.kept.range(start..start + count).for_each(|(_, frame)| bytes.extend_from_slice(frame));
        (last, bytes.into())
    }

    fn whole(&mut self) -> (u64, Bytes) {
        let view = &self.view;
        self.whole.get_or_insert_with(|| (view.seq, frame("view", Some(view.seq), view))).clone()
    }
}

fn last_word(error: &LiveError) -> Bytes {
    let reason = match error {
        LiveError::Ended => "ended",
        LiveError::Died => "died",
        LiveError::Unreachable { .. } | LiveError::TurnedAway(_) => "unreachable",
    };
    frame("ended", None, &EndNotice { reason, message: error.to_string() })
}

/// `event: …`, `id: …`, `data: …` and an empty line.
fn frame(event: &str, id: Option<u64>, data: &impl Serialize) -> Bytes {
    let mut bytes = format!("event: {event}\n").into_bytes();
    if let Some(id) = id {
        bytes.extend_from_slice(format!("id: {id}\n").as_bytes());
    }
    bytes.extend_from_slice(b"data: ");
    // Compact JSON has no line ends.
    serde_json::to_writer(&mut bytes, data).expect("what came as JSON, or could have, can be written as JSON");
    bytes.extend_from_slice(b"\n\n");
    bytes.into()
}

#[cfg(test)]
mod tests;
