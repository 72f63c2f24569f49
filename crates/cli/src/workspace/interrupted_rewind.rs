//! An interrupted rewind: a command that writes finishes it first; one that only reads reports it.

use std::io::Write;
use std::time::Duration;

use retake_agent::ids;
use retake_engine::Workspace;
use retake_engine::checkpoint::NewCheckpoint;
use retake_engine::id::{OperationId, SessionId};
use retake_engine::operation::{Operation, OperationKind, OperationState};
use retake_engine::rewind::{Recovered, RecoveryChoice, RewindError};

use crate::failure::Result;
use crate::output::quote;
use crate::output::ui::Ui;
use crate::rewind::{self, RewindOptions};

/// How often to look whether a command has ended.
const POLL: Duration = Duration::from_millis(100);

/// Finishes or takes back what was interrupted, and says so; for commands that write.
pub fn first(ui: &mut Ui, workspace: &mut Workspace) -> Result<()> {
    let at = ids::now();
    let recovered = match workspace.rewinds_mut().recover(RecoveryChoice::Ask, ids::checkpoint().id, at) {
        // `retake recover` and `retake doctor` name them; they keep nobody from working.
        Err(error @ RewindError::LeftOver { .. }) => {
            ui.warn(&format!("{error}; `retake recover` says more"))?;
            Recovered::Nothing
        }
        other => other?,
    };
    if let Some(text) = describe(&recovered) {
        writeln!(ui.talk()?, "{text}")?;
    }
    tell_displaced(ui, workspace, &recovered)
}

/// Says what others had saved before an interrupted rewind replaced it.
pub fn tell_displaced(ui: &mut Ui, workspace: &Workspace, recovered: &Recovered) -> Result<()> {
    let Recovered::Finished(operation) = recovered else { return Ok(()) };
    rewind::tell_displaced(ui, operation.kind, &quote::names(&workspace.rewinds().displaced(operation.id)?))
}

/// Before going back: [`first`], or [`mention`] if that is only shown; and what a command that was killed has changed becomes its own.
/// Returns the turns that were cut off before anything came of them: they have been taken back.
pub fn before_going_back(ui: &mut Ui, workspace: &mut Workspace, options: &RewindOptions) -> Result<Vec<Operation>> {
    if options.only_shows() {
        return mention(ui, workspace).map(|()| Vec::new());
    }
    first(ui, workspace)?;
    let taken_back = end_cut_turns(workspace)?;
    if options.waits() {
        wait(ui, workspace)?;
    }
    let at = ids::now();
    let new = NewCheckpoint { id: ids::checkpoint().id, at, label: None };
    let progress = ui.progress();
    workspace.windows().settle(new, &progress)?;
    Ok(taken_back)
}

/// Ends turns whose process died, so that they can be taken back like any other. Of those that had come to nothing, and so were taken
/// back by this, are returned.
pub fn end_cut_turns(workspace: &Workspace) -> Result<Vec<Operation>> {
    let is_turn = |operation: &Operation| operation.kind == OperationKind::Turn;
    let mut taken_back = Vec::new();
    for operation in workspace.operations().all()?.into_iter().filter(is_turn) {
        let is_cut = operation.state == OperationState::Running;
        let Some(session) = operation.session.filter(|session| is_cut && !workspace.sessions().is_live(*session))
        else {
            continue;
        };
        drop(workspace.sessions().open(session, ids::now(), &mut ids::random)?);
        let now = workspace.operations().resolve(&operation.id.to_string())?;
        if now.state == OperationState::Failed {
            taken_back.push(now);
        }
    }
    Ok(taken_back)
}

/// The newest turn or command whose process died and that nobody has recovered yet, if it is newer than `next`: an undo recovers it
/// first, and then takes it back in place of `next`.
pub fn cut_off(
    workspace: &Workspace,
    session: Option<SessionId>,
    next: Option<OperationId>,
) -> Result<Option<Operation>> {
    let under_way = workspace.maintenance().under_way()?;
    let is_abandoned = |session| under_way.iter().any(|window| window.abandoned && window.session == session);
    let is_cut = |operation: &Operation| match (operation.kind, operation.session) {
        _ if operation.state != OperationState::Running => false,
        (OperationKind::Turn, Some(session)) => !workspace.sessions().is_live(session),
        (OperationKind::Exec, Some(session)) => is_abandoned(session),
        _ => false,
    };
    let newer = workspace.operations().all()?.into_iter().take_while(|operation| Some(operation.id) != next);
    let mut meant = newer.filter(|operation| session.is_none() || operation.session == session);
    Ok(meant.find(is_cut))
}

/// Waits until no command is at work.
fn wait(ui: &mut Ui, workspace: &Workspace) -> Result<()> {
    let mut told = false;
    loop {
        let under_way = workspace.maintenance().under_way()?;
        let Some(first) = under_way.iter().find(|window| !window.abandoned) else { return Ok(()) };
        if !told {
            writeln!(ui.talk()?, "Waiting for `{}` to end", quote::one_line(&first.tool))?;
            told = true;
        }
        std::thread::sleep(POLL);
    }
}

/// Says that something is to be recovered; for commands that read.
pub fn mention(ui: &mut Ui, workspace: &Workspace) -> Result<()> {
    if let Some(operation) = workspace.rewinds().interrupted()? {
        let name = name(&operation);
        ui.warn(&format!("{name} is under way or was interrupted; `retake recover` finishes what was interrupted"))?;
    }
    if let Some(cut) = workspace.maintenance().under_way()?.iter().find(|window| window.abandoned) {
        let tool = quote::one_line(&cut.tool);
        ui.warn(&format!(
            "`{tool}` was cut off, and what it had changed is not known yet; `retake checkpoint` finds out"
        ))?;
    }
    Ok(())
}

/// What recovering came to, in a sentence; `None` if there was nothing to do.
pub fn describe(recovered: &Recovered) -> Option<String> {
    match recovered {
        Recovered::Nothing => None,
        Recovered::Finished(operation) => Some(format!("Finished what was interrupted: {}", name(operation))),
        Recovered::TakenBack(operation) => {
            Some(format!("Took back what was interrupted, so that it never happened: {}", name(operation)))
        }
    }
}

/// `rewind 3fa29c41`
fn name(operation: &Operation) -> String {
    format!("`{} {}`", operation.kind.name(), quote::one_line(&operation.what))
}
