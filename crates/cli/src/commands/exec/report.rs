//! What came of a command: what changed while it ran, what of that is contested, and how to take it back.

mod undo;

use std::collections::BTreeSet;
use std::io::Write;

use retake_agent::ignore_warnings;
use retake_engine::changes::Owner;
use retake_engine::checkpoint::{Checkpoint, CheckpointError};
use retake_engine::id::{OperationId, SessionId};
use retake_engine::operation::{Operation, OperationKind};
use retake_engine::rewind::LedgerItem;
use retake_engine::snapshot::{Change, Changed, Difference, LeftOut, UncapturedChange};
use retake_engine::view::Beside;
use retake_engine::view::Side;
use retake_engine::{StoreError, Workspace, WorkspacePath};
use serde::Serialize;

use crate::commands;
use crate::failure::Result;
use crate::output::json;
use crate::output::messages;
use crate::output::quote;
use crate::output::ui::{Format, Ui};
use crate::process::leftovers;
use undo::{Back, Undo};

/// A command that has ended.
pub struct RanCommand {
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
    /// New paths that an ignore rule of the command hides: not captured and not counted. Going back deletes them.
    hidden: Vec<json::Bytes>,
    /// Those of `hidden` that going back leaves all the same: they cannot be saved.
    hidden_staying: Vec<json::Bytes>,
    /// Files that are captured after the command and were not before it; they may have been there.
    newly_captured: Option<u64>,
    /// What changed while it ran and is not captured.
    uncaptured: Vec<UncapturedFacts>,
    /// What moved in git while it ran: no undo moves it back.
    ledger: Vec<LedgerItem>,
    /// Files that changed ignore rules leave out.
    ignores: Option<json::Ignores>,
    exit_code: u8,
}

/// A change that is not captured.
#[derive(Serialize)]
struct UncapturedFacts {
    path: json::Bytes,
    change: Difference,
    why: &'static str,
    text: String,
    /// Whether going back restores how it was before the command; else nothing takes the change back.
    was_captured: bool,
}

impl UncapturedFacts {
    fn new(change: &UncapturedChange) -> Self {
        let path = json::Bytes::new(change.path.as_bytes());
        Self {
            path,
            change: change.difference,
            why: change.left_out.name(),
            text: change.describe(),
            was_captured: change.was_captured,
        }
    }
}

/// Says what `ran` changed and how to take that back.
pub fn tell(ui: &mut Ui, workspace: &Workspace, ran: &RanCommand) -> Result<()> {
    let uncaptured = workspace.checkpoints().uncaptured_changes(&ran.before, &ran.after)?;
    let ledger = ran.before.git_moves(&ran.after);
    let changes = workspace.diff(&Side::Stored(ran.before.snapshot), &Side::Stored(ran.after.snapshot))?;
    // A file that was captured and is too large now, say, is missing from the snapshot and is not gone.
    let (changes, _) = workspace.checkpoints().split_left_out(changes, &Beside::Checkpoint(&ran.after))?;
    let (mut changes, first) = workspace.checkpoints().split_newly_captured(changes, &ran.before)?;
    let first = files(&first);
    let coverage = workspace.changes().coverage(&ran.after)?;
    let is_there =
        |path: &WorkspacePath| uncaptured.iter().any(|one| one.path == *path && one.difference != Difference::Gone);
    changes.retain(|change| change.after.is_some() || !is_there(&change.path));
    let hidden = workspace.changes().hidden_by(ran.session, &ran.before, &ran.after)?;
    let contested = contested(workspace, ran, &changes)?;
    let difference = |change: &Change| {
        let found = uncaptured.iter().find(|one| one.path == change.path).filter(|_| change.before.is_none());
        found.map(|one| one.difference).filter(|difference| *difference != Difference::New)
    };
    // What was too large before the command, say, was there: it is no addition, and nothing takes its change back.
    let (was_there, changes): (Vec<_>, Vec<_>) = changes.into_iter().partition(|change| difference(change).is_some());
    let rewritten = was_there.iter().filter(|change| difference(change) == Some(Difference::Changed));
    let rewritten = Changed { added: 0, modified: Changed::count(rewritten).added, deleted: 0 };
    let mut changed = Changed::count(&changes);
    changed.modified += rewritten.modified;
    let (restorable, lost_paths): (Vec<_>, Vec<_>) = uncaptured.iter().partition(|one| one.was_captured);
    let undo = match restorable.is_empty() && hidden.is_empty() {
        true => None,
        false => Undo::plan(workspace, ran),
    };
    let id = ran.operation.to_string();
    let running = leftovers::all().into_iter().filter(|survivor| survivor.operation == id);
    let running: Vec<String> = running.map(|survivor| survivor.name).collect();
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
            lost: lost(&uncaptured).map(|path| json::Bytes::new(path.as_bytes())).collect(),
            hidden: hidden.iter().map(|path| json::Bytes::new(path.as_bytes())).collect(),
            hidden_staying: undo
                .iter()
                .flat_map(|undo| undo.staying(&hidden))
                .map(|(path, _)| json::Bytes::new(path.as_bytes()))
                .collect(),
            newly_captured: Some(first),
            uncaptured: uncaptured.iter().map(UncapturedFacts::new).collect(),
            ledger,
            ignores: Some(json::Ignores::new(&coverage)),
            exit_code: ran.code,
        })?);
    }
    let back = |some: &[&UncapturedChange]| Back::of(workspace, ran, undo.as_ref(), some);
    match changes.as_slice() {
        [] if !restorable.is_empty() => {
            let files = messages::count(restorable.len() as u64, "captured file", "captured files");
            match back(&restorable)? {
                Back::No => writeln!(
                    ui.talk()?,
                    "{files} changed and cannot be saved now, so nothing takes this back while it is there"
                )?,
                Back::By(way) => writeln!(ui.talk()?, "{files} changed and cannot be captured now; {way}")?,
            }
        }
        [] if !hidden.is_empty() => {
            writeln!(ui.talk()?, "Only hidden paths are new; {}", way_back(workspace, ran, "")?)?;
        }
        [] if rewritten.modified > 0 => {
            writeln!(ui.talk()?, "{}, and nothing takes that back", commands::counts(&rewritten))?;
        }
        // Of what else changed, a branch that is not checked out, say, nothing is known.
        [] if uncaptured.is_empty() && ledger.is_empty() && first == 0 => {
            writeln!(ui.talk()?, "No captured file changed")?;
        }
        [] => writeln!(ui.talk()?, "No captured file changed, so there is nothing to undo")?,
        changes => {
            let way = match back(&restorable)? {
                Back::By(way) if was_there.is_empty() => way,
                Back::By(_) | Back::No => way_back(workspace, ran, KEEPING)?,
            };
            tell_changes(ui, changes, contested, &way)?;
        }
    }
    tell_uncaptured(ui, &restorable, &lost_paths, undo.as_ref())?;
    tell_hidden(ui, &hidden, undo.as_ref())?;
    if first > 0 {
        let files = messages::count(first, "file is", "files are");
        let them = if first == 1 { "it" } else { "them" };
        ui.warn(&format!("{files} captured now and not before the command: nothing tells whether it changed {them}"))?;
    }
    if !ledger.is_empty() {
        ui.warn("git moved, and going back does not move it back")?;
    }
    for item in &ledger {
        let remedy = item.remedy.as_ref().map(|remedy| format!("  `{}` does", quote::one_line(remedy)));
        writeln!(ui.talk()?, "  {}{}", quote::one_line(&item.what), remedy.unwrap_or_default())?;
    }
    for warning in ignore_warnings::warnings(&coverage) {
        ui.warn(&warning)?;
    }
    if !running.is_empty() {
        ui.warn("it left processes behind; what they change from now on counts as somebody else's")?;
    }
    for process in &running {
        writeln!(ui.talk()?, "  {process}")?;
    }
    Ok(())
}

/// Names what changed while the command ran and is not captured as it is now: by what going back does with it.
fn tell_uncaptured(
    ui: &mut Ui,
    restorable: &[&UncapturedChange],
    lost: &[&UncapturedChange],
    undo: Option<&Undo>,
) -> Result<()> {
    let line = |one: &&UncapturedChange| format!("{}: {}", quote::name(one.path.as_bytes()), one.describe());
    let lines = |some: &[&UncapturedChange]| some.iter().map(line).collect::<Vec<String>>();
    let (stuck, back): (Vec<_>, Vec<_>) =
        restorable.iter().copied().partition(|one| undo.is_some_and(|undo| undo.is_stuck(&one.path)));
    ui.warn_of(
        "is not captured as it is now: going back restores how it was before the command",
        "are not captured as they are now: going back restores how they were before the command",
        &lines(&back),
    )?;
    ui.warn_of(
        "cannot be saved as it is now: going back leaves it",
        "cannot be saved as they are now: going back leaves them",
        &lines(&stuck),
    )?;
    Ok(ui.warn_of(
        "is not captured: nothing takes this back",
        "are not captured: nothing takes this back",
        &lines(lost),
    )?)
}

/// Names new paths that an ignore rule hides: by what going back does with them.
fn tell_hidden(ui: &mut Ui, hidden: &BTreeSet<WorkspacePath>, undo: Option<&Undo>) -> Result<()> {
    let new = "new and hidden by an ignore rule: not captured and not counted";
    let Some(undo) = undo else {
        return Ok(ui.warn_of(&format!("is {new}"), &format!("are {new}"), &quote::names(hidden))?);
    };
    let staying = undo.staying(hidden);
    let going = hidden.iter().filter(|path| staying.iter().all(|(other, _)| other != path));
    ui.warn_of(
        &format!("is {new}; going back deletes it"),
        &format!("are {new}; going back deletes them"),
        &quote::names(going),
    )?;
    let line = |(path, why): &(&WorkspacePath, String)| format!("{}: {why}", quote::name(path.as_bytes()));
    Ok(ui.warn_of(
        &format!("is {new}; going back leaves it"),
        &format!("are {new}; going back leaves them"),
        &staying.iter().map(line).collect::<Vec<_>>(),
    )?)
}

/// How many of `changes` are about files.
fn files(changes: &[Change]) -> u64 {
    let Changed { added, modified, deleted } = Changed::count(changes);
    added + modified + deleted
}

fn tell_changes(ui: &mut Ui, changes: &[Change], contested: u64, back: &str) -> Result<()> {
    let counts = match commands::counts(&Changed::count(changes)) {
        counts if counts == "nothing changed" => "only directories changed".to_owned(),
        counts => counts,
    };
    if contested == 0 {
        writeln!(ui.talk()?, "{counts}; {back}")?;
        return Ok(());
    }
    writeln!(ui.talk()?, "{counts}; {back}, once you decide on what is contested")?;
    let paths = messages::count(contested, "path is", "paths are");
    ui.warn(&format!(
        "{paths} contested: another session, or somebody after the command had ended, could have made the change"
    ))?;
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
) -> Result<()> {
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
            hidden: Vec::new(),
            hidden_staying: Vec::new(),
            newly_captured: None,
            uncaptured: Vec::new(),
            ledger: Vec::new(),
            ignores: None,
            exit_code,
        }
    }
}

/// After a command that ran without a checkpoint there is only its exit code to tell.
pub fn tell_unprotected(ui: &mut Ui, code: u8) -> Result<()> {
    if ui.format == Format::Json {
        ui.json(&ExecDocument::without_checkpoint(code))?;
    }
    Ok(())
}

/// Gaps that are gone: nothing brings them back.
fn lost(uncaptured: &[UncapturedChange]) -> impl Iterator<Item = &WorkspacePath> {
    let is_lost = |one: &&UncapturedChange| one.difference == Difference::Gone && one.left_out != LeftOut::Ignored;
    uncaptured.iter().filter(is_lost).map(|one| &one.path)
}

/// Counts those of `changes` that more than one session may have made.
fn contested(workspace: &Workspace, ran: &RanCommand, changes: &[Change]) -> Result<u64, StoreError> {
    let changed: BTreeSet<&WorkspacePath> = changes.iter().map(|change| &change.path).collect();
    let steps = workspace.changes().between(&ran.before, Some(&ran.after))?;
    let contested = steps.iter().filter(|step| step.owner == Owner::Contested).map(|step| &step.path);
    let contested: BTreeSet<&WorkspacePath> = contested.filter(|path| changed.contains(path)).collect();
    Ok(contested.len() as u64)
}

/// The option with which an undo takes back the rest where a path cannot go back.
const KEEPING: &str = " --on-conflict keep";

/// The commands that take back what `ran` changed, with `option`: a plain `undo` takes the newest operation, which need not be this one.
fn way_back(workspace: &Workspace, ran: &RanCommand, option: &str) -> Result<String, StoreError> {
    let point = ran.before.id.short();
    let operations = workspace.operations().all()?;
    if operations.iter().any(|operation| operation.id == ran.operation && operation.kind == OperationKind::Turn) {
        return Ok(format!("it goes back with the agent's turn, or alone with `retake rewind {point}{option}`"));
    }
    let newer: Vec<&Operation> = operations.iter().take_while(|operation| operation.id != ran.operation).collect();
    if newer.is_empty() {
        return Ok(format!("`retake undo{option}` or `retake rewind {point}{option}` takes that back"));
    }
    if newer.iter().any(|operation| operation.session == Some(ran.session)) {
        return Ok(format!(
            "`retake rewind {point}{option}` takes that back, `retake undo{option}` one command run inside it at a time"
        ));
    }
    let id = ran.operation.short();
    Ok(format!("`retake undo {id}{option}` or `retake rewind {point}{option}` takes that back"))
}
