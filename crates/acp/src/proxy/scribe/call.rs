//! Tool calls of the inner agent, put together from what it says of them.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use retake_engine::WorkspacePath;
use retake_engine::session::entry::{Outcome, Part};
use serde_json::{Map, Value};

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
        let (paths, outcome) = (call.writes(&self.root), call.outcome());
        if !known || outcome.is_some() || !paths.is_empty() {
            let (watch, title) = (Arc::clone(&self.watch), call.title());
            self.keeper.run(move |workspace| watching(&watch).claim(workspace, &title, &paths));
        }
        if let Some((outcome, call)) = outcome.and_then(|outcome| Some((outcome, self.calls.remove(id)?))) {
            self.settle(id, &call, outcome);
        }
    }

    /// The inner agent has the client write a file.
    pub(in super::super) fn declare(&mut self, path: &str) {
        self.tools.fetch_add(1, Ordering::Relaxed);
        let Some(path) = below(&self.root, path) else { return };
        let watch = Arc::clone(&self.watch);
        self.keeper.run(move |workspace| {
            watching(&watch).claim(workspace, &format!("write {}", path.display()), std::slice::from_ref(&path));
        });
    }

    fn settle(&mut self, id: &str, call: &Call, outcome: Outcome) {
        self.settled.insert(id.to_owned());
        self.began.retain(|one| one != id);
        self.flush();
        let entries = call_entries(self, id, call, outcome);
        self.append(entries);
        if self.calls.is_empty() {
            let watch = Arc::clone(&self.watch);
            self.keeper.run(move |workspace| watching(&watch).settle(workspace));
        }
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
