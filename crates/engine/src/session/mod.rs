//! Sessions: conversations that can be rewound.
//!
//! ```text
//! entry          what is written: once, never edited
//! conversation   the retained entries and what follows from them       (pure)
//! context        what the model is to be told                          (pure)
//! writer         the one who appends
//! coming         what is not complete yet, for whoever comes after a process that died
//! fork, lineage  a session that starts from an entry of another, and what it has of it
//! elsewhere      the same in a workspace of its own
//! aim, heads     where a rewind or an undo takes the conversation, and doing it
//! outside        effects of a turn beside the files
//! parse          entries as the database holds them
//! points         what one can go back to
//! prompts        all that was ever said, as a tree
//! range          which part a summary stands for                      (pure)
//! remove, heir   what leaves for good, and what stays of it for forks
//! turns          what was there before and after a turn
//! ```
//!
//! The log is append-only: a rewind moves the head and leaves the entries where they are.

pub mod context;
mod conversation;
pub mod entry;
pub(crate) mod fork;
mod fork_handover;
mod fork_to_directory;
pub(crate) mod head_target;
pub(crate) mod heads;
mod load;
pub(crate) mod parse;
pub(crate) mod points;
mod prompts;
mod range;
pub(crate) mod remove;
pub(crate) mod rows;
mod turns;
mod unfinished;
pub(crate) mod writer;

pub use crate::history::sessions::{ForkElsewhere, ForkedFrom, NewSession, Session, SessionKind, Sessions};
pub use crate::history::turn_summary::TurnSummary;
pub use conversation::{Approval, Conversation, first_line, joined, last_words};
pub use fork::{ForkError, Forked, NewFork};
pub use fork_to_directory::ForkedElsewhere;
pub use head_target::{PlannedConversation, PromptLine, Scope};
pub use heads::Discard;
pub use points::{Moment, Point, PromptAt, Target};
pub use prompts::{ForkPlace, Outline, PromptTree, SaidPrompt, TreeFork};
pub use range::EntryRange;
pub use remove::Deleted;
pub use turns::TurnPoints;
pub use writer::{NewEntry, NewTurn, SessionError, SessionWriter, unanswered};
