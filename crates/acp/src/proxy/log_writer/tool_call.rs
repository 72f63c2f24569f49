//! Tool calls of the inner agent, merged from its updates.

use std::collections::BTreeSet;
use std::path::PathBuf;

use retake_engine::WorkspacePath;
use retake_engine::session::entry::{Outcome, Part};
use retake_engine::window::{FileTime, Runs};
use serde_json::{Map, Value};

use super::super::tool_timeline::UndeclaredPaths;
use super::super::turn_window::ToolWork;
use super::raw_input;

/// Text of a result that is kept; the rest is in the inner agent's own history.
const MAX_RESULT: usize = 256 * 1024;

/// A call as it is known so far: all fields of all updates, the later ones in the place of the earlier.
#[derive(Clone, Debug)]
pub(super) struct ToolCall {
    /// It has not been at work before.
    since: FileTime,
    /// Paths that it has named: what it says later does not take that back.
    named: BTreeSet<String>,
    /// Paths in what it was given by the model.
    given: BTreeSet<String>,
    pub(super) fields: Map<String, Value>,
    /// Bytes that came piece by piece.
    added: usize,
}

/// Something that the agent asks the client.
#[derive(Debug)]
pub(super) enum AgentQuestion {
    /// Whether a call may run; what is said of it, and the options that mean yes.
    Permission { call: String, about: ToolCall, yes: Vec<String> },
    /// To write a file.
    Write,
}

impl ToolCall {
    pub(super) fn new(since: FileTime) -> Self {
        Self { since, named: BTreeSet::new(), given: BTreeSet::new(), fields: Map::new(), added: 0 }
    }

    pub(super) fn merge(&mut self, update: &Value) {
        let Value::Object(fields) = update else { return };
        for (key, value) in fields {
            match key.as_str() {
                "sessionUpdate" => {}
                // Null leaves a field as it is.
                _ if value.is_null() => {}
                _ => drop(self.fields.insert(key.clone(), value.clone())),
            }
        }
        for key in ["locations", "content"] {
            update[key].as_array().into_iter().flatten().for_each(|one| self.note_named(one));
        }
        self.given.extend(raw_input::paths(&update["rawInput"]));
    }

    fn note_named(&mut self, place: &Value) {
        self.named.extend(place["path"].as_str().map(str::to_owned));
    }

    /// A piece of content more, as long as it is kept.
    pub(super) fn add(&mut self, content: &Value) {
        self.note_named(content);
        self.added += content["content"]["text"].as_str().map_or(0, str::len);
        if self.added > MAX_RESULT {
            return;
        }
        if let Value::Array(all) = self.fields.entry("content").or_insert_with(|| Value::Array(Vec::new())) {
            all.push(content.clone());
        }
    }

    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.fields.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    /// How it went, if it has ended.
    pub(super) fn outcome(&self) -> Option<Outcome> {
        match self.text("status")? {
            "completed" => Some(Outcome::Done),
            "failed" => Some(Outcome::Failed),
            "cancelled" => Some(Outcome::Interrupted),
            _ => None,
        }
    }

    /// What it says that it is. `other` is what agents say that do not know, and so counts for nothing where an edit is shown.
    fn kind(&self) -> Option<&str> {
        self.text("kind").filter(|kind| *kind != "other" || !self.shows_edit())
    }

    /// Whether it shows that it edits files, whatever it says that it is.
    fn shows_edit(&self) -> bool {
        let contents = self.fields.get("content").and_then(Value::as_array);
        let shows_diff = contents.into_iter().flatten().any(|content| content["type"] == "diff");
        let input = self.raw_input();
        !raw_input::has_command(input) && (shows_diff || !self.given.is_empty() && raw_input::has_text(input))
    }

    fn raw_input(&self) -> &Value {
        self.fields.get("rawInput").unwrap_or(&Value::Null)
    }

    /// Whether it may change files, as far as it says.
    pub(super) fn may_write(&self) -> bool {
        !matches!(self.kind(), Some("read" | "search" | "think" | "fetch" | "switch_mode"))
    }

    /// What it does, as far as it says. One that says where it writes and not what it is edits, unless it was given a command.
    fn runs(&self, paths: &[WorkspacePath]) -> Runs {
        match self.kind() {
            Some("edit" | "delete" | "move" | "read" | "search" | "think" | "fetch" | "switch_mode") => Runs::Edits,
            None if !paths.is_empty() && !raw_input::has_command(self.raw_input()) => Runs::Edits,
            _ => Runs::Command,
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

    /// What it does, as far as it says.
    pub(super) fn work(&self, id: &str, places: &Places) -> ToolWork {
        let paths = self.writes(places);
        ToolWork { id: id.to_owned(), tool: self.title(), runs: self.runs(&paths), paths, since: self.since }
    }

    /// What it may change beside `paths`, which it declares.
    pub(super) fn beside(&self, paths: &[WorkspacePath]) -> UndeclaredPaths {
        let is_whole = match self.kind() {
            Some("edit" | "delete") => !paths.is_empty(),
            // From somewhere to somewhere.
            Some("move") => self.named.union(&self.given).count() > 1 && !paths.is_empty(),
            // Whoever says where, and not what, may do more.
            None if !paths.is_empty() => false,
            _ => return UndeclaredPaths::Anything,
        };
        if is_whole { UndeclaredPaths::Nothing } else { UndeclaredPaths::NotYetDeclared }
    }

    /// Paths in the workspace that it says it writes.
    fn writes(&self, places: &Places) -> Vec<WorkspacePath> {
        let kind = self.kind();
        if !matches!(kind, None | Some("edit" | "delete" | "move")) {
            return Vec::new();
        }
        // A tool that does not say what it is may have been given a path only to read it.
        let given = self.given.iter().filter(|_| kind.is_some() || self.shows_edit());
        let named: BTreeSet<&String> = self.named.iter().chain(given).collect();
        let paths: BTreeSet<WorkspacePath> = named.into_iter().flat_map(|path| places.below(path)).collect();
        let mut paths: Vec<WorkspacePath> = paths.into_iter().collect();
        if !matches!(kind, Some("delete" | "move")) {
            // Nobody writes to a directory: that it is named says nothing of what is in it.
            paths.retain(|path| !places.root.join(path.to_path()).is_dir());
        }
        paths
    }
}

/// Where paths of a session are.
#[derive(Clone, Debug)]
pub(in super::super) struct Places {
    /// The workspace.
    pub(in super::super) root: PathBuf,
    /// Where relative paths begin.
    pub(in super::super) cwd: PathBuf,
}

impl Places {
    /// What is changed in the workspace by whoever writes to `path`: it may lead through links, and be one.
    pub(super) fn below(&self, path: &str) -> BTreeSet<WorkspacePath> {
        use std::os::unix::ffi::OsStrExt;
        let path = self.cwd.join(path.strip_prefix("file://").unwrap_or(path));
        let there = path.ancestors().skip(1).find_map(|place| Some((place, place.canonicalize().ok()?)));
        let place = there.and_then(|(there, real)| Some(real.join(path.strip_prefix(there).ok()?)));
        let places = place.into_iter().chain(path.canonicalize().ok());
        let in_workspace = |place: PathBuf| {
            let below = place.strip_prefix(&self.root).ok()?.as_os_str().as_bytes();
            WorkspacePath::parse(below).ok()
        };
        places.filter_map(in_workspace).collect()
    }
}
