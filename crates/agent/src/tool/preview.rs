//! What an edit would write, for whoever is asked whether it may.
//!
//! It is made when the question is put, of the files as they are then; nothing is changed, and what the call does is decided again when it
//! runs. Where it cannot be made, a file cannot be read, say, or an edit does not match, there is none: the question is put all the same.

use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use super::place::Target;
use crate::diff::{self, FileDiff};
use crate::document::Bytes;
use crate::limits;

/// Tells what a call would write.
pub struct Preview(Box<dyn Fn() -> Option<Vec<Rewrite>> + Send>);

/// What would become of one path.
pub(crate) struct Rewrite {
    path: Bytes,
    before: Content,
    after: Content,
}

/// What is at a path.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Content {
    Nothing,
    Directory,
    /// Of a file, or where a link leads to.
    Bytes(Vec<u8>),
    TooLarge,
}

impl Preview {
    /// One that `make` makes.
    pub(crate) fn new(make: impl Fn() -> Option<Vec<Rewrite>> + Send + 'static) -> Self {
        Self(Box::new(make))
    }

    /// What would change, line by line; nothing where that cannot be told.
    pub(crate) fn diffs(&self) -> Vec<FileDiff> {
        let mut budget = limits::MAX_DIFF_LINES;
        let rewrites = (self.0)().unwrap_or_default().into_iter();
        rewrites.filter(Rewrite::may_change).map(|one| one.diff(&mut budget)).collect()
    }
}

impl Rewrite {
    /// What is at the target becomes `after`.
    pub(crate) fn new(target: &Target, before: Content, after: Content) -> Self {
        Self { path: Bytes::new(target.path.as_bytes()), before, after }
    }

    /// Whether it may be anything at all: what is too large was not read.
    fn may_change(&self) -> bool {
        self.before != self.after || self.before == Content::TooLarge
    }

    fn diff(self, budget: &mut u32) -> FileDiff {
        let Self { path, before, after } = self;
        match (before, after) {
            (Content::TooLarge, _) | (_, Content::TooLarge) => FileDiff::instead(path, "too_large"),
            (Content::Directory, _) | (_, Content::Directory) => FileDiff::instead(path, "directory"),
            (before, after) => diff::texts(path, &before.bytes(), &after.bytes(), budget),
        }
    }
}

impl Content {
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
