//! The real directory that steps are carried out in, and what exists in it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::kinds::{Counts, Happened};
use super::pools::{NAMES, oddity};
use super::step::{Pick, Place, Step};

/// Beyond this many entries nothing is made any more: a case should stay quick, and readable when it fails.
const MAX_ENTRIES: usize = 30;

/// A directory that steps are carried out in.
#[derive(Debug)]
pub struct Sandbox<'a> {
    pub(super) root: PathBuf,
    /// A directory beside the root, on the same file system, that is none of the scanner's business.
    pub(super) outside: PathBuf,
    pub(super) counts: &'a mut Counts,
    pub(super) outside_links: Vec<PathBuf>,
    pub(super) new_links: Vec<PathBuf>,
    /// What the root's repository was last told to track; it may have been removed since.
    pub(super) tracked: BTreeSet<Vec<u8>>,
    found: Option<Vec<ExistingPath>>,
    log: Vec<String>,
}

/// Something that exists below the root; version control and what it holds are left out.
#[derive(Debug, Clone)]
pub(super) struct ExistingPath {
    /// Relative to the root.
    pub(super) path: PathBuf,
    pub(super) is: Is,
    pub(super) names: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Is {
    File,
    Directory,
    Link,
    Special,
    /// A `.gitignore` or `.retakeignore` of any kind: may be moved and removed, never filled with anything but rules.
    Rules,
}

/// A step that cannot be carried out here and now; nobody minds.
pub(super) type Attempt = Result<(), Impossible>;

#[derive(Debug)]
pub(super) struct Impossible;

impl From<io::Error> for Impossible {
    fn from(_: io::Error) -> Self {
        Self
    }
}

impl From<rustix::io::Errno> for Impossible {
    fn from(_: rustix::io::Errno) -> Self {
        Self
    }
}

impl<'a> Sandbox<'a> {
    /// Works in `root`, with `outside` for what lies outside it: two empty directories on one file system.
    pub fn new(root: &Path, outside: &Path, counts: &'a mut Counts) -> Self {
        Self {
            root: root.to_owned(),
            outside: outside.to_owned(),
            counts,
            outside_links: Vec::new(),
            new_links: Vec::new(),
            tracked: BTreeSet::new(),
            found: None,
            log: Vec::new(),
        }
    }

    /// Carries out `step` if that is possible, and tells whether it was.
    ///
    /// A step that fails midway may have done half of its work: the directory is then in some other state, which is as good.
    pub fn apply(&mut self, step: &Step) -> bool {
        let done = self.attempt(step).is_ok();
        self.found = None;
        done
    }

    /// What has been done so far, a line for each step that was possible.
    pub fn log(&self) -> &[String] {
        &self.log
    }

    /// Adds a line of the caller's to the log.
    pub fn note(&mut self, line: impl Into<String>) {
        self.log.push(line.into());
    }

    /// Where the global excludes are, if there are any.
    pub fn global_excludes(&self) -> PathBuf {
        self.outside.join("global-excludes")
    }

    /// Hard links made since this was last asked, relative to the root, or absolute if outside it.
    ///
    /// The kernel reports a new name to whoever watches its directory, and to nobody else: not to those who watch the old name's.
    pub fn take_new_links(&mut self) -> Vec<PathBuf> {
        std::mem::take(&mut self.new_links)
    }

    /// What this run has produced, for the reader's decisions to be added.
    pub fn counts(&mut self) -> &mut Counts {
        self.counts
    }

    pub(super) fn done(&mut self, kind: Happened, line: String) -> Attempt {
        self.counts.add(kind);
        self.log.push(line);
        Ok(())
    }

    pub(super) fn at(&self, path: &Path) -> PathBuf {
        if path.as_os_str().is_empty() { self.root.clone() } else { self.root.join(path) }
    }

    /// The picked one of those that `wanted` accepts.
    pub(super) fn pick(
        &mut self,
        pick: Pick,
        wanted: impl Fn(&ExistingPath) -> bool,
    ) -> Result<ExistingPath, Impossible> {
        let found: Vec<&ExistingPath> = self.found().iter().filter(|found| wanted(found)).collect();
        let at = usize::from(pick.0).checked_rem(found.len()).ok_or(Impossible)?;
        Ok(found[at].clone())
    }

    /// A directory, the root being one.
    pub(super) fn directory(&mut self, pick: Pick) -> PathBuf {
        let mut all: Vec<&Path> = vec![Path::new("")];
        all.extend(self.found().iter().filter(|found| found.is == Is::Directory).map(|found| found.path.as_path()));
        all[usize::from(pick.0) % all.len()].to_owned()
    }

    /// A path of the pool that may or may not exist.
    pub(super) fn place(&mut self, place: Place) -> PathBuf {
        let name = NAMES[usize::from(place.name.0) % NAMES.len()];
        self.directory(place.dir).join(OsStr::from_bytes(name))
    }

    /// A path of the pool at which nothing is yet, if there is room for more.
    pub(super) fn free_place(&mut self, place: Place) -> Result<PathBuf, Impossible> {
        let path = self.place(place);
        let is_free = self.found().len() < MAX_ENTRIES && fs::symlink_metadata(self.at(&path)).is_err();
        if is_free { Ok(path) } else { Err(Impossible) }
    }

    /// Counts an odd name, once something has been given it.
    pub(super) fn count_name(&mut self, path: &Path) {
        if let Some(kind) = path.file_name().and_then(|name| oddity(name.as_bytes())) {
            self.counts.add(kind);
        }
    }

    /// The picked directory that has a `.git` of any kind.
    pub(super) fn repository(&mut self, pick: Pick) -> Result<PathBuf, Impossible> {
        let directories = self.found().iter().filter(|found| found.is == Is::Directory).map(|found| found.path.clone());
        let all: Vec<PathBuf> = std::iter::once(PathBuf::new()).chain(directories).collect();
        let all: Vec<PathBuf> =
            all.into_iter().filter(|path| fs::symlink_metadata(self.at(&path.join(".git"))).is_ok()).collect();
        let at = usize::from(pick.0).checked_rem(all.len()).ok_or(Impossible)?;
        Ok(all[at].clone())
    }

    /// Has the directory looked at again before something in it is picked: somebody else may have changed it.
    pub fn forget_found(&mut self) {
        self.found = None;
    }

    fn found(&mut self) -> &[ExistingPath] {
        let root = &self.root;
        self.found.get_or_insert_with(|| {
            let mut found = Vec::new();
            walk(root, Path::new(""), &mut found);
            found
        })
    }
}

/// A path for people: every byte that is not plain ASCII escaped.
pub fn shown(path: &Path) -> String {
    format!("`{}`", path.as_os_str().as_bytes().escape_ascii())
}

fn walk(root: &Path, below: &Path, found: &mut Vec<ExistingPath>) {
    let Ok(entries) = fs::read_dir(root.join(below)) else { return };
    let mut names: Vec<_> = entries.filter_map(|entry| entry.ok().map(|entry| entry.file_name())).collect();
    names.sort();
    for name in names {
        let path = below.join(&name);
        let Ok(metadata) = fs::symlink_metadata(root.join(&path)) else { continue };
        let is = match name.as_bytes() {
            b".git" | b".hg" | b".svn" | b".jj" | b".sl" => continue,
            b".gitignore" | b".retakeignore" => Is::Rules,
            _ if metadata.is_dir() => Is::Directory,
            _ if metadata.is_symlink() => Is::Link,
            _ if metadata.file_type().is_fifo() || metadata.file_type().is_socket() => Is::Special,
            _ => Is::File,
        };
        found.push(ExistingPath { path: path.clone(), is, names: metadata.nlink() });
        if is == Is::Directory {
            walk(root, &path, found);
        }
    }
}
