//! Output: how results are written for people and for programs.
//!
//! Owns the terminal and the pager ([`ui`]), the JSON documents, and the wording of times, sizes, names, gaps, differences and forks. It
//! decides nothing and changes nothing in a store; a write that fails is an [`ui::OutputError`].

pub mod diff;
pub mod fork_links;
pub mod gaps;
pub mod json;
pub mod messages;
mod pager;
pub mod path_history;
pub mod progress;
pub mod quote;
pub mod size;
pub mod time;
pub mod ui;
