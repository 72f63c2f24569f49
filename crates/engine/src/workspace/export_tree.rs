//! Laying out a snapshot: its files, links and directories in a directory of their own, exactly as they were.
//!
//! Everything is made anew beneath one handle, and nothing is followed or replaced. Files named `.git`, which stand for a repository
//! elsewhere, are left out. What was made is remembered, so that whoever calls this can take exactly that back if it fails.

use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};

use crate::base::fault;
use crate::base::id::{ObjectId, SnapshotId};
use crate::base::path::join;
use crate::base::progress::{Phase, Progress, Step};
use crate::scan::open;
use crate::scan::stat::{self, Facts};
use crate::store::tree::{Node, NodeKind, decode_tree};
use crate::store::{CopyError, Store, StoreError};

/// Why a snapshot could not be laid out.
#[derive(Debug)]
pub(crate) enum LayOutError {
    /// Something of it is gone or damaged in the store.
    Store(StoreError),
    /// It could not be written.
    Write { what: &'static str, path: PathBuf, source: io::Error },
    /// Somebody wanted it to stop.
    Cancelled,
}

impl From<StoreError> for LayOutError {
    fn from(err: StoreError) -> Self {
        Self::Store(err)
    }
}

/// What was laid out until now: paths in the order in which they were made.
#[derive(Debug, Default)]
pub(crate) struct LaidOut(Vec<Made>);

#[derive(Debug)]
struct Made {
    path: Vec<u8>,
    kind: NodeKind,
    /// What it was when it was complete; `None` before.
    facts: Option<Facts>,
}

impl LaidOut {
    fn begin(&mut self, path: &[u8], kind: NodeKind) {
        self.0.push(Made { path: path.to_vec(), kind, facts: None });
    }

    /// What was begun last is complete.
    fn complete(&mut self, facts: Facts) {
        if let Some(made) = self.0.last_mut() {
            made.facts = Some(facts);
        }
    }

    /// Removes it from below `root`: files and links that nobody has changed or replaced since, and directories that are then empty.
    /// Whatever cannot be removed stays.
    pub(crate) fn take_back(&self, root: BorrowedFd<'_>) {
        for made in self.0.iter().filter(|made| made.kind == NodeKind::Directory) {
            // It may have got the permissions of one that nobody writes to.
            open::directory(root, &made.path)
                .and_then(|directory| rustix::fs::fchmod(directory, Mode::from_raw_mode(0o700)))
                .ok();
        }
        for made in self.0.iter().rev() {
            made.remove(root).ok();
        }
    }
}

impl Made {
    fn remove(&self, root: BorrowedFd<'_>) -> rustix::io::Result<()> {
        let (parent, name) = match self.path.iter().rposition(|&byte| byte == b'/') {
            Some(cut) => (&self.path[..cut], &self.path[cut + 1..]),
            None => (&b""[..], &self.path[..]),
        };
        let parent = open::directory(root, parent)?;
        if self.kind == NodeKind::Directory {
            return rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR);
        }
        let now = stat::look(&parent, name)?.facts;
        if self.facts.is_some_and(|then| then != now) {
            return Ok(());
        }
        rustix::fs::unlinkat(parent, name, AtFlags::empty())
    }
}

/// Writes everything that `snapshot` holds into the empty directory `root`, which is at `root_path`, and adds it to `made`.
pub(crate) fn lay_out(
    store: &Store,
    snapshot: SnapshotId,
    root: BorrowedFd<'_>,
    root_path: &Path,
    made: &mut LaidOut,
    progress: &dyn Progress,
) -> Result<(), LayOutError> {
    let mut target = Target { store, root, root_path, made };
    let mut directories: Vec<(Vec<u8>, Node)> = Vec::new();
    let mut to_do: Vec<(Vec<u8>, ObjectId)> = vec![(Vec::new(), snapshot.0)];
    let mut done = 0;
    while let Some((directory, tree)) = to_do.pop() {
        let (_, bytes) = store.read(tree)?;
        let children = decode_tree(&bytes).map_err(|_| StoreError::Malformed { id: tree, expected: "directory" })?;
        let handle = open::directory(root, &directory).map_err(|err| target.failed("open", &directory, err.into()))?;
        for (name, node) in children {
            // The file that stands for a repository elsewhere: two directories must not share one.
            if name == b".git" {
                continue;
            }
            if progress.cancelled() {
                return Err(LayOutError::Cancelled);
            }
            let path = join(&directory, &name);
            match node.kind {
                NodeKind::Directory => {
                    target.make_directory(&handle, &name, &path)?;
                    to_do.push((path.clone(), node.content));
                    directories.push((path, node));
                }
                NodeKind::File => target.make_file(&handle, &name, &path, &node)?,
                NodeKind::Symlink => target.make_link(&handle, &name, &path, &node)?,
            }
            done += 1;
            progress.report(Step { phase: Phase::Writing, done, total: None });
        }
    }
    // Last, and what is below before what is above: a directory may be one that nobody writes to.
    for (path, node) in directories.iter().rev() {
        target.set_mode(path, node.mode)?;
    }
    target.sync()
}

struct Target<'a> {
    store: &'a Store,
    root: BorrowedFd<'a>,
    root_path: &'a Path,
    made: &'a mut LaidOut,
}

impl Target<'_> {
    fn failed(&self, what: &'static str, path: &[u8], source: io::Error) -> LayOutError {
        use std::os::unix::ffi::OsStrExt;
        let path = self.root_path.join(std::ffi::OsStr::from_bytes(path));
        LayOutError::Write { what, path, source }
    }

    fn step(&self, path: &[u8]) -> Result<(), LayOutError> {
        fault::step().map_err(|err| self.failed("write", path, err))
    }

    fn make_directory(&mut self, parent: &OwnedFd, name: &[u8], path: &[u8]) -> Result<(), LayOutError> {
        self.step(path)?;
        let made = rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o700));
        made.map_err(|err| self.failed("create", path, err.into()))?;
        self.made.begin(path, NodeKind::Directory);
        Ok(())
    }

    fn make_file(&mut self, parent: &OwnedFd, name: &[u8], path: &[u8], node: &Node) -> Result<(), LayOutError> {
        self.step(path)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(parent, name, flags, Mode::from_raw_mode(0o600));
        let mut file = File::from(file.map_err(|err| self.failed("create", path, err.into()))?);
        self.made.begin(path, NodeKind::File);
        self.copy(node, path, &mut file)?;
        let seen = rustix::fs::fchmod(&file, Mode::from_raw_mode(node.mode.into()))
            .and_then(|()| stat::look(parent, name))
            .map_err(|err| self.failed("set the permissions of", path, err.into()))?;
        self.made.complete(seen.facts);
        Ok(())
    }

    fn make_link(&mut self, parent: &OwnedFd, name: &[u8], path: &[u8], node: &Node) -> Result<(), LayOutError> {
        self.step(path)?;
        let mut target = Vec::new();
        self.copy(node, path, &mut target)?;
        let seen = rustix::fs::symlinkat(target.as_slice(), parent, name)
            .and_then(|()| stat::look(parent, name))
            .map_err(|err| self.failed("create", path, err.into()))?;
        self.made.begin(path, NodeKind::Symlink);
        self.made.complete(seen.facts);
        Ok(())
    }

    fn copy(&self, node: &Node, path: &[u8], out: &mut dyn io::Write) -> Result<(), LayOutError> {
        self.store.copy_content(node.content, out).map_err(|err| match err {
            CopyError::Store(err) => LayOutError::Store(err),
            CopyError::Write(err) => self.failed("write", path, err),
        })
    }

    fn set_mode(&self, path: &[u8], mode: u16) -> Result<(), LayOutError> {
        self.step(path)?;
        let set = open::directory(self.root, path)
            .and_then(|directory| rustix::fs::fchmod(directory, Mode::from_raw_mode(mode.into())));
        set.map_err(|err| self.failed("set the permissions of", path, err.into()))
    }

    #[cfg(target_os = "linux")]
    fn sync(&self) -> Result<(), LayOutError> {
        self.step(b"")?;
        rustix::fs::syncfs(self.root).map_err(|err| self.failed("sync", b"", err.into()))
    }

    #[cfg(not(target_os = "linux"))]
    fn sync(&self) -> Result<(), LayOutError> {
        rustix::fs::sync();
        Ok(())
    }
}
