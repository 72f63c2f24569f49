//! The scenarios of the test kit, over both versions of the protocol.

use std::path::PathBuf;

use retake_testkit::ScriptedModel;
use retake_testkit::suite::{Change, ChangeOutcome, ChangeRefused, Consent, Goal, ShownMessage, TestClient, TurnEnded};
use serde_json::{Value, json};

use crate::client::{Client, update};

mod version_1 {
    retake_testkit::scenarios!(open);

    fn open() -> super::Editor {
        super::Editor::speaking(1)
    }
}

mod version_2 {
    retake_testkit::scenarios!(open);

    fn open() -> super::Editor {
        super::Editor::speaking(2)
    }
}

struct Editor {
    client: Client,
    /// The request that began the turn that was begun last.
    turn: u64,
    /// The request that asks whether a call may run.
    question: Value,
}

impl Editor {
    fn speaking(version: u32) -> Self {
        Self { client: Client::start(version, true), turn: 0, question: Value::Null }
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.client.hang_up();
        }
    }
}

impl TestClient for Editor {
    fn model(&self) -> &ScriptedModel {
        &self.client.model
    }

    fn root(&self) -> PathBuf {
        self.client.root()
    }

    fn session(&mut self) -> String {
        self.client.session.clone()
    }

    fn say(&mut self, text: &str) {
        self.turn = self.client.say(text);
    }

    fn until_words(&mut self, text: &str) {
        let before = self.client.log.len();
        while !self.client.said_since(before).contains(text) {
            self.client.next();
        }
    }

    fn until_asked(&mut self) -> String {
        let is_question = |message: &Value| message["method"] == "session/request_permission";
        self.question = self.client.until(is_question).pop().unwrap();
        let asked = &self.question["params"];
        let call = if self.client.version == 1 { &asked["toolCall"] } else { &asked["subject"]["toolCall"] };
        call["title"].as_str().unwrap().to_owned()
    }

    fn answer(&mut self, answer: Consent) {
        let option = match answer {
            Consent::Allow => "allow",
            Consent::Reject => "reject",
        };
        self.client.choose(&self.question, option);
    }

    fn until_ended(&mut self) -> TurnEnded {
        let (stop, prompt) = self.client.end_of(self.turn);
        assert!(["end_turn", "cancelled"].contains(&stop.as_str()), "{stop}");
        TurnEnded { prompt, cancelled: stop == "cancelled" }
    }

    fn cancel(&mut self) {
        let params = self.client.with(json!({}));
        self.client.notify("session/cancel", &params);
    }

    fn history(&mut self) -> Vec<ShownMessage> {
        let roles = |role: &str| if role == "user" { "user" } else { "agent" };
        let messages = self.client.history().into_iter();
        messages.map(|(role, id, text)| ShownMessage { role: roles(&role), id, text }).collect()
    }

    fn head(&mut self) -> Option<String> {
        let params = self.client.with(json!({}));
        self.client.call("_session/rewind_points", params)["head"].as_str().map(str::to_owned)
    }

    fn change(&mut self, change: &Change<'_>) -> Result<ChangeOutcome, ChangeRefused> {
        let mut params = self.client.with(json!({
            "dryRun": change.dry_run,
            "interrupt": change.interrupt,
            "onConflict": change.on_conflict,
        }));
        if let Some(head) = change.seen {
            params["expectedHead"] = head.into();
        }
        let (method, target) = match change.goal {
            Goal::Before(id) => ("_session/rewind", Some(("beforeMessageId", id))),
            Goal::To(id) => ("_session/rewind", Some(("toMessageId", id))),
            Goal::Undo => ("_session/undo", None),
            Goal::Redo => ("_session/redo", None),
        };
        if let Some((name, id)) = target {
            params[name] = id.into();
            params["scope"] = change.scope.into();
        }
        let id = self.client.send(method, params);
        self.client.answer(id).map(|answer| outcome(&answer)).map_err(|error| refused(&error))
    }

    fn edit(&mut self, prompt: &str, text: &str) {
        let content = json!([{ "type": "text", "text": text }]);
        let params = self.client.with(json!({ "messageId": prompt, "content": content }));
        self.turn = self.client.send("_session/edit_prompt", params);
    }

    fn fork(&mut self, before: Option<&str>) -> String {
        match before {
            None => {
                let root = self.client.root();
                let params = self.client.with(json!({ "cwd": root, "mcpServers": [] }));
                let forked = self.client.call("session/fork", params)["sessionId"].as_str().unwrap().to_owned();
                self.client.until(|message| update(message) == Some("available_commands_update"));
                forked
            }
            // The protocol forks the end of a session only.
            Some(prompt) => {
                let told = self.client.command(&format!("/fork {prompt}"));
                told.split('`').nth(1).unwrap_or_else(|| panic!("no session: {told}")).to_owned()
            }
        }
    }

    fn enter(&mut self, session: &str) {
        self.client.session = session.to_owned();
        self.client.history();
    }

    fn reload(&mut self) {
        self.client.reconnect();
        self.client.history();
    }
}

fn outcome(answer: &Value) -> ChangeOutcome {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let paths = |list: &str| answer["files"][list].as_array().into_iter().flatten().filter_map(text).collect();
    assert_eq!(answer["files"]["failed"].as_array().map_or(0, Vec::len), 0, "{answer:#}");
    let not_restored = answer["notRestored"].as_array().into_iter().flatten();
    ChangeOutcome {
        last: text(&answer["lastMessageId"]),
        said: text(&answer["content"][0]["text"]),
        restored: paths("restored"),
        deleted: paths("deleted"),
        kept: paths("kept"),
        not_restored: not_restored.filter_map(|one| text(&one["path"])).collect(),
        operation: answer["operation"].is_string(),
    }
}

fn refused(error: &Value) -> ChangeRefused {
    let data = &error["data"];
    let reason = match data["reason"].as_str().unwrap_or_else(|| panic!("no reason: {error:#}")) {
        "unknown_message_id" => "not_found",
        reason => reason,
    };
    let paths = data["conflicts"].as_array().into_iter().flatten().filter_map(|one| one["path"].as_str());
    ChangeRefused { reason: reason.to_owned(), conflicts: paths.map(str::to_owned).collect() }
}
