//! Snapshots as Merkle trees: comparing them, and what they prove about a path.

pub(crate) mod diff;
pub(crate) mod gaps;
pub(crate) mod presence;
pub(crate) mod uncaptured;

pub use crate::store::tree::{GapKind, Node, NodeKind};
pub use diff::{Change, Changed};
pub use gaps::Gap;
pub use uncaptured::{Difference, LeftOut, UncapturedChange};
