//! Summaries: those that the user wants, and those that keep a turn from becoming too long for the model.
//!
//! The model writes them while everything else waits. Until one is there nothing is written, so that stopping leaves nothing behind.

use retake_engine::checkpoint::Origin;
use retake_engine::id::EntryId;
use retake_engine::session::entry::{Body, Entry, SummaryBy, Usage};
use retake_engine::session::{EntryRange, Moment, NewEntry, first_line};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::publish::in_words;
use super::{Controller, WorkerFact, refusal};
use crate::contract::{EventKind, Extent, Reason, Refusal, Reply, RequestOutcome, SnapshotMoment, Summarised};
use crate::model::ModelError;
use crate::turn::{self, Activity, Retry};
use crate::{explore, ids, summary};

/// A summary that the model is writing.
pub(super) struct Summarising {
    range: (EntryId, EntryId),
    asking: AbortHandle,
    /// Who waits for it; nobody, if it is the turn.
    wanted: Option<SummaryRequest>,
}

struct SummaryRequest {
    request: Option<String>,
    what: String,
    /// How long the request to the model was before.
    bytes: usize,
    answer: oneshot::Sender<RequestOutcome>,
}

impl Controller {
    /// Has the model write a summary for the user.
    pub(super) fn summarise(&mut self, extent: Extent, wish: Option<&str>, answer: oneshot::Sender<RequestOutcome>) {
        let refuse = |reason, text: &str, answer: oneshot::Sender<RequestOutcome>| {
            drop(answer.send(RequestOutcome::Refused(refusal(reason, text))));
        };
        if self.turn.activity() != Activity::Idle {
            return refuse(Reason::Running, "nothing was changed: a turn is running; stop it first", answer);
        }
        let (span, what, entry) = match extent {
            Extent::All => (EntryRange::All, "everything", None),
            Extent::From { entry } => (EntryRange::From(entry), "from", Some(entry)),
            Extent::UpTo { entry } => (EntryRange::UpTo(entry), "up to", Some(entry)),
        };
        let conversation = self.writer().conversation();
        let found = entry.map(|wanted| conversation.entries().iter().find(|entry| entry.id == wanted));
        let what = match found {
            Some(None) => {
                return refuse(Reason::NotFound, "nothing was changed: the conversation has no such entry", answer);
            }
            Some(Some(Entry { body: Body::Prompt { parts }, .. })) => format!("{what} \"{}\"", first_line(parts)),
            Some(Some(entry)) => format!("{what} {}", entry.id.short()),
            None => what.to_owned(),
        };
        let Some(range) = conversation.range(span) else {
            return drop(answer.send(RequestOutcome::Ok(Reply::Summarised { summary: None })));
        };
        let bytes = self.model_request().body().len();
        let wanted = SummaryRequest { request: self.publisher.request.clone(), what, bytes, answer };
        self.step(turn::Fact::SummaryWanted);
        self.number += 1;
        self.ask_for_summary(range, wish, Some(wanted));
    }

    fn ask_for_summary(&mut self, range: (EntryId, EntryId), wish: Option<&str>, wanted: Option<SummaryRequest>) {
        let entries = self.writer().conversation().entries();
        let requests = summary::requests(&self.model, &self.toolbox.specs(), entries, range, wish);
        let (model, facts, turn) = (self.model.clone(), self.facts.clone(), self.number);
        let asking = self.runtime.spawn(async move {
            let result = summary::write(model, requests).await;
            facts.send(WorkerFact::Summarised { turn, result }).ok();
        });
        let asking = asking.abort_handle();
        self.summarising = Some(Summarising { range, asking, wanted });
        self.publish(EventKind::Summarising { active: true });
    }

    /// Summarises what makes most room, if the next request would be too long for the model. Returns whether it does.
    pub(super) fn compact_if_due(&mut self) -> bool {
        let conversation = self.writer().conversation();
        summary::is_due(&self.model, conversation, || self.model_request()) && self.compact()
    }

    /// Summarises what makes most room. Returns whether there is anything.
    pub(super) fn compact(&mut self) -> bool {
        let Some(prompt) = self.current.as_ref().map(|current| current.prompt) else { return false };
        let Some(range) = summary::largest(self.writer().conversation(), prompt) else { return false };
        self.ask_for_summary(range, None, None);
        true
    }

    /// A summary is there, or cannot be had.
    pub(super) fn take_summary(&mut self, result: Result<(String, Usage), ModelError>) {
        let Some(Summarising { range, wanted, .. }) = self.summarising.take() else { return };
        self.publish(EventKind::Summarising { active: false });
        match (wanted, result) {
            (Some(wanted), result) => {
                self.publisher.request.clone_from(&wanted.request);
                let outcome = match result {
                    // Whoever wanted it is gone.
                    _ if wanted.answer.is_closed() => Err(refusal(Reason::Interrupted, "nobody waits for it any more")),
                    Ok((text, usage)) => self.store_summary(range, text, usage, &wanted),
                    Err(error) => {
                        let text = format!("nothing was changed: {}; {}", in_words(&error), error.advice());
                        Err(refusal(Reason::Failed, text))
                    }
                };
                wanted.answer.send(outcome.map_or_else(RequestOutcome::Refused, RequestOutcome::Ok)).ok();
                self.step(turn::Fact::SummaryEnded);
                self.say_held();
            }
            (None, Ok((text, usage))) => {
                let text = self.with_reminder(text);
                self.append(vec![summary_of(range, text, SummaryBy::Compaction, usage)]);
                self.toolbox.recall(self.writer().conversation());
                self.ask_model();
            }
            (None, Err(error)) => {
                let why = in_words(&error);
                let message = format!("the conversation is too long for the model and could not be summarised: {why}");
                self.step(turn::Fact::Failed { retry: Retry::Never, message, advice: error.advice() });
            }
        }
    }

    fn store_summary(
        &mut self,
        range: (EntryId, EntryId),
        text: String,
        usage: Usage,
        wanted: &SummaryRequest,
    ) -> Result<Reply, Refusal> {
        // To be undone it needs a checkpoint before it, and the first one may still be on its way.
        self.workspace_thread.ask(|_| ());
        let (operation, made_by) = (ids::operation(), self.made_by);
        let body = summary_of(range, text.clone(), SummaryBy::User, usage);
        let new = NewEntry { id: ids::entry(), at: ids::now(), body };
        let entry = new.id;
        self.writer_mut()
            .summarise(operation, made_by, &wanted.what, new)
            .map_err(|err| refusal(Reason::Failed, in_words(&err)))?;
        self.publish_appended();
        self.toolbox.recall(self.writer().conversation());
        self.snapshot(SnapshotMoment::Turn, Moment { session: self.writer().id(), entry: None, origin: Origin::Turn });
        let bytes = (wanted.bytes, self.model_request().body().len());
        let summary = Summarised { entry, operation: operation.into(), range, text, usage, bytes };
        Ok(Reply::Summarised { summary: Some(Box::new(summary)) })
    }

    /// Stops asking for a summary: nothing of it stays.
    pub(super) fn cancel_summary(&mut self) {
        let Some(Summarising { asking, wanted, .. }) = self.summarising.take() else { return };
        asking.abort();
        self.number += u64::from(wanted.is_some());
        self.publish(EventKind::Summarising { active: false });
        let Some(wanted) = wanted else { return };
        let text = "the summary was stopped; nothing was changed";
        wanted.answer.send(RequestOutcome::Refused(refusal(Reason::Interrupted, text))).ok();
        self.go_on_after_turn(false);
    }

    /// A summary with what the model may no longer see: that checkpoints of its own are open.
    fn with_reminder(&self, text: String) -> String {
        match explore::reminder(self.writer().conversation().entries()) {
            Some(reminder) => format!("{text}\n\n{reminder}"),
            None => text,
        }
    }
}

fn summary_of((from, to): (EntryId, EntryId), text: String, by: SummaryBy, usage: Usage) -> Body {
    Body::Summary { from, to, text, by, usage }
}
