//! What the extension says, alike for Retake's own agent and for the proxy: the outcome of a change, a refusal, a slash command. Pure.

use retake_agent::contract::{Reason, Refusal};
use retake_agent::document::{ConflictFacts, RewindDocument};
use retake_engine::Scope;
use retake_engine::session::entry::Part;
use serde_json::{Value, json};

use crate::wire::RpcError;

/// A version of the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Version {
    /// One answer to a prompt when its turn has ended.
    #[default]
    V1,
    /// A prompt is answered at once; states are told.
    V2,
}

/// The answer to a rewind, an undo or a redo after which `last` is the last message. What the user had said, if it leaves the
/// conversation, is in it as `blocks` has it.
pub(crate) fn answer(
    document: &RewindDocument,
    last: Option<&str>,
    blocks: impl FnOnce(&[Part]) -> Vec<Value>,
) -> Value {
    let mut answer = json!({ "lastMessageId": last });
    let said = document.conversation.as_ref().and_then(|conversation| conversation.draft.as_deref());
    if let Some(parts) = said.filter(|parts| !parts.is_empty()) {
        answer["content"] = blocks(parts).into();
    }
    if document.scope != Some(Scope::Conversation) {
        answer["files"] = files(document);
    }
    if !document.conflicts.is_empty() {
        answer["conflicts"] = conflicts(document);
    }
    if !document.ledger.is_empty() {
        answer["ledger"] = json!(document.ledger);
    }
    if let Some(operation) = &document.operation {
        answer["operation"] = operation.as_str().into();
    }
    answer
}

/// What becomes, or has become, of each path.
pub(crate) fn files(document: &RewindDocument) -> Value {
    let mut lists = json!({ "restored": [], "deleted": [], "kept": [], "conflicts": [], "failed": [] });
    for file in &document.files {
        let list = match (file.status.as_str(), file.action.as_deref()) {
            ("conflict", _) => "conflicts",
            ("failed", _) => "failed",
            ("kept" | "overtaken", _) => "kept",
            (_, Some("delete")) => "deleted",
            _ => "restored",
        };
        if let Value::Array(list) = &mut lists[list] {
            list.push(json!(file.path));
        }
    }
    lists
}

/// Paths that need a decision.
pub(crate) fn conflicts(document: &RewindDocument) -> Value {
    let conflict =
        |one: &ConflictFacts| json!({ "path": one.path, "reason": one.why, "text": one.text, "choices": one.choices });
    document.conflicts.iter().map(conflict).collect()
}

/// A refusal as the protocol says it.
pub(crate) fn error(refusal: &Refusal) -> RpcError {
    let (code, reason) = match refusal.reason {
        Reason::Running => (RpcError::INVALID_PARAMS, "running"),
        Reason::Interrupted => (RpcError::CANCELLED, "interrupted"),
        Reason::StaleHead => (RpcError::INVALID_PARAMS, "stale_head"),
        Reason::Conflicts => (RpcError::INVALID_PARAMS, "conflicts"),
        Reason::StalePlan => (RpcError::INVALID_PARAMS, "stale_plan"),
        Reason::InUse => (RpcError::INVALID_PARAMS, "in_use"),
        Reason::NotFound => (RpcError::NOT_FOUND, "not_found"),
        Reason::Nothing => (RpcError::INVALID_PARAMS, "nothing"),
        Reason::Invalid => (RpcError::INVALID_PARAMS, "invalid"),
        Reason::Ended => (RpcError::INTERNAL, "ended"),
        Reason::Failed => (RpcError::INTERNAL, "failed"),
    };
    let mut error = RpcError::new(code, refusal.message.clone()).with_reason(reason);
    if let Some(hint) = &refusal.hint {
        error = error.with("hint", hint.as_str());
    }
    if let Some(document) = &refusal.document {
        error = error.with("files", files(document)).with("conflicts", conflicts(document));
    }
    error
}

/// A slash command, as clients are told of it.
pub(crate) fn command(version: Version, name: &str, about: &str, hint: Option<&str>) -> Value {
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
