//! What can go wrong in the store, by what the caller can do about it.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use thiserror::Error;

use crate::base::id::ObjectId;
use crate::base::plain_file::{self, NotAFile};

/// A store operation failed.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The operating system refused; nothing that was stored before is affected.
    #[error("cannot {action} `{}`", .path.display())]
    Io {
        /// What was being done, as in "cannot write".
        action: &'static str,
        /// The file of the store.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Something else is in the place of one of the store's files; it was not touched.
    #[error("`{}` is {kind}, and should be a file of the store", .path.display())]
    WrongKind {
        /// The file of the store.
        path: PathBuf,
        /// What is there, with its article.
        kind: &'static str,
    },
    /// There is no room left on the disk that holds the store.
    #[error("the disk that holds `{}` is full; nothing was stored", .path.display())]
    DiskFull {
        /// The store.
        path: PathBuf,
    },
    /// The store can be read but not written.
    #[error("the store `{}` cannot be written to", .path.display())]
    ReadOnly {
        /// The store.
        path: PathBuf,
    },
    /// The store was written by a newer Retake; it was not touched.
    #[error("the store `{}` has format {found}, this program knows formats up to {known}", .path.display())]
    Newer {
        /// The store.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format that this program knows.
        known: u32,
    },
    /// The database is gone but contents are there; they were not touched.
    #[error("the database of the store `{}` is missing, while its contents are still there", .path.display())]
    Orphaned {
        /// The store.
        path: PathBuf,
    },
    /// The store is on a network file system, where its database could be damaged.
    #[error("the store `{}` is on a network file system", .path.display())]
    Network {
        /// The store.
        path: PathBuf,
    },
    /// An object is missing or its bytes are not those that were stored; everything else stays readable.
    #[error("object {id} in `{}` is damaged: {what}", .pack.display())]
    Damaged {
        /// The object.
        id: ObjectId,
        /// The segment that should hold it.
        pack: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// No segment holds the object.
    #[error("object {id} is not in the store")]
    Missing {
        /// The object.
        id: ObjectId,
    },
    /// An object has sound bytes that do not mean what they should.
    #[error("object {id} does not hold a valid {expected}")]
    Malformed {
        /// The object.
        id: ObjectId,
        /// What was expected of it.
        expected: &'static str,
    },
    /// What an interrupted rewind was about to do cannot be read; no file is touched because of it.
    #[error("the record of an interrupted rewind is damaged")]
    MalformedIntent,
    /// Another process cleaned up the store meanwhile; the work has to be done again.
    #[error("the store was cleaned up while the checkpoint was taken")]
    Collected,
    /// The database is not as it was written. Objects are not affected, but it knows which there are and where.
    #[error("the database `{}` is damaged, and this needs the damaged part of it", .path.display())]
    DatabaseDamaged {
        /// The database file.
        path: PathBuf,
        /// SQLite's words, for whoever tries to mend it; they tell users nothing.
        reason: rusqlite::Error,
    },
    /// Another process has been writing to the database for longer than is worth waiting.
    #[error("another process keeps the database `{}` busy", .path.display())]
    Busy {
        /// The database file.
        path: PathBuf,
    },
    /// The system did not let SQLite work; nothing that was stored before is affected.
    #[error("cannot read or write the database `{}`: {}", .path.display(), failure(.reason))]
    Database {
        /// The database file.
        path: PathBuf,
        /// SQLite's reason.
        reason: rusqlite::Error,
    },
}

impl StoreError {
    /// Wraps an I/O error with what was being done to which file.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| {
            if let Some(NotAFile { kind }) = plain_file::not_a_file(&source) {
                return Self::WrongKind { path, kind };
            }
            match source.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
                Some(rustix::io::Errno::NOSPC | rustix::io::Errno::DQUOT) => Self::DiskFull { path },
                Some(rustix::io::Errno::ROFS) => Self::ReadOnly { path },
                _ => Self::Io { action, path, source },
            }
        }
    }

    /// Wraps a database error by what can be done about it.
    pub(crate) fn database(path: &Path) -> impl Fn(rusqlite::Error) -> Self + use<> {
        let path = path.to_owned();
        move |reason| {
            let path = path.clone();
            match reason.sqlite_error_code() {
                Some(ErrorCode::DiskFull) => Self::DiskFull { path },
                Some(ErrorCode::ReadOnly) => Self::ReadOnly { path },
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { path },
                Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::DatabaseDamaged { path, reason },
                // Our statements are right for the schema, so a schema that they do not fit is not the one that was written.
                // Nor is a row with values of other types, or no row where there always is one.
                Some(ErrorCode::Unknown) | None => Self::DatabaseDamaged { path, reason },
                Some(_) => Self::Database { path, reason },
            }
        }
    }
}

/// What went wrong below SQLite, without the word it has for it.
fn failure(reason: &rusqlite::Error) -> &'static str {
    match reason.sqlite_error_code() {
        Some(ErrorCode::CannotOpen) => "it cannot be opened",
        Some(ErrorCode::PermissionDenied | ErrorCode::AuthorizationForStatementDenied) => "it may not be used",
        Some(ErrorCode::OutOfMemory) => "there is not enough memory",
        Some(ErrorCode::SystemIoFailure) => "the disk reports an error",
        _ => "SQLite refuses",
    }
}
