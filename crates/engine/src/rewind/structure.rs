//! The shape of a plan: directories that must come before what is in them, and directories that cannot go.

use std::collections::{BTreeMap, BTreeSet};

use rustix::fs::Dir;
use rustix::io::Errno;

use super::plan::{Now, planned};
use super::{Conflict, Kept, KeptBecause, PlannedPath, RewindError, RewindRequest};
use crate::base::id::ObjectId;
use crate::base::path::WorkspacePath;
use crate::scan::open;
use crate::snapshot::presence::{Evidence, Presence};
use crate::snapshot::uncaptured::UncapturedChange;
use crate::store::StoreError;
use crate::store::tree::{Node, NodeKind, same};

/// A plan in the making.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) paths: BTreeMap<WorkspacePath, PlannedPath>,
    pub(crate) kept: Vec<Kept>,
    pub(crate) uncaptured: Vec<UncapturedChange>,
    /// Paths that need nothing done although what is reversed changed them.
    pub(crate) already: Vec<WorkspacePath>,
    pub(crate) blocked: Vec<WorkspacePath>,
    /// Windows in which the session changed a path, as far as that has not been taken back.
    pub(crate) windows: BTreeMap<WorkspacePath, BTreeSet<i64>>,
}

impl Draft {
    pub(crate) fn add(&mut self, path: PlannedPath) {
        self.paths.insert(path.path.clone(), path);
    }

    /// What will be at `path`, if open decisions are made for the plan; `None` if nobody knows.
    fn outcome(&self, path: &WorkspacePath, now: &Evidence<'_>) -> Result<Option<Option<Node>>, StoreError> {
        match self.paths.get(path) {
            Some(planned) => Ok(Some(planned.aim())),
            None => Ok(now.at(path)?.state()),
        }
    }
}

/// Makes the draft fit together.
pub(crate) fn settle(
    request: &RewindRequest,
    exact: bool,
    now: &Now<'_>,
    then: &Evidence<'_>,
    draft: &mut Draft,
) -> Result<(), RewindError> {
    refuse_the_impossible(request, exact, now, draft)?;
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
            stand_back(request, planned);
        }
    }
    if exact {
        refuse_to_keep(draft);
    }
    Ok(())
}

/// Takes away the choice to keep a path below a directory that a file takes the place of.
fn refuse_to_keep(draft: &mut Draft) {
    let gives_way = |path: &PlannedPath| {
        path.conflict.is_none() && is_directory(path.now) && path.target.is_some() && !is_directory(path.target)
    };
    let going: BTreeSet<WorkspacePath> =
        draft.paths.values().filter(|path| gives_way(path)).map(|path| path.path.clone()).collect();
    for planned in draft.paths.values_mut().filter(|path| path.conflict.is_some()) {
        let mut above = std::iter::successors(planned.path.parent(), WorkspacePath::parent);
        planned.can_keep = !above.any(|above| going.contains(&above));
    }
}

/// Something that stays is in the way of a path: it can only be left as it is.
fn stand_back(request: &RewindRequest, planned: &mut PlannedPath) {
    planned.conflict = Some(Conflict::InTheWay);
    planned.choice = request.choice(&planned.path);
    planned.merged = None;
}

/// Takes away choices that cannot be carried out, whatever is decided about other paths.
fn refuse_the_impossible(
    request: &RewindRequest,
    exact: bool,
    now: &Now<'_>,
    draft: &mut Draft,
) -> Result<(), RewindError> {
    let mut impossible = Vec::new();
    for planned in draft.paths.values().filter(|path| path.conflict.is_some_and(Conflict::can_overwrite)) {
        let comes = planned.merged.is_some() || planned.target.is_some();
        let gives_way = is_directory(planned.now) && planned.target.is_some() && !is_directory(planned.target);
        if comes && !parents_can_be_directories(&planned.path, now, draft)?
            || gives_way && !exact && !can_empty(&planned.path, now, draft)?
        {
            impossible.push(planned.path.clone());
        }
    }
    for path in impossible {
        if let Some(planned) = draft.paths.get_mut(&path) {
            stand_back(request, planned);
        }
    }
    Ok(())
}

/// Whether everything above `path` is a directory, or can become one.
fn parents_can_be_directories(path: &WorkspacePath, now: &Now<'_>, draft: &Draft) -> Result<bool, StoreError> {
    for parent in std::iter::successors(path.parent(), WorkspacePath::parent) {
        let can_be = match draft.paths.get(&parent) {
            Some(planned) => {
                let may_stay = planned.conflict.is_some() && is_directory(planned.now);
                let may_go_back = planned.conflict.is_none_or(Conflict::can_overwrite);
                may_stay || may_go_back && is_directory(planned.target)
            }
            None => now.evidence.at(&parent)?.state().is_some_and(|state| state.is_none() || is_directory(state)),
        };
        if !can_be {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether everything on disk in the directory `path` can go.
fn can_empty(path: &WorkspacePath, now: &Now<'_>, draft: &Draft) -> Result<bool, RewindError> {
    let can_go = |child: &WorkspacePath| -> Result<bool, RewindError> {
        let Some(planned) = draft.paths.get(child) else { return Ok(false) };
        let goes = planned.target.is_none() && planned.conflict.is_none_or(Conflict::can_overwrite);
        Ok(goes && (!is_directory(planned.now) || can_empty(child, now, draft)?))
    };
    all_on_disk(path, now, &can_go)
}

fn is_directory(node: Option<Node>) -> bool {
    node.is_some_and(|node| node.kind == NodeKind::Directory)
}

/// Adds missing directories above `path`; returns whether all of them can be directories.
fn ensure_parents(
    request: &RewindRequest,
    path: &WorkspacePath,
    now: &Now<'_>,
    then: &Evidence<'_>,
    draft: &mut Draft,
) -> Result<bool, RewindError> {
    let mut parents: Vec<WorkspacePath> = std::iter::successors(path.parent(), WorkspacePath::parent).collect();
    parents.reverse();
    for parent in parents {
        match draft.outcome(&parent, &now.evidence)? {
            Some(Some(node)) if node.kind == NodeKind::Directory => {}
            Some(None) if !draft.paths.contains_key(&parent) => {
                let node = match then.at(&parent)? {
                    Presence::There(node) if node.kind == NodeKind::Directory => node,
                    _ => Node { kind: NodeKind::Directory, mode: 0o755, content: ObjectId::default(), size: 0 },
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
            stand_back(request, planned);
        }
    }
    Ok(())
}

/// Whether anything on disk in the directory `path` stays.
fn holds_others(path: &WorkspacePath, now: &Now<'_>, draft: &Draft) -> Result<bool, RewindError> {
    // What could not be captured has no state now, and is there all the same.
    let goes = |planned: &PlannedPath| planned.aim().is_none() && planned.conflict != Some(Conflict::NotCaptured);
    Ok(!all_on_disk(path, now, &|child| Ok(draft.paths.get(child).is_some_and(goes)))?)
}

/// Whether `goes` holds for all that is in the directory `path`. Looks at the disk itself: version-control directories are in
/// no snapshot.
fn all_on_disk(
    path: &WorkspacePath,
    now: &Now<'_>,
    goes: &dyn Fn(&WorkspacePath) -> Result<bool, RewindError>,
) -> Result<bool, RewindError> {
    let listing = open::directory(now.root, path.as_bytes()).and_then(Dir::new);
    let mut listing = match listing {
        Ok(listing) => listing,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(true),
        // What cannot be listed cannot be known to be empty.
        Err(_) => return Ok(false),
    };
    while let Some(entry) = listing.read() {
        let Ok(entry) = entry else { return Ok(false) };
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        let Ok(child) = path.join(name) else { return Ok(false) };
        if !goes(&child)? {
            return Ok(false);
        }
    }
    Ok(true)
}
