//! The server over real TCP: a session's life, clients that come and go, and those who should not come in.

#![allow(clippy::unwrap_used, missing_docs, unreachable_pub)]

mod attacks;
mod browser;
mod crowd;
mod limits;
mod reconnects;
mod scenarios;
mod session_life;
mod shared_sessions;
mod stage;
mod watcher;
