//! Is anyone writing to a file right now?
//!
//! The kernel stamps a file when a write begins, so equal times before and after reading prove nothing while a write is
//! under way. But it grants a read lease only on files that nobody has open for writing: asking for one, and giving it
//! back at once, answers the question. The only `unsafe` code of the engine, because no crate wraps these calls.

#![allow(unsafe_code)]

use std::fs::File;

/// Who has a file open for writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writers {
    /// Nobody.
    None,
    /// Somebody.
    Some,
    /// It could not be found out: not our file, or a file system without leases.
    Unknown,
}

/// Looks whether anyone has `file`, which is open for reading only, open for writing.
#[cfg(target_os = "linux")]
pub(crate) fn writers(file: &File) -> Writers {
    use std::os::fd::AsRawFd;
    /// The same on every architecture; the libc crate lacks it.
    const F_SETSIG: libc::c_int = 10;
    let fd = file.as_raw_fd();
    // SAFETY: `fcntl` with these commands takes integers only, and `fd` is open for as long as `file` is borrowed.
    // Whoever opens the file for writing meanwhile waits until the lease is back, and we are sent SIGURG, which is ignored
    // unless somebody asked for it; the default, SIGIO, would end the process.
    let granted = unsafe {
        libc::fcntl(fd, F_SETSIG, libc::SIGURG) == 0 && libc::fcntl(fd, libc::F_SETLEASE, libc::F_RDLCK) == 0
    };
    if !granted {
        let busy = std::io::Error::last_os_error().kind() == std::io::ErrorKind::WouldBlock;
        return if busy { Writers::Some } else { Writers::Unknown };
    }
    // SAFETY: as above. Closing the file would give the lease back too.
    unsafe { libc::fcntl(fd, libc::F_SETLEASE, libc::F_UNLCK) };
    Writers::None
}

/// Cannot be found out.
#[cfg(not(target_os = "linux"))]
pub(crate) fn writers(_file: &File) -> Writers {
    Writers::Unknown
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_file_open_for_writing_has_a_writer() {
        let dir = tempfile::tempdir().expect("temp dir");
        let path = dir.path().join("file");
        let writer = File::create(&path).expect("create");
        let reader = File::open(&path).expect("open");
        assert_eq!(writers(&reader), Writers::Some);
        drop(writer);
        assert_eq!(writers(&reader), Writers::None);
        assert_eq!(writers(&reader), Writers::None, "the lease was given back");
    }
}
