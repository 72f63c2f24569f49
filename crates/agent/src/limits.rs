//! Limits of whatever grows, and times that somebody waits.

/// Rounds of one turn.
pub(crate) const MAX_ROUNDS: u32 = 200;
/// How often a model is asked before its failure ends the turn.
pub(crate) const MAX_ATTEMPTS: u32 = 6;
/// The first pause before a model is asked again, in milliseconds; it doubles each time.
pub(crate) const FIRST_PAUSE_MS: u64 = 500;
/// The longest pause before a model is asked again, in milliseconds.
pub(crate) const LONGEST_PAUSE_MS: u64 = 30_000;
/// The longest pause that a server may wish for, in milliseconds; what asks for a longer one ends the turn.
pub(crate) const LONGEST_WISH_MS: u64 = 60_000;
/// How long an interrupted turn waits for tools that were told to end, in milliseconds.
pub(crate) const PATIENCE_MS: u64 = 3_000;
/// Events that are kept for clients that come back.
pub(crate) const KEPT_EVENTS: usize = 4_096;
/// Messages to a controller that wait.
pub(crate) const INBOX: usize = 1_024;
/// Prompts that are held while a turn runs.
pub(crate) const MAX_HELD: usize = 16;
/// Largest file of instructions that is told to the model, in bytes.
pub(crate) const MAX_INSTRUCTIONS: u64 = 64 << 10;
/// Longest line that a client of the socket may send, in bytes.
pub(crate) const MAX_LINE: usize = 64 << 20;
/// What is shown of a running call's output, in bytes: its end.
pub(crate) const SHOWN_OUTPUT: usize = 64 << 10;
/// How long no client is accepted after one could not be, in milliseconds.
pub(crate) const ACCEPT_PAUSE_MS: u64 = 100;
/// Longest name of the directory of sockets, in bytes: with a socket's own it must fit what the systems take, 104.
pub(crate) const MAX_DIRECTORY: usize = 76;
/// Clients of one session.
pub(crate) const MAX_CLIENTS: usize = 64;
