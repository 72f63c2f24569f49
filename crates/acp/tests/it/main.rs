//! The protocol, tried from outside.

#![allow(clippy::unwrap_used, missing_docs, unreachable_pub)]

mod proxy;
