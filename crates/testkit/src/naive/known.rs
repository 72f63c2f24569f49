//! What a naive read proves about a path: that it was there, that it was not, or nothing.
//!
//! Absence is proven only where everything above was fully read and the name was neither ignored nor a gap.

use super::{NaiveKind, NaiveNode, NaiveTree};

/// What is known of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known<'a> {
    /// It was there.
    There(&'a NaiveNode),
    /// It was not there.
    Absent,
    /// It was not captured, so nobody knows.
    Unknown,
}

impl<'a> Known<'a> {
    /// There or not there, as far as it is known.
    pub fn state(self) -> Option<Option<&'a NaiveNode>> {
        match self {
            Self::There(node) => Some(Some(node)),
            Self::Absent => Some(None),
            Self::Unknown => None,
        }
    }
}

impl NaiveTree {
    /// What this read proves about `path`.
    pub fn known(&self, path: &[u8]) -> Known<'_> {
        match self.read(path) {
            Known::Unknown if self.absent.contains(path) => Known::Absent,
            known => known,
        }
    }

    fn read(&self, path: &[u8]) -> Known<'_> {
        let mut fully_read = true;
        for prefix in prefixes(path) {
            match self.nodes.get(prefix) {
                Some(node) if prefix == path => return Known::There(node),
                Some(node) if node.kind == NaiveKind::Directory => fully_read &= !self.partly.contains(prefix),
                // Something else was where a directory would have to be.
                Some(_) => return Known::Absent,
                None if self.left_out.contains(prefix) => return Known::Unknown,
                // In a directory that was entered for certain paths only, absence is proven of these alone.
                None if fully_read || self.sought.contains(path) => return Known::Absent,
                None => return Known::Unknown,
            }
        }
        Known::Unknown
    }
}

/// Every path above `path` from the top, then `path` itself.
fn prefixes(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    slashes.chain([path.len()]).map(|end| &path[..end])
}
