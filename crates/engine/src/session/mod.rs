//! Sessions: conversations that can be rewound.
//!
//! ```text
//! entry               what is written: once, never edited
//! conversation        the retained entries and what follows from them       (pure)
//! context             what the model receives                               (pure)
//! range               which entries a summary stands for                    (pure)
//! writer              appends; one per session
//! unfinished          entries that are not complete yet, in case the process dies
//! head_target, heads  where a rewind or an undo takes the head, and moving it
//! points              checkpoints paired with entries, and finding them
//! prompts             every prompt of a session, as a tree
//! turns               the checkpoints around a turn
//! fork                a session that starts from an entry of another
//! fork_to_directory   the same in a workspace of its own
//! remove              what leaves for good
//! fork_handover       what a deleted session leaves to its forks
//! rows, parse, load   entries in the database
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
