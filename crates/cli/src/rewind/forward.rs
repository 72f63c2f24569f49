//! A change of a session that lives in another process: that process makes it, so that there is one writer.

use std::io::Write;
use std::time::Duration;

use retake_agent::contract::{Action, Change, ChangeGoal, Reason, Refusal, Reply, WhileRunning};
use retake_agent::rewind_document::{Bytes, NotRestoredFacts, RewindDocument};
use retake_engine::id::SessionId;
use retake_engine::operation::OperationKind;
use retake_engine::rewind::{Files, Goal, RewindRequest};

use super::outcome::{self, OperationRecord};
use super::{RewindOptions, preview};
use crate::agent::{self, AgentError};
use crate::failure::Result;
use crate::output::quote;
use crate::output::ui::{Format, Ui};
use crate::workspace::context::CommandContext;

/// How often to ask again whether a turn has ended.
const POLL: Duration = Duration::from_millis(200);

/// Has the session's own process carry out `request`, and tells what came of it.
pub fn apply(
    ui: &mut Ui,
    here: &CommandContext,
    session: SessionId,
    kind: OperationKind,
    request: &RewindRequest,
    seen: Option<&str>,
    options: &RewindOptions,
) -> Result<()> {
    let running = if options.interrupt { WhileRunning::Interrupt } else { WhileRunning::Refuse };
    let (change, plan_seen) = (change(request), seen.map(str::to_owned));
    loop {
        let command = Action::Apply { change: change.clone(), head_seen: None, plan_seen: plan_seen.clone(), running };
        let reply = agent::ask_live(here, session, command)?;
        match reply.ok_or_else(|| AgentError::unreachable(session))? {
            Ok(Reply::Change { document }) => return tell(ui, kind, &document),
            Ok(_) => return Err(AgentError::Ended.into()),
            Err(Refusal { reason: Reason::Running | Reason::InUse, .. }) if options.wait => std::thread::sleep(POLL),
            Err(mut refusal) => {
                if refusal.reason == Reason::Running && !options.interrupt {
                    refusal.hint = Some("stop it first, or ask for that with `--interrupt`".to_owned());
                }
                match (ui.format, &refusal.document) {
                    (Format::Json, Some(document)) => super::print(ui, kind, document.as_ref().clone())?,
                    (Format::Text, Some(document)) => tell_conflicts(ui, document)?,
                    (_, None) => {}
                }
                return Err(AgentError::from(refusal).into());
            }
        }
    }
}

/// The request as clients make it.
fn change(request: &RewindRequest) -> Change {
    let goal = match &request.goal {
        Goal::Entry { entry, scope, files, discard, .. } => {
            ChangeGoal::Rewind { entry: *entry, scope: *scope, files: *files, discard: *discard }
        }
        Goal::AfterPrompt { prompt, scope, files, .. } => {
            ChangeGoal::KeepPrompt { prompt: *prompt, scope: *scope, files: *files }
        }
        Goal::Selective { checkpoint, .. } => {
            ChangeGoal::Checkpoint { checkpoint: checkpoint.to_string(), files: Some(Files::Selective) }
        }
        Goal::Exact { checkpoint, .. } => {
            ChangeGoal::Checkpoint { checkpoint: checkpoint.to_string(), files: Some(Files::Exact) }
        }
        Goal::Undo { operation, .. } => ChangeGoal::Undo { operation: operation.map(|id| id.to_string()) },
        Goal::Redo { .. } => ChangeGoal::Redo { operation: None },
    };
    Change {
        paths: request.paths.iter().map(|path| Bytes::new(path.as_bytes())).collect(),
        on_conflict: request.on_conflict,
        choices: request.choices.iter().map(|(path, choice)| (Bytes::new(path.as_bytes()), *choice)).collect(),
        on_yours: request.on_yours,
        across_branches: request.across_branches,
        ..Change::new(goal)
    }
}

/// Lists what has to be decided.
fn tell_conflicts(ui: &mut Ui, document: &RewindDocument) -> Result<()> {
    let names: Vec<String> = document
        .conflicts
        .iter()
        .map(|conflict| {
            let path = conflict.path.decode().unwrap_or_default();
            format!("{}: {}", quote::name(&path), conflict.text)
        })
        .collect();
    Ok(ui.warn_of("needs a decision (`--on-conflict`)", "need a decision (`--on-conflict`)", &names)?)
}

fn tell(ui: &mut Ui, kind: OperationKind, document: &RewindDocument) -> Result<()> {
    if ui.format == Format::Json {
        return super::print(ui, kind, document.clone());
    }
    if kind == OperationKind::Undo && document.operation.is_none() && document.conversation_moved == Some(true) {
        let what = quote::one_line(&document.what);
        writeln!(ui.out, "Undid {what}: it was stopped before anything came of it, and waits to be said again")?;
        return Ok(());
    }
    let mark = OperationRecord::of(document.operation.as_ref());
    let count = |wanted: &str| document.files.iter().filter(|file| file.status == wanted).count();
    let (done, kept) = (count("done") + count("displaced"), count("kept") + count("overtaken"));
    let mut parts = vec![match done {
        0 => "no file had to change".to_owned(),
        1 => "1 file".to_owned(),
        more => format!("{more} files"),
    }];
    if kept > 0 {
        parts.push(format!("{kept} left as they are"));
    }
    let title = match (mark, kind) {
        (OperationRecord::None, OperationKind::Undo) => outcome::nothing_done(kind, &document.what),
        _ => preview::title(kind, &document.what),
    };
    writeln!(ui.out, "{title}: {}, in the session that is open", parts.join(", "))?;
    match (&document.conversation, document.conversation_moved) {
        (Some(planned), Some(true)) => preview::write_conversation(&mut ui.out, planned, preview::Tense::Done)?,
        (Some(planned), None) => preview::write_stays(&mut ui.out, planned)?,
        (Some(_), Some(false)) | (None, _) => {}
    }
    outcome::tell_already(ui, &document.already, mark)?;
    let line = |one: &NotRestoredFacts| {
        let name = one.path.decode().unwrap_or_default();
        (one.change.clone(), format!("{}: {}", quote::name(&name), quote::one_line(&one.text)))
    };
    outcome::tell_not_restored(ui, document.not_restored.iter().map(line))?;
    let back = preview::way_back(kind, document.files.len(), document.conversation.as_ref());
    if let Some(back) = back.filter(|_| mark == OperationRecord::Made) {
        let session = document.session.as_deref().map(|id| format!(" with `--session {}`", &id[..8]));
        writeln!(ui.talk()?, "{back}{}", session.unwrap_or_default())?;
    }
    Ok(())
}
