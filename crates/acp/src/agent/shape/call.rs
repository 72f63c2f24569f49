//! Tool calls: of what kind they are, where they look and write, and what they change.

use std::path::{Path, PathBuf};

use retake_agent::contract::Question;
use retake_agent::diff::{FileDiff, LineKind};
use retake_agent::rewind_document::Bytes;
use retake_engine::id::EntryId;
use retake_engine::session::entry::{CallId, Details, Outcome, Part};
use serde_json::{Map, Value, json};

use super::content;
use crate::agent::Version;

/// Longest text of a result that is sent: editors draw all of it.
const MAX_TEXT: usize = 256 * 1024;

/// A call as the model made it.
#[derive(Clone, Debug)]
pub(crate) struct ModelCall {
    /// Its id on the wire: the model's own are unique within an answer only.
    pub(crate) id: String,
    name: String,
    arguments: Value,
    root: PathBuf,
}

/// The id of a call on the wire.
pub(crate) fn id(reply: EntryId, call: &CallId) -> String {
    format!("{reply}:{call}")
}

impl ModelCall {
    /// The call `call` of the answer `reply`.
    pub(crate) fn new(root: &Path, reply: EntryId, call: &CallId, name: &str, arguments: &str) -> Self {
        // What is no JSON is shown as it is.
        let arguments = serde_json::from_str(arguments).unwrap_or_else(|_| Value::from(arguments));
        Self { id: id(reply, call), name: name.to_owned(), arguments, root: root.to_owned() }
    }

    fn argument(&self, name: &str) -> Option<&str> {
        self.arguments.get(name).and_then(Value::as_str)
    }

    fn kind(&self) -> &'static str {
        match self.name.as_str() {
            "read_file" => "read",
            "write_file" | "edit_file" | "multi_edit" => "edit",
            "move_file" => "move",
            "delete_file" => "delete",
            "list_dir" | "glob" | "grep" => "search",
            "todo" | "checkpoint" | "rewind" => "think",
            name if name == "bash" || name.contains("job") => "execute",
            _ => "other",
        }
    }

    /// In a few words, before anybody has said them better.
    fn title(&self) -> String {
        let object = ["path", "command", "pattern", "from", "goal"].iter().find_map(|name| self.argument(name));
        match object.and_then(|object| object.lines().next()) {
            Some(object) => format!("{}: {object}", self.name),
            None => self.name.clone(),
        }
    }

    fn absolute(&self, path: &str) -> String {
        self.root.join(path).to_string_lossy().into_owned()
    }

    fn locations(&self, lines: &[u32]) -> Vec<Value> {
        let paths = ["path", "from", "to"].iter().filter_map(|name| self.argument(name));
        let offset = self.arguments.get("offset").and_then(Value::as_u64).filter(|_| self.kind() == "read");
        let line = lines.first().copied().map(u64::from).or(offset);
        paths
            .map(|path| {
                let mut location = json!({ "path": self.absolute(path) });
                if let Some(line) = line {
                    location["line"] = line.into();
                }
                location
            })
            .collect()
    }

    /// What it changes, as far as its arguments tell.
    fn changes(&self, version: Version) -> Vec<Value> {
        let Some(path) = self.argument("path").map(|path| self.absolute(path)) else { return self.moves(version) };
        let replacement = |edit: &Value| {
            let text = |name: &str| edit.get(name).and_then(Value::as_str).map(str::to_owned);
            Some((text("old")?, text("new")?))
        };
        let texts: Vec<(Option<String>, String)> = match self.name.as_str() {
            "write_file" => self.argument("content").map(|content| (None, content.to_owned())).into_iter().collect(),
            "edit_file" => replacement(&self.arguments).map(|(old, new)| (Some(old), new)).into_iter().collect(),
            "multi_edit" => {
                let edits = self.arguments.get("edits").and_then(Value::as_array);
                edits.into_iter().flatten().filter_map(replacement).map(|(old, new)| (Some(old), new)).collect()
            }
            "delete_file" if version == Version::V2 => {
                return vec![json!({ "type": "diff", "changes": [{ "operation": "delete", "path": path }] })];
            }
            _ => return Vec::new(),
        };
        match version {
            Version::V1 => texts.iter().map(|(old, new)| diff_v1(&path, old.as_deref(), new)).collect(),
            Version::V2 if texts.is_empty() => Vec::new(),
            Version::V2 => vec![json!({ "type": "diff", "changes": [{ "operation": "modify", "path": path }] })],
        }
    }

    fn moves(&self, version: Version) -> Vec<Value> {
        let (Some(from), Some(to), Version::V2) = (self.argument("from"), self.argument("to"), version) else {
            return Vec::new();
        };
        let (from, to) = (self.absolute(from), self.absolute(to));
        vec![json!({ "type": "diff", "changes": [{ "operation": "move", "oldPath": from, "path": to }] })]
    }

    /// As it is announced.
    pub(crate) fn announced(&self, version: Version) -> Value {
        json!({
            "sessionUpdate": announcement(version),
            "toolCallId": self.id,
            "title": self.title(),
            "name": self.name,
            "kind": self.kind(),
            "status": "pending",
            "content": self.changes(version),
            "locations": self.locations(&[]),
            "rawInput": self.arguments,
        })
    }

    /// What came of it.
    pub(crate) fn result(
        &self,
        version: Version,
        title: &str,
        outcome: Outcome,
        parts: &[Part],
        details: Option<&Details>,
    ) -> Map<String, Value> {
        let lines = match details {
            Some(Details::Edited { lines }) => lines.as_slice(),
            _ => &[],
        };
        let mut update = Map::new();
        // What it changes was told when it was announced, or better when it was asked about, and stays.
        if outcome != Outcome::Done || self.changes(version).is_empty() {
            let short: Vec<Part> = parts.iter().map(shortened).collect();
            let blocks = content::blocks(&self.root, &short).into_iter();
            let content: Vec<Value> = blocks.map(|block| json!({ "type": "content", "content": block })).collect();
            update.insert("content".into(), content.into());
        }
        update.insert("toolCallId".into(), self.id.clone().into());
        update.insert("title".into(), title.into());
        update.insert("status".into(), status(version, outcome).into());
        update.insert("locations".into(), self.locations(lines).into());
        update
    }

    /// As it is asked about: with what it would write, line by line.
    pub(crate) fn asked(&self, version: Version, question: &Question) -> Value {
        let mut content = diffs(version, &self.root, &question.diffs);
        if content.is_empty() {
            content = self.changes(version);
        }
        if let Some(detail) = &question.detail {
            content.push(json!({ "type": "content", "content": content::text(detail) }));
        }
        json!({
            "toolCallId": self.id,
            "title": question.title,
            "kind": self.kind(),
            "status": "pending",
            "content": content,
            "locations": self.locations(&[]),
            "rawInput": self.arguments,
        })
    }
}

/// How a call that has not been told of before is.
pub(crate) fn announcement(version: Version) -> &'static str {
    match version {
        Version::V1 => "tool_call",
        Version::V2 => "tool_call_update",
    }
}

fn status(version: Version, outcome: Outcome) -> &'static str {
    match (outcome, version) {
        (Outcome::Done, _) => "completed",
        (Outcome::Interrupted, Version::V2) => "cancelled",
        (Outcome::Failed | Outcome::Denied | Outcome::Interrupted, _) => "failed",
    }
}

fn shortened(part: &Part) -> Part {
    match part {
        Part::Text { text } | Part::Paste { text } if text.len() > MAX_TEXT => {
            let start = text.ceil_char_boundary(text.len() - MAX_TEXT);
            Part::text(format!("[… {start} bytes before this …]\n{}", &text[start..]))
        }
        other => other.clone(),
    }
}

fn diff_v1(path: &str, old: Option<&str>, new: &str) -> Value {
    json!({ "type": "diff", "path": path, "oldText": old, "newText": new })
}

/// Differences as content: each changed place by itself, with what is around it.
pub(crate) fn diffs(version: Version, root: &Path, files: &[FileDiff]) -> Vec<Value> {
    let path_of = |file: &FileDiff| match &file.path {
        Bytes::Text(path) => Some((path.clone(), root.join(path).to_string_lossy().into_owned())),
        // No client can open it.
        Bytes::Base64 { .. } => None,
    };
    let shown = files.iter().filter_map(|file| path_of(file).map(|(short, path)| (file, short, path)));
    match version {
        Version::V1 => shown.flat_map(|(file, _, path)| hunks_v1(file, &path)).collect(),
        Version::V2 => shown.map(|(file, short, path)| patch_v2(file, &short, &path)).collect(),
    }
}

fn hunks_v1(file: &FileDiff, path: &str) -> Vec<Value> {
    let is_new = file.removed == 0 && file.hunks.iter().all(|hunk| hunk.lines.iter().all(is_added));
    file.hunks
        .iter()
        .map(|hunk| {
            let side = |gone: LineKind| {
                let lines = hunk.lines.iter().filter(move |line| line.kind != gone);
                lines.map(|line| format!("{}\n", line.text)).collect::<String>()
            };
            diff_v1(path, (!is_new).then(|| side(LineKind::Added)).as_deref(), &side(LineKind::Removed))
        })
        .collect()
}

fn is_added(line: &retake_agent::diff::DiffLine) -> bool {
    line.kind == LineKind::Added
}

fn patch_v2(file: &FileDiff, short: &str, path: &str) -> Value {
    let mut patch = format!("diff --git a/{short} b/{short}\n--- a/{short}\n+++ b/{short}\n");
    for hunk in &file.hunks {
        let count = |gone: LineKind| hunk.lines.iter().filter(|line| line.kind != gone).count();
        let (before, after) = (count(LineKind::Added), count(LineKind::Removed));
        patch.push_str(&format!("@@ -{},{before} +{},{after} @@\n", hunk.start.0, hunk.start.1));
        for line in &hunk.lines {
            let sign = match line.kind {
                LineKind::Same => ' ',
                LineKind::Added => '+',
                LineKind::Removed => '-',
            };
            patch.push_str(&format!("{sign}{}\n", line.text));
        }
    }
    let mut diff = json!({ "type": "diff", "changes": [{ "operation": "modify", "path": path }] });
    if !file.hunks.is_empty() && file.left_out == 0 {
        diff["patch"] = json!({ "format": "git_patch", "text": patch });
    }
    diff
}
