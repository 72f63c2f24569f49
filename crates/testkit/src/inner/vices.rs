//! What the fake agent does in the place of what is right, if it has the habit.

use serde_json::{Value, json};

use super::Agent;

impl Agent {
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
