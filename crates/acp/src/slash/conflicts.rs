//! Asks the user what to do with conflicting files, in a permission request, which every client can show.

use retake_agent::ids;
use retake_agent::rewind_document::{Bytes, RewindDocument};
use retake_engine::rewind::OnConflict;
use serde_json::{Value, json};

use super::run::Running;
use super::text::{self, RequestedChange};
use crate::extension::Version;
use crate::extension::backend::SessionBackend;
use crate::wire::RpcError;

/// What can be chosen for all of them: the choice, its id, and what it is called if it can be made for each and if not.
const CHOICES: [(OnConflict, &str, &str, &str); 3] = [
    (OnConflict::Keep, "keep", "Keep those files as they are", "Keep those files as they are"),
    (
        OnConflict::Merge,
        "merge",
        "Merge: take only the agent's changes out",
        "Merge where that is clean: take only the agent's changes out; keep the other files as they are",
    ),
    (
        OnConflict::Overwrite,
        "overwrite",
        "Overwrite them (undo brings them back)",
        "Overwrite those that undo can bring back; keep the other files as they are",
    ),
];

/// Has the user decide about the conflicts of a plan: the choice for each path, or `None` for nothing at all.
pub(super) async fn decide(
    backend: &impl SessionBackend,
    running: &mut Running<'_>,
    plan: &RewindDocument,
    deed: &RequestedChange,
) -> Result<Option<Vec<(Bytes, OnConflict)>>, RpcError> {
    let title = &deed.wanted(plan);
    let text = format!("{title}: {}\n\n{}", deed.meaning(plan), text::conflicts(&plan.conflicts));
    let call = json!({
        "toolCallId": format!("command-{}", ids::entry()),
        "title": title,
        "kind": "edit",
        "status": "pending",
        "content": [{ "type": "content", "content": { "type": "text", "text": text } }],
    });
    running.let_others_go_on();
    backend.tell_state("requires_action").await;
    let chosen = tokio::select! {
        chosen = choose(backend, title, call, options(plan)) => chosen,
        () = running.stopped() => Err(RpcError::new(RpcError::CANCELLED, "nothing was changed").with_reason("cancelled")),
    };
    backend.tell_state("running").await;
    let chosen = chosen?;
    let Some((choice, ..)) = CHOICES.iter().find(|(_, id, ..)| chosen.as_deref() == Some(*id)) else { return Ok(None) };
    let choices = plan.conflicts.iter().map(|one| {
        let choice = if one.choices.contains(choice) { *choice } else { OnConflict::Keep };
        (one.path.clone(), choice)
    });
    Ok(Some(choices.collect()))
}

/// None of them is for always: what is decided is decided about these files, as they are now.
fn options(plan: &RewindDocument) -> Vec<Value> {
    let option = |id: &str, name: &str, kind: &str| json!({ "optionId": id, "name": name, "kind": kind });
    let mut options = Vec::new();
    for (choice, id, of_all, of_some) in CHOICES {
        let can = plan.conflicts.iter().filter(|one| one.choices.contains(&choice)).count();
        match can {
            0 => {}
            can if can == plan.conflicts.len() => options.push(option(id, of_all, "allow_once")),
            _ => options.push(option(id, of_some, "allow_once")),
        }
    }
    options.push(option("cancel", "Change nothing", "reject_once"));
    options
}

/// Has the user choose; `None` if they do not want to.
pub(crate) async fn choose(
    backend: &impl SessionBackend,
    title: &str,
    call: Value,
    options: Vec<Value>,
) -> Result<Option<String>, RpcError> {
    let params = match backend.version() {
        Version::V1 => json!({ "sessionId": backend.session(), "toolCall": call, "options": options }),
        Version::V2 => json!({
            "sessionId": backend.session(),
            "title": title,
            "subject": { "type": "tool_call", "toolCall": call },
            "options": options,
        }),
    };
    let answer = backend.client().request("session/request_permission", params).await?;
    let chosen = answer.pointer("/outcome/optionId").and_then(Value::as_str).map(str::to_owned);
    Ok(chosen.filter(|_| answer.pointer("/outcome/outcome").and_then(Value::as_str) == Some("selected")))
}
