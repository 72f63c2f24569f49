//! What is answered: points, the outcome of a change, a refusal. Pure.

use retake_agent::contract::{Reason, Refusal};
use retake_agent::rewind_document::{ConflictFacts, File, RewindDocument};
use retake_engine::Timestamp;
use retake_engine::id::EntryId;
use retake_engine::rewind::OnConflict;
use retake_engine::session::Scope;
use retake_engine::session::Target;
use serde_json::{Value, json};

use crate::wire::RpcError;

/// What is said of a point whose snapshot was late.
pub(crate) const LATE: &str =
    "its snapshot was not complete when the agent began: what it changed first may be missing";

/// Whether the snapshot of a point was complete in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Snapshot {
    Complete,
    Late,
}

/// A point to go back to, which the client calls `id`.
pub(crate) fn point(id: &str, target: &Target, snapshot: Snapshot) -> Value {
    let files = &target.files;
    let mut point = json!({
        "messageId": id,
        "index": target.number,
        "at": date(target.at),
        "text": target.text,
        "files": { "added": files.added, "modified": files.modified, "deleted": files.deleted },
        "eligible": true,
    });
    if let Some(label) = &target.label {
        point["label"] = label.as_str().into();
    }
    if !files.outside.is_empty() {
        point["outside"] = json!(files.outside);
    }
    if !target.has_files {
        point["reason"] = "only the conversation can go back: the files of that moment are not kept".into();
        point["scopes"] = json!([Scope::Conversation]);
    } else if snapshot == Snapshot::Late {
        point["reason"] = LATE.into();
    }
    point
}

/// The answer to a rewind, an undo or a redo after which `last` is the last message. `content` is what the user had said.
pub(crate) fn answer(document: &RewindDocument, last: Option<&str>, content: Option<Vec<Value>>) -> Value {
    let mut answer = json!({ "lastMessageId": last });
    if let Some(content) = content {
        answer["content"] = content.into();
    }
    if let Some(fingerprint) = &document.fingerprint {
        answer["fingerprint"] = fingerprint.as_str().into();
    }
    if let Some(means) = document.means {
        answer["means"] = json!(means);
    }
    if document.scope != Some(Scope::Conversation) {
        answer["files"] = files(document);
    }
    if !document.conflicts.is_empty() {
        answer["conflicts"] = conflicts(document);
    }
    if !document.kept.is_empty() {
        answer["kept"] = json!(document.kept);
    }
    if !document.not_restored.is_empty() {
        answer["notRestored"] = json!(document.not_restored);
    }
    if !document.already.is_empty() {
        answer["already"] = json!(document.already);
    }
    if document.gaps.gaps_total > 0 {
        answer["gaps"] = json!(document.gaps.gaps);
    }
    if !document.ledger.is_empty() {
        answer["ledger"] = json!(document.ledger);
    }
    if let Some(operation) = &document.operation {
        answer["operation"] = json!(operation);
    }
    answer
}

/// The prompt that leaves the conversation and becomes what the user is about to say.
pub(crate) fn taken_back(document: &RewindDocument) -> Option<EntryId> {
    document.conversation.as_ref().and_then(|planned| planned.leaves.first()).map(|prompt| prompt.id)
}

/// What becomes, or has become, of each path.
pub(crate) fn files(document: &RewindDocument) -> Value {
    let mut lists = json!({ "restored": [], "merged": [], "deleted": [], "kept": [], "conflicts": [], "failed": [] });
    for file in &document.files {
        let list = match (file.status.as_str(), file.action.as_deref()) {
            ("conflict", _) => "conflicts",
            ("failed", _) => "failed",
            ("kept" | "overtaken", _) => "kept",
            _ if is_to_be_kept(document, file) => "kept",
            (_, Some("delete")) => "deleted",
            (_, Some("merge")) => "merged",
            _ => "restored",
        };
        if let Value::Array(list) = &mut lists[list] {
            list.push(json!(file.path));
        }
    }
    lists
}

/// Whether a plan leaves a path as it is because that was chosen.
fn is_to_be_kept(document: &RewindDocument, file: &File) -> bool {
    let chosen = document.conflicts.iter().find(|one| one.path == file.path).map(|one| one.choice);
    file.status == "planned" && chosen == Some(OnConflict::Keep)
}

/// Paths that need a decision.
pub(crate) fn conflicts(document: &RewindDocument) -> Value {
    let conflict =
        |one: &ConflictFacts| json!({ "path": one.path, "reason": one.why, "text": one.text, "choices": one.choices });
    document.conflicts.iter().map(conflict).collect()
}

/// A refusal of a session as the protocol says it.
pub(crate) fn error(session: &str, refusal: &Refusal) -> RpcError {
    let (code, reason) = match refusal.reason {
        Reason::Running => (RpcError::INVALID_PARAMS, "running"),
        Reason::Interrupted => (RpcError::CANCELLED, "interrupted"),
        Reason::StaleHead => (RpcError::INVALID_PARAMS, "stale_head"),
        Reason::Conflicts => (RpcError::INVALID_PARAMS, "conflicts"),
        Reason::StalePlan => (RpcError::INVALID_PARAMS, "stale_plan"),
        Reason::InUse => (RpcError::INVALID_PARAMS, "in_use"),
        Reason::NotFound => (RpcError::NOT_FOUND, "not_found"),
        // The message is there: what there is not is this way of going back to it.
        Reason::NoFiles => (RpcError::INVALID_PARAMS, "no_files"),
        Reason::Nothing => (RpcError::INVALID_PARAMS, "nothing"),
        Reason::Invalid => (RpcError::INVALID_PARAMS, "invalid"),
        Reason::Ended => (RpcError::NOT_FOUND, "ended"),
        Reason::Failed => (RpcError::INTERNAL, "failed"),
    };
    let message = match (refusal.reason, &refusal.hint) {
        // Many clients show nothing else.
        (Reason::NoFiles, Some(hint)) => format!("{}: {hint}", refusal.message),
        _ => refusal.message.clone(),
    };
    let mut error = RpcError::new(code, message).with_reason(reason);
    if refusal.reason == Reason::NoFiles {
        error = error.with("scopes", json!([Scope::Conversation]));
    }
    if refusal.reason == Reason::Ended {
        error = error.with("sessionId", session);
    }
    if let Some(hint) = &refusal.hint {
        error = error.with("hint", hint.as_str());
    }
    if let Some(document) = &refusal.document {
        error = error.with("files", files(document)).with("conflicts", conflicts(document));
    }
    error
}

/// A time as the protocol writes it.
pub(crate) fn date(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.0).map_or_else(|_| String::new(), |at| at.to_string())
}
