//! Turns: saying a prompt, asking the model, coming to an end.

use std::time::{Duration, Instant};

use retake_engine::Durability;
use retake_engine::checkpoint::Origin;
use retake_engine::id::EntryId;
use retake_engine::id::OperationId;
use retake_engine::progress::NoProgress;
use retake_engine::session::entry::{Block, Body, EndReason, Entry, Part, StopReason, Usage};
use retake_engine::session::{Moment, NewEntry, NewTurn, SessionError, first_line, joined, last_words};

use super::publish::{in_words, rule_warnings, snapshot};
use super::{Controller, Current, Terms, Unprotected, WorkerFact, refusal};
use crate::contract::{
    Allow, Change, ChangeGoal, EventKind, Reason, Refusal, Reply, RequestOutcome, SnapshotMoment, TurnEnd,
};
use crate::instructions::{self, Missing};
use crate::model::{Delta, ModelAnswer, ModelError, ModelRequest, PartialAnswer};
use crate::permission::Mode;
use crate::rewind_document::RewindDocument;
use crate::turn::{self, Activity, Effect, Ending, Retry};
use crate::{ids, limits};

impl Controller {
    /// What may run in a turn whose prompt says so.
    pub(super) fn terms(&self, allow: Option<Allow>, unprotected: bool) -> Terms {
        Terms {
            mode: allow.map_or(self.policy.mode, Mode::from),
            unprotected: if unprotected { Unprotected::Allow } else { self.unprotected },
        }
    }

    /// Says something that was made from `loaded`, or holds it while a turn runs.
    pub(super) fn prompt(&mut self, parts: Vec<Part>, loaded: Option<&[Part]>, terms: Terms) -> Result<Reply, Refusal> {
        if parts.is_empty() || parts.iter().all(|part| matches!(part, Part::Text { text } if text.trim().is_empty())) {
            return Err(refusal(Reason::Invalid, "a prompt must say something"));
        }
        if self.is_closing {
            return Err(super::gone());
        }
        let left = self.writer().left_of(&self.draft, &parts, loaded);
        let left = left.map_err(|err| refusal(Reason::Failed, in_words(&err)))?;
        match self.turn.activity() {
            Activity::Idle => self.begin_turn(parts, left, terms),
            Activity::Running | Activity::Waiting => self.hold(parts, left, terms),
        }
    }

    /// Says something; `left` is still about to be said.
    pub(super) fn begin_turn(&mut self, parts: Vec<Part>, left: Vec<Part>, terms: Terms) -> Result<Reply, Refusal> {
        let at = ids::now();
        let Missing { mut bodies, warnings } = instructions::missing(self.writer().conversation(), &self.root);
        warnings.into_iter().for_each(|text| self.publish(EventKind::Warning { text }));
        bodies.push(Body::Prompt { parts });
        let entries: Vec<NewEntry> = bodies.into_iter().map(|body| NewEntry { id: ids::entry(), at, body }).collect();
        let operation = ids::operation();
        let prompt = entries.last().expect("there is a prompt").id;
        let (made_by, draft) = (self.made_by, self.with_held(left.clone()));
        self.writer_mut()
            .begin_turn(NewTurn { operation, at, made_by, entries, draft })
            .map_err(|err| refusal(Reason::Failed, in_words(&err)))?;
        self.number += 1;
        self.stopped = false;
        self.current = Some(Current {
            prompt,
            operation,
            request: self.publisher.request.clone(),
            terms,
            heard: PartialAnswer::default(),
            reply: ids::entry(),
            has_output: false,
            calls: Vec::new(),
            asking: None,
        });
        let effects = self.turn.step(turn::Fact::Prompted);
        // First: whoever sees the prompt must not take the session for idle.
        self.publish_state();
        self.publish_appended();
        self.draft = left;
        self.publish_draft();
        let moment = Moment { session: self.writer().id(), entry: Some(prompt), origin: Origin::Prompt };
        self.snapshot(SnapshotMoment::Prompt, moment);
        self.carry_out(effects);
        Ok(Reply::Said { prompt })
    }

    /// Has a snapshot taken; nobody waits for it but what comes after it.
    pub(super) fn snapshot(&self, name: SnapshotMoment, moment: Moment) {
        let (facts, request) = (self.facts.clone(), self.publisher.request.clone());
        self.workspace_thread.run(move |workspace| {
            let began = Instant::now();
            let result = workspace.checkpoints_mut().take_at(moment, ids::checkpoint(), Durability::Soon, &NoProgress);
            let warnings = rule_warnings(workspace, result.as_ref().ok());
            for kind in std::iter::once(snapshot(name, began, result.as_ref())).chain(warnings) {
                facts.send(WorkerFact::Told { request: request.clone(), kind }).ok();
            }
        });
    }

    /// Has the turn take in a fact, and does what is to be done then.
    pub(super) fn step(&mut self, fact: turn::Fact) {
        let effects = self.turn.step(fact);
        self.carry_out(effects);
    }

    /// Does what is to be done, and tells what the session does then.
    fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::AskModel => {
                    self.go_back_if_asked();
                    self.ask_model();
                }
                Effect::CancelSummary => self.cancel_summary(),
                Effect::WaitToRetry { ms, attempt, message } => self.wait_to_retry(ms, attempt, message),
                Effect::AskPermission(call) => self.ask_permission(call),
                Effect::Run(call) => self.run_call(call),
                Effect::CancelModel => self.cancel_model(),
                Effect::CancelCall(call) => self.cancel_call(call),
                Effect::Abandon(call) => self.abandon_call(call),
                Effect::End(ending) => {
                    self.go_back_if_asked();
                    self.end_turn(ending);
                }
            }
        }
        self.publish_state();
    }

    /// What the model would be sent now.
    pub(super) fn model_request(&self) -> ModelRequest {
        self.model.request(&self.writer().conversation().context(), &self.toolbox.specs())
    }

    /// Asks the model, once there is room for its answer.
    pub(super) fn ask_model(&mut self) {
        if self.compact_if_due() {
            return;
        }
        let request = self.model_request();
        let (model, facts, turn) = (self.model.clone(), self.facts.clone(), self.number);
        let (deltas, mut heard) = tokio::sync::mpsc::channel(limits::INBOX);
        let asking = self.runtime.spawn(async move {
            let told = facts.clone();
            let tell = async move {
                while let Some(delta) = heard.recv().await {
                    told.send(WorkerFact::Delta { turn, delta }).ok();
                }
            };
            let ask = async move {
                // The channel ends with this, and so does telling.
                let deltas = deltas;
                model.ask(&request, &deltas).await
            };
            let (result, ()) = tokio::join!(ask, tell);
            facts.send(WorkerFact::Answered { turn, result }).ok();
        });
        if let Some(current) = &mut self.current {
            current.heard = PartialAnswer::default();
            current.reply = ids::entry();
            current.asking = Some(asking.abort_handle());
        }
    }

    pub(super) fn take_delta(&mut self, delta: &Delta) {
        let Some(current) = &mut self.current else { return };
        current.heard.hear(delta);
        let (turn, entry) = (current.prompt, current.reply);
        let kind = match delta.clone() {
            Delta::Text(text) => EventKind::Delta { turn, entry, text },
            Delta::Reasoning(text) => EventKind::Thinking { turn, entry, text },
            Delta::CallBegan(tool) => EventKind::CallBegan { turn, tool },
            Delta::Finished(_) => return,
        };
        self.publish(kind);
    }

    pub(super) fn take_answer(&mut self, result: Result<ModelAnswer, ModelError>) {
        let Some(current) = &mut self.current else { return };
        current.asking = None;
        match result {
            Ok(answer) => {
                current.heard = PartialAnswer::default();
                let ModelAnswer { blocks, usage, stop } = answer;
                self.append_reply(blocks.clone(), usage, stop);
                if let Some(text) = lacking(&blocks, stop) {
                    self.publish(EventKind::Warning { text: text.to_owned() });
                }
                self.begin_calls(&blocks);
            }
            // It says so itself: its limit may not be known, or is not what it was thought to be.
            Err(ModelError::ContextTooLong { .. }) if self.compact() => {}
            Err(error) => {
                let wish = error.retry_after().map(|wish| u64::try_from(wish.as_millis()).unwrap_or(u64::MAX));
                let (message, mut advice) = (in_words(&error), error.advice());
                let retry = match wish {
                    _ if !error.is_retryable() => Retry::Never,
                    None => Retry::Soon,
                    Some(ms) if limits::LONGEST_WISH_MS < ms => {
                        advice.push_str(&format!("; it wants to be asked again in {}", minutes(ms)));
                        Retry::Never
                    }
                    Some(ms) => Retry::After(ms),
                };
                self.step(turn::Fact::Failed { retry, message, advice });
            }
        }
    }

    fn append_reply(&mut self, blocks: Vec<Block>, usage: Usage, stop: StopReason) {
        let model = self.model.full_name();
        // Clients know it by this id from its first word on.
        let id = self.current.as_ref().map_or_else(ids::entry, |current| current.reply);
        self.append_entries(vec![NewEntry { id, at: ids::now(), body: Body::Reply { blocks, model, usage, stop } }]);
        if let Some(current) = &mut self.current {
            current.has_output = true;
            // No other entry may have it.
            current.reply = ids::entry();
        }
    }

    /// Appends to the conversation and tells everybody. If that fails, nothing can go on.
    pub(super) fn append(&mut self, bodies: Vec<Body>) {
        let at = ids::now();
        self.append_entries(bodies.into_iter().map(|body| NewEntry { id: ids::entry(), at, body }).collect());
    }

    fn append_entries(&mut self, new: Vec<NewEntry>) {
        match self.writer_mut().append(new, Durability::Soon) {
            Ok(_) => self.publish_appended(),
            Err(err) => self.break_off(&in_words(&err)),
        }
    }

    /// The log cannot be written: what happens from now on would be forgotten, so nothing may happen.
    fn break_off(&mut self, why: &str) {
        self.publish(EventKind::Warning {
            text: format!("the conversation cannot be stored: {why}; the turn was stopped"),
        });
        self.cancel_model();
        if let Some(current) = &self.current {
            current.calls.iter().for_each(super::PendingCall::cancel);
        }
        // The next one who opens the session puts it in order.
        self.current = None;
        self.turn = turn::Turn::default();
        self.number += 1;
        self.is_closing = true;
        self.publish_state();
    }

    fn wait_to_retry(&mut self, ms: u64, attempt: u32, message: String) {
        if let Some(current) = &mut self.current {
            current.heard = PartialAnswer::default();
        }
        self.publish(EventKind::Retrying { after_ms: ms, attempt, message });
        self.later(ms, WorkerFact::RetryDue { turn: self.number });
    }

    /// Has a fact come after some time.
    pub(super) fn later(&self, ms: u64, fact: WorkerFact) {
        let facts = self.facts.clone();
        self.runtime.spawn(async move {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            facts.send(fact).ok();
        });
    }

    /// Stops asking; what was heard is kept.
    fn cancel_model(&mut self) {
        if let Some(asking) = self.current.as_mut().and_then(|current| current.asking.take()) {
            asking.abort();
        }
        self.cancel_summary();
        self.keep_heard();
    }

    /// Makes what was heard of an answer that does not come to its end an entry. A thought alone is nothing to go on from.
    fn keep_heard(&mut self) {
        let Some(current) = &mut self.current else { return };
        let blocks = std::mem::take(&mut current.heard).blocks();
        let says_something = |block: &Block| matches!(block, Block::Text { text } if !text.trim().is_empty());
        if blocks.iter().any(says_something) {
            self.append_reply(blocks, Usage::default(), StopReason::Interrupted);
        }
    }

    /// Stops the turn that is meant, and no other.
    pub(super) fn interrupt_turn(&mut self, meant: Option<EntryId>) -> Result<Reply, Refusal> {
        let running = self.current.as_ref().map(|current| current.prompt);
        if meant.is_some_and(|meant| running != Some(meant)) {
            return Err(refusal(Reason::NotFound, "this turn does not run; it may have ended already"));
        }
        self.interrupt();
        Ok(Reply::Done)
    }

    /// Stops the turn for the user: what was held is to be thought over.
    pub(super) fn interrupt(&mut self) {
        self.return_held();
        self.stop();
    }

    /// Stops the turn.
    pub(super) fn stop(&mut self) {
        self.step(turn::Fact::Interrupted);
        if self.turn.activity() != Activity::Idle {
            self.later(limits::PATIENCE_MS, WorkerFact::OutOfPatience { turn: self.number });
        }
    }

    fn end_turn(&mut self, ending: Ending) {
        self.keep_heard();
        let Some(current) = self.current.take() else { return };
        self.number += 1;
        self.stopped = ending == Ending::Interrupted;
        let goes_on = !matches!(ending, Ending::Failed(_)) && !self.is_closing;
        let came_to_nothing = !current.has_output && matches!(ending, Ending::Interrupted | Ending::Failed(_));
        let reason = match ending {
            Ending::Done => EndReason::Done,
            Ending::Interrupted => EndReason::Interrupted,
            Ending::Failed(message) => EndReason::Failed { message },
            Ending::RoundLimit => EndReason::RoundLimit,
        };
        let text = last_words(of_turn(self.writer().conversation().entries(), current.prompt));
        let said = prompt_line(self.writer().conversation().entries(), current.prompt);
        let usage = turn_usage(self.writer().conversation().entries(), current.prompt);
        let is_undone =
            came_to_nothing && self.waiting.as_ref().is_some_and(|(wanted, _)| undoes_newest(&wanted.change));
        if is_undone || (!goes_on && self.waiting.is_none()) {
            self.return_held();
        }
        let stored =
            if came_to_nothing { self.take_back(current.operation) } else { self.write_end(&current, reason.clone()) };
        if let Err(err) = stored {
            return self.break_off(&in_words(&err));
        }
        let message = match &reason {
            EndReason::Failed { message } => Some(message.clone()),
            EndReason::RoundLimit => Some(format!("the turn took {} rounds", limits::MAX_ROUNDS)),
            EndReason::Done | EndReason::Interrupted => None,
        };
        let session = self.writer().id().into();
        self.publisher.request = current.request;
        let taken_back = came_to_nothing;
        self.store_turn(EventKind::TurnEnded {
            session,
            prompt: current.prompt,
            reason: TurnEnd::from(&reason),
            message,
            text,
            usage,
            taken_back,
            operation: (!taken_back).then(|| current.operation.into()),
        });
        match is_undone {
            true => self.answer_taken_back(&said),
            false => self.go_on_after_turn(goes_on),
        }
    }

    fn write_end(&mut self, current: &Current, reason: EndReason) -> Result<(), SessionError> {
        let end = NewEntry { id: ids::entry(), at: ids::now(), body: Body::Ended { reason } };
        self.last_turn = Some((current.operation, end.id));
        self.writer_mut().end_turn(current.operation, end)?;
        self.publish_appended();
        Ok(())
    }

    /// Takes a turn back that came to nothing: what was said is to be said again, and then what else was about to be.
    fn take_back(&mut self, operation: OperationId) -> Result<(), SessionError> {
        let said = self.writer_mut().take_back_turn(operation)?;
        self.publish_head_moved(None);
        // All of it is stored by now; what is held is told apart from it again.
        self.store_draft(joined([said, self.draft.clone()])).ok();
        Ok(())
    }

    /// Takes the snapshot after a turn, and tells that it has ended when everything of it is stored.
    fn store_turn(&self, ended: EventKind) {
        self.snapshot(SnapshotMoment::Turn, Moment { session: self.writer().id(), entry: None, origin: Origin::Turn });
        let (facts, request, kind) = (self.facts.clone(), self.publisher.request.clone(), Box::new(ended));
        self.workspace_thread.run(move |_| drop(facts.send(WorkerFact::Told { request, kind })));
    }

    /// Answers an undo that waited for a turn which has taken itself back: there is nothing left to undo of what was meant.
    fn answer_taken_back(&mut self, said: &str) {
        let Some((_, answer)) = self.waiting.take() else { return };
        self.stopped = false;
        let document = Box::new(RewindDocument::taken_back(&format!("turn {said}")));
        answer.send(RequestOutcome::Ok(Reply::Change { document })).ok();
    }

    /// A change that waited for the end comes first; then what was held, if there is any sense in that.
    pub(super) fn go_on_after_turn(&mut self, goes_on: bool) {
        match self.waiting.take() {
            Some((request, answer)) if !answer.is_closed() => self.apply_now(request, answer),
            _ if goes_on => self.say_held(),
            _ => self.return_held(),
        }
    }

    /// Cuts what the model sees.
    pub(super) fn clear(&mut self) -> Result<Reply, Refusal> {
        if self.turn.activity() != Activity::Idle {
            return Err(refusal(Reason::Running, "a turn is running; stop it first"));
        }
        // To be undone it needs a checkpoint before it, and the first one may still be on its way.
        self.workspace_thread.ask(|_| ());
        let cut = NewEntry { id: ids::entry(), at: ids::now(), body: Body::Cleared };
        let made_by = self.made_by;
        self.writer_mut()
            .clear(ids::operation(), made_by, cut)
            .map_err(|err| refusal(Reason::Failed, in_words(&err)))?;
        self.publish_appended();
        self.toolbox.recall(self.writer().conversation());
        self.snapshot(SnapshotMoment::Turn, Moment { session: self.writer().id(), entry: None, origin: Origin::Turn });
        Ok(Reply::Done)
    }
}

/// What people should know about an answer that is not what it seems.
fn lacking(blocks: &[Block], stop: StopReason) -> Option<&'static str> {
    let says_something = |block: &Block| match block {
        Block::Text { text } => !text.trim().is_empty(),
        Block::Call { .. } => true,
        Block::Reasoning { .. } => false,
    };
    match stop {
        StopReason::Length => Some("the answer was cut: it reached the model's limit of output tokens"),
        StopReason::Refused => Some("the model, or a filter of its provider, refused to answer"),
        _ if !blocks.iter().any(says_something) => Some("the model's answer was empty"),
        _ => None,
    }
}

/// A time in words, rounded up to minutes.
fn minutes(ms: u64) -> String {
    format!("{} min", ms.div_ceil(60_000))
}

/// Whether a change is to undo whatever is newest.
fn undoes_newest(change: &Change) -> bool {
    change.goal == ChangeGoal::Undo { operation: None }
}

/// The first line of a prompt.
fn prompt_line(entries: &[Entry], prompt: EntryId) -> String {
    match of_turn(entries, prompt).first().map(|entry| &entry.body) {
        Some(Body::Prompt { parts }) => first_line(parts),
        _ => String::new(),
    }
}

/// The entries of a turn.
fn of_turn(entries: &[Entry], prompt: EntryId) -> &[Entry] {
    let first = entries.iter().rposition(|entry| entry.id == prompt).unwrap_or(entries.len());
    &entries[first..]
}

fn turn_usage(entries: &[Entry], prompt: EntryId) -> Usage {
    let mut total = Usage::default();
    for Entry { body, .. } in of_turn(entries, prompt) {
        if let Body::Reply { usage, .. } | Body::Summary { usage, .. } = body {
            total += *usage;
        }
    }
    total
}
