//! Snapshots as Merkle trees, and comparing them.

pub(crate) mod aside;
pub(crate) mod beside;
pub(crate) mod diff;
pub(crate) mod known;
pub(crate) mod lay_out;
pub(crate) mod tree;
