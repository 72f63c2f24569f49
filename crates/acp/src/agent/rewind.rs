//! The rewind extension: points, rewind, editing a prompt, undo and redo.
//!
//! What is told because of it, that history was cut and what follows, is told before the answer. Nothing is decided here: targets and
//! plans are the session's, and what it refuses is passed on with a word that programs can tell it by.

use std::sync::Arc;

use retake_agent::contract::{Change, ChangeGoal, Command, Reply, Seen, WhileRunning};
use retake_agent::document::{Bytes, RewindDocument};
use retake_engine::session::Target;
use retake_engine::session::entry::{Body, Entry, EntryId, Part};
use retake_engine::{Discard, Files, OnConflict, Scope, Timestamp};
use serde_json::{Value, json};

use super::params::{Params, unknown_message, wrong};
use super::prompt;
use super::session::Session;
use super::shape::content;
use super::shape::update::last_message;
use crate::extension;
use crate::wire::RpcError;

/// Points in one answer.
const PAGE: usize = 200;

/// By which name a method was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    /// Ours, which begins with `_`.
    Ours,
    /// That of the proposal for the protocol.
    Proposed,
}

impl Name {
    /// Of this method.
    pub(super) fn of(method: &str) -> Self {
        if method.starts_with('_') { Self::Ours } else { Self::Proposed }
    }

    fn scope(self) -> Scope {
        match self {
            Self::Ours => Scope::Both,
            Self::Proposed => Scope::Conversation,
        }
    }
}

/// `_session/rewind_points`.
pub(super) async fn points(session: Arc<Session>, params: &Params) -> Result<Value, RpcError> {
    let query = params.text_if_given("query")?.map(str::to_owned);
    let Reply::Targets { head, targets } = session.ask(Command::Targets { query }).await? else { return Err(odd()) };
    let start = match params.message("cursor")? {
        None => 0,
        Some(cursor) => {
            let at = targets.iter().position(|target| target.id == cursor);
            at.ok_or_else(|| wrong("cursor", "one that was given"))? + 1
        }
    };
    let page: Vec<Value> = targets.iter().skip(start).take(PAGE).map(point).collect();
    let mut answer = json!({ "head": head.map(|id| id.to_string()), "points": page });
    if targets.len() > start + PAGE {
        answer["nextCursor"] = targets[start + PAGE - 1].id.to_string().into();
    }
    Ok(answer)
}

fn point(target: &Target) -> Value {
    let files = &target.files;
    let mut point = json!({
        "messageId": target.id.to_string(),
        "index": target.number,
        "at": date(target.at),
        "text": target.text,
        "files": { "added": files.added, "modified": files.modified, "deleted": files.deleted },
        "eligible": true,
    });
    if let Some(label) = &target.label {
        point["label"] = label.as_str().into();
    }
    if !target.has_files {
        point["reason"] = "only the conversation can go back: the files of that moment are not kept".into();
    }
    point
}

/// `_session/rewind`, and `session/rewind` as proposed.
pub(super) async fn rewind(session: Arc<Session>, params: &Params, by: Name) -> Result<Value, RpcError> {
    let scope = params.read("scope", "`conversation`, `code` or `both`")?.unwrap_or(by.scope());
    let goal = aim(&session, params, scope)?;
    let change = change(&session, params, goal)?;
    carry_out(&session, params, change).await
}

/// `_session/undo`.
pub(super) async fn undo(session: Arc<Session>, params: &Params) -> Result<Value, RpcError> {
    let operation = params.text_if_given("operation")?.map(str::to_owned);
    let change = change(&session, params, ChangeGoal::Undo { operation })?;
    carry_out(&session, params, change).await
}

/// `_session/redo`.
pub(super) async fn redo(session: Arc<Session>, params: &Params) -> Result<Value, RpcError> {
    if params.given("operation").is_some() {
        let error = RpcError::invalid_params("redo repeats what was undone last, and takes no operation");
        return Err(error.with_reason("unsupported"));
    }
    let change = change(&session, params, ChangeGoal::Redo)?;
    carry_out(&session, params, change).await
}

/// `_session/edit_prompt`, and `session/edit_prompt` as proposed: goes back to before a prompt and says another one. If that is said,
/// the pump answers.
pub(super) async fn edit_prompt(session: &Arc<Session>, params: &Params, by: Name, id: Value) -> Result<(), RpcError> {
    let scope = params.read("scope", "`conversation`, `code` or `both`")?.unwrap_or(by.scope());
    if scope == Scope::Code {
        return Err(wrong("scope", "`conversation` or `both`: an edited prompt takes the place of the old one"));
    }
    let message = params.message("messageId")?.ok_or_else(|| wrong("messageId", "the id of a message"))?;
    let blocks = params.given("content").and_then(Value::as_array).filter(|blocks| !blocks.is_empty());
    let parts = content::parts(blocks.ok_or_else(|| wrong("content", "a list of content blocks"))?)?;
    // It would be refused when there is no way back any more.
    if parts.iter().all(|part| matches!(part, Part::Text { text } if text.trim().is_empty())) {
        return Err(wrong("content", "something that is said"));
    }
    let entry = message_in(session, message)?;
    let goal = before(&entry, scope)?;
    carry_out(session, params, change(session, params, goal)?).await?;
    let asked = prompt::hand_in(session, id, parts).await;
    prompt::taken(session, asked).await;
    Ok(())
}

/// What the parameters aim at.
fn aim(session: &Session, params: &Params, scope: Scope) -> Result<ChangeGoal, RpcError> {
    match (params.message("toMessageId")?, params.message("beforeMessageId")?) {
        (None, Some(id)) => before(&message_in(session, id)?, scope),
        (Some(id), None) => {
            let entry = message_in(session, id)?;
            Ok(match entry.body {
                Body::Prompt { .. } => ChangeGoal::KeepPrompt { prompt: entry.id, scope, files: Files::Selective },
                _ => rewound(entry.id, scope),
            })
        }
        (Some(_), Some(_)) => Err(RpcError::invalid_params("`toMessageId` and `beforeMessageId` exclude each other")
            .with_reason("ambiguous_target")),
        (None, None) => {
            Err(RpcError::invalid_params("either `toMessageId` or `beforeMessageId` is needed")
                .with_reason("no_target"))
        }
    }
}

/// A retained message.
fn message_in(session: &Session, id: EntryId) -> Result<Entry, RpcError> {
    let known = session.known();
    let found = known.view.entries.iter().find(|entry| entry.id == id && super::shape::update::is_message(entry));
    found.cloned().ok_or_else(|| unknown_message(&id.to_string()))
}

/// Going back to before a prompt.
fn before(entry: &Entry, scope: Scope) -> Result<ChangeGoal, RpcError> {
    match entry.body {
        Body::Prompt { .. } => Ok(rewound(entry.id, scope)),
        _ => Err(RpcError::invalid_params(format!("`{}` is no message of the user", entry.id))
            .with_reason("not_a_user_message")
            .with("messageId", entry.id.to_string())),
    }
}

fn rewound(entry: EntryId, scope: Scope) -> ChangeGoal {
    ChangeGoal::Rewind { entry, scope, files: Files::Selective, discard: Discard::No }
}

fn change(session: &Session, params: &Params, goal: ChangeGoal) -> Result<Change, RpcError> {
    let paths: Vec<String> = params.read("paths", "a list of paths")?.unwrap_or_default();
    let root = &session.updates.root;
    let below = |path: String| match std::path::Path::new(&path).strip_prefix(root) {
        Ok(below) => Bytes::Text(below.to_string_lossy().into_owned()),
        Err(_) => Bytes::Text(path),
    };
    Ok(Change {
        paths: paths.into_iter().map(below).collect(),
        on_conflict: params.read("onConflict", "`stop`, `keep`, `overwrite` or `merge`")?.unwrap_or(OnConflict::Stop),
        across_branches: params.flag("acrossBranches", false)?,
        ..Change::new(goal)
    })
}

/// Makes a change, or only works out what it would do, and answers when the client has been told what came of it.
async fn carry_out(session: &Session, params: &Params, change: Change) -> Result<Value, RpcError> {
    let head_seen = head_seen(session, params)?;
    if params.flag("dryRun", false)? {
        let Reply::Change { document } = session.ask(Command::Plan { change }).await? else { return Err(odd()) };
        let entries = session.known().view.entries.clone();
        let kept = match &document.conversation {
            // What comes back is not known here; its end is.
            Some(planned) => match planned.to {
                None => Vec::new(),
                Some(to) => match entries.iter().position(|entry| entry.id == to) {
                    Some(at) => entries[..=at].to_vec(),
                    None => return Ok(answer(session, &document, planned.to)),
                },
            },
            None => entries,
        };
        return Ok(answer(session, &document, last_message(&kept)));
    }
    let running = match params.flag("interrupt", true)? {
        true => WhileRunning::Interrupt,
        false => WhileRunning::Refuse,
    };
    let document = apply(session, change, head_seen, running).await?;
    let last = last_message(&session.known().view.entries);
    Ok(answer(session, &document, last))
}

/// Makes a change, and waits until the client has been told of it.
pub(super) async fn apply(
    session: &Session,
    change: Change,
    head_seen: Option<Seen>,
    running: WhileRunning,
) -> Result<Box<RewindDocument>, RpcError> {
    let command = Command::Apply { change, head_seen, plan_seen: None, running };
    let Reply::Change { document } = session.ask(command).await? else { return Err(odd()) };
    if let (Some(operation), Some(conversation)) = (&document.operation, &document.conversation) {
        session.until_told(operation, conversation.to).await;
    }
    Ok(document)
}

/// Where the client saw the head: as it was told it with the points, or its last message.
fn head_seen(session: &Session, params: &Params) -> Result<Option<Seen>, RpcError> {
    let Some(expected) = params.0.get("expectedHead") else { return Ok(None) };
    let known = session.known();
    let head = known.view.head();
    let last = last_message(&known.view.entries);
    let is_it = match expected.as_str() {
        None => last.is_none(),
        Some(text) => [head, last].into_iter().flatten().any(|id| id.to_string() == text),
    };
    match is_it {
        true => Ok(Some(Seen { head })),
        false => Err(RpcError::invalid_params("the conversation has moved on since; nothing was changed")
            .with_reason("stale_head")
            .with("head", head.map(|id| id.to_string()))),
    }
}

fn answer(session: &Session, document: &RewindDocument, last: Option<EntryId>) -> Value {
    let blocks = |parts: &[Part]| content::blocks(&session.updates.root, parts);
    extension::answer(document, last.map(|id| id.to_string()).as_deref(), blocks)
}

/// A time as the protocol writes it.
pub(super) fn date(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.0).map_or_else(|_| String::new(), |at| at.to_string())
}

/// The session answered something else than was asked.
fn odd() -> RpcError {
    RpcError::new(RpcError::INTERNAL, "the session's answer was not understood")
}
