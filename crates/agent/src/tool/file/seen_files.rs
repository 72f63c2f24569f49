//! The files that the model has seen, and their state at that time.
//!
//! A file that was never read, or that changed since, is not overwritten as a whole: the model would destroy what it does not know.
//! While the session lives, the times of the file tell. What was read or written before a restart or a rewind is in the conversation:
//! a file is known from there if the model was told exactly what it would be told now, or wrote exactly what is there.

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::read;

/// What changes when a file is written. The change time cannot be set back, so nothing is missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileStamp {
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl From<&Metadata> for FileStamp {
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

/// What the conversation shows of a file's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ShownContent {
    /// What reading it said.
    Read(String),
    /// What was written.
    Wrote(String),
}

impl ShownContent {
    /// Whether all of what is in the file is told.
    fn is_all_of(&self, real: &Path) -> bool {
        match self {
            Self::Read(text) => read::whole(real).is_some_and(|whole| whole == *text),
            Self::Wrote(content) => fs::read(real).is_ok_and(|there| there == content.as_bytes()),
        }
    }
}

#[derive(Clone, Debug)]
enum LastSeen {
    State(FileStamp),
    Told(ShownContent),
}

/// The files that the model has seen, by their real path.
#[derive(Debug, Default)]
pub(crate) struct SeenFiles(Mutex<HashMap<PathBuf, LastSeen>>);

impl SeenFiles {
    /// Notes that the model knows this state of the file.
    pub(crate) fn note(&self, real: &Path, metadata: &Metadata) {
        self.files().insert(real.to_path_buf(), LastSeen::State(FileStamp::from(metadata)));
    }

    /// Forgets everything but what the conversation shows.
    pub(crate) fn recall(&self, told: HashMap<PathBuf, ShownContent>) {
        *self.files() = told.into_iter().map(|(real, told)| (real, LastSeen::Told(told))).collect();
    }

    /// Notes the state that the file is in now, which the model made itself.
    pub(crate) fn note_now(&self, real: &Path) {
        if let Ok(metadata) = fs::metadata(real) {
            self.note(real, &metadata);
        }
    }

    /// Whether the model knows this state of the file.
    pub(crate) fn knows(&self, real: &Path, metadata: &Metadata) -> Knows {
        let is_current = match self.files().get(real) {
            None => return Knows::Never,
            Some(LastSeen::State(stamp)) => *stamp == FileStamp::from(metadata),
            Some(LastSeen::Told(told)) => told.is_all_of(real),
        };
        if is_current { Knows::Current } else { Knows::Outdated }
    }

    // A panic cannot leave the map half changed.
    fn files(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, LastSeen>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
