//! Which session a fork comes from, and which forks a session has, for people and as JSON.

use std::os::unix::ffi::OsStrExt;

use retake_agent::rewind_document::Bytes;
use retake_engine::id::{EntryId, SessionId};
use retake_engine::session::entry::{Body, Entry};
use retake_engine::session::first_line;
use retake_engine::session::{ForkElsewhere, ForkedFrom};
use serde::Serialize;

use crate::output::quote;
use crate::output::time;

/// What a session was forked from.
#[derive(Serialize)]
pub struct FromFacts {
    session: String,
    /// Null if it is gone.
    entry: Option<String>,
    /// The workspace that these are in; null for this one.
    root: Option<Bytes>,
}

impl FromFacts {
    pub fn new(from: &ForkedFrom) -> Self {
        Self {
            session: from.session.to_string(),
            entry: from.entry.map(|id| id.to_string()),
            root: from.root.as_ref().map(|root| Bytes::new(root.as_os_str().as_bytes())),
        }
    }

    /// In this workspace.
    pub fn here(session: SessionId, entry: EntryId) -> Self {
        Self::new(&ForkedFrom { session, entry: Some(entry), root: None })
    }
}

/// A fork in a workspace of its own.
#[derive(Serialize)]
pub struct ElsewhereFacts {
    session: String,
    entry: Option<String>,
    root: Bytes,
    at: String,
}

impl ElsewhereFacts {
    pub fn new(fork: &ForkElsewhere) -> Self {
        Self {
            session: fork.session.to_string(),
            entry: fork.entry.map(|id| id.to_string()),
            root: Bytes::new(fork.root.as_os_str().as_bytes()),
            at: time::rfc3339(fork.at),
        }
    }
}

/// `forked from 3fa29c41 at 5c0e77aa in /home/ann/project`
pub fn origin(from: &ForkedFrom) -> String {
    let entry = from.entry.map(|id| format!(" at {}", id.short())).unwrap_or_default();
    let root = from.root.as_ref().map(|root| format!(" in {}", quote::name(root.as_os_str().as_bytes())));
    format!("forked from {}{entry}{}", from.session.short(), root.unwrap_or_default())
}

/// `before "mend add"`, `after 5c0e77aa`
pub fn place(entry: &Entry) -> String {
    match &entry.body {
        Body::Prompt { parts } => format!("before \"{}\"", quote::one_line(&first_line(parts))),
        _ => format!("after {}", entry.id.short()),
    }
}
