//! The methods of the extension, over a [`SessionBackend`].

use std::path::Path;

use retake_agent::contract::{Action, Change, ChangeGoal, Command, Query, Reply, SeenHead, WhileRunning};
use retake_agent::rewind_document::{Bytes, RewindDocument};
use retake_engine::id::EntryId;
use retake_engine::rewind::{Files, OnConflict};
use retake_engine::session::entry::{Body, Entry};
use retake_engine::session::{Discard, Scope};
use serde_json::{Value, json};

use super::answer::{self, error, point};
use super::backend::{AppliedChange, ChangeRequest, SessionBackend, SessionContents};
use super::params::{Params, unknown_message, wrong};
use super::{KEY, is_message, last_message};
use crate::wire::RpcError;

/// Points in one answer.
const PAGE: usize = 200;

/// A method of the extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// `_session/rewind_points`.
    Points,
    /// `_session/rewind`, and `session/rewind` as proposed.
    Rewind(Name),
    /// `_session/edit_prompt`, and `session/edit_prompt` as proposed.
    EditPrompt(Name),
    /// `_session/undo`.
    Undo,
    /// `_session/redo`.
    Redo,
    /// `_session/label`.
    Label,
}

/// By which name a method was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    /// Ours, which begins with `_`.
    Ours,
    /// That of the proposal for the protocol.
    Proposed,
}

/// What an edited prompt takes the place of.
pub(crate) struct PromptEdit {
    /// What is said instead.
    pub(crate) blocks: Vec<Value>,
    wanted: ChangeRequest,
}

impl Method {
    /// The one that is called so, if it is one of the extension.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "_session/rewind_points" => Self::Points,
            "_session/rewind" => Self::Rewind(Name::Ours),
            "session/rewind" => Self::Rewind(Name::Proposed),
            "_session/edit_prompt" => Self::EditPrompt(Name::Ours),
            "session/edit_prompt" => Self::EditPrompt(Name::Proposed),
            "_session/undo" => Self::Undo,
            "_session/redo" => Self::Redo,
            "_session/label" => Self::Label,
            _ => return None,
        })
    }
}

impl Name {
    fn scope(self, params: &Params) -> Result<Scope, RpcError> {
        let otherwise = match self {
            Self::Ours => Scope::Both,
            Self::Proposed => Scope::Conversation,
        };
        Ok(params.read("scope", "`conversation`, `code` or `both`")?.unwrap_or(otherwise))
    }
}

/// The points to go back to, a page of them.
pub(crate) async fn points(backend: &impl SessionBackend, params: &Params) -> Result<Value, RpcError> {
    let query = params.text_if_given("query")?.map(str::to_owned);
    let cursor = params.text_if_given("cursor")?;
    let Reply::Targets { head, targets } = ask(backend, Query::Targets { query }).await? else { return Err(odd()) };
    let start = match cursor {
        None => 0,
        Some(cursor) => {
            let at = targets.iter().position(|target| target.id.to_string() == cursor);
            at.ok_or_else(|| wrong("cursor", "one that was given"))? + 1
        }
    };
    let page = targets.iter().skip(start).take(PAGE);
    let page: Vec<Value> =
        page.map(|target| point(&backend.name_of(target.id), target, backend.snapshot_of(target.id))).collect();
    let mut answer = json!({ "head": head.map(|id| backend.name_of(id)), "points": page });
    if targets.len() > start + PAGE {
        answer["nextCursor"] = targets[start + PAGE - 1].id.to_string().into();
    }
    Ok(answer)
}

/// Goes back.
pub(crate) async fn rewind(backend: &impl SessionBackend, params: &Params, by: Name) -> Result<Value, RpcError> {
    let (scope, standing) = (by.scope(params)?, backend.standing().await);
    let goal = aim(backend, params, scope, &standing)?;
    carry_out(backend, params, wanted(backend, params, goal, &standing)?).await
}

/// Takes an operation back.
pub(crate) async fn undo(backend: &impl SessionBackend, params: &Params) -> Result<Value, RpcError> {
    let operation = params.text_if_given("operation")?.map(str::to_owned);
    let standing = backend.standing().await;
    carry_out(backend, params, wanted(backend, params, ChangeGoal::Undo { operation }, &standing)?).await
}

/// Repeats an operation that was undone.
pub(crate) async fn redo(backend: &impl SessionBackend, params: &Params) -> Result<Value, RpcError> {
    let operation = params.text_if_given("operation")?.map(str::to_owned);
    let standing = backend.standing().await;
    carry_out(backend, params, wanted(backend, params, ChangeGoal::Redo { operation }, &standing)?).await
}

/// Names the point before a prompt, or takes its name away.
pub(crate) async fn label(backend: &impl SessionBackend, params: &Params) -> Result<Value, RpcError> {
    let id = params.text("messageId")?;
    let label = match params.0.get("label") {
        Some(Value::String(label)) => Some(label.clone()),
        Some(Value::Null) => None,
        _ => return Err(wrong("label", "a text, or null for none")),
    };
    let entry = message_in(backend, &backend.standing().await, id)?;
    of_user(&entry, id)?;
    ask(backend, Action::Label { prompt: entry.id, label }).await?;
    Ok(json!({}))
}

/// Reads what a prompt is to be edited to; nothing is changed yet.
pub(crate) async fn edit(backend: &impl SessionBackend, params: &Params, by: Name) -> Result<PromptEdit, RpcError> {
    let scope = by.scope(params)?;
    if scope == Scope::Code {
        return Err(wrong("scope", "`conversation` or `both`: an edited prompt takes the place of the old one"));
    }
    let (message, blocks) = (params.text("messageId")?, params.blocks("content")?);
    // It would be refused when there is no way back any more.
    let is_empty =
        |block: &Value| block["type"] == "text" && block["text"].as_str().unwrap_or_default().trim().is_empty();
    if blocks.iter().all(is_empty) {
        return Err(wrong("content", "something that is said"));
    }
    let standing = backend.standing().await;
    let goal = before(&message_in(backend, &standing, message)?, message, scope)?;
    Ok(PromptEdit { blocks: blocks.to_vec(), wanted: wanted(backend, params, goal, &standing)? })
}

impl PromptEdit {
    /// Goes back to before the prompt.
    pub(crate) async fn go_back(&self, backend: &impl SessionBackend) -> Result<AppliedChange, RpcError> {
        backend.apply(self.wanted.clone()).await.map_err(|refusal| error(backend.session(), &refusal))
    }
}

/// Going back to before a prompt, or to after another entry.
pub(crate) fn rewound(entry: EntryId, scope: Scope) -> ChangeGoal {
    ChangeGoal::Rewind { entry, scope, files: Files::Selective, discard: Discard::No }
}

/// Has a session answer.
pub(crate) async fn ask(backend: &impl SessionBackend, command: impl Into<Command>) -> Result<Reply, RpcError> {
    backend.ask(command.into()).await.map_err(|refusal| error(backend.session(), &refusal))
}

/// The session answered something else than was asked.
pub(crate) fn odd() -> RpcError {
    RpcError::new(RpcError::INTERNAL, "the session's answer was not understood").with_reason("failed")
}

/// What the parameters aim at.
fn aim(
    backend: &impl SessionBackend,
    params: &Params,
    scope: Scope,
    standing: &SessionContents,
) -> Result<ChangeGoal, RpcError> {
    match (params.text_if_given("toMessageId")?, params.text_if_given("beforeMessageId")?) {
        (None, Some(id)) => before(&message_in(backend, standing, id)?, id, scope),
        (Some(id), None) => {
            let entry = message_in(backend, standing, id)?;
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
fn message_in(backend: &impl SessionBackend, standing: &SessionContents, id: &str) -> Result<Entry, RpcError> {
    let named = backend.entries(id);
    // Of one that goes on after something else, the end.
    let found = standing.entries.iter().rfind(|one| named.contains(&one.id) && is_message(one));
    found.cloned().ok_or_else(|| unknown_message(id))
}

/// Going back to before a prompt, which the client calls `id`.
fn before(entry: &Entry, id: &str, scope: Scope) -> Result<ChangeGoal, RpcError> {
    of_user(entry, id).map(|()| rewound(entry.id, scope))
}

/// Makes sure that a message, which the client calls `id`, is one of the user's.
fn of_user(entry: &Entry, id: &str) -> Result<(), RpcError> {
    match entry.body {
        Body::Prompt { .. } => Ok(()),
        _ => Err(RpcError::invalid_params(format!("`{id}` is no message of the user"))
            .with_reason("not_a_user_message")
            .with("messageId", id)),
    }
}

/// What a client wants, beside the goal.
fn wanted(
    backend: &impl SessionBackend,
    params: &Params,
    goal: ChangeGoal,
    standing: &SessionContents,
) -> Result<ChangeRequest, RpcError> {
    let paths: Vec<String> = params.read("paths", "a list of paths")?.unwrap_or_default();
    let below = |path: String| match Path::new(&path).strip_prefix(&standing.root) {
        Ok(below) => Bytes::Text(below.to_string_lossy().into_owned()),
        Err(_) => Bytes::Text(path),
    };
    let change = Change {
        paths: paths.into_iter().map(below).collect(),
        on_conflict: params.read("onConflict", "`stop`, `keep`, `overwrite` or `merge`")?.unwrap_or(OnConflict::Stop),
        across_branches: params.flag("acrossBranches", false)?,
        ..Change::new(goal)
    };
    let running = match params.flag("interrupt", true)? {
        true => WhileRunning::Interrupt,
        false => WhileRunning::Refuse,
    };
    let plan_seen = params.text_if_given("expectedPlan")?.map(str::to_owned);
    Ok(ChangeRequest { change, head_seen: head_seen(backend, params, standing)?, plan_seen, running })
}

/// Where the client saw the head: as it was told it with the points, or its last message.
fn head_seen(
    backend: &impl SessionBackend,
    params: &Params,
    standing: &SessionContents,
) -> Result<Option<SeenHead>, RpcError> {
    let Some(expected) = params.0.get("expectedHead") else { return Ok(None) };
    let (head, last) = (standing.entries.last().map(|entry| entry.id), last_message(&standing.entries));
    let is_it = match expected {
        Value::Null => last.is_none(),
        Value::String(text) => {
            let named = [head, last].into_iter().flatten();
            named.into_iter().any(|id| backend.name_of(id) == *text || id.to_string() == *text)
        }
        _ => return Err(wrong("expectedHead", "the id of a message, or null")),
    };
    match is_it {
        true => Ok(Some(SeenHead { head })),
        false => Err(RpcError::invalid_params("the conversation has moved on since; nothing was changed")
            .with_reason("stale_head")
            .with("head", head.map(|id| backend.name_of(id)))),
    }
}

/// Makes a change, or only works out what it would do.
async fn carry_out(backend: &impl SessionBackend, params: &Params, wanted: ChangeRequest) -> Result<Value, RpcError> {
    if params.flag("dryRun", false)? {
        let Reply::Change { document } = ask(backend, Query::Plan { change: wanted.change }).await? else {
            return Err(odd());
        };
        let last = last_of_plan(&document, &backend.standing().await.entries);
        return Ok(answered(backend, &document, last).await);
    }
    let made = backend.apply(wanted).await.map_err(|refusal| error(backend.session(), &refusal))?;
    let last = last_message(&backend.standing().await.entries);
    let mut answer = answered(backend, &made.document, last).await;
    if let Some(strategy) = made.strategy {
        answer["_meta"] = json!({ KEY: { "strategy": strategy } });
    }
    if !made.warnings.is_empty() {
        answer["_meta"][KEY]["warnings"] = made.warnings.into();
    }
    Ok(answer)
}

/// The last message if a plan were carried out.
fn last_of_plan(document: &RewindDocument, entries: &[Entry]) -> Option<EntryId> {
    let Some(planned) = &document.conversation else { return last_message(entries) };
    let to = planned.to?;
    match entries.iter().position(|entry| entry.id == to) {
        Some(at) => last_message(&entries[..=at]),
        // What comes back is not known here; its end is.
        None => Some(to),
    }
}

async fn answered(backend: &impl SessionBackend, document: &RewindDocument, last: Option<EntryId>) -> Value {
    let said = document.conversation.as_ref().and_then(|planned| planned.draft.as_deref());
    let content = match said.filter(|parts| !parts.is_empty()) {
        Some(parts) => Some(backend.content(answer::taken_back(document), parts).await),
        None => None,
    };
    answer::answer(document, last.map(|id| backend.name_of(id)).as_deref(), content)
}
