//! A prompt on its way to the inner agent: the log has it, a snapshot is taken, and what the agent has to know first comes with it.
//!
//! The snapshot is waited for only so long. One that is not complete by then is a gap that is shown wherever this point is.

use std::sync::Arc;

use retake_agent::ids;
use retake_engine::id::EntryId;
use retake_engine::session::entry::{Body, EndReason, Entry};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::cut::CutFailure;
use super::json_edit::{JsonEdits, put};
use super::log_writer::spoken;
use super::relay::{PendingKind, reason};
use super::session::ProxiedSession;
use super::session_map::MapRecord;
use super::shape::{self, Version};
use super::transcript::Images;
use super::{Proxy, complain, transcript};
use crate::slash::plain_text;
use crate::wire::RpcError;

impl Proxy {
    /// Takes a prompt of the client's.
    pub(super) async fn prompt(
        self: &Arc<Self>,
        session: &Arc<ProxiedSession>,
        id: Value,
        params: &Value,
        line: &[u8],
    ) {
        let blocks = params["prompt"].as_array().cloned().unwrap_or_default();
        if let Some(command) = plain_text(&blocks).and_then(|text| session.chat.parse(text)) {
            return self.slash(session, id, blocks, command).await;
        }
        match self.say(session, &blocks).await {
            Ok(preface) => {
                let mut edits = JsonEdits::new(line);
                let inner = session.live().inner.clone();
                if inner != session.outer {
                    edits.replace(&["params", "sessionId"], &Value::from(inner));
                }
                if let Some(preface) = preface {
                    let blocks: Vec<String> = preface.iter().map(Value::to_string).collect();
                    edits.prepend(&["params", "prompt"], &blocks.join(","));
                }
                self.note_request(&id, PendingKind::Prompt { session: Arc::clone(session) });
                self.to_agent(edits.make()).await;
            }
            Err(error) => drop(self.client.answer(id, Err(error)).await),
        }
    }

    /// Prepares everything for a prompt; returns what has to be told before it.
    pub(super) async fn say(
        self: &Arc<Self>,
        session: &Arc<ProxiedSession>,
        blocks: &[Value],
    ) -> Result<Option<Vec<Value>>, RpcError> {
        let _alone = session.changing.lock().await;
        let prompt = ids::entry();
        let waits = session.live().wait(prompt, shape::parts(blocks));
        let parts = match waits {
            Ok(()) => return Ok(None),
            Err(parts) => parts,
        };
        // The last one is over, and about to be in the log.
        session.running.subscribe().wait_for(|running| !running).await.ok();
        if let Some(note) = self.align(session).await? {
            self.tell_user(session, &note).await;
        }
        self.keep_head(session).await;
        let due = session.live().due;
        if shape::blocks(&parts) != blocks {
            session.record([MapRecord::Given { entry: prompt, blocks: blocks.to_vec() }]);
        }
        let (tell, taken) = oneshot::channel();
        let begun = session.log.ask(move |log| {
            log.begin(prompt, parts, tell)?;
            let retained = log.entries();
            let before = retained.iter().rposition(|entry| entry.id == prompt).unwrap_or(retained.len());
            Ok::<_, String>(missing(&retained[..before], due))
        });
        let missing = match begun.await {
            Some(Ok(missing)) => missing,
            Some(Err(why)) => {
                // The user talks to their agent; that the log cannot be written is no reason to keep them from it.
                complain(&format!("this prompt cannot be gone back to: {why}"));
                Vec::new()
            }
            None => return Err(RpcError::new(RpcError::INTERNAL, "the session has ended")),
        };
        self.wait_for_snapshot(session, prompt, taken).await;
        let images = if self.offer().images { Images::Taken } else { Images::NotTaken };
        let known = session.known();
        let preface = transcript::preface(&known, &shape::current(&known, &missing), images);
        let inner = session.live().inner.clone();
        let told = missing.iter().filter(|entry| matches!(entry.body, Body::Prompt { .. })).map(|entry| entry.id);
        let told: Vec<EntryId> = told.collect();
        if !told.is_empty() {
            session.record([MapRecord::Told { id: inner.clone(), prompts: told }]);
        }
        // From here on it may hold more than it did, whatever becomes of us.
        session.record([MapRecord::Prompted { id: inner, prompt }]);
        session.live().begin(prompt);
        session.running.send_replace(true);
        Ok(preface)
    }

    async fn wait_for_snapshot(
        &self,
        session: &ProxiedSession,
        prompt: EntryId,
        taken: oneshot::Receiver<Result<(), String>>,
    ) {
        let why = match tokio::time::timeout(self.setup.patience.snapshot, taken).await {
            Ok(Ok(Ok(()))) => return,
            Ok(Ok(Err(why))) => why,
            Ok(Err(_)) => "it was not asked for".to_owned(),
            Err(_) => "it takes too long".to_owned(),
        };
        complain(&format!("the snapshot before this prompt is not complete: {why}"));
        session.record([MapRecord::Late { entry: prompt }]);
    }

    /// Has the inner agent's conversation be ours before anything is said; what the user has to know of it.
    pub(super) async fn align(self: &Arc<Self>, session: &Arc<ProxiedSession>) -> Result<Option<String>, RpcError> {
        if !session.live().out_of_step {
            return Ok(None);
        }
        let found = session.log.ask(|log| {
            let id = log.id();
            let all =
                log.workspace_thread().ask(move |workspace| workspace.sessions().all_entries(id).unwrap_or_default());
            (log.entries().to_vec(), all)
        });
        let (entries, all) = found.await.unwrap_or_default();
        let held = self.hold(session, &entries, &all).await.map_err(CutFailure::into_error)?;
        self.switch(session, &held).map_err(|why| RpcError::new(RpcError::INTERNAL, why))?;
        let unloaded = held.unloaded.filter(|_| held.due == Some(None)).map(|why| transcript::note(&why));
        let notes: Vec<String> = unloaded.into_iter().chain(held.warnings).collect();
        Ok(Some(notes.join("\n\n")).filter(|notes| !notes.is_empty()))
    }

    /// The inner agent has answered a prompt.
    pub(super) async fn prompt_answered(
        &self,
        session: &Arc<ProxiedSession>,
        outcome: &Result<Value, RpcError>,
        line: Vec<u8>,
    ) -> Vec<u8> {
        let version = self.state().version;
        match (version, outcome) {
            (_, Err(error)) => {
                let reason = EndReason::Failed { message: error.message.clone() };
                if let Some(settled) = session.answered(version, reason) {
                    self.settle(settled).await;
                }
            }
            (Version::V1, Ok(result)) => {
                let prompt = session.live().prompt;
                if let Some(settled) = session.answered(version, reason(result["stopReason"].as_str())) {
                    self.settle(settled).await;
                }
                if let Some(prompt) = prompt.filter(|_| result.is_object()) {
                    let id = json!({ "messageId": session.session_map().known.outer(prompt) });
                    return put(&line, &["result", "_meta", "retake"], &id);
                }
            }
            (Version::V2, Ok(result)) => {
                session.taken();
                let Some(id) = result["messageId"].as_str() else { return line };
                let named = session.live().name_prompt(Some(id));
                let Some(named) = named else { return line };
                session.tie_soon(named.record);
                if named.outer != id {
                    let mut edits = JsonEdits::new(&line);
                    edits.replace(&["result", "messageId"], &Value::from(named.outer));
                    return edits.make();
                }
            }
        }
        line
    }
}

/// What the inner agent has not heard of what is retained.
fn missing(retained: &[Entry], due: Option<Option<EntryId>>) -> Vec<Entry> {
    let from = match due {
        None => spoken(retained).len(),
        Some(None) => 0,
        Some(Some(head)) => retained.iter().position(|entry| entry.id == head).map_or(0, |at| at + 1),
    };
    retained[from..].to_vec()
}
