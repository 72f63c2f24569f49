//! Finishing: the operation is recorded with the checkpoint after it, then what it displaced goes.

use std::collections::{BTreeMap, BTreeSet};

use super::RewindError;
use super::apply::tighten;
use super::displaced::{self, Captured, Displaced, Held};
use super::files::{Failed, Files};
use super::intent::{self, Intent, Item, Stage};
use crate::checkpoint::{Origin, Purpose};
use crate::operation::{self, OperationKind, OperationState};
use crate::owner::{By, rows};
use crate::scan::stat::Facts;
use crate::store::{Durability, Effort};
use crate::take::{self, Failure};
use crate::workspace::counters;
use crate::{
    CheckpointId, NewCheckpoint, Node, OperationId, SessionId, StoreError, Timestamp, Workspace, WorkspacePath, git,
};

/// What is needed to finish an operation whose files have been swapped.
pub(super) struct Finish {
    pub(super) operation: OperationId,
    pub(super) session: Option<(i64, SessionId)>,
    pub(super) kind: OperationKind,
    pub(super) what: String,
    pub(super) reverses: Option<i64>,
    pub(super) after: CheckpointId,
    pub(super) at: Timestamp,
    pub(super) state: OperationState,
}

impl Workspace {
    /// Records an operation whose files have been swapped, and removes what it displaced. Returns what somebody had saved
    /// in the meantime.
    pub(super) fn finish(
        &mut self,
        intent: &Intent,
        finish: &Finish,
        facts: &BTreeMap<WorkspacePath, Captured>,
        held: &[Held],
    ) -> Result<BTreeMap<WorkspacePath, Node>, RewindError> {
        let displaced = self
            .making_room(None, |this, effort| this.record_after(intent, finish, facts, held, effort))
            .map_err(|source| RewindError::NotRecorded { source: Box::new(source) })?;
        // What cannot be removed now is removed by the next recovery; everything else is done.
        self.clean_up(intent, held, &displaced.seen).ok();
        Ok(displaced.nodes)
    }

    fn record_after(
        &mut self,
        intent: &Intent,
        finish: &Finish,
        facts: &BTreeMap<WorkspacePath, Captured>,
        held: &[Held],
        effort: Effort,
    ) -> Result<Displaced, Failure> {
        let mut rules = self.rules()?;
        let known = rules.declared.clone();
        let git = git::state(&self.env.root);
        let touched: BTreeSet<WorkspacePath> =
            intent.items.iter().flat_map(|item| [item.path.clone(), item.temp.clone()]).collect();
        // What was done can be undone even if the rules leave out what has come of it.
        let own: BTreeSet<WorkspacePath> = intent.items.iter().map(|item| item.path.clone()).collect();
        let scene = take::scan_touched(&self.store, &mut self.scanner, &mut rules, &touched, &own, effort)?;
        let extra: Vec<_> = rules.declared.difference(&known).cloned().collect();
        let files = Files::new(self.scanner.root_fd(), &self.env.root);
        let displaced = displaced::keep(&files, &scene.sink.batch, &intent.items, held, facts)?;
        scene.check_budget()?;
        let by = By::operation(finish.session.map(|(seq, _)| seq), intent.operation);
        let purpose = Purpose {
            origin: Origin::Rewound,
            session: finish.session,
            note: Some(format!("{} {}", finish.kind.name(), finish.what)),
            own: Some((own, by, &displaced.nodes)),
            also: &|tx, seq| {
                operation::finish(tx, finish.operation, finish.state, Some(seq))?;
                displaced::insert(tx, intent.operation, &displaced.nodes)?;
                rows::declare(tx, &extra, seq)?;
                if finish.state == OperationState::Done {
                    mark(tx, finish.kind, finish.reverses)?;
                }
                intent::set_stage(tx, intent.operation, Stage::Done)
            },
        };
        let checkpoint = NewCheckpoint { id: finish.after, at: finish.at, label: None };
        scene.record(&git, &checkpoint, &purpose, Durability::Synced)?;
        let after = counters(&self.store);
        drop(scene);
        after.and_then(|after| self.scanner.save(after)).ok();
        Ok(displaced)
    }

    /// Removes temporary files; what they hold is in the store, unless somebody has written to one since it was `seen`,
    /// and then it is put there first. The intent goes last.
    pub(super) fn clean_up(
        &mut self,
        intent: &Intent,
        held: &[Held],
        seen: &BTreeMap<WorkspacePath, Facts>,
    ) -> Result<(), RewindError> {
        self.loosen(intent).map_err(left_over)?;
        for Held { item, temp } in held {
            self.keep_unless_seen(intent.operation, &intent.items[*item], temp, seen)?;
            self.files().discard(temp).map_err(left_over)?;
        }
        tighten(&self.files(), intent, &mut Vec::new()).map_err(left_over)?;
        self.store.db().transaction(Durability::Soon, |tx| intent::remove(tx, intent.operation))?;
        Ok(())
    }

    /// Makes sure that the content of a temporary file is in the store.
    pub(super) fn keep_unless_seen(
        &self,
        operation: i64,
        item: &Item,
        temp: &WorkspacePath,
        seen: &BTreeMap<WorkspacePath, Facts>,
    ) -> Result<(), RewindError> {
        let files = self.files();
        let Ok(Some(now)) = files.look(temp) else { return Ok(()) };
        if seen.get(temp) == Some(&now.facts) {
            return Ok(());
        }
        let batch = self.store.batch(Effort::Small)?;
        let mut displaced = Displaced::default();
        displaced::keep_one(&files, &batch, item, temp, None, &mut displaced)?;
        if !displaced.nodes.is_empty() {
            batch.commit(Durability::Synced, |tx| displaced::insert(tx, operation, &displaced.nodes))?;
        }
        Ok(())
    }
}

/// Marks what an undo or a redo did to the operation that it is about.
pub(super) fn mark(
    tx: &rusqlite::Transaction<'_>,
    kind: OperationKind,
    reverses: Option<i64>,
) -> Result<(), StoreError> {
    let Some(reversed) = reverses else { return Ok(()) };
    operation::mark_undone(tx, reversed, true)?;
    match kind {
        // Taking back an undo brings back what it took back.
        OperationKind::Redo => operation::mark_original_redone(tx, reversed),
        _ => Ok(()),
    }
}

/// All is done, but a temporary file could not be removed; the next recovery tries again.
fn left_over(failed: Failed) -> RewindError {
    RewindError::LeftOver { path: failed.path, source: failed.source }
}
