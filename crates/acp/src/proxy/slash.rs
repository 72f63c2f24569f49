//! Commands in plain chat, for clients that know nothing of the extension. What is said here is no part of the conversation: the inner
//! agent never sees it, and a session that is loaded again does not have it. A number means the list that was last shown, and is refused
//! once the conversation has moved on since.

use std::sync::Arc;

use retake_agent::contract::{Change, ChangeGoal, Command, Reason, Reply, Seen, WhileRunning};
use retake_agent::document::{Bytes, RewindDocument};
use retake_agent::fresh;
use retake_engine::session::entry::EntryId;
use retake_engine::{OnConflict, Scope};
use serde_json::{Value, json};

use super::Proxy;
use super::change::{LATE, Made};
use super::extension::rewound;
use super::session::Session;
use super::shape::{self, Version};
use crate::extension::{self, error};
use crate::wire::RpcError;

/// Lines of a list, and paths that are named.
const MAX_LINES: usize = 50;
const MAX_PATHS: usize = 20;

const COMMANDS: [(&str, &str, Option<&str>); 4] = [
    (
        "rewind",
        "Go back to before a prompt: files, conversation or both. Without an argument, list the prompts",
        Some("number or id, then code, conversation or both"),
    ),
    ("undo", "Take back the last turn or rewind", None),
    ("redo", "Repeat what was undone last", None),
    ("checkpoints", "List the checkpoints of the workspace", None),
];

/// A command that was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slash {
    name: &'static str,
    words: Vec<String>,
}

/// The commands, as clients are told of them.
pub(super) fn commands(version: Version) -> Vec<Value> {
    COMMANDS.iter().map(|(name, about, hint)| extension::command(version, name, about, *hint)).collect()
}

/// The command that a text is, if it is one of ours.
pub(super) fn parse(text: &str) -> Option<Slash> {
    let mut words = text.trim().strip_prefix('/')?.split_whitespace();
    let typed = words.next()?;
    let (name, ..) = COMMANDS.iter().find(|(name, ..)| *name == typed)?;
    Some(Slash { name, words: words.map(str::to_owned).collect() })
}

impl Proxy {
    /// Carries a command out, and answers in the chat.
    pub(super) async fn slash(self: &Arc<Self>, session: &Arc<Session>, id: Value, blocks: &[Value], slash: Slash) {
        let version = self.state().version;
        let said = format!("command-{}", fresh::entry());
        if version == Version::V2 {
            self.client.answer(id.clone(), Ok(json!({ "messageId": said }))).await.ok();
            let update = json!({ "sessionUpdate": "user_message", "messageId": said, "content": blocks });
            self.update(session, update).await;
            self.update(session, json!({ "sessionUpdate": "state_update", "state": "running" })).await;
        }
        let text = match self.obey(session, &slash).await {
            Ok(text) => text,
            Err(error) => in_words(&error),
        };
        let answer = format!("command-{}", fresh::entry());
        let content = shape::text_block(&text);
        let chunk = json!({ "sessionUpdate": "agent_message_chunk", "messageId": answer, "content": content });
        self.update(session, chunk).await;
        match version {
            Version::V1 => drop(self.client.answer(id, Ok(json!({ "stopReason": "end_turn" }))).await),
            Version::V2 => {
                let idle = json!({ "sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn" });
                self.update(session, idle).await;
            }
        }
    }

    async fn obey(self: &Arc<Self>, session: &Arc<Session>, slash: &Slash) -> Result<String, RpcError> {
        match (slash.name, slash.words.first()) {
            ("rewind", None) => self.list(session).await,
            ("rewind", Some(which)) => self.go_back(session, which, slash.words.get(1).map(String::as_str)).await,
            ("undo", _) => self.do_it(session, ChangeGoal::Undo { operation: None }, None, "Undone").await,
            ("redo", _) => self.do_it(session, ChangeGoal::Redo { operation: None }, None, "Redone").await,
            _ => self.checkpoints(session).await,
        }
    }

    async fn list(&self, session: &Arc<Session>) -> Result<String, RpcError> {
        let (head, targets) = self.targets(session, None).await?;
        if targets.is_empty() {
            return Ok("Nothing was said yet: there is nothing to go back to.".to_owned());
        }
        let known = session.known();
        let lines = targets.iter().enumerate().take(MAX_LINES).map(|(at, target)| {
            let files = &target.files;
            let changed = files.added + files.modified + files.deleted;
            let changed = if changed == 0 { String::new() } else { format!(" · {changed} files changed") };
            let label = target.label.as_ref().map(|label| format!(" · \"{label}\"")).unwrap_or_default();
            let late = if known.late.contains(&target.id) { format!(" · {LATE}") } else { String::new() };
            format!("{}. `{}` {}{changed}{label}{late}\n", at + 1, target.id.short(), target.text)
        });
        let list: String = lines.collect();
        session.live().listed = Some((head, targets.iter().map(|target| target.id).collect()));
        Ok(format!(
            "Go back to before one of these prompts, the newest first:\n\n{list}\n`/rewind 1` takes back files and \
             conversation; `/rewind 1 code` or `/rewind 1 conversation` only one of them."
        ))
    }

    async fn go_back(
        self: &Arc<Self>,
        session: &Arc<Session>,
        which: &str,
        what: Option<&str>,
    ) -> Result<String, RpcError> {
        let scope = match what {
            None | Some("both") => Scope::Both,
            Some("code") => Scope::Code,
            Some("conversation") => Scope::Conversation,
            Some(_) => return Err(RpcError::invalid_params("say `code`, `conversation` or `both`")),
        };
        let (head, targets) = self.targets(session, None).await?;
        let entry = match which.parse::<usize>() {
            Ok(number) if which.len() < 8 => self.numbered(session, head, number)?,
            _ => {
                let mut found = targets.iter().filter(|target| target.id.to_string().starts_with(which));
                match (found.next(), found.next()) {
                    (Some(target), None) => target.id,
                    (None, _) => {
                        return Err(RpcError::new(RpcError::NOT_FOUND, format!("there is no prompt `{which}`")));
                    }
                    _ => return Err(RpcError::invalid_params(format!("`{which}` is the beginning of several ids"))),
                }
            }
        };
        self.do_it(session, rewound(entry, scope), Some(Seen { head }), "Went back").await
    }

    /// The prompt of a number in the list that was last shown.
    fn numbered(&self, session: &Session, head: Option<EntryId>, number: usize) -> Result<EntryId, RpcError> {
        let live = session.live();
        let Some((seen, listed)) = &live.listed else {
            return Err(RpcError::invalid_params("no list was shown yet; `/rewind` shows it"));
        };
        if *seen != head {
            return Err(RpcError::invalid_params(
                "the conversation has moved on since the list was shown; `/rewind` shows it as it is now",
            ));
        }
        let found = number.checked_sub(1).and_then(|at| listed.get(at)).copied();
        found.ok_or_else(|| RpcError::invalid_params(format!("the list has no number {number}")))
    }

    /// Makes a change; where something has to be decided, the client's user is asked.
    async fn do_it(
        self: &Arc<Self>,
        session: &Arc<Session>,
        goal: ChangeGoal,
        seen: Option<Seen>,
        done: &str,
    ) -> Result<String, RpcError> {
        let mut change = Change::new(goal);
        loop {
            let made = self.change(session, change.clone(), seen, WhileRunning::Interrupt).await;
            match made {
                Ok(made) => return Ok(report(done, &made)),
                Err(refusal) if refusal.reason == Reason::Conflicts && change.on_conflict == OnConflict::Stop => {
                    let document = refusal.document.as_deref();
                    match self.decide(session, document).await {
                        Some(choice) => change.on_conflict = choice,
                        None => return Err(error(&refusal)),
                    }
                }
                Err(refusal) => return Err(error(&refusal)),
            }
        }
    }

    /// Asks what to do with files that somebody else changed too.
    async fn decide(&self, session: &Session, document: Option<&RewindDocument>) -> Option<OnConflict> {
        let conflicts = document.map(|document| document.conflicts.as_slice()).filter(|all| !all.is_empty())?;
        let lines: String =
            conflicts.iter().take(MAX_PATHS).map(|one| format!("{}: {}\n", shown(&one.path), one.text)).collect();
        let title = format!("{} changed by somebody else too", count(conflicts.len(), "file was", "files were"));
        let options = json!([
            { "optionId": "keep", "name": "Leave these files as they are", "kind": "allow_once" },
            { "optionId": "overwrite", "name": "Take them back too", "kind": "allow_always" },
            { "optionId": "stop", "name": "Change nothing", "kind": "reject_once" },
        ]);
        let content = json!([{ "type": "content", "content": shape::text_block(&lines) }]);
        let call = json!({ "toolCallId": format!("command-{}", fresh::entry()), "title": title, "content": content });
        let params = match self.state().version {
            Version::V1 => json!({ "sessionId": session.outer, "toolCall": call, "options": options }),
            Version::V2 => {
                json!({ "sessionId": session.outer, "title": title, "description": lines, "options": options })
            }
        };
        let answer = self.client.request("session/request_permission", params).await.ok()?;
        match answer["outcome"]["optionId"].as_str()? {
            "keep" => Some(OnConflict::Keep),
            "overwrite" => Some(OnConflict::Overwrite),
            _ => None,
        }
    }

    async fn checkpoints(&self, session: &Session) -> Result<String, RpcError> {
        let answer = self.question(session, Command::Checkpoints).await.map_err(|refusal| error(&refusal))?;
        let Reply::Checkpoints { checkpoints } = answer else { return Ok(String::new()) };
        let lines = checkpoints.iter().take(MAX_LINES).map(|one| {
            let label = one.label.as_ref().map(|label| format!(" \"{label}\"")).unwrap_or_default();
            let note = one.note.as_ref().map(|note| format!(" {note}")).unwrap_or_default();
            let id: String = one.checkpoint.chars().rev().take(8).collect::<Vec<_>>().into_iter().rev().collect();
            format!("- `{id}`{label}{note}\n")
        });
        Ok(format!("The newest checkpoints of the workspace:\n\n{}", lines.collect::<String>()))
    }
}

/// What was done, for people.
fn report(done: &str, made: &Made) -> String {
    let document = &made.document;
    if document.operation.is_none() {
        return "There was nothing to do.".to_owned();
    }
    let mut text = format!("{done}: {}.\n", document.what);
    let files: Vec<String> = document
        .files
        .iter()
        .take(MAX_PATHS)
        .map(|file| {
            let action = file.action.as_deref().unwrap_or("changed");
            format!("- {action} {} ({})\n", shown(&file.path), file.status)
        })
        .collect();
    if !files.is_empty() {
        text.push_str(&format!("\n{}", files.concat()));
        if document.files.len() > MAX_PATHS {
            text.push_str(&format!("- and {} more\n", document.files.len() - MAX_PATHS));
        }
    }
    if let Some(Some(parts)) = document.conversation.as_ref().map(|conversation| &conversation.draft)
        && !parts.is_empty()
    {
        text.push_str(&format!("\nThe prompt was: {}\n", retake_engine::session::first_line(parts)));
    }
    for gap in document.gaps.gaps.iter().take(MAX_PATHS) {
        text.push_str(&format!("\nNot captured then: {} ({})", shown(&gap.path), gap.text));
    }
    for item in document.ledger.iter().take(MAX_PATHS) {
        text.push_str(&format!("\nNot undone: {} {}", item.kind, item.what));
    }
    text.push_str(
        "\nThe chat above still shows what was said; the agent does not know it any more. `/undo` takes this back.",
    );
    text
}

fn in_words(error: &RpcError) -> String {
    let hint = error.data.as_ref().and_then(|data| data["hint"].as_str());
    let hint = hint.map(|hint| format!("\n\n{hint}")).unwrap_or_default();
    format!("Not done: {}.{hint}", error.message)
}

fn shown(path: &Bytes) -> String {
    match path {
        Bytes::Text(text) => format!("`{text}`"),
        Bytes::Base64 { bytes } => format!("(bytes {bytes})"),
    }
}

fn count(number: usize, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {many}") }
}
