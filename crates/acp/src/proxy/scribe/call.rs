//! Tool calls of the inner agent, put together from what it says of them.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use retake_engine::WorkspacePath;
use retake_engine::session::entry::{Outcome, Part};
use serde_json::{Map, Value};

use super::super::watch::{Rest, timing};
use super::{Scribe, call_entries, watching};

/// Text of a result that is kept; the rest is in the inner agent's own history.
const MAX_RESULT: usize = 256 * 1024;

/// A call as it is known so far: all fields of all updates, the later ones in the place of the earlier.
#[derive(Debug, Default)]
pub(super) struct Call {
    fields: Map<String, Value>,
    /// Bytes that came piece by piece.
    added: usize,
}

/// Something that the agent asks the client.
#[derive(Debug)]
pub(super) enum Question {
    /// Whether a call may run; the options that mean yes.
    Permission { call: String, yes: Vec<String> },
    /// To write a file.
    Write,
}

impl Call {
    fn merge(&mut self, update: &Value) {
        let Value::Object(fields) = update else { return };
        for (key, value) in fields {
            match key.as_str() {
                "sessionUpdate" => {}
                // Null leaves a field as it is.
                _ if value.is_null() => {}
                _ => drop(self.fields.insert(key.clone(), value.clone())),
            }
        }
    }

    /// A piece of content more, as long as it is kept.
    fn add(&mut self, content: &Value) {
        self.added += content["content"]["text"].as_str().map_or(0, str::len);
        if self.added > MAX_RESULT {
            return;
        }
        if let Value::Array(all) = self.fields.entry("content").or_insert_with(|| Value::Array(Vec::new())) {
            all.push(content.clone());
        }
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.fields.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    /// How it went, if it has ended.
    fn outcome(&self) -> Option<Outcome> {
        match self.text("status")? {
            "completed" => Some(Outcome::Done),
            "failed" => Some(Outcome::Failed),
            "cancelled" => Some(Outcome::Interrupted),
            _ => None,
        }
    }

    /// Whether it may change files, as far as it says.
    fn may_write(&self) -> bool {
        !matches!(self.text("kind"), Some("read" | "search" | "think" | "fetch" | "switch_mode"))
    }

    /// Whether it may do more than change files, as far as it says.
    fn is_command(&self) -> bool {
        self.may_write() && !matches!(self.text("kind"), Some("edit" | "delete" | "move"))
    }

    pub(super) fn tool(&self) -> String {
        self.text("name").or_else(|| self.text("kind")).unwrap_or("tool").to_owned()
    }

    pub(super) fn title(&self) -> String {
        let title = self.text("title").map_or_else(|| self.tool(), str::to_owned);
        title.lines().next().unwrap_or_default().chars().take(200).collect()
    }

    pub(super) fn to_json(&self) -> String {
        Value::Object(self.fields.clone()).to_string()
    }

    /// What came of it, as text.
    pub(super) fn parts(&self) -> Vec<Part> {
        let mut text = String::new();
        for content in self.fields.get("content").and_then(Value::as_array).into_iter().flatten() {
            let piece = match content["type"].as_str() {
                Some("content") => content["content"]["text"].as_str().unwrap_or_default().to_owned(),
                Some("diff") => format!("[wrote {}]", content["path"].as_str().unwrap_or("a file")),
                _ => String::new(),
            };
            if !piece.is_empty() {
                text.push_str(&piece);
                text.push('\n');
            }
        }
        text.truncate(text.floor_char_boundary(MAX_RESULT));
        vec![Part::text(text.trim_end())]
    }

    /// Paths in the workspace that it says it writes.
    fn writes(&self, root: &Path) -> Vec<WorkspacePath> {
        if !matches!(self.text("kind"), Some("edit" | "delete" | "move")) {
            return Vec::new();
        }
        let paths = |key: &str| self.fields.get(key).and_then(Value::as_array).into_iter().flatten();
        let named = paths("locations").chain(paths("content")).filter_map(|one| one["path"].as_str());
        named.filter_map(|path| below(root, path)).collect()
    }
}

/// A path of the workspace, if it is one.
pub(super) fn below(root: &Path, path: &str) -> Option<WorkspacePath> {
    use std::os::unix::ffi::OsStrExt;
    let path = Path::new(path);
    let path = if path.is_absolute() { path.strip_prefix(root).ok()? } else { path };
    WorkspacePath::parse(path.as_os_str().as_bytes()).ok()
}

impl Scribe {
    /// The inner agent says something of a tool call.
    pub(in super::super) fn call(&mut self, update: &Value) {
        let Some(id) = update["toolCallId"].as_str() else { return };
        self.tools.fetch_add(1, Ordering::Relaxed);
        timing(&self.timeline).announced();
        let begins = update["sessionUpdate"] == "tool_call"
            || matches!(update["status"].as_str(), Some("pending" | "in_progress"));
        if self.settled.contains(id) && !begins {
            return;
        }
        let known = self.calls.contains_key(id);
        if !known {
            // What was said before comes first.
            self.flush();
            self.began.push(id.to_owned());
        }
        let call = self.calls.entry(id.to_owned()).or_default();
        match update["sessionUpdate"].as_str() {
            Some("tool_call_content_chunk") => call.add(&update["content"]),
            _ => call.merge(update),
        }
        let (title, paths) = (call.title(), call.writes(&self.root));
        let (may_write, is_command) = (call.may_write(), call.is_command());
        let Some(outcome) = call.outcome() else {
            self.watch_work(Rest::Waits);
            if self.is_working(id) && (!known || !paths.is_empty()) {
                self.claim(title, is_command, paths);
            }
            return timing(&self.timeline).hear(self.at);
        };
        let was_late = !known && may_write && !self.refused.contains(id);
        if was_late {
            timing(&self.timeline).late(self.at, !paths.is_empty());
        }
        if was_late || self.is_working(id) {
            self.claim(title, is_command, paths);
        }
        if let Some(call) = self.calls.remove(id) {
            self.settle(id, &call, outcome);
        }
        match was_late && !self.is_at_work {
            true => self.settle_watch(),
            false => self.watch_work(Rest::Ended),
        }
        timing(&self.timeline).hear(self.at);
    }

    /// The inner agent asks the client something.
    pub(in super::super) fn asked(&mut self, id: &Value, method: &str, params: &Value) {
        match method {
            "fs/write_text_file" => self.declare(id, params["path"].as_str().unwrap_or_default()),
            "session/request_permission" => {
                let call = [&params["toolCall"], &params["subject"]["toolCall"], &params["subject"]];
                let call = call.into_iter().find_map(|call| call["toolCallId"].as_str()).unwrap_or_default().to_owned();
                let is_yes = |option: &&Value| option["kind"].as_str().is_some_and(|kind| kind.starts_with("allow"));
                let options = params["options"].as_array().into_iter().flatten().filter(is_yes);
                let yes = options.filter_map(|option| option["optionId"].as_str()).map(str::to_owned).collect();
                self.questions.insert(id.to_string(), Question::Permission { call, yes });
                self.watch_work(Rest::Waits);
            }
            _ => {}
        }
        timing(&self.timeline).hear(self.at);
    }

    /// The client has answered it.
    pub(in super::super) fn answered(&mut self, id: &Value, answer: Option<&Value>) {
        match self.questions.remove(&id.to_string()) {
            None => return,
            Some(Question::Write) => timing(&self.timeline).write_ends(self.at),
            Some(Question::Permission { call, yes }) => {
                let chosen = answer.and_then(|answer| answer["outcome"]["optionId"].as_str());
                match chosen.is_some_and(|chosen| yes.iter().any(|yes| yes == chosen)) {
                    true => self.granted.insert(call),
                    false => self.refused.insert(call),
                };
            }
        }
        // Nothing that waited for this was at work before.
        timing(&self.timeline).hear(self.at);
        self.watch_work(Rest::Waits);
    }

    /// The inner agent has the client write a file.
    fn declare(&mut self, id: &Value, path: &str) {
        self.tools.fetch_add(1, Ordering::Relaxed);
        let Some(path) = below(&self.root, path) else { return };
        timing(&self.timeline).announced();
        timing(&self.timeline).write_begins(self.at);
        self.questions.insert(id.to_string(), Question::Write);
        self.claim(format!("write {}", path.display()), false, vec![path]);
    }

    fn is_working(&self, id: &str) -> bool {
        self.calls.get(id).is_some_and(|call| self.works(id, call))
    }

    /// Whether a call that has not ended is at work.
    fn works(&self, id: &str, call: &Call) -> bool {
        let asks = |about: Option<&str>| {
            let mut calls = self.questions.values().filter_map(|question| match question {
                Question::Permission { call, .. } => Some(call),
                Question::Write => None,
            });
            calls.any(|call| about.is_none_or(|about| call == about))
        };
        let runs = match call.text("status") {
            _ if self.granted.contains(id) => true,
            Some("in_progress") => true,
            Some("paused") => false,
            _ => !asks(None),
        };
        runs && call.may_write() && !self.refused.contains(id) && !asks(Some(id))
    }

    /// Notes whether a tool is at work, and how it has come to rest if none is.
    fn watch_work(&mut self, rest: Rest) {
        if self.turn.is_none() {
            return;
        }
        let working: Vec<&Call> =
            self.calls.iter().filter(|(id, call)| self.works(id, call)).map(|(_, call)| call).collect();
        // Some agents ask about a tool that they do not announce.
        let is_hidden = self.granted.iter().any(|id| !self.calls.contains_key(id) && !self.settled.contains(id));
        let is_at_work = is_hidden || !working.is_empty();
        let claim = |call: &&Call| (call.title(), call.is_command(), call.writes(&self.root));
        let claims: Vec<_> = working.iter().map(claim).collect();
        match (std::mem::replace(&mut self.is_at_work, is_at_work), is_at_work) {
            (false, true) => {
                timing(&self.timeline).work(self.at);
                let claims = if claims.is_empty() { vec![("tool".to_owned(), true, Vec::new())] } else { claims };
                claims.into_iter().for_each(|(title, is_command, paths)| self.claim(title, is_command, paths));
                let watch = Arc::clone(&self.watch);
                self.keeper.run(move |workspace| watching(&watch).mark(workspace));
            }
            (true, false) => {
                timing(&self.timeline).rest(self.at, rest);
                self.settle_watch();
            }
            (false, false) | (true, true) => {}
        }
    }

    /// The agent speaks: what was allowed and never announced is over.
    pub(super) fn heard(&mut self) {
        if !self.granted.is_empty() {
            self.granted.retain(|id| self.calls.contains_key(id));
            self.watch_work(Rest::Ended);
        }
        timing(&self.timeline).hear(self.at);
    }

    /// Nothing is at work any more.
    pub(super) fn forget_work(&mut self) {
        self.is_at_work = false;
        self.questions.clear();
        self.granted.clear();
        self.refused.clear();
    }

    fn claim(&self, title: String, is_command: bool, paths: Vec<WorkspacePath>) {
        let watch = Arc::clone(&self.watch);
        self.keeper.run(move |workspace| watching(&watch).claim(workspace, &title, is_command, &paths));
    }

    fn settle_watch(&self) {
        let watch = Arc::clone(&self.watch);
        self.keeper.run(move |workspace| watching(&watch).settle(workspace));
    }

    fn settle(&mut self, id: &str, call: &Call, outcome: Outcome) {
        self.settled.insert(id.to_owned());
        self.granted.remove(id);
        self.began.retain(|one| one != id);
        self.flush();
        let entries = call_entries(self, id, call, outcome);
        self.append(entries);
    }

    /// Calls that will not come to their end any more.
    pub(super) fn interrupt_calls(&mut self) {
        for id in std::mem::take(&mut self.began) {
            if let Some(call) = self.calls.remove(&id) {
                let entries = call_entries(self, &id, &call, Outcome::Interrupted);
                self.append(entries);
            }
        }
    }
}
