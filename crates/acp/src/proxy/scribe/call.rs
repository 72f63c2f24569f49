//! Tool calls of the inner agent, put together from what it says of them.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use retake_engine::session::entry::{Outcome, Part};
use retake_engine::{FileTime, WorkspacePath};
use serde_json::{Map, Value};
use tokio::sync::oneshot;

use super::super::timeline::{Beside, Rest, timing};
use super::super::watch::Work;
use super::{Scribe, call_entries, watching};

/// Text of a result that is kept; the rest is in the inner agent's own history.
const MAX_RESULT: usize = 256 * 1024;

/// A call as it is known so far: all fields of all updates, the later ones in the place of the earlier.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// It has not been at work before.
    since: FileTime,
    /// Paths that it has named: what it says later does not take that back.
    named: BTreeSet<String>,
    fields: Map<String, Value>,
    /// Bytes that came piece by piece.
    added: usize,
}

/// Something that the agent asks the client.
#[derive(Debug)]
pub(super) enum Question {
    /// Whether a call may run; what is said of it, and the options that mean yes.
    Permission { call: String, about: Call, yes: Vec<String> },
    /// To write a file.
    Write,
}

impl Call {
    fn new(since: FileTime) -> Self {
        Self { since, named: BTreeSet::new(), fields: Map::new(), added: 0 }
    }

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
        for key in ["locations", "content"] {
            update[key].as_array().into_iter().flatten().for_each(|one| self.note_named(one));
        }
    }

    fn note_named(&mut self, place: &Value) {
        self.named.extend(place["path"].as_str().map(str::to_owned));
    }

    /// A piece of content more, as long as it is kept.
    fn add(&mut self, content: &Value) {
        self.note_named(content);
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

    /// What it does, as far as it says.
    fn work(&self, root: &Path) -> Work {
        Work { tool: self.title(), is_command: self.is_command(), paths: self.writes(root), since: self.since }
    }

    /// What it may change beside `paths`, which it declares.
    fn beside(&self, paths: &[WorkspacePath]) -> Beside {
        let is_whole = match self.text("kind") {
            Some("edit" | "delete") => !paths.is_empty(),
            // From somewhere to somewhere.
            Some("move") => self.named.len() > 1 && !paths.is_empty(),
            // Whoever says where, and not what, may do more.
            None if !paths.is_empty() => false,
            _ => return Beside::Anything,
        };
        if is_whole { Beside::Nothing } else { Beside::NotYetDeclared }
    }

    /// Paths in the workspace that it says it writes.
    fn writes(&self, root: &Path) -> Vec<WorkspacePath> {
        let kind = self.text("kind");
        if !matches!(kind, None | Some("edit" | "delete" | "move")) {
            return Vec::new();
        }
        let mut paths: Vec<_> = self.named.iter().flat_map(|path| below(root, path)).collect();
        if !matches!(kind, Some("delete" | "move")) {
            // Nobody writes to a directory: that it is named says nothing of what is in it.
            paths.retain(|path| !root.join(path.to_path()).is_dir());
        }
        paths
    }
}

/// What a question is called where tools are told apart.
fn question(id: &Value) -> String {
    format!("asked {id}")
}

/// What is changed in the workspace by whoever writes to `path`: it may lead through links, and be one.
fn below(root: &Path, path: &str) -> BTreeSet<WorkspacePath> {
    use std::os::unix::ffi::OsStrExt;
    let path = root.join(path.strip_prefix("file://").unwrap_or(path));
    let there = path.ancestors().skip(1).find_map(|place| Some((place, place.canonicalize().ok()?)));
    let place = there.and_then(|(there, real)| Some(real.join(path.strip_prefix(there).ok()?)));
    let places = place.into_iter().chain(path.canonicalize().ok());
    let named = |place: PathBuf| WorkspacePath::parse(place.strip_prefix(root).ok()?.as_os_str().as_bytes()).ok();
    places.filter_map(named).collect()
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
        let since = timing(&self.timeline).last_word(self.at);
        // What was told when the user was asked counts.
        let told = self.granted.get(id);
        let call = self.calls.entry(id.to_owned());
        let call = call.or_insert_with(|| told.cloned().unwrap_or_else(|| Call::new(since)));
        match update["sessionUpdate"].as_str() {
            Some("tool_call_content_chunk") => call.add(&update["content"]),
            _ => call.merge(update),
        }
        let (work, may_write) = (call.work(&self.root), call.may_write());
        let beside = call.beside(&work.paths);
        timing(&self.timeline).reach(id, beside, &work.paths);
        let Some(outcome) = call.outcome() else {
            let was_working = self.working.contains(id);
            self.watch_work(Rest::Waits);
            if was_working && self.working.contains(id) && !work.paths.is_empty() {
                self.claim(work);
            }
            return timing(&self.timeline).hear(self.at);
        };
        let was_late = !known && may_write && !self.refused.contains(id);
        if was_late {
            timing(&self.timeline).late(id, self.at, beside == Beside::Nothing, &work.paths);
        }
        if was_late || self.is_working(id) {
            self.claim(work);
        }
        if let Some(call) = self.calls.remove(id) {
            self.settle(id, &call, outcome);
        }
        match was_late && self.working.is_empty() {
            true => self.settle_watch(),
            false => self.watch_work(Rest::Ended),
        }
        timing(&self.timeline).hear(self.at);
    }

    /// The inner agent asks the client something. `captured` is told when what that is about is captured.
    pub(in super::super) fn asked(
        &mut self,
        id: &Value,
        method: &str,
        params: &Value,
        captured: Option<oneshot::Sender<()>>,
    ) {
        match method {
            "fs/write_text_file" => self.declare(id, params["path"].as_str().unwrap_or_default()),
            "session/request_permission" => self.permission(id, params),
            _ => {}
        }
        if let Some(captured) = captured {
            self.keeper.run(move |_| {
                captured.send(()).ok();
            });
        }
        timing(&self.timeline).hear(self.at);
    }

    /// The user is asked whether a call may run.
    fn permission(&mut self, id: &Value, params: &Value) {
        let told = [&params["toolCall"], &params["subject"]["toolCall"], &params["subject"]];
        let told = told.into_iter().find(|call| call["toolCallId"].is_string()).unwrap_or(&Value::Null);
        let call = told["toolCallId"].as_str().unwrap_or_default().to_owned();
        let is_yes = |option: &&Value| option["kind"].as_str().is_some_and(|kind| kind.starts_with("allow"));
        let options = params["options"].as_array().into_iter().flatten().filter(is_yes);
        let yes = options.filter_map(|option| option["optionId"].as_str()).map(str::to_owned).collect();
        let since = timing(&self.timeline).last_word(self.at);
        let mut about = self.calls.get(&call).cloned().unwrap_or_else(|| Call::new(since));
        let status = about.fields.get("status").cloned();
        about.merge(told);
        if let Some(known) = self.calls.get_mut(&call) {
            known.clone_from(&about);
            // Whether it runs is not what is told here.
            known.fields.extend(status.map(|status| ("status".to_owned(), status)));
        }
        let work = about.work(&self.root);
        if !work.paths.is_empty() && self.turn.is_some() {
            self.claim(work);
        }
        self.questions.insert(id.to_string(), Question::Permission { call, about, yes });
        self.watch_work(Rest::Waits);
    }

    /// The client has answered it.
    pub(in super::super) fn answered(&mut self, id: &Value, answer: Option<&Value>) {
        match self.questions.remove(&id.to_string()) {
            None => return,
            Some(Question::Write) => timing(&self.timeline).rest(&question(id), self.at, Rest::Waits),
            Some(Question::Permission { call, about, yes }) => {
                let chosen = answer.and_then(|answer| answer["outcome"]["optionId"].as_str());
                match chosen.is_some_and(|chosen| yes.iter().any(|yes| yes == chosen)) {
                    true => drop(self.granted.insert(call, about)),
                    false => drop(self.refused.insert(call)),
                }
            }
        }
        // Nothing that waited for this was at work before.
        timing(&self.timeline).answered(self.at);
        self.watch_work(Rest::Waits);
    }

    /// The inner agent has the client write a file.
    fn declare(&mut self, id: &Value, path: &str) {
        self.tools.fetch_add(1, Ordering::Relaxed);
        let paths: Vec<WorkspacePath> = below(&self.root, path).into_iter().collect();
        let Some(named) = paths.first() else { return };
        let tool = format!("write {}", named.display());
        timing(&self.timeline).announced();
        timing(&self.timeline).write_begins(&question(id), self.at, &paths);
        self.questions.insert(id.to_string(), Question::Write);
        self.claim(Work { tool, is_command: false, paths, since: self.at.floor() });
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
            _ if self.granted.contains_key(id) => true,
            Some("in_progress") => true,
            Some("paused") => false,
            _ => !asks(None),
        };
        runs && call.may_write() && !self.refused.contains(id) && !asks(Some(id))
    }

    /// Notes which tools are at work, and how those came to rest that are not any more.
    fn watch_work(&mut self, rest: Rest) {
        if self.turn.is_none() {
            return;
        }
        let announced = self.calls.iter().filter(|(id, call)| self.works(id, call));
        // Some agents ask about a tool that they do not announce.
        let is_hidden = |id: &String| !self.calls.contains_key(id) && !self.settled.contains(id);
        let hidden = self.granted.iter().filter(|(id, _)| is_hidden(id));
        let told = |(id, call): (&String, &Call)| {
            let work = call.work(&self.root);
            let beside = call.beside(&work.paths);
            (id.clone(), (work, beside))
        };
        let now: HashMap<String, (Work, Beside)> = announced.chain(hidden).map(told).collect();
        let before = std::mem::replace(&mut self.working, now.keys().cloned().collect());
        let (was_at_work, is_at_work) = (!before.is_empty(), !now.is_empty());
        for id in before.iter().filter(|id| !now.contains_key(*id)) {
            timing(&self.timeline).rest(id, self.at, rest);
        }
        for (id, (work, beside)) in now.into_iter().filter(|(id, _)| !before.contains(id)) {
            timing(&self.timeline).work(&id, self.at, beside, &work.paths);
            self.claim(work);
        }
        let watch = Arc::clone(&self.watch);
        match (was_at_work, is_at_work) {
            (false, true) => self.keeper.run(move |workspace| watching(&watch).mark(workspace)),
            (true, false) => self.settle_watch(),
            (false, false) | (true, true) => {}
        }
    }

    /// The agent speaks: what was allowed and never announced is over.
    pub(super) fn heard(&mut self) {
        if !self.granted.is_empty() {
            self.granted.retain(|id, _| self.calls.contains_key(id));
            self.watch_work(Rest::Ended);
        }
        timing(&self.timeline).hear(self.at);
    }

    /// Nothing is at work any more.
    pub(super) fn forget_work(&mut self) {
        self.working.clear();
        self.questions.clear();
        self.granted.clear();
        self.refused.clear();
    }

    fn claim(&self, work: Work) {
        let watch = Arc::clone(&self.watch);
        self.keeper.run(move |workspace| watching(&watch).claim(workspace, &work));
    }

    fn settle_watch(&self) {
        let watch = Arc::clone(&self.watch);
        let told = timing(&self.timeline).told();
        self.keeper.run(move |workspace| watching(&watch).settle(workspace, told));
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
