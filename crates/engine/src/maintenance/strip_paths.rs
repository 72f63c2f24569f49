//! Trees without certain paths: what purging makes of the checkpoints.
//!
//! Each directory is rewritten once, however many checkpoints share it. What is taken out becomes a gap, so that no rewind takes
//! its absence for a fact. A directory that cannot be read any more stays as it is: nothing that only it leads to is kept.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::base::id::ObjectId;
use crate::base::path::{WorkspacePath, join};
use crate::snapshot::gaps;
use crate::store::tree::{
    AsideEntry, GapKind, Node, NodeKind, Reasons, Tree, TreeEncoder, decode_aside, decode_tree, encode_aside,
};
use crate::store::{Batch, ObjectKind, StoreError};

/// A name that is wanted, or that leads to such a one.
#[derive(Default)]
struct Wanted {
    itself: bool,
    children: BTreeMap<Vec<u8>, usize>,
}

/// A directory: its tree and what is beside it.
pub(super) type Directory = (ObjectId, Option<ObjectId>);

/// Takes paths out of trees. New objects go into a batch.
pub(super) struct Without<'a, 'b> {
    batch: &'a Batch<'b>,
    wanted: Vec<Wanted>,
    done: HashMap<(Directory, usize), Directory>,
    gaps: HashMap<ObjectId, u64>,
    /// Contents that were taken out, with their sizes.
    pub(super) removed: BTreeMap<ObjectId, u64>,
    /// Directories whose contents have been noted.
    noted: HashSet<ObjectId>,
    /// New objects, which cannot be read from the store yet.
    fresh: HashMap<ObjectId, Vec<u8>>,
}

impl<'a, 'b> Without<'a, 'b> {
    pub(super) fn new(paths: &[WorkspacePath], batch: &'a Batch<'b>) -> Self {
        let mut wanted = vec![Wanted::default()];
        for path in paths {
            let mut at = 0;
            for name in path.components() {
                let next = wanted.len();
                let child = *wanted[at].children.entry(name.to_vec()).or_insert(next);
                if child == next {
                    wanted.push(Wanted::default());
                }
                at = child;
            }
            wanted[at].itself = true;
        }
        Self {
            batch,
            wanted,
            done: HashMap::new(),
            gaps: HashMap::new(),
            removed: BTreeMap::new(),
            noted: HashSet::new(),
            fresh: HashMap::new(),
        }
    }

    /// A checkpoint's root without the paths.
    pub(super) fn root(&mut self, root: Directory) -> Result<Directory, StoreError> {
        self.directory(root, 0)
    }

    /// How many gaps an aside tells of; `None` if it cannot be read.
    pub(super) fn gap_count(&mut self, id: ObjectId) -> Result<Option<u64>, StoreError> {
        if let Some(&known) = self.gaps.get(&id) {
            return Ok(Some(known));
        }
        match gaps::gaps(Some(id), |id| self.read(id)) {
            Ok(gaps) => {
                self.gaps.insert(id, gaps.len() as u64);
                Ok(Some(gaps.len() as u64))
            }
            Err(StoreError::Damaged { .. } | StoreError::Missing { .. } | StoreError::Malformed { .. }) => Ok(None),
            Err(err) => Err(err),
        }
    }

    fn directory(&mut self, directory: Directory, wanted: usize) -> Result<Directory, StoreError> {
        if let Some(&done) = self.done.get(&(directory, wanted)) {
            return Ok(done);
        }
        let (tree_id, aside_id) = directory;
        let Some(mut tree) = self.readable_tree(tree_id)? else { return Ok(directory) };
        // One that cannot be read stays: nothing can be told from it, so nothing is taken for a fact.
        let mut aside = match aside_id {
            Some(id) => self.readable(id)?.and_then(|bytes| decode_aside(&bytes).ok()),
            None => Some(Vec::new()),
        };
        let (mut tree_changed, mut aside_changed) = (false, false);
        for (name, below) in self.wanted[wanted].children.clone() {
            let Ok(position) = tree.binary_search_by(|(other, _)| other.cmp(&name)) else { continue };
            let node = tree[position].1;
            if self.wanted[below].itself {
                tree.remove(position);
                self.note(&node)?;
                tree_changed = true;
                if let Some(aside) = &mut aside {
                    let line = beside(aside, &name);
                    (line.reasons, line.child) = (Reasons(GapKind::Purged.bit()), None);
                    aside_changed = true;
                }
            } else if node.kind == NodeKind::Directory {
                let child = aside.iter().flatten().find(|entry| entry.name == name).and_then(|entry| entry.child);
                let (new_tree, new_child) = self.directory((node.content, child), below)?;
                tree_changed |= new_tree != node.content;
                tree[position].1.content = new_tree;
                if let (Some(aside), true) = (&mut aside, new_child != child) {
                    beside(aside, &name).child = new_child;
                    aside_changed = true;
                }
            }
        }
        let new_tree = if tree_changed { self.put_tree(&tree)? } else { tree_id };
        let new_aside = match aside {
            Some(entries) if aside_changed => Some(self.put(ObjectKind::Aside, encode_aside(&entries))?),
            _ => aside_id,
        };
        self.done.insert((directory, wanted), (new_tree, new_aside));
        Ok((new_tree, new_aside))
    }

    /// Notes everything that `node` holds as taken out.
    fn note(&mut self, node: &Node) -> Result<(), StoreError> {
        let mut queue = vec![*node];
        while let Some(node) = queue.pop() {
            match node.kind {
                NodeKind::Directory if self.noted.insert(node.content) => {
                    let tree = self.readable_tree(node.content)?.unwrap_or_default();
                    queue.extend(tree.into_iter().map(|(_, node)| node));
                }
                NodeKind::Directory => {}
                NodeKind::File | NodeKind::Symlink => drop(self.removed.insert(node.content, node.size)),
            }
        }
        Ok(())
    }

    /// Paths below `roots` that hold a content that was taken out elsewhere, each content once.
    pub(super) fn still_held(&self, roots: &[ObjectId]) -> Result<BTreeMap<ObjectId, Vec<u8>>, StoreError> {
        let mut held = BTreeMap::new();
        let mut seen = HashSet::new();
        let mut queue: Vec<(Vec<u8>, ObjectId)> = roots.iter().map(|root| (Vec::new(), *root)).collect();
        while let Some((above, id)) = queue.pop() {
            if !seen.insert(id) {
                continue;
            }
            for (name, node) in self.readable_tree(id)?.unwrap_or_default() {
                match node.kind {
                    NodeKind::Directory => queue.push((join(&above, &name), node.content)),
                    // Nothing is the content of many.
                    _ if node.size > 0 && self.removed.contains_key(&node.content) => {
                        held.entry(node.content).or_insert_with(|| join(&above, &name));
                    }
                    NodeKind::File | NodeKind::Symlink => {}
                }
            }
        }
        Ok(held)
    }

    fn put_tree(&mut self, tree: &Tree) -> Result<ObjectId, StoreError> {
        let mut encoder = TreeEncoder::new();
        tree.iter().for_each(|(name, node)| encoder.push(name, node));
        self.put(ObjectKind::Tree, encoder.finish())
    }

    fn put(&mut self, kind: ObjectKind, bytes: Vec<u8>) -> Result<ObjectId, StoreError> {
        let id = ObjectId::of(&bytes);
        self.batch.put(kind, id, &bytes)?;
        self.fresh.insert(id, bytes);
        Ok(id)
    }

    fn readable_tree(&self, id: ObjectId) -> Result<Option<Tree>, StoreError> {
        Ok(self.readable(id)?.and_then(|bytes| decode_tree(&bytes).ok()))
    }

    /// An object's bytes; `None` if they are damaged.
    fn readable(&self, id: ObjectId) -> Result<Option<Vec<u8>>, StoreError> {
        match self.read(id) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(StoreError::Damaged { .. } | StoreError::Missing { .. }) => Ok(None),
            Err(err) => Err(err),
        }
    }

    fn read(&self, id: ObjectId) -> Result<Vec<u8>, StoreError> {
        match self.fresh.get(&id) {
            Some(bytes) => Ok(bytes.clone()),
            None => Ok(self.batch.store().read(id)?.1),
        }
    }
}

/// The line of `name` in an aside, made if there is none.
fn beside<'e>(entries: &'e mut Vec<AsideEntry>, name: &[u8]) -> &'e mut AsideEntry {
    let position = entries.binary_search_by(|entry| entry.name.as_slice().cmp(name)).unwrap_or_else(|position| {
        entries.insert(
            position,
            AsideEntry { name: name.to_vec(), reasons: Reasons::default(), child: None, looks: None },
        );
        position
    });
    &mut entries[position]
}
