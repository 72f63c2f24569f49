//! Keeps every core busy, so that tests run as they do on a machine with other work.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use super::options::Load;

/// Busy threads, one for each core, until this is dropped.
pub(super) struct Busy {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Busy {
    /// Starts what `load` asks for.
    pub(super) fn start(load: Load) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let count = match load {
            Load::Quiet => 0,
            Load::Busy => thread::available_parallelism().map_or(2, usize::from),
        };
        let work = || {
            let is_over = Arc::clone(&is_over);
            thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    spin_loop();
                }
            })
        };
        Self { threads: (0..count).map(|_| work()).collect(), is_over }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It does nothing that could panic.
            thread.join().ok();
        }
    }
}
