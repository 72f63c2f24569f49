//! The draft of an exact rewind: every path that differs from the snapshot, with its authors.
//!
//! A path that a person changed since is *yours*: it needs a decision where its present state would be lost. A path that is contested
//! is not called yours, since an agent or a command may have changed it.

use std::collections::BTreeMap;

use super::chain;
use super::goal::Resolved;
use super::hidden::{self, HiddenReach, Saves, Scope};
use super::judge::is_unbroken;
use super::plan::{Now, merged, planned};
use super::structure::Draft;
use super::{Conflict, Kept, KeptBecause, RewindError, RewindRequest, same};
use crate::owner::rows::{self, ChangeRow};
use crate::owner::{OpenWindow, Verdict, attribute};
use crate::snapshot::diff;
use crate::snapshot::known::{Knower, Known};
use crate::{Change, StoreError, WorkspacePath, fault};

/// Who changed paths since the target.
struct Past {
    changes: BTreeMap<WorkspacePath, Vec<ChangeRow>>,
    /// Tool calls that are at work: changes since the last checkpoint may be theirs.
    open: Vec<OpenWindow>,
}

/// Drafts every path that differs from the target. Returns hidden files that have to be saved before they go.
pub(super) fn draft(
    request: &RewindRequest,
    resolved: &Resolved,
    now: &Now<'_>,
    then: &Knower<'_>,
    draft: &mut Draft,
) -> Result<Saves, RewindError> {
    let target = resolved.target()?;
    let target_seq = resolved.target_seq()?;
    let uncovered = rows::uncovered_since(now.store, target_seq)?;
    let mut changes = diff::diff(
        Some((now.snapshot.0, &|id| Ok(now.knower.tree(id)?.to_vec()))),
        Some((target.snapshot.0, &|id| Ok(then.tree(id)?.to_vec()))),
    )?;
    changes.retain(|change| request.covers(&change.path) && !now.has_saved(&change.path));
    let past = Past {
        changes: rows::of_paths(now.store, target_seq, changes.iter().map(|change| &change.path))?,
        open: rows::open_windows(now.store)?,
    };
    let is_uncovered =
        |change: &Change| uncovered.get(&change.path).is_some_and(|found| same(found.as_ref(), change.before.as_ref()));
    for change in changes {
        let known_now = change.before.map_or_else(|| now.knower.at(&change.path), |node| Ok(Known::There(node)))?;
        let known_then = change.after.map_or_else(|| then.at(&change.path), |node| Ok(Known::There(node)))?;
        if known_then == Known::Unknown && !fault::seeded("bug-delete-unproven") {
            draft.kept.push(Kept { path: change.path, why: KeptBecause::NotProven });
        } else if known_then == Known::Absent && is_uncovered(&change) {
            // A rewind has left it, and taking it away the next time would not be the same rewind.
            if change.path.parent().is_none_or(|parent| !uncovered.contains_key(&parent)) {
                draft.kept.push(Kept { path: change.path, why: KeptBecause::Hidden });
            }
        } else if known_now == Known::Unknown {
            draft.add(planned(request, change.path, Some(Conflict::NotCaptured), change.before, change.after));
        } else {
            past.draft(request, change, now, draft)?;
        }
    }
    let ours = |row: &ChangeRow| row.by.window.is_some();
    let scope = Scope { target, target_seq, ours: &ours, reach: HiddenReach::All };
    hidden::draft(&scope, request, now, then, draft)
}

impl Past {
    /// Drafts a path whose states are known.
    fn draft(
        &self,
        request: &RewindRequest,
        change: Change,
        now: &Now<'_>,
        draft: &mut Draft,
    ) -> Result<(), StoreError> {
        let Change { path, before: current, after: target } = change;
        let all = self.changes.get(&path).map(Vec::as_slice).unwrap_or_default();
        let chain = chain::in_force(all, target.as_ref());
        let is_recorded = is_unbroken(&chain, target.as_ref(), current.as_ref());
        let is_of_nobody = || attribute(&path, &self.open, None).verdict == Verdict::Outside;
        let yours = chain.iter().any(chain::is_outside) || !is_recorded && is_of_nobody();
        draft.windows.insert(path.clone(), chain::windows(&chain).collect());
        // To bring back a file that a person deleted loses nothing.
        let would_lose = yours && current.is_some();
        let is_conflict = would_lose && !request.replaces_yours(&path) && !fault::seeded("bug-ignore-yours");
        let conflict = is_conflict.then_some(Conflict::Yours);
        let mut planned = planned(request, path, conflict, current, target);
        planned.yours = yours;
        if would_lose {
            planned.merged = merged(now, &planned.path, current, &chain, |change| !chain::is_outside(change))?;
        }
        draft.add(planned);
        Ok(())
    }
}
