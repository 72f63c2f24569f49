//! Runs the turns of a coding agent whose history can be rewound.
//!
//! ```text
//! contract, view, rewind_document, diff
//!                  what clients and a session tell each other, and what a client shows     (pure)
//! turn             what happens next                                                       (pure)
//! controller       one thread per session, the only one that writes to it
//! publisher        numbers events and sends them to all clients
//! live             a client's way to a session, in this process or in another one
//! workspace_thread one thread per workspace: snapshots, plans, rewinds
//! query            answers clients' queries on the workspace thread
//! mention, attachment
//!                  files beside a prompt
//! listing, path_search
//!                  sessions, points and files of a workspace
//! line_diff, escape
//!                  line differences; text made safe for a terminal                       (pure)
//! model, tool, permission, mcp
//! ```
//!
//! Everything that lasts is the engine's; this crate asks models, runs tools, and tells clients what happens. Clients decide nothing.

pub mod attachment;
pub mod contract;
pub mod controller;
pub mod diff;
pub mod escape;
mod explore;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzz;
pub mod ids;
pub mod ignore_warnings;
mod image;
mod instructions;
mod limits;
pub mod line_diff;
pub mod listing;
pub mod live;
pub mod mcp;
pub mod mention;
pub mod model;
pub mod path_search;
pub mod permission;
pub mod publisher;
pub mod query;
pub mod rewind_document;
pub mod socket;
mod summary;
pub mod tool;
mod turn;
#[cfg(feature = "typescript")]
pub mod typescript;
pub mod view;
pub mod workspace_thread;
