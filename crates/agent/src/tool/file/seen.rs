//! Which files the model has seen, and in what state.
//!
//! A file that was never read, or that changed since, is not overwritten as a whole: the model would destroy what it does not know.
//! The record is a guard and lives in memory only; after a session is resumed or rewound it is empty, and a file is read once more.

use std::collections::HashMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// What changes when a file is written. The change time cannot be set back, so nothing is missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl From<&Metadata> for Stamp {
    fn from(metadata: &Metadata) -> Self {
        Self {
            length: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// Whether the model knows a file's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Knows {
    Never,
    Outdated,
    Current,
}

/// The files that the model has seen, by their real path.
#[derive(Debug, Default)]
pub(crate) struct Seen(Mutex<HashMap<PathBuf, Stamp>>);

impl Seen {
    /// Notes that the model knows this state of the file.
    pub(crate) fn note(&self, real: &Path, metadata: &Metadata) {
        self.files().insert(real.to_path_buf(), Stamp::from(metadata));
    }

    /// Notes the state that the file is in now, which the model made itself.
    pub(crate) fn note_now(&self, real: &Path) {
        if let Ok(metadata) = std::fs::metadata(real) {
            self.note(real, &metadata);
        }
    }

    /// Whether the model knows this state of the file.
    pub(crate) fn knows(&self, real: &Path, metadata: &Metadata) -> Knows {
        match self.files().get(real) {
            None => Knows::Never,
            Some(stamp) if *stamp == Stamp::from(metadata) => Knows::Current,
            Some(_) => Knows::Outdated,
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        self.files().clear();
    }

    // A panic cannot leave the map half changed.
    fn files(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, Stamp>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
