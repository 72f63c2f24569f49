//! Opening files that have to be plain files: a pipe, a device or a directory in their place is an error, and never makes the caller wait.
//!
//! Owns the way to every file of the store, and to files of other programs that Retake only reads. It follows symbolic links, creates
//! nothing but plain files, and removes nothing. It fails with [`NotAFile`] inside the [`io::Error`].

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use thiserror::Error;

use super::limits;

/// Something other than a plain file is in a file's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("it is {kind}, not a file")]
pub struct NotAFile {
    /// What it is, with its article.
    pub kind: &'static str,
}

/// Opens the file at `path` for reading.
pub fn open(path: &Path) -> io::Result<File> {
    open_with(OpenOptions::new().read(true), path)
}

/// Opens the file at `path` with `options`, whose flags beyond read, write and create are replaced.
pub fn open_with(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let file = match options.custom_flags(FLAGS).open(path) {
        Ok(file) => file,
        // Writing to a pipe that nobody reads, to a socket or to a directory fails before its kind can be seen.
        Err(err) => return Err(require(path).err().unwrap_or(err)),
    };
    check(&file.metadata()?)?;
    Ok(file)
}

/// All bytes of the file at `path`, which has at most [`limits::MAX_READ`].
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    if file.metadata()?.len() > limits::MAX_READ {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is far larger than such a file can be"));
    }
    let mut bytes = Vec::new();
    // It may grow meanwhile.
    file.take(limits::MAX_READ).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Checks what is at `path`, for files that a library opens. A path where nothing is will become a file.
pub fn require(path: &Path) -> io::Result<()> {
    match path.metadata() {
        Ok(meta) => check(&meta),
        Err(_) => Ok(()),
    }
}

/// What is in a file's place, if `meta` is not a file's.
pub(crate) fn check(meta: &Metadata) -> io::Result<()> {
    let kind = meta.file_type();
    let kind = match () {
        () if kind.is_file() => return Ok(()),
        () if kind.is_dir() => "a directory",
        () if kind.is_fifo() => "a pipe",
        () if kind.is_socket() => "a socket",
        () if kind.is_symlink() => "a symbolic link",
        () => "a device",
    };
    Err(io::Error::other(NotAFile { kind }))
}

/// The [`NotAFile`] inside an error.
pub(crate) fn not_a_file(err: &io::Error) -> Option<NotAFile> {
    err.get_ref().and_then(|inner| inner.downcast_ref()).copied()
}

/// Opening a pipe does not wait for its other end, and opening a terminal does not make it ours.
#[allow(clippy::cast_possible_wrap, reason = "flags have 32 bits either way")]
const FLAGS: i32 = OFlags::NONBLOCK.union(OFlags::NOCTTY).bits() as i32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_a_file_is_opened_and_nobody_waits_for_a_pipe() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("file");
        let write = || open_with(OpenOptions::new().write(true).create(true).truncate(false), &path);
        let append = || open_with(OpenOptions::new().append(true), &path);
        for (make, kind) in [("mkfifo", "a pipe"), ("mkdir", "a directory")] {
            assert!(std::process::Command::new(make).arg(&path).status().expect("it runs").success());
            for opened in [open(&path), write(), append()] {
                assert_eq!(not_a_file(&opened.expect_err("it is no file")), Some(NotAFile { kind }));
            }
            assert_eq!(not_a_file(&read(&path).expect_err("it is no file")), Some(NotAFile { kind }));
            std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir(&path)).expect("it is ours");
        }
        let _listener = std::os::unix::net::UnixListener::bind(&path).expect("it is free");
        assert_eq!(not_a_file(&open(&path).expect_err("it is no file")), Some(NotAFile { kind: "a socket" }));
        std::fs::remove_file(&path).expect("it is ours");
        assert_eq!(open(&path).expect_err("nothing is there").kind(), io::ErrorKind::NotFound);
        drop(write().expect("it is new"));
        assert_eq!(read(&path).expect("it is a file"), b"");
    }

    #[test]
    fn a_file_that_claims_to_be_huge_is_not_read() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("file");
        File::create(&path).and_then(|file| file.set_len(1 << 42)).expect("it is sparse");
        assert_eq!(read(&path).expect_err("it is too large").kind(), io::ErrorKind::FileTooLarge);
    }
}
