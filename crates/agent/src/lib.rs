//! Runs the turns of a coding agent whose history can be rewound.
//!
//! ```text
//! contract, view, document, diff
//!                  what clients and a session tell each other, and what a client shows     (pure)
//! turn             what happens next                                                       (pure)
//! controller       one thread per session, the only one that writes to it
//! publisher        numbers events and sends them to all clients
//! live             a client's way to a session, in this process or in another one
//! keeper           one thread per workspace: snapshots, plans, rewinds
//! question         what the keeper answers, whoever serves the session
//! mention, attachment
//!                  files beside a prompt
//! listing, files   what there is in a workspace
//! lines, plain     line differences, counts, and text made fit for a terminal               (pure)
//! model, tool, permission, mcp
//! ```
//!
//! Everything that lasts is the engine's; this crate asks models, runs tools, and tells clients what happens. Clients decide nothing.

pub mod attachment;
pub mod contract;
pub mod controller;
pub mod coverage;
pub mod diff;
pub mod document;
mod explore;
pub mod files;
pub mod fresh;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzz;
mod image;
mod instructions;
pub mod keeper;
mod limits;
pub mod lines;
pub mod listing;
pub mod live;
pub mod mcp;
pub mod mention;
pub mod model;
pub mod permission;
pub mod plain;
pub mod publisher;
pub mod question;
pub mod socket;
mod summary;
pub mod tool;
mod turn;
#[cfg(feature = "typescript")]
pub mod typescript;
pub mod view;
