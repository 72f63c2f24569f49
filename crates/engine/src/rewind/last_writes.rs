//! What a plan may differ in from the one that the user saw, if tools had to be ended in between: their own last writes.
//!
//! A tool that changes anything is presumed to have made every change while it ran, a person's save included. So a path counts as its
//! own only if it had written it when the plan was seen, or if the plan had nothing to do with the path.

use std::collections::{BTreeMap, BTreeSet};

use super::{Plan, PlannedPath};
use crate::base::path::WorkspacePath;
use crate::history::owner::rows::{self, ChangeRow};
use crate::history::owner::{ChangeKind, Verdict, WindowId};
use crate::rewind::Rewinds;
use crate::store::StoreError;
use crate::store::tree::{comparable, same};
use crate::workspace::Workspace;

impl Rewinds<&Workspace> {
    /// Whether `plan` differs from `seen`, an earlier plan of the same request, only in what the tool calls `ended` have written since.
    pub fn differs_by_last_writes(&self, seen: &Plan, plan: &Plan, ended: &[WindowId]) -> Result<bool, StoreError> {
        let head = |plan: &Plan| plan.conversation.as_ref().map(|planned| planned.from);
        if head(seen) != head(plan) || seen.checked_out != plan.checked_out || seen.branch != plan.branch {
            return Ok(false);
        }
        let other = differing(seen, plan);
        let past = rows::of_paths(&self.0.store, other.keys().copied())?;
        let is_theirs = |change: &ChangeRow| {
            change.by.verdict != Verdict::Contested
                && change.by.window.is_some_and(|window| ended.contains(&WindowId(window)))
        };
        let is_last_write = |(path, (before, now)): (&&WorkspacePath, &Sides<'_>)| {
            let all = past.get(*path).map(Vec::as_slice).unwrap_or_default();
            let (earlier, since): (Vec<&ChangeRow>, Vec<&ChangeRow>) =
                all.iter().partition(|row| row.checkpoint <= seen.newest);
            let is_known = before.is_none() || earlier.iter().any(|change| is_theirs(change));
            let is_all_theirs = since.iter().all(|change| change.kind == ChangeKind::Changed && is_theirs(change));
            let leads_here =
                since.last().is_some_and(|last| now.is_none_or(|now| same(last.after.as_ref(), now.now.as_ref())));
            is_known && is_all_theirs && leads_here
        };
        Ok(other.iter().all(is_last_write))
    }
}

/// A path in both plans, as far as it is in them.
type Sides<'a> = (Option<&'a PlannedPath>, Option<&'a PlannedPath>);

/// The paths that are not the same in both plans.
fn differing<'a>(seen: &'a Plan, plan: &'a Plan) -> BTreeMap<&'a WorkspacePath, Sides<'a>> {
    fn by_path(plan: &Plan) -> BTreeMap<&WorkspacePath, &PlannedPath> {
        plan.paths.iter().map(|path| (&path.path, path)).collect()
    }
    let (before, now) = (by_path(seen), by_path(plan));
    let names: BTreeSet<&WorkspacePath> = before.keys().chain(now.keys()).copied().collect();
    let state = |path: &&PlannedPath| (comparable(path.now.as_ref()), comparable(path.result().as_ref()), path.choice);
    names
        .into_iter()
        .map(|name| (name, (before.get(name).copied(), now.get(name).copied())))
        .filter(|(_, (before, now))| before.as_ref().map(state) != now.as_ref().map(state))
        .collect()
}
