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

use super::displaced::{self, Patience};
use super::files::{Failed, Files};
use super::finish::{Finish, Meanwhile, mark};
use super::goal::{self, Resolved};
use super::prepare::{Preparation, Prepared, insert_operation};
use super::swap::Done;
use super::{Applied, HeadSeen, NewRewind, OnConflict, PathStatus, Plan, RewindError, RewindRequest, converse};
use crate::base::fault;
use crate::base::id::{CheckpointId, OperationId, SessionId};
use crate::base::path::WorkspacePath;
use crate::base::progress::Progress;
use crate::history::intent::{self, Intent, Item, Stage};
use crate::history::operation::{self, OperationKind, OperationState};
use crate::history::owner::window;
use crate::rewind::Rewinds;
use crate::session::head_target::HeadTarget;
use crate::session::{Discard, Scope, SessionWriter, rows};
use crate::store::tree::{Node, NodeKind, same};
use crate::store::{Durability, Store};
use crate::workspace::Workspace;

/// What swapping left alone.
#[derive(Default)]
pub(super) struct Swapped {
    /// Directories that turned out not to be empty.
    pub(super) kept: BTreeSet<WorkspacePath>,
    pub(super) done: Vec<Done>,
}

impl Workspace {
    fn refuse_in_use(&self, resolved: &Resolved) -> Result<(), RewindError> {
        let target_seq = resolved.target_seq()?;
        let mut at_work = window::at_work(&self.store)?;
        at_work.retain(|tool| tool.prevents(resolved.session, target_seq));
        match at_work.is_empty() {
            true => Ok(()),
            false => Err(RewindError::InUse { tools: at_work.into_iter().map(|at_work| at_work.tool).collect() }),
        }
    }

    fn apply_for(
        &mut self,
        open: Option<SessionId>,
        request: &RewindRequest,
        seen: Option<&str>,
        new: &NewRewind,
        progress: &dyn Progress,
    ) -> Result<Applied, RewindError> {
        let _own = self.store.own()?;
        fault::place("rewind-begins");
        if let Some(operation) = operation::pending(&self.store)? {
            return Err(RewindError::Pending { operation: Box::new(operation) });
        }
        self.clean_up_again()?;
        let resolved = goal::resolve(&self.store, &request.goal)?;
        if let Some(fork) = resolved.fork {
            return self.apply_fork(request, seen, &resolved, fork, new);
        }
        if let Some(aim) = resolved.aim.as_ref().filter(|aim| Some(aim.id) != open) {
            return Err(RewindError::SessionNotOpen { session: aim.id });
        }
        let discards = resolved.aim.as_ref().is_some_and(|aim| aim.discard == Discard::Now);
        if discards {
            self.store.db().erase_deleted()?;
        }
        let applied = match converse::only_conversation(&resolved) {
            Some(_) => self.apply_conversation(request, seen, &resolved, new, progress),
            None => self.apply_files(request, seen, &resolved, new, progress),
        };
        if discards && applied.is_ok() {
            self.store.db().erase();
        }
        applied
    }

    /// Takes files back, and the conversation with them if that is asked for.
    fn apply_files(
        &mut self,
        request: &RewindRequest,
        seen: Option<&str>,
        resolved: &Resolved,
        new: &NewRewind,
        progress: &dyn Progress,
    ) -> Result<Applied, RewindError> {
        refuse_stale_head(&self.store, request, resolved.aim.as_ref())?;
        self.refuse_in_use(resolved)?;
        let target_seq = resolved.target_seq()?;
        let prepared = self.making_room(Some(target_seq), |this, effort| {
            this.prepare(request, seen, resolved, new, effort, progress)
        })?;
        match prepared {
            Preparation::Refused(err) => Err(err),
            Preparation::Nothing(plan) => self.note_nothing(*plan, request, resolved, new),
            Preparation::Ready(prepared) => self.carry_out(*prepared, request, resolved, new),
        }
    }

    /// A move of the conversation is an operation although the files are there already, and so is a redo, unless something of it was
    /// left as it is. An undo is none if what the operation did is there no more and could come back: files out of git's stash, a
    /// conversation that went on since.
    fn note_nothing(
        &mut self,
        plan: Plan,
        request: &RewindRequest,
        resolved: &Resolved,
        new: &NewRewind,
    ) -> Result<Applied, RewindError> {
        let mut operation = None;
        let mut conversation_moved = None;
        let left_alone = plan.conflicts().any(|path| path.choice == OnConflict::Keep);
        let moving = resolved.aim.as_ref().filter(|aim| resolved.scope == Scope::Both && aim.moves());
        let is_undo = resolved.kind == OperationKind::Undo;
        let is_removed = plan.conversation.as_ref().is_some_and(|planned| planned.removed);
        if let Some(operation) = resolved.reverses.as_ref().filter(|_| is_undo && is_removed && !left_alone) {
            return Err(RewindError::Discarded { operation: operation.id, what: resolved.what.clone() });
        }
        let went_on = plan.conversation.as_ref().is_some_and(|planned| planned.went_on);
        let without_effect = is_undo && (went_on || !plan.already.is_empty());
        if moving.is_some() || resolved.reverses.is_some() && !without_effect && !left_alone {
            let before = resolved.target_seq()?;
            let moved = self.store.db().transaction(Durability::Synced, |tx| {
                let (seq, moved) = insert_operation(tx, resolved, new, &plan, before, request.made_by)?;
                let moved =
                    moving.zip(moved).map_or(Ok(true), |(aim, moved)| moved.carry_out(tx, aim.session, seq, &[]))?;
                let state = if moved { OperationState::Done } else { OperationState::Failed };
                operation::finish(tx, new.operation, state, None)?;
                if moved {
                    mark(tx, resolved.kind, resolved.reverses.as_ref().map(|reversed| reversed.seq))?;
                }
                Ok(moved)
            })?;
            if !moved {
                return Err(RewindError::StaleHead);
            }
            operation = Some(new.operation);
            conversation_moved = moving.map(|_| true);
        }
        let statuses = statuses(&plan, &BTreeSet::new(), &Meanwhile::default());
        let (still_open, left_over) = (Vec::new(), Vec::new());
        Ok(Applied { plan, operation, conversation_moved, statuses, safety: None, still_open, left_over })
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
        if let Err(err) = intent::arm(&self.store, intent.operation) {
            self.forget(&intent, new.operation).ok();
            return Err(err.into());
        }
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
            target: resolved.target().ok().cloned(),
            put: put(&intent.items, &swapped.kept),
        };
        let held = displaced::held_by(&intent.items, &swapped.done);
        let meanwhile = self.finish(&intent, finish, &facts, &held)?;
        let statuses = statuses(&plan, &swapped.kept, &meanwhile);
        let (operation, safety) = (Some(new.operation), Some(safety.id));
        let still_open = meanwhile.still_open.into_iter().collect();
        let conversation_moved = meanwhile.conversation_moved.filter(|_| resolved.scope == Scope::Both);
        let left_over = meanwhile.left_over;
        Ok(Applied { plan, operation, conversation_moved, statuses, safety, still_open, left_over })
    }

    /// Takes an operation back that has not touched a file yet.
    pub(super) fn forget(&mut self, intent: &Intent, operation: OperationId) -> Result<(), RewindError> {
        let files = self.files();
        // One that cannot be removed is no reason to leave the others, or to keep anybody from working: it is tried again.
        let stay = intent.items.iter().filter(|item| files.discard(&item.temp).is_err()).count();
        tighten(&files, intent, Swap::NotDone, &mut Vec::new()).map_err(rolled_back)?;
        self.store.db().transaction(Durability::Synced, |tx| {
            match stay {
                0 => intent::remove(tx, intent.operation)?,
                _ => intent::give_up(tx, intent)?,
            }
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
                if let Some(after) = item.after.filter(|after| after.kind == NodeKind::Directory) {
                    files.set_mode(&item.path, after.mode, done)?;
                }
            }
            tighten(&files, intent, Swap::Done, done)?;
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
        fault::place("rewind-failed");
        let Failed { what, path, source } = failed;
        let stay = self.files().take_back(self.without_overtaken(intent, done));
        if stay.is_empty() {
            // Somebody may have saved a file while it was in place: the intent stays until that is in the store.
            let mut patience = Patience::default();
            let mut keep = |item: &Item| self.keep(intent.operation, item, &item.temp, &mut patience);
            if !intent.items.iter().all(|item| matches!(keep(item), Ok(true))) {
                return RewindError::Unfinished { what, path, source };
            }
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

    /// What of `done` can be taken back: a file that somebody has saved since it was put in place is theirs, and stays.
    fn without_overtaken(&self, intent: &Intent, mut done: Vec<Done>) -> Vec<Done> {
        done.retain(|step| {
            let (Done::Exchanged { path, .. } | Done::Placed { path, .. }) = step else { return true };
            let item = intent.items.iter().find(|item| item.path == *path);
            let now = self.state(path).ok().flatten();
            item.is_some_and(|item| same(now.as_ref(), item.after.as_ref()))
        });
        done
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

impl Rewinds<&Workspace> {
    /// What [`apply_in`](Rewinds::apply_in) would come to in the conversation `session`, refused as far as that can be known beforehand.
    /// Writes nothing. For whoever has to do something else first that is hard to take back, and then applies just this plan.
    pub fn rehearse(
        &self,
        session: SessionId,
        request: &RewindRequest,
        progress: &dyn Progress,
    ) -> Result<Plan, RewindError> {
        if let Some(operation) = operation::pending(&self.0.store)? {
            return Err(RewindError::Pending { operation: Box::new(operation) });
        }
        let resolved = goal::resolve(&self.0.store, &request.goal)?;
        if let Some(aim) = resolved.aim.as_ref().filter(|aim| aim.id != session) {
            return Err(RewindError::SessionNotOpen { session: aim.id });
        }
        refuse_stale_head(&self.0.store, request, resolved.aim.as_ref())?;
        if resolved.fork.is_none() && converse::only_conversation(&resolved).is_none() {
            self.0.refuse_in_use(&resolved)?;
        }
        let plan = self.0.rewinds().plan(request, progress)?;
        if plan.is_applicable() { Ok(plan) } else { Err(RewindError::Refused { plan: Box::new(plan) }) }
    }
}

impl Rewinds<&mut Workspace> {
    /// Like [`apply`](Self::apply), for the conversation that `writer` writes: its head may move.
    pub fn apply_in(
        &mut self,
        writer: &mut SessionWriter,
        request: &RewindRequest,
        seen: Option<&str>,
        new: &NewRewind,
        progress: &dyn Progress,
    ) -> Result<Applied, RewindError> {
        let applied = self.0.apply_for(Some(writer.id()), request, seen, new, progress);
        writer.reload()?;
        applied
    }

    /// Carries out what `request` asks for. `seen` is the [fingerprint](Plan::fingerprint) of the plan that the user saw: the request is
    /// refused if the plan under the lock is another. Without one, anything that needs no decision is applied. One operation that can be
    /// undone. What belongs to a conversation needs its writer.
    pub fn apply(
        &mut self,
        request: &RewindRequest,
        seen: Option<&str>,
        new: &NewRewind,
        progress: &dyn Progress,
    ) -> Result<Applied, RewindError> {
        self.0.apply_for(None, request, seen, new, progress)
    }
}

/// Refuses what the caller decided on when the head was somewhere else.
pub(super) fn refuse_stale_head(
    store: &Store,
    request: &RewindRequest,
    aim: Option<&HeadTarget>,
) -> Result<(), RewindError> {
    let (Some(HeadSeen(seen)), Some(aim)) = (request.head_seen, aim) else { return Ok(()) };
    let now = store
        .db()
        .read(|connection| aim.from.map(|seq| rows::id_of(connection, seq)).transpose().map(Option::flatten))?;
    if now == seen { Ok(()) } else { Err(RewindError::StaleHead) }
}

/// The states that `items` have brought, but for directories that were `kept`.
pub(super) fn put(items: &[Item], kept: &BTreeSet<WorkspacePath>) -> BTreeMap<WorkspacePath, Option<Node>> {
    let items = items.iter().filter(|item| !kept.contains(&item.path));
    items.map(|item| (item.path.clone(), item.after)).collect()
}

/// Whether the operation has done to the files what it was to do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Swap {
    NotDone,
    Done,
}

/// Gives loosened directories their permissions back, or those that the operation has given them.
pub(super) fn tighten(files: &Files<'_>, intent: &Intent, swap: Swap, done: &mut Vec<Done>) -> Result<(), Failed> {
    for (path, mode) in intent.loosened.iter().rev() {
        let item = intent.items.iter().find(|item| item.path == *path && swap == Swap::Done);
        let mode = match item.map(|item| item.after) {
            None => *mode,
            Some(Some(after)) if after.kind == NodeKind::Directory => after.mode,
            Some(_) => continue,
        };
        if matches!(files.look(path), Ok(Some(_))) {
            files.set_mode(path, mode, done)?;
        }
    }
    Ok(())
}

pub(super) fn rolled_back(failed: Failed) -> RewindError {
    RewindError::RolledBack { what: failed.what, path: failed.path, source: failed.source }
}

fn statuses(plan: &Plan, kept: &BTreeSet<WorkspacePath>, meanwhile: &Meanwhile) -> Vec<(WorkspacePath, PathStatus)> {
    let status = |path: &super::PlannedPath| {
        let is_kept = path.conflict.is_some() && path.choice == OnConflict::Keep;
        let has_nothing_to_merge = path.is_merged() && same(path.now.as_ref(), path.result().as_ref());
        if is_kept || has_nothing_to_merge || kept.contains(&path.path) {
            PathStatus::Kept
        } else if meanwhile.overtaken.contains(&path.path) {
            PathStatus::Overtaken
        } else if meanwhile.displaced.contains_key(&path.path) {
            PathStatus::Displaced
        } else {
            PathStatus::Done
        }
    };
    plan.paths.iter().map(|path| (path.path.clone(), status(path))).collect()
}
