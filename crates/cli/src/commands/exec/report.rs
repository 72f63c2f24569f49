//! What came of a command: what changed while it ran, what of that is contested, and how to take it back.

use std::collections::BTreeSet;
use std::io::Write;

use retake_engine::{
    Change, Changed, Checkpoint, CheckpointError, Operation, OperationId, OperationKind, Owner, SessionId, Side,
    StoreError, Workspace, WorkspacePath,
};
use serde::Serialize;

use crate::commands;
use crate::json;
use crate::quote;
use crate::survivors;
use crate::ui::{Format, Ui};
use crate::words;

/// A command that has ended.
pub struct Ran {
    pub operation: OperationId,
    pub session: SessionId,
    pub before: Checkpoint,
    pub after: Checkpoint,
    pub code: u8,
}

#[derive(Serialize)]
struct ExecDocument {
    version: u32,
    /// Null if the command ran without a checkpoint; so is all that follows. From `after` on also if the one after it failed.
    operation: Option<String>,
    session: Option<String>,
    before: Option<String>,
    after: Option<String>,
    changed: Option<json::Counts>,
    /// Changed paths that another session may have changed.
    contested: Option<u64>,
    /// Processes that the command left behind.
    running: Vec<String>,
    /// Paths that were not captured before the command and are gone now.
    lost: Vec<json::Bytes>,
    exit_code: u8,
}

/// Says what `ran` changed and how to take that back.
pub fn tell(ui: &mut Ui, workspace: &Workspace, ran: &Ran) -> anyhow::Result<()> {
    let changes = workspace.diff(&Side::Stored(ran.before.snapshot), &Side::Stored(ran.after.snapshot))?;
    let changed = Changed::count(&changes);
    let contested = contested(workspace, ran, &changes)?;
    let id = ran.operation.to_string();
    let running = survivors::all().into_iter().filter(|survivor| survivor.operation == id);
    let running: Vec<String> = running.map(|survivor| survivor.name).collect();
    let lost = lost(workspace, &ran.before)?;
    if ui.format == Format::Json {
        return Ok(ui.json(&ExecDocument {
            version: json::VERSION,
            operation: Some(ran.operation.to_string()),
            session: Some(ran.session.to_string()),
            before: Some(ran.before.id.to_string()),
            after: Some(ran.after.id.to_string()),
            changed: Some(json::Counts::new(&changed)),
            contested: Some(contested),
            running,
            lost: lost.iter().map(|path| json::Bytes::new(path.as_bytes())).collect(),
            exit_code: ran.code,
        })?);
    }
    tell_changes(ui, workspace, ran, &changes, contested)?;
    ui.warn_of("was not captured and is gone", "were not captured and are gone", &quote::names(&lost))?;
    if !running.is_empty() {
        ui.warn("it left processes behind; what they change from now on counts as somebody else's")?;
    }
    for process in &running {
        writeln!(ui.talk()?, "  {process}")?;
    }
    Ok(())
}

fn tell_changes(
    ui: &mut Ui,
    workspace: &Workspace,
    ran: &Ran,
    changes: &[Change],
    contested: u64,
) -> anyhow::Result<()> {
    if changes.is_empty() {
        writeln!(ui.talk()?, "Nothing changed")?;
        return Ok(());
    }
    let counts = match commands::counts(&Changed::count(changes)) {
        counts if counts == "nothing changed" => "only directories changed".to_owned(),
        counts => counts,
    };
    let back = way_back(workspace, ran)?;
    if contested == 0 {
        writeln!(ui.talk()?, "{counts}; {back}")?;
        return Ok(());
    }
    writeln!(ui.talk()?, "{counts}; {back}, once you decide on what is contested")?;
    let paths = words::count(contested, "path is", "paths are");
    ui.warn(&format!("{paths} contested: another session was at work meanwhile and could have made the change"))?;
    Ok(())
}

/// After a command without a checkpoint after it, what it changed is not known yet.
pub fn tell_without_after(
    ui: &mut Ui,
    operation: OperationId,
    session: SessionId,
    before: &Checkpoint,
    code: u8,
    error: &CheckpointError,
) -> anyhow::Result<()> {
    let point = before.id.short();
    ui.warn(&format!(
        "the command has ended, but the checkpoint after it could not be taken: {error}; the next checkpoint captures what it \
         changed, and `retake rewind {point}` takes that back"
    ))?;
    if ui.format == Format::Json {
        ui.json(&ExecDocument {
            operation: Some(operation.to_string()),
            session: Some(session.to_string()),
            before: Some(before.id.to_string()),
            ..ExecDocument::without_checkpoint(code)
        })?;
    }
    Ok(())
}

impl ExecDocument {
    fn without_checkpoint(exit_code: u8) -> Self {
        Self {
            version: json::VERSION,
            operation: None,
            session: None,
            before: None,
            after: None,
            changed: None,
            contested: None,
            running: Vec::new(),
            lost: Vec::new(),
            exit_code,
        }
    }
}

/// After a command that ran without a checkpoint there is only its exit code to tell.
pub fn tell_unprotected(ui: &mut Ui, code: u8) -> anyhow::Result<()> {
    if ui.format == Format::Json {
        ui.json(&ExecDocument::without_checkpoint(code))?;
    }
    Ok(())
}

/// Paths that the checkpoint `before` had to leave out and that are gone now: nothing brings them back.
fn lost(workspace: &Workspace, before: &Checkpoint) -> Result<Vec<WorkspacePath>, StoreError> {
    let gaps = workspace.gaps(before)?.into_iter().filter(|gap| gap.kind.is_uncaptured()).map(|gap| gap.path);
    let is_gone = |path: &WorkspacePath| workspace.root().join(path.to_path()).symlink_metadata().is_err();
    Ok(gaps.filter(is_gone).collect())
}

/// Counts those of `changes` that more than one session may have made.
fn contested(workspace: &Workspace, ran: &Ran, changes: &[Change]) -> Result<u64, StoreError> {
    let changed: BTreeSet<&WorkspacePath> = changes.iter().map(|change| &change.path).collect();
    let steps = workspace.changes(&ran.before, Some(&ran.after))?;
    let contested = steps.iter().filter(|step| step.owner == Owner::Contested).map(|step| &step.path);
    let contested: BTreeSet<&WorkspacePath> = contested.filter(|path| changed.contains(path)).collect();
    Ok(contested.len() as u64)
}

/// The commands that take back what `ran` changed: a plain `undo` takes the newest operation, which need not be this one.
fn way_back(workspace: &Workspace, ran: &Ran) -> Result<String, StoreError> {
    let point = ran.before.id.short();
    let operations = workspace.operations()?;
    if operations.iter().any(|operation| operation.id == ran.operation && operation.kind == OperationKind::Turn) {
        return Ok(format!("it goes back with the agent's turn, or alone with `retake rewind {point}`"));
    }
    let newer: Vec<&Operation> = operations.iter().take_while(|operation| operation.id != ran.operation).collect();
    if newer.is_empty() {
        return Ok(format!("`retake undo` or `retake rewind {point}` takes that back"));
    }
    if newer.iter().any(|operation| operation.session == Some(ran.session)) {
        return Ok(format!(
            "`retake rewind {point}` takes that back, `retake undo` one command run inside it at a time"
        ));
    }
    let id = ran.operation.short();
    Ok(format!("`retake undo {id}` or `retake rewind {point}` takes that back"))
}
