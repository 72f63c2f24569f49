//! Rewind: plan what has to change, apply it so that nothing can be lost, recover what was interrupted.
//!
//! ```text
//! plan      what would be done to each path, and why not     (pure; reads only)
//! apply     safety snapshot, durable intent, staged files, swap, verify, commit
//! recover   finishes or takes back what a crash interrupted
//! ```
//!
//! A path is never overwritten unless its present state is in the store, and never deleted unless the target proves that
//! it was not there.

pub(crate) mod apply;
mod chain;
mod contested;
pub(crate) mod converse;
mod displaced;
mod error;
mod exact;
pub(crate) mod files;
mod fingerprint;
mod finish;
pub(crate) mod fork;
mod goal;
mod hidden;
pub(crate) mod judge;
mod last_writes;
pub(crate) mod merge;
mod not_restored;
pub(crate) mod plan;
mod planned;
mod prepare;
pub(crate) mod recover;
mod replaced;
mod request;
mod stage;
pub(crate) mod structure;
mod swap;

use crate::base::id::{CheckpointId, OperationId};
use crate::base::path::WorkspacePath;
use crate::workspace::Workspace;

pub use crate::history::ledger::LedgerItem;
pub use error::RewindError;
pub use fingerprint::{OPEN, with_any_head};
pub use fork::{ForkFate, ForkUse, PlannedFork};
pub use merge::Merged;
pub use not_restored::NotRestored;
pub use planned::{Action, BranchMoved, Conflict, Kept, KeptBecause, Means, Plan, PlannedPath};
pub use recover::{Recovered, RecoveryChoice};
pub use request::{Files, Goal, HeadSeen, NewRewind, OnConflict, RewindRequest};

/// Rewinds of a workspace: going back to a point, undoing and redoing. From [`Workspace::rewinds`] and [`Workspace::rewinds_mut`].
#[derive(Debug)]
pub struct Rewinds<W>(pub(crate) W);

impl Workspace {
    /// Plans of rewinds, and what interrupted ones left.
    pub fn rewinds(&self) -> Rewinds<&Self> {
        Rewinds(self)
    }

    /// Rewinds: apply a plan, undo, redo, recover.
    pub fn rewinds_mut(&mut self) -> Rewinds<&mut Self> {
        Rewinds(self)
    }
}

/// What became of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PathStatus {
    /// It is as planned.
    Done,
    /// It was left alone, as chosen, or because a merge has nothing to take out of it.
    Kept,
    /// It could not be done.
    Failed,
    /// Done, and what somebody saved meanwhile is in the store.
    Displaced,
    /// Somebody has changed it meanwhile, and it is as they left it.
    Overtaken,
}

/// What came of applying a plan.
#[derive(Clone, Debug)]
pub struct Applied {
    /// The plan.
    pub plan: Plan,
    /// The operation; `None` if there was nothing to do.
    pub operation: Option<OperationId>,
    /// Whether the conversation is where it was to go; `None` if that was not asked for.
    pub conversation_moved: Option<bool>,
    /// What became of each path, in the plan's order.
    pub statuses: Vec<(WorkspacePath, PathStatus)>,
    /// The point before.
    pub safety: Option<CheckpointId>,
    /// Files that a program still has open for writing: what it writes from now on goes nowhere.
    pub still_open: Vec<WorkspacePath>,
    /// Temporary names under which something stays that somebody put in a path's place meanwhile and that no store can
    /// hold.
    pub left_over: Vec<WorkspacePath>,
}
