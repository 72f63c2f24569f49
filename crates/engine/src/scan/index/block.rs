//! A directory as bytes: the form in which the index is kept in its file and, until something changes, in memory.
//!
//! A block is a header, the entries (80 bytes each), the directory's path and the names. It starts with a checksum of the
//! rest, which the scan verifies as it passes.

use zerocopy::little_endian::{I64, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{Directory, DirectoryId, Entry, EntryKind, Flags, Seal, Summary};
use crate::base::id::ObjectId;
use crate::base::limits;
use crate::scan::stat::Facts;

/// What follows a frame's header.
pub(crate) const DIRECTORY: u8 = 1;
pub(crate) const REMOVED: u8 = 2;
pub(crate) const SEAL: u8 = 3;

/// Each block begins with this.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Frame {
    checksum: U64,
    /// Length of the block with this header.
    pub(crate) len: U32,
    pub(crate) id: U32,
    pub(crate) what: u8,
}

const FRAME_LEN: usize = size_of::<Frame>();

#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawFacts {
    ino: U64,
    size: U64,
    mtime: I64,
    ctime: I64,
    mode: U32,
}

#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Head {
    parent: U32,
    flags: u8,
    facts: RawFacts,
    rules: ObjectId,
    tree: ObjectId,
    aside: ObjectId,
    gap_count: U64,
    path_len: U32,
    entries: U32,
}

const HEAD_END: usize = FRAME_LEN + size_of::<Head>();

/// One entry; its name lies behind all entries.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct RawEntry {
    name_end: U32,
    kind: u8,
    flags: u8,
    gaps: U16,
    child: U32,
    facts: RawFacts,
    content: ObjectId,
}

#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawSeal {
    rules: ObjectId,
    tracked: ObjectId,
    collections: U64,
    commits: U64,
    root_dev: U64,
    root_ino: U64,
}

const UNSETTLED: u8 = 1;
const UNREAD: u8 = 2;
const LEFT_OUT: u8 = 4;
const REPOSITORY: u8 = 2;
const DECLARED_ONLY: u8 = 4;
const STALE: u8 = 8;
const UNREADABLE: u8 = 16;

impl RawFacts {
    fn get(&self) -> Facts {
        Facts {
            ino: self.ino.get(),
            size: self.size.get(),
            mtime: self.mtime.get(),
            ctime: self.ctime.get(),
            mode: self.mode.get(),
        }
    }

    fn new(facts: &Facts) -> Self {
        Self {
            ino: facts.ino.into(),
            size: facts.size.into(),
            mtime: facts.mtime.into(),
            ctime: facts.ctime.into(),
            mode: facts.mode.into(),
        }
    }
}

impl RawEntry {
    pub(crate) fn kind(&self) -> EntryKind {
        match self.kind {
            1 => EntryKind::File,
            2 => EntryKind::Symlink,
            3 => EntryKind::Directory,
            4 => EntryKind::Ignored,
            _ => EntryKind::Gap,
        }
    }

    pub(crate) fn child(&self) -> DirectoryId {
        self.child.get()
    }

    pub(crate) fn unsettled(&self) -> bool {
        self.flags & UNSETTLED != 0
    }

    pub(crate) fn left_out(&self) -> bool {
        self.flags & LEFT_OUT != 0
    }

    pub(crate) fn facts(&self) -> Facts {
        self.facts.get()
    }

    pub(crate) fn gaps(&self) -> u16 {
        self.gaps.get()
    }
}

/// A directory's block, seen in place.
#[derive(Clone, Copy)]
pub(crate) struct Block<'a> {
    bytes: &'a [u8],
    head: &'a Head,
    entries: &'a [RawEntry],
    names: &'a [u8],
}

impl<'a> Block<'a> {
    /// The block at `offset`, which [`check_frame`] has passed as a directory.
    pub(crate) fn at(bytes: &'a [u8], offset: usize) -> Self {
        let (frame, _) = Frame::ref_from_prefix(&bytes[offset..]).expect("frames are checked when the file is read");
        let bytes = &bytes[offset..offset + frame.len.get() as usize];
        let (head, rest) = Head::ref_from_prefix(&bytes[FRAME_LEN..]).expect("checked when the file is read");
        let (entries, rest) = <[RawEntry]>::ref_from_prefix_with_elems(rest, head.entries.get() as usize)
            .expect("checked when the file is read");
        Self { bytes, head, entries, names: &rest[head.path_len.get() as usize..] }
    }

    /// The whole block.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Whether the bytes are those that were written.
    pub(crate) fn is_sound(&self) -> bool {
        let (frame, _) = Frame::ref_from_prefix(self.bytes).expect("a block starts with its frame");
        checksum(&self.bytes[8..]) == frame.checksum.get()
            && self.entries.is_sorted_by_key(|entry| entry.name_end.get())
            && self.entries.last().is_none_or(|entry| entry.name_end.get() as usize <= self.names.len())
    }

    pub(crate) fn parent(&self) -> DirectoryId {
        self.head.parent.get()
    }

    pub(crate) fn facts(&self) -> Facts {
        self.head.facts.get()
    }

    pub(crate) fn flags(&self) -> Flags {
        let has = |bit| self.head.flags & bit != 0;
        Flags {
            unsettled: has(UNSETTLED),
            repository: has(REPOSITORY),
            declared_only: has(DECLARED_ONLY),
            stale: has(STALE),
            unreadable: has(UNREADABLE),
        }
    }

    pub(crate) fn path(&self) -> &'a [u8] {
        let start = HEAD_END + size_of_val(self.entries);
        &self.bytes[start..start + self.head.path_len.get() as usize]
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &'a RawEntry> + use<'a> {
        self.entries.iter()
    }

    /// The name of the `position`-th entry.
    pub(crate) fn name_at(&self, position: usize) -> &'a [u8] {
        let start = if position == 0 { 0 } else { self.entries[position - 1].name_end.get() as usize };
        &self.names[start..self.entries[position].name_end.get() as usize]
    }

    /// The name of an entry of this block.
    pub(crate) fn name(&self, entry: &'a RawEntry) -> &'a [u8] {
        let position = (std::ptr::from_ref(entry).addr() - self.entries.as_ptr().addr()) / size_of::<RawEntry>();
        self.name_at(position)
    }

    pub(crate) fn find(&self, name: &[u8]) -> Option<&'a RawEntry> {
        let (mut low, mut high) = (0, self.entries.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            match self.name_at(middle).cmp(name) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Some(&self.entries[middle]),
            }
        }
        None
    }

    pub(crate) fn summary(&self) -> Summary {
        Summary {
            mode: self.facts().permissions(),
            tree: self.head.tree,
            aside: aside(self.head),
            gap_count: self.head.gap_count.get(),
        }
    }

    /// The directory as a value that can be changed.
    pub(crate) fn decode(&self) -> Directory {
        let entries = self.entries.iter().enumerate().map(|(position, raw)| Entry {
            name: self.name_at(position).into(),
            kind: raw.kind(),
            unsettled: raw.unsettled(),
            unread: raw.flags & UNREAD != 0,
            left_out: raw.left_out(),
            gaps: raw.gaps(),
            child: raw.child(),
            facts: raw.facts(),
            content: raw.content,
        });
        Directory {
            parent: self.parent(),
            path: self.path().to_vec(),
            facts: self.facts(),
            flags: self.flags(),
            rules: self.head.rules,
            tree: self.head.tree,
            aside: aside(self.head),
            gap_count: self.head.gap_count.get(),
            entries: entries.collect(),
        }
    }
}

fn aside(head: &Head) -> Option<ObjectId> {
    (head.aside != ObjectId::default()).then_some(head.aside)
}

/// Appends a directory's block.
pub(crate) fn put_directory(out: &mut Vec<u8>, id: DirectoryId, directory: &Directory) {
    let start = out.len();
    let flags = directory.flags;
    let bit = |on: bool, bit: u8| if on { bit } else { 0 };
    let count = |len: usize| U32::new(u32::try_from(len).expect("a directory's entries and path fit 32 bits"));
    let head = Head {
        parent: directory.parent.into(),
        flags: bit(flags.unsettled, UNSETTLED)
            | bit(flags.repository, REPOSITORY)
            | bit(flags.declared_only, DECLARED_ONLY)
            | bit(flags.stale, STALE)
            | bit(flags.unreadable, UNREADABLE),
        facts: RawFacts::new(&directory.facts),
        rules: directory.rules,
        tree: directory.tree,
        aside: directory.aside.unwrap_or_default(),
        gap_count: directory.gap_count.into(),
        path_len: count(directory.path.len()),
        entries: count(directory.entries.len()),
    };
    out.extend_from_slice(&[0; FRAME_LEN]);
    out.extend_from_slice(head.as_bytes());
    let mut name_end = 0;
    for entry in &directory.entries {
        name_end += entry.name.len();
        let raw = RawEntry {
            name_end: count(name_end),
            kind: entry.kind as u8,
            flags: bit(entry.unsettled, UNSETTLED) | bit(entry.unread, UNREAD) | bit(entry.left_out, LEFT_OUT),
            gaps: entry.gaps.into(),
            child: entry.child.into(),
            facts: RawFacts::new(&entry.facts),
            content: entry.content,
        };
        out.extend_from_slice(raw.as_bytes());
    }
    out.extend_from_slice(&directory.path);
    for entry in &directory.entries {
        out.extend_from_slice(&entry.name);
    }
    close_frame(out, start, id, DIRECTORY);
}

/// Appends the note that a directory is gone.
pub(crate) fn put_removed(out: &mut Vec<u8>, id: DirectoryId) {
    let start = out.len();
    out.extend_from_slice(&[0; FRAME_LEN]);
    close_frame(out, start, id, REMOVED);
}

/// Appends a seal: everything before it belongs together.
pub(crate) fn put_seal(out: &mut Vec<u8>, seal: &Seal) {
    let start = out.len();
    out.extend_from_slice(&[0; FRAME_LEN]);
    let raw = RawSeal {
        rules: seal.rules,
        tracked: seal.tracked,
        collections: seal.collections.into(),
        commits: seal.commits.into(),
        root_dev: seal.root_dev.into(),
        root_ino: seal.root_ino.into(),
    };
    out.extend_from_slice(raw.as_bytes());
    close_frame(out, start, 0, SEAL);
}

fn close_frame(out: &mut [u8], start: usize, id: DirectoryId, what: u8) {
    let len = U32::new(u32::try_from(out.len() - start).expect("a directory's block fits 32 bits"));
    let frame = Frame { checksum: U64::ZERO, len, id: id.into(), what };
    out[start..start + FRAME_LEN].copy_from_slice(frame.as_bytes());
    let sum = checksum(&out[start + 8..]);
    out[start..start + 8].copy_from_slice(&sum.to_le_bytes());
}

/// The frame at the start of `bytes`, if its lengths add up. Checksums of directories are left to the scan.
pub(crate) fn check_frame(bytes: &[u8]) -> Option<Frame> {
    let (frame, _) = Frame::read_from_prefix(bytes).ok()?;
    let block = bytes.get(..frame.len.get() as usize)?;
    if frame.id.get() >= limits::MAX_DIRECTORIES {
        return None;
    }
    let sound = match frame.what {
        DIRECTORY => {
            let (head, rest) = Head::ref_from_prefix(block.get(FRAME_LEN..)?).ok()?;
            let (_, names) = <[RawEntry]>::ref_from_prefix_with_elems(rest, head.entries.get() as usize).ok()?;
            names.len() >= head.path_len.get() as usize
        }
        REMOVED | SEAL => block.len() >= FRAME_LEN && checksum(&block[8..]) == frame.checksum.get(),
        _ => false,
    };
    sound.then_some(frame)
}

/// The seal in a block that [`check_frame`] has passed.
pub(crate) fn seal(block: &[u8]) -> Option<Seal> {
    let (raw, _) = RawSeal::read_from_prefix(block.get(FRAME_LEN..)?).ok()?;
    Some(Seal {
        rules: raw.rules,
        tracked: raw.tracked,
        collections: raw.collections.get(),
        commits: raw.commits.get(),
        root_dev: raw.root_dev.get(),
        root_ino: raw.root_ino.get(),
    })
}

/// Recognises torn and damaged bytes; what a content is, its hash says.
fn checksum(bytes: &[u8]) -> u64 {
    u64::from(crc32fast::hash(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block() -> Vec<u8> {
        let entry = |name: &[u8]| Entry {
            name: name.into(),
            kind: EntryKind::File,
            unsettled: false,
            unread: false,
            left_out: false,
            gaps: 0,
            child: 0,
            facts: Facts { ino: 1, size: 2, mtime: 3, ctime: 4, mode: 0o100_644 },
            content: ObjectId::of(b"x"),
        };
        let directory = Directory {
            parent: 0,
            path: b"dir".to_vec(),
            facts: entry(b"").facts,
            flags: Flags { unsettled: false, repository: false, declared_only: false, stale: false, unreadable: false },
            rules: ObjectId::default(),
            tree: ObjectId::default(),
            aside: None,
            gap_count: 0,
            entries: vec![entry(b"one"), entry(b"three"), entry(b"two")],
        };
        let mut bytes = Vec::new();
        put_directory(&mut bytes, 1, &directory);
        bytes
    }

    /// The block with other bytes at `at`, and a checksum that fits them.
    fn forged(at: usize, with: u32) -> Vec<u8> {
        let mut bytes = block();
        bytes[at..at + 4].copy_from_slice(&with.to_le_bytes());
        let sum = checksum(&bytes[8..]);
        bytes[..8].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    #[test]
    fn a_block_that_lies_about_a_number_is_not_used() {
        assert!(check_frame(&block()).is_some() && Block::at(&block(), 0).is_sound());
        let (len, id, counts) = (8, 12, HEAD_END - 8);
        for lie in [u32::MAX, i32::MAX as u32, 1 << 24] {
            for at in [len, id, counts, counts + 4] {
                assert!(check_frame(&forged(at, lie)).is_none(), "{lie} at {at}");
            }
            for entry in 0..3 {
                let bytes = forged(HEAD_END + entry * size_of::<RawEntry>(), lie);
                assert!(check_frame(&bytes).is_some() && !Block::at(&bytes, 0).is_sound(), "{lie} in {entry}");
            }
        }
        // Names that overlap backwards.
        let bytes = forged(HEAD_END + size_of::<RawEntry>(), 1);
        assert!(!Block::at(&bytes, 0).is_sound());
    }
}
