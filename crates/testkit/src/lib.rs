//! What Retake's tests share: a naive reference to compare with, random trees, git fixtures, a scripted model, ways to make things go
//! wrong, and scenarios that every kind of client goes through.
//!
//! Nothing here knows the engine: the reference would prove nothing if it shared code with what it checks, and the engine could not
//! use this crate in its own tests. Everything works on real directories through the operating system.
//!
//! This is test code: a fixture that cannot be set up panics with the reason, it never skips a test.

pub mod acp;
pub mod cases;
pub mod failure;
pub mod fake_agent;
pub mod fingerprint;
pub mod killer;
pub mod model;
pub mod naive;
pub mod privilege;
pub mod repos;
pub mod rerun;
pub mod scratch;
pub mod suite;
pub mod tinyfs;
pub mod tmux;
pub mod tree;

pub use cases::cases;
pub use failure::failure_dir;
pub use fingerprint::{Fingerprint, fingerprint};
pub use killer::{Ended, Killer, Lasting};
pub use model::ScriptedModel;
pub use scratch::Scratch;
pub use tinyfs::TinyFs;
pub use tmux::Terminal;
