//! Connections by which nobody has asked for anything yet who is signed in.
//!
//! Who somebody is can be told only when the head of a request has come. Until then, and if it says nothing, a connection is a stranger's:
//! when there is no place left, the oldest of these makes way. A browser's own head comes at once, so it would have to be overtaken by as
//! many newer strangers as there are places.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::AbortHandle;

/// Whether somebody who is signed in has asked for something by a connection.
#[derive(Clone, Default)]
pub(crate) struct Acquaintance(Arc<AtomicBool>);

impl Acquaintance {
    /// A request has come, of somebody who is known or not.
    pub(crate) fn meet(&self, is_known: bool) {
        self.0.fetch_or(is_known, Ordering::Relaxed);
    }

    fn is_stranger(&self) -> bool {
        !self.0.load(Ordering::Relaxed)
    }
}

/// The connections of strangers, oldest first.
#[derive(Default)]
pub(crate) struct Strangers(VecDeque<(AbortHandle, Acquaintance)>);

impl Strangers {
    /// Somebody has connected.
    pub(crate) fn add(&mut self, task: AbortHandle, met: Acquaintance) {
        // Those that have gone, or are known by now, need not be remembered.
        self.0.retain(|(task, met)| !task.is_finished() && met.is_stranger());
        self.0.push_back((task, met));
    }

    /// Ends the oldest connection of a stranger. Returns whether there was one.
    pub(crate) fn send_oldest_away(&mut self) -> bool {
        while let Some((task, met)) = self.0.pop_front() {
            if met.is_stranger() && !task.is_finished() {
                task.abort();
                return true;
            }
        }
        false
    }
}
