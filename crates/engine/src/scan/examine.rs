//! Step one of a scan: which known paths differ from what the index says.
//!
//! The hot path of a fresh process: one `lstat` per known path, nothing else, on all threads. Blocks of the index are
//! verified on the way; a damaged one means that the whole index is dropped.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::index::block::Block;
use super::index::{Directory, DirectoryId, EntryKind, ROOT};
use super::list::Rematch;
use super::rules::{Rules, is_rule_file};
use super::stat::{Facts, Seen, look};
use super::{ScanError, Scanner};
use crate::path::join;

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
            let threads = this.threads.min(ids.len().div_ceil(STRIDE)).max(1);
            let examine = || {
                let mut work = Work::default();
                let mut path = PathBuffer::default();
                loop {
                    let start = next.fetch_add(STRIDE, Ordering::Relaxed);
                    let Some(ids) = ids.get(start..ids.len().min(start + STRIDE)).filter(|ids| !ids.is_empty()) else {
                        break;
                    };
                    for &id in ids {
                        if !this.examine_directory(id, &mut path, &mut work) {
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
    fn examine_directory(&self, id: DirectoryId, path: &mut PathBuffer, work: &mut Work) -> bool {
        if let Some(directory) = self.index.open.get(&id) {
            let flags = directory.flags;
            let unsettled = flags.unsettled || flags.unreadable || (flags.repository && id != ROOT);
            self.examine_self(id, &directory.path, &directory.facts, unsettled, path, work);
            for entry in &directory.entries {
                let known = Known { kind: entry.kind, facts: entry.facts, unsettled: entry.unsettled };
                self.examine_entry(id, &entry.name, &known, path, work);
            }
            return true;
        }
        let Some(block) = self.index.block(id) else { return true };
        if !block.is_sound() {
            return false;
        }
        self.examine_block(id, &block, path, work);
        true
    }

    fn examine_block(&self, id: DirectoryId, block: &Block<'_>, path: &mut PathBuffer, work: &mut Work) {
        let flags = block.flags();
        self.examine_self(
            id,
            block.path(),
            &block.facts(),
            // A repository's `info/exclude` is not examined by itself.
            flags.unsettled || flags.unreadable || flags.stale || (flags.repository && id != ROOT),
            path,
            work,
        );
        for (position, entry) in block.entries().enumerate() {
            let kind = entry.kind();
            if matches!(kind, EntryKind::Directory) {
                continue;
            }
            let known = Known { kind, facts: entry.facts(), unsettled: entry.unsettled() };
            self.examine_entry(id, block.name_at(position), &known, path, work);
        }
    }

    fn examine_self(
        &self,
        id: DirectoryId,
        directory: &[u8],
        facts: &Facts,
        unsettled: bool,
        path: &mut PathBuffer,
        work: &mut Work,
    ) {
        path.enter(directory);
        let same =
            look(self.root(), path.directory()).is_ok_and(|seen| seen.facts == *facts && seen.dev == self.root_dev);
        if !same || unsettled || !self.trust.directory_times {
            work.relist.insert(id, Rematch::No);
        }
    }

    fn examine_entry(&self, id: DirectoryId, name: &[u8], known: &Known, path: &mut PathBuffer, work: &mut Work) {
        match known.kind {
            EntryKind::Directory => return,
            EntryKind::Ignored if !is_rule_file(name) => return,
            EntryKind::File | EntryKind::Symlink | EntryKind::Gap | EntryKind::Ignored => {}
        }
        match look(self.root(), path.child(name)) {
            Ok(seen) if seen.facts == known.facts && !known.unsettled => {}
            Ok(seen) if seen.facts.file_type() == known.facts.file_type() && !is_rule_file(name) => {
                work.names.push((id, name.into(), Some(seen)));
            }
            _ => {
                work.relist.insert(id, Rematch::No);
            }
        }
    }

    /// Adds declared paths that are not captured yet.
    pub(super) fn find_declared(&self, rules: &Rules, work: &mut Work) {
        for path in &rules.declared {
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
    /// Adds ignored names that git has come to track.
    pub(super) fn find_tracked(&self, rules: &Rules, work: &mut Work) {
        for id in self.index.ids() {
            let Some(directory) = self.index.path(id) else { continue };
            let mut check = |name: &[u8]| {
                let path = join(directory, name);
                if rules.is_tracked(&path) || rules.tracks_below(&path) {
                    work.names.push((id, name.into(), None));
                }
            };
            if let Some(open) = self.index.open.get(&id) {
                open.entries
                    .iter()
                    .filter(|entry| entry.kind == EntryKind::Ignored)
                    .for_each(|entry| check(&entry.name));
            } else if let Some(block) = self.index.block(id) {
                let ignored = block.entries().enumerate().filter(|(_, entry)| entry.kind() == EntryKind::Ignored);
                ignored.for_each(|(position, _)| check(block.name_at(position)));
            }
        }
    }
}

/// What the index says of an entry.
struct Known {
    kind: EntryKind,
    facts: Facts,
    unsettled: bool,
}

/// Builds paths for system calls without allocating for each.
#[derive(Debug, Default)]
pub(super) struct PathBuffer {
    bytes: Vec<u8>,
    directory: usize,
}

impl PathBuffer {
    /// Goes to a directory; empty for the root.
    pub(super) fn enter(&mut self, directory: &[u8]) {
        self.bytes.clear();
        self.bytes.extend_from_slice(directory);
        if !directory.is_empty() {
            self.bytes.push(b'/');
        }
        self.directory = self.bytes.len();
    }

    /// The directory itself.
    fn directory(&mut self) -> &std::ffi::CStr {
        if self.directory == 0 {
            return c".";
        }
        // Not `path/.`: that would follow a link which took the directory's place.
        self.bytes.truncate(self.directory);
        self.bytes[self.directory - 1] = 0;
        std::ffi::CStr::from_bytes_with_nul(&self.bytes).expect("names hold no NUL")
    }

    /// A name in the directory.
    pub(super) fn child(&mut self, name: &[u8]) -> &std::ffi::CStr {
        self.bytes.truncate(self.directory);
        if let Some(slash) = self.bytes.last_mut() {
            *slash = b'/';
        }
        self.bytes.extend_from_slice(name);
        self.bytes.push(0);
        std::ffi::CStr::from_bytes_with_nul(&self.bytes).expect("names hold no NUL")
    }
}
