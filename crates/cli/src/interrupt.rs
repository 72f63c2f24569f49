//! Ctrl-C and SIGTERM during long work: the first one asks it to stop, the second one ends the program.
//!
//! Handlers are installed when such work begins for the first time, and stay. While no work listens, [`ASKED`] is up, and a signal that
//! finds it so does what it does to a program without handlers. Nothing is lost then either: every command can be killed at any moment.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// Whether to stop; up whenever no work listens.
static ASKED: LazyLock<Arc<AtomicBool>> = LazyLock::new(|| Arc::new(AtomicBool::new(true)));

/// The signal that asked, or zero.
static SIGNAL: LazyLock<Arc<AtomicUsize>> = LazyLock::new(Arc::default);

/// Work that listens: as long as this lives, the first signal only asks.
#[derive(Debug)]
pub struct Listening(());

impl Listening {
    pub fn begin() -> Self {
        static INSTALLED: LazyLock<()> = LazyLock::new(install);
        LazyLock::force(&INSTALLED);
        ASKED.store(false, Ordering::Relaxed);
        Self(())
    }

    pub fn is_asked_to_stop(&self) -> bool {
        ASKED.load(Ordering::Relaxed)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        ASKED.store(true, Ordering::Relaxed);
    }
}

/// What a shell shows as the exit code of a program that the signal received has ended; `None` if there was none.
pub fn exit_code() -> Option<u8> {
    match SIGNAL.load(Ordering::Relaxed) {
        0 => None,
        signal => u8::try_from(128 + signal).ok(),
    }
}

fn install() {
    for signal in [SIGINT, SIGTERM] {
        let number = usize::try_from(signal).expect("signals have positive numbers");
        // Actions run in this order: the first signal finds nobody asking yet.
        let installed = flag::register_conditional_default(signal, Arc::clone(&ASKED))
            .and_then(|_| flag::register_usize(signal, Arc::clone(&SIGNAL), number))
            .and_then(|_| flag::register(signal, Arc::clone(&ASKED)));
        // Without them the first signal ends the program.
        installed.ok();
    }
}
