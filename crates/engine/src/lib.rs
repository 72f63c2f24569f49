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

mod care;
mod checkpoint;
mod fault;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzz;
pub mod git;
mod guard;
mod id;
pub mod limits;
mod operation;
mod owner;
mod path;
mod place;
pub mod regular;
mod rewind;
mod scan;
pub mod session;
mod settings;
mod snapshot;
mod store;
mod take;
mod view;
mod workspace;

pub use care::{Collectable, Collected, Footprint, PurgeError, Purged, SelfTestError, UnderWay};
pub use checkpoint::{Checkpoint, CheckpointError, InvalidLabel, NewCheckpoint, Origin, ResolveError, check_label};
pub use git::{GitAction, GitState, GlobalExcludes};
pub use id::{CheckpointId, InvalidObjectId, ObjectId, OperationId, SessionId, SnapshotId};
pub use operation::{MadeBy, Operation, OperationError, OperationKind, OperationState};
pub use owner::{
    Began, Certainty, Claim, Counts, Coverage, FileTime, NewSession, NewWindow, Owner, PartOf, PathChange, Reach, Runs,
    Session, SessionKind, Span, Spans, Window, WindowId,
};
pub use path::{InvalidPath, WorkspacePath};
pub use place::OpenError;
pub use rewind::{
    Action, Applied, BranchMoved, Conflict, Discard, Files, ForkFate, ForkUse, Goal, HeadSeen, Kept, KeptBecause,
    LedgerItem, Means, Merged, NewRewind, NotRestored, OPEN, OnConflict, PathStatus, Plan, PlannedFork, PlannedPath,
    Recovered, RecoveryChoice, RewindError, RewindRequest, with_any_head,
};
pub use scan::{NoProgress, Phase, Progress, ScanError, Step, WatchState};
pub use session::entry::EntryId;
pub use session::{ForkElsewhere, ForkError, Forked, ForkedFrom, NewFork, Point, Scope, SessionError, SessionWriter};
pub use settings::{Breadth, Environment, Settings, Timestamp};
pub use snapshot::aside::Gap;
pub use snapshot::beside::{Difference, LeftOut, UncapturedChange};
pub use snapshot::diff::{Change, Changed};
pub use snapshot::tree::{GapKind, Kind, Node};
pub use store::{Damage, Durability, StoreError};
pub use view::{Beside, ContentError, Current, Side};
pub use workspace::{Integrity, Usage, Verified, Workspace};
