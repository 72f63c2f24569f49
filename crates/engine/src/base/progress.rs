//! Progress of long work, and how its caller cancels it.

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Listing directories.
    Listing,
    /// Reading and storing files.
    Reading,
    /// Finding out what checkpoints hold.
    Marking,
    /// Rewriting stored objects.
    Packing,
    /// Checking stored objects.
    Checking,
    /// Writing files.
    Writing,
}

/// How far it has come.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// What it is doing.
    pub phase: Phase,
    /// Files done in this phase; checkpoints or objects where it is about those.
    pub done: u64,
    /// How many there are in this phase, once that is known.
    pub total: Option<u64>,
}

/// Where progress goes, and where a cancel comes from. Called from several threads, often: be quick.
pub trait Progress: Sync {
    /// Takes notice of a step.
    fn report(&self, step: Step);

    /// Takes notice of a file's content, so many bytes, that was read.
    fn took_in(&self, _bytes: u64) {}

    /// Whether to stop as soon as possible.
    fn cancelled(&self) -> bool {
        false
    }
}

/// Progress that nobody watches.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoProgress;

impl Progress for NoProgress {
    fn report(&self, _step: Step) {}
}
