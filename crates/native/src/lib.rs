//! Rewind inside other agents' own terminals: everything about those agents that needs no engine.
//!
//! ```text
//!                        what is where                      what a session is
//! agent    Agent, Places                        transcript  Transcript: turns, and turns taken back
//! hook     Program, the line that a hook runs   cut         Cut: a copy before a prompt, and how to go on
//!             │                                                ▲
//! install  Setup ── Plan (plan)                                │ PlaceId, PromptId (ids)
//!             │                                                │
//!             ▼                                 event       Event: what a hook is told, and by whom
//!    the agent calls `retake hook AGENT EVENT`  command     Command: `/retake-rewind 2 keep`
//!                                               answer      Answer: what the hook prints
//! ```
//!
//! - Installing is planned before it is done: [`Setup::install`] and [`Setup::remove`] give a [`Plan`], whose [`Plan::diff`] people read and
//!   whose [`Plan::apply`] does exactly that, or nothing where a file changed meanwhile.
//! - [`Event::parse`] reads a hook's standard input, and [`Answer::print`] writes its standard output.
//! - [`Transcript::read`] reads a conversation, [`Cut::new`] works out a shorter copy, and [`Cut::command`] continues with it. An original
//!   is never opened for writing.
//!
//! Nothing here reads the process's environment, clock or randomness, prints, starts a program or uses the network. Files are read and
//! written blockingly. Formats of agents are private and move: what is not known is refused, with its file and place.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may panic"))]

mod agent;
mod answer;
mod command;
mod config;
mod cut;
mod event;
mod hook;
mod ids;
mod install;
mod plan;
mod receipt;
mod target;
mod transcript;

pub use agent::{Agent, NoHome, Places, Presence, UnknownAgent};
pub use answer::Answer;
pub use command::{Command, Conflicts, has_commands};
pub use config::BadConfig;
pub use cut::{CommandLine, Cut, CutError, NewFile, Way};
pub use event::{Event, EventError, Happening, MAX_EVENT_BYTES, Outcome, Reach, Start, Tool};
pub use hook::{BadProgram, HookPoint, Program, is_ours, points};
pub use ids::{CallId, PlaceId, PromptId, SessionId, SubagentId};
pub use install::{Setup, SetupError, Status};
pub use plan::{ApplyError, FileEdit, Kind, MAX_FILE_BYTES, Plan};
pub use transcript::{MAX_TRANSCRIPT_BYTES, Transcript, TranscriptError, Turn};
