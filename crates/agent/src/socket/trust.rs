//! Whether a socket is the user's own: the directory that it is in, and the process at its other end.
//!
//! Without a runtime directory sockets are below the system's temporary directory, where any user can create a directory of that name first
//! and listen in it. Clients check before they connect, and again who answers before they send; a server checks before it listens, and who
//! connects. It never uses, changes or removes what belongs to another user, and fails with [`Untrusted`] inside the [`io::Error`].

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use thiserror::Error;
use tokio::net::UnixStream;

/// A directory of sockets, or the process that listens in it, is not the user's.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{}` is not trusted: {what}; nothing was sent", .directory.display())]
pub struct Untrusted {
    directory: PathBuf,
    what: &'static str,
}

/// The [`Untrusted`] inside an error.
pub fn untrusted(err: &io::Error) -> Option<&Untrusted> {
    err.get_ref().and_then(|inner| inner.downcast_ref())
}

/// Creates the directory if need be, and checks that it is the user's own.
pub(super) fn prepare(directory: &Path) -> io::Result<OwnedFd> {
    match std::fs::DirBuilder::new().mode(0o700).create(directory) {
        Err(err) if err.kind() != io::ErrorKind::AlreadyExists => Err(err),
        _ => own(directory),
    }
}

/// Opens the directory, which has to be a real one of the user's; closes it to all others.
pub(super) fn own(directory: &Path) -> io::Result<OwnedFd> {
    let refuse = |what| refuse(directory, what);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = match rustix::fs::open(directory, flags, Mode::empty()) {
        Err(Errno::LOOP | Errno::NOTDIR) => return Err(refuse("it is not a directory")),
        // One of the user's own that the user may not read is not told apart: it is of no use either.
        Err(Errno::ACCESS) => return Err(refuse("it belongs to another user")),
        opened => opened?,
    };
    let stat = rustix::fs::fstat(&opened)?;
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(refuse("it belongs to another user"));
    }
    if stat.st_mode & 0o077 != 0 {
        rustix::fs::fchmod(&opened, Mode::RWXU)?;
    }
    Ok(opened)
}

/// Checks that the process at the other end is the user's.
pub(super) fn check_peer(directory: &Path, stream: &UnixStream) -> io::Result<()> {
    match is_own(stream)? {
        true => Ok(()),
        false => Err(refuse(directory, "a process of another user answers there")),
    }
}

/// Whether the process at the other end is the user's.
pub(super) fn is_own(stream: &UnixStream) -> io::Result<bool> {
    Ok(stream.peer_cred()?.uid() == rustix::process::geteuid().as_raw())
}

fn refuse(directory: &Path, what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, Untrusted { directory: directory.to_owned(), what })
}
