//! Temporary directories in memory where there is some, so that a hundred thousand cases do not wait for a disk.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A directory that goes away with the value; its path is canonical.
#[derive(Debug)]
pub struct Scratch {
    // Held for its drop.
    _dir: TempDir,
    path: PathBuf,
}

impl Scratch {
    /// Makes one on `/dev/shm` if that exists, else in the system's temporary directory.
    pub fn new() -> Self {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() { Self::below(memory) } else { Self::below(&std::env::temp_dir()) }
    }

    /// Makes one on whatever file system the system's temporary directory is on.
    pub fn on_disk() -> Self {
        Self::below(&std::env::temp_dir())
    }

    fn below(parent: &Path) -> Self {
        let dir = tempfile::Builder::new().prefix("retake-test-").tempdir_in(parent).expect("a temporary directory");
        let path = dir.path().canonicalize().expect("it was just made");
        Self { _dir: dir, path }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a directory in it and returns its path.
    pub fn dir(&self, name: &str) -> PathBuf {
        let path = self.path.join(name);
        std::fs::create_dir_all(&path).expect("a directory in the scratch directory");
        path
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}
