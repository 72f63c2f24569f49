//! A file system that is soon full.
//!
//! Mounting needs root, or a name space in which the user is root: [`within_mounts`] runs a test again in one. Where neither can be had the
//! test panics and says what is missing; it never passes without having run.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::privilege::is_root;
use crate::{Scratch, rerun};

const INSIDE: &str = "RETAKE_TEST_MOUNTS";

/// A tmpfs of its own, unmounted with the value.
#[derive(Debug)]
pub struct TinyFs {
    // Held for its drop, which follows the unmounting.
    _scratch: Option<Scratch>,
    path: PathBuf,
}

/// Where the body of a test that mounts something has run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ran {
    /// Not yet: mounting is possible here, go on.
    Here,
    /// In a child process, successfully: there is nothing left to do.
    InChild,
}

/// Sees to it that the calling test, whose path in its binary is `test`, can mount.
pub fn within_mounts(test: &str) -> Ran {
    if is_root() || std::env::var_os(INSIDE).is_some() {
        return Ran::Here;
    }
    let inner = rerun::test(test);
    let mut outer = Command::new("unshare");
    outer.args(["--user", "--map-root-user", "--mount"]).arg(inner.get_program()).args(inner.get_args());
    let output = outer
        .env(INSIDE, "1")
        .output()
        .expect("`unshare` of util-linux, which a user needs to mount a tiny file system");
    assert!(
        output.status.success(),
        "`{test}` failed in a mount name space of its own; run it as root if user name spaces are forbidden here:\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ran::InChild
}

impl TinyFs {
    /// Mounts one that holds `bytes`, rounded up to whole pages, and is writable for everyone.
    ///
    /// A test that may run without root calls [`within_mounts`] first.
    pub fn mount(bytes: u64) -> Self {
        let scratch = Scratch::on_disk();
        let path = scratch.dir("tiny");
        Self::mount_at(bytes, path, Some(scratch))
    }

    /// Mounts one over a directory that is there.
    pub fn over(directory: &Path, bytes: u64) -> Self {
        Self::mount_at(bytes, directory.to_owned(), None)
    }

    fn mount_at(bytes: u64, path: PathBuf, scratch: Option<Scratch>) -> Self {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={bytes},mode=0777"), "retake-tiny"]).arg(&path);
        let output = mount.output().expect("`mount` of util-linux");
        assert!(
            output.status.success(),
            "cannot mount a tmpfs (needs root, or `within_mounts`): {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Self { _scratch: scratch, path }
    }

    /// Its root directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Fills it to the last byte with one file, which is returned; [`empty`](Self::empty) makes room again.
    pub fn fill(&self) -> PathBuf {
        let path = self.path.join("ballast");
        let mut file = std::fs::File::create(&path).expect("room for one more name");
        let block = [0xa5; 4096];
        while std::io::Write::write_all(&mut file, &block).is_ok() {}
        path
    }

    /// Removes what [`fill`](Self::fill) made. It is emptied first: a process that another test forks at that moment may
    /// have the file open, and its blocks with it, until it runs its program.
    pub fn empty(&self, ballast: &Path) {
        let file = std::fs::File::options().write(true).open(ballast).expect("the file that `fill` made");
        file.set_len(0).expect("emptying needs no room");
        std::fs::remove_file(ballast).expect("it is still there");
    }
}

impl Drop for TinyFs {
    fn drop(&mut self) {
        // Lazily: a process killed a moment ago may still hold a file in it.
        let status = Command::new("umount").arg("--lazy").arg(&self.path).status();
        if !std::thread::panicking() {
            assert!(status.is_ok_and(|status| status.success()), "cannot unmount {}", self.path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tiny_file_system_is_soon_full_and_goes_away() {
        if within_mounts("tinyfs::tests::a_tiny_file_system_is_soon_full_and_goes_away") == Ran::InChild {
            return;
        }
        let tiny = TinyFs::mount(4 << 20);
        let path = tiny.path().to_owned();
        let ballast = tiny.fill();
        let error = std::fs::write(path.join("more"), "more").expect_err("it is full");
        assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
        tiny.empty(&ballast);
        std::fs::write(path.join("more"), "more").expect("there is room again");
        drop(tiny);
        assert!(!path.exists());
    }
}
