//! Retake's agent as editors see it, and the proxy around other agents: real sessions on a scripted model, every message held against the protocol's schemas.

#![allow(clippy::unwrap_used, missing_docs, unreachable_pub)]

mod bad_input;
mod catch_up;
mod client;
mod configure;
mod host;
mod prompt;
mod proxy;
mod rewind;
mod scenarios;
mod sessions;
mod slash;
mod tools;
