//! Changes of what is retained, for whoever asks: they are rehearsed, the inner conversation is cut, then all of it is done, and the client is
//! told. If it turns out at last that it cannot be done, the inner conversation is out of step, and put right before the next prompt.

use std::sync::Arc;

use retake_agent::contract::{ChangeGoal, Reason, Refusal, WhileRunning};
use retake_agent::query::refusal;
use retake_agent::rewind_document::{Bytes, GapFacts, RewindDocument};
use retake_engine::rewind::with_any_head;
use retake_engine::session::Scope;
use serde_json::{Value, json};

use super::Proxy;
use super::cut::{CutFailure, HoldingSession};
use super::log_writer::Changed;
use super::session::ProxiedSession;
use super::session_map::{MapRecord, Mapping};
use super::shape;
use crate::extension;
use crate::extension::answer::LATE;
use crate::extension::backend::{AppliedChange, ChangeRequest};
use crate::wire::RpcError;

/// What the inner agent asks the user.
pub(super) const PERMISSION: &str = "session/request_permission";
/// In the place of the method of a request of the inner agent's that was answered here.
pub(super) const CLOSED: &str = "";

impl Proxy {
    /// Makes a change, and tells the client what it means for what it shows.
    pub(super) async fn change(
        self: &Arc<Self>,
        session: &Arc<ProxiedSession>,
        mut wanted: ChangeRequest,
    ) -> Result<AppliedChange, Refusal> {
        if session.is_running() {
            match wanted.running {
                WhileRunning::Refuse => {
                    let mut refusal = refusal(Reason::Running, "nothing was changed: a turn is running");
                    refusal.hint = Some("stop it first".to_owned());
                    return Err(refusal);
                }
                // What was seen is compared with what is there now: the end of the turn adds to it.
                WhileRunning::Interrupt => {
                    let head = session.log.ask(|log| log.entries().last().map(|entry| entry.id)).await;
                    if wanted.head_seen.take().is_some_and(|seen| Some(seen.head) != head) {
                        let text = "the conversation has moved on since; nothing was changed";
                        return Err(refusal(Reason::StaleHead, text));
                    }
                    wanted.plan_seen = wanted.plan_seen.map(|seen| with_any_head(&seen));
                    self.stop(session).await?;
                }
            }
        }
        self.change_now(session, wanted).await
    }

    async fn change_now(
        self: &Arc<Self>,
        session: &Arc<ProxiedSession>,
        wanted: ChangeRequest,
    ) -> Result<AppliedChange, Refusal> {
        let goal = wanted.change.goal.clone();
        let _alone = session.changing.lock().await;
        // What comes late must not move the head; if nothing is cut, it may.
        let was_muted = std::mem::replace(&mut session.live().is_muted, true);
        let rehearsed = session.log.ask(move |log| log.rehearse(wanted)).await;
        let rehearsed = match rehearsed {
            Some(Ok(rehearsed)) => rehearsed,
            other => {
                session.live().is_muted = was_muted;
                return Err(other.and_then(Result::err).unwrap_or_else(retake_agent::socket::ended));
            }
        };
        let held = match &rehearsed.cut {
            None => None,
            Some((path, all)) => match self.hold(session, path, all).await {
                Ok(held) => Some(held),
                Err(miss) => {
                    session.live().is_muted = was_muted;
                    return Err(not_cut(session, miss));
                }
            },
        };
        let mut changed = match session.log.ask(move |log| log.change(rehearsed)).await {
            Some(Ok(changed)) => changed,
            other => {
                let mut live = session.live();
                live.is_muted = was_muted;
                // It was cut, and what is retained is not what it was cut to: before the next prompt it is made to be.
                live.out_of_step |= held.is_some();
                drop(live);
                return Err(other.and_then(Result::err).unwrap_or_else(retake_agent::socket::ended));
            }
        };
        if held.is_none() {
            session.live().is_muted = was_muted;
        }
        if let Some(held) = &held {
            self.switch(session, held).map_err(|why| refusal(Reason::Failed, why))?;
            self.tell(session, &changed).await;
        }
        let (strategy, warnings) = held.map(|held| (held.strategy, held.warnings)).unzip();
        note_late(&session.known(), &goal, &mut changed.document);
        Ok(AppliedChange { document: Box::new(changed.document), strategy, warnings: warnings.unwrap_or_default() })
    }

    /// Has another inner session speak from now on.
    pub(super) fn switch(&self, session: &Arc<ProxiedSession>, held: &HoldingSession) -> Result<(), String> {
        session.tie_durably([MapRecord::Current { id: held.inner.clone() }])?;
        self.state().inners.insert(held.inner.clone(), Arc::clone(session));
        let mut live = session.live();
        live.inner.clone_from(&held.inner);
        live.due = held.due;
        live.is_muted = true;
        live.out_of_step = false;
        Ok(())
    }

    /// Stops all turns: whoever would see what comes of them is gone. One that does not stop is ended with its process.
    pub(super) async fn stop_turns(self: &Arc<Self>) {
        let sessions: Vec<Arc<ProxiedSession>> = self.state().sessions.values().cloned().collect();
        let running = sessions.into_iter().filter(|session| session.is_running());
        let stopping: Vec<_> = running
            .map(|session| {
                let proxy = Arc::clone(self);
                tokio::spawn(async move { proxy.stop(&session).await })
            })
            .collect();
        let stopped = async {
            for stopping in stopping {
                stopping.await.ok();
            }
        };
        tokio::time::timeout(self.setup.patience.stop, stopped).await.ok();
    }

    /// Stops the turn that runs. What the inner agent asks the user is answered with `cancelled`; what else it asked, a file, say, the
    /// client goes on to answer, and if it does not, so that the agent does not stop, that is answered here too.
    async fn stop(&self, session: &Arc<ProxiedSession>) -> Result<(), Refusal> {
        let inner = {
            let mut live = session.live();
            live.is_stopping = true;
            live.inner.clone()
        };
        self.agent.notify("session/cancel", json!({ "sessionId": inner })).await.ok();
        self.close_asked(session, |method| method == PERMISSION).await;
        let mut running = session.running.subscribe();
        let patience = self.setup.patience.stop / 2;
        let mut stopped = tokio::time::timeout(patience, running.wait_for(|running| !running)).await.is_ok();
        if !stopped {
            self.close_asked(session, |_| true).await;
            stopped = tokio::time::timeout(patience, running.wait_for(|running| !running)).await.is_ok();
        }
        session.live().is_stopping = false;
        match stopped {
            true => Ok(()),
            false => Err(refusal(Reason::Running, "nothing was changed: the agent does not stop its turn")),
        }
    }

    /// Answers what the inner agent has asked the client, if it is such; the client's own answer comes too late then.
    async fn close_asked(&self, session: &Arc<ProxiedSession>, is_such: impl Fn(&str) -> bool) {
        let asked: Vec<(Value, String)> = {
            let mut live = session.live();
            let open = live.asked.iter_mut().filter(|(_, method)| method != CLOSED && is_such(method));
            open.map(|(id, method)| (id.clone(), std::mem::replace(method, CLOSED.to_owned()))).collect()
        };
        for (id, method) in asked {
            self.agent.answer(id, cancelled(&method)).await.ok();
        }
    }

    /// Tells a client that wants to know what it has to show now.
    async fn tell(&self, session: &ProxiedSession, changed: &Changed) {
        let (version, wants) = {
            let state = self.state();
            (state.version, state.wants)
        };
        if !wants {
            return;
        }
        let Changed { before, after, .. } = changed;
        let same = before.iter().zip(after).take_while(|(one, other)| one.id == other.id).count();
        let known = session.known();
        let last = extension::last_message(&after[..same]).map(|id| known.outer(id));
        let (method, params) = extension::truncated(version, &session.outer, last.as_deref());
        self.client.notify(method, params).await.ok();
        for update in shape::replay(version, &known, &after[same..]) {
            self.update(session, update).await;
        }
    }
}

/// The inner agent's conversation is as it was, or nobody knows: then it is not relied on before it is put right.
fn not_cut(session: &ProxiedSession, miss: CutFailure) -> Refusal {
    let known = session.known();
    let is_known = known.inners.get(&known.current).is_some_and(|inner| inner.holds.is_some());
    session.live().out_of_step |= !is_known;
    let (now, again) = if miss.may_pass() { (" now", "; try again") } else { ("", "") };
    let why = miss.into_error().message;
    let text = format!("nothing was changed: the agent's conversation cannot be cut{now}: {why}{again}");
    refusal(Reason::Failed, text)
}

/// What the inner agent is answered whose turn is stopped.
pub(super) fn cancelled(method: &str) -> Result<Value, RpcError> {
    match method {
        PERMISSION => Ok(json!({ "outcome": { "outcome": "cancelled" } })),
        _ => Err(RpcError::new(RpcError::CANCELLED, "the turn is being stopped")),
    }
}

/// Adds to a plan, or to what became of it, that the snapshot of its target was late.
pub(super) fn note_late(known: &Mapping, goal: &ChangeGoal, document: &mut RewindDocument) {
    let target = match goal {
        ChangeGoal::Rewind { entry, .. } => Some(*entry),
        ChangeGoal::KeepPrompt { prompt, .. } => Some(*prompt),
        ChangeGoal::Undo { .. } | ChangeGoal::Redo { .. } => {
            let leaves = document.conversation.as_ref().and_then(|conversation| conversation.leaves.first());
            leaves.map(|prompt| prompt.id)
        }
        ChangeGoal::Checkpoint { .. } => None,
    };
    let takes_files = document.scope != Some(Scope::Conversation);
    if target.is_some_and(|target| known.late.contains(&target)) && takes_files {
        let gap = GapFacts { path: Bytes::new(b"."), kind: "late_snapshot".to_owned(), text: LATE.to_owned() };
        document.gaps.gaps.insert(0, gap);
        document.gaps.gaps_total += 1;
    }
}
