//! Retake in editors: the Agent Client Protocol over stdio, versions 1 and 2, with rewind as an extension.
//!
//! The messages are JSON values that small types of our own pick apart and put together: what we send is checked against the schemas of
//! the published packages by the tests, and what passes through the proxy stays as it came.

pub mod peer;
pub mod proxy;
pub mod wire;
