//! Changing files: staging, swapping, putting back.
//!
//! Everything goes through handles of directories that were reached beneath the root without following a link. Nothing is
//! clobbered: a file that is replaced or removed lies under a temporary name until somebody has made sure that its
//! content is in the store.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::intent::Item;
use crate::scan::open;
use crate::scan::stat::{Seen, look};
use crate::snapshot::tree::Kind;
use crate::store::{CopyError, Store};
use crate::{Node, StoreError, WorkspacePath, fault};

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

/// Something that was done, and how to take it back.
#[derive(Debug)]
pub(crate) enum Done {
    /// What was at the path lies under the temporary name.
    SetAside { path: WorkspacePath, temp: WorkspacePath },
    /// An empty directory was removed.
    RemovedDirectory { path: WorkspacePath, mode: u16 },
    /// A directory was made.
    MadeDirectory { path: WorkspacePath },
    /// The path and the temporary name were exchanged.
    Exchanged { path: WorkspacePath, temp: WorkspacePath },
    /// The staged file went to the path, where nothing was.
    Placed { path: WorkspacePath, temp: WorkspacePath },
    /// Permissions were changed.
    Mode { path: WorkspacePath, mode: u16 },
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

    fn failed_io(&self, what: &'static str, path: &WorkspacePath) -> impl Fn(io::Error) -> Failed + use<> {
        let path = self.root_path.join(path.to_path());
        move |source| Failed { what, path: path.clone(), source }
    }

    /// A handle on the directory that `path` is in.
    fn directory_of(&self, path: &WorkspacePath) -> Result<OwnedFd, Errno> {
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
        if node.kind == Kind::Symlink {
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

    fn rename(&self, from: &WorkspacePath, to: &WorkspacePath, flags: RenameFlags) -> Result<(), Errno> {
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

    /// Takes away what must go before anything can come: files under their temporary names, directories if they are
    /// empty. A directory that is not stays, and `false` says so.
    pub(crate) fn remove(&self, item: &Item, done: &mut Vec<Done>) -> Result<bool, Failed> {
        let is_directory = |node: &Option<Node>| node.is_some_and(|node| node.kind == Kind::Directory);
        let (from, to) = (is_directory(&item.before), is_directory(&item.after));
        if item.before.is_none() || (from && to) || (!from && !to && item.after.is_some()) {
            return Ok(true);
        }
        let path = &item.path;
        fault::step().map_err(self.failed_io("remove", path))?;
        if !from {
            return self.set_aside(item, done).map(|()| true);
        }
        let directory = match self.directory_of(path) {
            Ok(directory) => directory,
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(true),
            Err(err) => return Err(self.failed("remove", path)(err)),
        };
        match rustix::fs::unlinkat(directory, path.file_name(), AtFlags::REMOVEDIR) {
            Ok(()) => {
                let mode = item.before.map_or(0o755, |node| node.mode);
                done.push(Done::RemovedDirectory { path: path.clone(), mode });
                Ok(true)
            }
            Err(Errno::NOENT) => Ok(true),
            Err(Errno::NOTEMPTY | Errno::EXIST) if item.after.is_none() => Ok(false),
            Err(err) => Err(self.failed("remove", path)(err)),
        }
    }

    /// Moves a file that must go to its temporary name. It may be gone already, or its place taken, when a crash is
    /// recovered from.
    fn set_aside(&self, item: &Item, done: &mut Vec<Done>) -> Result<(), Failed> {
        let path = &item.path;
        if item.after.is_some() && self.is_directory(path) {
            return Ok(());
        }
        let mut temp = item.temp.clone();
        let mut renamed = self.rename(path, &temp, RenameFlags::NOREPLACE);
        if renamed == Err(Errno::EXIST) {
            temp = item.aside();
            renamed = self.rename(path, &temp, RenameFlags::NOREPLACE);
        }
        match renamed {
            Ok(()) => done.push(Done::SetAside { path: path.clone(), temp }),
            Err(Errno::NOENT | Errno::NOTDIR) => {}
            Err(err) => return Err(self.failed("replace", path)(err)),
        }
        Ok(())
    }

    /// Brings what is to come: a directory, or the staged file.
    pub(crate) fn bring(&self, item: &Item, done: &mut Vec<Done>) -> Result<(), Failed> {
        let Some(after) = &item.after else { return Ok(()) };
        let path = &item.path;
        fault::step().map_err(self.failed_io("write", path))?;
        if after.kind == Kind::Directory {
            let directory = self.directory_of(path).map_err(self.failed("create", path))?;
            return match rustix::fs::mkdirat(directory, path.file_name(), Mode::from_raw_mode(0o700)) {
                Ok(()) => {
                    done.push(Done::MadeDirectory { path: path.clone() });
                    Ok(())
                }
                Err(Errno::EXIST) if self.is_directory(path) => Ok(()),
                Err(err) => Err(self.failed("create", path)(err)),
            };
        }
        // A copy was staged where the permissions of the file itself are somebody else's too.
        if is_mode_only(item) && !matches!(self.look(&item.temp), Ok(Some(_))) {
            return self.set_mode(path, after.mode, done);
        }
        let replaced = self.rename(&item.temp, path, RenameFlags::EXCHANGE);
        let temp = item.temp.clone();
        match replaced {
            Ok(()) => done.push(Done::Exchanged { path: path.clone(), temp }),
            Err(Errno::NOENT) => {
                self.rename(&temp, path, RenameFlags::NOREPLACE).map_err(self.failed("write", path))?;
                done.push(Done::Placed { path: path.clone(), temp });
            }
            Err(Errno::INVAL | Errno::NOSYS) => {
                // The old one goes aside first; for a moment nothing is there.
                let aside = item.aside();
                match self.rename(path, &aside, RenameFlags::NOREPLACE) {
                    Ok(()) => done.push(Done::SetAside { path: path.clone(), temp: aside }),
                    Err(Errno::NOENT) => {}
                    Err(err) => return Err(self.failed("replace", path)(err)),
                }
                self.rename(&temp, path, RenameFlags::NOREPLACE).map_err(self.failed("write", path))?;
                done.push(Done::Placed { path: path.clone(), temp });
            }
            Err(err) => return Err(self.failed("write", path)(err)),
        }
        Ok(())
    }

    /// Puts what was displaced to `temp` back in its place, and what has come there under `temp`.
    pub(crate) fn give_back(&self, item: &Item, temp: &WorkspacePath) -> Result<(), Errno> {
        if item.after.is_some_and(|after| after.kind == Kind::Directory) {
            // There may be something in it by now.
            return Err(Errno::NOTEMPTY);
        }
        match self.rename(temp, &item.path, RenameFlags::EXCHANGE) {
            Err(Errno::NOENT) => self.rename(temp, &item.path, RenameFlags::NOREPLACE),
            done => done,
        }
    }

    fn is_directory(&self, path: &WorkspacePath) -> bool {
        matches!(self.look(path), Ok(Some(seen)) if seen.facts.file_type() == rustix::fs::FileType::Directory)
    }

    /// Gives a path its permissions, without following a link.
    pub(crate) fn set_mode(&self, path: &WorkspacePath, mode: u16, done: &mut Vec<Done>) -> Result<(), Failed> {
        let failed = self.failed("change the permissions of", path);
        fault::step().map_err(self.failed_io("change the permissions of", path))?;
        let directory = self.directory_of(path).map_err(&failed)?;
        let old = look(&directory, path.file_name()).map_err(&failed)?.facts;
        if old.permissions() == mode {
            return Ok(());
        }
        chmod(&directory, path.file_name(), mode).map_err(&failed)?;
        done.push(Done::Mode { path: path.clone(), mode: old.permissions() });
        Ok(())
    }

    /// Takes back what was done, newest first. Goes on after a failure, and returns the paths that stay changed.
    pub(crate) fn take_back(&self, done: Vec<Done>) -> Vec<WorkspacePath> {
        let mut stay = Vec::new();
        for step in done.into_iter().rev() {
            let (path, result) = match step {
                Done::SetAside { path, temp } => {
                    let result = self.rename(&temp, &path, RenameFlags::NOREPLACE);
                    (path, result)
                }
                Done::RemovedDirectory { path, mode } => {
                    let made = self.directory_of(&path).and_then(|directory| {
                        rustix::fs::mkdirat(&directory, path.file_name(), Mode::from_raw_mode(mode.into()))?;
                        chmod(&directory, path.file_name(), mode)
                    });
                    (path, made)
                }
                Done::MadeDirectory { path } => {
                    let removed = self
                        .directory_of(&path)
                        .and_then(|directory| rustix::fs::unlinkat(directory, path.file_name(), AtFlags::REMOVEDIR));
                    // What somebody has put into it meanwhile keeps it.
                    let removed = if removed == Err(Errno::NOTEMPTY) { Ok(()) } else { removed };
                    (path, removed)
                }
                Done::Exchanged { path, temp } => {
                    let result = self.rename(&temp, &path, RenameFlags::EXCHANGE);
                    (path, result)
                }
                Done::Placed { path, temp } => {
                    let result = self.rename(&path, &temp, RenameFlags::NOREPLACE);
                    (path, result)
                }
                Done::Mode { path, mode } => {
                    let changed =
                        self.directory_of(&path).and_then(|directory| chmod(&directory, path.file_name(), mode));
                    (path, changed)
                }
            };
            let result = fault::step().and_then(|()| result.map_err(io::Error::from));
            if result.is_err() {
                stay.push(path);
            }
        }
        stay
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
            before.kind == Kind::File && after.kind == Kind::File && before.content == after.content
        }
        _ => false,
    }
}

/// Whether an item's new content has to be staged.
fn staged(item: &Item) -> Option<&Node> {
    item.after.as_ref().filter(|after| after.kind != Kind::Directory && !is_mode_only(item))
}

fn chmod(directory: &OwnedFd, name: &[u8], mode: u16) -> Result<(), Errno> {
    let mode = Mode::from_raw_mode(mode.into());
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    match rustix::fs::openat(directory.as_fd(), name, flags, Mode::empty()) {
        Ok(file) => rustix::fs::fchmod(file, mode),
        // A file that may not be read has no handle of that kind.
        #[cfg(target_os = "linux")]
        Err(Errno::ACCESS) => {
            use std::os::fd::AsRawFd;
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = rustix::fs::openat(directory.as_fd(), name, flags, Mode::empty())?;
            if rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) == rustix::fs::FileType::Symlink {
                return Err(Errno::LOOP);
            }
            rustix::fs::chmod(format!("/proc/self/fd/{}", file.as_raw_fd()), mode)
        }
        Err(err) => Err(err),
    }
}
