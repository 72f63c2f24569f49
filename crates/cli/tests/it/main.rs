//! The binary as a user meets it: real directories, real git where git matters, a private home and an empty environment.

mod acp;
mod agent;
mod checkpoint;
mod closed_output;
mod context;
#[cfg(feature = "faults")]
mod crash;
mod damage;
mod diff;
mod doctor;
mod documents;
mod exec;
mod export;
mod first_use;
mod footprint;
mod foreign_changes;
mod full_disk;
mod git_apply;
mod help;
mod history;
#[cfg(target_os = "linux")]
mod interrupt;
mod kill;
mod ledger;
mod log;
mod not_restored;
mod odd_input;
mod permissions;
mod promises;
mod purge;
mod questions;
#[cfg(feature = "faults")]
mod recover;
mod rewind;
mod rewind_kill;
mod sandbox;
mod show;
mod stale_plan;
mod store;
mod terminal;
mod tui;
mod undo;
