//! Cutting the inner agent's conversation: finding, or making, a session of its that holds exactly what is retained.
//!
//! [`ways`] lists what could be tried, the best first, from what the agent offers and what its sessions hold; it is pure.
//! [`Proxy::hold`] tries one after the other. What an agent offers is what it advertises and what it did not refuse so far, never what it is
//! called. The last way always is a new session whose first prompt carries the transcript, so a cut fails only if the agent takes no new
//! session.
//!
//! A place inside a turn, or just after a prompt, is nothing that agents can be cut at: they are cut before that turn, and what is retained
//! of it comes as a transcript with the next prompt.

mod ways;

use std::sync::Arc;

use retake_engine::session::entry::{Block, Body, Entry, EntryId};
use serde_json::{Value, json};

use super::fork::Child;
use super::scribe::{chain, spoken};
use super::session::Session;
use super::shape::Version;
use super::ties::Tie;
use super::{Proxy, scribe::Voice};
use crate::wire::RpcError;
pub(super) use ways::Offer;
use ways::{Way, base, holds, next_turn, turns, ways};

/// A message that no session has.
const NO_MESSAGE: &str = "retake-probe-no-such-message";

/// An inner session that holds what is retained.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) inner: String,
    /// What it lacks: everything after this entry.
    pub(super) due: Option<Option<EntryId>>,
    pub(super) strategy: &'static str,
}

impl Proxy {
    /// Has an inner session hold what is retained: `path`, of everything that was ever said. Facts about it are durable when this
    /// returns; which one speaks is not changed.
    pub(super) async fn hold(
        self: &Arc<Self>,
        session: &Arc<Session>,
        path: &[Entry],
        all: &[Entry],
    ) -> Result<Held, RpcError> {
        let path = spoken(path);
        let base = base(&session.known(), all, path);
        let head = base.last().map(|entry| entry.id);
        let lacks = if base.len() == path.len() { None } else { Some(head) };
        self.find_out(session, all, base).await;
        let mut failed = None;
        for way in ways(&session.known(), self.offer(), all, base) {
            let (inner, due) = match self.try_way(session, &way, all, base).await {
                Ok(inner) if way == Way::Transcript => (inner, Some(None)),
                Ok(inner) => (inner, lacks),
                Err(error) => {
                    self.refused(&way, &error);
                    failed = Some(error);
                    continue;
                }
            };
            return Ok(Held { inner, due, strategy: way.name() });
        }
        Err(failed.unwrap_or_else(|| RpcError::new(RpcError::INTERNAL, "the agent takes no new session")))
    }

    /// Finds out whether the agent forks at a message, if that matters and is not known.
    async fn find_out(self: &Arc<Self>, session: &Arc<Session>, all: &[Entry], base: &[Entry]) {
        let (offer, known) = (self.offer(), session.known());
        let matters = next_turn(&known, &known.current, all, base).is_some();
        if !offer.fork || offer.fork_at.is_some() || !matters {
            return;
        }
        let head = known.inners.get(&known.current).and_then(|inner| inner.holds).flatten();
        if self.load_inner(session, &known.current).await.is_ok() {
            self.fork_head(session, head).await;
        }
    }

    async fn try_way(
        self: &Arc<Self>,
        session: &Arc<Session>,
        way: &Way,
        all: &[Entry],
        base: &[Entry],
    ) -> Result<String, RpcError> {
        let head = base.last().map(|entry| entry.id);
        match way {
            Way::Kept { inner } => {
                self.load_inner(session, inner).await?;
                Ok(inner.clone())
            }
            Way::New | Way::Transcript => self.make(session, "session/new", self.birth(session), None, None).await,
            Way::ForkAt { from, message } => {
                self.load_inner(session, from).await?;
                let mut params = self.birth(session);
                params["sessionId"] = from.as_str().into();
                fork_at(&mut params, message);
                self.make(session, "session/fork", params, Some(from), Some(head)).await
            }
            Way::RewindTo { inner, prompt } => {
                self.load_inner(session, inner).await?;
                let mut message = session.known().inner_id(inner, *prompt).map(str::to_owned);
                if message.is_none() {
                    // Whether that is worth while: one that knows the method does not know this message.
                    let probe = json!({ "sessionId": inner, "messageId": NO_MESSAGE, "restoreFiles": false });
                    let answer = self.ask_agent("_rewind/to", probe).await;
                    answer.err().filter(|error| error.code == RpcError::METHOD_NOT_FOUND).map_or(Ok(()), Err)?;
                    self.learn_ids(session, inner, all).await?;
                    message = session.known().inner_id(inner, *prompt).map(str::to_owned);
                }
                let message = message.ok_or_else(|| RpcError::new(RpcError::INTERNAL, "its messages have no ids"))?;
                let params = json!({ "sessionId": inner, "messageId": message, "restoreFiles": false });
                self.cut_inside(session, inner, "_rewind/to", params, head).await
            }
            Way::TurnRewind { inner, turn } => {
                self.load_inner(session, inner).await?;
                let params = json!({ "sessionId": inner, "targetTurnIndex": turn, "rewindFiles": false });
                self.cut_inside(session, inner, "qwen/control/session/rewind", params, head).await
            }
        }
    }

    /// Cuts a session that stays the same one.
    async fn cut_inside(
        &self,
        session: &Session,
        inner: &str,
        method: &str,
        params: Value,
        head: Option<EntryId>,
    ) -> Result<String, RpcError> {
        let was = session.known().inners.get(inner).cloned().unwrap_or_default();
        let id = || inner.to_owned();
        session.tie_durably([Tie::Doubt { id: id() }]).map_err(|why| RpcError::new(RpcError::INTERNAL, why))?;
        let answer = self.ask_agent(method, params).await;
        // What refuses has done nothing; what does not answer may have.
        let (now, under_way) = match &answer {
            Ok(_) => (Some(head), None),
            Err(error) if is_silence(error) => (None, None),
            Err(_) => (was.holds, was.under_way),
        };
        let holds = now.map(|head| Tie::Holds { id: id(), head });
        let under_way = under_way.map(|prompt| Tie::Prompted { id: id(), prompt });
        session
            .tie_durably(holds.into_iter().chain(under_way))
            .map_err(|why| RpcError::new(RpcError::INTERNAL, why))?;
        answer.map(|_| id())
    }

    /// Makes a new inner session; `holds` is what it holds, nothing for `None`.
    async fn make(
        self: &Arc<Self>,
        session: &Arc<Session>,
        method: &str,
        params: Value,
        from: Option<&str>,
        holds: Option<Option<EntryId>>,
    ) -> Result<String, RpcError> {
        let expecting = self.expect();
        let facts = self.ask_agent(method, params).await?;
        let Some(id) = facts["sessionId"].as_str().map(str::to_owned) else {
            return Err(RpcError::new(RpcError::INTERNAL, "the agent's answer has no session id"));
        };
        self.state().inners.insert(id.clone(), Arc::clone(session));
        let made = [
            Tie::Inner { id: id.clone(), from: from.map(str::to_owned) },
            Tie::Holds { id: id.clone(), head: holds.flatten() },
        ];
        session.tie_durably(made).map_err(|why| RpcError::new(RpcError::INTERNAL, why))?;
        let settings = {
            let mut live = session.live();
            live.loaded.insert(id.clone());
            live.facts = facts;
            live.settings.clone()
        };
        expecting.end().await;
        for (_, method, mut params) in settings {
            params["sessionId"] = id.as_str().into();
            // A setting that it does not take any more is not what the session fails of.
            self.ask_agent(&method, params).await.ok();
        }
        Ok(id)
    }

    /// Has the inner agent open a session of its, and does not pass its history on.
    pub(super) async fn load_inner(&self, session: &Arc<Session>, inner: &str) -> Result<(), RpcError> {
        if session.live().loaded.contains(inner) {
            return Ok(());
        }
        self.replay_inner(session, inner).await.map(drop)
    }

    /// Has the inner agent tell the history of a session of its; returns the ids of the messages.
    async fn replay_inner(&self, session: &Arc<Session>, inner: &str) -> Result<Vec<(Voice, String)>, RpcError> {
        let (version, load) = (self.state().version, self.offer().load);
        if !load {
            return Err(RpcError::new(RpcError::INTERNAL, "the agent loads no sessions"));
        }
        let mut params = self.birth(session);
        params["sessionId"] = inner.into();
        let method = match version {
            Version::V1 if self.state().resumes_only => "session/resume",
            Version::V1 => "session/load",
            Version::V2 => {
                params["replayFrom"] = json!({ "type": "start" });
                "session/resume"
            }
        };
        self.claim(session, inner)?;
        session.live().replay = Some(Vec::new());
        let answer = self.ask_agent(method, params).await;
        let mut live = session.live();
        let replayed = live.replay.take().unwrap_or_default();
        live.facts = answer?;
        live.loaded.insert(inner.to_owned());
        Ok(replayed)
    }

    /// Finds out what an inner session calls its messages now.
    pub(super) async fn learn_ids(&self, session: &Arc<Session>, inner: &str, all: &[Entry]) -> Result<(), RpcError> {
        let replayed = self.replay_inner(session, inner).await?;
        self.note_ids(session, inner, all, &replayed);
        Ok(())
    }

    /// Notes what an inner session calls its prompts, and the last message of each turn, as it has told them in order.
    pub(super) fn note_ids(&self, session: &Session, inner: &str, all: &[Entry], replayed: &[(Voice, String)]) {
        let known = session.known();
        let Some(Some(Some(head))) = known.inners.get(inner).map(|inner| inner.holds) else { return };
        let held = chain(all, Some(head));
        let prompts: Vec<EntryId> = turns(&known, inner, &held).collect();
        let mut said: Vec<(String, Option<String>)> = Vec::new();
        for (voice, id) in replayed {
            match (voice, said.last_mut()) {
                (Voice::User, Some((last, None))) if last == id => {}
                (Voice::User, _) => said.push((id.clone(), None)),
                (_, Some((_, answer))) => *answer = Some(id.clone()),
                (_, None) => {}
            }
        }
        if said.len() != prompts.len() {
            return;
        }
        let tie = |entry: EntryId, id: String| Tie::Message {
            entry,
            outer: known.outer(entry),
            inner: inner.to_owned(),
            id: Some(id),
        };
        for (at, (prompt, (user, answer))) in prompts.iter().zip(said).enumerate() {
            session.tie([tie(*prompt, user)]);
            let end = prompts.get(at + 1).and_then(|next| held.iter().position(|entry| entry.id == *next));
            let turn = &held[..end.unwrap_or(held.len())];
            let is_text = |entry: &&Entry| matches!(&entry.body, Body::Reply { blocks, .. } if blocks.iter().any(|block| matches!(block, Block::Text { .. })));
            if let (Some(answer), Some(last)) = (answer, turn.iter().rev().find(is_text)) {
                session.tie([tie(last.id, answer)]);
            }
        }
    }

    /// A session of the inner agent's that holds `path` and is nobody's yet, if it can make one without a word being said.
    pub(super) async fn fork_inner(
        self: &Arc<Self>,
        session: &Arc<Session>,
        path: &[Entry],
        all: &[Entry],
    ) -> Option<Child> {
        if session.is_running() || session.live().out_of_step || !self.offer().fork {
            return None;
        }
        let base = base(&session.known(), all, spoken(path));
        let head = base.last()?.id;
        self.find_out(session, all, base).await;
        for way in ways(&session.known(), self.offer(), all, base) {
            let mut params = self.birth(session);
            let from = match way {
                Way::Kept { inner } => inner,
                Way::ForkAt { from, message } => {
                    fork_at(&mut params, &message);
                    from
                }
                Way::New | Way::RewindTo { .. } | Way::TurnRewind { .. } | Way::Transcript => continue,
            };
            self.load_inner(session, &from).await.ok()?;
            params["sessionId"] = from.as_str().into();
            let expecting = self.expect();
            let made = self.ask_agent("session/fork", params).await;
            if let Some(id) = made.ok().and_then(|facts| facts["sessionId"].as_str().map(str::to_owned)) {
                // What it says of it is of no interest to the client, who does not know of it yet.
                self.state().inners.insert(id.clone(), Arc::clone(session));
                expecting.end().await;
                return Some(Child { id, from, head });
            }
        }
        None
    }

    /// Keeps a fork of the head, so that one can come back to it, if that is the best that the agent offers.
    pub(super) async fn keep_head(self: &Arc<Self>, session: &Arc<Session>) {
        let offer = self.offer();
        if !offer.fork || offer.fork_at == Some(true) {
            return;
        }
        let known = session.known();
        let unkept = session.desk.ask(move |scribe| {
            let held = spoken(scribe.entries());
            let is_kept = known.inners.iter().any(|(id, inner)| *id != known.current && holds(inner, held));
            held.last().map(|entry| entry.id).filter(|_| !is_kept)
        });
        if let Some(head) = unkept.await.flatten() {
            self.fork_head(session, Some(head)).await;
        }
    }

    /// Forks the head of the session that speaks, which holds the conversation up to `head`. The first time that shows whether the agent
    /// can do better: one that forks at a message has no such message.
    async fn fork_head(self: &Arc<Self>, session: &Arc<Session>, head: Option<EntryId>) {
        let (from, facts) = {
            let live = session.live();
            (live.inner.clone(), live.facts.clone())
        };
        let mut params = self.birth(session);
        params["sessionId"] = from.as_str().into();
        if self.offer().fork_at.is_none() {
            fork_at(&mut params, NO_MESSAGE);
        }
        let made = self.make(session, "session/fork", params, Some(&from), Some(head)).await;
        session.live().facts = facts;
        let mut offer = self.offers();
        match made {
            Ok(_) => offer.fork_at = Some(false),
            Err(error) if error.code == RpcError::METHOD_NOT_FOUND => offer.fork = false,
            Err(error) if offer.fork_at.is_none() && misses_message(&error) => offer.fork_at = Some(true),
            // It may be busy, and is asked again. Without it this point is reached by a transcript.
            Err(_) => {}
        }
    }

    /// Notes what the agent turned out not to offer.
    fn refused(&self, way: &Way, error: &RpcError) {
        if error.code != RpcError::METHOD_NOT_FOUND && !is_silence(error) {
            return;
        }
        let mut offer = self.offers();
        match way {
            Way::RewindTo { .. } => offer.rewind_to = false,
            Way::TurnRewind { .. } => offer.turn_rewind = false,
            Way::ForkAt { .. } => offer.fork_at = Some(false),
            Way::Kept { .. } | Way::New | Way::Transcript => {}
        }
    }
}

/// Has a fork end with a message of the agent's.
fn fork_at(params: &mut Value, message: &str) {
    params["_meta"]["jetbrains"]["air"]["fork"] = json!({ "version": 1, "messageId": message });
}

/// Whether a fork was refused because there is no such message, and for no other reason.
fn misses_message(error: &RpcError) -> bool {
    let names_it = |text: &str| text.contains(NO_MESSAGE);
    let is_named = names_it(&error.message) || error.data.as_ref().is_some_and(|data| names_it(&data.to_string()));
    is_named || matches!(error.code, RpcError::INVALID_PARAMS | RpcError::NOT_FOUND)
}

/// Whether nobody knows what came of a request.
fn is_silence(error: &RpcError) -> bool {
    error.data.as_ref().is_some_and(|data| data["reason"] == "silence" || data["reason"] == "gone")
}
