//! Why a strategy did not yield an inner session that holds what is retained, by the agent's error. Pure.
//!
//! An error that will be the same the next time (not offered, not found) makes the proxy try the next strategy. One that may pass is returned
//! to the client, which can retry. An unknown error of a load is asked for twice: an agent that returns it again returns it every time.

use serde_json::Value;

use crate::wire::RpcError;

/// Why a way does not lead there.
#[derive(Debug)]
pub(in crate::proxy) enum CutFailure {
    /// It never will: the agent does not offer it, or what it needs is not there.
    Closed(RpcError),
    /// It never will: the agent loads sessions, and not this one.
    Unloadable(RpcError),
    /// It may the next time: the agent is busy, say, or did not answer.
    Failed(RpcError),
}

impl CutFailure {
    /// The agent does not offer it.
    pub(super) fn not_offered(text: &str) -> Self {
        Self::Closed(not_offered(text))
    }

    /// Something of our own failed.
    pub(super) fn ours(why: String) -> Self {
        Self::Failed(RpcError::new(RpcError::INTERNAL, why))
    }

    /// The agent was to load a session of its, and was asked again if its error says nothing of the next time.
    pub(super) fn of_load(error: RpcError) -> Self {
        match LoadError::of(&error) {
            LoadError::NotOffered => Self::Closed(error),
            LoadError::Gone | LoadError::Unclear => Self::Unloadable(error),
            LoadError::MayPass => Self::Failed(error),
        }
    }

    /// Why the agent does not load a session that it should have, in the agent's words.
    pub(super) fn unloaded(&self) -> Option<String> {
        match self {
            Self::Unloadable(error) => Some(in_its_words(error)),
            Self::Closed(_) | Self::Failed(_) => None,
        }
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
            Self::Closed(error) | Self::Unloadable(error) | Self::Failed(error) => error,
        }
    }
}

/// What an error of a load says of the next time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoadError {
    /// Sessions are not loaded.
    NotOffered,
    /// There is no such session.
    Gone,
    /// It may work: nobody answered, somebody has to sign in, something is busy.
    MayPass,
    /// Nothing.
    Unclear,
}

impl LoadError {
    pub(super) fn of(error: &RpcError) -> Self {
        let may_pass = matches!(error.code, RpcError::AUTH_REQUIRED | RpcError::CANCELLED);
        match () {
            () if is_not_offered(error) => Self::NotOffered,
            () if may_pass || is_silence(error) => Self::MayPass,
            () if error.code == RpcError::NOT_FOUND || misses_session(error) => Self::Gone,
            () if is_held_up(error) => Self::MayPass,
            () => Self::Unclear,
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

/// Whether it says that something is in the way now: a lock, a limit, the network, a login.
fn is_held_up(error: &RpcError) -> bool {
    let said = said(error).collect::<Vec<_>>().join(" ").to_lowercase();
    HELD_UP.iter().any(|words| said.contains(words))
}

/// An error with the details that the agent gives: many have one message for all errors, such as `Internal error`.
fn in_its_words(error: &RpcError) -> String {
    let message = error.message.as_str();
    match said(error).find(|detail| !message.contains(detail.trim())) {
        Some(detail) => format!("{}: {}", message.trim_end_matches('.'), detail.trim()),
        None => message.to_owned(),
    }
}

/// The first lines of an error's message and details: the lines below are where in its program the agent found the error.
fn said(error: &RpcError) -> impl Iterator<Item = &str> {
    let data = error.data.as_ref().unwrap_or(&Value::Null);
    let details = [data, &data["details"], &data["message"], &data["error"]].into_iter().filter_map(Value::as_str);
    details.chain([error.message.as_str()]).filter_map(|text| text.lines().next())
}

const HELD_UP: [&str; 29] = [
    "busy",
    "locked",
    "try again",
    "retry",
    "temporar",
    "in progress",
    "in use",
    "timeout",
    "timed out",
    "rate limit",
    "too many",
    "overloaded",
    "unavailable",
    "network",
    "not connect",
    "to connect",
    "connection ",
    "econn",
    "enotfound",
    "eai_again",
    "authenticat",
    "unauthorized",
    "log in",
    "logged in",
    "login",
    "sign in",
    "api key",
    "no space",
    "emfile",
];

fn has_reason(error: &RpcError, reason: &str) -> bool {
    error.data.as_ref().is_some_and(|data| data["reason"] == reason)
}

fn text(error: &RpcError) -> String {
    format!("{} {}", error.message, error.data.as_ref().map(Value::to_string).unwrap_or_default())
}

const NOT_OFFERED: &str = "not_offered";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_a_load_tells_whether_asking_again_can_help() {
        let of = |code, text: &str| LoadError::of(&RpcError::new(code, text));
        assert_eq!(of(RpcError::INTERNAL, "No previous sessions found for this project."), LoadError::Unclear);
        assert_eq!(of(RpcError::INTERNAL, "Invalid session identifier \"x\""), LoadError::Unclear);
        assert_eq!(of(RpcError::INTERNAL, "session x does not exist"), LoadError::Gone);
        assert_eq!(of(RpcError::NOT_FOUND, "busy"), LoadError::Gone);
        assert_eq!(of(RpcError::AUTH_REQUIRED, "no such session"), LoadError::MayPass);
        assert_eq!(of(RpcError::INTERNAL, "database is locked"), LoadError::MayPass);
        assert_eq!(of(RpcError::METHOD_NOT_FOUND, "busy"), LoadError::NotOffered);
        let traced = |text: &str| RpcError::new(RpcError::INTERNAL, "Internal error").with("details", text);
        assert_eq!(LoadError::of(&traced("unreadable\n    at retry (/login/connection .js)")), LoadError::Unclear);
        assert_eq!(LoadError::of(&traced("connection refused")), LoadError::MayPass);
        let silent = RpcError::new(RpcError::INTERNAL, "no such session").with_reason("silence");
        assert_eq!(LoadError::of(&silent), LoadError::MayPass);
    }

    #[test]
    fn the_reason_of_a_failed_load_has_the_details_that_the_agent_gives() {
        let reason = |error: RpcError| CutFailure::of_load(error).unloaded();
        let internal = RpcError::new(RpcError::INTERNAL, "Internal error");
        assert_eq!(reason(internal.clone()).as_deref(), Some("Internal error"));
        let detailed = internal.clone().with("details", "rollout x is empty\n    at load (/a.js)");
        assert_eq!(reason(detailed).as_deref(), Some("Internal error: rollout x is empty"));
        let plain = RpcError { data: Some("rollout x is empty".into()), ..internal };
        assert_eq!(reason(plain).as_deref(), Some("Internal error: rollout x is empty"));
        let twice = RpcError::new(RpcError::INTERNAL, "rollout x is empty").with("details", "rollout x is empty");
        assert_eq!(reason(twice).as_deref(), Some("rollout x is empty"));
    }
}
