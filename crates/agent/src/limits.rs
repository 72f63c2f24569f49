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
/// Longest report that a model keeps when it goes back, in bytes.
pub(crate) const MAX_REPORT: usize = 32 << 10;
/// What a model is told again of what it told the user before it went back, in bytes: the end.
pub(crate) const MAX_SHOWN_AGAIN: usize = 4 << 10;
/// Files or calls that are listed for the model.
pub(crate) const MAX_LISTED: usize = 40;
/// What is quoted of a prompt, in bytes.
pub(crate) const QUOTED: usize = 200;
/// What is left of a result when a conversation is too long to be summarised whole, in bytes.
pub(crate) const SHORT_RESULT: usize = 800;
/// How often a model is asked again for a summary.
pub(crate) const SUMMARY_RETRIES: u32 = 3;
/// Tokens that are kept free for an answer.
pub(crate) const ROOM_TO_ANSWER: u64 = 32_000;
/// Largest file that is compared line by line, in bytes.
pub(crate) const MAX_COMPARED: u64 = 2 << 20;
/// Lines of all diffs in one answer.
pub(crate) const MAX_DIFF_LINES: u32 = 20_000;
/// How often clients are told how far the first look at all files has come, in milliseconds; not at all if it takes less.
pub(crate) const BASELINE_PAUSE_MS: u64 = 200;
/// Files that are found by a few letters.
pub(crate) const MAX_FILES_FOUND: usize = 50;
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
