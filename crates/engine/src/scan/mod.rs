//! The scan: brings the index in step with the disk and makes a snapshot of it.
//!
//! Four steps, each touching only what the one before found:
//!
//! ```text
//! examine   lstat every known path, on all threads        (or ask the watch, which knows)
//! list      read directories that changed, apply the rules
//! read      hash files that are new, changed or racy, on all threads
//! trees     make new trees for directories that changed, and those above them
//! ```
//!
//! A file is read consistently or becomes a gap; no instant common to all files is promised. Where objects go is decided
//! by the [`Sink`]: into the store, or nowhere when somebody only wants to know how things stand.

mod dir_listing;
mod examine;
pub(crate) mod index;
pub(crate) mod lease;
mod list;
pub(crate) mod open;
mod read;
pub(crate) mod rules;
pub(crate) mod stat;
mod trees;
mod watch;

use std::collections::HashMap;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::base::id::{ObjectId, SnapshotId};
use crate::base::path::WorkspacePath;
use crate::base::progress::{NoProgress, Progress};
use crate::store::{ObjectKind, PutError, StoreError};
use index::file::IndexFile;
use index::{Directory, DirectoryId, Index, ROOT, Seal};
use rules::{Chain, Rules};
use stat::{Facts, Trust};
use watch::Watch;
pub use watch::WatchState;

/// Scanning failed.
#[derive(Debug, Error)]
pub enum ScanError {
    /// The workspace itself cannot be read.
    #[error("cannot read the workspace `{}`", .root.display())]
    Root {
        /// The workspace.
        root: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The caller cancelled; what was read so far is kept, and the next scan goes on from there.
    #[error("cancelled; nothing was changed, and what was read so far is kept")]
    Cancelled,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Where the scan's objects go.
pub(crate) trait Sink: Sync {
    /// Takes a whole object.
    fn put(&self, kind: ObjectKind, id: ObjectId, plain: &[u8]) -> Result<(), StoreError>;

    /// Takes a large file; returns its id and length.
    fn put_large(&self, source: &mut dyn Read) -> Result<(ObjectId, u64), PutError>;

    /// A good moment to make what was put so far permanent.
    fn pause(&self) -> Result<Option<Counters>, StoreError> {
        Ok(None)
    }
}

/// The store's counters that a saved index depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) collections: u64,
    pub(crate) commits: u64,
}

/// What a scan found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scanned {
    pub(crate) snapshot: SnapshotId,
    pub(crate) aside: Option<ObjectId>,
    pub(crate) gap_count: u64,
}

/// The index of a workspace and what keeps it in step.
#[derive(Debug)]
pub(crate) struct Scanner {
    root_path: PathBuf,
    root: OwnedFd,
    root_dev: u64,
    trust: Trust,
    threads: usize,
    euid: u32,
    index: Index,
    file: IndexFile,
    /// What the index was last known to fit.
    seal: Option<Seal>,
    watch: Option<Watch>,
    /// Directories whose chain of rules was needed during this scan.
    chains: HashMap<DirectoryId, Chain>,
}

impl Scanner {
    /// Opens the workspace at `root` with the index kept in `store_dir`.
    pub(crate) fn open(root: &Path, store_dir: &Path, threads: usize) -> Result<Self, ScanError> {
        let wrap = |err: rustix::io::Errno| ScanError::Root { root: root.to_owned(), source: err.into() };
        let fd = open::root(root).map_err(wrap)?;
        let seen = stat::seen(&rustix::fs::fstat(&fd).map_err(wrap)?);
        let (file, index, seal) = IndexFile::read(store_dir);
        let mut scanner = Self {
            root_path: root.to_owned(),
            root_dev: seen.dev,
            trust: stat::trust(&fd),
            root: fd,
            threads: threads.max(1),
            euid: rustix::process::geteuid().as_raw(),
            index,
            file,
            seal,
            watch: None,
            chains: HashMap::new(),
        };
        if scanner.seal.is_some_and(|seal| (seal.root_dev, seal.root_ino) != (seen.dev, seen.facts.ino)) {
            scanner.forget();
        }
        Ok(scanner)
    }

    /// Where the root was when it was opened.
    pub(crate) fn root_path(&self) -> &Path {
        &self.root_path
    }

    /// The root's handle.
    pub(crate) fn root_fd(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// Drops everything known: the next scan starts from nothing.
    pub(crate) fn forget(&mut self) {
        self.index = Index::default();
        self.seal = None;
        self.watch = None;
    }

    /// Makes sure that what the index claims to be stored still is.
    pub(crate) fn fit_to(
        &mut self,
        counters: Counters,
        stored: impl Fn(&ObjectId, u64) -> Result<bool, StoreError>,
    ) -> Result<(), StoreError> {
        match self.seal {
            // Power loss took commits that the index relies on: which contents are gone is not known.
            Some(seal) if seal.commits > counters.commits => self.forget(),
            Some(seal) if seal.collections != counters.collections => {
                self.recheck_contents(stored)?;
                self.seal = Some(Seal { collections: counters.collections, ..seal });
            }
            _ => {}
        }
        Ok(())
    }

    /// Marks contents that are not stored any more, by id and size, as unread.
    pub(crate) fn recheck_contents(
        &mut self,
        stored: impl Fn(&ObjectId, u64) -> Result<bool, StoreError>,
    ) -> Result<(), StoreError> {
        for id in self.index.ids().collect::<Vec<_>>() {
            let Some(directory) = self.index.open(id) else { continue };
            directory.flags.stale = true;
            for entry in &mut directory.entries {
                let has_content = matches!(entry.kind, index::EntryKind::File | index::EntryKind::Symlink);
                if has_content && !entry.unread && !stored(&entry.content, entry.facts.size)? {
                    entry.unread = true;
                    entry.unsettled = true;
                }
            }
        }
        Ok(())
    }

    /// Every content that the index relies on, with its size.
    pub(crate) fn contents(&mut self) -> Vec<(ObjectId, u64)> {
        let mut contents = Vec::new();
        for id in self.index.ids().collect::<Vec<_>>() {
            let Some(directory) = self.index.open(id) else { continue };
            let read = directory.entries.iter().filter(|entry| {
                !entry.unread && matches!(entry.kind, index::EntryKind::File | index::EntryKind::Symlink)
            });
            contents.extend(read.map(|entry| (entry.content, entry.facts.size)));
        }
        contents
    }

    /// Brings the index in step with the disk and hands every object of the snapshot that may be new to `sink`.
    pub(crate) fn scan(
        &mut self,
        rules: &Rules,
        sink: &dyn Sink,
        progress: &dyn Progress,
    ) -> Result<Scanned, ScanError> {
        self.scan_by(Examination::Quick, rules, sink, progress)
    }

    /// Like [`scan`](Self::scan), but looks at everything even if a watch is on.
    pub(crate) fn scan_fully(
        &mut self,
        rules: &Rules,
        sink: &dyn Sink,
        progress: &dyn Progress,
    ) -> Result<Scanned, ScanError> {
        self.scan_by(Examination::Full, rules, sink, progress)
    }

    fn scan_by(
        &mut self,
        examination: Examination,
        rules: &Rules,
        sink: &dyn Sink,
        progress: &dyn Progress,
    ) -> Result<Scanned, ScanError> {
        self.chains.clear();
        let started = stat::file_clock();
        if self.index.is_empty() {
            self.index.add(Directory::new(ROOT, Vec::new(), stat::Facts::default()));
        }
        let rematch = self.seal.is_none_or(|seal| seal.rules != rules.fingerprint);
        let mut work = match self.watch.is_some() && examination == Examination::Quick && !rematch {
            true => self.ask_watch()?,
            false => self.examine()?,
        };
        if rematch {
            work.relist.insert(ROOT, list::Rematch::Yes);
        }
        self.find_declared(rules, &mut work);
        let kept = rules.kept_stamp();
        if !rematch && self.seal.is_none_or(|seal| seal.tracked != kept) {
            self.find_kept(rules, &mut work);
        }
        let scanned = self.bring_in_step(work, rules, started, sink, progress)?;
        let seal = self.seal.unwrap_or_default();
        self.seal = Some(Seal { rules: rules.fingerprint, tracked: kept, ..seal });
        Ok(scanned)
    }

    /// Lists, reads and makes trees for everything in `work`.
    fn bring_in_step(
        &mut self,
        work: examine::Work,
        rules: &Rules,
        started: i64,
        sink: &dyn Sink,
        progress: &dyn Progress,
    ) -> Result<Scanned, ScanError> {
        self.list(work, rules, started, progress)?;
        self.read(rules, sink, progress)?;
        self.make_trees(sink)?;
        let summary = self.index.summary(ROOT).expect("a scanned index has a root");
        Ok(Scanned { snapshot: SnapshotId(summary.tree), aside: summary.aside, gap_count: summary.gap_count })
    }

    /// Like [`scan`](Self::scan), but looks only at the directories that hold `paths`; everything else is as it was.
    pub(crate) fn scan_touched<'p>(
        &mut self,
        rules: &Rules,
        paths: impl Iterator<Item = &'p WorkspacePath>,
        sink: &dyn Sink,
    ) -> Result<Scanned, ScanError> {
        if self.index.is_empty() {
            return self.scan(rules, sink, &NoProgress);
        }
        self.chains.clear();
        let mut work = examine::Work::default();
        for path in paths {
            let above = std::iter::successors(path.parent(), WorkspacePath::parent);
            let known = above.filter_map(|directory| self.index.lookup(directory.as_bytes())).next();
            work.relist.insert(known.unwrap_or(ROOT), list::Rematch::No);
        }
        // The next scan compares with what this one captured although the rules leave it out.
        let (kept, seal) = (rules.kept_stamp(), self.seal.unwrap_or_default());
        if seal.tracked != kept {
            self.find_kept(rules, &mut work);
        }
        let scanned = self.bring_in_step(work, rules, stat::file_clock(), sink, &NoProgress)?;
        self.seal = Some(Seal { tracked: kept, ..seal });
        Ok(scanned)
    }

    /// Whether something is at `path` that no rule leaves out.
    pub(crate) fn is_plain(&self, path: &[u8]) -> bool {
        let name_at = path.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
        let directory = self.index.lookup(&path[..name_at.saturating_sub(1)]);
        directory.and_then(|id| self.index.left_out(id, &path[name_at..])) == Some(false)
    }

    /// What a captured file or link looked like when it was last scanned, and whether a change since would show.
    pub(crate) fn facts(&self, path: &WorkspacePath) -> Option<(Facts, bool)> {
        let parent = path.parent();
        let id = self.index.lookup(parent.as_ref().map_or(&[][..], |parent| parent.as_bytes()))?;
        self.index.facts(id, path.file_name())
    }

    /// Whether the workspace's files get their times from this machine's clock, as far as their file system is known.
    pub(crate) fn clock_is_ours(&self) -> bool {
        self.trust.directory_times
    }

    /// Saves the index, which relies on the store as `counters` describe it.
    pub(crate) fn save(&mut self, counters: Counters) -> Result<(), StoreError> {
        let root_ino = rustix::fs::fstat(&self.root).map(|stat| stat::seen(&stat).facts.ino).unwrap_or_default();
        let Counters { collections, commits } = counters;
        let known = self.seal.unwrap_or_default();
        let seal = Seal { collections, commits, root_dev: self.root_dev, root_ino, ..known };
        if self.seal == Some(seal) && self.index.open.is_empty() && self.index.removed.is_empty() {
            return Ok(());
        }
        self.seal = Some(seal);
        self.file.save(&mut self.index, &seal)
    }
}

/// How thoroughly to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Examination {
    /// Believe the watch, if there is one.
    Quick,
    /// Look at every path.
    Full,
}
