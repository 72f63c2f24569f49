//! Points as users name them: checkpoints and entries of conversations, by label or by the beginning of an id.

use retake_engine::Workspace;
use retake_engine::checkpoint::{Checkpoint, ResolveError};
use retake_engine::id::SessionId;
use retake_engine::session::Point;

use crate::agent::session;
use crate::commands::CommandError;
use crate::failure::{Failure, Result};

/// The option that commands with a POINT have.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct SessionArgs {
    /// The session that the point belongs to
    #[arg(long, value_name = "SESSION")]
    pub session: Option<String>,
}

impl SessionArgs {
    /// The session that is meant.
    pub fn resolve(&self, workspace: &Workspace) -> Result<Option<SessionId>, ResolveError> {
        let named = self.session.as_deref().map(|text| session::named(workspace, text)).transpose()?;
        Ok(named.map(|session| session.id))
    }
}

/// The checkpoint that `text` names: itself, the one before a prompt, the last one at or before another entry.
pub fn checkpoint(workspace: &Workspace, text: &str, session: Option<SessionId>) -> Result<Checkpoint> {
    match workspace.sessions().resolve_point(text, session)? {
        Point::Checkpoint(checkpoint) => Ok(*checkpoint),
        Point::Entry { checkpoint: Some(checkpoint), .. } => Ok(*checkpoint),
        Point::Entry { entry, checkpoint: None, .. } => Err(CommandError::NoFiles { point: entry.id.short() }.into()),
    }
}

/// The checkpoints around the turn of the prompt that `text` names; the second one is `None` while it runs.
pub fn turn(workspace: &Workspace, text: &str, session: Option<SessionId>) -> Result<(Checkpoint, Option<Checkpoint>)> {
    let entry = match workspace.sessions().resolve_point(text, session)? {
        Point::Entry { entry, .. } => entry,
        Point::Checkpoint(checkpoint) => return Err(CommandError::NotAPrompt { point: checkpoint.id.short() }.into()),
    };
    let not_kept = || CommandError::NoFiles { point: entry.id.short() };
    let points = workspace
        .sessions()
        .turn_points(entry.id)?
        .ok_or_else(|| CommandError::NotAPrompt { point: entry.id.short() })?;
    match (points.before, points.after, points.has_ended) {
        (Some(before), Some(after), _) => Ok((before, Some(after))),
        (Some(before), None, false) => Ok((before, None)),
        (None, ..) | (Some(_), None, true) => Err(not_kept().into()),
    }
}

/// Whether nothing has this name.
pub fn is_unknown(error: &Failure) -> bool {
    matches!(error.downcast_ref(), Some(ResolveError::Unknown { .. }))
}
