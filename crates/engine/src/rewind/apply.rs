//! Applying a plan.
//!
//! ```text
//! lock       nobody else scans, rewinds or cleans up
//! safety     one scan is the safety snapshot and says whether the plan still holds   (see `prepare`)
//! staging    the intent is durable, then every new file is written beside its target and synced
//! armed      the intent says so, durably: from here on a crash is finished, not forgotten
//! swap       files are exchanged, directories made and removed, permissions last
//! verify     the touched paths are scanned again; the operation and its changes are committed
//! clean up   displaced files go once their content is known to be in the store
//! ```
//!
//! A failure before `armed` removes what was staged; one after it takes back what was done.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::displaced::{self, Captured, Displaced, Held};
use super::files::{Done, Failed, Files, MANY, StageError, staged};
use super::intent::{self, Intent, Item, Stage};
use super::plan::{self, Resolved};
use super::prepare::{Preparation, Prepared, insert_operation};
use super::{Applied, Conflict, NewRewind, OnConflict, PathStatus, Plan, RewindError, RewindRequest};
use crate::checkpoint::{Origin, Purpose};
use crate::operation::{self, OperationKind, OperationState};
use crate::owner::{By, window};
use crate::scan::stat::Facts;
use crate::snapshot::tree::Kind;
use crate::store::{Durability, Effort};
use crate::take::{self, Failure};
use crate::workspace::counters;
use crate::{
    CheckpointId, NewCheckpoint, Node, OperationId, Progress, StoreError, Timestamp, Workspace, WorkspacePath, fault,
    git, limits,
};

/// What is needed to finish an operation whose files have been swapped.
pub(super) struct Finish {
    pub(super) operation: OperationId,
    pub(super) session: Option<(i64, crate::SessionId)>,
    pub(super) kind: OperationKind,
    pub(super) what: String,
    pub(super) reverses: Option<i64>,
    pub(super) after: CheckpointId,
    pub(super) at: Timestamp,
    pub(super) state: OperationState,
}

/// What swapping left alone.
#[derive(Default)]
pub(super) struct Swapped {
    /// Directories that turned out not to be empty.
    pub(super) kept: BTreeSet<WorkspacePath>,
    pub(super) done: Vec<Done>,
}

impl Workspace {
    /// Carries out what `request` asks for, if it comes to what `expected` says (or to anything without a conflict, if
    /// nothing was shown to anybody). One operation that can be undone.
    pub fn apply(
        &mut self,
        request: &RewindRequest,
        expected: Option<&Plan>,
        new: &NewRewind,
        progress: &dyn Progress,
    ) -> Result<Applied, RewindError> {
        let _own = self.store.own()?;
        if let Some(operation) = operation::pending(&self.store)? {
            return Err(RewindError::Pending { operation: Box::new(operation) });
        }
        let resolved = plan::resolve(&self.store, &request.goal)?;
        let tools = window::in_use(&self.store, resolved.session)?;
        if !tools.is_empty() {
            return Err(RewindError::InUse { tools });
        }
        let prepared = self.making_room(Some(resolved.target_seq), |this, effort| {
            this.prepare(request, expected, &resolved, new, effort, progress)
        })?;
        match prepared {
            Preparation::Refused(err) => Err(err),
            Preparation::Nothing(plan) => self.note_nothing(*plan, &resolved, new),
            Preparation::Ready(prepared) => self.carry_out(*prepared, request, &resolved, new),
        }
    }

    /// An undo or a redo whose files are there already is still one.
    fn note_nothing(&mut self, plan: Plan, resolved: &Resolved, new: &NewRewind) -> Result<Applied, RewindError> {
        let mut operation = None;
        if resolved.reverses.is_some() {
            self.store.db().transaction(Durability::Synced, |tx| {
                insert_operation(tx, resolved, new, resolved.target_seq)?;
                operation::finish(tx, new.operation, OperationState::Done, None)?;
                mark(tx, resolved.kind, resolved.reverses.as_ref().map(|reversed| reversed.seq))
            })?;
            operation = Some(new.operation);
        }
        let statuses = statuses(&plan, &BTreeSet::new(), &BTreeMap::new());
        Ok(Applied { plan, operation, statuses, safety: None })
    }

    fn carry_out(
        &mut self,
        prepared: Prepared,
        request: &RewindRequest,
        resolved: &Resolved,
        new: &NewRewind,
    ) -> Result<Applied, RewindError> {
        let Prepared { mut plan, mut intent, safety, facts } = prepared;
        if let Err(err) = self.stage(&mut plan, &mut intent, &facts, request) {
            // What cannot be removed now is removed by the next recovery.
            self.forget(&intent, new.operation).ok();
            return Err(err);
        }
        intent::arm(&self.store, intent.operation)?;
        fault::place("rewind-armed");
        let swapped = match self.swap(&intent) {
            Ok(swapped) => swapped,
            Err((failed, done)) => return Err(self.roll_back(&plan, &intent, done, failed, new, safety.id)),
        };
        let finish = Finish {
            operation: new.operation,
            session: resolved.session.zip(resolved.session_id),
            kind: resolved.kind,
            what: resolved.what.clone(),
            reverses: resolved.reverses.as_ref().map(|reversed| reversed.seq),
            after: new.after,
            at: new.at,
            state: OperationState::Done,
        };
        let displaced = self.finish(&intent, &finish, &facts, &displaced::held_by(&intent.items, &swapped.done))?;
        let statuses = statuses(&plan, &swapped.kept, &displaced);
        Ok(Applied { plan, operation: Some(new.operation), statuses, safety: Some(safety.id) })
    }

    /// Writes every new file beside its target and makes it durable; then makes sure that nobody has changed anything
    /// since it was captured.
    fn stage(
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
        let mut items: Vec<(&Item, &Node)> = items.iter().filter_map(|item| Some((item, staged(item)?))).collect();
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
        let results: Vec<Result<(Vec<File>, BTreeSet<WorkspacePath>), StageError>> = std::thread::scope(|scope| {
            let threads = if few { 1 } else { self.env.threads * limits::EXAMINERS_PER_CORE };
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let own = work();
            let others = others.into_iter().map(|thread| thread.join().expect("staging does not panic"));
            others.chain([own]).collect()
        });
        let (mut written, mut damaged) = (Vec::new(), BTreeSet::new());
        for result in results {
            let (files, paths) = result.map_err(wrap)?;
            written.extend(files);
            damaged.extend(paths);
        }
        let synced = if few { files.sync_contents(&written) } else { files.sync_all() };
        synced.map_err(|failed| wrap(StageError::Write(failed)))?;
        Ok(damaged)
    }

    /// Takes an operation back that has not touched a file yet.
    pub(super) fn forget(&mut self, intent: &Intent, operation: OperationId) -> Result<(), RewindError> {
        let files = self.files();
        for item in &intent.items {
            files.discard(&item.temp).map_err(rolled_back)?;
        }
        tighten(&files, intent, &mut Vec::new()).map_err(rolled_back)?;
        self.store.db().transaction(Durability::Synced, |tx| {
            intent::remove(tx, intent.operation)?;
            operation::finish(tx, operation, OperationState::Failed, None)
        })?;
        Ok(())
    }

    /// Exchanges, makes and removes. On failure says what was done so far.
    pub(super) fn swap(&self, intent: &Intent) -> Result<Swapped, (Failed, Vec<Done>)> {
        let files = self.files();
        let mut swapped = Swapped::default();
        let Swapped { kept, done } = &mut swapped;
        let result = (|| {
            // What is in a directory comes after it, and has to go before it.
            for item in intent.items.iter().rev() {
                if !files.remove(item, done)? {
                    kept.insert(item.path.clone());
                }
            }
            for item in &intent.items {
                files.bring(item, done)?;
            }
            for item in intent.items.iter().rev() {
                if let Some(after) = item.after.filter(|after| after.kind == Kind::Directory) {
                    files.set_mode(&item.path, after.mode, done)?;
                }
            }
            tighten(&files, intent, done)?;
            files.sync_directories(intent.items.iter().flat_map(|item| [&item.path, &item.temp]))
        })();
        match result {
            Ok(()) => Ok(swapped),
            Err(failed) => Err((failed, swapped.done)),
        }
    }

    fn roll_back(
        &mut self,
        plan: &Plan,
        intent: &Intent,
        done: Vec<Done>,
        failed: Failed,
        new: &NewRewind,
        safety: CheckpointId,
    ) -> RewindError {
        let Failed { what, path, source } = failed;
        let stay = self.files().take_back(done);
        if stay.is_empty() {
            // As long as it is armed, the next recovery would do it all over again.
            let disarmed = self
                .store
                .db()
                .transaction(Durability::Synced, |tx| intent::set_stage(tx, intent.operation, Stage::Staging));
            if disarmed.is_err() {
                return RewindError::Unfinished { what, path, source };
            }
            self.forget(intent, new.operation).ok();
            return RewindError::RolledBack { what, path, source };
        }
        let stay: BTreeSet<WorkspacePath> = stay.into_iter().collect();
        let status = |path: &WorkspacePath| if stay.contains(path) { PathStatus::Failed } else { PathStatus::Kept };
        let statuses = plan.paths.iter().map(|path| (path.path.clone(), status(&path.path))).collect();
        // The intent stays: whoever recovers finds out what is where.
        let noted = self
            .store
            .db()
            .transaction(Durability::Synced, |tx| operation::finish(tx, new.operation, OperationState::Partial, None));
        match noted {
            Ok(()) => RewindError::Partial { what, path, source, statuses, safety },
            Err(err) => err.into(),
        }
    }

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
        let rules = self.rules()?;
        let git = git::state(&self.env.root);
        let touched: BTreeSet<WorkspacePath> =
            intent.items.iter().flat_map(|item| [item.path.clone(), item.temp.clone()]).collect();
        let scene = take::scan_touched(&self.store, &mut self.scanner, &rules, &touched, effort)?;
        let files = super::files::Files::new(self.scanner.root_fd(), &self.env.root);
        let displaced = displaced::keep(&files, &scene.sink.batch, &intent.items, held, facts)?;
        scene.check_budget()?;
        let by = By::operation(finish.session.map(|(seq, _)| seq), intent.operation);
        let own = intent.items.iter().map(|item| item.path.clone()).collect();
        let purpose = Purpose {
            origin: Origin::Rewound,
            session: finish.session,
            note: Some(format!("{} {}", finish.kind.name(), finish.what)),
            own: Some((own, by, &displaced.nodes)),
            also: &|tx, seq| {
                operation::finish(tx, finish.operation, finish.state, Some(seq))?;
                displaced::insert(tx, intent.operation, &displaced.nodes)?;
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

    /// Makes directories writable that have to be.
    pub(super) fn loosen(&self, intent: &Intent) -> Result<(), Failed> {
        let files = self.files();
        for (path, mode) in &intent.loosened {
            // One that has gone needs no more permissions.
            if matches!(files.look(path), Ok(Some(_))) {
                files.set_mode(path, mode | 0o700, &mut Vec::new())?;
            }
        }
        Ok(())
    }

    pub(super) fn files(&self) -> Files<'_> {
        Files::new(self.scanner.root_fd(), &self.env.root)
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

/// Leaves out paths whose content is damaged, where that was chosen; refuses everything else.
fn leave_damaged(
    plan: &mut Plan,
    intent: &mut Intent,
    damaged: &BTreeSet<WorkspacePath>,
    request: &RewindRequest,
) -> Result<(), RewindError> {
    for path in plan.paths.iter_mut().filter(|path| damaged.contains(&path.path)) {
        path.conflict = Some(Conflict::Damaged);
        path.choice = request.choice(&path.path);
        path.merged = None;
    }
    if plan.paths.iter().any(super::PlannedPath::stops) {
        return Err(RewindError::Refused { plan: Box::new(plan.clone()) });
    }
    // Their row of the intent stays; without a staged file nothing would come of it but the removal of what is there.
    intent.items.retain(|item| !damaged.contains(&item.path));
    Ok(())
}

/// Gives loosened directories their permissions back, unless the operation itself has changed them.
fn tighten(files: &Files<'_>, intent: &Intent, done: &mut Vec<Done>) -> Result<(), Failed> {
    for (path, mode) in intent.loosened.iter().rev() {
        let item = intent.items.iter().find(|item| item.path == *path);
        let mode = match item.map(|item| item.after) {
            None => *mode,
            Some(Some(after)) if after.kind == Kind::Directory => after.mode,
            Some(_) => continue,
        };
        if matches!(files.look(path), Ok(Some(_))) {
            files.set_mode(path, mode, done)?;
        }
    }
    Ok(())
}

/// Whether a path still looks as it did when it was captured.
fn is_as_captured(item: &Item, now: Option<Facts>, then: Option<&Captured>) -> bool {
    match (item.before, now, then) {
        (None, now, _) => now.is_none(),
        (Some(_), None, _) => false,
        // Of a directory only what it is: its times move with what is in it, and its permissions may be loosened.
        (Some(before), Some(now), _) if before.kind == Kind::Directory => {
            now.file_type() == rustix::fs::FileType::Directory
        }
        (Some(_), Some(now), Some(then)) => now == then.facts,
        (Some(_), Some(_), None) => false,
    }
}

fn rolled_back(failed: Failed) -> RewindError {
    RewindError::RolledBack { what: failed.what, path: failed.path, source: failed.source }
}

/// All is done, but a temporary file could not be removed; the next recovery tries again.
fn left_over(failed: Failed) -> RewindError {
    RewindError::LeftOver { path: failed.path, source: failed.source }
}

fn statuses(
    plan: &Plan,
    kept: &BTreeSet<WorkspacePath>,
    displaced: &BTreeMap<WorkspacePath, Node>,
) -> Vec<(WorkspacePath, PathStatus)> {
    let status = |path: &super::PlannedPath| {
        if path.conflict.is_some() && matches!(path.choice, OnConflict::Keep) || kept.contains(&path.path) {
            PathStatus::Kept
        } else if displaced.contains_key(&path.path) {
            PathStatus::Displaced
        } else {
            PathStatus::Done
        }
    };
    plan.paths.iter().map(|path| (path.path.clone(), status(path))).collect()
}
