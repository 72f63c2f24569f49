//! Reading asides: the gaps of a checkpoint, and whether absence from it proves anything.

use super::tree::{AsideEntry, GapKind, decode_aside};
use crate::path::join;
use crate::store::{Store, StoreError};
use crate::{ObjectId, WorkspacePath};

/// Something a checkpoint could not capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Where.
    pub path: WorkspacePath,
    /// What is missing.
    pub kind: GapKind,
}

fn load(store: &Store, id: ObjectId) -> Result<Vec<AsideEntry>, StoreError> {
    let (_, bytes) = store.read(id)?;
    decode_aside(&bytes).map_err(|_| StoreError::Malformed { id, expected: "aside" })
}

/// All gaps below an aside, by path.
pub(crate) fn gaps(store: &Store, root: Option<ObjectId>) -> Result<Vec<Gap>, StoreError> {
    let mut gaps = Vec::new();
    let mut queue: Vec<(Vec<u8>, ObjectId)> = root.map(|id| (Vec::new(), id)).into_iter().collect();
    while let Some((directory, id)) = queue.pop() {
        for entry in load(store, id)? {
            let path = join(&directory, &entry.name);
            let parsed = WorkspacePath::parse(&path).expect("asides hold plain names only");
            gaps.extend(entry.reasons.gaps().map(|kind| Gap { path: parsed.clone(), kind }));
            queue.extend(entry.child.map(|child| (path, child)));
        }
    }
    gaps.sort_unstable_by(|a, b| (&a.path, a.kind).cmp(&(&b.path, b.kind)));
    Ok(gaps)
}
