//! History: checkpoints, who changed what between them, and the operations that can be undone.
//!
//! ```text
//! checkpoint     a point to go back to, finding it again
//! capture        taking one: scan, make room, attribute (attribution), commit
//! owner          who changed what: windows, spans, verdicts
//! operation      what can be undone and redone
//! intent         what an operation is about to do to the files
//! sessions       who works in the workspace, and what was forked from what
//! turn_summary   what a turn did to the files, and beside them (outside_effects, ledger)
//! retention      what may go, and what something still needs
//! verify, compare, past_rules   what is on disk now, and what a checkpoint proves
//! ```

mod attribution;
pub(crate) mod capture;
pub(crate) mod checkpoint;
pub(crate) mod codes;
pub(crate) mod compare;
pub(crate) mod intent;
pub(crate) mod ledger;
pub(crate) mod lineage;
pub(crate) mod operation;
mod outside_effects;
pub(crate) mod owner;
pub(crate) mod past_rules;
pub(crate) mod retention;
pub(crate) mod session_lock;
pub(crate) mod sessions;
pub(crate) mod turn_summary;
pub(crate) mod verify;
