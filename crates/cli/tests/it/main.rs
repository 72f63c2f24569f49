//! The binary as a user meets it: real directories, real git where git matters, a private home and an empty environment.

mod acp;
mod agent;
mod ask;
mod checkpoint;
#[cfg(feature = "faults")]
mod crash;
mod damage;
mod denied;
mod diff;
mod doctor;
mod documents;
mod exec;
mod export;
mod footprint;
mod full;
mod git_apply;
mod help;
mod history;
#[cfg(target_os = "linux")]
mod interrupt;
mod kill;
mod ledger;
mod log;
mod not_restored;
mod odd;
mod output;
mod purge;
#[cfg(feature = "faults")]
mod recover;
mod rewind;
mod rewind_kill;
mod sandbox;
mod seen;
mod show;
mod store;
mod story;
mod surroundings;
mod terminal;
mod tui;
mod undo;
mod way_back;
mod yours;
