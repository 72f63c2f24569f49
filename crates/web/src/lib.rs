//! The client contract over HTTP, for a page in a browser: the same live sessions that the terminal shows.
//!
//! ```text
//! server      accepts connections, bounds them, and ends them
//! route       which request is what; the headers that every answer has
//! gate        whether a request comes from our own page                   (pure)
//! login, key  one-time tokens, signed cookies, the key that signs them
//! api         sessions: list, open, delete, ask
//! stream      what a session tells, as server-sent events
//! rooms, mirror
//!             sessions that this server has open or has joined, and what their clients are told
//! page        the files of the page, which are part of the program
//! ```
//!
//! Nothing here decides anything about a session: a handler takes a request apart, asks, and converts the answer. Nothing that a URL
//! names ever reaches the file system: files of the page are found in a table, sessions by their ids. Everything that a client can make
//! grow is bounded by [`Limits`].

mod answer;
mod api;
mod deadline;
mod gate;
mod host;
mod key;
mod limits;
mod login;
mod mirror;
mod page;
mod rooms;
mod route;
mod server;
mod strangers;
mod stream;

pub use host::{Host, Opened, Problem};
pub use limits::Limits;
pub use server::{Config, Server, StartError};
