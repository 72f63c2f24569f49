//! Bounds of everything that a client can make grow or wait.

use std::time::Duration;

/// Bounds of a server.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections at a time.
    pub connections: usize,
    /// Streams of events at a time.
    pub streams: usize,
    /// Longest body of a request, in bytes.
    pub body: usize,
    /// Bodies that are read at a time: each may be as long as that.
    pub bodies: usize,
    /// How long a client may take to send the head of a request.
    pub head_time: Duration,
    /// How long it may take to send the body.
    pub body_time: Duration,
    /// How long it may read nothing while there is something to read.
    pub stall: Duration,
    /// How often a stream that has nothing to tell says that it is there.
    pub heartbeat: Duration,
    /// Sessions that are open here at a time.
    pub sessions: usize,
    /// After how long a session that nobody looks at is closed.
    pub unused: Duration,
    /// Events of a session that are kept for clients that come back.
    pub kept_events: usize,
    /// Their bytes.
    pub kept_bytes: usize,
    /// Wrong tokens at once; one more every few seconds.
    pub wrong_tokens: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 512,
            streams: 256,
            body: 32 << 20,
            bodies: 4,
            head_time: Duration::from_secs(10),
            body_time: Duration::from_secs(30),
            stall: Duration::from_secs(20),
            heartbeat: Duration::from_secs(15),
            sessions: 32,
            unused: Duration::from_secs(600),
            kept_events: 4_096,
            kept_bytes: 8 << 20,
            wrong_tokens: 10,
        }
    }
}

/// Longest head of a request, and what of an answer waits to be sent, in bytes.
pub(crate) const HEAD: usize = 64 << 10;
/// Headers of a request.
pub(crate) const HEADERS: usize = 64;
/// What the system holds of an answer that a client does not read, in bytes.
pub(crate) const SEND_BUFFER: u32 = 256 << 10;
/// What a client is told at once, in bytes, unless one event is longer.
pub(crate) const BATCH: usize = 256 << 10;
/// Events after which a whole view is written anew rather than the last one and what came since.
pub(crate) const VIEW_AGE: u64 = 256;
/// A body up to this long waits for no other.
pub(crate) const SHORT_BODY: u64 = 64 << 10;
/// Values in the JSON of a request, about.
pub(crate) const VALUES: usize = 100_000;
/// Longest id of a request, in bytes.
pub(crate) const REQUEST_ID: usize = 128;
/// Tokens that can be used at a time: the newest.
pub(crate) const TOKENS: usize = 8;
/// How long it takes until one more wrong token is allowed.
pub(crate) const WRONG_TOKEN_PAUSE: Duration = Duration::from_secs(6);
/// How long a cookie is good for, in seconds.
pub(crate) const COOKIE_LIFE: u64 = 30 * 24 * 3600;
/// How long nothing is accepted after something could not be.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long a client that is turned away may take to hear it.
pub(crate) const FAREWELL: Duration = Duration::from_secs(1);
/// Clients that are told at a time that there is no place for them.
pub(crate) const FAREWELLS: usize = 64;
