//! Answers clients' queries about a session and its workspace, on the workspace thread, for the controller and the proxy alike.
//!
//! Reads only, except for labels. Translates a client's change into a request to the engine, and the engine's errors into refusals.

mod compare;

use std::sync::{Mutex, PoisonError};

use retake_engine::checkpoint::{CheckpointError, ResolveError};
use retake_engine::id::EntryId;
use retake_engine::id::SessionId;
use retake_engine::operation::{Operation, OperationError, OperationKind};
use retake_engine::progress::NoProgress;
use retake_engine::rewind::{Files, Goal, RewindError, RewindRequest};
use retake_engine::session::{Discard, Point, Scope};
use retake_engine::{Workspace, WorkspacePath};

use crate::contract::{Change, ChangeGoal, DiffOf, Query, Reason, Refusal, Reply};
use crate::diff;
use crate::listing;
use crate::path_search::FileList;
use crate::rewind_document::{Bytes, RewindDocument};

/// Answers a query about the workspace: targets, a plan, a diff, the tree, what can be undone, checkpoints, sessions, files, the store.
pub fn answer(
    workspace: &mut Workspace,
    session: SessionId,
    files: &Mutex<FileList>,
    query: Query,
) -> Result<Reply, Refusal> {
    match query {
        Query::Targets { query } => {
            let found = match query {
                Some(query) => workspace.sessions().search(session, &query),
                None => workspace.sessions().targets(session),
            };
            let head = workspace.sessions().conversation(session).map_err(|err| failed(&err))?.head();
            found.map(|targets| Reply::Targets { head, targets }).map_err(|err| failed(&err))
        }
        Query::Plan { change } => to_request(workspace, session, &change)
            .and_then(|request| workspace.rewinds().plan(&request, &NoProgress).map_err(|err| refused(&err)))
            .map(|plan| Reply::Change { document: Box::new(RewindDocument::planned(&plan)) }),
        Query::Diff { of } => match of {
            DiffOf::Change { change } => to_request(workspace, session, &change)
                .and_then(|request| workspace.rewinds().plan(&request, &NoProgress).map_err(|err| refused(&err)))
                .map(|plan| (diff::of_plan(workspace, &plan), Some(Box::new(RewindDocument::planned(&plan))))),
            DiffOf::Turn { prompt } => compare::turn(workspace, prompt).map(|files| (files, None)),
            DiffOf::Between { from, to } => compare::points(workspace, session, &from, &to).map(|files| (files, None)),
        }
        .map(|(files, plan)| Reply::Diff { files, plan }),
        Query::Tree => listing::tree(workspace, session)
            .map(|(head, prompts)| Reply::Tree { head, prompts })
            .map_err(|err| failed(&err)),
        Query::Operations => listing::next_operations(workspace, session)
            .map(|(undo, redo)| Reply::Operations { undo: undo.map(Box::new), redo: redo.map(Box::new) })
            .map_err(|err| failed(&err)),
        Query::Checkpoints => listing::checkpoints(workspace)
            .map(|checkpoints| Reply::Checkpoints { checkpoints })
            .map_err(|err| failed(&err)),
        Query::Sessions => {
            listing::sessions(workspace).map(|sessions| Reply::Sessions { sessions }).map_err(|err| failed(&err))
        }
        Query::Files { query } => {
            let mut files = files.lock().unwrap_or_else(PoisonError::into_inner);
            let refreshed = files.refresh(workspace).map_err(|err| failed(&err));
            refreshed.map(|()| Reply::Files { paths: files.find(&query) })
        }
        Query::Store => workspace
            .maintenance()
            .usage()
            .map(|usage| Reply::Store { bytes: usage.store_bytes, budget: usage.budget })
            .map_err(|err| failed(&err)),
        Query::Attach { .. } | Query::Context | Query::Ping => {
            Err(refusal(Reason::Invalid, "this is no question about the workspace"))
        }
    }
}

/// A refusal without more.
pub fn refusal(reason: Reason, message: impl Into<String>) -> Refusal {
    Refusal { reason, message: message.into(), hint: None, document: None }
}

/// An error with what caused it, in one line.
pub fn in_words(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}

/// What a change asks the engine for.
pub fn to_request(workspace: &Workspace, session: SessionId, change: &Change) -> Result<RewindRequest, Refusal> {
    let not_found = |err: &dyn std::error::Error| refusal(Reason::NotFound, in_words(err));
    let goal = match &change.goal {
        ChangeGoal::Rewind { entry, scope, files, discard } => {
            Goal::Entry { session, entry: *entry, scope: *scope, files: *files, discard: *discard }
        }
        ChangeGoal::KeepPrompt { prompt, scope, files } => {
            Goal::AfterPrompt { session, prompt: *prompt, scope: *scope, files: *files }
        }
        ChangeGoal::Checkpoint { checkpoint, files } => to_checkpoint(workspace, session, checkpoint, *files)?,
        ChangeGoal::Undo { operation: None } => Goal::Undo { operation: None, session: Some(session) },
        ChangeGoal::Undo { operation: Some(text) } => {
            let operation = workspace.operations().resolve(text).map_err(|err| not_found(&err))?;
            if operation.session != Some(session) {
                let text = format!("operation {} is not one of this session", operation.id.short());
                return Err(refusal(Reason::NotFound, text));
            }
            match operation.kind {
                // To take back an undo is to redo what it took back.
                OperationKind::Undo => {
                    is_next(workspace, session, &operation)?;
                    Goal::Redo { session: Some(session) }
                }
                _ => Goal::Undo { operation: Some(operation.id), session: Some(session) },
            }
        }
        ChangeGoal::Redo { operation } => {
            if let Some(text) = operation {
                let named = workspace.operations().resolve(text);
                let named = named.map_err(|err| refusal(Reason::NotFound, in_words(&err)))?;
                is_next(workspace, session, &named)?;
            }
            Goal::Redo { session: Some(session) }
        }
    };
    let path = |bytes: &Bytes| -> Result<WorkspacePath, Refusal> {
        let bytes = bytes.decode().ok_or_else(|| refusal(Reason::Invalid, "a path is not valid base64"))?;
        WorkspacePath::parse(&bytes).map_err(|err| refusal(Reason::Invalid, err.to_string()))
    };
    let mut request = RewindRequest::new(goal);
    request.paths = change.paths.iter().map(path).collect::<Result<_, _>>()?;
    request.on_conflict = change.on_conflict;
    let choices = change.choices.iter().map(|(bytes, choice)| Ok((path(bytes)?, *choice)));
    request.choices = choices.collect::<Result<_, Refusal>>()?;
    request.on_yours = change.on_yours;
    request.across_branches = change.across_branches;
    Ok(request)
}

/// The goal of a rewind to a checkpoint. Without `path_search` the checkpoint means the same as on the command line.
///
/// Every goal belongs to this session, so that the session's undo takes it back: the changes of another session are refused.
fn to_checkpoint(
    workspace: &Workspace,
    session: SessionId,
    named: &str,
    files: Option<Files>,
) -> Result<Goal, Refusal> {
    let not_found = |err: ResolveError| refusal(Reason::NotFound, in_words(&err));
    let checkpoint = workspace.checkpoints().resolve(named).map_err(not_found)?;
    let point = workspace.sessions().resolve_point(&checkpoint.id.to_string(), Some(session)).map_err(not_found)?;
    let owner = match point {
        Point::Entry { session: owner, entry, .. } if owner == session => {
            let files = files.unwrap_or(Files::Selective);
            return Ok(Goal::Entry { session, entry: entry.id, scope: Scope::Code, files, discard: Discard::No });
        }
        Point::Entry { session: owner, .. } => Some(owner),
        Point::Checkpoint(_) => checkpoint.session,
    };
    let (id, short) = (checkpoint.id, checkpoint.id.short());
    match (files, owner) {
        (Some(Files::Exact), _) | (None, None) => Ok(Goal::Exact { checkpoint: id, session: Some(session) }),
        (Some(Files::Selective), _) => Ok(Goal::Selective { session, checkpoint: id }),
        (None, Some(owner)) if owner == session => Ok(Goal::Selective { session, checkpoint: id }),
        (None, Some(_)) => Err(Refusal {
            hint: Some(format!("`retake rewind {short}` rewinds that session's changes")),
            ..refusal(Reason::Invalid, format!("nothing was changed: {short} is a point of another session"))
        }),
    }
}

/// Refuses if a redo would not repeat `named`, which is that operation or its undo.
fn is_next(workspace: &Workspace, session: SessionId, named: &Operation) -> Result<(), Refusal> {
    let next =
        workspace.operations().next_to_redo(Some(session)).map_err(|err| refusal(Reason::Nothing, in_words(&err)))?;
    if next.id == named.id || next.reverses == Some(named.id) {
        return Ok(());
    }
    let text = format!("operation {} is not what was undone last in this session", named.id.short());
    Err(Refusal { hint: Some("a redo without a name repeats that".to_owned()), ..refusal(Reason::Nothing, text) })
}

/// An error of the engine as clients are told it.
pub fn refused(error: &RewindError) -> Refusal {
    let reason = match error {
        RewindError::Refused { .. }
        | RewindError::ForkInUse { .. }
        | RewindError::Pending { .. }
        | RewindError::ChangedSinceCrash { .. } => Reason::Conflicts,
        RewindError::Stale { .. } => Reason::StalePlan,
        RewindError::StaleHead => Reason::StaleHead,
        RewindError::InUse { .. } => Reason::InUse,
        RewindError::UnknownEntry { .. } | RewindError::Gone => Reason::NotFound,
        RewindError::FilesGone { .. } => Reason::NoFiles,
        RewindError::Discarded { .. } => Reason::Nothing,
        RewindError::NotATarget { .. } => Reason::Invalid,
        RewindError::Operation(error) => match error {
            OperationError::NothingToUndo | OperationError::NothingToRedo => Reason::Nothing,
            OperationError::Running { .. } | OperationError::NotFinished { .. } => Reason::Running,
            OperationError::Unknown { .. } | OperationError::Ambiguous { .. } => Reason::NotFound,
            OperationError::AlreadyUndone { .. }
            | OperationError::NotReversible { .. }
            | OperationError::WithinTurn { .. }
            | OperationError::NewestGone { .. }
            | OperationError::NewerInSession { .. } => Reason::Invalid,
            OperationError::Store(_) => Reason::Failed,
        },
        RewindError::SessionNotOpen { .. }
        | RewindError::RolledBack { .. }
        | RewindError::Partial { .. }
        | RewindError::NotRecorded { .. }
        | RewindError::LeftOver { .. }
        | RewindError::DamagedTarget { .. }
        | RewindError::Unfinished { .. }
        | RewindError::Safety(_)
        | RewindError::Store(_) => Reason::Failed,
    };
    let document = RewindDocument::failed(error).map(Box::new);
    let hint = (reason == Reason::NoFiles).then(|| "only the conversation can go back to there".to_owned());
    Refusal { reason, message: in_words(error), hint, document }
}

fn failed(error: &dyn std::error::Error) -> Refusal {
    refusal(Reason::Failed, in_words(error))
}

/// Gives the point before a prompt a label, or takes it away.
pub fn set_label(
    workspace: &mut Workspace,
    session: SessionId,
    prompt: EntryId,
    label: Option<&str>,
) -> Result<Reply, Refusal> {
    let point = workspace.sessions().resolve_point(&prompt.to_string(), Some(session)).map_err(|err| match err {
        ResolveError::Unknown { .. } => refusal(Reason::NotFound, "there is no such prompt"),
        other => failed(&other),
    })?;
    let gone = || refusal(Reason::NotFound, format!("the files as they were at {} are not kept", prompt.short()));
    let checkpoint = point.checkpoint_id().ok_or_else(gone)?;
    workspace.checkpoints_mut().set_label(checkpoint, label).map_err(|err| match &err {
        CheckpointError::Label(_) => refusal(Reason::Invalid, in_words(&err)),
        CheckpointError::LabelTaken { .. } => Refusal {
            hint: Some("choose another label, or take that one away first".to_owned()),
            ..refusal(Reason::Conflicts, in_words(&err))
        },
        _ => failed(&err),
    })?;
    Ok(Reply::Done)
}
