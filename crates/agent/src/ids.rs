//! The current time, and new random ids of entries, operations, sessions and checkpoints.
//!
//! Panics if the system has no random bytes: an id that is not unique would mix two sessions.

use std::time::{SystemTime, UNIX_EPOCH};

use retake_engine::Timestamp;
use retake_engine::checkpoint::NewCheckpoint;
use retake_engine::id::{CheckpointId, EntryId, OperationId, SessionId};
use retake_engine::operation::MadeBy;
use retake_engine::rewind::NewRewind;
use retake_engine::session::NewFork;

/// The system clock, in milliseconds; a clock before 1970 counts as 1970.
pub fn now() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
}

/// Random bytes.
pub fn random() -> [u8; 10] {
    let mut bytes = [0; 10];
    fill(&mut bytes);
    bytes
}

/// Fills `bytes` with random ones, which nobody can guess.
pub fn fill(bytes: &mut [u8]) {
    getrandom::fill(bytes).expect("the system has random bytes");
}

/// An entry's identity.
pub fn entry() -> EntryId {
    EntryId::new(random())
}

/// An operation's identity.
pub fn operation() -> OperationId {
    OperationId::new(now(), random())
}

/// A session's identity.
pub fn session() -> SessionId {
    SessionId::new(now(), random())
}

/// A checkpoint without a label.
pub fn checkpoint() -> NewCheckpoint {
    let at = now();
    NewCheckpoint { id: CheckpointId::new(at, random()), at, label: None }
}

/// All that a fork which is made now by `made_by` has to be given.
pub fn fork(made_by: MadeBy) -> NewFork {
    let NewRewind { operation, safety: checkpoint, note, at, .. } = rewind();
    NewFork { session: session(), operation, checkpoint, note, at, made_by }
}

/// All that a rewind, an undo or a redo which begins now has to be given.
pub fn rewind() -> NewRewind {
    let at = now();
    let checkpoint = || CheckpointId::new(at, random());
    NewRewind {
        operation: OperationId::new(at, random()),
        safety: checkpoint(),
        after: checkpoint(),
        note: entry(),
        at,
    }
}
