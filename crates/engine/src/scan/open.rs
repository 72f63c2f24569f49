//! Opening things below the root without being led outside.
//!
//! A parent that was swapped for a symbolic link must not make the scan read elsewhere, so every path is resolved beneath
//! the root's handle with links refused.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::base::{limits, plain_file};

/// Opens the directory that is the workspace's root.
pub(crate) fn root(path: &Path) -> Result<OwnedFd, Errno> {
    rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// Opens a file below `root` for reading; a link anywhere on the way is an error.
pub(crate) fn file(root: BorrowedFd<'_>, path: &[u8]) -> Result<File, Errno> {
    // A fifo that took the file's place must not block the scan.
    beneath(root, path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY).map(File::from)
}

/// Opens a file in an open directory for reading; a link is an error.
pub(crate) fn child(directory: BorrowedFd<'_>, name: &[u8]) -> Result<File, Errno> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(directory, name, flags, Mode::empty()).map(File::from)
}

/// Opens a directory below `root`; the root itself for an empty path.
pub(crate) fn directory(root: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd, Errno> {
    let path: &[u8] = if path.is_empty() { b"." } else { path };
    beneath(root, path, OFlags::RDONLY | OFlags::DIRECTORY)
}

/// A handle on a directory for looking at what is in it, not for reading it. A link that took the place of a directory
/// above is followed: whoever looks notices by that directory itself.
pub(crate) fn place(root: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd, Errno> {
    #[cfg(target_os = "linux")]
    let access = OFlags::PATH;
    #[cfg(not(target_os = "linux"))]
    let access = OFlags::RDONLY;
    let path: &[u8] = if path.is_empty() { b"." } else { path };
    rustix::fs::openat(root, path, access | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
}

fn beneath(root: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::ResolveFlags;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(root, path, flags, Mode::empty(), resolve) {
            // Old kernels do not know the call, sandboxes forbid it, and a rename in the tree may ask for a retry.
            Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN) => {}
            done => return done,
        }
    }
    by_component(root, path, flags)
}

fn by_component(root: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut parts = path.split(|&b| b == b'/').collect::<Vec<_>>();
    let last = parts.pop().unwrap_or(b".");
    let mut at: Option<OwnedFd> = None;
    let step = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for part in parts {
        let from = at.as_ref().map_or(root, AsFd::as_fd);
        at = Some(rustix::fs::openat(from, part, step, Mode::empty())?);
    }
    rustix::fs::openat(at.as_ref().map_or(root, AsFd::as_fd), last, flags, Mode::empty())
}

/// A small file's bytes; `None` if it is not a readable regular file of moderate size.
pub(crate) fn read_small(path: &Path) -> Option<Vec<u8>> {
    let mut file = plain_file::open(path).ok()?;
    let meta = file.metadata().ok()?;
    if meta.len() > limits::MAX_RULE_FILE {
        return None;
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symlinked_parent_is_refused_by_either_way() {
        let dir = tempfile::tempdir().expect("temp dir");
        std::fs::create_dir(dir.path().join("real")).expect("mkdir");
        std::fs::write(dir.path().join("real/file"), "x").expect("write");
        std::os::unix::fs::symlink("real", dir.path().join("link")).expect("symlink");
        let root = root(dir.path()).expect("open root");
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        assert!(file(root.as_fd(), b"real/file").is_ok());
        assert!(file(root.as_fd(), b"link/file").is_err());
        assert!(by_component(root.as_fd(), b"real/file", flags).is_ok());
        assert!(by_component(root.as_fd(), b"link/file", flags).is_err());
        assert!(file(root.as_fd(), b"../etc/passwd").is_err());
    }
}
