//! Retake in the terminal: a client of a live session, in this process or in another one.
//!
//! What is shown is a function of state, and state is changed in one place: a key or something that the session tells becomes an
//! `Input`, which `App::update` takes in; what is to be done outside comes back as `Effect`s. Nothing here knows how a rewind works: every
//! plan, diff and list comes from the session.

#![expect(unreachable_pub, reason = "`pub` marks what a module offers to the others; the crate exports little")]

mod app;
#[doc(hidden)]
pub mod bench;
mod composer;
mod event_loop;
mod external;
mod picker;
mod screen;
mod terminal;
mod text;
mod theme;
mod transcript;

pub use app::{Guide, Hint, Moment, NextSession};
pub use event_loop::{ClientOptions, TerminalError, Web, run};
pub use theme::Colours;
