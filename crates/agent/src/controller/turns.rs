//! Turns: saying a prompt, asking the model, coming to an end.

use std::time::{Duration, Instant};

use retake_engine::session::entry::{Block, Body, EndReason, Part, StopReason, Usage};
use retake_engine::session::{Moment, NewEntry, NewTurn};
use retake_engine::{Durability, NoProgress, Origin};

use super::publish::in_words;
use super::{Controller, Current, Fact, refusal};
use crate::contract::{EventKind, Reason, Refusal, Reply};
use crate::model::{Answer, Delta, Heard, ModelError, Request};
use crate::turn::{self, Activity, Effect, Ending};
use crate::{fresh, instructions, limits};

impl Controller {
    /// Says something, or holds it while a turn runs.
    pub(super) fn prompt(&mut self, parts: Vec<Part>) -> Result<Reply, Refusal> {
        if parts.is_empty() || parts.iter().all(|part| matches!(part, Part::Text { text } if text.trim().is_empty())) {
            return Err(refusal(Reason::Invalid, "a prompt must say something"));
        }
        if self.turn.activity() == Activity::Idle {
            return self.begin_turn(parts);
        }
        if limits::MAX_HELD <= self.held.len() {
            return Err(refusal(Reason::Running, "a turn is running, and too many prompts are held already"));
        }
        self.held.push_back(parts);
        // Should the process die, they are what the user was about to say.
        self.store_draft(joined(self.held.iter()))?;
        let count = self.held.len();
        self.publish(EventKind::Held { count });
        Ok(Reply::Held { count })
    }

    fn begin_turn(&mut self, parts: Vec<Part>) -> Result<Reply, Refusal> {
        let at = fresh::now();
        let mut bodies = instructions::missing(self.writer().conversation(), &self.root);
        bodies.push(Body::Prompt { parts });
        let entries: Vec<NewEntry> = bodies.into_iter().map(|body| NewEntry { id: fresh::entry(), at, body }).collect();
        let operation = fresh::operation();
        let prompt = entries.last().expect("there is a prompt").id;
        let made_by = self.made_by;
        self.writer_mut()
            .begin_turn(NewTurn { operation, at, made_by, entries })
            .map_err(|err| refusal(Reason::Failed, in_words(&err)))?;
        self.number += 1;
        self.stopped = false;
        self.current = Some(Current {
            prompt,
            operation,
            request: self.request.clone(),
            heard: Heard::default(),
            has_output: false,
            attempt: 0,
            calls: Vec::new(),
            asking: None,
        });
        self.publish_appended();
        self.publish_draft();
        let moment = Moment { session: self.writer().id(), entry: Some(prompt), origin: Origin::Prompt };
        self.snapshot("prompt", moment);
        self.step(turn::Fact::Prompted);
        Ok(Reply::Said { prompt })
    }

    /// Has a snapshot taken; nobody waits for it but what comes after it.
    pub(super) fn snapshot(&self, name: &'static str, moment: Moment) {
        let facts = self.facts.clone();
        self.keeper.run(move |workspace| {
            let began = Instant::now();
            let result = workspace.checkpoint_at(moment, fresh::checkpoint(), Durability::Soon, &NoProgress);
            let ms = began.elapsed().as_secs_f64() * 1e3;
            facts.send(Fact::Snapshot { moment: name, result, ms }).ok();
        });
    }

    /// Has the turn take in a fact, and does what is to be done then.
    pub(super) fn step(&mut self, fact: turn::Fact) {
        for effect in self.turn.step(fact) {
            match effect {
                Effect::AskModel => self.ask_model(),
                Effect::WaitToRetry { ms, attempt, message } => self.wait_to_retry(ms, attempt, message),
                Effect::AskPermission(call) => self.ask_permission(call),
                Effect::Run(call) => self.run_call(call),
                Effect::CancelModel => self.cancel_model(),
                Effect::CancelCall(call) => self.cancel_call(call),
                Effect::Abandon(call) => self.abandon_call(call),
                Effect::End(ending) => self.end_turn(ending),
            }
        }
        self.publish_state();
    }

    /// What the model would be sent now.
    pub(super) fn model_request(&self) -> Request {
        self.model.request(&self.writer().conversation().context(), &self.toolbox.specs())
    }

    fn ask_model(&mut self) {
        let request = self.model_request();
        let (model, facts, turn) = (self.model.clone(), self.facts.clone(), self.number);
        let (deltas, mut heard) = tokio::sync::mpsc::channel(limits::INBOX);
        let asking = self.runtime.spawn(async move {
            let told = facts.clone();
            let tell = async move {
                while let Some(delta) = heard.recv().await {
                    told.send(Fact::Delta { turn, delta }).ok();
                }
            };
            let ask = async move {
                // The channel ends with this, and so does telling.
                let deltas = deltas;
                model.ask(&request, &deltas).await
            };
            let (result, ()) = tokio::join!(ask, tell);
            facts.send(Fact::Answered { turn, result }).ok();
        });
        if let Some(current) = &mut self.current {
            current.heard = Heard::default();
            current.asking = Some(asking.abort_handle());
        }
    }

    pub(super) fn take_delta(&mut self, delta: &Delta) {
        let Some(current) = &mut self.current else { return };
        current.heard.hear(delta);
        let turn = current.prompt;
        let kind = match delta.clone() {
            Delta::Text(text) => EventKind::Delta { turn, text },
            Delta::Reasoning(text) => EventKind::Thinking { turn, text },
            Delta::CallBegan(tool) => EventKind::CallBegan { turn, tool },
            Delta::Finished(_) => return,
        };
        self.publish(kind);
    }

    pub(super) fn take_answer(&mut self, result: Result<Answer, ModelError>) {
        let Some(current) = &mut self.current else { return };
        current.asking = None;
        match result {
            Ok(answer) => {
                current.heard = Heard::default();
                current.attempt = 0;
                let Answer { blocks, usage, stop } = answer;
                self.append_reply(blocks.clone(), usage, stop);
                self.begin_calls(&blocks);
            }
            Err(error) => {
                current.attempt += 1;
                let pause = limits::FIRST_PAUSE_MS << (current.attempt - 1).min(10);
                let pause = Duration::from_millis(pause.min(limits::LONGEST_PAUSE_MS));
                let pause = error.retry_after().unwrap_or(pause);
                let ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
                let retry_after_ms = error.is_retryable().then_some(ms);
                let message = format!("{}; {}", in_words(&error), error.advice());
                self.step(turn::Fact::Failed { retry_after_ms, message });
            }
        }
    }

    fn append_reply(&mut self, blocks: Vec<Block>, usage: Usage, stop: StopReason) {
        let model = self.model.full_name();
        self.append(vec![Body::Reply { blocks, model, usage, stop }]);
        if let Some(current) = &mut self.current {
            current.has_output = true;
        }
    }

    /// Appends to the conversation and tells everybody. If that fails, nothing can go on.
    pub(super) fn append(&mut self, bodies: Vec<Body>) {
        let at = fresh::now();
        let new = bodies.into_iter().map(|body| NewEntry { id: fresh::entry(), at, body }).collect();
        match self.writer_mut().append(new, Durability::Soon) {
            Ok(_) => self.publish_appended(),
            Err(err) => self.break_off(&in_words(&err)),
        }
    }

    /// The log cannot be written: what happens from now on would be forgotten, so nothing may happen.
    fn break_off(&mut self, why: &str) {
        self.publish(EventKind::Warning { text: format!("the conversation cannot be stored: {why}; the turn was stopped") });
        self.cancel_model();
        if let Some(current) = &self.current {
            current.calls.iter().for_each(super::Call::cancel);
        }
        // The next one who opens the session puts it in order.
        self.current = None;
        self.turn = turn::Turn::default();
        self.number += 1;
        self.is_closing = true;
    }

    fn wait_to_retry(&mut self, ms: u64, attempt: u32, message: String) {
        if let Some(current) = &mut self.current {
            current.heard = Heard::default();
        }
        self.publish(EventKind::Retrying { after_ms: ms, attempt, message });
        self.later(ms, Fact::RetryDue { turn: self.number });
    }

    /// Has a fact come after some time.
    pub(super) fn later(&self, ms: u64, fact: Fact) {
        let facts = self.facts.clone();
        self.runtime.spawn(async move {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            facts.send(fact).ok();
        });
    }

    /// Stops asking; what was heard is kept.
    fn cancel_model(&mut self) {
        let Some(current) = &mut self.current else { return };
        if let Some(asking) = current.asking.take() {
            asking.abort();
        }
        let blocks = std::mem::take(&mut current.heard).blocks();
        if !blocks.is_empty() {
            self.append_reply(blocks, Usage::default(), StopReason::Interrupted);
        }
    }

    /// Stops the turn.
    pub(super) fn interrupt(&mut self) -> Result<Reply, Refusal> {
        self.step(turn::Fact::Interrupted);
        if self.turn.activity() != Activity::Idle {
            self.later(limits::PATIENCE_MS, Fact::OutOfPatience { turn: self.number });
        }
        Ok(Reply::Done)
    }

    fn end_turn(&mut self, ending: Ending) {
        let Some(current) = self.current.take() else { return };
        self.number += 1;
        self.stopped = ending == Ending::Interrupted;
        let came_to_nothing = !current.has_output && matches!(ending, Ending::Interrupted | Ending::Failed(_));
        let reason = match ending {
            Ending::Done => EndReason::Done,
            Ending::Interrupted => EndReason::Interrupted,
            Ending::Failed(message) => EndReason::Failed { message },
            Ending::RoundLimit => EndReason::RoundLimit,
        };
        let text = last_words(self.writer().conversation().entries(), current.prompt);
        let stored = if came_to_nothing {
            self.writer_mut().take_back_turn(current.operation)
        } else {
            let end = NewEntry { id: fresh::entry(), at: fresh::now(), body: Body::Ended { reason: reason.clone() } };
            self.writer_mut().end_turn(current.operation, end).map(drop)
        };
        if let Err(err) = stored {
            return self.break_off(&in_words(&err));
        }
        if came_to_nothing {
            self.publish_head_moved(None);
        } else {
            self.publish_appended();
        }
        self.publish_draft();
        let is_done = reason == EndReason::Done || reason == EndReason::RoundLimit;
        let usage = turn_usage(self.writer().conversation().entries(), current.prompt);
        let (reason, message) = name(reason);
        let session = self.writer().id().to_string();
        let ended = EventKind::TurnEnded { session, prompt: current.prompt, reason, message, text, usage };
        self.store_turn(ended);
        self.go_on_after_turn(is_done);
    }

    /// Takes the snapshot after a turn, and tells that it has ended when everything of it is stored.
    fn store_turn(&self, ended: EventKind) {
        self.snapshot("turn", Moment { session: self.writer().id(), entry: None, origin: Origin::Turn });
        let facts = self.facts.clone();
        self.keeper.run(move |_| drop(facts.send(Fact::TurnStored { ended: Box::new(ended) })));
    }

    /// A change that waited for the end comes first; then what was held, unless the user stopped the turn.
    fn go_on_after_turn(&mut self, is_done: bool) {
        if let Some((request, answer)) = self.waiting.take() {
            self.return_held();
            return self.apply_now(request, answer);
        }
        if self.is_closing || !is_done {
            return self.return_held();
        }
        if let Some(parts) = self.held.pop_front() {
            let count = self.held.len();
            self.publish(EventKind::Held { count });
            if let Err(refusal) = self.begin_turn(parts) {
                self.publish(EventKind::Warning { text: refusal.message });
            }
            if !self.held.is_empty() {
                // Beginning the turn has said everything; the others are still to be said.
                let draft = joined(self.held.iter());
                self.store_draft(draft).ok();
            }
        }
    }

    /// Makes held prompts what the user is about to say, after what that is already.
    fn return_held(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let held = joined(self.held.iter());
        let mut draft = self.writer().draft().to_vec();
        if draft != held {
            draft = joined([draft, held].iter());
        }
        self.held.clear();
        self.store_draft(draft).ok();
        self.publish(EventKind::Held { count: 0 });
    }

    pub(super) fn set_draft(&mut self, parts: Vec<Part>) -> Result<Reply, Refusal> {
        self.store_draft(parts)?;
        Ok(Reply::Done)
    }

    pub(super) fn store_draft(&mut self, parts: Vec<Part>) -> Result<(), Refusal> {
        self.writer_mut().set_draft(parts).map_err(|err| refusal(Reason::Failed, in_words(&err)))?;
        self.publish_draft();
        Ok(())
    }

    /// Cuts what the model sees.
    pub(super) fn clear(&mut self) -> Result<Reply, Refusal> {
        if self.turn.activity() != Activity::Idle {
            return Err(refusal(Reason::Running, "a turn is running; stop it first"));
        }
        // To be undone it needs a checkpoint before it, and the first one may still be on its way.
        self.keeper.ask(|_| ());
        let cut = NewEntry { id: fresh::entry(), at: fresh::now(), body: Body::Cleared };
        let made_by = self.made_by;
        self.writer_mut()
            .clear(fresh::operation(), made_by, cut)
            .map_err(|err| refusal(Reason::Failed, in_words(&err)))?;
        self.publish_appended();
        self.toolbox.forget_reads();
        self.snapshot("turn", Moment { session: self.writer().id(), entry: None, origin: Origin::Turn });
        Ok(Reply::Done)
    }
}

/// Prompts one after another, as one.
fn joined<'a>(prompts: impl Iterator<Item = &'a Vec<Part>>) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for prompt in prompts.filter(|prompt| !prompt.is_empty()) {
        if let (Some(Part::Text { text }), Some(Part::Text { text: next })) = (parts.last_mut(), prompt.first()) {
            text.push_str("\n\n");
            text.push_str(next);
            parts.extend(prompt[1..].iter().cloned());
        } else {
            parts.extend(prompt.iter().cloned());
        }
    }
    parts
}

/// The entries of a turn.
fn of_turn(
    entries: &[retake_engine::session::entry::Entry],
    prompt: retake_engine::EntryId,
) -> impl DoubleEndedIterator<Item = &Body> {
    let first = entries.iter().rposition(|entry| entry.id == prompt).unwrap_or(entries.len());
    entries[first..].iter().map(|entry| &entry.body)
}

/// The text of the last answer in a turn that has any.
fn last_words(entries: &[retake_engine::session::entry::Entry], prompt: retake_engine::EntryId) -> String {
    let said = of_turn(entries, prompt).rev().find_map(|body| match body {
        Body::Reply { blocks, .. } => {
            let texts = blocks.iter().filter_map(|block| match block {
                Block::Text { text } => Some(text.as_str()),
                Block::Reasoning { .. } | Block::Call { .. } => None,
            });
            Some(texts.collect::<Vec<_>>().join("\n")).filter(|text| !text.is_empty())
        }
        _ => None,
    });
    said.unwrap_or_default()
}

fn turn_usage(entries: &[retake_engine::session::entry::Entry], prompt: retake_engine::EntryId) -> Usage {
    let mut total = Usage::default();
    for body in of_turn(entries, prompt) {
        if let Body::Reply { usage, .. } = body {
            total += *usage;
        }
    }
    total
}

/// A reason as a word, and what else it says.
fn name(reason: EndReason) -> (String, Option<String>) {
    match reason {
        EndReason::Done => ("done".to_owned(), None),
        EndReason::Interrupted => ("interrupted".to_owned(), None),
        EndReason::Failed { message } => ("failed".to_owned(), Some(message)),
        EndReason::RoundLimit => ("round_limit".to_owned(), Some(format!("the turn took {} rounds", limits::MAX_ROUNDS))),
    }
}
