//! Which session is meant, and whether it lives in another process.

use retake_acp::proxy;
use retake_agent::listing::conversations;
use retake_engine::checkpoint::ResolveError;
use retake_engine::session::Session;
use retake_engine::{Workspace, limits};

use super::AgentError;
use crate::failure::Result;

/// The session that `wanted` names, else the newest conversation in which something was said: a prompt that came to nothing, and waits to
/// be said again, began none.
pub fn to_continue(workspace: &Workspace, wanted: Option<&str>) -> Result<Session> {
    let Some(text) = wanted else {
        let mut found = conversations(workspace)?;
        let at = found.iter().position(|session| !session.title.is_empty()).unwrap_or_default();
        found.truncate(at + 1);
        return Ok(found.pop().ok_or(AgentError::NoSession)?);
    };
    Ok(named(workspace, text)?)
}

/// The session that `wanted` names, else the newest conversation.
pub fn find(workspace: &Workspace, wanted: Option<&str>) -> Result<Session> {
    match wanted {
        Some(text) => Ok(named(workspace, text)?),
        None => Ok(conversations(workspace)?.into_iter().next().ok_or(AgentError::NoSession)?),
    }
}

/// The session that `text` names: by what an editor calls a session of another agent, or by the beginning of an id, of ours first.
pub fn named(workspace: &Workspace, text: &str) -> Result<Session, ResolveError> {
    let names = proxy::names(workspace.store_dir());
    let exact = names.iter().find(|(name, _)| name == text);
    if let Some(found) = exact.and_then(|(_, id)| workspace.sessions().resolve(id).ok()) {
        return Ok(found);
    }
    let unknown = match workspace.sessions().resolve(text) {
        Err(unknown @ ResolveError::UnknownSession { .. }) if text.len() >= limits::MIN_ID_DIGITS => unknown,
        found => return found,
    };
    let begun = names.iter().filter(|(name, _)| name.starts_with(text));
    let mut found: Vec<Session> = begun.filter_map(|(_, id)| workspace.sessions().resolve(id).ok()).collect();
    match found.len() {
        0 => Err(unknown),
        1 => Ok(found.remove(0)),
        _ => Err(ResolveError::AmbiguousSession { session: text.to_owned(), candidates: found }),
    }
}
