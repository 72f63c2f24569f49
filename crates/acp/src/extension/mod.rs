//! The rewind extension, alike for Retake's own agent and for the proxy.
//!
//! ```text
//! params   what a request says, with its types              (pure)
//! answer   what is answered: points, outcomes, refusals     (pure)
//! backend  the trait that the agent and the proxy implement: a session and its client
//! methods  points, rewind, undo, redo, and what an edit goes back to
//! ```
//!
//! Nothing is decided here: targets and plans are the session's, and what it refuses is passed on with a word that programs can tell it
//! by. What is told because of a change, that history was cut and what follows, is told before the answer.

pub(crate) mod answer;
pub(crate) mod backend;
pub(crate) mod methods;
pub(crate) mod params;

use retake_engine::id::EntryId;
use retake_engine::session::entry::{Block, Body, Entry};
use serde_json::{Value, json};

/// The key of our extension in `_meta`.
pub(crate) const KEY: &str = "retake";

/// A version of the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Version {
    /// One answer to a prompt when its turn has ended.
    #[default]
    V1,
    /// A prompt is answered at once; states are told.
    V2,
}

impl Version {
    /// Its number.
    pub(crate) fn number(self) -> u32 {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
        }
    }
}

/// What the extension offers, as `_meta.retake` of the capabilities says it.
pub(crate) fn capability() -> Value {
    json!({ "rewind": { "version": 1, "editPrompt": {}, "points": {}, "files": {}, "plan": {}, "undo": {}, "labels": {} } })
}

/// Whether a client has been told of an entry as a message, with an id: an answer that is nothing but calls is none.
pub(crate) fn is_message(entry: &Entry) -> bool {
    match &entry.body {
        Body::Prompt { .. } => true,
        Body::Reply { blocks, .. } => blocks.iter().any(|block| !matches!(block, Block::Call { .. })),
        _ => false,
    }
}

/// The last message among entries.
pub(crate) fn last_message(entries: &[Entry]) -> Option<EntryId> {
    entries.iter().rev().find(|entry| is_message(entry)).map(|entry| entry.id)
}

/// That history was cut after `last`: a method and its parameters, or in version 2 an update.
pub(crate) fn truncated(version: Version, session: &str, last: Option<&str>) -> (&'static str, Value) {
    match version {
        Version::V1 => ("_session/history_truncated", json!({ "sessionId": session, "lastMessageId": last })),
        Version::V2 => {
            let update = json!({ "sessionUpdate": "_history_truncated", "sessionId": session, "lastMessageId": last });
            ("session/update", json!({ "sessionId": session, "update": update }))
        }
    }
}

/// The last entry that a session can be forked after.
pub(crate) fn last_target(entries: &[Entry]) -> Option<EntryId> {
    let is_target = |entry: &&Entry| {
        !matches!(
            entry.body,
            Body::Note { .. } | Body::Instructions { .. } | Body::Approved { .. } | Body::Prompt { .. }
        )
    };
    entries.iter().rfind(is_target).map(|entry| entry.id)
}
