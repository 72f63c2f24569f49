//! Connections without a login, oldest first.
//!
//! The server knows a client only when the head of a request with a cookie has arrived. Until then the connection is unauthenticated. When
//! all connections are in use, the server closes the oldest unauthenticated one. A browser sends its head at once, so an attacker would
//! have to open as many connections as there are places in that moment to displace it.
//!
//! Never closes a connection that has sent a valid cookie. If all connections have, there is nothing to close and the new one is rejected.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OwnedSemaphorePermit;
use tokio::task::AbortHandle;

/// Whether a connection has carried a request with a valid cookie.
#[derive(Clone, Default)]
pub(crate) struct LoginState(Arc<AtomicBool>);

impl LoginState {
    /// A request with a valid cookie has arrived.
    pub(crate) fn log_in(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_unauthenticated(&self) -> bool {
        !self.0.load(Ordering::Relaxed)
    }
}

/// The place that a connection has, until it ends or makes way.
#[derive(Clone)]
pub(crate) struct ConnectionPlace(Arc<Mutex<Option<OwnedSemaphorePermit>>>);

impl ConnectionPlace {
    pub(crate) fn new(permit: OwnedSemaphorePermit) -> Self {
        Self(Arc::new(Mutex::new(Some(permit))))
    }

    /// The connection gives its place up. `None` if it had done so before.
    pub(crate) fn give_up(&self) -> Option<OwnedSemaphorePermit> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn is_given_up(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }
}

/// The connections of strangers, oldest first.
#[derive(Default)]
pub(crate) struct Unauthenticated(VecDeque<(AbortHandle, LoginState, ConnectionPlace)>);

impl Unauthenticated {
    /// Somebody has connected.
    pub(crate) fn add(&mut self, task: AbortHandle, met: LoginState, place: ConnectionPlace) {
        // Those that have gone, or are known by now, need not be remembered.
        self.0.retain(|(_, met, place)| !place.is_given_up() && met.is_unauthenticated());
        self.0.push_back((task, met, place));
    }

    /// Ends the oldest connection of a stranger and returns its place. The place changes hands here: a connection that is just ending has
    /// no place to give, so that nobody waits for one that somebody else has taken.
    pub(crate) fn send_oldest_away(&mut self) -> Option<OwnedSemaphorePermit> {
        while let Some((task, met, place)) = self.0.pop_front() {
            if met.is_unauthenticated()
                && let Some(permit) = place.give_up()
            {
                task.abort();
                return Some(permit);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Semaphore;

    use super::*;

    #[tokio::test]
    async fn a_connection_that_is_ending_has_no_place_to_give() {
        let places = Arc::new(Semaphore::new(3));
        let mut unauthenticated = Unauthenticated::default();
        let mut connect = || {
            let place = ConnectionPlace::new(Arc::clone(&places).try_acquire_owned().expect("there is one"));
            let met = LoginState::default();
            let task = tokio::spawn(std::future::pending::<()>());
            unauthenticated.add(task.abort_handle(), met.clone(), place.clone());
            (task, met, place)
        };
        let (mut ending, mut known, mut silent) = (connect(), connect(), connect());
        drop(ending.2.give_up());
        known.1.log_in();
        let taken = Arc::clone(&places).try_acquire_owned();
        assert!(taken.is_ok(), "somebody else has the place of the one that is ending");
        assert!(unauthenticated.send_oldest_away().is_some(), "the silent one makes way");
        assert!((&mut silent.0).await.is_err_and(|err| err.is_cancelled()));
        assert!(unauthenticated.send_oldest_away().is_none(), "nobody else does");
        assert!(!ending.0.is_finished() && !known.0.is_finished());
        ending.0.abort();
        known.0.abort();
        assert!((&mut ending.0).await.is_err() && (&mut known.0).await.is_err());
    }
}
