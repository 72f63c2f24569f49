//! What can be listed of a workspace: its conversations, its points, and all that was said in one of them.
//!
//! The command line and clients of a session list the same, so that which ones are of interest is decided here, once. Nothing is written,
//! and no conversation is read whole, however long it is.

use std::collections::{HashMap, HashSet};

use retake_engine::checkpoint::{Checkpoint, Origin};
use retake_engine::id::EntryId;
use retake_engine::id::{CheckpointId, SessionId};
use retake_engine::operation::{Operation, OperationError, OperationKind};
use retake_engine::session::{ForkPlace, PromptAt, PromptTree, TurnSummary, first_line};
use retake_engine::session::{Session, SessionError, SessionKind};
use retake_engine::snapshot::Changed;
use retake_engine::{StoreError, Workspace};

use crate::contract::{CheckpointFacts, OperationFacts, SessionFacts, TreePrompt};

/// The conversations of a workspace, newest first. One in which nothing was said, and nothing is to be said, is none.
pub fn conversations(workspace: &Workspace) -> Result<Vec<Session>, SessionError> {
    let mut found = Vec::new();
    for session in workspace.sessions().all()? {
        if session.kind == SessionKind::Conversation
            && (!session.title.is_empty()
                || workspace.sessions().is_live(session.id)
                || !workspace.sessions().draft(session.id)?.is_empty())
        {
            found.push(session);
        }
    }
    Ok(found)
}

/// The same, as clients are told of them.
pub fn sessions(workspace: &Workspace) -> Result<Vec<SessionFacts>, SessionError> {
    conversations(workspace)?.into_iter().map(|session| facts(workspace, session)).collect()
}

/// Those in which each word of `query` is in the title, in what waits to be said, or in what search finds of its prompts: text, labels,
/// tools and files.
pub fn search_sessions(workspace: &Workspace, query: &str) -> Result<Vec<SessionFacts>, SessionError> {
    let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    let mut found = Vec::new();
    for session in conversations(workspace)? {
        let id = session.id;
        let facts = facts(workspace, session)?;
        let own = format!("{}\n{}", facts.title, facts.draft.as_deref().unwrap_or_default()).to_lowercase();
        let mut is_found = true;
        for word in words.iter().filter(|word| !own.contains(word.as_str())) {
            is_found = is_found && !workspace.sessions().search(id, word)?.is_empty();
        }
        if is_found {
            found.push(facts);
        }
    }
    Ok(found)
}

fn facts(workspace: &Workspace, session: Session) -> Result<SessionFacts, SessionError> {
    let outline = workspace.sessions().outline(session.id)?;
    let draft = first_line(&workspace.sessions().draft(session.id)?);
    Ok(SessionFacts {
        session: session.id.into(),
        title: session.title,
        at: outline.last.unwrap_or(session.at),
        prompts: outline.prompts,
        live: workspace.sessions().is_live(session.id),
        forked_from: session.forked_from.map(|from| from.session.into()),
        draft: Some(draft).filter(|line| !line.is_empty()),
    })
}

/// A point, and the prompt that it was taken at.
pub type PointOf = (Checkpoint, Option<PromptAt>);

/// The points of a workspace that one may want to go back to, newest first. What a rewind left behind is none, unless it has a name.
pub fn points(workspace: &Workspace) -> Result<Vec<PointOf>, SessionError> {
    let conversations: HashSet<SessionId> = conversations(workspace)?.into_iter().map(|session| session.id).collect();
    let is_of_conversation = |point: &Checkpoint| point.session.is_some_and(|id| conversations.contains(&id));
    let mut points = all_points(workspace)?;
    let idle = idle(workspace, &points)?;
    points.retain(|(point, prompt)| {
        !idle.contains(&point.id) && is_of_interest(point, prompt.as_ref(), is_of_conversation(point))
    });
    Ok(points)
}

/// The points around commands that changed nothing: the one after such a command, and the one before it unless that holds something
/// new itself. A point with a label is none of these.
fn idle(workspace: &Workspace, points: &[PointOf]) -> Result<HashSet<CheckpointId>, StoreError> {
    let places: HashMap<CheckpointId, usize> =
        points.iter().enumerate().map(|(at, (point, _))| (point.id, at)).collect();
    let is_same = |one: usize, other: usize| points[one].0.holds_the_same_as(&points[other].0);
    let mut idle = HashSet::new();
    for operation in workspace.operations().all()?.iter().filter(|operation| operation.kind == OperationKind::Exec) {
        let place = |id: Option<CheckpointId>| id.and_then(|id| places.get(&id).copied());
        let (Some(before), Some(after)) = (place(operation.before), place(operation.after)) else { continue };
        // A commit changes no file and is something all the same.
        if !is_same(before, after) || points[before].0.git != points[after].0.git {
            continue;
        }
        idle.insert(points[after].0.id);
        if before + 1 < points.len() && is_same(before, before + 1) {
            idle.insert(points[before].0.id);
        }
    }
    idle.retain(|id| points[places[id]].0.label.is_none());
    Ok(idle)
}

/// All points of a workspace, newest first.
pub fn all_points(workspace: &Workspace) -> Result<Vec<PointOf>, SessionError> {
    let mut prompts = workspace.sessions().prompts_at()?;
    let points = workspace.checkpoints().all()?.into_iter();
    let with_prompt = |point: Checkpoint| {
        let prompt = prompts.remove(&point.id);
        (point, prompt)
    };
    Ok(points.map(with_prompt).collect())
}

/// Points that a rewind made are for undoing it, which needs no id; those of the agent's tools lie between prompts.
fn is_of_interest(point: &Checkpoint, prompt: Option<&PromptAt>, is_of_conversation: bool) -> bool {
    match point.origin {
        _ if point.label.is_some() => true,
        Origin::Before | Origin::After => !is_of_conversation,
        Origin::Checkpoint => true,
        Origin::Prompt => prompt.is_none_or(|prompt| prompt.number.is_some()),
        Origin::Safety | Origin::Rewound | Origin::Turn => false,
    }
}

/// Whether a point is before or after what its note tells, as a word and a blank.
pub fn when(checkpoint: &Checkpoint) -> &'static str {
    match checkpoint.origin {
        Origin::Checkpoint | Origin::Turn => "",
        Origin::Prompt => "> ",
        Origin::Before | Origin::Safety => "before ",
        Origin::After | Origin::Rewound => "after ",
    }
}

/// What the turn of a point's prompt did to the files.
pub fn came_of(prompt: &PromptAt) -> Changed {
    let TurnSummary { added, modified, deleted, .. } = prompt.files;
    Changed { added, modified, deleted }
}

/// The points that one may want to go back to, as clients are told of them.
pub fn checkpoints(workspace: &Workspace) -> Result<Vec<CheckpointFacts>, SessionError> {
    let facts = |(point, prompt): PointOf| CheckpointFacts {
        checkpoint: point.id.into(),
        at: point.at,
        note: point.note.as_ref().map(|note| format!("{}{note}", when(&point))),
        label: point.label,
        changed: point.changed,
        turn: prompt.as_ref().map(came_of),
        gaps: point.gap_count,
    };
    Ok(points(workspace)?.into_iter().map(facts).collect())
}

/// All prompts that were ever said in a session as clients are told of them, oldest first, and the last one that is retained.
pub fn tree(workspace: &Workspace, session: SessionId) -> Result<(Option<EntryId>, Vec<TreePrompt>), SessionError> {
    let PromptTree { prompts, forks } = workspace.sessions().prompt_tree(session)?;
    let head = prompts.iter().filter(|prompt| prompt.number.is_some()).max_by_key(|prompt| prompt.number);
    let head = head.map(|prompt| prompt.id);
    let mut prompts: Vec<TreePrompt> = prompts
        .into_iter()
        .map(|prompt| TreePrompt {
            id: prompt.id,
            parent: prompt.parent,
            at: prompt.at,
            text: prompt.text,
            number: prompt.number,
            label: prompt.label,
            files: prompt.files,
            forks: Vec::new(),
            end: prompt.end,
        })
        .collect();
    for fork in forks {
        let Some(ForkPlace::Before(at) | ForkPlace::After(at)) = fork.place else { continue };
        if let Some(prompt) = prompts.iter_mut().find(|prompt| prompt.id == at) {
            prompt.forks.push(fork.session.id.into());
        }
    }
    Ok((head, prompts))
}

/// What undo and redo of a session would take back and repeat now, as clients are told of it.
pub fn next_operations(
    workspace: &Workspace,
    session: SessionId,
) -> Result<(Option<OperationFacts>, Option<OperationFacts>), StoreError> {
    let found = |next: Result<Operation, OperationError>| match next {
        Ok(operation) => Ok(Some(operation)),
        Err(OperationError::Store(error)) => Err(error),
        // There is nothing, or nothing that is undone without being named.
        Err(_) => Ok(None),
    };
    let facts = |operation: &Operation, named: &Operation| OperationFacts {
        operation: named.id.into(),
        kind: operation.kind.name().to_owned(),
        what: operation.what.clone(),
        at: operation.at,
    };
    let undo =
        found(workspace.operations().next_to_undo(Some(session)))?.map(|operation| facts(&operation, &operation));
    let redo = found(workspace.operations().next_to_redo(Some(session)))?;
    let redo = match redo.as_ref().and_then(|undo| Some((undo, undo.reverses?))) {
        Some((undo, original)) => {
            found(workspace.operations().resolve(&original.to_string()))?.map(|original| facts(&original, undo))
        }
        None => None,
    };
    Ok((undo, redo))
}
