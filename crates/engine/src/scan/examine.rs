//! Step one of a scan: which known paths differ from what the index says.
//!
//! The hot path of a fresh process: one `lstat` per known path, nothing else, on all threads. Blocks of the index are
//! verified on the way; a damaged one means that the whole index is dropped.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::fs::FileType;

use super::index::{Directory, DirectoryId, EntryKind, Flags, ROOT};
use super::list::Rematch;
use super::rules::{Rules, is_rule_file};
use super::stat::{Facts, Seen, look, seen};
use super::{ScanError, Scanner, open};
use crate::base::limits;
use crate::base::path::join;

/// What has to be looked into.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// Directories to list again.
    pub(super) relist: BTreeMap<DirectoryId, Rematch>,
    /// Names to look at again, and what they looked like if that is known already.
    pub(super) names: Vec<(DirectoryId, Box<[u8]>, Option<Seen>)>,
}

/// Directories that a thread takes at a time.
const STRIDE: usize = 32;

impl Scanner {
    /// Looks at every known path.
    pub(super) fn examine(&mut self) -> Result<Work, ScanError> {
        let ids: Vec<DirectoryId> = self.index.ids().collect();
        let next = AtomicUsize::new(0);
        let damaged = AtomicBool::new(false);
        let this = &*self;
        let works: Vec<Work> = std::thread::scope(|scope| {
            let threads = (this.threads * limits::EXAMINERS_PER_CORE).min(ids.len().div_ceil(STRIDE)).max(1);
            let examine = || {
                let mut work = Work::default();
                loop {
                    let start = next.fetch_add(STRIDE, Ordering::Relaxed);
                    let Some(ids) = ids.get(start..ids.len().min(start + STRIDE)).filter(|ids| !ids.is_empty()) else {
                        break;
                    };
                    for &id in ids {
                        if !this.examine_directory(id, &mut work) {
                            damaged.store(true, Ordering::Relaxed);
                        }
                    }
                }
                work
            };
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(examine)).collect();
            let mut works = vec![examine()];
            works.extend(others.into_iter().map(|thread| thread.join().expect("examining does not panic")));
            works
        });
        if damaged.into_inner() {
            self.forget();
            self.index.add(Directory::new(ROOT, Vec::new(), Facts::default()));
            return self.examine();
        }
        let mut all = Work::default();
        for work in works {
            all.relist.extend(work.relist);
            all.names.extend(work.names);
        }
        Ok(all)
    }

    /// Returns whether the directory's block is sound.
    fn examine_directory(&self, id: DirectoryId, work: &mut Work) -> bool {
        if let Some(directory) = self.index.open.get(&id) {
            let entries = directory.entries.iter().map(|entry| Presence {
                name: &entry.name,
                kind: entry.kind,
                facts: entry.facts,
                unsettled: entry.unsettled,
            });
            self.examine_entries(id, &directory.path, &directory.facts, directory.flags, entries, work);
            return true;
        }
        let Some(block) = self.index.block(id) else { return true };
        if !block.is_sound() {
            return false;
        }
        let entries = block.entries().enumerate().map(|(position, entry)| Presence {
            name: block.name_at(position),
            kind: entry.kind(),
            facts: entry.facts(),
            unsettled: entry.unsettled(),
        });
        self.examine_entries(id, block.path(), &block.facts(), block.flags(), entries, work);
        true
    }

    fn examine_entries<'a>(
        &self,
        id: DirectoryId,
        path: &[u8],
        facts: &Facts,
        flags: Flags,
        entries: impl Iterator<Item = Presence<'a>>,
        work: &mut Work,
    ) {
        // Names are looked up in the directory's own handle: that is quicker than walking down its path for each.
        let opened = open::place(self.root(), path).and_then(|fd| Ok((rustix::fs::fstat(&fd)?, fd)));
        let Ok((stat, fd)) = opened else {
            work.relist.insert(id, Rematch::No);
            return;
        };
        let now = seen(&stat);
        // A repository's `info/exclude` is not examined by itself.
        let unsettled = flags.unsettled || flags.unreadable || flags.stale || (flags.repository && id != ROOT);
        if now.facts != *facts || now.dev != self.root_dev || unsettled || !self.trust.directory_times {
            work.relist.insert(id, Rematch::No);
        }
        for known in entries.filter(Presence::is_examined) {
            match look(&fd, known.name) {
                Ok(seen) if seen.facts == known.facts && !known.unsettled => {}
                Ok(seen) if seen.facts.file_type() == known.facts.file_type() && !is_rule_file(known.name) => {
                    work.names.push((id, known.name.into(), Some(seen)));
                }
                _ => {
                    work.relist.insert(id, Rematch::No);
                }
            }
        }
    }

    /// Adds declared paths that are not captured yet.
    pub(super) fn find_declared(&self, rules: &Rules, work: &mut Work) {
        for path in rules.declared.iter().chain(&rules.wanted) {
            let mut parent = ROOT;
            for (position, &byte) in path.iter().enumerate() {
                if byte == b'/' {
                    match self.index.lookup(&path[..position]) {
                        Some(id) => parent = id,
                        None => break,
                    }
                }
            }
            let at = self.index.path(parent).map_or(0, |path| if path.is_empty() { 0 } else { path.len() + 1 });
            let name = path[at..].split(|&b| b == b'/').next().unwrap_or_default();
            let captured = match self.index.open.get(&parent) {
                Some(directory) => directory.find(name).map(|found| directory.entries[found].kind),
                None => self.index.block(parent).and_then(|block| block.find(name)).map(|entry| entry.kind()),
            };
            if matches!(captured, Some(EntryKind::Ignored | EntryKind::Gap)) {
                work.names.push((parent, name.into(), None));
            }
        }
    }
}

impl Scanner {
    /// Adds names that the rules leave out and that are captured all the same from now on, or no more.
    pub(super) fn find_kept(&self, rules: &Rules, work: &mut Work) {
        for id in self.index.ids() {
            let Some(directory) = self.index.path(id) else { continue };
            let mut check = |name: &[u8], kind: EntryKind, facts: Facts| {
                let path = join(directory, name);
                let is_news = match kind {
                    // Of a name that was not looked into it is not known what it is.
                    EntryKind::Ignored => rules.keeps(&path, false) || rules.keeps(&path, true),
                    // A file is not captured for what is below a directory that was in its place.
                    EntryKind::File | EntryKind::Symlink | EntryKind::Gap | EntryKind::Directory => {
                        !rules.keeps(&path, facts.file_type() == FileType::Directory)
                    }
                };
                if is_news {
                    work.names.push((id, name.into(), None));
                }
            };
            if let Some(open) = self.index.open.get(&id) {
                let left_out = open.entries.iter().filter(|entry| entry.left_out);
                left_out.for_each(|entry| check(&entry.name, entry.kind, entry.facts));
            } else if let Some(block) = self.index.block(id) {
                let left_out = block.entries().enumerate().filter(|(_, entry)| entry.left_out());
                left_out.for_each(|(at, entry)| check(block.name_at(at), entry.kind(), entry.facts()));
            }
        }
    }
}

/// What the index says of an entry.
struct Presence<'a> {
    name: &'a [u8],
    kind: EntryKind,
    facts: Facts,
    unsettled: bool,
}

impl Presence<'_> {
    /// Subdirectories are examined on their own, and of what is ignored only files of rules matter.
    fn is_examined(&self) -> bool {
        match self.kind {
            EntryKind::File | EntryKind::Symlink | EntryKind::Gap => true,
            EntryKind::Ignored => is_rule_file(self.name),
            EntryKind::Directory => false,
        }
    }
}
