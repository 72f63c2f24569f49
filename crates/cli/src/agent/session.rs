//! Which session is meant, and whether it lives in another process.

use retake_agent::listing::conversations;
use retake_engine::{Session, Workspace};

use super::AgentError;

/// The session that `named` names, else the newest conversation in which something was said: a prompt that came to nothing, and waits to
/// be said again, began none.
pub fn to_continue(workspace: &Workspace, named: Option<&str>) -> anyhow::Result<Session> {
    let Some(text) = named else {
        let mut found = conversations(workspace)?;
        let at = found.iter().position(|session| !session.title.is_empty()).unwrap_or_default();
        found.truncate(at + 1);
        return Ok(found.pop().ok_or(AgentError::NoSession)?);
    };
    Ok(workspace.resolve_session(text)?)
}

/// The session that `named` names, else the newest conversation.
pub fn find(workspace: &Workspace, named: Option<&str>) -> anyhow::Result<Session> {
    match named {
        Some(text) => Ok(workspace.resolve_session(text)?),
        None => Ok(conversations(workspace)?.into_iter().next().ok_or(AgentError::NoSession)?),
    }
}
