//! The MCP servers that the fake agent has for its sessions. A session that is open keeps those that it was opened with, as agents do that
//! answer a load from memory.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

/// The MCP servers of each session that is open, by their names.
#[derive(Default)]
pub(super) struct Tools {
    open: HashMap<String, Vec<String>>,
    forks: HashSet<String>,
}

impl Tools {
    /// Opens a session with these servers, unless it is open.
    pub(super) fn open(&mut self, session: &str, servers: &Value) {
        let names = servers.as_array().into_iter().flatten().filter_map(|server| server["name"].as_str());
        self.open.entry(session.to_owned()).or_insert_with(|| names.map(str::to_owned).collect());
    }

    pub(super) fn close(&mut self, session: &str) {
        self.open.remove(session);
    }

    pub(super) fn note_fork(&mut self, session: &str) {
        self.forks.insert(session.to_owned());
    }

    /// Whether a session was forked in this process.
    pub(super) fn is_fork(&self, session: &str) -> bool {
        self.forks.contains(session)
    }

    /// What the agent says of the servers of a session.
    pub(super) fn describe(&self, session: &str) -> String {
        format!("tools: {}", self.open.get(session).map(|names| names.join(",")).unwrap_or_default())
    }
}
