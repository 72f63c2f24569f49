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

pub(crate) mod aim;
mod coming;
pub mod context;
mod conversation;
mod elsewhere;
pub mod entry;
pub(crate) mod fork;
pub(crate) mod heads;
mod heir;
pub(crate) mod lineage;
mod load;
mod outside;
pub(crate) mod parse;
pub(crate) mod points;
mod prompts;
mod range;
pub(crate) mod remove;
pub(crate) mod rows;
mod turns;
pub(crate) mod writer;

pub use aim::{PlannedConversation, PromptLine, Scope};
pub use conversation::{Approval, Conversation, first_line, joined, last_words};
pub use elsewhere::ForkedElsewhere;
pub use fork::{ForkElsewhere, ForkError, Forked, ForkedFrom, NewFork};
pub use points::{Moment, Point, PromptAt, Target, TurnSummary};
pub use prompts::{ForkPlace, Outline, PromptTree, SaidPrompt, TreeFork};
pub use range::Span;
pub use remove::Deleted;
pub use turns::TurnPoints;
pub use writer::{NewEntry, NewTurn, SessionError, SessionWriter, unanswered};
