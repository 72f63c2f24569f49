//! The agent over real HTTP, in real directories, with real processes.
#![allow(clippy::unwrap_used, reason = "a test that fails says so by panicking")]

mod scene;
mod session;
