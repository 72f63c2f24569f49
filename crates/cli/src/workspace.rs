//! The workspace of a command: where it and its store are, and what its arguments name in it.
//!
//! Owns the lookup of directories and settings ([`context`]), paths, points, and the check for an interrupted rewind.

pub mod context;
pub mod interrupted_rewind;
pub mod paths;
pub mod point;
