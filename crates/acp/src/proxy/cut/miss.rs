//! Why a way to an inner session that holds what is retained does not lead there, by what the agent answered. Pure.
//!
//! What is not offered, or not there, will be neither the next time, and the next way is tried. Everything else may pass: whoever asked is
//! told, and asks again.

use serde_json::Value;

use crate::wire::RpcError;

/// Why a way does not lead there.
#[derive(Debug)]
pub(in crate::proxy) enum Miss {
    /// It never will: the agent does not offer it, or what it needs is not there.
    Closed(RpcError),
    /// It may the next time: the agent is busy, say, or did not answer.
    Failed(RpcError),
}

impl Miss {
    /// The agent does not offer it.
    pub(super) fn not_offered(text: &str) -> Self {
        Self::Closed(not_offered(text))
    }

    /// Something of our own failed.
    pub(super) fn ours(why: String) -> Self {
        Self::Failed(RpcError::new(RpcError::INTERNAL, why))
    }

    /// The agent was to load a session of its.
    pub(super) fn of_load(error: RpcError) -> Self {
        let is_closed = is_not_offered(&error) || error.code == RpcError::NOT_FOUND || misses_session(&error);
        if is_closed { Self::Closed(error) } else { Self::Failed(error) }
    }

    /// The agent was to cut a session at a place that we named: if it finds fault with what it was given, it has no such place.
    pub(super) fn of_cut(error: RpcError) -> Self {
        let is_wrong_place = matches!(error.code, RpcError::INVALID_PARAMS | RpcError::NOT_FOUND);
        if is_wrong_place || is_not_offered(&error) { Self::Closed(error) } else { Self::Failed(error) }
    }

    /// Whether another time may be better.
    pub(in crate::proxy) fn may_pass(&self) -> bool {
        matches!(self, Self::Failed(_))
    }

    /// What the agent answered.
    pub(in crate::proxy) fn into_error(self) -> RpcError {
        match self {
            Self::Closed(error) | Self::Failed(error) => error,
        }
    }
}

/// An answer in the place of one that is known in advance.
pub(super) fn not_offered(text: &str) -> RpcError {
    RpcError::new(RpcError::INTERNAL, text).with_reason(NOT_OFFERED)
}

/// Whether nobody knows what came of a request.
pub(super) fn is_silence(error: &RpcError) -> bool {
    has_reason(error, "silence") || has_reason(error, "gone")
}

/// Whether an error names something.
pub(super) fn names(error: &RpcError, what: &str) -> bool {
    text(error).contains(what)
}

fn is_not_offered(error: &RpcError) -> bool {
    error.code == RpcError::METHOD_NOT_FOUND || has_reason(error, NOT_OFFERED)
}

/// Whether it says that there is no such session. Not all have a code for that, and those that have none say it in the words of whatever
/// keeps their sessions.
fn misses_session(error: &RpcError) -> bool {
    let text = text(error).to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    has(&["session", "conversation", "thread"])
        && has(&[
            "not found",
            "notfound",
            "no such",
            "not exist",
            "n't exist",
            "unknown",
            "no rollout",
            "no conversation",
        ])
}

fn has_reason(error: &RpcError, reason: &str) -> bool {
    error.data.as_ref().is_some_and(|data| data["reason"] == reason)
}

fn text(error: &RpcError) -> String {
    format!("{} {}", error.message, error.data.as_ref().map(Value::to_string).unwrap_or_default())
}

const NOT_OFFERED: &str = "not_offered";
