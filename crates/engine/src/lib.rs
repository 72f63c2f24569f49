//! Exact, crash-safe snapshots of a directory.
//!
//! This is the engine of Retake: it captures everything below a directory, however it was changed, and tells exactly what
//! differs between any two moments. It is blocking code without network, terminal, environment or clock: whatever it needs
//! to know is passed in, so a program of any kind can use it.
//!
//! ```
//! use retake_engine::*;
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
//! let start = workspace.checkpoint(new, Durability::Synced, &NoProgress)?;
//!
//! std::fs::write(project.join("a.txt"), "two\n")?;
//! let current = workspace.current(&NoProgress)?;
//! let changes = workspace.diff(&Side::Stored(start.snapshot), &Side::Now(&current))?;
//! assert_eq!(changes[0].path.display().to_string(), "a.txt");
//! # Ok(())
//! # }
//! ```
//!
//! Reading order: [`Workspace`] is the door; `scan` finds out what is on disk; `snapshot` is what it looks like as trees;
//! `store` keeps it.

mod base;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzz;
pub mod git;
mod history;
mod maintenance;
mod rewind;
mod scan;
pub mod session;
mod snapshot;
mod store;
mod workspace;

pub use base::id::{CheckpointId, EntryId, InvalidObjectId, ObjectId, OperationId, SessionId, SnapshotId};
pub use base::path::{InvalidPath, WorkspacePath};
pub use base::progress::{NoProgress, Phase, Progress, Step};
pub use base::settings::{Breadth, Environment, GlobalExcludes, Settings, Timestamp};
pub use base::{limits, plain_file as regular};
pub use git::{GitAction, GitState};
pub use history::checkpoint::{
    Checkpoint, CheckpointError, InvalidLabel, NewCheckpoint, Origin, ResolveError, check_label,
};
pub use history::compare::Beside;
pub use history::ledger::LedgerItem;
pub use history::operation::{MadeBy, Operation, OperationError, OperationKind, OperationState};
pub use history::owner::{
    Began, Certainty, Claim, Counts, Coverage, FileTime, NewWindow, Owner, PartOf, PathChange, Reach, Runs, Span,
    Spans, Window, WindowId,
};
pub use history::sessions::{ForkElsewhere, ForkedFrom, NewSession, Session, SessionKind};
pub use history::verify::Verified;
pub use maintenance::{
    Collectable, Collected, Footprint, Integrity, PurgeError, Purged, SelfTestError, UnderWay, Usage,
};
pub use rewind::{
    Action, Applied, BranchMoved, Conflict, Files, ForkFate, ForkUse, Goal, HeadSeen, Kept, KeptBecause, Means, Merged,
    NewRewind, NotRestored, OPEN, OnConflict, PathStatus, Plan, PlannedFork, PlannedPath, Recovered, RecoveryChoice,
    RewindError, RewindRequest, with_any_head,
};
pub use scan::{ScanError, WatchState};
pub use session::{Discard, ForkError, Forked, NewFork, Point, Scope, SessionError, SessionWriter};
pub use snapshot::diff::{Change, Changed};
pub use snapshot::gaps::Gap;
pub use snapshot::uncaptured::{Difference, LeftOut, UncapturedChange};
pub use store::tree::{GapKind, Kind, Node};
pub use store::{Damage, Durability, StoreError};
pub use workspace::Workspace;
pub use workspace::location::OpenError;
pub use workspace::view::{ContentError, Current, Side};
