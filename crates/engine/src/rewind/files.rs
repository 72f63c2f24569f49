//! The files below the root: looking at them, staging new ones beside them, making all of it durable.
//!
//! Everything goes through handles of directories that were reached beneath the root without following a link.

use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::base::fault;
use crate::base::path::WorkspacePath;
use crate::history::intent::Item;
use crate::scan::open;
use crate::scan::stat::{Seen, look};
use crate::store::tree::{Node, NodeKind};
use crate::store::{CopyError, Store, StoreError};

/// A step that failed.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) what: &'static str,
    pub(crate) path: PathBuf,
    pub(crate) source: io::Error,
}

/// Why a file could not be staged.
#[derive(Debug)]
pub(crate) enum StageError {
    /// The content is gone or damaged in the store.
    Content(StoreError),
    /// It could not be written.
    Write(Failed),
}

/// The files below a root.
pub(crate) struct Files<'a> {
    root: BorrowedFd<'a>,
    root_path: &'a Path,
}

/// The directory that `path` is in, empty for the root.
fn parent(path: &WorkspacePath) -> Vec<u8> {
    path.parent().map(|parent| parent.as_bytes().to_vec()).unwrap_or_default()
}

impl StageError {
    /// Nothing has been touched yet.
    pub(crate) fn into_rewind(self) -> super::RewindError {
        match self {
            Self::Content(err) => err.into(),
            Self::Write(Failed { what, path, source }) => super::RewindError::RolledBack { what, path, source },
        }
    }
}

impl<'a> Files<'a> {
    pub(crate) fn new(root: BorrowedFd<'a>, root_path: &'a Path) -> Self {
        Self { root, root_path }
    }

    pub(crate) fn failed(&self, what: &'static str, path: &WorkspacePath) -> impl Fn(Errno) -> Failed + use<> {
        let path = self.root_path.join(path.to_path());
        move |errno| Failed { what, path: path.clone(), source: errno.into() }
    }

    pub(super) fn failed_io(&self, what: &'static str, path: &WorkspacePath) -> impl Fn(io::Error) -> Failed + use<> {
        let path = self.root_path.join(path.to_path());
        move |source| Failed { what, path: path.clone(), source }
    }

    /// A handle on the directory that `path` is in.
    pub(super) fn directory_of(&self, path: &WorkspacePath) -> Result<OwnedFd, Errno> {
        open::directory(self.root, &parent(path))
    }

    /// What `path` looks like; `None` if it is not there.
    pub(crate) fn look(&self, path: &WorkspacePath) -> Result<Option<Seen>, Errno> {
        let seen = self.directory_of(path).and_then(|directory| look(directory, path.file_name()));
        match seen {
            Ok(seen) => Ok(Some(seen)),
            // Where a link stands for the directory, nothing of the workspace is below it.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(err) => Err(err),
        }
    }

    /// Whether the directory that `path` is in is there.
    pub(crate) fn can_hold(&self, path: &WorkspacePath) -> bool {
        !matches!(self.directory_of(path), Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP))
    }

    /// Opens a file for reading without following a link.
    pub(crate) fn open(&self, path: &WorkspacePath) -> Result<File, Errno> {
        open::file(self.root, path.as_bytes())
    }

    /// A link's target.
    pub(crate) fn read_link(&self, path: &WorkspacePath) -> Result<Vec<u8>, Errno> {
        let directory = self.directory_of(path)?;
        Ok(rustix::fs::readlinkat(directory, path.file_name(), Vec::new())?.into_bytes())
    }

    /// What of `item` has to be staged. If only its permissions change that is nothing, unless the file has other names,
    /// which would change with it.
    pub(crate) fn to_stage<'i>(&self, item: &'i Item) -> Option<&'i Node> {
        let is_shared = || matches!(self.look(&item.path), Ok(Some(seen)) if seen.links > 1);
        staged(item).or_else(|| item.after.as_ref().filter(|_| is_mode_only(item) && is_shared()))
    }

    /// Writes the new content of `item` under its temporary name; returns a handle that still has to be synced.
    pub(crate) fn stage(&self, store: &Store, item: &Item, node: &Node) -> Result<Option<File>, StageError> {
        let temp = &item.temp;
        let failed = |err| StageError::Write(self.failed("create", temp)(err));
        let directory = self.directory_of(temp).map_err(failed)?;
        fault::step().map_err(|err| StageError::Write(self.failed_io("create", temp)(err)))?;
        if node.kind == NodeKind::Symlink {
            let mut target = Vec::new();
            store.copy_content(node.content, &mut target).map_err(|err| self.content_error(err, temp))?;
            rustix::fs::symlinkat(target.as_slice(), &directory, temp.file_name()).map_err(failed)?;
            return Ok(None);
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&directory, temp.file_name(), flags, Mode::from_raw_mode(0o600));
        let mut file = File::from(file.map_err(failed)?);
        store.copy_content(node.content, &mut file).map_err(|err| self.content_error(err, temp))?;
        self.carry_over(&file, &directory, item);
        if fault::seeded("bug-forget-mode") {
            return Ok(Some(file));
        }
        // After the owner, whose change clears the set-user bits.
        rustix::fs::fchmod(&file, Mode::from_raw_mode(node.mode.into())).map_err(failed)?;
        Ok(Some(file))
    }

    fn content_error(&self, err: CopyError, temp: &WorkspacePath) -> StageError {
        match err {
            CopyError::Store(err) => StageError::Content(err),
            CopyError::Write(err) => StageError::Write(self.failed_io("write", temp)(err)),
        }
    }

    /// Gives a staged file the owner and the extended attributes of the file that it replaces; of the directory, the
    /// owner, where there is none. What is not allowed is a gap that the checkpoint has told.
    fn carry_over(&self, file: &File, directory: &OwnedFd, item: &Item) {
        let old = self.open(&item.path).ok().filter(|old| old.metadata().is_ok_and(|meta| meta.is_file()));
        let owner = match &old {
            Some(old) => rustix::fs::fstat(old),
            None => rustix::fs::fstat(directory),
        };
        if let Ok(owner) = owner
            && rustix::process::geteuid().is_root()
        {
            let uid = rustix::fs::Uid::from_raw(owner.st_uid);
            let gid = rustix::fs::Gid::from_raw(owner.st_gid);
            rustix::fs::fchown(file, Some(uid), Some(gid)).ok();
        }
        let Some(old) = old else { return };
        let mut names = [0; 4096];
        let Ok(len) = rustix::fs::flistxattr(&old, &mut names) else { return };
        for name in names[..len].split(|&byte| byte == 0).filter(|name| !name.is_empty()) {
            let mut value = [0; 4096];
            if let Ok(len) = rustix::fs::fgetxattr(&old, name, &mut value) {
                rustix::fs::fsetxattr(file, name, &value[..len], rustix::fs::XattrFlags::empty()).ok();
            }
        }
    }

    /// Removes what is at a temporary name, if anything is.
    pub(crate) fn discard(&self, temp: &WorkspacePath) -> Result<(), Failed> {
        let directory = match self.directory_of(temp) {
            Ok(directory) => directory,
            // A link in the place of its directory hides it, and that is not the same as being gone.
            Err(Errno::NOENT | Errno::NOTDIR) if !self.is_behind_link(temp) => return Ok(()),
            Err(err) => return Err(self.failed("remove", temp)(err)),
        };
        fault::step().map_err(self.failed_io("remove", temp))?;
        match rustix::fs::unlinkat(directory, temp.file_name(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(err) => Err(self.failed("remove", temp)(err)),
        }
    }

    /// Whether a directory above `path` is a link.
    fn is_behind_link(&self, path: &WorkspacePath) -> bool {
        std::iter::successors(path.parent(), WorkspacePath::parent).any(|above| {
            let seen = look(self.root, above.to_path());
            seen.is_ok_and(|seen| seen.facts.file_type() == rustix::fs::FileType::Symlink)
        })
    }

    pub(super) fn rename(&self, from: &WorkspacePath, to: &WorkspacePath, flags: RenameFlags) -> Result<(), Errno> {
        let (from_dir, to_dir) = (self.directory_of(from)?, self.directory_of(to)?);
        match rustix::fs::renameat_with(&from_dir, from.file_name(), &to_dir, to.file_name(), flags) {
            // File systems and kernels without the flags.
            Err(Errno::INVAL | Errno::NOSYS) if flags == RenameFlags::NOREPLACE => {
                if look(&to_dir, to.file_name()).is_ok() {
                    return Err(Errno::EXIST);
                }
                rustix::fs::renameat(&from_dir, from.file_name(), &to_dir, to.file_name())
            }
            done => done,
        }
    }

    /// Waits until the names in the directories of `paths` survive power loss.
    pub(crate) fn sync_directories<'p>(&self, paths: impl Iterator<Item = &'p WorkspacePath>) -> Result<(), Failed> {
        let directories: std::collections::BTreeSet<Vec<u8>> = paths.map(parent).collect();
        fault::step().map_err(|source| Failed { what: "sync", path: self.root_path.to_owned(), source })?;
        if directories.len() > MANY {
            return self.sync_all();
        }
        // A directory that is gone needs no sync: the one above it does, and is among these or was there before.
        let handles: Vec<OwnedFd> =
            directories.iter().filter_map(|directory| open::directory(self.root, directory).ok()).collect();
        self.sync_at_once(&handles, |handle| rustix::fs::fsync(handle).map_err(io::Error::from))
    }

    /// Syncs all of `handles` at once: the file system makes one journal commit of them.
    fn sync_at_once<T: Sync>(&self, handles: &[T], sync: impl Fn(&T) -> io::Result<()> + Sync) -> Result<(), Failed> {
        let synced = std::thread::scope(|scope| {
            let threads: Vec<_> = handles.iter().map(|handle| scope.spawn(|| sync(handle))).collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("syncing does not panic"))
        });
        synced.map_err(|source| Failed { what: "sync", path: self.root_path.to_owned(), source })
    }

    /// Waits until the contents of `files` survive power loss.
    pub(crate) fn sync_contents(&self, files: &[File]) -> Result<(), Failed> {
        let failed = |source| Failed { what: "sync", path: self.root_path.to_owned(), source };
        fault::step().map_err(failed)?;
        self.sync_at_once(files, File::sync_data)
    }

    #[cfg(target_os = "linux")]
    pub(super) fn sync_all(&self) -> Result<(), Failed> {
        let path = self.root_path.to_owned();
        rustix::fs::syncfs(self.root).map_err(|err| Failed { what: "sync", path, source: err.into() })
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn sync_all(&self) -> Result<(), Failed> {
        rustix::fs::sync();
        Ok(())
    }
}

/// From so many files or directories on, syncing the whole file system is quicker.
pub(super) const MANY: usize = 24;

/// Whether only the permissions of a file change.
pub(crate) fn is_mode_only(item: &Item) -> bool {
    match (&item.before, &item.after) {
        (Some(before), Some(after)) => {
            before.kind == NodeKind::File && after.kind == NodeKind::File && before.content == after.content
        }
        _ => false,
    }
}

/// Whether an item's new content has to be staged.
fn staged(item: &Item) -> Option<&Node> {
    item.after.as_ref().filter(|after| after.kind != NodeKind::Directory && !is_mode_only(item))
}
