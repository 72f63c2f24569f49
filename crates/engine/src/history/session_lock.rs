//! The lock of a session, which tells whether a process has it open for writing.
//!
//! It is held on a file for as long as the process lives, so that nothing has to be put in order when that dies.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::base::id::SessionId;
use crate::base::{limits, plain_file};
use crate::store::{StoreError, create_private_dirs};

pub(crate) fn lock_path(store_dir: &Path, session: SessionId) -> PathBuf {
    store_dir.join("sessions").join(format!("{session}.lock"))
}

/// Whether a process has the session open for writing.
pub(crate) fn is_live(store_dir: &Path, session: SessionId) -> bool {
    lock_path(store_dir, session).exists() && matches!(lock(store_dir, session), Ok(None))
}

/// Takes the lock of a session; `None` if somebody keeps it. Whoever only asks whether it is taken has it for a moment.
pub(crate) fn lock_patiently(store_dir: &Path, session: SessionId) -> Result<Option<File>, StoreError> {
    for _ in 0..limits::LOCK_ATTEMPTS {
        if let Some(file) = lock(store_dir, session)? {
            return Ok(Some(file));
        }
        std::thread::sleep(std::time::Duration::from_millis(limits::LOCK_PAUSE_MS));
    }
    lock(store_dir, session)
}

/// Takes the lock of a session; `None` if somebody has it.
pub(crate) fn lock(store_dir: &Path, session: SessionId) -> Result<Option<File>, StoreError> {
    let path = lock_path(store_dir, session);
    create_private_dirs(&store_dir.join("sessions"))?;
    let mut options = OpenOptions::new();
    let file = plain_file::open_with(options.write(true).create(true).truncate(false).mode(0o600), &path);
    let file = file.map_err(StoreError::io("create", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(err)) => Err(StoreError::io("lock", &path)(err)),
    }
}
