//! The scan index: what every captured path looked like when it was last examined, and the hash it had then.
//!
//! A cache: it can be thrown away at any time and is never trusted beyond what `lstat` confirms. Directories have numbers;
//! each is one checksummed block ([`block`]), kept as read from the file until something in it changes, and decoded into a
//! [`Directory`] only then. [`file`] reads and writes the whole.

pub(crate) mod block;
pub(crate) mod file;

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use super::stat::Facts;
use crate::base::id::ObjectId;
use block::Block;

/// A directory's number in the index.
pub(crate) type DirectoryId = u32;

/// The workspace's root.
pub(crate) const ROOT: DirectoryId = 0;

/// What an entry of a directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum EntryKind {
    File = 1,
    Symlink = 2,
    Directory = 3,
    /// Left out by a rule. Examined only if it is itself a file of rules.
    Ignored = 4,
    /// Not captured for a reason in `gaps`; examined each time, for the reason may go away.
    Gap = 5,
}

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: Box<[u8]>,
    pub(crate) kind: EntryKind,
    /// The content has to be read again whatever the facts say: never read, or racy when it was.
    pub(crate) unsettled: bool,
    /// `content` is not known.
    pub(crate) unread: bool,
    /// The rules leave it out. It may be captured all the same while it is declared or tracked by git, or something below is.
    pub(crate) left_out: bool,
    /// Bits of `GapKind`.
    pub(crate) gaps: u16,
    /// For a directory: its number.
    pub(crate) child: DirectoryId,
    pub(crate) facts: Facts,
    pub(crate) content: ObjectId,
}

/// A directory and what is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Directory {
    pub(crate) parent: DirectoryId,
    /// Its whole path; empty for the root.
    pub(crate) path: Vec<u8>,
    /// What it looked like just before it was listed.
    pub(crate) facts: Facts,
    pub(crate) flags: Flags,
    /// Hash of its own ignore rules: when it changes, everything below is matched again.
    pub(crate) rules: ObjectId,
    /// Its tree and aside as of the last snapshot; stale while `flags.stale`.
    pub(crate) tree: ObjectId,
    pub(crate) aside: Option<ObjectId>,
    /// Gaps here and below.
    pub(crate) gap_count: u64,
    /// In byte order of the names.
    pub(crate) entries: Vec<Entry>,
}

/// What else is known of a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags {
    /// Has to be listed again whatever its times say.
    pub(crate) unsettled: bool,
    /// A version-control directory is in it: outer ignore files end here.
    pub(crate) repository: bool,
    /// Ignored, and entered only for the sake of declared paths.
    pub(crate) declared_only: bool,
    /// `tree` and `aside` do not match the entries yet.
    pub(crate) stale: bool,
    /// The last attempt to list it failed.
    pub(crate) unreadable: bool,
}

impl Directory {
    pub(crate) fn new(parent: DirectoryId, path: Vec<u8>, facts: Facts) -> Self {
        let flags = Flags { unsettled: true, stale: true, ..Flags::default() };
        Self {
            parent,
            path,
            facts,
            flags,
            rules: ObjectId::default(),
            tree: ObjectId::default(),
            aside: None,
            gap_count: 0,
            entries: Vec::new(),
        }
    }

    pub(crate) fn find(&self, name: &[u8]) -> Option<usize> {
        self.entries.binary_search_by(|entry| (*entry.name).cmp(name)).ok()
    }

    pub(crate) fn depth(&self) -> usize {
        if self.path.is_empty() { 0 } else { 1 + self.path.iter().filter(|&&b| b == b'/').count() }
    }
}

/// What was in force when the index was written; it is of no use under other circumstances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Seal {
    /// Fingerprint of the ignore rules from outside the workspace.
    pub(crate) rules: ObjectId,
    /// Stamp of what is captured although the rules leave it out: what git tracks, and what is held.
    pub(crate) tracked: ObjectId,
    /// How often the store had been cleaned up: contents in the index may be gone after another time.
    pub(crate) collections: u64,
    /// How many commits the store had seen: fewer means that power loss took some.
    pub(crate) commits: u64,
    pub(crate) root_dev: u64,
    pub(crate) root_ino: u64,
}

/// All directories: blocks as read, and those that were taken out to be changed.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) bytes: Vec<u8>,
    /// Where each directory's block starts in `bytes`.
    pub(crate) offsets: Vec<Option<usize>>,
    /// Directories that differ from their block.
    pub(crate) open: HashMap<DirectoryId, Directory>,
    /// Directories that have a block but are gone.
    pub(crate) removed: Vec<DirectoryId>,
    /// Numbers that can be given out again.
    free: Vec<DirectoryId>,
    /// Numbers that can be once the index is saved: until then something may still refer to them.
    retired: Vec<DirectoryId>,
}

impl Index {
    pub(crate) fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    /// The stored block of `id`, unless the directory is open or gone.
    pub(crate) fn block(&self, id: DirectoryId) -> Option<Block<'_>> {
        if self.open.contains_key(&id) {
            return None;
        }
        let offset = (*self.offsets.get(id as usize)?)?;
        Some(Block::at(&self.bytes, offset))
    }

    /// The directory for changing; decodes its block the first time.
    pub(crate) fn open(&mut self, id: DirectoryId) -> Option<&mut Directory> {
        if !self.open.contains_key(&id) {
            let directory = self.block(id)?.decode();
            self.open.insert(id, directory);
        }
        self.open.get_mut(&id)
    }

    /// Numbers of all directories there are.
    pub(crate) fn ids(&self) -> impl Iterator<Item = DirectoryId> + '_ {
        #[allow(clippy::cast_possible_truncation, reason = "numbers are given out as 32 bits")]
        (0..self.offsets.len() as DirectoryId).filter(|id| self.contains(*id))
    }

    pub(crate) fn contains(&self, id: DirectoryId) -> bool {
        self.open.contains_key(&id) || self.offsets.get(id as usize).is_some_and(Option::is_some)
    }

    /// Takes in a new directory.
    pub(crate) fn add(&mut self, directory: Directory) -> DirectoryId {
        let id = self.free.pop().unwrap_or_else(|| {
            self.offsets.push(None);
            DirectoryId::try_from(self.offsets.len() - 1).expect("fewer than 2^32 directories")
        });
        self.open.insert(id, directory);
        id
    }

    /// Removes a directory and everything below it; returns what was removed.
    pub(crate) fn remove(&mut self, id: DirectoryId) -> Vec<DirectoryId> {
        let mut gone = Vec::new();
        let mut queue = vec![id];
        while let Some(id) = queue.pop() {
            queue.extend(self.children(id).into_iter().map(|(_, child)| child));
            self.open.remove(&id);
            if self.offsets[id as usize].take().is_some() {
                self.removed.push(id);
            }
            gone.push(id);
        }
        self.retired.extend_from_slice(&gone);
        gone
    }

    /// Notes where a directory's block starts, or that the directory is gone.
    pub(crate) fn place_block(&mut self, id: DirectoryId, offset: Option<usize>) {
        if self.offsets.len() <= id as usize {
            self.offsets.resize(id as usize + 1, None);
        }
        self.offsets[id as usize] = offset;
    }

    /// Finds the numbers that no directory has.
    pub(crate) fn collect_free(&mut self) {
        #[allow(clippy::cast_possible_truncation, reason = "numbers are given out as 32 bits")]
        let ids = 0..self.offsets.len() as DirectoryId;
        self.free = ids.filter(|&id| self.offsets[id as usize].is_none()).collect();
    }

    /// Bytes of all blocks that count.
    pub(crate) fn live_bytes(&self) -> usize {
        self.offsets.iter().flatten().map(|&offset| Block::at(&self.bytes, offset).bytes().len()).sum()
    }

    /// Takes `group`, which holds a block for every open directory at `starts`, behind the bytes there are.
    pub(crate) fn adopt_group(&mut self, group: &[u8], starts: &[(DirectoryId, usize)]) {
        let base = self.bytes.len();
        self.bytes.extend_from_slice(group);
        for &(id, start) in starts {
            self.offsets[id as usize] = Some(base + start);
        }
        self.open.clear();
        self.removed.clear();
        self.free.append(&mut self.retired);
    }

    /// The subdirectories of `id`, by name.
    pub(crate) fn children(&self, id: DirectoryId) -> Vec<(Vec<u8>, DirectoryId)> {
        if let Some(directory) = self.open.get(&id) {
            let dirs = directory.entries.iter().filter(|entry| entry.kind == EntryKind::Directory);
            return dirs.map(|entry| (entry.name.to_vec(), entry.child)).collect();
        }
        let Some(block) = self.block(id) else { return Vec::new() };
        let dirs = block.entries().filter(|entry| entry.kind() == EntryKind::Directory);
        dirs.map(|entry| (block.name(entry).to_vec(), entry.child())).collect()
    }

    /// What a parent needs to know of its child: permissions, tree, aside, gaps.
    pub(crate) fn summary(&self, id: DirectoryId) -> Option<Summary> {
        if let Some(d) = self.open.get(&id) {
            return Some(Summary { mode: d.facts.permissions(), tree: d.tree, aside: d.aside, gap_count: d.gap_count });
        }
        self.block(id).map(|block| block.summary())
    }

    /// The parent and depth of `id`.
    pub(crate) fn place(&self, id: DirectoryId) -> Option<(DirectoryId, usize)> {
        if let Some(d) = self.open.get(&id) {
            return Some((d.parent, d.depth()));
        }
        self.block(id).map(|block| {
            let path = block.path();
            let depth = if path.is_empty() { 0 } else { 1 + path.iter().filter(|&&b| b == b'/').count() };
            (block.parent(), depth)
        })
    }

    /// The path of `id`; empty for the root.
    pub(crate) fn path(&self, id: DirectoryId) -> Option<&[u8]> {
        if let Some(d) = self.open.get(&id) {
            return Some(&d.path);
        }
        let offset = (*self.offsets.get(id as usize)?)?;
        Some(Block::at(&self.bytes, offset).path())
    }

    /// The directory at `path`, if it is captured.
    pub(crate) fn lookup(&self, path: &[u8]) -> Option<DirectoryId> {
        if path.is_empty() {
            return self.contains(ROOT).then_some(ROOT);
        }
        path.split(|&b| b == b'/').try_fold(ROOT, |id, name| self.child(id, name))
    }

    /// What the entry `name` of a directory looked like, and whether a change since would show.
    pub(crate) fn facts(&self, id: DirectoryId, name: &[u8]) -> Option<(Facts, bool)> {
        if let Some(directory) = self.open.get(&id) {
            let entry = &directory.entries[directory.find(name)?];
            return Some((entry.facts, !entry.unsettled));
        }
        self.block(id)?.find(name).map(|entry| (entry.facts(), !entry.unsettled()))
    }

    /// Whether the rules leave out a name; `None` if it is not there.
    pub(crate) fn left_out(&self, id: DirectoryId, name: &[u8]) -> Option<bool> {
        match self.open.get(&id) {
            Some(directory) => directory.find(name).map(|found| directory.entries[found].left_out),
            None => self.block(id)?.find(name).map(|entry| entry.left_out()),
        }
    }

    fn child(&self, id: DirectoryId, name: &[u8]) -> Option<DirectoryId> {
        if let Some(directory) = self.open.get(&id) {
            let entry = &directory.entries[directory.find(name)?];
            return (entry.kind == EntryKind::Directory).then_some(entry.child);
        }
        let block = self.block(id)?;
        let entry = block.find(name)?;
        (entry.kind() == EntryKind::Directory).then_some(entry.child())
    }

    /// Opens every directory whose tree has to be made again.
    pub(crate) fn open_stale(&mut self) {
        let is_stale = |id: &DirectoryId| self.block(*id).is_some_and(|block| block.flags().stale);
        for id in self.ids().filter(is_stale).collect::<Vec<_>>() {
            self.open(id);
        }
    }

    /// Directories whose trees have to be made again, deepest first.
    pub(crate) fn stale(&self) -> BTreeSet<(Reverse<usize>, DirectoryId)> {
        let stale = self.open.iter().filter(|(_, directory)| directory.flags.stale);
        stale.map(|(&id, directory)| (Reverse(directory.depth()), id)).collect()
    }
}

/// What a parent's tree and aside say of a subdirectory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) mode: u16,
    pub(crate) tree: ObjectId,
    pub(crate) aside: Option<ObjectId>,
    pub(crate) gap_count: u64,
}
