//! Changes of what is retained: first everything is checked, then the inner agent's conversation is cut, then everything is checked again
//! and made to hold, files and head at once. Nothing is kept from working while the inner agent takes its time, and what somebody saves
//! meanwhile makes the plan stale.

use std::collections::HashMap;

use retake_agent::contract::{Change, OperationRef, Reason, Refusal, SeenHead};
use retake_agent::ids;
use retake_agent::query::{refusal, refused, to_request};
use retake_agent::rewind_document::RewindDocument;
use retake_engine::Workspace;
use retake_engine::id::EntryId;
use retake_engine::id::SessionId;
use retake_engine::operation::MadeBy;
use retake_engine::progress::NoProgress;
use retake_engine::rewind::{HeadSeen, RewindError, RewindRequest};
use retake_engine::session::entry::{Body, Entry};

use super::LogWriter;
use crate::extension::backend::ChangeRequest;

/// A change that was made.
#[derive(Debug)]
pub(in super::super) struct Changed {
    pub(in super::super) document: RewindDocument,
    /// What was retained before it.
    pub(in super::super) before: Vec<Entry>,
    /// What is retained now.
    pub(in super::super) after: Vec<Entry>,
}

/// A change that can be made, as far as is known.
#[derive(Debug)]
pub(in super::super) struct Rehearsed {
    change: Change,
    head: Option<EntryId>,
    /// The fingerprint of the plan: just that one is applied.
    seen: String,
    /// What will be retained of the conversation, and all that was ever said, if that is not what is retained now.
    pub(in super::super) cut: Option<(Vec<Entry>, Vec<Entry>)>,
}

impl LogWriter {
    /// Finds out what a change would come to, and refuses it if it cannot be made. Nothing is changed.
    pub(in super::super) fn rehearse(&mut self, wanted: ChangeRequest) -> Result<Rehearsed, Refusal> {
        let ChangeRequest { change, head_seen, plan_seen, .. } = wanted;
        self.flush();
        if self.turn.is_some() {
            return Err(refusal(Reason::Running, "nothing was changed: a turn is running"));
        }
        let (session, head) = (self.id(), self.entries().last().map(|entry| entry.id));
        if head_seen.is_some_and(|SeenHead { head: seen }| seen != head) {
            let text = "the conversation has moved on since; nothing was changed";
            return Err(refusal(Reason::StaleHead, text));
        }
        self.workspace_thread.ask(move |workspace| {
            let request = request(workspace, session, &change, head)?;
            let plan = workspace.rewinds().rehearse(session, &request, &NoProgress).map_err(|error| refused(&error))?;
            if plan_seen.is_some_and(|seen| !plan.is_as_seen(&seen)) {
                return Err(refused(&RewindError::Stale { plan: Box::new(plan) }));
            }
            let moves = plan.conversation.as_ref().filter(|planned| planned.from != planned.to);
            let cut = moves.map(|planned| {
                let all = workspace.sessions().all_entries(session).unwrap_or_default();
                (chain(&all, planned.to), all)
            });
            Ok(Rehearsed { change, head, seen: plan.fingerprint(), cut })
        })
    }

    /// Makes a change that was rehearsed, if it still comes to the same.
    pub(in super::super) fn change(&mut self, rehearsed: Rehearsed) -> Result<Changed, Refusal> {
        self.flush();
        if self.turn.is_some() {
            return Err(refusal(Reason::Running, "nothing was changed: a turn is running"));
        }
        let Rehearsed { change, head, seen, .. } = rehearsed;
        let (session, before) = (self.id(), self.entries().to_vec());
        let mut writer = self.writer.take().expect("the writer is away only while a change is being made");
        let (writer, applied) = self.workspace_thread.ask(move |workspace| {
            let applied = request(workspace, session, &change, head).and_then(|request| {
                let applied =
                    workspace.rewinds_mut().apply_in(&mut writer, &request, Some(&seen), &ids::rewind(), &NoProgress);
                applied.map_err(|error| refused(&error))
            });
            (writer, applied)
        });
        self.writer = Some(writer);
        let operation = applied.as_ref().ok().and_then(|applied| applied.operation);
        if let Self { writer: Some(writer), publisher, .. } = self {
            publisher.head_moved(writer.conversation().entries(), operation.map(OperationRef::from));
            publisher.draft(writer.draft());
        }
        let applied = applied?;
        Ok(Changed { document: RewindDocument::applied(&applied), before, after: self.entries().to_vec() })
    }
}

fn request(
    workspace: &mut Workspace,
    session: SessionId,
    change: &Change,
    head: Option<EntryId>,
) -> Result<RewindRequest, Refusal> {
    let mut request = to_request(workspace, session, change)?;
    request.made_by = MadeBy::Client;
    request.head_seen = Some(HeadSeen(head));
    Ok(request)
}

/// The entries from the first one to `head`.
pub(in super::super) fn chain(all: &[Entry], head: Option<EntryId>) -> Vec<Entry> {
    let by_id: HashMap<EntryId, &Entry> = all.iter().map(|entry| (entry.id, entry)).collect();
    let mut found = Vec::new();
    let mut at = head.and_then(|head| by_id.get(&head));
    while let Some(entry) = at {
        found.push((*entry).clone());
        at = entry.parent.and_then(|parent| by_id.get(&parent));
    }
    found.reverse();
    found
}

/// The entries up to the last one that the inner agent knows of: what Retake noted after it is not its own.
pub(in super::super) fn spoken(entries: &[Entry]) -> &[Entry] {
    let is_spoken =
        |entry: &Entry| matches!(entry.body, Body::Prompt { .. } | Body::Reply { .. } | Body::ToolResult { .. });
    let last = entries.iter().rposition(is_spoken);
    &entries[..last.map_or(0, |last| last + 1)]
}
