//! When a command may run without a checkpoint: only where one cannot be taken, never where something was asked for wrongly or has to
//! be decided first.

use crate::failure::Failure;
use retake_engine::checkpoint::CheckpointError;
use retake_engine::rewind::RewindError;
use retake_engine::{OpenError, ScanError, StoreError};

/// Whether `error` says that no checkpoint can be had here now.
pub fn is_no_checkpoint(error: &Failure) -> bool {
    error.chain().find_map(known).unwrap_or(false)
}

fn known(cause: &(dyn std::error::Error + 'static)) -> Option<bool> {
    let open = cause.downcast_ref::<OpenError>().map(of_open);
    let taken = || cause.downcast_ref::<CheckpointError>().map(of_checkpoint);
    let recovered = || cause.downcast_ref::<RewindError>().map(of_recovery);
    let store = || cause.downcast_ref::<StoreError>().map(of_store);
    open.or_else(taken).or_else(recovered).or_else(store)
}

fn of_open(error: &OpenError) -> bool {
    match error {
        OpenError::DataDir { .. } => true,
        OpenError::Store(error) => of_store(error),
        OpenError::Scan(error) => of_scan(error),
        OpenError::NotAWorkspace { .. }
        | OpenError::Moved { .. }
        | OpenError::Broad { .. }
        | OpenError::InsideStore { .. }
        | OpenError::Root { .. }
        | OpenError::StillThere { .. }
        | OpenError::Occupied { .. } => false,
    }
}

fn of_checkpoint(error: &CheckpointError) -> bool {
    match error {
        CheckpointError::Budget { .. } => true,
        CheckpointError::RoomMade { source, .. } => of_checkpoint(source),
        CheckpointError::Scan(error) => of_scan(error),
        CheckpointError::Store(error) => of_store(error),
        CheckpointError::Label(_)
        | CheckpointError::LabelTaken { .. }
        | CheckpointError::Pending { .. }
        | CheckpointError::UnknownSession => false,
    }
}

/// Finishing an interrupted rewind failed, which is for the user to see to, unless the store itself is out of reach.
fn of_recovery(error: &RewindError) -> bool {
    matches!(error, RewindError::Store(error) if of_store(error))
}

fn of_scan(error: &ScanError) -> bool {
    match error {
        ScanError::Root { .. } => true,
        ScanError::Cancelled => false,
        ScanError::Store(error) => of_store(error),
    }
}

fn of_store(error: &StoreError) -> bool {
    match error {
        StoreError::Io { .. }
        | StoreError::WrongKind { .. }
        | StoreError::DiskFull { .. }
        | StoreError::ReadOnly { .. }
        | StoreError::Newer { .. }
        | StoreError::Orphaned { .. }
        | StoreError::Network { .. }
        | StoreError::Damaged { .. }
        | StoreError::Missing { .. }
        | StoreError::Malformed { .. }
        | StoreError::Collected
        | StoreError::DatabaseDamaged { .. }
        | StoreError::Busy { .. }
        | StoreError::Database { .. } => true,
        // A rewind is pending, and nobody knows what it would do.
        StoreError::MalformedIntent => false,
    }
}
