//! Commands in plain chat, for clients that know nothing of the extension: a list with numbers, a plan, what was done.
//!
//! What is said here is no part of the conversation: the model never sees it, and a session that is loaded again does not have it. A
//! number means the list that was last shown, and is refused once the conversation has moved on since.

use std::sync::Arc;

use retake_agent::contract::{Change, ChangeGoal, CheckpointFacts, Command, Extent, Reply, Seen, WhileRunning};
use retake_agent::document::{Bytes, RewindDocument};
use retake_agent::fresh;
use retake_engine::session::Target;
use retake_engine::session::entry::{EntryId, Part};
use retake_engine::{Discard, Files, OnConflict, Scope};
use serde_json::{Map, Value, json};

use super::Version;
use super::session::Session;
use super::shape::content;
use super::shape::update::{chunk, last_message};
use super::{prompt, rewind};
use crate::extension;
use crate::wire::RpcError;

/// Lines of a list.
const MAX_LINES: usize = 50;
/// Paths that are named.
const MAX_PATHS: usize = 20;

/// A command that was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slash {
    kind: Kind,
    words: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Rewind,
    Undo,
    Redo,
    Checkpoints,
    Fork,
    Summarize,
}

/// A list that was shown.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    head: Option<EntryId>,
    targets: Vec<Target>,
}

const COMMANDS: [(Kind, &str, &str, Option<&str>); 6] = [
    (
        Kind::Rewind,
        "rewind",
        "Go back to before a prompt: files, conversation or both. Without an argument, list the prompts",
        Some("number or id, then code, conversation or both"),
    ),
    (Kind::Undo, "undo", "Take back the last turn, rewind or other operation", None),
    (Kind::Redo, "redo", "Repeat what was undone last", None),
    (Kind::Checkpoints, "checkpoints", "List the checkpoints of the workspace", None),
    (Kind::Fork, "fork", "Begin a new session from here, or from before a prompt", Some("number or id")),
    (
        Kind::Summarize,
        "summarize",
        "Replace what the model sees of the past by a summary",
        Some("number or id to stop before"),
    ),
];

/// The commands, as clients are told of them.
pub(super) fn commands(version: Version) -> Value {
    COMMANDS.iter().map(|(_, name, about, hint)| extension::command(version, name, about, *hint)).collect()
}

impl Slash {
    /// The command that a prompt is, if it is one: a single text that begins with its name.
    pub(super) fn parse(parts: &[Part]) -> Option<Self> {
        let [Part::Text { text }] = parts else { return None };
        let mut words = text.trim().strip_prefix('/')?.split_whitespace();
        let name = words.next()?;
        let (kind, ..) = COMMANDS.iter().find(|(_, known, ..)| *known == name)?;
        Some(Self { kind: *kind, words: words.map(str::to_owned).collect() })
    }
}

/// Carries a command out, and answers in the chat.
pub(super) async fn run(session: Arc<Session>, id: Value, blocks: Vec<Value>, slash: Slash) {
    let said = format!("command-{}", fresh::entry());
    if session.client.version == Version::V2 {
        session.peer.answer(id.clone(), Ok(json!({ "messageId": said }))).await.ok();
        for update in session.updates.user_blocks(&said, &blocks) {
            session.update(update).await;
        }
        session.state("running", Map::new()).await;
    }
    let text = match carry_out(&session, &slash).await {
        Ok(text) => text,
        Err(error) => in_words(&error),
    };
    let answer = format!("command-{}", fresh::entry());
    session.update(chunk("agent_message_chunk", &answer, &content::text(&text))).await;
    match session.client.version {
        Version::V1 => drop(session.peer.answer(id, Ok(json!({ "stopReason": "end_turn" }))).await),
        // A turn may go on beside it.
        Version::V2 if session.is_busy() => {}
        Version::V2 => {
            let stop = Map::from_iter([("stopReason".to_owned(), Value::from("end_turn"))]);
            session.state("idle", stop).await;
        }
    }
}

/// An error for people.
fn in_words(error: &RpcError) -> String {
    let hint = error.data.as_ref().and_then(|data| data.get("hint")).and_then(Value::as_str);
    let hint = hint.map(|hint| format!("\n\n{hint}")).unwrap_or_default();
    format!("Not done: {}.{hint}", error.message)
}

async fn carry_out(session: &Session, slash: &Slash) -> Result<String, RpcError> {
    let argument = slash.words.first().map(String::as_str);
    match slash.kind {
        Kind::Rewind => match argument {
            None => list(session).await,
            Some(argument) => go_back(session, argument, slash.words.get(1).map(String::as_str)).await,
        },
        Kind::Undo => change(session, Change::new(ChangeGoal::Undo { operation: None }), None, "Undone").await,
        Kind::Redo => change(session, Change::new(ChangeGoal::Redo { operation: None }), None, "Redone").await,
        Kind::Checkpoints => checkpoints(session).await,
        Kind::Fork => fork(session, argument).await,
        Kind::Summarize => summarize(session, argument).await,
    }
}

/// Shows the prompts that one can go back to.
async fn list(session: &Session) -> Result<String, RpcError> {
    let shown = targets(session).await?;
    let text = match shown.targets.is_empty() {
        true => "Nothing was said yet, so there is nothing to go back to.".to_owned(),
        false => {
            let mut text = "Prompts, the newest first:\n\n".to_owned();
            for target in shown.targets.iter().take(MAX_LINES) {
                text.push_str(&line(target));
            }
            let more = shown.targets.len().saturating_sub(MAX_LINES);
            if more > 0 {
                text.push_str(&format!("\n… and {more} older ones\n"));
            }
            text + "\n`/rewind N` goes back to before prompt N, with files and conversation; \
                    `/rewind N code` or `/rewind N conversation` with one of them."
        }
    };
    session.known().listed = Some(shown);
    Ok(text)
}

async fn targets(session: &Session) -> Result<Shown, RpcError> {
    match session.ask(Command::Targets { query: None }).await? {
        Reply::Targets { head, targets } => Ok(Shown { head, targets }),
        _ => Err(RpcError::new(RpcError::INTERNAL, "the prompts cannot be listed")),
    }
}

fn line(target: &Target) -> String {
    let files = &target.files;
    let counts = [(files.added, "added"), (files.modified, "modified"), (files.deleted, "deleted")];
    let counts: Vec<String> =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    let changed = if counts.is_empty() { "no files".to_owned() } else { format!("files: {}", counts.join(", ")) };
    let label = target.label.as_ref().map(|label| format!(" [{label}]")).unwrap_or_default();
    let gone = if target.has_files { "" } else { " (its files are not kept: conversation only)" };
    format!("- **{}.** {}{label}, {changed}{gone} `{}`\n", target.number, target.text, target.id.short())
}

/// The prompt that a number of the list that was shown, or an id, means, and where the head was then.
async fn find(session: &Session, argument: &str) -> Result<(Target, Option<Seen>), RpcError> {
    if let Ok(number) = argument.trim_end_matches('.').parse::<u64>()
        && argument.len() < 8
    {
        let shown = session.known().listed.clone();
        let Some(shown) = shown else {
            return Err(refusal("no list was shown yet, so the number means nothing; `/rewind` shows one"));
        };
        if shown.head != session.known().view.head() {
            return Err(refusal("the conversation has moved on since the list was shown; `/rewind` shows it anew"));
        }
        let found = shown.targets.into_iter().find(|target| target.number == number);
        let found = found.ok_or_else(|| refusal(&format!("the list that was shown has no number {number}")))?;
        return Ok((found, Some(Seen { head: shown.head })));
    }
    let Shown { head, targets } = targets(session).await?;
    let mut found = targets.into_iter().filter(|target| target.id.to_string().starts_with(argument));
    match (found.next(), found.next()) {
        (Some(found), None) => Ok((found, Some(Seen { head }))),
        (Some(_), Some(_)) => Err(refusal(&format!("`{argument}` is the beginning of several ids"))),
        (None, _) => Err(refusal(&format!("no prompt has the id `{argument}`; `/rewind` lists them"))),
    }
}

fn refusal(text: &str) -> RpcError {
    RpcError::invalid_params(text)
}

async fn go_back(session: &Session, argument: &str, scope: Option<&str>) -> Result<String, RpcError> {
    let scope = match scope {
        None | Some("both") => Scope::Both,
        Some("code" | "files") => Scope::Code,
        Some("conversation") => Scope::Conversation,
        Some(other) => return Err(refusal(&format!("`{other}` is neither `code` nor `conversation` nor `both`"))),
    };
    let (target, seen) = find(session, argument).await?;
    let goal = ChangeGoal::Rewind { entry: target.id, scope, files: Files::Selective, discard: Discard::No };
    let done = format!("Back to before prompt {}, \"{}\"", target.number, target.text);
    change(session, Change::new(goal), seen, &done).await
}

/// Plans a change, has conflicts decided, makes it, and tells what was done.
async fn change(session: &Session, change: Change, seen: Option<Seen>, done: &str) -> Result<String, RpcError> {
    let Reply::Change { document: plan } = session.ask(Command::Plan { change: change.clone() }).await? else {
        return Err(refusal("the plan cannot be made"));
    };
    let on_conflict = match plan.conflicts.is_empty() {
        true => OnConflict::Stop,
        false => match decide(session, &plan, done).await? {
            Some(choice) => choice,
            None => return Ok("Nothing was changed, as you wished.".to_owned()),
        },
    };
    let before = last_message(&session.known().view.entries);
    let change = Change { on_conflict, ..change };
    let document = rewind::apply(session, change, seen, WhileRunning::Interrupt).await?;
    let is_cut = before != last_message(&session.known().view.entries);
    Ok(told(&document, done, is_cut))
}

/// Has the user decide what becomes of files that somebody else changed too; `None` for nothing at all.
async fn decide(session: &Session, plan: &RewindDocument, title: &str) -> Result<Option<OnConflict>, RpcError> {
    let can = |choice: OnConflict| plan.conflicts.iter().all(|conflict| conflict.choices.contains(&choice));
    let choices = [
        (OnConflict::Keep, "keep", "Keep those files as they are"),
        (OnConflict::Merge, "merge", "Merge: take only the agent's changes out"),
        (OnConflict::Overwrite, "overwrite", "Overwrite them (`/undo` brings them back)"),
    ];
    let mut options: Vec<Value> = choices
        .iter()
        .filter(|(choice, ..)| can(*choice))
        .map(|(_, id, name)| json!({ "optionId": id, "name": name, "kind": "allow_once" }))
        .collect();
    options.push(json!({ "optionId": "cancel", "name": "Change nothing", "kind": "reject_once" }));
    let lines = plan.conflicts.iter().take(MAX_PATHS).map(|one| format!("- `{}`: {}\n", name(&one.path), one.text));
    let text = format!("These files were changed by others too:\n\n{}", lines.collect::<String>());
    let call = json!({
        "toolCallId": format!("command-{}", fresh::entry()),
        "title": title,
        "kind": "edit",
        "status": "pending",
        "content": [{ "type": "content", "content": content::text(&text) }],
    });
    session.state("requires_action", Map::new()).await;
    let chosen = prompt::choose(session, title, call, options).await;
    session.state("running", Map::new()).await;
    let chosen = chosen?;
    Ok(choices.iter().find(|(_, id, _)| chosen.as_deref() == Some(*id)).map(|(choice, ..)| *choice))
}

fn name(path: &Bytes) -> String {
    match path {
        Bytes::Text(text) => text.clone(),
        Bytes::Base64 { bytes } => format!("base64:{bytes}"),
    }
}

/// What was done, for people.
fn told(document: &RewindDocument, done: &str, is_cut: bool) -> String {
    let mut text = format!("{done}.\n");
    let shown = document.files.iter().filter(|file| file.action.is_some()).take(MAX_PATHS);
    let lines: String = shown
        .map(|file| {
            format!("- {} `{}`: {}\n", file.action.as_deref().unwrap_or_default(), name(&file.path), file.status)
        })
        .collect();
    match (lines.is_empty(), document.scope) {
        (true, Some(Scope::Conversation)) => {}
        (true, _) => text.push_str("\nNo file had to be changed.\n"),
        (false, _) => text.push_str(&format!("\n{lines}")),
    }
    let more = document.files.len().saturating_sub(MAX_PATHS);
    if more > 0 {
        text.push_str(&format!("- … and {more} more\n"));
    }
    for item in &document.ledger {
        text.push_str(&format!("- cannot be undone: {}\n", item.what));
    }
    if let Some(draft) = document.conversation.as_ref().and_then(|planned| planned.draft.as_ref()).filter(|_| is_cut) {
        let said: Vec<&str> = draft.iter().filter_map(words).collect();
        text.push_str(&format!("\nYou had said:\n\n> {}\n", said.join("\n").replace('\n', "\n> ")));
    }
    if is_cut {
        text.push_str(
            "\nThe conversation is another one now; what this window shows of the rest is no longer part of it.\n",
        );
    }
    if document.operation.is_some() {
        text.push_str("\n`/undo` takes this back.");
    }
    text
}

fn words(part: &Part) -> Option<&str> {
    match part {
        Part::Text { text } | Part::Paste { text } => Some(text),
        Part::File { .. } | Part::Image { .. } => None,
    }
}

async fn checkpoints(session: &Session) -> Result<String, RpcError> {
    let Reply::Checkpoints { checkpoints } = session.ask(Command::Checkpoints).await? else {
        return Err(refusal("the checkpoints cannot be listed"));
    };
    if checkpoints.is_empty() {
        return Ok("There are no checkpoints yet.".to_owned());
    }
    let line = |point: &CheckpointFacts| {
        let name = point.label.as_ref().or(point.note.as_ref()).map(|name| format!(" {name}")).unwrap_or_default();
        let changed = point.changed;
        let counts = format!("+{} ~{} -{}", changed.added, changed.modified, changed.deleted);
        format!("- `{}` {}{name}, files {counts}\n", &point.checkpoint[..8], rewind::date(point.at))
    };
    let lines: String = checkpoints.iter().take(MAX_LINES).map(line).collect();
    Ok(format!(
        "Checkpoints of the workspace, the newest first:\n\n{lines}\n`retake rewind ID` on the command line brings files back to one."
    ))
}

async fn fork(session: &Session, argument: Option<&str>) -> Result<String, RpcError> {
    let entry = match argument {
        Some(argument) => find(session, argument).await?.0.id,
        None => {
            let last = super::connection::last_target(&session.known().view.entries);
            last.ok_or_else(|| refusal("nothing was said yet, so there is nothing to fork"))?
        }
    };
    match session.ask(Command::Fork { entry }).await? {
        Reply::Forked { session: forked, .. } => Ok(format!(
            "Forked: the new session is `{forked}`. Open it from the list of sessions, or with `retake resume {}`; this one stays as it is.",
            &forked[..8]
        )),
        _ => Err(refusal("the session was not forked")),
    }
}

async fn summarize(session: &Session, argument: Option<&str>) -> Result<String, RpcError> {
    let extent = match argument {
        Some(argument) => Extent::UpTo { entry: find(session, argument).await?.0.id },
        None => Extent::All,
    };
    match session.ask(Command::Summarise { extent, instructions: None }).await? {
        Reply::Summarised { summary: Some(summary) } => {
            Ok(format!("The model sees this summary from now on; `/undo` takes that back.\n\n{}", summary.text))
        }
        _ => Ok("There is nothing to summarise.".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_lone_text_that_begins_with_a_name_is_a_command() {
        let parse = |text: &str| Slash::parse(&[Part::text(text)]);
        assert_eq!(
            parse(" /rewind 3 code "),
            Some(Slash { kind: Kind::Rewind, words: vec!["3".into(), "code".into()] })
        );
        assert_eq!(parse("/rewinding"), None);
        assert_eq!(parse("please /rewind"), None);
        assert_eq!(Slash::parse(&[Part::text("/undo"), Part::text("x")]), None);
    }
}
