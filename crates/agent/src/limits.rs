//! Limits of whatever grows, and times that somebody waits.

/// Rounds of one turn.
pub const MAX_ROUNDS: u32 = 200;
/// How often a model is asked before its failure ends the turn.
pub const MAX_ATTEMPTS: u32 = 6;
/// The first pause before a model is asked again, in milliseconds; it doubles each time.
pub const FIRST_PAUSE_MS: u64 = 500;
/// The longest pause before a model is asked again, in milliseconds.
pub const LONGEST_PAUSE_MS: u64 = 30_000;
/// How long an interrupted turn waits for tools that were told to end, in milliseconds.
pub const PATIENCE_MS: u64 = 3_000;
/// Events that are kept for clients that come back.
pub const KEPT_EVENTS: usize = 4_096;
/// Messages to a controller that wait.
pub const INBOX: usize = 1_024;
/// Prompts that are held while a turn runs.
pub const MAX_HELD: usize = 16;
/// Largest file of instructions that is told to the model, in bytes.
pub const MAX_INSTRUCTIONS: u64 = 64 << 10;
/// Longest line that a client of the socket may send, in bytes.
pub const MAX_LINE: usize = 64 << 20;
/// Clients of one session.
pub const MAX_CLIENTS: usize = 64;
