//! Whole files: reading, writing, moving and deleting them.
//!
//! Owns how files get on and off the disk; what an edit changes in one is the affair of [`edit`](super::edit).

mod kind;
mod read;
mod remove;
mod seen_files;
mod subtree;
mod write;
mod write_in_place;

pub(crate) use read::READ;
pub(crate) use remove::{DELETE, MOVE};
pub(crate) use seen_files::{SeenFiles, ShownContent};
pub(crate) use write::WRITE;
pub(crate) use write_in_place::put;
