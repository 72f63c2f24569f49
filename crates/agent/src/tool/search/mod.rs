//! Finding things: `list_dir`, `glob` and `grep`.
//!
//! All three see the same files: those that the ignore rules of git leave, hidden ones included, version-control directories never.
//! Results come in the order of their paths and are bounded; a bound that was reached is said.

mod glob;
mod grep;
mod list;
mod matches;
mod walk;

pub(crate) use glob::GLOB;
pub(crate) use grep::GREP;
pub(crate) use list::LIST;
