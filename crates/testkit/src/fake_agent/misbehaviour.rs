//! What the fake agent does wrong, by the habits that it was started with.

use serde_json::{Value, json};

use super::FakeAgent;

impl FakeAgent {
    /// Whether it has a habit of doing something once, and has not done it yet.
    pub(super) fn once(&mut self, habit: &str) -> bool {
        self.has(habit) && self.spent.insert(habit.to_owned())
    }

    /// Fails for a reason that is over the next time; whether it did.
    pub(super) fn stumbles(&mut self, message: &Value) -> bool {
        let (id, params) = (&message["id"], &message["params"]);
        match message["method"].as_str() {
            Some("session/load" | "session/resume") if self.once("busy_load") => {
                self.refuse(id, -32603, "database is locked, try again");
            }
            Some("session/load" | "session/resume") if self.refuses_load(params) && self.has("vague_load") => {
                let data = json!({ "details": "the rollout file is empty\n    at load (/agent.js:7)" });
                let error = json!({ "code": -32603, "message": "Internal error", "data": data });
                self.send(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
            }
            Some("session/load" | "session/resume") if self.refuses_load(params) => {
                let (code, text) = self.load_error(params);
                self.refuse(id, code, &text);
            }
            Some("session/fork") if self.once("busy_fork") => self.refuse(id, -32603, "busy, try again"),
            Some("session/fork") if self.once("unsaved_fork") => self.refuse(id, -32002, "session not saved yet"),
            Some("session/fork") if self.once("echoing_fork") => {
                let error = json!({ "code": -32602, "message": "invalid params", "data": params });
                self.send(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
            }
            _ => return false,
        }
        true
    }

    /// Whether it does not load a session: `strange_load`, `invalid_load`, `vague_load`, `locked_load` and `unauthorized_load` until there
    /// is a file `repaired`, `unsaved_forks` what it forked itself.
    fn refuses_load(&self, params: &Value) -> bool {
        let is_refused = ["strange_load", "invalid_load", "vague_load", "locked_load", "unauthorized_load"].iter();
        let is_fork = self.tools.is_fork(params["sessionId"].as_str().unwrap_or_default());
        is_refused.into_iter().any(|habit| self.has(habit)) && !self.sessions.directory().join("repaired").exists()
            || self.has("unsaved_forks") && is_fork
    }

    fn load_error(&self, params: &Value) -> (i64, String) {
        match () {
            () if self.has("strange_load") => (-32603, "No previous sessions found for this project.".to_owned()),
            () if self.has("invalid_load") => (-32603, format!("Invalid session identifier {}", params["sessionId"])),
            () if self.has("locked_load") => (-32603, "database is locked".to_owned()),
            () if self.has("unauthorized_load") => (-32000, "Authentication required".to_owned()),
            () => (-32603, "it was never written to disk".to_owned()),
        }
    }

    /// Answers what it does not know.
    pub(super) fn take_unknown(&mut self, id: &Value, method: &str) {
        if self.has("lax") {
            self.answer(id, json!({ "example": "response" }));
        } else if !self.has("deaf") {
            self.refuse(id, -32601, &format!("no method {method}"));
        }
    }

    /// Asks the client something about a session that it has not answered for yet.
    pub(super) fn asks_first(&mut self, habit: &str, session: &str) {
        if self.has(habit) {
            self.read(session, "/notes");
        }
    }
}
