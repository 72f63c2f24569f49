//! A gate that an answer waits at until the test opens it.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::serve::PATIENCE;

/// How often a connection that waits is looked at: whoever asked may have gone.
const LOOK: Duration = Duration::from_millis(2);

/// Stops an answer until it is opened.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<(Mutex<GateState>, Condvar)>);

#[derive(Debug, Default)]
struct GateState {
    openings: usize,
    reached: usize,
}

impl Gate {
    /// A closed one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets one answer pass, now or when it comes.
    pub fn open(&self) {
        self.lock().openings += 1;
        self.0.1.notify_all();
    }

    /// Waits until an answer stands at the gate: all that is before it has been sent.
    pub fn wait_until_reached(&self) {
        let deadline = Instant::now() + PATIENCE;
        let mut state = self.lock();
        while state.reached == 0 {
            assert!(Instant::now() < deadline, "no answer reached the gate");
            state = self.0.1.wait_timeout(state, PATIENCE).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits until it is opened; `false` if whoever asked has gone, which `is_gone` tells.
    pub(super) fn pass(&self, is_gone: impl Fn() -> bool) -> bool {
        let deadline = Instant::now() + PATIENCE;
        let mut state = self.lock();
        state.reached += 1;
        self.0.1.notify_all();
        loop {
            if state.openings > 0 {
                state.openings -= 1;
                state.reached -= 1;
                return true;
            }
            if is_gone() || Instant::now() > deadline {
                state.reached -= 1;
                return false;
            }
            state = self.0.1.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, GateState> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
