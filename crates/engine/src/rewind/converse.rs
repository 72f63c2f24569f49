//! Taking only the conversation back: files and everything else stay, and the model is told which of them differ.

use std::collections::BTreeMap;

use super::apply::refuse_stale_head;
use super::goal::{self, Resolved};
use super::{Applied, NewRewind, Plan, RewindError, RewindRequest, ledger, plan, same};
use crate::checkpoint::{self, Origin, Purpose, RuleChanges};
use crate::operation::{self, OperationState};
use crate::owner::{rows, window};
use crate::rewind::prepare::insert_operation;
use crate::session::Scope;
use crate::session::aim::Aim;
use crate::session::rows as session_rows;
use crate::store::{Durability, Store};
use crate::{
    CheckpointError, CheckpointId, LedgerItem, NewCheckpoint, Node, Progress, SessionId, StoreError, Timestamp,
    Workspace, WorkspacePath, git,
};

impl Workspace {
    /// The plan of a rewind of the conversation alone.
    pub(super) fn plan_conversation(&self, aim: &Aim, what: &str) -> Result<Plan, RewindError> {
        let store = &self.store;
        let mut ledger = Vec::new();
        if let Some(point) = aim.point {
            ledger = plan::commands_since(store, point)?;
            if let Some(target) = checkpoint::by_seq(store, point)? {
                ledger.extend(ledger::git_moves(&target.git, &git::state(&self.env.root)));
            }
        }
        let running = window::at_work(store)?.into_iter();
        ledger.extend(running.map(|tool| LedgerItem { kind: "running".to_owned(), what: tool.tool, remedy: None }));
        Ok(Plan {
            what: what.to_owned(),
            session: Some(aim.id),
            means: None,
            paths: Vec::new(),
            kept: Vec::new(),
            uncaptured: Vec::new(),
            already: Vec::new(),
            blocked: Vec::new(),
            branch: None,
            checked_out: None,
            ledger,
            gaps: Vec::new(),
            foreign: 0,
            undoes: Vec::new(),
            scope: Scope::Conversation,
            conversation: Some(aim.planned(store)?),
            fork: None,
            directories: Vec::new(),
            newest: 0,
        })
    }

    /// Moves the head of a conversation, and tells the model which files differ from what it last saw.
    pub(super) fn apply_conversation(
        &mut self,
        request: &RewindRequest,
        seen: Option<&str>,
        resolved: &Resolved,
        new: &NewRewind,
        progress: &dyn Progress,
    ) -> Result<Applied, RewindError> {
        let aim = resolved.aim.as_ref().ok_or(RewindError::Gone)?;
        refuse_stale_head(&self.store, request, Some(aim))?;
        let plan = self.plan_conversation(aim, &resolved.what)?;
        if seen.is_some_and(|seen| !plan.is_as_seen(seen)) {
            return Err(RewindError::Stale { plan: Box::new(plan) });
        }
        let session = Some((aim.session, aim.id));
        let before = self.point_now(session, format!("rewind {}", resolved.what), new.safety, new.at, progress)?;
        let differing = aim.point.map_or_else(|| Ok(Vec::new()), |point| differing(&self.store, point))?;
        let moved = self.store.db().transaction(Durability::Synced, |tx| {
            let (seq, moved) = insert_operation(tx, resolved, new, &plan, before, request.made_by)?;
            let moved = moved.map_or(Ok(true), |moved| moved.carry_out(tx, aim.session, seq, &differing))?;
            // At the note the files are as they are now, not as they were at what it is added to.
            session_rows::pair_new_head(tx, aim.session, aim.to, before)?;
            let state = if moved { OperationState::Done } else { OperationState::Failed };
            operation::finish(tx, new.operation, state, Some(before))?;
            Ok(moved)
        })?;
        if !moved {
            return Err(RewindError::StaleHead);
        }
        Ok(Applied {
            plan,
            operation: Some(new.operation),
            conversation_moved: Some(true),
            statuses: Vec::new(),
            safety: None,
            still_open: Vec::new(),
            left_over: Vec::new(),
        })
    }

    /// Takes a checkpoint, so that it is known what has changed; the newest one there is, if there is no room for another.
    pub(crate) fn point_now(
        &mut self,
        session: Option<(i64, SessionId)>,
        note: String,
        id: CheckpointId,
        at: Timestamp,
        progress: &dyn Progress,
    ) -> Result<i64, CheckpointError> {
        let purpose = Purpose {
            origin: Origin::Safety,
            session,
            entry: None,
            note: Some(note),
            own: None,
            rule_changes: RuleChanges::Judge,
            created: None,
            also: &|_, _| Ok(()),
        };
        let checkpoint = NewCheckpoint { id, at, label: None };
        let newest = |store: &Store| Ok::<_, StoreError>(checkpoint::newest(store)?.map(|newest| newest.id));
        let id = match self.take_owned(&checkpoint, &purpose, Durability::Soon, progress) {
            Ok(taken) => Some(taken.id),
            Err(err @ CheckpointError::Scan(_)) => return Err(err),
            // Files are not touched: that they cannot be saved is no reason to refuse.
            Err(_) => newest(&self.store)?,
        };
        Ok(id.map(|id| checkpoint::sequence_of(&self.store, id)).transpose()?.flatten().unwrap_or(0))
    }
}

/// Paths that are not as they were at checkpoint `point`.
pub(crate) fn differing(store: &Store, point: i64) -> Result<Vec<WorkspacePath>, StoreError> {
    let mut ends: BTreeMap<WorkspacePath, (Option<Node>, Option<Node>)> = BTreeMap::new();
    for change in rows::after(store, point)? {
        ends.entry(change.path).or_insert((change.before, None)).1 = change.after;
    }
    let differs = |(before, after): &(Option<Node>, Option<Node>)| {
        let node = before.or(*after);
        !same(before.as_ref(), after.as_ref()) && node.is_some_and(|node| node.kind != crate::Kind::Directory)
    };
    Ok(ends.into_iter().filter(|(_, ends)| differs(ends)).map(|(path, _)| path).collect())
}

/// What a goal asks for of the conversation alone.
pub(super) fn only_conversation(resolved: &goal::Resolved) -> Option<&Aim> {
    resolved.aim.as_ref().filter(|_| resolved.scope == Scope::Conversation)
}
