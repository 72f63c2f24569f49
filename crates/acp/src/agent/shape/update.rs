//! Updates: what happened in a session, as clients are told it.

use std::path::PathBuf;

use retake_agent::contract::{Event, EventKind};
use retake_agent::view::View;
use retake_engine::id::EntryId;
use retake_engine::session::Conversation;
use retake_engine::session::entry::{Block, Body, CallId, Entry, Part, Todo, TodoState, Usage};
use retake_engine::session::first_line;
use serde_json::{Map, Value, json};

use super::call::{self, ModelCall};
use super::content;
use crate::agent::Version;
use crate::extension::is_message;

/// What the id of a thought ends with: it is told apart from what the model then said, which has the same entry.
pub(crate) const THOUGHT: &str = "-thought";

/// Who said a prompt that is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PromptSource {
    /// This client, which shows it already.
    Here,
    /// Somebody else, or long ago.
    Elsewhere,
}

/// Makes updates.
#[derive(Clone, Debug)]
pub(crate) struct Updates {
    pub(crate) version: Version,
    pub(crate) root: PathBuf,
}

impl Updates {
    /// What an event means for a client that has been told everything in `before`. What changes the history is not among it.
    pub(crate) fn of_event(&self, before: &View, event: &Event, said: PromptSource) -> Vec<Value> {
        match &event.kind {
            EventKind::Appended { entry } => self.of_appended(before, entry, said),
            EventKind::Delta { entry, text, .. } => vec![self.agent_chunk(*entry, text)],
            EventKind::Thinking { entry, text, .. } => vec![self.thought_chunk(*entry, text)],
            EventKind::CallStarted { call, title } => self.call_started(before, call, title),
            EventKind::Retrying { .. } => self.of_retry(before),
            _ => Vec::new(),
        }
    }

    fn of_appended(&self, before: &View, entry: &Entry, said: PromptSource) -> Vec<Value> {
        let mut updates = match (&entry.body, said) {
            (Body::Prompt { .. }, PromptSource::Here) if self.version == Version::V1 => Vec::new(),
            (Body::Reply { blocks, .. }, _) => self.of_reply(before, entry.id, blocks),
            (Body::ToolResult { .. }, _) => self.of_result(&before.entries, entry).into_iter().collect(),
            _ => self.of_entry(entry),
        };
        match &entry.body {
            Body::Prompt { parts } if !before.entries.iter().any(is_message) => {
                updates.push(json!({ "sessionUpdate": "session_info_update", "title": first_line(parts) }));
            }
            Body::ToolResult { todos: Some(todos), .. } => updates.push(self.plan(todos)),
            Body::Reply { usage, .. } => {
                let mut total = total(&before.entries);
                total += *usage;
                updates.extend(self.usage(before.window, *usage, total));
            }
            _ => {}
        }
        updates
    }

    /// The rest of an answer of which the beginning was streamed, and its calls.
    fn of_reply(&self, before: &View, id: EntryId, blocks: &[Block]) -> Vec<Value> {
        let (text, thinking) = words(blocks);
        let is_streamed = before.coming.entry == Some(id);
        let (sent, thought) = match is_streamed {
            true => (before.coming.text.as_str(), before.coming.thinking.as_str()),
            false => ("", ""),
        };
        let mut updates = Vec::new();
        if let Some(rest) = thinking.strip_prefix(thought).filter(|rest| !rest.is_empty()) {
            updates.push(self.thought_chunk(id, rest));
        }
        if let Some(rest) = text.strip_prefix(sent).filter(|rest| !rest.is_empty()) {
            updates.push(self.agent_chunk(id, rest));
        }
        updates.extend(self.calls(id, blocks).map(|call| call.announced(self.version)));
        updates
    }

    /// An entry by itself, as it is replayed; results of calls need the entries before them.
    fn of_entry(&self, entry: &Entry) -> Vec<Value> {
        match &entry.body {
            Body::Prompt { parts } => self.user(entry.id, parts),
            Body::Reply { blocks, .. } => {
                let (text, thinking) = words(blocks);
                let mut updates = Vec::new();
                if !thinking.is_empty() {
                    updates.push(self.thought_chunk(entry.id, &thinking));
                }
                if !text.is_empty() {
                    updates.push(self.agent_chunk(entry.id, &text));
                }
                updates.extend(self.calls(entry.id, blocks).map(|call| call.announced(self.version)));
                updates
            }
            Body::ToolResult { .. }
            | Body::Note { .. }
            | Body::Instructions { .. }
            | Body::Summary { .. }
            | Body::Cleared
            | Body::Approved { .. }
            | Body::Ended { .. } => Vec::new(),
        }
    }

    /// Entries that follow `before`, as they are replayed.
    pub(crate) fn replay(&self, before: &[Entry], entries: &[Entry]) -> Vec<Value> {
        let mut all = before.to_vec();
        let mut updates = Vec::new();
        for entry in entries {
            match &entry.body {
                Body::ToolResult { .. } => updates.extend(self.of_result(&all, entry)),
                _ => updates.extend(self.of_entry(entry)),
            }
            all.push(entry.clone());
        }
        updates
    }

    /// Everything of a session: what is retained, and what is under way.
    pub(crate) fn replay_all(&self, view: &View) -> Vec<Value> {
        let mut updates = self.replay(&[], &view.entries);
        if let Some(entry) = view.coming.entry {
            if !view.coming.thinking.is_empty() {
                updates.push(self.thought_chunk(entry, &view.coming.thinking));
            }
            if !view.coming.text.is_empty() {
                updates.push(self.agent_chunk(entry, &view.coming.text));
            }
        }
        for running in &view.calls {
            updates.extend(self.call_started(view, &running.call, &running.title));
        }
        updates.extend(self.standing(view));
        updates
    }

    /// What holds for the session as a whole.
    pub(crate) fn standing(&self, view: &View) -> Vec<Value> {
        let (conversation, mut updates) = (view.conversation(), Vec::new());
        if !conversation.todos().is_empty() {
            updates.push(self.plan(conversation.todos()));
        }
        if let Some(usage) = last_usage(&conversation) {
            updates.extend(self.usage(view.window, usage, total(&view.entries)));
        }
        updates
    }

    fn calls<'a>(&'a self, reply: EntryId, blocks: &'a [Block]) -> impl Iterator<Item = ModelCall> + 'a {
        blocks.iter().filter_map(move |block| match block {
            Block::Call { id, name, arguments } => Some(ModelCall::new(&self.root, reply, id, name, arguments)),
            Block::Text { .. } | Block::Reasoning { .. } => None,
        })
    }

    /// The call with this id of the newest answer that has one.
    pub(crate) fn call(&self, entries: &[Entry], wanted: &CallId) -> Option<ModelCall> {
        entries.iter().rev().find_map(|entry| match &entry.body {
            Body::Reply { blocks, .. } => {
                let id = call::id(entry.id, wanted);
                self.calls(entry.id, blocks).find(|call| call.id == id)
            }
            _ => None,
        })
    }

    fn call_started(&self, before: &View, call: &CallId, title: &str) -> Vec<Value> {
        let call = self.call(&before.entries, call);
        let update = |call: ModelCall| {
            json!({
                "sessionUpdate": "tool_call_update",
                "toolCallId": call.id,
                "title": title,
                "status": "in_progress",
            })
        };
        call.map(update).into_iter().collect()
    }

    /// The output of a call that runs, as far as it is kept.
    pub(crate) fn output(&self, view: &View, call: &CallId) -> Option<Value> {
        let running = view.calls.iter().find(|one| one.call == *call)?;
        let call = self.call(&view.entries, call)?;
        let block = json!({ "type": "content", "content": content::text(&running.output) });
        Some(json!({ "sessionUpdate": "tool_call_update", "toolCallId": call.id, "content": [block] }))
    }

    fn of_result(&self, before: &[Entry], entry: &Entry) -> Option<Value> {
        let Body::ToolResult { call, title, outcome, parts, details, .. } = &entry.body else { return None };
        let call = self.call(before, call)?;
        let mut update = call.result(self.version, title, *outcome, parts, details.as_ref());
        update.insert("sessionUpdate".into(), "tool_call_update".into());
        Some(Value::Object(update))
    }

    /// What was streamed of an answer that begins anew is void, where the protocol can say so.
    fn of_retry(&self, before: &View) -> Vec<Value> {
        let Some(entry) = before.coming.entry.filter(|_| self.version == Version::V2) else { return Vec::new() };
        let void = |kind: &str, id: String| json!({ "sessionUpdate": kind, "messageId": id, "content": [] });
        let mut updates = Vec::new();
        if !before.coming.thinking.is_empty() {
            updates.push(void("agent_thought", thought_id(entry)));
        }
        if !before.coming.text.is_empty() {
            updates.push(void("agent_message", entry.to_string()));
        }
        updates
    }

    /// A user's message.
    pub(crate) fn user(&self, id: EntryId, parts: &[Part]) -> Vec<Value> {
        self.user_blocks(&id.to_string(), &content::blocks(&self.root, parts))
    }

    /// A user's message, by its blocks.
    pub(crate) fn user_blocks(&self, id: &str, blocks: &[Value]) -> Vec<Value> {
        match self.version {
            Version::V1 => blocks.iter().map(|block| chunk("user_message_chunk", id, block)).collect(),
            Version::V2 => vec![json!({ "sessionUpdate": "user_message", "messageId": id, "content": blocks })],
        }
    }

    fn agent_chunk(&self, entry: EntryId, text: &str) -> Value {
        chunk("agent_message_chunk", &entry.to_string(), &content::text(text))
    }

    fn thought_chunk(&self, entry: EntryId, text: &str) -> Value {
        chunk("agent_thought_chunk", &thought_id(entry), &content::text(text))
    }

    /// The todo list.
    pub(crate) fn plan(&self, todos: &[Todo]) -> Value {
        let item = |todo: &Todo| {
            let status = match todo.state {
                TodoState::Pending => "pending",
                TodoState::Active => "in_progress",
                TodoState::Done => "completed",
            };
            json!({ "content": todo.text, "priority": "medium", "status": status })
        };
        let entries: Vec<Value> = todos.iter().map(item).collect();
        match self.version {
            Version::V1 => json!({ "sessionUpdate": "plan", "entries": entries }),
            Version::V2 => {
                let plan = json!({ "type": "items", "planId": "todo", "entries": entries });
                json!({ "sessionUpdate": "plan_update", "plan": plan })
            }
        }
    }

    /// How full the model's window is, if its size is known.
    fn usage(&self, window: Option<u64>, last: Usage, total: Usage) -> Option<Value> {
        let (size, used) = (window?, last.input + last.output);
        let mut update = json!({ "sessionUpdate": "usage_update", "used": used, "size": size });
        if let Some(amount) = total.cost {
            update["cost"] = json!({ "amount": amount, "currency": "USD" });
        }
        Some(update)
    }

    /// What is told of a state, in version 2.
    pub(crate) fn state(&self, state: &str, more: Map<String, Value>) -> Option<Value> {
        if self.version == Version::V1 {
            return None;
        }
        let mut update = more;
        update.insert("sessionUpdate".into(), "state_update".into());
        update.insert("state".into(), state.into());
        Some(Value::Object(update))
    }
}

/// A piece of a message.
pub(crate) fn chunk(kind: &str, id: &str, block: &Value) -> Value {
    json!({ "sessionUpdate": kind, "messageId": id, "content": block })
}

fn thought_id(entry: EntryId) -> String {
    format!("{entry}{THOUGHT}")
}

/// What an answer says, and what it thought.
fn words(blocks: &[Block]) -> (String, String) {
    let (mut said, mut thought) = (String::new(), String::new());
    for block in blocks {
        match block {
            Block::Text { text } => said.push_str(text),
            Block::Reasoning { text, .. } => thought.push_str(text),
            Block::Call { .. } => {}
        }
    }
    (said, thought)
}

fn last_usage(conversation: &Conversation) -> Option<Usage> {
    conversation.entries().iter().rev().find_map(|entry| match &entry.body {
        Body::Reply { usage, .. } => Some(*usage),
        _ => None,
    })
}

/// What all answers among entries cost.
fn total(entries: &[Entry]) -> Usage {
    let mut total = Usage::default();
    for entry in entries {
        if let Body::Reply { usage, .. } = &entry.body {
            total += *usage;
        }
    }
    total
}

/// What a cost is on the wire.
pub(crate) fn tokens(usage: &Usage) -> Value {
    json!({
        "totalTokens": usage.input + usage.output,
        "inputTokens": usage.input,
        "outputTokens": usage.output,
        "cachedReadTokens": usage.cache_read,
        "cachedWriteTokens": usage.cache_write,
    })
}
