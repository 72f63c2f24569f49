//! The server over real TCP: a session's life, clients that come and go, and those who should not come in.

#![allow(clippy::unwrap_used, missing_docs, unreachable_pub)]

mod attacks;
mod browser;
mod comings;
mod crowd;
mod doors;
mod life;
mod limits;
mod stage;
mod together;
mod watcher;
