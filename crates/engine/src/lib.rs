//! Exact, crash-safe snapshots of a directory.
//!
//! This is the engine of Retake: it captures everything below a directory, however it was changed, and tells exactly what
//! differs between any two moments. It is blocking code without network, terminal, environment or clock: whatever it needs
//! to know is passed in, so a program of any kind can use it.
//!
//! ```
//! use retake_engine::checkpoint::NewCheckpoint;
//! use retake_engine::id::CheckpointId;
//! use retake_engine::progress::NoProgress;
//! use retake_engine::view::Side;
//! use retake_engine::{Breadth, Durability, Environment, Settings, Timestamp, Workspace};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let scratch = tempfile::tempdir()?;
//! # let (project, data_dir) = (scratch.path().join("project"), scratch.path().join("data"));
//! # std::fs::create_dir(&project)?;
//! std::fs::write(project.join("a.txt"), "one\n")?;
//! let mut workspace = Workspace::open_or_create(Environment {
//!     root: project.clone(),
//!     data_dir,
//!     global_excludes: None,
//!     homes: vec![],
//!     breadth: Breadth::Guarded,
//!     settings: Settings::default(),
//!     threads: 2,
//! })?;
//! let now = Timestamp(1_790_000_000_000);
//! let new = NewCheckpoint { id: CheckpointId::new(now, [7; 10]), at: now, label: Some("start".into()) };
//! let start = workspace.checkpoints_mut().take(new, Durability::Synced, &NoProgress)?;
//!
//! std::fs::write(project.join("a.txt"), "two\n")?;
//! let current = workspace.current(&NoProgress)?;
//! let changes = workspace.diff(&Side::Stored(start.snapshot), &Side::Now(&current))?;
//! assert_eq!(changes[0].path.display().to_string(), "a.txt");
//! # Ok(())
//! # }
//! ```
//!
//! Open a [`Workspace`], then ask it for what you need:
//!
//! | handle | module | what it does |
//! |---|---|---|
//! | [`checkpoints`](Workspace::checkpoints), [`checkpoints_mut`](Workspace::checkpoints_mut) | [`checkpoint`] | takes, labels and finds points to go back to |
//! | [`windows`](Workspace::windows) | [`window`] | brackets tool calls, so that changes are attributed to them |
//! | [`changes`](Workspace::changes) | [`changes`] | who changed what |
//! | [`sessions`](Workspace::sessions), [`sessions_mut`](Workspace::sessions_mut) | [`session`] | conversations and forks |
//! | [`operations`](Workspace::operations) | [`operation`] | what can be undone and redone |
//! | [`rewinds`](Workspace::rewinds), [`rewinds_mut`](Workspace::rewinds_mut) | [`rewind`] | plans, applies and recovers rewinds |
//! | [`maintenance`](Workspace::maintenance), [`maintenance_mut`](Workspace::maintenance_mut) | [`maintenance`] | cleans up, purges secrets, checks the store |
//!
//! A handle without `_mut` only looks. The directory `examples` has small programs that run.

mod base;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzz;
pub mod git;
mod history;
pub mod maintenance;
pub mod rewind;
mod scan;
pub mod session;
pub mod snapshot;
mod store;
mod workspace;

pub use base::path::{InvalidPath, WorkspacePath};
pub use base::settings::{Breadth, Environment, GlobalExcludes, Settings, Timestamp};
pub use base::{id, limits, plain_file, progress};
pub use scan::{ScanError, WatchState};
pub use store::{Durability, StoreError};
pub use workspace::Workspace;
pub use workspace::location::OpenError;

pub mod checkpoint {
    //! Checkpoints: points to go back to.

    pub use crate::history::checkpoint::{
        Checkpoint, CheckpointError, Checkpoints, InvalidLabel, NewCheckpoint, Origin, ResolveError, check_label,
    };
    pub use crate::history::verify::Verified;
}

pub mod view {
    //! Looking at a snapshot, or at what is on disk now, without changing anything.

    pub use crate::history::compare::Beside;
    pub use crate::workspace::view::{ContentError, Current, Side};
}

pub mod changes {
    //! Who changed what between checkpoints.

    pub use crate::history::owner::{Certainty, Changes, Coverage, Owner, PathChange};
}

pub mod window {
    //! Tool calls: what changes while a window is open is attributed to it.

    pub use crate::history::owner::{
        Began, Claim, Counts, FileTime, NewWindow, PartOf, Reach, Runs, Span, Spans, Window, WindowId, Windows,
    };
}

pub mod operation {
    //! Operations: what can be undone and redone.

    pub use crate::history::operation::{MadeBy, Operation, OperationError, OperationKind, OperationState, Operations};
}
