//! Commands in plain chat, for clients that know nothing of the extension; alike for Retake's own agent and for the proxy.
//!
//! ```text
//! mod       which commands there are, what was typed, what was shown
//! run       carries one out over a session, and answers in the chat
//! conflicts asks the user about conflicts
//! text      what is said                                               (pure)
//! ```
//!
//! What is said here is no part of the conversation: the model never sees it, and a session that is loaded again does not have it. A
//! number is the prompt's own, as `retake log` and the terminal show it; it means the list that was last shown, and is refused once the
//! conversation has moved on since.

mod conflicts;
mod run;
mod text;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use retake_engine::id::EntryId;
use retake_engine::session::Target;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::extension::Version;
pub(crate) use conflicts::choose;
pub(crate) use run::{ChatExchange, refuse, run};
pub(crate) use text::short;

/// What our commands are called where another agent has one of the same name.
const PREFIX: &str = "retake-";

/// A command that was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slash {
    kind: SlashKind,
    words: Vec<String>,
}

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlashKind {
    Rewind,
    Undo,
    Redo,
    Checkpoints,
    Label,
    Fork,
    Summarize,
}

/// The chat of a session: what was shown in it, and what is being asked.
#[derive(Debug)]
pub(crate) struct Chat {
    offered: &'static [SlashKind],
    state: Mutex<ChatState>,
}

#[derive(Debug, Default)]
struct ChatState {
    /// The list that was last shown.
    shown: Option<ShownList>,
    /// Commands that are being carried out.
    open: Vec<RunningCommand>,
    /// Names of commands that another agent has.
    taken: Vec<String>,
}

/// A command that is being carried out.
#[derive(Clone, Debug)]
struct RunningCommand {
    /// The client's request.
    request: Value,
    stop: Arc<Notify>,
}

/// A list that was shown.
#[derive(Clone, Debug)]
struct ShownList {
    head: Option<EntryId>,
    targets: Vec<Target>,
}

impl SlashKind {
    /// What can be done with any agent.
    pub(crate) const ANY: &'static [Self] =
        &[Self::Rewind, Self::Undo, Self::Redo, Self::Checkpoints, Self::Label, Self::Fork];
    /// What can be done with Retake's own.
    pub(crate) const ALL: &'static [Self] =
        &[Self::Rewind, Self::Undo, Self::Redo, Self::Checkpoints, Self::Label, Self::Fork, Self::Summarize];

    fn name(self) -> &'static str {
        match self {
            Self::Rewind => "rewind",
            Self::Undo => "undo",
            Self::Redo => "redo",
            Self::Checkpoints => "checkpoints",
            Self::Label => "label",
            Self::Fork => "fork",
            Self::Summarize => "summarize",
        }
    }

    fn about(self) -> &'static str {
        match self {
            Self::Rewind => {
                "Go back to before a prompt: files, conversation or both. Without an argument, list the prompts"
            }
            Self::Undo => "Take back the last turn, rewind or other operation",
            Self::Redo => "Repeat what was undone last",
            Self::Checkpoints => "List the checkpoints of the workspace",
            Self::Label => "Name the point before a prompt, so that it is found and kept",
            Self::Fork => "Begin a new session from here, or from before a prompt",
            Self::Summarize => "Replace what the model sees of the past by a summary",
        }
    }

    fn hint(self) -> Option<&'static str> {
        match self {
            Self::Rewind => Some("number or id, then code, conversation or both"),
            Self::Label => Some("number or id, then the label"),
            Self::Fork => Some("number or id"),
            Self::Summarize => Some("number or id to stop before"),
            Self::Undo | Self::Redo | Self::Checkpoints => None,
        }
    }
}

impl Chat {
    /// One in which nothing was shown yet, and these commands are offered.
    pub(crate) fn new(offered: &'static [SlashKind]) -> Self {
        Self { offered, state: Mutex::default() }
    }

    /// The command that a text is, if it is one of ours.
    pub(crate) fn parse(&self, text: &str) -> Option<Slash> {
        let mut words = text.trim().strip_prefix('/')?.split_whitespace();
        let typed = words.next()?;
        let is_it = |kind: &&SlashKind| typed == self.name(**kind) || typed.strip_prefix(PREFIX) == Some(kind.name());
        let kind = self.offered.iter().find(is_it)?;
        Some(Slash { kind: *kind, words: words.map(str::to_owned).collect() })
    }

    /// The commands, as clients are told of them.
    pub(crate) fn commands(&self, version: Version) -> Vec<Value> {
        self.offered.iter().map(|kind| command(version, &self.name(*kind), kind.about(), kind.hint())).collect()
    }

    /// Another agent has commands of these names: ours make way.
    pub(crate) fn make_way(&self, names: Vec<String>) {
        self.state().taken = names;
    }

    /// Stops what is being asked: nothing is changed.
    pub(crate) fn stop_asking(&self) {
        self.state().open.iter().for_each(|open| open.stop.notify_one());
    }

    /// Stops what is being asked because of one request; whether there is such a command.
    pub(crate) fn stop_request(&self, request: &Value) -> bool {
        let state = self.state();
        let found = state.open.iter().find(|open| open.request == *request);
        found.map(|open| open.stop.notify_one()).is_some()
    }

    /// What a command is called here.
    fn name(&self, kind: SlashKind) -> String {
        let name = kind.name();
        if self.state().taken.iter().any(|one| one == name) { format!("{PREFIX}{name}") } else { name.to_owned() }
    }

    fn state(&self) -> MutexGuard<'_, ChatState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A command, as clients are told of it.
fn command(version: Version, name: &str, about: &str, hint: Option<&str>) -> Value {
    let mut command = json!({ "name": name, "description": about });
    if version == Version::V2 {
        command["type"] = "command".into();
    }
    if let Some(hint) = hint {
        command["input"] = match version {
            Version::V1 => json!({ "hint": hint }),
            Version::V2 => json!({ "type": "text", "hint": hint }),
        };
    }
    command
}

/// The text of a prompt that is nothing but one text: only that can be a command.
pub(crate) fn plain_text(blocks: &[Value]) -> Option<&str> {
    match blocks {
        [block] if block["type"] == "text" => block["text"].as_str(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_lone_text_that_begins_with_a_name_is_a_command() {
        let chat = Chat::new(SlashKind::ANY);
        let words = vec!["3".to_owned(), "code".to_owned()];
        assert_eq!(chat.parse(" /rewind 3 code "), Some(Slash { kind: SlashKind::Rewind, words }));
        assert_eq!(chat.parse("/rewinding"), None);
        assert_eq!(chat.parse("please /rewind"), None);
        assert_eq!(chat.parse("/summarize"), None, "it is not offered");
        let text = |text: &str| json!({ "type": "text", "text": text });
        assert_eq!(plain_text(&[text("/undo"), text("x")]), None);
    }

    #[test]
    fn another_agents_command_is_its_own_and_ours_has_another_name() {
        let chat = Chat::new(SlashKind::ANY);
        assert!(chat.parse("/retake-undo").is_some(), "it always works");
        chat.make_way(vec!["undo".to_owned()]);
        assert_eq!(chat.parse("/undo"), None);
        assert_eq!(chat.parse("/retake-undo").map(|slash| slash.kind), Some(SlashKind::Undo));
        let names: Vec<Value> = chat.commands(Version::V1).iter().map(|one| one["name"].clone()).collect();
        assert_eq!(names, ["rewind", "retake-undo", "redo", "checkpoints", "label", "fork"]);
    }
}
