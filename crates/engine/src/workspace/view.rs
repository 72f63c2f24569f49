//! Looking at a snapshot, or at what is on disk now, without changing anything.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use thiserror::Error;

use crate::base::id::{ObjectId, SnapshotId};
use crate::base::path::WorkspacePath;
use crate::scan::{Scanned, Sink, open};
use crate::snapshot::gaps::{self, Gap};
use crate::snapshot::presence::Evidence;
use crate::store::tree::{Node, NodeKind, Tree, decode_tree};
use crate::store::{self, CopyError, PutError, Store, StoreError, lock};

/// What is on disk now: hashed, but not stored.
#[derive(Debug)]
pub struct Current {
    scanned: Scanned,
    /// Trees and asides that the store may not have.
    objects: HashMap<ObjectId, Vec<u8>>,
    gaps: Vec<Gap>,
    root: PathBuf,
}

impl Current {
    /// What `sink` took in while the workspace at `root` was scanned, for comparing only.
    pub(crate) fn without_gaps(scanned: Scanned, sink: Hashing, root: &Path) -> Self {
        Self { scanned, objects: sink.into_objects(), gaps: Vec::new(), root: root.to_owned() }
    }

    /// Adds the gaps. Whatever of the index `sink` was not given has to be in `store`.
    pub(crate) fn with_gaps(mut self, store: &Store) -> Result<Self, StoreError> {
        if self.scanned.gap_count > 0 {
            self.gaps = gaps::gaps(self.scanned.aside, |id| match self.objects.get(&id) {
                Some(bytes) => Ok(bytes.clone()),
                None => store.read(id).map(|(_, bytes)| bytes),
            })?;
        }
        Ok(self)
    }

    /// Answers for what is on disk. Whatever of the index was not hashed anew has to be in `store`.
    pub(crate) fn evidence<'a>(&'a self, store: &'a Store) -> Evidence<'a> {
        Evidence::new(self.scanned.snapshot.0, self.scanned.aside, BTreeSet::new(), |id| match self.objects.get(&id) {
            Some(bytes) => Ok(bytes.clone()),
            None => Ok(store.read(id)?.1),
        })
    }

    /// The id that a checkpoint taken now would have.
    pub fn snapshot(&self) -> SnapshotId {
        self.scanned.snapshot
    }

    /// Everything that a checkpoint taken now could not capture, by path.
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }
}

/// One side of a comparison.
#[derive(Clone, Copy, Debug)]
pub enum Side<'a> {
    /// A stored snapshot.
    Stored(SnapshotId),
    /// What is on disk now.
    Now(&'a Current),
}

/// Content could not be copied out.
#[derive(Debug, Error)]
pub enum ContentError {
    /// The store does not have it whole.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file on disk could not be read.
    #[error("cannot read `{}`", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The receiver refused.
    #[error("cannot write the content")]
    Write(#[source] io::Error),
}

/// A sink that only hashes, and keeps the trees for comparing and the asides for telling gaps.
#[derive(Debug, Default)]
pub(crate) struct Hashing {
    objects: Mutex<HashMap<ObjectId, Vec<u8>>>,
}

impl Hashing {
    /// The trees and asides that were put.
    pub(crate) fn into_objects(self) -> HashMap<ObjectId, Vec<u8>> {
        self.objects.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for Hashing {
    fn put(&self, kind: store::ObjectKind, id: ObjectId, plain: &[u8]) -> Result<(), StoreError> {
        if matches!(kind, store::ObjectKind::Tree | store::ObjectKind::Aside) {
            lock(&self.objects).insert(id, plain.to_vec());
        }
        Ok(())
    }

    fn put_large(&self, source: &mut dyn Read) -> Result<(ObjectId, u64), PutError> {
        let mut hasher = blake3::Hasher::new();
        let len = io::copy(source, &mut hasher).map_err(|_| PutError::Read)?;
        Ok((ObjectId::from_bytes(*hasher.finalize().as_bytes()), len))
    }
}

/// Reads a tree of one side.
pub(crate) fn load_tree(store: &Store, side: &Side<'_>, id: ObjectId) -> Result<Tree, StoreError> {
    let malformed = |_| StoreError::Malformed { id, expected: "directory" };
    if let Side::Now(current) = side
        && let Some(bytes) = current.objects.get(&id)
    {
        return decode_tree(bytes).map_err(malformed);
    }
    let (_, bytes) = store.read(id)?;
    decode_tree(&bytes).map_err(malformed)
}

/// The id of a side's root tree.
pub(crate) fn root_tree(side: &Side<'_>) -> ObjectId {
    match side {
        Side::Stored(snapshot) => snapshot.0,
        Side::Now(current) => current.scanned.snapshot.0,
    }
}

/// What is at `path`.
pub(crate) fn entry(store: &Store, side: &Side<'_>, path: &WorkspacePath) -> Result<Option<Node>, StoreError> {
    let mut tree = root_tree(side);
    let mut found: Option<Node> = None;
    for name in path.components() {
        match found {
            Some(node) if node.kind == NodeKind::Directory => tree = node.content,
            Some(_) => return Ok(None),
            None => {}
        }
        let children = load_tree(store, side, tree)?;
        let Ok(at) = children.binary_search_by(|(other, _)| other.as_slice().cmp(name)) else { return Ok(None) };
        found = Some(children[at].1);
    }
    Ok(found)
}

/// Copies the content of `node`, which is at `path` on `side`.
pub(crate) fn content(
    store: &Store,
    side: &Side<'_>,
    path: &WorkspacePath,
    node: &Node,
    out: &mut dyn Write,
) -> Result<(), ContentError> {
    match side {
        Side::Stored(_) => store.copy_content(node.content, out).map_err(|err| match err {
            CopyError::Store(err) => ContentError::Store(err),
            CopyError::Write(err) => ContentError::Write(err),
        }),
        Side::Now(current) => copy_from_disk(&current.root, path, node, out),
    }
}

/// Copies the content of the file or link at `path` below `root`.
pub(crate) fn copy_from_disk(
    root: &Path,
    path: &WorkspacePath,
    node: &Node,
    out: &mut dyn Write,
) -> Result<(), ContentError> {
    let full = root.join(path.to_path());
    let failed = |source: io::Error| ContentError::Read { path: full.clone(), source };
    let fd = open::root(root).map_err(|err| failed(err.into()))?;
    if node.kind == NodeKind::Symlink {
        let target = rustix::fs::readlinkat(&fd, path.to_path(), Vec::new()).map_err(|err| failed(err.into()))?;
        return out.write_all(target.as_bytes()).map_err(ContentError::Write);
    }
    let mut file = open::file(fd.as_fd(), path.as_bytes()).map_err(|err| failed(err.into()))?;
    let mut buffer = vec![0; 64 << 10];
    loop {
        let len = file.read(&mut buffer).map_err(failed)?;
        if len == 0 {
            return Ok(());
        }
        out.write_all(&buffer[..len]).map_err(ContentError::Write)?;
    }
}
