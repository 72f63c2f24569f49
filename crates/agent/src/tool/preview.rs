//! The changes that an edit would write, for the question whether it may.
//!
//! A preview is made of the files as they are when the question is put. It changes nothing, and the call looks at the files again when it
//! runs. A call that is bound to fail has no changes but its error: the model gets that at once, and the user is not asked. Where
//! the changes cannot be shown for another reason, the question is put without them.

use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use super::Output;
use super::path::WriteTarget;
use crate::diff::{self, FileDiff, Instead};
use crate::limits;
use crate::rewind_document::Bytes;

/// Works out the changes that a call would write, or the error that it is bound to end with.
pub struct Preview(Box<dyn Fn() -> Result<Vec<Rewrite>, Output> + Send>);

/// What would become of one path.
pub(crate) struct Rewrite {
    path: Bytes,
    before: PathContent,
    after: PathContent,
}

/// What is at a path.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum PathContent {
    Nothing,
    Directory,
    /// Of a file, or where a link leads to.
    Bytes(Vec<u8>),
    TooLarge,
}

impl Preview {
    /// One that `make` makes.
    pub(crate) fn new(make: impl Fn() -> Result<Vec<Rewrite>, Output> + Send + 'static) -> Self {
        Self(Box::new(make))
    }

    /// The changes, line by line; none where they cannot be shown.
    pub(crate) fn diffs(&self) -> Result<Vec<FileDiff>, Output> {
        let mut budget = limits::MAX_DIFF_LINES;
        let rewrites = (self.0)()?.into_iter();
        Ok(rewrites.filter(Rewrite::may_change).map(|one| one.diff(&mut budget)).collect())
    }
}

impl Rewrite {
    /// What is at the target becomes `after`.
    pub(crate) fn new(target: &WriteTarget, before: PathContent, after: PathContent) -> Self {
        Self { path: Bytes::new(target.path.as_bytes()), before, after }
    }

    /// Whether it may be anything at all: what is too large was not read.
    fn may_change(&self) -> bool {
        self.before != self.after || self.before == PathContent::TooLarge
    }

    fn diff(self, budget: &mut u32) -> FileDiff {
        let Self { path, before, after } = self;
        match (before, after) {
            (PathContent::TooLarge, _) | (_, PathContent::TooLarge) => FileDiff::instead(path, Instead::TooLarge),
            (PathContent::Directory, _) | (_, PathContent::Directory) => FileDiff::instead(path, Instead::Directory),
            (before, after) => diff::texts(path, &before.bytes(), &after.bytes(), budget),
        }
    }
}

impl PathContent {
    /// What is at `real` now; `None` if that cannot be told, or is nothing that a diff could show.
    pub(crate) fn on_disk(real: &Path) -> Option<Self> {
        let metadata = match fs::symlink_metadata(real) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Some(Self::Nothing),
            Err(_) => return None,
        };
        if metadata.is_dir() {
            Some(Self::Directory)
        } else if metadata.is_symlink() {
            Some(Self::Bytes(fs::read_link(real).ok()?.into_os_string().into_vec()))
        } else if !metadata.is_file() {
            None
        } else {
            let mut bytes = Vec::new();
            fs::File::open(real).ok()?.take(limits::MAX_COMPARED + 1).read_to_end(&mut bytes).ok()?;
            Some(Self::of(bytes))
        }
    }

    /// What a file has in it, or is to have.
    pub(crate) fn of(bytes: Vec<u8>) -> Self {
        if bytes.len() as u64 <= limits::MAX_COMPARED { Self::Bytes(bytes) } else { Self::TooLarge }
    }

    fn bytes(self) -> Vec<u8> {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Nothing | Self::Directory | Self::TooLarge => Vec::new(),
        }
    }
}
