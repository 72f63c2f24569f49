//! Changes of what is retained, for whoever asks: they are rehearsed, the inner conversation is cut, then all of it is done, and the client is
//! told. If it turns out at last that it cannot be done, the inner conversation is out of step, and put right before the next prompt.

use std::sync::Arc;

use retake_agent::contract::{Change, Reason, Refusal, Seen, WhileRunning};
use retake_agent::document::RewindDocument;
use retake_agent::question::refusal;
use retake_engine::session::entry::Entry;
use serde_json::{Value, json};

use super::Proxy;
use super::cut::Held;
use super::scribe::Changed;
use super::session::Session;
use super::shape::{self, Version};
use super::ties::Tie;

/// A change that was made.
pub(super) struct Made {
    pub(super) document: RewindDocument,
    /// How the inner agent's conversation was cut, if it was.
    pub(super) strategy: Option<&'static str>,
    /// What is retained now.
    pub(super) retained: Vec<Entry>,
}

impl Proxy {
    /// Makes a change, and tells the client what it means for what it shows.
    pub(super) async fn change(
        self: &Arc<Self>,
        session: &Arc<Session>,
        change: Change,
        seen: Option<Seen>,
        running: WhileRunning,
    ) -> Result<Made, Refusal> {
        if session.is_running() {
            match running {
                WhileRunning::Refuse => {
                    let mut refusal = refusal(Reason::Running, "nothing was changed: a turn is running");
                    refusal.hint = Some("stop it first, or ask for that with `--interrupt`".to_owned());
                    return Err(refusal);
                }
                // What was seen is compared with what is there now: the end of the turn adds to it.
                WhileRunning::Interrupt => {
                    let head = session.desk.ask(|scribe| scribe.entries().last().map(|entry| entry.id)).await;
                    if seen.is_some_and(|seen| Some(seen.head) != head) {
                        let text = "the conversation has moved on since; nothing was changed";
                        return Err(refusal(Reason::StaleHead, text));
                    }
                    self.stop(session).await?;
                    return self.change_now(session, change, None).await;
                }
            }
        }
        self.change_now(session, change, seen).await
    }

    async fn change_now(
        self: &Arc<Self>,
        session: &Arc<Session>,
        change: Change,
        seen: Option<Seen>,
    ) -> Result<Made, Refusal> {
        let _alone = session.changing.lock().await;
        // What comes late must not move the head; if nothing is cut, it may.
        let was_muted = std::mem::replace(&mut session.live().is_muted, true);
        let rehearsed = session.desk.ask(move |scribe| scribe.rehearse(change, seen)).await;
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
                Err(error) => {
                    session.live().is_muted = was_muted;
                    let text =
                        format!("nothing was changed: the agent's conversation cannot be cut: {}", error.message);
                    return Err(refusal(Reason::Failed, text));
                }
            },
        };
        let changed = match session.desk.ask(move |scribe| scribe.change(rehearsed)).await {
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
        let strategy = held.map(|held| held.strategy);
        Ok(Made { document: changed.document, strategy, retained: changed.after })
    }

    /// Has another inner session speak from now on.
    pub(super) fn switch(&self, session: &Arc<Session>, held: &Held) -> Result<(), String> {
        session.tie_durably([Tie::Current { id: held.inner.clone() }])?;
        self.state().inners.insert(held.inner.clone(), Arc::clone(session));
        let mut live = session.live();
        live.inner.clone_from(&held.inner);
        live.due = held.due;
        live.is_muted = true;
        live.out_of_step = false;
        Ok(())
    }

    /// Stops the turn that runs.
    async fn stop(&self, session: &Arc<Session>) -> Result<(), Refusal> {
        self.cancel(session).await;
        match self.stopped(session).await {
            true => Ok(()),
            false => Err(refusal(Reason::Running, "nothing was changed: the agent does not stop its turn")),
        }
    }

    /// Stops all turns: whoever would see what comes of them is gone.
    pub(super) async fn stop_turns(&self) {
        let sessions: Vec<Arc<Session>> = self.state().sessions.values().cloned().collect();
        for session in sessions.iter().filter(|session| session.is_running()) {
            self.cancel(session).await;
        }
        for session in &sessions {
            // One that does not stop is ended with its process, and so are those after it.
            if !self.stopped(session).await {
                return;
            }
        }
    }

    /// Has the inner agent stop the turn; what it asks is answered with `cancelled`.
    async fn cancel(&self, session: &Session) {
        let (inner, asked) = {
            let mut live = session.live();
            let asked: Vec<(Value, String)> = live.asked.clone();
            live.asked.iter_mut().for_each(|(_, method)| "cancelled".clone_into(method));
            (live.inner.clone(), asked)
        };
        self.agent.notify("session/cancel", json!({ "sessionId": inner })).await.ok();
        for (id, method) in asked {
            if method == "session/request_permission" {
                let cancelled = json!({ "outcome": { "outcome": "cancelled" } });
                self.agent.answer(id, Ok(cancelled)).await.ok();
            }
        }
    }

    async fn stopped(&self, session: &Session) -> bool {
        let mut running = session.running.subscribe();
        tokio::time::timeout(self.setup.patience.stop, running.wait_for(|running| !running)).await.is_ok()
    }

    /// Tells a client that wants to know what it has to show now.
    async fn tell(&self, session: &Session, changed: &Changed) {
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
        let last = shape::last_message(&after[..same]).map(|id| known.outer(id));
        match version {
            Version::V1 => {
                let params = json!({ "sessionId": session.outer, "lastMessageId": last });
                self.client.notify("_session/history_truncated", params).await.ok();
            }
            Version::V2 => {
                let update = json!({ "sessionUpdate": "_history_truncated", "lastMessageId": last });
                self.update(session, update).await;
            }
        }
        for update in shape::replay(version, &known, &after[same..]) {
            self.update(session, update).await;
        }
    }
}
