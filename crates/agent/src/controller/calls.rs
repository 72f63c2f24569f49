//! Tool calls: asked about, run between two snapshots, answered.
//!
//! A call that may change something waits for its window: the snapshot before it. What it changed is found by the snapshot after it. A
//! background job keeps its window until it ends.

use std::time::Instant;

use retake_engine::session::Moment;
use retake_engine::session::entry::{Block, Body, CallId, Outcome, Part};
use retake_engine::{CheckpointError, Durability, NewWindow, NoProgress, Origin, PartOf, Reach, Window};
use tokio::sync::{mpsc, watch};

use super::publish::in_words;
use super::{Controller, Fact, Unprotected, refusal};
use crate::contract::{Answer, EventKind, Question, Reason, Refusal, Reply, Rule};
use crate::permission::{self, Decision, Mode};
use crate::tool::{self, Access, JobEnded, JobId, Prepared, Surroundings};
use crate::turn::{self, CallNumber, Effects, Verdict};
use crate::{fresh, limits};

/// A call of the model's last answer.
pub(super) struct Call {
    pub(super) id: CallId,
    tool: String,
    title: String,
    prepared: Option<Prepared>,
    question: Option<Question>,
    /// The user knows that nothing protects it.
    unprotected: bool,
    window: Option<Window>,
    interrupted: watch::Sender<bool>,
    is_settled: bool,
}

impl Call {
    /// Tells it to end.
    pub(super) fn cancel(&self) {
        self.interrupted.send_replace(true);
    }
}

impl Controller {
    /// Takes the calls of an answer in.
    pub(super) fn begin_calls(&mut self, blocks: &[Block]) {
        let mut verdicts = Vec::new();
        let mut refused = Vec::new();
        let mut calls = Vec::new();
        let policy = self.policy.clone().with_approvals(self.writer().conversation().entries());
        for block in blocks {
            let Block::Call { id, name, arguments } = block else { continue };
            let (call, verdict, effects) = match self.toolbox.prepare(name, arguments) {
                Ok(prepared) => take_in(&policy, id, name, prepared, &mut refused),
                Err(output) => {
                    refused.push(result(id, name, output));
                    (Call::new(id, name, name, None), Verdict::Settled, Effects::Reads)
                }
            };
            verdicts.push((verdict, effects));
            calls.push(call);
        }
        if let Some(current) = &mut self.current {
            current.calls = calls;
        }
        if !refused.is_empty() {
            self.append(refused);
        }
        self.step(turn::Fact::Answered(verdicts));
    }

    fn call_mut(&mut self, number: CallNumber) -> Option<&mut Call> {
        self.current.as_mut()?.calls.get_mut(number)
    }

    pub(super) fn ask_permission(&mut self, number: CallNumber) {
        let Some(question) = self.call_mut(number).and_then(|call| call.question.clone()) else { return };
        self.publish(EventKind::PermissionAsked { question });
    }

    /// Takes in whether a call may run.
    pub(super) fn answer(&mut self, call: &CallId, answer: Answer) -> Result<Reply, Refusal> {
        let asked = self.current.as_ref().and_then(|current| {
            let is_asked = |one: &super::Call| one.id == *call && one.question.is_some() && !one.is_settled;
            current.calls.iter().position(is_asked)
        });
        let Some(number) = asked else { return Err(refusal(Reason::NotFound, "nobody is asked about this call")) };
        let is_about_protection =
            self.call_mut(number).and_then(|call| call.question.take()).is_some_and(|q| q.rule.is_none())
                && self.call_mut(number).is_some_and(|call| call.unprotected);
        let allowed = !matches!(answer, Answer::Deny { .. });
        self.publish(EventKind::PermissionSettled { call: call.clone(), allowed });
        match answer {
            Answer::Allow | Answer::AllowAlways { .. } if is_about_protection => self.start_call(number, None),
            Answer::Allow => self.step(turn::Fact::Allowed(number)),
            Answer::AllowAlways { rule: Rule { tool, prefix } } => {
                self.append(vec![Body::Approved { tool, prefix }]);
                self.step(turn::Fact::Allowed(number));
            }
            Answer::Deny { why } => {
                let why = why.map(|why| format!(" They say: {why}")).unwrap_or_default();
                let text = format!(
                    "The user did not allow this call. Do not try it another way; ask what to do instead.{why}"
                );
                self.settle_call(number, tool::Output::new(Outcome::Denied, text));
            }
        }
        self.publish_state();
        Ok(Reply::Done)
    }

    /// Runs a call: at once if it only reads, else when the snapshot before it is complete.
    pub(super) fn run_call(&mut self, number: CallNumber) {
        let session = self.writer().id();
        let Some(current) = &self.current else { return };
        let (turn_id, operation) = (current.prompt.to_string(), current.operation);
        let Some(call) = self.call_mut(number) else { return };
        let Some(prepared) = &call.prepared else { return };
        let (reach, declared) = match &prepared.access {
            Access::Reads => return self.start_call(number, None),
            Access::Writes { paths } => (Reach::Declared, paths.clone()),
            Access::Runs { .. } | Access::Unknown => (Reach::Everything, Vec::new()),
        };
        let tool = call.title.clone();
        let window =
            NewWindow { session, turn: Some(turn_id), tool, reach, declared, operation: PartOf::Turn(operation) };
        let (facts, turn) = (self.facts.clone(), self.number);
        self.keeper.run(move |workspace| {
            let began = Instant::now();
            let result = workspace.begin(window, fresh::checkpoint(), &NoProgress);
            let ms = began.elapsed().as_secs_f64() * 1e3;
            let result = result.map(|began| {
                facts.send(Fact::Snapshot { moment: "before", result: Ok(began.before), ms }).ok();
                began.window
            });
            facts.send(Fact::WindowOpened { turn, call: number, result }).ok();
        });
    }

    pub(super) fn window_opened(&mut self, turn: u64, number: CallNumber, result: Result<Window, CheckpointError>) {
        let is_wanted = turn == self.number
            && self.call_mut(number).is_some_and(|call| !call.is_settled && !*call.interrupted.borrow());
        match result {
            // The call was abandoned meanwhile.
            Ok(window) if !is_wanted => {
                self.end_window(window);
                if turn == self.number {
                    self.settle_call(number, tool::Output::interrupted("The user stopped this before it began."));
                }
            }
            Ok(window) => self.start_call(number, Some(window)),
            Err(_) if !is_wanted => {
                if turn == self.number {
                    self.settle_call(number, tool::Output::interrupted("The user stopped this before it began."));
                }
            }
            Err(error) => self.without_protection(number, &error),
        }
    }

    /// The snapshot before a call could not be taken.
    fn without_protection(&mut self, number: CallNumber, error: &CheckpointError) {
        let why = in_words(error);
        match (self.unprotected, self.policy.mode) {
            (Unprotected::Allow, _) => {
                self.publish(EventKind::Warning { text: format!("not protected by a snapshot: {why}") });
                self.start_call(number, None);
            }
            (Unprotected::Ask, Mode::Interactive) => {
                let Some(call) = self.call_mut(number) else { return };
                call.unprotected = true;
                let question = Question {
                    call: call.id.clone(),
                    tool: call.tool.clone(),
                    title: call.title.clone(),
                    why: format!("what this changes could not be taken back: {why}"),
                    rule: None,
                };
                call.question = Some(question.clone());
                self.publish(EventKind::PermissionAsked { question });
            }
            (Unprotected::Ask, Mode::Headless(_)) => {
                let text = format!(
                    "This was not run, because what it changes could not have been taken back: {why}. Tell the user; they can make room, or \
                     allow it with `--unprotected`."
                );
                self.settle_call(number, tool::Output::failed(text));
            }
        }
    }

    fn start_call(&mut self, number: CallNumber, window: Option<Window>) {
        let (facts, turn, root) = (self.facts.clone(), self.number, self.root.clone());
        let Some(tag) = self.current.as_ref().map(|current| current.prompt.to_string()) else { return };
        let Some(call) = self.call_mut(number) else { return };
        call.window = window;
        let Some(prepared) = call.prepared.take() else { return };
        let interrupted = call.interrupted.subscribe();
        let started = EventKind::CallStarted { call: call.id.clone(), title: call.title.clone() };
        let (output, mut lines) = mpsc::channel::<String>(limits::INBOX);
        self.runtime.spawn(async move {
            let told = facts.clone();
            let tell = async move {
                while let Some(text) = lines.recv().await {
                    told.send(Fact::CallOutput { turn, call: number, text }).ok();
                }
            };
            let run = (prepared.run)(Surroundings { root, output, interrupted, tag });
            let (output, ()) = tokio::join!(run, tell);
            facts.send(Fact::CallReturned { turn, call: number, output }).ok();
        });
        self.publish(started);
    }

    pub(super) fn call_output(&mut self, number: CallNumber, text: String) {
        if let Some(call) = self.call_id(number) {
            self.publish(EventKind::CallOutput { call, text });
        }
    }

    /// A call has come to its end: what it changed is found out before anybody is told.
    pub(super) fn call_returned(&mut self, turn: u64, number: CallNumber, output: tool::Output) {
        let window = if turn == self.number { self.call_mut(number).and_then(|call| call.window.take()) } else { None };
        let (facts, session) = (self.facts.clone(), self.writer().id());
        let job = output.job;
        match (window, job) {
            (Some(window), Some(job)) => {
                self.job_windows.insert(job, window);
                let moment = Moment { session, entry: None, origin: Origin::After };
                self.snapshot("after", moment);
                self.keeper.run(move |_| drop(facts.send(Fact::WindowClosed { turn, call: number, output })));
                self.publish_jobs();
            }
            (Some(window), None) => {
                self.keeper.run(move |workspace| {
                    end(workspace, window, &facts);
                    facts.send(Fact::WindowClosed { turn, call: number, output }).ok();
                });
            }
            (None, _) if turn == self.number => self.settle_call(number, output),
            (None, _) => {}
        }
    }

    /// Gives a call its result.
    pub(super) fn settle_call(&mut self, number: CallNumber, output: tool::Output) {
        let Some(call) = self.call_mut(number).filter(|call| !call.is_settled) else { return };
        call.is_settled = true;
        let (id, title) = (call.id.clone(), call.title.clone());
        let was_asked = call.question.take().is_some();
        if was_asked {
            self.publish(EventKind::PermissionSettled { call: id.clone(), allowed: false });
        }
        self.append(vec![result(&id, &title, output)]);
        self.step(turn::Fact::Settled(number));
    }

    pub(super) fn cancel_call(&mut self, number: CallNumber) {
        if let Some(call) = self.call_mut(number) {
            call.cancel();
            // It waits for the user, and nothing of it runs.
            if call.question.is_some() {
                self.settle_call(number, tool::Output::interrupted("The user stopped this before it began."));
            }
        }
    }

    /// Gives a call that never ran, or does not end, its result; what it changes from now on is found by the next snapshot.
    pub(super) fn abandon_call(&mut self, number: CallNumber) {
        let Some(call) = self.call_mut(number).filter(|call| !call.is_settled) else { return };
        call.cancel();
        call.is_settled = true;
        let (id, title, window) = (call.id.clone(), call.title.clone(), call.window.take());
        let was_asked = call.question.take().is_some();
        if was_asked {
            self.publish(EventKind::PermissionSettled { call: id.clone(), allowed: false });
        }
        self.append(vec![result(&id, &title, tool::Output::interrupted("The user stopped this."))]);
        if let Some(window) = window {
            self.end_window(window);
        }
    }

    /// Has a window closed by a snapshot.
    pub(super) fn end_window(&self, window: Window) {
        let facts = self.facts.clone();
        self.keeper.run(move |workspace| end(workspace, window, &facts));
    }

    pub(super) fn job_ended(&mut self, ended: &JobEnded) {
        if let Some(window) = self.job_windows.remove(&ended.id) {
            self.end_window(window);
        }
        self.publish_jobs();
    }

    pub(super) fn end_job(&mut self, job: &str) -> Result<Reply, Refusal> {
        let jobs = self.toolbox.jobs().clone();
        let found: Option<JobId> = jobs.list().into_iter().find(|one| one.id.to_string() == job).map(|job| job.id);
        let Some(id) = found else { return Err(refusal(Reason::NotFound, format!("there is no job `{job}`"))) };
        self.runtime.spawn(async move { drop(jobs.end(id).await) });
        Ok(Reply::Done)
    }
}

impl Call {
    fn new(id: &CallId, tool: &str, title: &str, prepared: Option<Prepared>) -> Self {
        Self {
            id: id.clone(),
            tool: tool.to_owned(),
            title: title.to_owned(),
            is_settled: prepared.is_none(),
            prepared,
            question: None,
            unprotected: false,
            window: None,
            interrupted: watch::Sender::new(false),
        }
    }
}

/// Decides about a call that makes sense.
fn take_in(
    policy: &permission::Policy,
    id: &CallId,
    name: &str,
    prepared: Prepared,
    refused: &mut Vec<Body>,
) -> (Call, Verdict, Effects) {
    let effects = if prepared.access == Access::Reads { Effects::Reads } else { Effects::Mutates };
    let title = prepared.title.clone();
    match permission::decide(policy, name, &prepared.access) {
        Decision::Allow => (Call::new(id, name, &title, Some(prepared)), Verdict::Allowed, effects),
        Decision::Ask { suggested } => {
            let rule = suggested.map(|rule| Rule { tool: rule.tool().to_owned(), prefix: rule.prefix_text() });
            let why = "it may change something".to_owned();
            let question = Question { call: id.clone(), tool: name.to_owned(), title: title.clone(), why, rule };
            let call = Call { question: Some(question), ..Call::new(id, name, &title, Some(prepared)) };
            (call, Verdict::Ask, effects)
        }
        Decision::Deny { why } => {
            refused.push(result(id, &title, tool::Output::new(Outcome::Denied, why)));
            (Call::new(id, name, &title, None), Verdict::Settled, effects)
        }
    }
}

fn result(call: &CallId, title: &str, output: tool::Output) -> Body {
    let tool::Output { outcome, mut parts, todos, job: _ } = output;
    if parts.is_empty() {
        parts.push(Part::text("There was no output."));
    }
    Body::ToolResult { call: call.clone(), title: title.to_owned(), outcome, parts, todos }
}

fn end(workspace: &mut retake_engine::Workspace, window: Window, facts: &mpsc::UnboundedSender<Fact>) {
    let began = Instant::now();
    let result = workspace.end(window, fresh::checkpoint(), Durability::Soon, &NoProgress);
    let ms = began.elapsed().as_secs_f64() * 1e3;
    facts.send(Fact::Snapshot { moment: "after", result, ms }).ok();
}
