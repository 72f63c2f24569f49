//! Plans: edits of the user's files, worked out before anything is touched.
//!
//! A plan is plain data. [`Plan::diff`] shows it; [`Plan::apply`] carries out the plan that was shown, each file atomically: a temporary file
//! in the same directory, with the mode of the file it replaces, is renamed over it. A symbolic link is followed and stays a link.
//!
//! A file that changed since the plan was made stops it: every file is compared before the first one is written, and each again before its
//! own write. A crash leaves whole files, each old or new.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// The most that is read of a configuration file.
pub const MAX_FILE_BYTES: u64 = 8 << 20;

/// What a file is to the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file of the agent's configuration: shown with its lines.
    Configuration,
    /// A record of Retake's own, without which an edit could be undone less exactly: shown by its name.
    Record,
}

/// A change of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEdit {
    /// What the file is to the user.
    pub kind: Kind,
    /// The file as the agent names it, which may be a symbolic link.
    pub path: PathBuf,
    /// Its content when the plan was made; `None` if there was no file.
    pub before: Option<Vec<u8>>,
    /// Its content afterwards; `None` deletes it.
    pub after: Option<Vec<u8>>,
}

/// Edits that belong together, in the order in which they are made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The edits. An empty list is a plan with nothing to do.
    pub edits: Vec<FileEdit>,
    /// Directories to remove at the end if they are empty then, the innermost first.
    pub emptied: Vec<PathBuf>,
}

/// Why a plan was not carried out.
#[derive(Debug, Error)]
pub enum ApplyError {
    /// The file is not as it was when the plan was made: plan again.
    #[error("{0} changed meanwhile; nothing was written to it")]
    Stale(PathBuf),
    /// The file could not be read or written.
    #[error("cannot write {path}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

impl Plan {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.edits.is_empty() && self.emptied.is_empty()
    }

    /// Adds an edit, unless it changes nothing.
    pub(crate) fn push(&mut self, edit: FileEdit) {
        if edit.before != edit.after {
            self.edits.push(edit);
        }
    }

    /// The plan as a unified diff, readable without colours.
    pub fn diff(&self) -> String {
        let mut text = String::new();
        for FileEdit { kind, path, before, after } in &self.edits {
            let show =
                |content: &Option<Vec<u8>>| content.as_deref().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
            let (old, new) = (show(before), show(after));
            let title = match (&old, &new) {
                (None, _) => "Create",
                (_, None) => "Delete",
                _ => "Change",
            };
            text.push_str(&format!("{title} {}\n", path.display()));
            if *kind == Kind::Record {
                continue;
            }
            let patch = diffy::create_patch(old.as_deref().unwrap_or(""), new.as_deref().unwrap_or("")).to_string();
            // The two lines of file names say what the title says already.
            for line in patch.lines().skip(2) {
                text.push_str(line);
                text.push('\n');
            }
        }
        for folder in &self.emptied {
            text.push_str(&format!("Remove {} if it is empty\n", folder.display()));
        }
        text
    }

    /// Makes the edits.
    ///
    /// # Errors
    /// [`ApplyError::Stale`] if a file is not as the plan expects. Edits before a failing one stay made.
    pub fn apply(&self) -> Result<(), ApplyError> {
        for edit in &self.edits {
            edit.check()?;
        }
        for edit in &self.edits {
            edit.apply()?;
        }
        for folder in &self.emptied {
            match fs::remove_dir(folder) {
                Err(err) if !matches!(err.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotFound) => {
                    return Err(ApplyError::Io { path: folder.clone(), source: err });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The directories that applying the plan will make, the innermost first.
    pub(crate) fn new_directories(&self) -> Vec<PathBuf> {
        let made = self.edits.iter().filter(|edit| edit.after.is_some());
        let folders: BTreeSet<&Path> =
            made.flat_map(|edit| edit.path.ancestors().skip(1).take_while(|folder| !folder.exists())).collect();
        folders.into_iter().rev().map(Path::to_owned).collect()
    }
}

impl FileEdit {
    fn check(&self) -> Result<(), ApplyError> {
        let now = read(&self.path).map_err(|source| ApplyError::Io { path: self.path.clone(), source })?;
        if now == self.before { Ok(()) } else { Err(ApplyError::Stale(self.path.clone())) }
    }

    fn apply(&self) -> Result<(), ApplyError> {
        let failed = |source| ApplyError::Io { path: self.path.clone(), source };
        self.check()?;
        let Some(after) = &self.after else { return fs::remove_file(&self.path).map_err(failed) };
        replace(&self.path, after).map_err(failed)
    }
}

/// Puts `content` into the file at `path`, atomically.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let target = resolve(path)?;
    let folder = target.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(folder)?;
    let mut staged = tempfile::Builder::new().prefix(".retake-").tempfile_in(folder)?;
    staged.write_all(content)?;
    // A new file may hold keys later: agents make theirs private, too.
    let mode = fs::metadata(&target).map_or(0o600, |found| found.permissions().mode() & 0o7777);
    staged.as_file().set_permissions(Permissions::from_mode(mode))?;
    staged.as_file().sync_all()?;
    staged.persist(&target).map_err(|err| err.error)?;
    fs::File::open(folder)?.sync_all()
}

/// The file's content, `None` if there is none.
pub(crate) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let found = match fs::metadata(path) {
        Err(err) if matches!(err.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Ok(None),
        found => found?,
    };
    if !found.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    if MAX_FILE_BYTES < found.len() {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "too large for a configuration"));
    }
    fs::read(path).map(Some)
}

/// The file that a chain of symbolic links ends at, whether it exists or not.
fn resolve(path: &Path) -> io::Result<PathBuf> {
    /// As many as Linux follows.
    const MAX_LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&path) {
            Ok(target) => path = path.parent().unwrap_or(Path::new("/")).join(target),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "too many levels of symbolic links"))
}

#[cfg(test)]
mod tests;
