//! Step four of a scan: new trees and asides for directories that changed, and for those above them.

use std::cmp::Reverse;

use super::index::{DirectoryId, Entry, EntryKind, Flags, ROOT, Summary};
use super::stat::Facts;
use super::{ScanError, Scanner, Sink};
use crate::base::id::ObjectId;
use crate::store::ObjectKind;
use crate::store::tree::{self, AsideEntry, GapKind, Looks, Node, Reasons, TreeEncoder};

impl Scanner {
    /// Makes all stale trees, deepest first; a parent only if what it says of a child has changed.
    pub(super) fn make_trees(&mut self, sink: &dyn Sink) -> Result<(), ScanError> {
        let mut stale = self.index.stale();
        while let Some((_, id)) = stale.pop_first() {
            let Some(before) = self.index.summary(id) else { continue };
            let entries = std::mem::take(&mut self.index.open(id).expect("stale directories are open").entries);
            let made = self.make_tree(&entries, sink)?;
            let directory = self.index.open(id).expect("stale directories are open");
            directory.entries = entries;
            directory.flags.stale = false;
            (directory.tree, directory.aside, directory.gap_count) = made;
            let (parent, depth) = self.index.place(id).expect("it is open");
            // A new directory's summary before is nothing that a parent's tree could have said.
            if id != ROOT
                && self.index.summary(id) != Some(before)
                && let Some(directory) = self.index.open(parent)
            {
                directory.flags.stale = true;
                stale.insert((Reverse(depth - 1), parent));
            }
        }
        Ok(())
    }

    fn make_tree(&self, entries: &[Entry], sink: &dyn Sink) -> Result<(ObjectId, Option<ObjectId>, u64), ScanError> {
        let mut encoder = TreeEncoder::new();
        let mut aside = Vec::new();
        let mut gap_count = 0;
        for entry in entries {
            let child = self.child_summary(entry);
            if let Some(node) = node(entry, child) {
                encoder.push(&entry.name, &node);
            }
            let reasons = self.reasons(entry);
            gap_count += reasons.gaps().count() as u64 + child.map_or(0, |child| child.gap_count);
            let below = child.and_then(|child| child.aside);
            if reasons.0 != 0 || below.is_some() {
                aside.push(AsideEntry { name: entry.name.to_vec(), reasons, child: below, looks: looks(entry) });
            }
        }
        let tree = put(sink, ObjectKind::Tree, &encoder.finish())?;
        let aside =
            if aside.is_empty() { None } else { Some(put(sink, ObjectKind::Aside, &tree::encode_aside(&aside))?) };
        Ok((tree, aside, gap_count))
    }

    fn child_summary(&self, entry: &Entry) -> Option<Summary> {
        (entry.kind == EntryKind::Directory).then(|| self.index.summary(entry.child)).flatten()
    }

    /// Why a name belongs into the aside.
    fn reasons(&self, entry: &Entry) -> Reasons {
        match entry.kind {
            EntryKind::Ignored => Reasons(Reasons::IGNORED),
            EntryKind::Directory => Reasons(entry.gaps | self.directory_reasons(entry.child)),
            EntryKind::File | EntryKind::Symlink | EntryKind::Gap => Reasons(entry.gaps),
        }
    }

    pub(super) fn flags(&self, id: DirectoryId) -> Flags {
        match self.index.open.get(&id) {
            Some(directory) => directory.flags,
            None => self.index.block(id).map(|block| block.flags()).unwrap_or_default(),
        }
    }

    fn directory_reasons(&self, id: DirectoryId) -> u16 {
        let flags = self.flags(id);
        let unreadable = if flags.unreadable { GapKind::Unreadable.bit() } else { 0 };
        let partial = if flags.declared_only { Reasons::IGNORED } else { 0 };
        unreadable | partial
    }
}

fn node(entry: &Entry, child: Option<Summary>) -> Option<Node> {
    let mode = entry.facts.permissions();
    let (kind, mode, content, size) = match entry.kind {
        EntryKind::File => (tree::NodeKind::File, mode, entry.content, entry.facts.size),
        EntryKind::Symlink => (tree::NodeKind::Symlink, 0, entry.content, entry.facts.size),
        EntryKind::Directory => (tree::NodeKind::Directory, child?.mode, child?.tree, 0),
        EntryKind::Ignored | EntryKind::Gap => return None,
    };
    Some(Node { kind, mode, content, size })
}

/// What a gap looks like. Of a mount point that tells nothing, and of a pipe or a device only what it is.
fn looks(entry: &Entry) -> Option<Looks> {
    let has = |kind: GapKind| entry.gaps & kind.bit() != 0;
    if entry.kind != EntryKind::Gap || has(GapKind::OtherFilesystem) {
        return None;
    }
    let Facts { mode, size, mtime, ctime, .. } = entry.facts;
    match has(GapKind::Special) {
        true => Some(Looks { mode, size: 0, mtime: 0, ctime: 0 }),
        false => Some(Looks { mode, size, mtime, ctime }),
    }
}

fn put(sink: &dyn Sink, kind: ObjectKind, bytes: &[u8]) -> Result<ObjectId, ScanError> {
    let id = ObjectId::of(bytes);
    sink.put(kind, id, bytes)?;
    Ok(id)
}
