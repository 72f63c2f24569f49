//! The steps of a swap: taking away, bringing, and taking all of that back.
//!
//! Nothing is clobbered: a file that is replaced or removed lies under a temporary name until somebody has made sure that
//! its content is in the store.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::files::{Failed, Files, is_mode_only};
use crate::base::fault;
use crate::base::path::WorkspacePath;
use crate::history::intent::Item;
use crate::scan::stat::look;
use crate::store::tree::{Node, NodeKind};

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

impl Files<'_> {
    /// Takes away what must go before anything can come: files under their temporary names, directories if they are
    /// empty. A directory that is not stays, and `false` says so.
    pub(crate) fn remove(&self, item: &Item, done: &mut Vec<Done>) -> Result<bool, Failed> {
        let is_directory = |node: &Option<Node>| node.is_some_and(|node| node.kind == NodeKind::Directory);
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
        if after.kind == NodeKind::Directory {
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
        if item.after.is_some_and(|after| after.kind == NodeKind::Directory) {
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
