//! The numbers by which the database knows kinds and states, for conditions in SQL.
//!
//! They are written into the text of a statement: SQLite uses a partial index only for a condition that it can read there.

use super::operation::{MadeBy, OperationKind, OperationState};
use super::owner::ChangeKind;
use super::sessions::SessionKind;

/// An operation that is a turn.
pub(crate) const TURN: u8 = OperationKind::Turn as u8;
/// An operation that is a command.
pub(crate) const EXEC: u8 = OperationKind::Exec as u8;
/// An operation that takes another back.
pub(crate) const UNDO: u8 = OperationKind::Undo as u8;
/// An operation that repeats another.
pub(crate) const REDO: u8 = OperationKind::Redo as u8;

/// An operation that has not ended.
pub(crate) const RUNNING: u8 = OperationState::Running as u8;
/// An operation all of which was done.
pub(crate) const DONE: u8 = OperationState::Done as u8;

/// An operation that the model made within a turn.
pub(crate) const BY_MODEL: u8 = MadeBy::Model as u8;

/// A session that is a conversation, and whose fork is not undone.
pub(crate) const CONVERSATION: u8 = SessionKind::Conversation as u8;

/// A change that something made.
pub(crate) const CHANGED: u8 = ChangeKind::Changed as u8;

/// Windows in which commands run: those that reach everything, and those with spans that run a command.
pub(crate) const WITH_COMMANDS: &str = "(1, 3)";
/// Windows with spans, with a command and without.
pub(crate) const WITH_SPANS: &str = "(2, 3)";
