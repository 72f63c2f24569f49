//! Trees: one object per directory, and asides: what of a directory is not in its tree.
//!
//! A tree lists a directory's captured children by name; the tree of the root is the snapshot. An aside lists, for the
//! same directory, what was left out and why (ignored, or a [gap](GapKind)), what gaps looked like, and the asides of its
//! subdirectories. It is stored beside the checkpoint and never enters the snapshot's id. A directory with nothing to tell has no aside.
//!
//! Both encodings are canonical: equal content gives equal bytes. Decoding trusts nothing: names are checked, so that a
//! tampered store cannot name a place outside the workspace.

use std::fmt;

use crate::base::id::ObjectId;
use crate::base::path::is_plain_name;

const VERSION: u8 = 1;

/// What a captured path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeKind {
    /// A regular file.
    File = 1,
    /// A symbolic link; its target is its content.
    Symlink = 2,
    /// A directory; its content is its tree.
    Directory = 3,
}

impl NodeKind {
    /// The kind's name in listings and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Symlink => "symlink",
            Self::Directory => "directory",
        }
    }
}

/// A captured path's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// What it is.
    pub kind: NodeKind,
    /// Permission bits, `07777`; zero for symbolic links, which have none.
    pub mode: u16,
    /// The content: a file's bytes, a link's target, a directory's tree.
    pub content: ObjectId,
    /// Length of the content in bytes; zero for directories.
    pub size: u64,
}

/// A decoded tree: children by name, in byte order.
pub(crate) type Tree = Vec<(Vec<u8>, Node)>;

/// What the checkpoint does not hold of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GapKind {
    /// Larger than the settings allow.
    TooLarge,
    /// Reading it was refused or failed.
    Unreadable,
    /// A socket, fifo or device.
    Special,
    /// Another file system is mounted there.
    OtherFilesystem,
    /// Captured, but not that it shares its content with another name.
    HardLink,
    /// Captured, but without its extended attributes.
    ExtendedAttributes,
    /// Captured, but not that it belongs to another user.
    ForeignOwner,
    /// It changed each time it was read.
    Unstable,
    /// A later check found a change that the watch had not reported in time.
    Missed,
    /// It was removed from all checkpoints for good.
    Purged,
}

impl GapKind {
    /// All kinds.
    pub const ALL: [Self; 10] = [
        Self::TooLarge,
        Self::Unreadable,
        Self::Special,
        Self::OtherFilesystem,
        Self::HardLink,
        Self::ExtendedAttributes,
        Self::ForeignOwner,
        Self::Unstable,
        Self::Missed,
        Self::Purged,
    ];

    /// The kind's name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::TooLarge => "too_large",
            Self::Unreadable => "unreadable",
            Self::Special => "special",
            Self::OtherFilesystem => "other_filesystem",
            Self::HardLink => "hard_link",
            Self::ExtendedAttributes => "extended_attributes",
            Self::ForeignOwner => "foreign_owner",
            Self::Unstable => "unstable",
            Self::Missed => "missed",
            Self::Purged => "purged",
        }
    }

    /// The kind in words that follow a path.
    pub fn describe(self) -> &'static str {
        match self {
            Self::TooLarge => "larger than `capture.max_file`: not captured",
            Self::Unreadable => "cannot be read: not captured",
            Self::Special => "socket, fifo or device: not captured",
            Self::OtherFilesystem => "another file system is mounted here: not captured",
            Self::HardLink => "content captured, hard link not",
            Self::ExtendedAttributes => "content captured, extended attributes not",
            Self::ForeignOwner => "content captured, its foreign owner not",
            Self::Unstable => "kept changing while it was read: not captured",
            Self::Purged => "removed from the store with `retake purge`: not kept",
            Self::Missed => "changed at about that time: its state then is uncertain",
        }
    }

    /// Whether the content is missing, not just a property of it.
    pub fn is_uncaptured(self) -> bool {
        !matches!(self, Self::HardLink | Self::ExtendedAttributes | Self::ForeignOwner)
    }

    pub(crate) fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// Why a name stands in an aside: a set of gap kinds, or that a rule ignored it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reasons(pub(crate) u16);

impl Reasons {
    /// An ignore rule matched it (and, for a directory, it was not entered).
    pub(crate) const IGNORED: u16 = 1 << 15;

    pub(crate) fn gaps(self) -> impl Iterator<Item = GapKind> {
        GapKind::ALL.into_iter().filter(move |kind| self.0 & kind.bit() != 0)
    }
}

/// One line of an aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AsideEntry {
    pub(crate) name: Vec<u8>,
    pub(crate) reasons: Reasons,
    /// The aside of that directory, if it has one.
    pub(crate) child: Option<ObjectId>,
    /// What it looked like, if it is a gap that `lstat` tells something of.
    pub(crate) looks: Option<Looks>,
}

/// What a path looked like whose content is not captured: enough to tell that it has changed, or may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Looks {
    /// Type and permission bits.
    pub(crate) mode: u32,
    pub(crate) size: u64,
    pub(crate) mtime: i64,
    pub(crate) ctime: i64,
}

/// Bits of the byte before a name in an aside.
const HAS_CHILD: u8 = 1;
const HAS_LOOKS: u8 = 2;

/// The bytes do not decode.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("malformed")
    }
}

/// Encodes a tree, child after child.
pub(crate) struct TreeEncoder(Vec<u8>);

impl TreeEncoder {
    pub(crate) fn new() -> Self {
        Self(vec![VERSION])
    }

    /// Adds a child; names must come in byte order.
    pub(crate) fn push(&mut self, name: &[u8], node: &Node) {
        self.0.push(node.kind as u8);
        self.0.extend_from_slice(&node.mode.to_le_bytes());
        put_varint(&mut self.0, node.size);
        put_varint(&mut self.0, name.len() as u64);
        self.0.extend_from_slice(name);
        self.0.extend_from_slice(node.content.as_bytes());
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Decodes and checks a tree.
pub(crate) fn decode_tree(bytes: &[u8]) -> Result<Tree, Malformed> {
    let mut rest = expect_version(bytes)?;
    let mut tree = Tree::new();
    while !rest.is_empty() {
        let kind = match take(&mut rest, 1)?[0] {
            1 => NodeKind::File,
            2 => NodeKind::Symlink,
            3 => NodeKind::Directory,
            _ => return Err(Malformed),
        };
        let mode = u16::from_le_bytes(take(&mut rest, 2)?.try_into().map_err(|_| Malformed)?);
        let size = take_varint(&mut rest)?;
        let name = take_name(&mut rest)?;
        let content = take_id(&mut rest)?;
        if mode > 0o7777 || tree.last().is_some_and(|(last, _)| *last >= name) {
            return Err(Malformed);
        }
        tree.push((name, Node { kind, mode, content, size }));
    }
    Ok(tree)
}

/// Encodes an aside; `entries` must come in byte order of their names.
pub(crate) fn encode_aside(entries: &[AsideEntry]) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    for entry in entries {
        bytes.extend_from_slice(&entry.reasons.0.to_le_bytes());
        let child = if entry.child.is_some() { HAS_CHILD } else { 0 };
        let looks = if entry.looks.is_some() { HAS_LOOKS } else { 0 };
        bytes.push(child | looks);
        put_varint(&mut bytes, entry.name.len() as u64);
        bytes.extend_from_slice(&entry.name);
        if let Some(child) = entry.child {
            bytes.extend_from_slice(child.as_bytes());
        }
        if let Some(Looks { mode, size, mtime, ctime }) = entry.looks {
            bytes.extend_from_slice(&mode.to_le_bytes());
            put_varint(&mut bytes, size);
            bytes.extend_from_slice(&mtime.to_le_bytes());
            bytes.extend_from_slice(&ctime.to_le_bytes());
        }
    }
    bytes
}

/// Decodes and checks an aside.
pub(crate) fn decode_aside(bytes: &[u8]) -> Result<Vec<AsideEntry>, Malformed> {
    let mut rest = expect_version(bytes)?;
    let mut entries = Vec::new();
    while !rest.is_empty() {
        let reasons = Reasons(u16::from_le_bytes(take(&mut rest, 2)?.try_into().map_err(|_| Malformed)?));
        let has = take(&mut rest, 1)?[0];
        if has & !(HAS_CHILD | HAS_LOOKS) != 0 {
            return Err(Malformed);
        }
        let name = take_name(&mut rest)?;
        let child = if has & HAS_CHILD != 0 { Some(take_id(&mut rest)?) } else { None };
        let looks = if has & HAS_LOOKS != 0 { Some(take_looks(&mut rest)?) } else { None };
        entries.push(AsideEntry { name, reasons, child, looks });
    }
    Ok(entries)
}

fn expect_version(bytes: &[u8]) -> Result<&[u8], Malformed> {
    match bytes.split_first() {
        Some((&VERSION, rest)) => Ok(rest),
        _ => Err(Malformed),
    }
}

fn take<'a>(rest: &mut &'a [u8], len: usize) -> Result<&'a [u8], Malformed> {
    let (taken, left) = rest.split_at_checked(len).ok_or(Malformed)?;
    *rest = left;
    Ok(taken)
}

fn take_name(rest: &mut &[u8]) -> Result<Vec<u8>, Malformed> {
    let len = usize::try_from(take_varint(rest)?).map_err(|_| Malformed)?;
    let name = take(rest, len)?;
    if is_plain_name(name) { Ok(name.to_vec()) } else { Err(Malformed) }
}

fn take_looks(rest: &mut &[u8]) -> Result<Looks, Malformed> {
    let mode = u32::from_le_bytes(take(rest, 4)?.try_into().map_err(|_| Malformed)?);
    let size = take_varint(rest)?;
    let mut time = || Ok(i64::from_le_bytes(take(rest, 8)?.try_into().map_err(|_| Malformed)?));
    Ok(Looks { mode, size, mtime: time()?, ctime: time()? })
}

fn take_id(rest: &mut &[u8]) -> Result<ObjectId, Malformed> {
    Ok(ObjectId::from_bytes(take(rest, 32)?.try_into().map_err(|_| Malformed)?))
}

fn put_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        #[allow(clippy::cast_possible_truncation, reason = "the low seven bits are meant")]
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    #[allow(clippy::cast_possible_truncation, reason = "less than 0x80")]
    bytes.push(value as u8);
}

fn take_varint(rest: &mut &[u8]) -> Result<u64, Malformed> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(rest, 1)?[0];
        let bits = u64::from(byte & 0x7f);
        // Bits that are lost, or a longer form of a shorter number: equal content would have two ids.
        if bits << shift >> shift != bits || (byte == 0 && shift > 0) {
            return Err(Malformed);
        }
        value |= bits << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(Malformed)
}

/// Whether two states of a path are the same. A directory's content is told by what is in it.
pub(crate) fn same(a: Option<&Node>, b: Option<&Node>) -> bool {
    comparable(a) == comparable(b)
}

/// What a state of a path is compared by; `None` if nothing is there.
pub(crate) type Comparable = Option<(NodeKind, u16, Option<ObjectId>)>;

pub(crate) fn comparable(node: Option<&Node>) -> Comparable {
    node.map(|node| (node.kind, node.mode, (node.kind != NodeKind::Directory).then_some(node.content)))
}

/// A node as the database keeps it.
pub(crate) fn encode_node(node: &Node) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(43);
    bytes.push(match node.kind {
        NodeKind::File => 0,
        NodeKind::Symlink => 1,
        NodeKind::Directory => 2,
    });
    bytes.extend_from_slice(&node.mode.to_le_bytes());
    // A directory's content is told by what is in it.
    let content = if node.kind == NodeKind::Directory { ObjectId::default() } else { node.content };
    bytes.extend_from_slice(content.as_bytes());
    bytes.extend_from_slice(&node.size.to_le_bytes());
    bytes
}

/// The node in `bytes`.
pub(crate) fn decode_node(bytes: &[u8]) -> Option<Node> {
    let kind = match bytes.first()? {
        0 => NodeKind::File,
        1 => NodeKind::Symlink,
        2 => NodeKind::Directory,
        _ => return None,
    };
    let mode = u16::from_le_bytes(bytes.get(1..3)?.try_into().ok()?);
    let content = ObjectId::from_bytes(bytes.get(3..35)?.try_into().ok()?);
    let size = u64::from_le_bytes(bytes.get(35..43)?.try_into().ok()?);
    Some(Node { kind, mode, content, size })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(kind: NodeKind, mode: u16, size: u64) -> Node {
        Node { kind, mode, content: ObjectId::of(b"x"), size }
    }

    #[test]
    fn a_tree_decodes_to_what_was_encoded() {
        let tree = vec![
            (b"a\n\xff".to_vec(), node(NodeKind::File, 0o4755, u64::MAX)),
            (b"b".to_vec(), node(NodeKind::Directory, 0o1777, 0)),
            (b"c".to_vec(), node(NodeKind::Symlink, 0, 300)),
        ];
        let mut encoder = TreeEncoder::new();
        tree.iter().for_each(|(name, node)| encoder.push(name, node));
        let bytes = encoder.finish();
        assert_eq!(decode_tree(&bytes), Ok(tree));
        // A cut between two entries leaves a valid, smaller tree; the hash guards against that. All other cuts fail.
        assert!((1..bytes.len()).filter(|&len| decode_tree(&bytes[..len]).is_ok()).count() <= 3);
    }

    #[test]
    fn names_that_leave_the_directory_are_refused() {
        for name in [&b".."[..], b".", b"", b"a/b", b"/etc", b"nul\0"] {
            let mut encoder = TreeEncoder::new();
            encoder.push(name, &node(NodeKind::File, 0o644, 1));
            assert_eq!(decode_tree(&encoder.finish()), Err(Malformed));
        }
    }

    #[test]
    fn lengths_that_lie_are_malformed() {
        let long = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
        let tree = [&[VERSION, 1, 0, 0, 1][..], &long, b"name"].concat();
        assert_eq!(decode_tree(&tree), Err(Malformed));
        let aside = [&[VERSION, 0, 0, 0][..], &long, b"name"].concat();
        assert_eq!(decode_aside(&aside), Err(Malformed));
        // A number without an end.
        assert_eq!(decode_tree(&[&[VERSION, 1, 0, 0][..], &[0xff; 20]].concat()), Err(Malformed));
    }

    #[test]
    fn a_second_encoding_of_the_same_content_is_malformed() {
        let mut encoder = TreeEncoder::new();
        encoder.push(b"a", &node(NodeKind::File, 0o644, 0));
        let tree = encoder.finish();
        assert!(decode_tree(&tree).is_ok());
        // The size, zero, in two bytes.
        let longer = [&tree[..4], &[0x80, 0], &tree[5..]].concat();
        assert_eq!(decode_tree(&longer), Err(Malformed));
        // The size with bits that 64 do not hold.
        let beyond = [&tree[..4], &[0x80; 9], &[2], &tree[5..]].concat();
        assert_eq!(decode_tree(&beyond), Err(Malformed));

        let entry = AsideEntry { name: b"a".to_vec(), reasons: Reasons(1), child: None, looks: None };
        let mut aside = encode_aside(&[entry]);
        assert!(decode_aside(&aside).is_ok());
        // A flag without a meaning.
        aside[3] |= 4;
        assert_eq!(decode_aside(&aside), Err(Malformed));
    }

    #[test]
    fn an_aside_decodes_to_what_was_encoded() {
        let looks = Looks { mode: 0o100_644, size: 1 << 40, mtime: -1, ctime: i64::MAX };
        let entry = |name: &str, reasons, child, looks| AsideEntry {
            name: name.as_bytes().to_vec(),
            reasons: Reasons(reasons),
            child,
            looks,
        };
        let entries = vec![
            entry("big", GapKind::TooLarge.bit(), None, Some(looks)),
            entry("sub", 0, Some(ObjectId::of(b"y")), None),
            entry("target", Reasons::IGNORED, None, None),
        ];
        assert_eq!(decode_aside(&encode_aside(&entries)), Ok(entries));
    }
}
