//! Retake in editors: the Agent Client Protocol over stdio, versions 1 and 2, with rewind as an extension.
//!
//! ```text
//! wire    lines, and messages on them                  (knows no method)
//! peer    the other side: questions to it and answers
//! agent   `retake acp`: Retake's own agent             (a client of live sessions)
//! proxy   `retake acp -- CMD`: rewind for another agent
//! extension  the methods of rewind, for both of them
//! slash      the same as commands in the chat, for both of them
//! setup   what editors have to be told                 (pure)
//! ```
//!
//! The messages are JSON values that small types of our own pick apart and put together: what we send is checked against the schemas of
//! the published packages by the tests, and what passes through the proxy stays as it came. Nothing here decides anything about a
//! session: its controller does, and what it tells is translated.

pub mod agent;
mod extension;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzz;
pub mod peer;
pub mod proxy;
pub mod setup;
mod slash;
pub mod wire;
