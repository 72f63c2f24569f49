//! Lists everything below a directory, for tools that move or delete it as a whole.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::tool::path;

/// More paths than this are not declared one by one.
const MAX_DECLARED: usize = 10_000;

/// What is below a path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Subtree {
    /// The path itself and everything below it, relative to it.
    All(Vec<PathBuf>),
    /// Too much to tell.
    TooMany,
    /// A version-control directory is among it.
    VersionControl(PathBuf),
}

/// Lists what is below `real`, which is a file, a link or a directory.
pub(crate) fn below(real: &Path) -> io::Result<Subtree> {
    let mut found = vec![PathBuf::new()];
    let mut at = 0;
    while let Some(relative) = found.get(at).cloned() {
        at += 1;
        let path = if relative.as_os_str().is_empty() { real.to_path_buf() } else { real.join(&relative) };
        if !fs::symlink_metadata(&path)?.is_dir() {
            continue;
        }
        for entry in fs::read_dir(&path)? {
            let name = entry?.file_name();
            if path::is_version_control(&name) {
                return Ok(Subtree::VersionControl(relative.join(name)));
            }
            found.push(relative.join(name));
        }
        if found.len() > MAX_DECLARED {
            // A version-control directory deeper down is found by whoever runs the call.
            return Ok(Subtree::TooMany);
        }
    }
    Ok(Subtree::All(found))
}

/// Whether there is a version-control directory below `real`, however large it is.
pub(crate) fn holds_version_control(real: &Path) -> io::Result<Option<PathBuf>> {
    let mut waiting = vec![real.to_path_buf()];
    while let Some(path) = waiting.pop() {
        for entry in fs::read_dir(&path)? {
            let entry = entry?;
            if path::is_version_control(&entry.file_name()) {
                return Ok(Some(entry.path()));
            }
            if entry.file_type()?.is_dir() {
                waiting.push(entry.path());
            }
        }
    }
    Ok(None)
}
