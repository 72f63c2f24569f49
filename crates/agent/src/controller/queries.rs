//! Queries about the session and its workspace, which the workspace thread answers while the session goes on; labels; the model.

use std::sync::Arc;

use retake_engine::id::EntryId;
use tokio::sync::oneshot;

use super::Controller;
use crate::contract::{EventKind, Query, Reason, Refusal, Reply, RequestOutcome};
use crate::model::ModelRefused;
use crate::query::{self, refusal};

impl Controller {
    /// Answers a query about the session and its workspace.
    pub(super) fn look_around(&self, query: Query, answer: oneshot::Sender<RequestOutcome>) {
        let (session, files) = (self.writer().id(), Arc::clone(&self.files));
        self.workspace_thread.run(move |workspace| {
            // Whoever types on has asked something else meanwhile.
            if answer.is_closed() {
                return;
            }
            let answered = query::answer(workspace, session, &files, query);
            answer.send(answered.map_or_else(RequestOutcome::Refused, RequestOutcome::Ok)).ok();
        });
    }

    /// Sets or removes the label of the point before a prompt.
    pub(super) fn label(&self, prompt: EntryId, label: Option<String>, answer: oneshot::Sender<RequestOutcome>) {
        let session = self.writer().id();
        self.workspace_thread.run(move |workspace| {
            let done = query::set_label(workspace, session, prompt, label.as_deref());
            answer.send(done.map_or_else(RequestOutcome::Refused, RequestOutcome::Ok)).ok();
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
        if (&self.publisher.view().model, self.publisher.view().window) != (&name, window) {
            self.publish(EventKind::ModelChanged { model: name, window });
        }
        Ok(Reply::Done)
    }
}
