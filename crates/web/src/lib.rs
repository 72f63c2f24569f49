//! The client contract over HTTP, for the page in a browser: the same live sessions that the terminal shows.
//!
//! ```text
//! server           accepts connections, bounds them, closes them
//! unauthenticated  connections without a login, oldest first
//! route            maps requests to handlers; headers of every response
//! origin_check     accepts requests for this server, from its own page    (pure)
//! login            one-time tokens and signed cookies
//! cookie_key       the key that signs cookies
//! api              sessions: list, open, delete, ask
//! stream           a session's events as server-sent events
//! sessions         sessions that this server has open or has joined
//! event_buffer     one session's view and last events, for all its clients
//! response         response bodies and the JSON of errors
//! page             the page's files, which are part of the program
//! ```
//!
//! Nothing here decides anything about a session: a handler parses a request, asks the session, and converts the answer. No part of a URL
//! reaches the file system: the page's files are found in a table, sessions by their ids. [`Limits`] bounds everything that a client can
//! make grow.

mod api;
mod cookie_key;
mod deadline;
mod event_buffer;
mod host;
mod limits;
mod login;
mod origin_check;
mod page;
mod response;
mod route;
mod server;
mod sessions;
mod stream;
mod unauthenticated;

pub use host::{OpenedSession, Problem, SessionOpener};
pub use limits::Limits;
pub use server::{Config, Server, StartError};
