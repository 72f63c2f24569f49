//! Cutting the inner agent's conversation: finding, or making, a session of its that holds exactly what is retained.
//!
//! [`strategies`] lists what could be tried, the best first, from what the agent offers and what its sessions hold; it is pure.
//! [`Proxy::hold`] tries one after the other. What an agent offers is what it advertises and what it turns out to know when it is asked
//! for what cannot be done (`probe`), never what it is called. The last way is a new session whose first prompt carries the transcript. It
//! is for an agent that has nothing better: if a better way fails for a reason that may pass (`failure`), the cut fails, and whoever asked
//! for it asks again.
//!
//! A place inside a turn, or just after a prompt, is nothing that agents can be cut at: they are cut before that turn, and what is retained
//! of it comes as a transcript with the next prompt. `mcp_servers` has MCP servers in a fork that speaks from then on.

mod failure;
mod mcp_servers;
mod probe;
mod strategies;
mod verify;

use std::sync::Arc;

use retake_engine::id::EntryId;
use retake_engine::session::entry::{Block, Body, Entry};
use serde_json::{Value, json};

use super::fork::Child;
use super::log_writer::{chain, spoken};
use super::session::ProxiedSession;
use super::session_map::MapRecord;
use super::shape::Version;
use super::{Proxy, log_writer::Voice};
use crate::wire::RpcError;
pub(super) use failure::CutFailure;
use failure::{LoadError, is_silence, not_offered};
use probe::{Inside, fork_at};
pub(super) use strategies::Offer;
use strategies::{ForkAt, Way, base, strategies, turns};
pub(super) use verify::ReplayedHistory;

/// An inner session that holds what is retained.
#[derive(Clone, Debug)]
pub(super) struct HoldingSession {
    pub(super) inner: String,
    /// What it lacks: everything after this entry.
    pub(super) due: Option<Option<EntryId>>,
    pub(super) strategy: &'static str,
    /// Why the agent does not load the session that held it before, if it should have.
    pub(super) unloaded: Option<String>,
    /// What the user has to know of it.
    pub(super) warnings: Vec<String>,
}

/// A session that the inner agent is to make.
#[derive(Clone)]
struct NewInner<'a> {
    method: &'static str,
    params: Value,
    /// Forked from this one.
    from: Option<&'a str>,
    /// What it will hold; `None` if that is not known.
    holds: Option<Option<EntryId>>,
    purpose: Purpose,
}

/// What a session is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// To be the one that speaks.
    Speak,
    /// To be there if one comes back to this point.
    KeepPoint,
}

impl Proxy {
    /// Has an inner session hold what is retained: `path`, of everything that was ever said. Facts about it are durable when this
    /// returns; which one speaks is not changed.
    pub(super) async fn hold(
        self: &Arc<Self>,
        session: &Arc<ProxiedSession>,
        path: &[Entry],
        all: &[Entry],
    ) -> Result<HoldingSession, CutFailure> {
        let path = spoken(path);
        let base = base(&session.known(), all, path);
        let head = base.last().map(|entry| entry.id);
        let lacks = if base.len() == path.len() { None } else { Some(head) };
        self.find_out(session, all, base).await;
        let mut missed = CutFailure::ours("the agent takes no new session".to_owned());
        let (mut may_pass, mut unloaded, mut warnings) = (false, None, Vec::new());
        for way in strategies(&session.known(), self.offer(), all, base) {
            // What was found out about a session by the way before this one holds for this one.
            if way
                .relies_on()
                .is_some_and(|inner| session.known().inners.get(inner).is_none_or(|inner| inner.holds.is_none()))
            {
                continue;
            }
            // What a transcript lacks is lost to the agent, for good, and another time it may not have to be.
            if way == Way::Transcript && may_pass {
                break;
            }
            let (inner, due) = match self.try_way(session, &way, all, base, &mut warnings).await {
                Ok(inner) if way == Way::Transcript => (inner, Some(None)),
                Ok(inner) => (inner, lacks),
                Err(_) if may_pass => continue,
                Err(miss) => {
                    unloaded = unloaded.or_else(|| miss.unloaded());
                    may_pass = miss.may_pass();
                    missed = miss;
                    continue;
                }
            };
            return Ok(HoldingSession { inner, due, strategy: way.name(), unloaded, warnings });
        }
        Err(missed)
    }

    async fn try_way(
        self: &Arc<Self>,
        session: &Arc<ProxiedSession>,
        way: &Way,
        all: &[Entry],
        base: &[Entry],
        warnings: &mut Vec<String>,
    ) -> Result<String, CutFailure> {
        let head = base.last().map(|entry| entry.id);
        if let Some(inner) = way.relies_on() {
            self.load_inner(session, inner, all).await.map_err(CutFailure::of_load)?;
        }
        match way {
            Way::Kept { inner } => Ok(self.speak_from_kept(session, inner, head, warnings).await),
            Way::New | Way::Transcript => {
                let (params, purpose) = (self.birth(session), Purpose::Speak);
                let order = NewInner { method: "session/new", params, from: None, holds: Some(None), purpose };
                self.make(session, order).await.map_err(CutFailure::Failed)
            }
            Way::ForkAt { from, message } => {
                self.confirm_fork_at(session).await?;
                let (mut params, purpose) = (self.birth(session), Purpose::Speak);
                params["sessionId"] = from.as_str().into();
                fork_at(&mut params, message);
                let order = NewInner { method: "session/fork", params, from: Some(from), holds: Some(head), purpose };
                let made = self.make_with_tools(session, order, warnings).await;
                if made.as_ref().is_err_and(|error| error.code == RpcError::METHOD_NOT_FOUND || is_silence(error)) {
                    self.offers().fork_at = ForkAt::No;
                }
                made.map_err(CutFailure::of_cut)
            }
            Way::RewindTo { inner, prompt } => {
                let named = || session.known().inner_id(inner, *prompt).map(Value::from);
                let mut message = named();
                if message.is_none() {
                    // Whether that is worth while.
                    self.probe(Inside::RewindTo, inner).await?;
                    self.learn_ids(session, inner, all).await.map_err(CutFailure::of_load)?;
                    message = named();
                }
                let message = message.ok_or_else(|| CutFailure::not_offered("its messages have no ids"))?;
                self.cut_inside(session, Inside::RewindTo, inner, message, head).await
            }
            Way::TurnRewind { inner, turn } => {
                self.cut_inside(session, Inside::TurnRewind, inner, Value::from(*turn), head).await
            }
        }
    }

    /// Cuts a session that stays the same one.
    async fn cut_inside(
        &self,
        session: &ProxiedSession,
        inside: Inside,
        inner: &str,
        place: Value,
        head: Option<EntryId>,
    ) -> Result<String, CutFailure> {
        let unclear = self.probe(inside, inner).await?;
        let was = session.known().inners.get(inner).cloned().unwrap_or_default();
        let id = || inner.to_owned();
        session.tie_durably([MapRecord::Doubt { id: id() }]).map_err(CutFailure::ours)?;
        let (method, params) = inside.request(inner, &place);
        let answer = self.ask_agent(method, params).await;
        // What refuses has done nothing; what does not answer may have, and so may what is not as it says.
        let (now, under_way, outcome) = match answer {
            Ok(_) if self.is_uncut(inside, inner, &place).await => {
                (None, None, Err(CutFailure::not_offered("the agent's conversation is not cut where it says so")))
            }
            Ok(_) => (Some(head), None, Ok(id())),
            Err(error) if is_silence(&error) => (None, None, Err(CutFailure::Failed(error))),
            Err(error) => {
                let is_unknown = error.code == RpcError::METHOD_NOT_FOUND;
                if is_unknown {
                    self.disbelieve(inside);
                }
                let miss = match unclear {
                    Some(unclear) if unclear == error => CutFailure::Closed(error),
                    _ => CutFailure::of_cut(error),
                };
                (was.holds, was.under_way, Err(miss))
            }
        };
        let holds = now.map(|head| MapRecord::Holds { id: id(), head });
        let under_way = under_way.map(|prompt| MapRecord::Prompted { id: id(), prompt });
        session.tie_durably(holds.into_iter().chain(under_way)).map_err(CutFailure::ours)?;
        outcome
    }

    /// Makes a new inner session.
    async fn make(self: &Arc<Self>, session: &Arc<ProxiedSession>, order: NewInner<'_>) -> Result<String, RpcError> {
        let expecting = self.expect_of_agent((order.purpose == Purpose::Speak).then_some(session));
        let facts = self.ask_agent(order.method, order.params).await?;
        let Some(id) = facts["sessionId"].as_str().map(str::to_owned) else {
            return Err(RpcError::new(RpcError::INTERNAL, "the agent's answer has no session id"));
        };
        self.state().inners.insert(id.clone(), Arc::clone(session));
        let made = MapRecord::Inner { id: id.clone(), from: order.from.map(str::to_owned) };
        let holds = order.holds.map(|head| MapRecord::Holds { id: id.clone(), head });
        let tied = session.tie_durably(std::iter::once(made).chain(holds));
        tied.map_err(|why| RpcError::new(RpcError::INTERNAL, why))?;
        {
            let mut live = session.live();
            live.loaded.insert(id.clone());
            live.facts = facts;
            if order.from.is_some() {
                live.forked.insert(id.clone());
            }
        }
        expecting.end().await;
        self.set_again(session, &id).await;
        Ok(id)
    }

    /// Sets what the client has set in a session, in another one of the inner agent's.
    async fn set_again(&self, session: &ProxiedSession, inner: &str) {
        let settings = session.live().settings.clone();
        for (_, method, mut params) in settings {
            params["sessionId"] = inner.into();
            // A setting that it does not take any more is not what the session fails of.
            self.ask_agent(&method, params).await.ok();
        }
    }

    /// Has the inner agent open a session of its, and does not pass its history on.
    /// One that tells another history than it is known to hold is not relied on any more.
    async fn load_inner(&self, session: &Arc<ProxiedSession>, inner: &str, all: &[Entry]) -> Result<(), RpcError> {
        if session.live().loaded.contains(inner) {
            return Ok(());
        }
        let retold = self.replay_inner(session, inner).await?;
        if retold.may_be(&session.known(), inner, all) {
            return Ok(());
        }
        session.live().loaded.remove(inner);
        let doubted = session.tie_durably([MapRecord::Doubt { id: inner.to_owned() }]);
        doubted.map_err(|why| RpcError::new(RpcError::INTERNAL, why))?;
        Err(RpcError::new(RpcError::INTERNAL, "the agent's session is not what it was"))
    }

    /// Has the inner agent tell the history of a session of its.
    async fn replay_inner(&self, session: &Arc<ProxiedSession>, inner: &str) -> Result<ReplayedHistory, RpcError> {
        let (version, load) = (self.state().version, self.offer().load);
        if !load {
            return Err(not_offered("the agent loads no sessions"));
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
        let (mut answer, mut replayed) = self.replayed(session, method, params.clone()).await;
        if answer.as_ref().is_err_and(|error| LoadError::of(error) == LoadError::Unclear) {
            (answer, replayed) = self.replayed(session, method, params).await;
        }
        let mut live = session.live();
        live.facts = answer?;
        live.loaded.insert(inner.to_owned());
        live.forked.remove(inner);
        Ok(replayed)
    }

    /// Asks the inner agent to tell a history, which is not passed on.
    async fn replayed(
        &self,
        session: &ProxiedSession,
        method: &str,
        params: Value,
    ) -> (Result<Value, RpcError>, ReplayedHistory) {
        session.live().replay = Some(ReplayedHistory::default());
        let answer = self.ask_agent(method, params).await;
        (answer, session.live().replay.take().unwrap_or_default())
    }

    /// Finds out what an inner session calls its messages now.
    pub(super) async fn learn_ids(
        &self,
        session: &Arc<ProxiedSession>,
        inner: &str,
        all: &[Entry],
    ) -> Result<(), RpcError> {
        let replayed = self.replay_inner(session, inner).await?;
        self.note_ids(session, inner, all, &replayed.ids);
        Ok(())
    }

    /// Notes what an inner session calls its prompts, and the last message of each turn, as it has told them in order.
    pub(super) fn note_ids(&self, session: &ProxiedSession, inner: &str, all: &[Entry], replayed: &[(Voice, String)]) {
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
        let record = |entry: EntryId, id: String| MapRecord::Message {
            entry,
            outer: known.outer(entry),
            inner: inner.to_owned(),
            id: Some(id),
        };
        for (at, (prompt, (user, answer))) in prompts.iter().zip(said).enumerate() {
            session.record([record(*prompt, user)]);
            let end = prompts.get(at + 1).and_then(|next| held.iter().position(|entry| entry.id == *next));
            let turn = &held[..end.unwrap_or(held.len())];
            let is_text = |entry: &&Entry| matches!(&entry.body, Body::Reply { blocks, .. } if blocks.iter().any(|block| matches!(block, Block::Text { .. })));
            if let (Some(answer), Some(last)) = (answer, turn.iter().rev().find(is_text)) {
                session.record([record(last.id, answer)]);
            }
        }
    }

    /// A session of the inner agent's that holds `path` and is nobody's yet, if it can make one without a word being said.
    pub(super) async fn fork_inner(
        self: &Arc<Self>,
        session: &Arc<ProxiedSession>,
        path: &[Entry],
        all: &[Entry],
    ) -> Option<Child> {
        if session.is_running() || session.live().out_of_step || !self.offer().fork {
            return None;
        }
        let base = base(&session.known(), all, spoken(path));
        let head = base.last()?.id;
        self.find_out(session, all, base).await;
        for way in strategies(&session.known(), self.offer(), all, base) {
            let mut params = self.birth(session);
            let (from, message) = match way {
                Way::Kept { inner } => (inner, None),
                Way::ForkAt { from, message } => (from, Some(message)),
                Way::New | Way::RewindTo { .. } | Way::TurnRewind { .. } | Way::Transcript => continue,
            };
            self.load_inner(session, &from, all).await.ok()?;
            if let Some(message) = message {
                self.confirm_fork_at(session).await.ok()?;
                fork_at(&mut params, &message);
            }
            params["sessionId"] = from.as_str().into();
            let expecting = self.expect_of_agent(None);
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
}
