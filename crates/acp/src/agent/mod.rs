//! Retake's agent as an ACP agent: one connection, any number of sessions.
//!
//! ```text
//! host        what the program around it provides: sessions by directory
//! connection  reads, and hands every message to whom it concerns
//! initialize  versions and capabilities
//! session     one live session on this connection, and what waits for it
//!   pump      what the session tells, in order, as updates and answers
//!   prompt    saying something, cancelling
//!   backend   the session as the extension and the chat commands use it
//!   options   model and permissions as configuration
//! shape       how things look on the wire: content, calls, updates, in both versions   (pure)
//! ```
//!
//! What a session tells is written by its pump only, in the order in which it was told, so an answer never overtakes what it is
//! about. Whatever takes long runs beside the reading.

mod backend;
mod connection;
mod host;
mod initialize;
mod options;
mod params;
mod prompt;
mod pump;
mod session;
mod shape;

pub use connection::serve;
pub use host::{Close, Host, HostError, ListedSession, McpServer, OpenSession, Parting, WantedSession, Wish};

pub(crate) use crate::extension::Version;
