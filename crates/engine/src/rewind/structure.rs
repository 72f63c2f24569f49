//! The shape of a plan: directories that must come before what is in them, and directories that cannot go.

use std::collections::{BTreeMap, BTreeSet};

use rustix::fs::Dir;
use rustix::io::Errno;

use super::plan::{Now, planned};
use super::{Conflict, Kept, KeptBecause, PlannedPath, RewindError, RewindRequest, same};
use crate::scan::open;
use crate::snapshot::known::{Knower, Known};
use crate::snapshot::tree::Kind;
use crate::{Node, ObjectId, StoreError, WorkspacePath};

/// A plan in the making.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) paths: BTreeMap<WorkspacePath, PlannedPath>,
    pub(crate) kept: Vec<Kept>,
    pub(crate) blocked: Vec<WorkspacePath>,
    /// Windows in which the session changed a path, as far as that has not been taken back.
    pub(crate) windows: BTreeMap<WorkspacePath, BTreeSet<i64>>,
}

impl Draft {
    pub(crate) fn add(&mut self, path: PlannedPath) {
        self.paths.insert(path.path.clone(), path);
    }

    /// What will be at `path`; `None` if nobody knows.
    fn outcome(&self, path: &WorkspacePath, now: &Knower<'_>) -> Result<Option<Option<Node>>, StoreError> {
        match self.paths.get(path) {
            Some(planned) => Ok(Some(planned.result())),
            None => Ok(now.at(path)?.state()),
        }
    }
}

/// Makes the draft fit together.
pub(crate) fn settle(
    request: &RewindRequest,
    exact: bool,
    now: &Now<'_>,
    then: &Knower<'_>,
    draft: &mut Draft,
) -> Result<(), RewindError> {
    keep_what_holds_others(request, exact, now, draft)?;
    let written: Vec<WorkspacePath> = draft
        .paths
        .values()
        .filter(|path| path.result().is_some() && !same(path.now.as_ref(), path.result().as_ref()))
        .map(|path| path.path.clone())
        .collect();
    // Parents come before what is in them, so a parent's outcome is settled when its children are looked at.
    for path in written {
        if !ensure_parents(request, &path, now, then, draft)?
            && let Some(planned) = draft.paths.get_mut(&path)
        {
            planned.conflict = Some(Conflict::InTheWay);
            planned.choice = request.choice(&path);
        }
    }
    Ok(())
}

/// Adds missing directories above `path`; returns whether all of them can be directories.
fn ensure_parents(
    request: &RewindRequest,
    path: &WorkspacePath,
    now: &Now<'_>,
    then: &Knower<'_>,
    draft: &mut Draft,
) -> Result<bool, RewindError> {
    let mut parents: Vec<WorkspacePath> = std::iter::successors(path.parent(), WorkspacePath::parent).collect();
    parents.reverse();
    for parent in parents {
        match draft.outcome(&parent, &now.knower)? {
            Some(Some(node)) if node.kind == Kind::Directory => {}
            Some(None) if !draft.paths.contains_key(&parent) => {
                let node = match then.at(&parent)? {
                    Known::There(node) if node.kind == Kind::Directory => node,
                    _ => Node { kind: Kind::Directory, mode: 0o755, content: ObjectId::default(), size: 0 },
                };
                draft.add(planned(request, parent, None, None, Some(node)));
            }
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// A directory that would have to go stays with whatever in it does not go.
fn keep_what_holds_others(
    request: &RewindRequest,
    exact: bool,
    now: &Now<'_>,
    draft: &mut Draft,
) -> Result<(), RewindError> {
    let is_directory = |node: Option<Node>| node.is_some_and(|node| node.kind == Kind::Directory);
    let going: Vec<WorkspacePath> = draft
        .paths
        .values()
        .filter(|path| is_directory(path.now) && !is_directory(path.result()))
        .map(|path| path.path.clone())
        .collect();
    // What is in a directory comes after it.
    for path in going.into_iter().rev() {
        if !holds_others(&path, now, draft)? {
            continue;
        }
        let Some(planned) = draft.paths.get_mut(&path) else { continue };
        if planned.result().is_none() {
            draft.paths.remove(&path);
            draft.kept.push(Kept { path, why: KeptBecause::HoldsOthers });
        } else if exact {
            draft.blocked.push(path);
        } else {
            planned.conflict = Some(Conflict::InTheWay);
            planned.choice = request.choice(&path);
        }
    }
    Ok(())
}

/// Whether anything on disk in the directory `path` stays. Looks at the disk itself: version-control directories are in
/// no snapshot.
fn holds_others(path: &WorkspacePath, now: &Now<'_>, draft: &Draft) -> Result<bool, RewindError> {
    let listing = open::directory(now.root, path.as_bytes()).and_then(Dir::new);
    let mut listing = match listing {
        Ok(listing) => listing,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(false),
        // What cannot be listed cannot be known to be empty.
        Err(_) => return Ok(true),
    };
    let stays = |name: &[u8]| -> Result<bool, RewindError> {
        let Ok(child) = path.join(name) else { return Ok(true) };
        // What could not be captured has no state now, and is there all the same.
        let goes =
            |planned: &PlannedPath| planned.result().is_none() && planned.conflict != Some(Conflict::NotCaptured);
        Ok(!draft.paths.get(&child).is_some_and(goes))
    };
    while let Some(entry) = listing.read() {
        let Ok(entry) = entry else { return Ok(true) };
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." && stays(name)? {
            return Ok(true);
        }
    }
    Ok(false)
}
