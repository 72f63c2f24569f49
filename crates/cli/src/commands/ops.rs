//! `retake ops`: the operation log.

use std::collections::{HashMap, HashSet};
use std::io::Write;

use retake_agent::{ids, listing};
use retake_engine::id::{CheckpointId, OperationId};
use retake_engine::operation::{Operation, OperationKind, OperationState};
use retake_engine::snapshot::Changed;
use retake_engine::view::Beside;
use retake_engine::view::Side;
use retake_engine::{OpenError, StoreError, Workspace};
use serde::Serialize;

use crate::agent::session;
use crate::failure::Result;
use crate::output::json;
use crate::output::quote;
use crate::output::time;
use crate::output::ui::{DIM, Format, RED, Ui, YELLOW};
use crate::workspace::context::CommandContext;
use crate::workspace::interrupted_rewind;

/// List what `retake` did or ran, newest first
///
/// For each: its id, its age, the session it belongs to, what it was, how many files changed meanwhile (of a turn: how many the turn
/// changed), and whether it is undone.
#[derive(clap::Args, Debug)]
pub struct OpsArgs {
    /// Only operations of this session
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
}

#[derive(Serialize)]
struct OpsDocument {
    version: u32,
    operations: Vec<OperationFacts>,
}

#[derive(Serialize)]
struct OperationFacts {
    id: String,
    at: String,
    session: Option<String>,
    kind: OperationKind,
    what: String,
    state: OperationState,
    undone: bool,
    /// The operation that an undo or a redo is about.
    reverses: Option<String>,
    before: Option<String>,
    after: Option<String>,
    /// What a turn changed, else what changed from `before` to `after`; null if there is no checkpoint after it.
    changed: Option<json::Counts>,
}

pub fn run(ui: &mut Ui, here: CommandContext, args: &OpsArgs) -> Result<()> {
    let workspace = match Workspace::open(here.environment) {
        Ok(workspace) => Some(workspace),
        Err(OpenError::NotAWorkspace { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let mut operations = Vec::new();
    let mut changed: HashMap<OperationId, Changed> = HashMap::new();
    let mut beside: HashSet<OperationId> = HashSet::new();
    if let Some(workspace) = &workspace {
        interrupted_rewind::mention(ui, workspace)?;
        operations = workspace.operations().all()?;
        if let Some(text) = &args.session {
            let session = session::named(workspace, text)?.id;
            operations.retain(|operation| operation.session == Some(session));
        }
        changed = changes(workspace, &operations)?;
        let unchanged = |operation: &&Operation| changed.get(&operation.id) == Some(&Changed::default());
        for operation in operations.iter().filter(unchanged) {
            if has_changed_beside(workspace, operation)? {
                beside.insert(operation.id);
            }
        }
    }
    let changed = |operation: &Operation| changed.get(&operation.id);
    if ui.format == Format::Json {
        let facts = |operation: &Operation| OperationFacts {
            id: operation.id.to_string(),
            at: time::rfc3339(operation.at),
            session: operation.session.map(|id| id.to_string()),
            kind: operation.kind,
            what: operation.what.clone(),
            state: operation.state,
            undone: operation.undone,
            reverses: operation.reverses.map(|id| id.to_string()),
            before: operation.before.map(|id| id.to_string()),
            after: operation.after.map(|id| id.to_string()),
            changed: changed(operation).map(json::Counts::new),
        };
        let operations = operations.iter().map(facts).collect();
        return Ok(ui.json(&OpsDocument { version: json::VERSION, operations })?);
    }
    if operations.is_empty() {
        writeln!(ui.talk()?, "No operations yet. `retake exec -- COMMAND` runs a command that can be undone.")?;
        return Ok(());
    }
    ui.start_pager()?;
    let now = ids::now();
    let (yellow, dim, red) = (ui.paint.with(YELLOW), ui.paint.with(DIM), ui.paint.with(RED));
    for operation in &operations {
        let counts = match changed(operation) {
            Some(_) if beside.contains(&operation.id) => "  no captured file changed".to_owned(),
            Some(changed) => format!("  {}", super::counts(changed)),
            None => String::new(),
        };
        let state = match (operation.state, operation.undone) {
            (OperationState::Done, false) => String::new(),
            (OperationState::Done, true) => format!("  {dim}undone{dim:#}"),
            (OperationState::Running, _) => format!("  {red}not finished{red:#}"),
            (OperationState::Failed, _) => format!("  {dim}did not happen{dim:#}"),
            (OperationState::Partial, _) => format!("  {red}done in part{red:#}"),
        };
        writeln!(
            ui.out,
            "{yellow}{}{yellow:#}  {dim}{:<14}  {:<8}{dim:#}  {:<6}  {}{dim}{counts}{dim:#}{state}",
            operation.id.short(),
            time::age(operation.at, now),
            operation.session.map(|session| session.short()).unwrap_or_default(),
            operation.kind.name(),
            quote::one_line(&operation.what),
        )?;
    }
    Ok(())
}

/// Whether something changed from the point before `operation` to the one after it that no checkpoint captures: git's state, ignored
/// files, gaps.
fn has_changed_beside(workspace: &Workspace, operation: &Operation) -> Result<bool, StoreError> {
    let points = workspace.checkpoints().all()?;
    let point = |id: Option<CheckpointId>| points.iter().find(|point| Some(point.id) == id);
    let (Some(before), Some(after)) = (point(operation.before), point(operation.after)) else { return Ok(false) };
    if !before.git_moves(after).is_empty() {
        return Ok(true);
    }
    match workspace.checkpoints().uncaptured_changes(before, after) {
        Ok(changes) => Ok(!changes.is_empty()),
        Err(StoreError::Damaged { .. } | StoreError::Missing { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// What each turn among `operations` changed, as `retake log` counts it, and what changed between the points before and after each of the
/// others, whoever did it.
fn changes(workspace: &Workspace, operations: &[Operation]) -> Result<HashMap<OperationId, Changed>, StoreError> {
    let prompts = workspace.sessions().prompts_at()?;
    let points = workspace.checkpoints().all()?;
    let places: HashMap<CheckpointId, usize> = points.iter().enumerate().map(|(at, point)| (point.id, at)).collect();
    let mut changed = HashMap::new();
    for operation in operations {
        let place = |id: Option<CheckpointId>| id.and_then(|id| places.get(&id).copied());
        let (Some(before), Some(after)) = (place(operation.before), place(operation.after)) else { continue };
        if operation.kind == OperationKind::Turn
            && let Some(prompt) = prompts.get(&points[before].id)
        {
            changed.insert(operation.id, listing::came_of(prompt));
            continue;
        }
        // A point knows what changed since the one before it.
        if before == after + 1 {
            changed.insert(operation.id, points[after].changed);
            continue;
        }
        let sides = [before, after].map(|at| Side::Stored(points[at].snapshot));
        let split = |changes| workspace.checkpoints().split_left_out(changes, &Beside::Checkpoint(&points[after]));
        let split_first = |(changes, _)| workspace.checkpoints().split_newly_captured(changes, &points[before]);
        match workspace.diff(&sides[0], &sides[1]).and_then(split).and_then(split_first) {
            Ok((changes, _)) => drop(changed.insert(operation.id, Changed::count(&changes))),
            // What cannot be compared is not counted; all else still is.
            Err(StoreError::Damaged { .. } | StoreError::Missing { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(changed)
}
