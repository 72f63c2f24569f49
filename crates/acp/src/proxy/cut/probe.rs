//! What the inner agent offers beyond what it advertises: found out by asking for what cannot be done, never on the user's conversation.
//!
//! Whoever knows a method refuses a message or a turn that no session has, and refuses it for that. Success proves the opposite: it is what
//! some answer to whatever they do not know. So does silence, which is waited for only so long. What was found out is remembered for as long
//! as the agent runs; an answer that may mean anything is not.

use std::sync::Arc;

use retake_engine::id::EntryId;
use retake_engine::session::entry::Entry;
use serde_json::{Value, json};

use super::failure::{CutFailure, is_silence, names};
use super::strategies::{ForkAt, Offer, holds, next_turn};
use super::{NewInner, Purpose};
use crate::proxy::Proxy;
use crate::proxy::log_writer::spoken;
use crate::proxy::session::ProxiedSession;
use crate::wire::RpcError;

/// A message that no session has.
const NO_MESSAGE: &str = "retake-probe-no-such-message";
/// A turn that no session has. One that takes the nearest instead would cut nothing.
const NO_TURN: i32 = i32::MAX;

/// A method that cuts a session in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inside {
    /// Before a message of the user.
    RewindTo,
    /// Before a turn, by its number.
    TurnRewind,
}

impl Inside {
    /// The method and its parameters; `place` is a message or a number.
    pub(super) fn request(self, inner: &str, place: &Value) -> (&'static str, Value) {
        match self {
            Self::RewindTo => ("_rewind/to", json!({ "sessionId": inner, "messageId": place, "restoreFiles": false })),
            Self::TurnRewind => (
                "qwen/control/session/rewind",
                json!({ "sessionId": inner, "targetTurnIndex": place, "rewindFiles": false }),
            ),
        }
    }

    fn nowhere(self) -> Value {
        match self {
            Self::RewindTo => NO_MESSAGE.into(),
            Self::TurnRewind => NO_TURN.into(),
        }
    }

    fn offered(self, offer: &mut Offer) -> &mut Option<bool> {
        match self {
            Self::RewindTo => &mut offer.rewind_to,
            Self::TurnRewind => &mut offer.turn_rewind,
        }
    }
}

impl Proxy {
    /// Finds out whether a session can be cut like this. Returns what was answered if that may mean anything: should the cut itself be
    /// answered the same, the agent does not know the method.
    pub(super) async fn probe(&self, inside: Inside, inner: &str) -> Result<Option<RpcError>, CutFailure> {
        let (method, params) = inside.request(inner, &inside.nowhere());
        let known = *inside.offered(&mut self.offers());
        let (offered, unclear) = match known {
            Some(_) => (known, None),
            None => match self.ask_for(method, params, self.setup.patience.probe).await {
                Err(error) if matches!(error.code, RpcError::INVALID_PARAMS | RpcError::NOT_FOUND) => {
                    (Some(true), None)
                }
                Err(error) if names(&error, NO_MESSAGE) => (Some(true), None),
                Err(error) if error.code != RpcError::METHOD_NOT_FOUND && !is_silence(&error) => (None, Some(error)),
                Ok(_) | Err(_) => (Some(false), None),
            },
        };
        *inside.offered(&mut self.offers()) = offered;
        match offered {
            Some(false) => Err(CutFailure::not_offered("the agent does not cut a session like this")),
            Some(true) | None => Ok(unclear),
        }
    }

    /// Whether a session that is said to be cut is not: the place where it was cut is still there.
    pub(super) async fn is_uncut(&self, inside: Inside, inner: &str, place: &Value) -> bool {
        // Before the first turn there is always a place.
        if *place == json!(0) {
            return false;
        }
        let (method, params) = inside.request(inner, place);
        let is_uncut = self.ask_for(method, params, self.setup.patience.probe).await.is_ok();
        if is_uncut {
            self.disbelieve(inside);
        }
        is_uncut
    }

    /// Notes that the agent cannot be cut like this.
    pub(super) fn disbelieve(&self, inside: Inside) {
        *inside.offered(&mut self.offers()) = Some(false);
    }

    /// Finds out whether the agent forks at a message, if that matters and is not known.
    pub(super) async fn find_out(self: &Arc<Self>, session: &Arc<ProxiedSession>, all: &[Entry], base: &[Entry]) {
        let (offer, known) = (self.offer(), session.known());
        let matters = next_turn(&known, &known.current, all, base).is_some();
        if !offer.fork || offer.fork_at != ForkAt::Unknown || !matters {
            return;
        }
        if self.load_inner(session, &known.current, all).await.is_ok() {
            self.fork_current(session).await;
        }
    }

    /// Makes sure that the agent forks at a message. A refusal that names it may only have repeated what was asked: if it is for another
    /// reason, it is over, and the head is forked.
    pub(super) async fn confirm_fork_at(self: &Arc<Self>, session: &Arc<ProxiedSession>) -> Result<(), CutFailure> {
        if self.offer().fork_at == ForkAt::Likely {
            self.fork_current(session).await;
        }
        match self.offer().fork_at {
            ForkAt::Sure => Ok(()),
            ForkAt::No => Err(CutFailure::not_offered("the agent does not fork at a message")),
            ForkAt::Unknown | ForkAt::Likely => {
                Err(CutFailure::ours("the agent does not fork its session now".to_owned()))
            }
        }
    }

    /// Forks the head of the session that speaks, whatever that holds.
    async fn fork_current(self: &Arc<Self>, session: &Arc<ProxiedSession>) {
        let known = session.known();
        let current = known.inners.get(&known.current).filter(|inner| inner.under_way.is_none());
        self.fork_head(session, current.and_then(|inner| inner.holds)).await;
    }

    /// Keeps a fork of the head, so that one can come back to it, if that is the best that the agent offers.
    pub(in crate::proxy) async fn keep_head(self: &Arc<Self>, session: &Arc<ProxiedSession>) {
        let offer = self.offer();
        if !offer.fork || offer.fork_at.is_likely() {
            return;
        }
        let known = session.known();
        let unkept = session.log.ask(move |log| {
            let held = spoken(log.entries());
            let is_kept = known.inners.iter().any(|(id, inner)| *id != known.current && holds(inner, held));
            held.last().map(|entry| entry.id).filter(|_| !is_kept)
        });
        if let Some(head) = unkept.await.flatten() {
            self.fork_head(session, Some(Some(head))).await;
        }
    }

    /// Forks the head of the session that speaks, which holds the conversation up to `head`, if that is known. Until it is sure, that shows
    /// whether the agent can do better: one that forks at a message has no such message.
    async fn fork_head(self: &Arc<Self>, session: &Arc<ProxiedSession>, head: Option<Option<EntryId>>) {
        let (from, facts) = {
            let live = session.live();
            (live.inner.clone(), live.facts.clone())
        };
        let mut params = self.birth(session);
        params["sessionId"] = from.as_str().into();
        if matches!(self.offer().fork_at, ForkAt::Unknown | ForkAt::Likely) {
            fork_at(&mut params, NO_MESSAGE);
        }
        let order =
            NewInner { method: "session/fork", params, from: Some(&from), holds: head, purpose: Purpose::KeepPoint };
        let made = self.make(session, order).await;
        session.live().facts = facts;
        let mut offer = self.offers();
        match made {
            Ok(_) => offer.fork_at = ForkAt::No,
            Err(error) if error.code == RpcError::METHOD_NOT_FOUND || is_silence(&error) => offer.fork = false,
            Err(error) if names(&error, NO_MESSAGE) => offer.fork_at = offer.fork_at.seen_again(),
            // It may be busy, and is asked again. Without it this point is reached by a transcript.
            Err(_) => {}
        }
    }
}

/// Has a fork end with a message of the agent's.
pub(super) fn fork_at(params: &mut Value, message: &str) {
    params["_meta"]["jetbrains"]["air"]["fork"] = json!({ "version": 1, "messageId": message });
}
