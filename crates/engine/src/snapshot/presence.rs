//! What a snapshot proves about a path: that it was there, that it was not, or nothing.
//!
//! Absence from a tree proves absence only where the directory was fully read and the name was neither left out by the
//! rules nor a gap. Trees that were read are kept, so that asking for many paths is cheap.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use super::gaps::{self, Gap};
use crate::base::id::ObjectId;
use crate::base::path::WorkspacePath;
use crate::store::StoreError;
use crate::store::tree::{AsideEntry, GapKind, Node, NodeKind, Reasons, Tree, decode_aside, decode_tree};

/// What is known of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    /// It was there.
    There(Node),
    /// It was not there.
    Absent,
    /// It was not captured, so nobody knows.
    Unknown,
}

impl Presence {
    /// The state as far as it is known: there, or not there.
    pub(crate) fn state(self) -> Option<Option<Node>> {
        match self {
            Self::There(node) => Some(Some(node)),
            Self::Absent => Some(None),
            Self::Unknown => None,
        }
    }
}

/// Reads an object's bytes.
pub(crate) type Read<'a> = dyn Fn(ObjectId) -> Result<Vec<u8>, StoreError> + 'a;

/// Answers for one snapshot and what was left out beside it.
pub(crate) struct Evidence<'a> {
    read: Box<Read<'a>>,
    root: ObjectId,
    aside: Option<ObjectId>,
    /// Paths whose state was found out to be wrong afterwards.
    missed: BTreeSet<WorkspacePath>,
    /// Paths that were looked for although the rules leave out what is around them.
    sought: BTreeSet<WorkspacePath>,
    /// Paths that were looked for on disk and were not there, although the rules leave out what is around them.
    absent: BTreeSet<WorkspacePath>,
    trees: RefCell<HashMap<ObjectId, Rc<Tree>>>,
    asides: RefCell<HashMap<ObjectId, Rc<Vec<AsideEntry>>>>,
}

impl<'a> Evidence<'a> {
    pub(crate) fn new(
        root: ObjectId,
        aside: Option<ObjectId>,
        missed: BTreeSet<WorkspacePath>,
        read: impl Fn(ObjectId) -> Result<Vec<u8>, StoreError> + 'a,
    ) -> Self {
        Self {
            read: Box::new(read),
            root,
            aside,
            missed,
            sought: BTreeSet::new(),
            absent: BTreeSet::new(),
            trees: RefCell::default(),
            asides: RefCell::default(),
        }
    }

    /// Takes it that `paths` were looked for whatever the rules say.
    pub(crate) fn having_sought(self, sought: BTreeSet<WorkspacePath>) -> Self {
        Self { sought, ..self }
    }

    /// Takes it that `paths` were not there.
    pub(crate) fn having_missed(self, absent: BTreeSet<WorkspacePath>) -> Self {
        Self { absent, ..self }
    }

    /// Whether `path` was looked for whatever the rules say.
    pub(crate) fn has_sought(&self, path: &WorkspacePath) -> bool {
        self.sought.contains(path)
    }

    /// What was not captured, or not wholly.
    pub(crate) fn gaps(&self) -> Result<Vec<Gap>, StoreError> {
        gaps::gaps(self.aside, &self.read)
    }

    /// The bytes of an object.
    pub(crate) fn read_object(&self, id: ObjectId) -> Result<Vec<u8>, StoreError> {
        (self.read)(id)
    }

    /// What is known of `path`.
    pub(crate) fn at(&self, path: &WorkspacePath) -> Result<Presence, StoreError> {
        if self.missed.contains(path) {
            return Ok(Presence::Unknown);
        }
        Ok(match self.captured(path)? {
            Presence::Unknown if self.absent.contains(path) => Presence::Absent,
            known => known,
        })
    }

    /// What the trees and what was left out beside them say of `path`.
    fn captured(&self, path: &WorkspacePath) -> Result<Presence, StoreError> {
        let (mut tree, mut aside) = (self.root, self.aside);
        let (mut listed, mut readable) = (true, true);
        let mut names = path.components().peekable();
        while let Some(name) = names.next() {
            let node = self.child(tree, name)?;
            let beside = self.beside(aside, name)?;
            match node {
                Some(node) if names.peek().is_none() => return Ok(Presence::There(node)),
                Some(node) if node.kind == NodeKind::Directory => {
                    tree = node.content;
                    let reasons = beside.as_ref().map_or(0, |entry| entry.reasons.0);
                    listed &= reasons & Reasons::IGNORED == 0;
                    readable &= reasons & GapKind::Unreadable.bit() == 0;
                    aside = beside.and_then(|entry| entry.child);
                }
                // Something else was where a directory would have to be.
                Some(_) => return Ok(Presence::Absent),
                // Whoever sought it in a directory that cannot be read has not found out either.
                None if beside.is_none() && readable && (listed || self.sought.contains(path)) => {
                    return Ok(Presence::Absent);
                }
                None => return Ok(Presence::Unknown),
            }
        }
        Ok(Presence::Unknown)
    }

    /// Whether a rule left out `path`, or a directory above it, and that was there.
    pub(crate) fn is_left_out(&self, path: &WorkspacePath) -> Result<bool, StoreError> {
        if self.absent.contains(path) {
            return Ok(false);
        }
        let (mut tree, mut aside) = (self.root, self.aside);
        let mut in_left_out = false;
        for name in path.components() {
            let beside = self.beside(aside, name)?;
            let is_left_out = beside.as_ref().is_some_and(|entry| entry.reasons.0 & Reasons::IGNORED != 0);
            match self.child(tree, name)? {
                Some(node) if node.kind == NodeKind::Directory => {
                    tree = node.content;
                    aside = beside.and_then(|entry| entry.child);
                    in_left_out |= is_left_out;
                }
                Some(_) => return Ok(false),
                // One that is kept in a directory that a rule leaves out, and is a gap now, was looked at.
                None if beside.is_some() => return Ok(is_left_out),
                None => return Ok(in_left_out && !self.sought.contains(path)),
            }
        }
        Ok(false)
    }

    fn child(&self, tree: ObjectId, name: &[u8]) -> Result<Option<Node>, StoreError> {
        let tree = self.tree(tree)?;
        let found = tree.binary_search_by(|(other, _)| other.as_slice().cmp(name));
        Ok(found.ok().map(|position| tree[position].1))
    }

    pub(crate) fn tree(&self, id: ObjectId) -> Result<Rc<Tree>, StoreError> {
        if let Some(tree) = self.trees.borrow().get(&id) {
            return Ok(Rc::clone(tree));
        }
        let tree = decode_tree(&(self.read)(id)?).map_err(|_| StoreError::Malformed { id, expected: "directory" })?;
        let tree = Rc::new(tree);
        self.trees.borrow_mut().insert(id, Rc::clone(&tree));
        Ok(tree)
    }

    fn beside(&self, aside: Option<ObjectId>, name: &[u8]) -> Result<Option<AsideEntry>, StoreError> {
        Ok(self.lines(aside)?.iter().find(|entry| entry.name == name).cloned())
    }

    /// The aside of the root.
    pub(crate) fn aside(&self) -> Option<ObjectId> {
        self.aside
    }

    /// The lines of an aside; none if there is none.
    pub(crate) fn lines(&self, aside: Option<ObjectId>) -> Result<Rc<Vec<AsideEntry>>, StoreError> {
        let Some(id) = aside else { return Ok(Rc::default()) };
        let known = self.asides.borrow().get(&id).map(Rc::clone);
        if let Some(entries) = known {
            return Ok(entries);
        }
        let decoded = decode_aside(&(self.read)(id)?);
        let entries = Rc::new(decoded.map_err(|_| StoreError::Malformed { id, expected: "aside" })?);
        self.asides.borrow_mut().insert(id, Rc::clone(&entries));
        Ok(entries)
    }
}
