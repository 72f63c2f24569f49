//! Reading asides: the gaps of a checkpoint, and whether absence from it proves anything.

use std::collections::BTreeMap;

use crate::base::id::ObjectId;
use crate::base::path::{WorkspacePath, join};
use crate::store::StoreError;
use crate::store::tree::{AsideEntry, GapKind, Reasons, decode_aside};

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

/// Paths that the rules left out beside `now` and not beside `then`. Equal asides are never read.
pub(crate) fn newly_left_out(
    then: Option<ObjectId>,
    now: Option<ObjectId>,
    read: impl Fn(ObjectId) -> Result<Vec<u8>, StoreError>,
) -> Result<Vec<WorkspacePath>, StoreError> {
    let load = |id: Option<ObjectId>| -> Result<Vec<AsideEntry>, StoreError> {
        let Some(id) = id else { return Ok(Vec::new()) };
        decode_aside(&read(id)?).map_err(|_| StoreError::Malformed { id, expected: "aside" })
    };
    let is_left_out = |entry: &AsideEntry| entry.reasons.0 & Reasons::IGNORED != 0;
    let mut found = Vec::new();
    let mut queue = vec![(Vec::new(), then, now)];
    while let Some((directory, then, now)) = queue.pop() {
        if then == now {
            continue;
        }
        let old: BTreeMap<Vec<u8>, AsideEntry> =
            load(then)?.into_iter().map(|entry| (entry.name.clone(), entry)).collect();
        for entry in load(now)? {
            let old = old.get(&entry.name);
            let path = join(&directory, &entry.name);
            if is_left_out(&entry) && !old.is_some_and(is_left_out) {
                found.push(WorkspacePath::parse(&path).expect("asides hold plain names only"));
            }
            queue.extend(entry.child.map(|child| (path, old.and_then(|old| old.child), Some(child))));
        }
    }
    found.sort_unstable();
    Ok(found)
}
