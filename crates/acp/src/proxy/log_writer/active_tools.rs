//! Which tools of the inner agent are running, by its updates and its requests to the client.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use retake_engine::WorkspacePath;
use retake_engine::session::entry::Outcome;
use retake_engine::window::Runs;
use serde_json::Value;
use tokio::sync::oneshot;

use super::super::tool_timeline::{Rest, UndeclaredPaths, timing};
use super::super::turn_window::ToolWork;
use super::tool_call::{AgentQuestion, ToolCall};
use super::{LogWriter, call_entries, watching};

/// What a question is called where tools are told apart.
fn question(id: &Value) -> String {
    format!("asked {id}")
}

impl LogWriter {
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
        let call = call.or_insert_with(|| told.cloned().unwrap_or_else(|| ToolCall::new(since)));
        match update["sessionUpdate"].as_str() {
            Some("tool_call_content_chunk") => call.add(&update["content"]),
            _ => call.merge(update),
        }
        let (work, may_write) = (call.work(id, &self.places), call.may_write());
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
            timing(&self.timeline).late(id, self.at, beside, &work.paths);
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
        let (watch, ended) = (Arc::clone(&self.watch), id.to_owned());
        self.workspace_thread.run(move |_| watching(&watch).forget(&ended));
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
            self.workspace_thread.run(move |_| {
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
        let mut about = self.calls.get(&call).cloned().unwrap_or_else(|| ToolCall::new(since));
        let status = about.fields.get("status").cloned();
        about.merge(told);
        if let Some(known) = self.calls.get_mut(&call) {
            known.clone_from(&about);
            // Whether it runs is not what is told here.
            known.fields.extend(status.map(|status| ("status".to_owned(), status)));
        }
        if !self.runs(&call) {
            let (watch, asked) = (Arc::clone(&self.watch), call.clone());
            self.workspace_thread.run(move |workspace| watching(&watch).retract(workspace, &asked));
        }
        let work = about.work(&call, &self.places);
        if !work.paths.is_empty() && self.turn.is_some() {
            self.claim(work);
        }
        self.questions.insert(id.to_string(), AgentQuestion::Permission { call, about, yes });
        self.watch_work(Rest::Waits);
    }

    /// The client has answered it.
    pub(in super::super) fn answered(&mut self, id: &Value, answer: Option<&Value>) {
        match self.questions.remove(&id.to_string()) {
            None => return,
            Some(AgentQuestion::Write) => timing(&self.timeline).rest(&question(id), self.at, Rest::Waits),
            Some(AgentQuestion::Permission { call, about, yes }) => {
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
        let paths: Vec<WorkspacePath> = self.places.below(path).into_iter().collect();
        let Some(named) = paths.first() else { return };
        let tool = format!("write {}", named.display());
        timing(&self.timeline).announced();
        timing(&self.timeline).write_begins(&question(id), self.at, &paths);
        self.questions.insert(id.to_string(), AgentQuestion::Write);
        self.claim(ToolWork { id: question(id), tool, runs: Runs::Edits, paths, since: self.at.floor() });
    }

    /// Whether a call was said to run, and not only to be about to.
    fn runs(&self, id: &str) -> bool {
        self.calls.get(id).is_some_and(|call| call.text("status") == Some("in_progress"))
    }

    fn is_working(&self, id: &str) -> bool {
        self.calls.get(id).is_some_and(|call| self.works(id, call))
    }

    /// Whether a call that has not ended is at work.
    fn works(&self, id: &str, call: &ToolCall) -> bool {
        let asks = |about: Option<&str>| {
            let mut calls = self.questions.values().filter_map(|question| match question {
                AgentQuestion::Permission { call, .. } => Some(call),
                AgentQuestion::Write => None,
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
        let told = |(id, call): (&String, &ToolCall)| {
            let work = call.work(id, &self.places);
            let beside = call.beside(&work.paths);
            (id.clone(), (work, beside))
        };
        let now: HashMap<String, (ToolWork, UndeclaredPaths)> = announced.chain(hidden).map(told).collect();
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
            (false, true) => self.workspace_thread.run(move |workspace| watching(&watch).mark(workspace)),
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

    fn claim(&self, work: ToolWork) {
        let watch = Arc::clone(&self.watch);
        self.workspace_thread.run(move |workspace| watching(&watch).claim(workspace, &work));
    }

    fn settle_watch(&self) {
        let watch = Arc::clone(&self.watch);
        let told = timing(&self.timeline).told();
        self.workspace_thread.run(move |workspace| watching(&watch).settle(workspace, told));
    }

    fn settle(&mut self, id: &str, call: &ToolCall, outcome: Outcome) {
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
