//! Changes of what is retained: the files are staged, then the inner agent's conversation is cut, then both are made to hold.

use std::collections::HashMap;

use retake_agent::contract::{Reason, Refusal, Seen};
use retake_agent::document::RewindDocument;
use retake_agent::fresh;
use retake_agent::question::{refusal, refused, to_request};
use retake_engine::session::entry::{Body, Entry, EntryId};
use retake_engine::{HeadSeen, MadeBy, NoProgress, Plan, RewindError, RewindRequest, Workspace};

use super::Scribe;
use crate::extension::door::Wanted;

/// A change that was made.
#[derive(Debug)]
pub(in super::super) struct Changed {
    pub(in super::super) document: RewindDocument,
    /// What was retained before it.
    pub(in super::super) before: Vec<Entry>,
    /// What is retained now.
    pub(in super::super) after: Vec<Entry>,
}

impl Scribe {
    /// Makes a change. `cut` is given what will be retained of the conversation, if that changes, when everything is staged; if it fails,
    /// nothing happens.
    pub(in super::super) fn change(
        &mut self,
        wanted: Wanted,
        mut cut: impl FnMut(&[Entry], &[Entry]) -> Result<(), String> + Send + 'static,
    ) -> Result<Changed, Refusal> {
        let Wanted { change, head_seen, plan_seen, .. } = wanted;
        self.flush();
        if self.turn.is_some() {
            return Err(refusal(Reason::Running, "nothing was changed: a turn is running"));
        }
        let (session, before) = (self.id(), self.entries().to_vec());
        let head = before.last().map(|entry| entry.id);
        if head_seen.is_some_and(|Seen { head: seen }| seen != head) {
            let text = "the conversation has moved on since; nothing was changed";
            return Err(refusal(Reason::StaleHead, text));
        }
        let mut writer = self.writer.take().expect("the writer is away only while a change is being made");
        let (writer, applied) = self.keeper.ask(move |workspace| {
            let result = to_request(workspace, session, &change).and_then(|mut request| {
                request.made_by = MadeBy::Client;
                request.head_seen = Some(HeadSeen(head));
                check_seen(workspace, &request, plan_seen.as_deref())?;
                let all = workspace.all_entries(session).unwrap_or_default();
                let mut agree = |plan: &Plan| match &plan.conversation {
                    Some(planned) if planned.from != planned.to => cut(&chain(&all, planned.to), &all),
                    _ => Ok(()),
                };
                let new = fresh::rewind();
                let applied = workspace.apply_in_if(&mut writer, &request, None, &new, &NoProgress, &mut agree);
                applied.map_err(|error| refused(&error))
            });
            (writer, result)
        });
        self.writer = Some(writer);
        let operation = applied.as_ref().ok().and_then(|applied| applied.operation);
        if let Self { writer: Some(writer), telling, .. } = self {
            telling.tell_moved(writer.conversation().entries(), operation.map(|id| id.to_string()));
            telling.tell_draft(writer.draft());
        }
        let applied = applied?;
        Ok(Changed { document: RewindDocument::applied(&applied), before, after: self.entries().to_vec() })
    }
}

/// Refuses a change that would come to something else by now than what the user saw.
fn check_seen(workspace: &mut Workspace, request: &RewindRequest, seen: Option<&str>) -> Result<(), Refusal> {
    let Some(seen) = seen else { return Ok(()) };
    let plan = workspace.plan(request, &NoProgress).map_err(|error| refused(&error))?;
    match plan.fingerprint() == seen {
        true => Ok(()),
        false => Err(refused(&RewindError::Stale { plan: Box::new(plan) })),
    }
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
