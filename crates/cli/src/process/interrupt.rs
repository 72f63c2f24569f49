//! Ctrl-C and SIGTERM during long work: the first one asks it to stop, the second one ends the program.
//!
//! Handlers are installed when such work begins for the first time, and stay. While no work listens, [`ASKED`] is up, and a signal that
//! finds it so does what it does to a program without handlers. Nothing is lost then either: every command can be killed at any moment.
//!
//! While another program runs in our place, signals are its: see [`Passing`].

use std::io;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::{Handle, Signals};
use signal_hook::low_level::unregister;

/// Whether to stop; up whenever no work listens.
static ASKED: LazyLock<Arc<AtomicBool>> = LazyLock::new(|| Arc::new(AtomicBool::new(true)));

/// The signal that asked, or zero.
static SIGNAL: LazyLock<Arc<AtomicUsize>> = LazyLock::new(Arc::default);

/// What [`install`] has installed; empty if it has not, or signals are passed on.
static INSTALLED: Mutex<Vec<SigId>> = Mutex::new(Vec::new());

/// Work that listens: as long as this lives, the first signal only asks.
#[derive(Debug)]
pub struct Listening(());

impl Listening {
    pub fn begin() -> Self {
        install();
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

/// A program runs in our place: as long as this lives, no signal ends us.
///
/// What is typed on the terminal reaches the program by itself, for it is in our process group; SIGTERM and SIGHUP, which are sent to
/// a single process, are passed on.
#[derive(Debug)]
pub struct Passing {
    to: Arc<Mutex<Receiver>>,
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

/// Who gets signals.
#[derive(Debug)]
enum Receiver {
    /// Not known yet; these wait for it.
    Awaited(Vec<Signal>),
    Running(Pid),
    Gone,
}

impl Passing {
    pub fn begin() -> io::Result<Self> {
        let mut signals = Signals::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP])?;
        for id in std::mem::take(&mut *locked(&INSTALLED)) {
            unregister(id);
        }
        let to = Arc::new(Mutex::new(Receiver::Awaited(Vec::new())));
        let (handle, receiver) = (signals.handle(), Arc::clone(&to));
        let thread = thread::spawn(move || {
            for signal in signals.forever() {
                match signal {
                    SIGTERM => locked(&receiver).pass(Signal::TERM),
                    SIGHUP => locked(&receiver).pass(Signal::HUP),
                    _ => {}
                }
            }
        });
        Ok(Self { to, handle, thread: Some(thread) })
    }

    /// Waits for the program, which has just been started.
    pub fn wait_for(&self, mut child: Child) -> io::Result<ExitStatus> {
        let mut receiver = locked(&self.to);
        let earlier = std::mem::replace(&mut *receiver, Receiver::Running(Pid::from_child(&child)));
        if let Receiver::Awaited(signals) = earlier {
            signals.into_iter().for_each(|signal| receiver.pass(signal));
        }
        drop(receiver);
        let ended = child.wait();
        *locked(&self.to) = Receiver::Gone;
        ended
    }
}

impl Receiver {
    fn pass(&mut self, signal: Signal) {
        match self {
            Self::Awaited(signals) => signals.push(signal),
            // If it has just ended, it needs no signal.
            Self::Running(process) => drop(kill_process(*process, signal)),
            Self::Gone => {}
        }
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        self.handle.close();
        // It has nothing more to do and cannot fail.
        self.thread.take().map(JoinHandle::join);
        // Signals do nothing for a moment, which is better than to end us now.
        install();
    }
}

/// What a shell shows as the exit code of a program that the signal received has ended; `None` if there was none.
pub fn exit_code() -> Option<u8> {
    match SIGNAL.load(Ordering::Relaxed) {
        0 => None,
        signal => u8::try_from(128 + signal).ok(),
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn install() {
    let mut installed = locked(&INSTALLED);
    if !installed.is_empty() {
        return;
    }
    for signal in [SIGINT, SIGTERM] {
        let number = usize::try_from(signal).expect("signals have positive numbers");
        // Actions run in this order: the first signal finds nobody asking yet. Without them the first signal ends the program.
        let actions = [
            flag::register_conditional_default(signal, Arc::clone(&ASKED)),
            flag::register_usize(signal, Arc::clone(&SIGNAL), number),
            flag::register(signal, Arc::clone(&ASKED)),
        ];
        installed.extend(actions.into_iter().flatten());
    }
}
