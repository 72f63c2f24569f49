//! The binary as a user meets it: real directories, real git where git matters, a private home and an empty environment.

mod checkpoint;
#[cfg(feature = "faults")]
mod crash;
mod diff;
mod git_apply;
mod help;
mod history;
mod log;
mod sandbox;
mod show;
mod store;
mod surroundings;
mod terminal;
