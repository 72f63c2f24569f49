//! Retake's agent as an ACP agent: one connection, any number of sessions.
//!
//! ```text
//! host        what the program around it provides: sessions by directory
//! connection  reads, and hands every message to whom it concerns
//! greeting    versions and capabilities
//! session     one live session on this connection, and what waits for it
//!   pump      what the session tells, in order, as updates and answers
//!   prompt    saying something, cancelling
//!   rewind    the extension: points, rewind, edit, undo, redo
//!   slash     the same for clients that know nothing of it, in plain chat
//!   options   model and permissions as configuration
//! shape       how things look on the wire: content, calls, updates, in both versions   (pure)
//! ```
//!
//! What a session tells is written by its pump only, in the order in which it was told, so an answer never overtakes what it is
//! about. Whatever takes long runs beside the reading.

mod connection;
mod greeting;
mod host;
mod options;
mod params;
mod prompt;
mod pump;
mod rewind;
mod session;
mod shape;
mod slash;

pub use connection::serve;
pub use host::{Close, Host, HostError, Listed, McpServer, Open, Wanted, Wish};

pub(crate) use crate::extension::Version;
