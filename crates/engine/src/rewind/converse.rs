//! Taking only the conversation back: files and everything else stay, and the model is told which of them differ.

use super::apply::refuse_stale_head;
use super::goal::{self, Resolved};
use super::prepare::insert_operation;
use super::{Applied, NewRewind, Plan, RewindError, RewindRequest, plan};
use crate::base::progress::Progress;
use crate::git;
use crate::history::checkpoint;
use crate::history::ledger::{self, LedgerItem};
use crate::history::operation::{self, OperationState};
use crate::history::owner::rows::differing;
use crate::history::owner::window;
use crate::session::head_target::HeadTarget;
use crate::session::{Scope, rows as session_rows};
use crate::store::Durability;
use crate::workspace::Workspace;

impl Workspace {
    /// The plan of a rewind of the conversation alone.
    pub(super) fn plan_conversation(&self, aim: &HeadTarget, what: &str) -> Result<Plan, RewindError> {
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
}

/// What a goal asks for of the conversation alone.
pub(super) fn only_conversation(resolved: &goal::Resolved) -> Option<&HeadTarget> {
    resolved.aim.as_ref().filter(|_| resolved.scope == Scope::Conversation)
}
