//! Reading asides: the gaps of a checkpoint, and whether absence from it proves anything.

use super::tree::{GapKind, decode_aside};
use crate::path::join;
use crate::store::StoreError;
use crate::{ObjectId, WorkspacePath};

/// Something a checkpoint could not capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Where.
    pub path: WorkspacePath,
    /// What is missing.
    pub kind: GapKind,
}

/// All gaps below an aside, by path. `read` gives the bytes of an object.
pub(crate) fn gaps(
    root: Option<ObjectId>,
    read: impl Fn(ObjectId) -> Result<Vec<u8>, StoreError>,
) -> Result<Vec<Gap>, StoreError> {
    let mut gaps = Vec::new();
    let mut queue: Vec<(Vec<u8>, ObjectId)> = root.map(|id| (Vec::new(), id)).into_iter().collect();
    while let Some((directory, id)) = queue.pop() {
        let entries = decode_aside(&read(id)?).map_err(|_| StoreError::Malformed { id, expected: "aside" })?;
        for entry in entries {
            let path = join(&directory, &entry.name);
            let parsed = WorkspacePath::parse(&path).expect("asides hold plain names only");
            gaps.extend(entry.reasons.gaps().map(|kind| Gap { path: parsed.clone(), kind }));
            queue.extend(entry.child.map(|child| (path, child)));
        }
    }
    gaps.sort_unstable_by(|a, b| (&a.path, a.kind).cmp(&(&b.path, b.kind)));
    Ok(gaps)
}
