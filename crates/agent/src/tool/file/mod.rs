//! Whole files: reading, writing, moving and deleting them.
//!
//! Owns how files get on and off the disk; what an edit changes in one is the affair of [`edit`](super::edit).

mod kind;
mod put;
mod read;
mod remove;
mod seen;
mod tree;
mod write;

pub(crate) use put::put;
pub(crate) use read::READ;
pub(crate) use remove::{DELETE, MOVE};
pub(crate) use seen::{Seen, Told};
pub(crate) use write::WRITE;
