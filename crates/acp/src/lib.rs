//! Retake in editors: the Agent Client Protocol over stdio, versions 1 and 2, with rewind as an extension.
//!
//! ```text
//! wire    lines, and messages on them                  (knows no method)
//! rpc_peer  the other side: requests to it and their answers
//! agent   `retake acp`: Retake's own agent             (a client of live sessions)
//! proxy   `retake acp -- CMD`: rewind for another agent
//! extension  the methods of rewind, for both of them
//! slash      the same as commands in the chat, for both of them
//! editor_setup  the settings that start Retake in an editor  (pure)
//! ```
//!
//! The messages are JSON values that small types of our own pick apart and put together: what we send is checked against the schemas of
//! the published packages by the tests, and what passes through the proxy stays as it came. Nothing here decides anything about a
//! session: its controller does, and what it tells is translated.

pub mod agent;
pub mod editor_setup;
mod extension;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzz;
pub mod proxy;
pub mod rpc_peer;
mod slash;
pub mod wire;
