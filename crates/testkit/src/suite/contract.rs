//! A door behind which the client contract is spoken, however its JSON gets there.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::{Change, ChangeOutcome, ChangeRefused, Consent, Goal, ShownMessage, TestClient, TurnEnded};
use crate::ScriptedModel;

/// A way that commands, answers and events of the contract take.
pub trait Contract {
    /// The model that the session asks.
    fn model(&self) -> &ScriptedModel;

    /// The workspace.
    fn root(&self) -> PathBuf;

    /// Has a command carried out: its reply, or the refusal.
    fn ask(&mut self, command: Value) -> Result<Value, Value>;

    /// The event that comes next.
    fn event(&mut self) -> Value;

    /// Everything, as a newcomer is told it.
    fn view(&mut self) -> Value;

    /// Goes over to another session of the workspace, which may be the same.
    fn enter(&mut self, session: &str);

    /// The process ends in good order, and another one opens the session.
    fn reload(&mut self);
}

/// A client that speaks the contract.
pub struct ByContract<C> {
    way: C,
    /// The prompt of the turn that was begun last.
    prompt: String,
    /// The call that is asked about.
    question: Value,
}

impl<C: Contract> ByContract<C> {
    /// One that comes this way.
    pub fn new(way: C) -> Self {
        Self { way, prompt: String::new(), question: Value::Null }
    }

    fn until(&mut self, kind: &str) -> Value {
        loop {
            let event = self.way.event();
            if event["type"] == kind {
                return event;
            }
        }
    }

    fn entries(&mut self) -> Vec<Value> {
        self.way.view()["entries"].as_array().cloned().unwrap_or_default()
    }

    fn goal(&mut self, change: &Change<'_>) -> Value {
        match change.goal {
            Goal::Before(entry) => json!({ "do": "rewind", "entry": entry, "scope": change.scope }),
            Goal::To(id) => {
                let is_prompt = |entry: &Value| entry["id"] == id && entry["type"] == "prompt";
                match self.entries().iter().any(is_prompt) {
                    true => json!({ "do": "keep_prompt", "prompt": id, "scope": change.scope }),
                    false => json!({ "do": "rewind", "entry": id, "scope": change.scope }),
                }
            }
            Goal::Undo => json!({ "do": "undo" }),
            Goal::Redo => json!({ "do": "redo" }),
        }
    }

    /// What a document tells, for a conversation that consists of `entries` up to where the document says that it ends.
    fn outcome(entries: &[Value], document: &Value) -> ChangeOutcome {
        let end = match &document["conversation"] {
            Value::Null => entries.len(),
            planned => entries.iter().position(|entry| entry["id"] == planned["to"]).map_or(0, |at| at + 1),
        };
        let last = entries[..end].iter().rfind(|entry| role(entry).is_some()).map(|entry| text_of(&entry["id"]));
        let draft = &document["conversation"]["draft"];
        let said = draft.as_array().filter(|parts| !parts.is_empty()).map(|parts| texts(parts));
        let mut outcome =
            ChangeOutcome { last, said, operation: document["operation"].is_string(), ..ChangeOutcome::default() };
        for file in document["files"].as_array().into_iter().flatten() {
            let list = match (file["status"].as_str(), file["action"].as_str()) {
                (Some("kept"), _) => &mut outcome.kept,
                (_, Some("delete")) => &mut outcome.deleted,
                _ => &mut outcome.restored,
            };
            list.push(text_of(&file["path"]));
        }
        let not_restored = document["not_restored"].as_array().into_iter().flatten();
        outcome.not_restored = not_restored.map(|one| text_of(&one["path"])).collect();
        outcome
    }
}

impl<C: Contract> TestClient for ByContract<C> {
    fn model(&self) -> &ScriptedModel {
        self.way.model()
    }

    fn root(&self) -> PathBuf {
        self.way.root()
    }

    fn session(&mut self) -> String {
        text_of(&self.way.view()["session"])
    }

    fn say(&mut self, text: &str) {
        let command = json!({ "type": "prompt", "parts": [{ "type": "text", "text": text }] });
        let said = self.way.ask(command).expect("it can be said");
        self.prompt = text_of(&said["prompt"]);
    }

    fn until_words(&mut self, text: &str) {
        let mut come = String::new();
        while !come.contains(text) {
            come += self.until("delta")["text"].as_str().expect("text");
        }
    }

    fn until_asked(&mut self) -> String {
        self.question = self.until("permission_asked")["question"].take();
        text_of(&self.question["title"])
    }

    fn answer(&mut self, answer: Consent) {
        let answer = match answer {
            Consent::Allow => json!({ "type": "allow" }),
            Consent::Reject => json!({ "type": "deny" }),
        };
        let command = json!({ "type": "answer", "call": self.question["call"], "answer": answer });
        self.way.ask(command).expect("it can be answered");
    }

    fn until_ended(&mut self) -> TurnEnded {
        loop {
            let event = self.way.event();
            if event["type"] == "permission_asked" {
                self.question = event["question"].clone();
                self.answer(Consent::Allow);
            }
            if event["type"] == "turn_ended" && event["prompt"] == self.prompt.as_str() {
                let cancelled = match event["reason"].as_str() {
                    Some("done") => false,
                    Some("interrupted") => true,
                    _ => panic!("{event:#}\n{:?}", self.model().complaints()),
                };
                return TurnEnded { prompt: self.prompt.clone(), cancelled };
            }
        }
    }

    fn cancel(&mut self) {
        self.way.ask(json!({ "type": "interrupt" })).expect("it can be stopped");
    }

    fn history(&mut self) -> Vec<ShownMessage> {
        let message = |entry: &Value| {
            let role = role(entry)?;
            let parts = if role == "user" { &entry["parts"] } else { &entry["blocks"] };
            let text = texts(parts.as_array().expect("a list"));
            (!text.is_empty()).then(|| ShownMessage { role, id: text_of(&entry["id"]), text })
        };
        self.entries().iter().filter_map(message).collect()
    }

    fn head(&mut self) -> Option<String> {
        let targets = self.way.ask(json!({ "type": "targets" })).expect("they are listed");
        targets["head"].as_str().map(str::to_owned)
    }

    fn change(&mut self, change: &Change<'_>) -> Result<ChangeOutcome, ChangeRefused> {
        let mut wanted = self.goal(change);
        wanted["on_conflict"] = change.on_conflict.into();
        let before = self.entries();
        let command = match change.dry_run {
            true => json!({ "type": "plan", "change": wanted }),
            false => json!({
                "type": "apply",
                "change": wanted,
                "head_seen": change.seen.map(|head| json!({ "head": head })),
                "running": if change.interrupt { "interrupt" } else { "refuse" },
            }),
        };
        let reply = self.way.ask(command).map_err(|refusal| ChangeRefused {
            reason: text_of(&refusal["reason"]),
            conflicts: paths(&refusal["document"]["conflicts"]),
        })?;
        let entries = if change.dry_run { before } else { self.entries() };
        Ok(Self::outcome(&entries, &reply["document"]))
    }

    fn edit(&mut self, prompt: &str, text: &str) {
        self.change(&Change::new(Goal::Before(prompt))).expect("it goes back");
        self.say(text);
    }

    fn fork(&mut self, before: Option<&str>) -> String {
        let end = || self.history().pop().expect("something was said").id;
        let entry = before.map_or_else(end, str::to_owned);
        let forked = self.way.ask(json!({ "type": "fork", "entry": entry })).expect("it is forked");
        text_of(&forked["session"])
    }

    fn enter(&mut self, session: &str) {
        self.way.enter(session);
    }

    fn reload(&mut self) {
        self.way.reload();
    }
}

/// Whose message an entry is, if it is one.
fn role(entry: &Value) -> Option<&'static str> {
    match entry["type"].as_str()? {
        "prompt" => Some("user"),
        "reply" => Some("agent"),
        _ => None,
    }
}

fn texts(parts: &[Value]) -> String {
    parts.iter().filter(|part| part["type"] == "text").filter_map(|part| part["text"].as_str()).collect()
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

fn paths(conflicts: &Value) -> Vec<String> {
    conflicts.as_array().into_iter().flatten().map(|one| text_of(&one["path"])).collect()
}
