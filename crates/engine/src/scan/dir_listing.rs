//! A directory as the disk shows it: its names, what they look like, and the rules that lie in it.
//!
//! Reads only and knows nothing of the index, so that many directories can be read at once.

use std::ffi::OsStr;
use std::io::Read;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::Dir;
use rustix::io::Errno;

use super::open;
use super::rules::OwnRules;
use super::stat::{Seen, look, seen};
use crate::base::limits;
use crate::base::path::join;
use crate::git;

/// A directory's listing.
#[derive(Debug)]
pub(super) struct Listed {
    /// What the directory itself looked like before it was read.
    pub(super) now: Seen,
    /// Its names in byte order, and what they look like.
    pub(super) names: Vec<(Box<[u8]>, Seen)>,
    pub(super) own: OwnRules,
}

impl Listed {
    /// Reads the directory `path`.
    pub(super) fn read(root_path: &Path, root: BorrowedFd<'_>, path: &[u8]) -> Result<Self, Errno> {
        let fd = open::directory(root, path)?;
        let now = seen(&rustix::fs::fstat(&fd)?);
        // A name that vanishes before it is looked at is not there any more.
        let names: Vec<_> =
            names(&fd)?.into_iter().filter_map(|name| look(&fd, &*name).ok().map(|now| (name, now))).collect();
        let has = |name: &[u8]| names.binary_search_by(|(other, _)| (**other).cmp(name)).is_ok();
        let own = read_rules(root_path, root, path, has);
        Ok(Self { now, names, own })
    }
}

/// The rules that lie in the directory `path`.
pub(super) fn own_rules(root_path: &Path, root: BorrowedFd<'_>, path: &[u8]) -> OwnRules {
    let fd = open::directory(root, path).ok();
    read_rules(root_path, root, path, |name| fd.as_ref().is_some_and(|fd| look(fd, name).is_ok()))
}

/// All names in a directory, in byte order.
fn names(fd: &OwnedFd) -> Result<Vec<Box<[u8]>>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(fd)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(name.into());
        }
    }
    names.sort_unstable();
    Ok(names)
}

fn read_rules(root_path: &Path, root: BorrowedFd<'_>, path: &[u8], has: impl Fn(&[u8]) -> bool) -> OwnRules {
    let read = |name: &[u8]| {
        if !has(name) {
            return None;
        }
        let file = open::file(root, &join(path, name)).ok()?;
        let meta = file.metadata().ok().filter(|meta| meta.is_file())?;
        let mut bytes = Vec::new();
        file.take(limits::MAX_RULE_FILE).read_to_end(&mut bytes).ok()?;
        (meta.len() <= limits::MAX_RULE_FILE).then_some(bytes)
    };
    let place = root_path.join(OsStr::from_bytes(path));
    let repository = has(b".git") && git::is_repository(&place);
    // The root's is among the rules from outside.
    let exclude = if repository && !path.is_empty() { git::exclude_file(&place) } else { None };
    OwnRules {
        repository,
        exclude: exclude.and_then(|path| open::read_small(&path)),
        gitignore: read(b".gitignore"),
        retakeignore: read(b".retakeignore"),
    }
}
