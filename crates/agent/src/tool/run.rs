//! Running the work of a call where it belongs: on a thread that may wait for the disk.
//!
//! A reader is given up at once when the call is interrupted, and told to stop. A writer is not: it takes moments, and a file that is
//! half written would be worse than one moment more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

use super::{Output, Run};

/// Tells a reader that nobody waits for it any more.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Whether to stop.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Sets the stop when the call's future ends or is dropped.
struct StopOnDrop(Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// Runs work that only reads.
pub(crate) fn reading(work: impl FnOnce(&Stop) -> Output + Send + 'static) -> Run {
    Box::new(|surroundings| {
        Box::pin(async move {
            let stop = Stop::default();
            let _guard = StopOnDrop(stop.clone());
            let work = tokio::task::spawn_blocking(move || work(&stop));
            tokio::select! {
                biased;
                () = interruption(surroundings.interrupted) => Output::interrupted("Interrupted by the user."),
                output = work => finished(output),
            }
        })
    })
}

/// Runs work that changes files; an interruption comes before it or after it.
pub(crate) fn writing(work: impl FnOnce() -> Output + Send + 'static) -> Run {
    Box::new(|surroundings| {
        Box::pin(async move {
            if *surroundings.interrupted.borrow() {
                return Output::interrupted("Interrupted by the user before anything was changed.");
            }
            finished(tokio::task::spawn_blocking(work).await)
        })
    })
}

/// Gives an answer that is already known.
pub(crate) fn answering(output: Output) -> Run {
    Box::new(|_| Box::pin(async move { output }))
}

/// Ends when the call is to end at once; never, if nobody can tell.
pub(crate) async fn interruption(mut interrupted: watch::Receiver<bool>) {
    if interrupted.wait_for(|is| *is).await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn finished(output: Result<Output, tokio::task::JoinError>) -> Output {
    output.unwrap_or_else(|error| Output::failed(format!("The tool broke off: {error}. This is a bug of Retake.")))
}
