//! Questions about what is around the session: answered by the keeper, while the session goes on.

use std::sync::{Arc, PoisonError};

use retake_engine::session::entry::EntryId;
use retake_engine::{CheckpointError, ResolveError, SessionId, Workspace};
use tokio::sync::oneshot;

use super::publish::in_words;
use super::{Controller, refusal};
use crate::contract::{Command, EventKind, Outcome, Reason, Refusal, Reply};
use crate::listing;
use crate::model::ModelRefused;

impl Controller {
    /// Answers one of the questions about the workspace.
    pub(super) fn look_around(&self, question: Command, answer: oneshot::Sender<Outcome>) {
        let (session, files) = (self.writer().id(), Arc::clone(&self.files));
        self.keeper.run(move |workspace| {
            // Whoever types on has asked something else meanwhile.
            if answer.is_closed() {
                return;
            }
            let listed = match question {
                Command::Label { prompt, label } => set_label(workspace, session, prompt, label.as_deref()),
                Command::Tree => listing::tree(workspace, session)
                    .map(|(head, prompts)| Reply::Tree { head, prompts })
                    .map_err(|err| failed(&err)),
                Command::Checkpoints => listing::checkpoints(workspace)
                    .map(|checkpoints| Reply::Checkpoints { checkpoints })
                    .map_err(|err| failed(&err)),
                Command::Sessions => listing::sessions(workspace)
                    .map(|sessions| Reply::Sessions { sessions })
                    .map_err(|err| failed(&err)),
                Command::Files { query } => {
                    let mut files = files.lock().unwrap_or_else(PoisonError::into_inner);
                    let refreshed = files.refresh(workspace).map_err(|err| failed(&err));
                    refreshed.map(|()| Reply::Files { paths: files.find(&query) })
                }
                Command::Store => workspace
                    .usage()
                    .map(|usage| Reply::Store { bytes: usage.store_bytes, budget: usage.budget })
                    .map_err(|err| failed(&err)),
                _ => Err(refusal(Reason::Invalid, "this is no question about the workspace")),
            };
            answer.send(listed.map_or_else(Outcome::Refused, Outcome::Ok)).ok();
        });
    }

    /// Asks another model from the next request on.
    pub(super) fn change_model(&mut self, name: &str) -> Result<Reply, Refusal> {
        let model = self
            .models
            .find(name)
            .map_err(|ModelRefused { message, hint }| Refusal { hint, ..refusal(Reason::Invalid, message) })?;
        let (name, window) = (model.full_name(), model.settings().context_window());
        self.model = model;
        if (&self.view.model, self.view.window) != (&name, window) {
            self.publish(EventKind::ModelChanged { model: name, window });
        }
        Ok(Reply::Done)
    }
}

fn failed(error: &dyn std::error::Error) -> Refusal {
    refusal(Reason::Failed, in_words(error))
}

/// Gives the point before a prompt a label, or takes it away.
fn set_label(
    workspace: &mut Workspace,
    session: SessionId,
    prompt: EntryId,
    label: Option<&str>,
) -> Result<Reply, Refusal> {
    let point = workspace.resolve_point(&prompt.to_string(), Some(session)).map_err(|err| match err {
        ResolveError::Unknown { .. } => refusal(Reason::NotFound, "there is no such prompt"),
        other => failed(&other),
    })?;
    let gone = || refusal(Reason::NotFound, format!("the files as they were at {} are not kept", prompt.short()));
    let checkpoint = point.checkpoint_id().ok_or_else(gone)?;
    workspace.set_label(checkpoint, label).map_err(|err| match &err {
        CheckpointError::Label(_) => refusal(Reason::Invalid, in_words(&err)),
        CheckpointError::LabelTaken { .. } => Refusal {
            hint: Some("choose another label, or take that one away first".to_owned()),
            ..refusal(Reason::Conflicts, in_words(&err))
        },
        _ => failed(&err),
    })?;
    Ok(Reply::Done)
}
