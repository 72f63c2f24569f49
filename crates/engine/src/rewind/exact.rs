//! The draft of an exact rewind: every path that differs from the snapshot, with its authors.
//!
//! A path is *yours* if a person made the state that is on disk, or a part of it: then it needs a decision where that would be lost. A
//! person's change that a command has since replaced whole is not on disk any more, and is in a checkpoint. A path that is contested is
//! not called yours, since an agent or a command may have changed it, nor is one that a command changed and no checkpoint captured, nor
//! one that was ignored when it changed: these have a conflict of their own.

use std::collections::{BTreeMap, BTreeSet};

use super::chain::{self, InForce};
use super::goal::Resolved;
use super::hidden::{self, HiddenReach, Saves, Scope};
use super::judge::{is_unbroken, tells_author};
use super::plan::{Now, content_of, in_force_since, last_tool, merged, planned, unseen};
use super::structure::Draft;
use super::{Conflict, Kept, KeptBecause, RewindError, RewindRequest, replaced};
use crate::base::fault;
use crate::base::path::WorkspacePath;
use crate::history::operation;
use crate::history::owner::rows::{self, ChangeRow};
use crate::history::owner::{ChangeKind, OpenWindow, Verdict};
use crate::history::past_rules::RulesThen;
use crate::snapshot::diff::{self, Change};
use crate::snapshot::presence::{Evidence, Presence};
use crate::store::StoreError;
use crate::store::tree::{Node, NodeKind, same};

/// Who changed paths.
struct Past {
    target_seq: i64,
    changes: BTreeMap<WorkspacePath, Vec<ChangeRow>>,
    /// Tool calls that are at work: changes since the last checkpoint may be theirs.
    open: Vec<OpenWindow>,
    /// Operations that are undone.
    undone: BTreeSet<i64>,
}

/// Drafts every path that differs from the target. Returns hidden files that have to be saved before they go.
pub(super) fn draft(
    request: &RewindRequest,
    resolved: &Resolved,
    now: &Now<'_>,
    then: &Evidence<'_>,
    draft: &mut Draft,
) -> Result<Saves, RewindError> {
    let target = resolved.target()?;
    let target_seq = resolved.target_seq()?;
    let uncovered = rows::uncovered_since(now.store, target_seq)?;
    let mut changes = diff::diff(
        Some((now.snapshot.0, &|id| Ok(now.evidence.tree(id)?.to_vec()))),
        Some((target.snapshot.0, &|id| Ok(then.tree(id)?.to_vec()))),
    )?;
    changes.retain(|change| request.covers(&change.path) && !now.has_saved(&change.path));
    let past = Past {
        target_seq,
        changes: rows::of_paths(now.store, changes.iter().map(|change| &change.path))?,
        open: rows::open_windows(now.store)?,
        undone: operation::undone(now.store)?,
    };
    let is_uncovered =
        |change: &Change| uncovered.get(&change.path).is_some_and(|found| same(found.as_ref(), change.before.as_ref()));
    let rules = RulesThen::new(now.store, target, then, &now.outer, now.root_path)?;
    let mut ignored = BTreeSet::new();
    for change in changes {
        let known_now =
            change.before.map_or_else(|| now.evidence.at(&change.path), |node| Ok(Presence::There(node)))?;
        let known_then = change.after.map_or_else(|| then.at(&change.path), |node| Ok(Presence::There(node)))?;
        if known_then == Presence::Unknown && !fault::seeded("bug-delete-unproven") {
            draft.kept.push(Kept { path: change.path, why: KeptBecause::NotProven });
        } else if known_then == Presence::Absent && is_uncovered(&change) {
            // A rewind has left it, and taking it away the next time would not be the same rewind.
            if change.path.parent().is_none_or(|parent| !uncovered.contains_key(&parent)) {
                draft.kept.push(Kept { path: change.path, why: KeptBecause::Hidden });
            }
        } else if known_then == Presence::Absent && was_ignored(&rules, then, &change)? {
            // A directory is named for all that is in it.
            if change.path.parent().is_none_or(|parent| !ignored.contains(&parent)) {
                draft.kept.push(Kept { path: change.path.clone(), why: KeptBecause::IgnoredThen });
            }
            ignored.insert(change.path);
        } else if known_now == Presence::Unknown {
            draft.add(planned(request, change.path, Some(Conflict::NotCaptured), change.before, change.after));
        } else {
            past.draft(request, change, now, draft)?;
        }
    }
    let ours = |row: &ChangeRow| row.by.window.is_some();
    let scope = Scope { target, target_seq, ours: &ours, reach: HiddenReach::All };
    hidden::draft(&scope, request, now, then, draft)
}

/// Whether the rules of the target ignored the name of what is new, so that its absence was not looked for.
fn was_ignored(rules: &RulesThen<'_>, then: &Evidence<'_>, change: &Change) -> Result<bool, StoreError> {
    let is_directory = change.before.is_some_and(|node| node.kind == NodeKind::Directory);
    Ok(!then.has_sought(&change.path) && rules.leaves_out(&change.path, is_directory)?)
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
        let mut history = self.changes.get(&path).cloned().unwrap_or_default();
        history.extend(unseen(&path, &history, target, current, &self.open));
        let mut chain = in_force_since(&history, self.target_seq, &self.undone);
        // A rule has left out the file, which is as it was before.
        let is_idle = |one: &InForce| {
            one.change.kind == ChangeKind::LeftOut && same(one.change.before.as_ref(), current.as_ref())
        };
        while chain.last().is_some_and(is_idle) {
            chain.pop();
        }
        draft.windows.insert(path.clone(), chain::windows(&chain, tells_author));
        let yours = is_yours(now, &path, current, &chain)?;
        let is_known = yours || is_unbroken(&chain, target.as_ref(), current.as_ref());
        let doubt = if yours { Some(Conflict::Yours) } else { (!is_known).then_some(Conflict::UncapturedSince) };
        // To bring back a file that a person deleted loses nothing.
        let doubt = doubt.filter(|_| current.is_some());
        let conflict = doubt.filter(|_| !request.replaces_yours(&path) && !fault::seeded("bug-ignore-yours"));
        let mut planned = planned(request, path, conflict, current, target);
        planned.yours = yours;
        if doubt.is_some() {
            planned.merged = merged(now, &planned.path, current, &chain, |one| !one.is_of_a_person())?;
        }
        if conflict == Some(Conflict::UncapturedSince) {
            let last = chain.iter().flat_map(|one| &one.makers).rfind(|maker| tells_author(maker));
            let window = last.and_then(|maker| maker.by.window);
            planned.changed_by = last_tool(now.store, &window.into_iter().collect())?;
        }
        draft.add(planned);
        Ok(())
    }
}

/// Whether a person is known to have had a part in it.
fn is_persons(one: &InForce) -> bool {
    let is_outside = |maker: &ChangeRow| maker.by.verdict == Verdict::Outside && maker.by.operation.is_none();
    one.makers.iter().any(|maker| tells_author(maker) && is_outside(maker))
}

/// Whether a person made the state that is on disk, or a part of it.
fn is_yours(now: &Now<'_>, path: &WorkspacePath, current: Option<Node>, chain: &[InForce]) -> Result<bool, StoreError> {
    let Some((last, earlier)) = chain.split_last() else { return Ok(false) };
    if is_persons(last) || current.is_none() {
        return Ok(is_persons(last));
    }
    let is_persons = |(at, one): &(usize, &InForce)| is_persons(one) && *at < earlier.len();
    for (at, one) in chain.iter().enumerate().filter(is_persons) {
        let mut later = chain[at + 1..].iter().map(|one| chain::after(&one.change));
        let is_replaced = |later: Option<Option<&Node>>| match later {
            Some(later) => replaced::is_replaced(&one.change, later, |node| content_of(now, path, current, node)),
            None => Ok(false),
        };
        if !later.try_fold(false, |replaced, later| Ok::<_, StoreError>(replaced || is_replaced(later)?))? {
            return Ok(true);
        }
    }
    Ok(false)
}
