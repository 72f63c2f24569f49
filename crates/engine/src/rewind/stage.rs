//! Staging: every new file is written beside its target and made durable before anything is touched.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::apply::rolled_back;
use super::displaced::Captured;
use super::files::{MANY, StageError};
use super::{Conflict, Plan, RewindError, RewindRequest};
use crate::base::path::WorkspacePath;
use crate::base::{fault, limits};
use crate::history::intent::{self, Intent, Item};
use crate::scan::stat::Facts;
use crate::store::StoreError;
use crate::store::tree::{Node, NodeKind};
use crate::workspace::Workspace;

impl Workspace {
    /// Writes every new file beside its target and makes it durable; then makes sure that nobody has changed anything
    /// since it was captured.
    pub(super) fn stage(
        &self,
        plan: &mut Plan,
        intent: &mut Intent,
        facts: &BTreeMap<WorkspacePath, Captured>,
        request: &RewindRequest,
    ) -> Result<(), RewindError> {
        let files = self.files();
        self.loosen(intent).map_err(rolled_back)?;
        let damaged = self.write_staged(&intent.items, StageError::into_rewind)?;
        if !damaged.is_empty() {
            leave_damaged(plan, intent, &damaged, request)?;
            intent::replace(&self.store, intent)?;
        }
        fault::place("rewind-staged");
        for item in &intent.items {
            let now = files.look(&item.path).map_err(files.failed("look at", &item.path)).map_err(rolled_back)?;
            if !is_as_captured(item, now.map(|seen| seen.facts), facts.get(&item.path)) {
                return Err(RewindError::Stale { plan: Box::new(plan.clone()) });
            }
        }
        Ok(())
    }

    /// Writes the new contents of `items` and makes them durable; their names need not be, for what power loss takes is
    /// staged again from the store. Returns paths whose content is damaged in the store.
    pub(super) fn write_staged(
        &self,
        items: &[Item],
        wrap: fn(StageError) -> RewindError,
    ) -> Result<BTreeSet<WorkspacePath>, RewindError> {
        let files = self.files();
        let mut items: Vec<(&Item, &Node)> =
            items.iter().filter_map(|item| Some((item, files.to_stage(item)?))).collect();
        let few = items.len() <= MANY;
        if !few {
            // Packs are read in order, which is kind to the disk.
            items.sort_by_cached_key(|(_, node)| self.store.position(&node.content));
        }
        let next = AtomicUsize::new(0);
        let work = || {
            let (mut written, mut damaged) = (Vec::new(), BTreeSet::new());
            while let Some(&(item, node)) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                match files.stage(&self.store, item, node) {
                    // Of many files the handles are not kept: there are not enough of them.
                    Ok(file) => written.extend(file.filter(|_| few)),
                    Err(StageError::Content(StoreError::Damaged { .. } | StoreError::Missing { .. })) => {
                        files.discard(&item.temp).map_err(StageError::Write)?;
                        damaged.insert(item.path.clone());
                    }
                    Err(err) => return Err(err),
                }
            }
            Ok((written, damaged))
        };
        let (mut written, mut damaged) = (Vec::new(), BTreeSet::new());
        std::thread::scope(|scope| {
            let threads = if few { 1 } else { self.env.threads * limits::EXAMINERS_PER_CORE };
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let own = work();
            let others = others.into_iter().map(|thread| thread.join().expect("staging does not panic"));
            for result in others.chain([own]) {
                let (files, paths) = result?;
                written.extend(files);
                damaged.extend(paths);
            }
            Ok(())
        })
        .map_err(wrap)?;
        let synced = if few { files.sync_contents(&written) } else { files.sync_all() };
        synced.map_err(|failed| wrap(StageError::Write(failed)))?;
        Ok(damaged)
    }
}

/// Leaves out paths whose content is damaged, where that was chosen; refuses everything else.
fn leave_damaged(
    plan: &mut Plan,
    intent: &mut Intent,
    damaged: &BTreeSet<WorkspacePath>,
    request: &RewindRequest,
) -> Result<(), RewindError> {
    mark_damaged(plan, damaged, request);
    if plan.paths.iter().any(super::PlannedPath::stops) {
        return Err(RewindError::Refused { plan: Box::new(plan.clone()) });
    }
    intent.items.retain(|item| !damaged.contains(&item.path));
    Ok(())
}

/// Makes conflicts of paths whose content is damaged.
pub(super) fn mark_damaged(plan: &mut Plan, damaged: &BTreeSet<WorkspacePath>, request: &RewindRequest) {
    for path in plan.paths.iter_mut().filter(|path| damaged.contains(&path.path)) {
        path.conflict = Some(Conflict::Damaged);
        path.choice = request.choice(&path.path);
        path.merged = None;
    }
}

/// Whether a path still looks as it did when it was captured.
fn is_as_captured(item: &Item, now: Option<Facts>, then: Option<&Captured>) -> bool {
    match (item.before, now, then) {
        (None, now, _) => now.is_none(),
        (Some(_), None, _) => false,
        // Of a directory only what it is: its times move with what is in it, and its permissions may be loosened.
        (Some(before), Some(now), _) if before.kind == NodeKind::Directory => {
            now.file_type() == rustix::fs::FileType::Directory
        }
        (Some(_), Some(now), Some(then)) => now == then.facts,
        (Some(_), Some(_), None) => false,
    }
}
