//! Tool calls: asked about, run between two snapshots, answered.
//!
//! A call that may change something waits for its window: the snapshot before it. What it changed is found by the snapshot after it. A
//! background job keeps its window until it ends.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use retake_engine::checkpoint::{CheckpointError, Origin};
use retake_engine::progress::NoProgress;
use retake_engine::session::entry::{Block, Body, CallId, Outcome, Part};
use retake_engine::session::{Moment, NewEntry};
use retake_engine::window::{FileTime, NewWindow, PartOf, Reach, Window};
use retake_engine::{Durability, Workspace};
use tokio::sync::{mpsc, watch};

use super::publish::{in_words, rule_warnings, snapshot};
use super::{Controller, Terms, Unprotected, WorkerFact, refusal};
use crate::contract::{EventKind, PermissionAnswer, Question, Reason, Refusal, Reply, Rule, SnapshotMoment};
use crate::diff::FileDiff;
use crate::permission::{self, Decision, Mode, Policy};
use crate::tool::{self, Access, CallContext, JobEnded, JobId, JobState, Prepared, Preview};
use crate::turn::{self, Activity, CallNumber, CallPermission, Effects};
use crate::{ids, limits};

/// A call's window. The workspace thread puts it in, and closes it if the call is not to run after all.
type Slot = Arc<Mutex<Option<Window>>>;

/// How a question about a call ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Allowed,
    /// Denied, or settled without an answer.
    NotAllowed,
}

/// A call of the model's last answer.
pub(super) struct PendingCall {
    pub(super) id: CallId,
    tool: String,
    title: String,
    prepared: Option<Prepared>,
    question: Option<Question>,
    /// What is asked, or was allowed, is to run it without a snapshot.
    unprotected: bool,
    window: Slot,
    interrupted: watch::Sender<bool>,
    is_settled: bool,
}

impl PendingCall {
    /// Tells it to end.
    pub(super) fn cancel(&self) {
        self.interrupted.send_replace(true);
    }

    /// The changes that it would write, or the error that it is bound to end with.
    fn preview(&self) -> Result<Vec<FileDiff>, tool::Output> {
        let preview = self.prepared.as_ref().and_then(|prepared| prepared.preview.as_ref());
        preview.map_or_else(|| Ok(Vec::new()), Preview::diffs)
    }
}

impl Controller {
    /// Takes the calls of an answer in.
    pub(super) fn begin_calls(&mut self, blocks: &[Block]) {
        let mut verdicts = Vec::new();
        let mut settled = Vec::new();
        let mut calls = Vec::new();
        let policy = self.policy_of_turn();
        for block in blocks {
            let Block::Call { id, name, arguments } = block else { continue };
            if let Some(asked) = self.toolbox.exploring(name, arguments) {
                let (title, output) = self.explore(&policy, name, asked, &settled);
                settled.push(result(id, &title, output));
                calls.push(PendingCall::new(id, name, &title, None));
                verdicts.push((CallPermission::Settled, Effects::Reads));
                continue;
            }
            let (call, verdict, effects) = match self.toolbox.prepare(name, arguments) {
                Ok(prepared) => take_in(&policy, id, name, prepared, &mut settled),
                Err(output) => {
                    settled.push(result(id, name, output));
                    (PendingCall::new(id, name, name, None), CallPermission::Settled, Effects::Reads)
                }
            };
            verdicts.push((verdict, effects));
            calls.push(call);
        }
        if let Some(current) = &mut self.current {
            current.calls = calls;
        }
        if !settled.is_empty() {
            self.append(settled);
        }
        self.step(turn::Fact::Answered(verdicts));
    }

    /// The rules in force in this turn.
    fn policy_of_turn(&self) -> Policy {
        let mode = self.current.as_ref().map_or(self.policy.mode, |current| current.terms.mode);
        let policy = Policy { mode, ..self.policy.clone() };
        policy.with_approvals(self.writer().conversation().entries())
    }

    fn call_mut(&mut self, number: CallNumber) -> Option<&mut PendingCall> {
        self.current.as_mut()?.calls.get_mut(number)
    }

    /// Asks the user about a call. One that is bound to fail gets its error instead.
    pub(super) fn ask_permission(&mut self, number: CallNumber) {
        let is_first = self.is_first_open(number);
        let Some(call) = self.call_mut(number) else { return };
        let Some(mut question) = call.question.clone() else { return };
        question.diffs = match call.preview() {
            Err(output) if is_first && !call.unprotected => {
                call.question = None;
                return self.settle_call(number, output);
            }
            // What is asked about before it may yet make it work.
            diffs => diffs.unwrap_or_default(),
        };
        self.publish(EventKind::PermissionAsked { question });
    }

    /// Whether all calls before this one have their results.
    fn is_first_open(&self, number: CallNumber) -> bool {
        let calls = self.current.iter().flat_map(|current| &current.calls);
        calls.into_iter().take(number).all(|call| call.is_settled)
    }

    /// Withdraws the next question if its call is bound to fail after what the calls before it did.
    fn withdraw_question(&mut self) {
        if self.turn.activity() != Activity::Waiting {
            return;
        }
        let Some(current) = &self.current else { return };
        let Some(number) = current.calls.iter().position(|call| !call.is_settled) else { return };
        let call = &current.calls[number];
        if let Err(output) = call.preview()
            && call.question.is_some()
            && !call.unprotected
        {
            self.settle_call(number, output);
        }
    }

    /// Takes in whether a call may run.
    pub(super) fn answer(&mut self, call: &CallId, answer: PermissionAnswer) -> Result<Reply, Refusal> {
        let asked = self.current.as_ref().and_then(|current| {
            let is_asked = |one: &super::PendingCall| one.id == *call && one.question.is_some() && !one.is_settled;
            current.calls.iter().position(is_asked)
        });
        let Some(number) = asked else { return Err(refusal(Reason::NotFound, "nobody is asked about this call")) };
        if let PermissionAnswer::AllowAlways { rule } = &answer {
            let checked = permission::Rule::new(&rule.tool, rule.prefix.as_deref());
            checked.map_err(|err| refusal(Reason::Invalid, err.to_string()))?;
        }
        let is_about_protection = self.call_mut(number).is_some_and(|call| call.unprotected);
        let verdict = match answer {
            PermissionAnswer::Allow | PermissionAnswer::AllowAlways { .. } => Verdict::Allowed,
            PermissionAnswer::Deny { .. } => Verdict::NotAllowed,
        };
        self.settle_question(number, verdict);
        match answer {
            PermissionAnswer::AllowAlways { rule: Rule { tool, prefix } } if !is_about_protection => {
                self.append(vec![Body::Approved { tool, prefix }]);
                self.step(turn::Fact::Allowed(number));
                self.allow_others();
            }
            PermissionAnswer::Allow | PermissionAnswer::AllowAlways { .. } => self.step(turn::Fact::Allowed(number)),
            PermissionAnswer::Deny { why } => {
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

    /// Publishes the verdict on a call, if a question about it is open.
    fn settle_question(&mut self, number: CallNumber, verdict: Verdict) {
        let Some(question) = self.call_mut(number).and_then(|call| call.question.take()) else { return };
        let allowed = verdict == Verdict::Allowed;
        self.publish(EventKind::PermissionSettled { call: question.call, allowed });
    }

    /// Lets calls run that are asked about and that the user has allowed with another one.
    fn allow_others(&mut self) {
        let policy = self.policy_of_turn();
        let is_allowed = |call: &PendingCall| {
            let prepared = call.prepared.as_ref().filter(|_| call.question.is_some() && !call.unprotected);
            prepared
                .is_some_and(|prepared| permission::decide(&policy, &call.tool, &prepared.access) == Decision::Allow)
        };
        let calls = self.current.iter().flat_map(|current| current.calls.iter().enumerate());
        let allowed: Vec<CallNumber> = calls.filter(|(_, call)| is_allowed(call)).map(|(number, _)| number).collect();
        for number in allowed {
            self.settle_question(number, Verdict::Allowed);
            self.step(turn::Fact::Allowed(number));
        }
    }

    /// Runs a call: at once if it only reads, else when the snapshot before it is complete.
    pub(super) fn run_call(&mut self, number: CallNumber) {
        let session = self.writer().id();
        let Some(current) = &self.current else { return };
        let (turn_id, operation) = (current.prompt.to_string(), current.operation);
        let Some(call) = self.call_mut(number) else { return };
        let Some(prepared) = &call.prepared else { return };
        let (reach, declared) = match &prepared.access {
            Access::Reads => return self.start_call(number),
            Access::Writes { paths } => (Reach::Declared, paths.clone()),
            Access::Runs { .. } | Access::Unknown => (Reach::Everything, Vec::new()),
        };
        let tool = call.title.clone();
        let window =
            NewWindow { session, turn: Some(turn_id), tool, reach, declared, operation: PartOf::Turn(operation) };
        let slot = Arc::clone(&call.window);
        let (facts, turn, request) = (self.facts.clone(), self.number, self.publisher.request.clone());
        self.workspace_thread.run(move |workspace| {
            let began = Instant::now();
            let result = workspace.windows().begin(window, ids::checkpoint(), &NoProgress);
            let kind = snapshot(SnapshotMoment::Before, began, result.as_ref().map(|began| &began.before));
            facts.send(WorkerFact::Told { request, kind }).ok();
            let result = result.map(|began| put(&slot, began.window));
            facts.send(WorkerFact::WindowOpened { turn, call: number, result }).ok();
        });
    }

    pub(super) fn window_opened(&mut self, turn: u64, number: CallNumber, result: Result<(), CheckpointError>) {
        let is_wanted = turn == self.number && self.call_mut(number).is_some_and(|call| !call.is_settled);
        match result {
            // It was stopped meanwhile.
            _ if !is_wanted => {}
            Ok(()) => self.start_call(number),
            Err(error) => self.without_protection(number, &error),
        }
    }

    /// The snapshot before a call could not be taken.
    fn without_protection(&mut self, number: CallNumber, error: &CheckpointError) {
        let why = in_words(error);
        let Some(Terms { mode, unprotected }) = self.current.as_ref().map(|current| current.terms) else { return };
        let Some(call) = self.call_mut(number) else { return };
        let is_allowed = call.unprotected;
        match (unprotected, mode) {
            _ if is_allowed => self.start_call(number),
            (Unprotected::Allow, _) => {
                self.publish(EventKind::Warning { text: format!("not protected by a snapshot: {why}") });
                self.start_call(number);
            }
            (Unprotected::Ask, Mode::Interactive | Mode::Attended(_)) => {
                let Some(call) = self.call_mut(number) else { return };
                call.unprotected = true;
                call.question = Some(Question {
                    call: call.id.clone(),
                    tool: call.tool.clone(),
                    title: call.title.clone(),
                    detail: call.prepared.as_ref().and_then(|prepared| detail(&prepared.access)),
                    diffs: Vec::new(),
                    why: format!("what this changes could not be taken back: {why}"),
                    rule: None,
                });
                self.ask_permission(number);
                self.step(turn::Fact::Asked(number));
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

    fn start_call(&mut self, number: CallNumber) {
        let (facts, turn, root) = (self.facts.clone(), self.number, self.root.clone());
        let Some(tag) = self.current.as_ref().map(|current| current.prompt.to_string()) else { return };
        let Some(call) = self.call_mut(number) else { return };
        let Some(prepared) = call.prepared.take() else { return };
        let interrupted = call.interrupted.subscribe();
        let started = EventKind::CallStarted { call: call.id.clone(), title: call.title.clone() };
        let (output, mut lines) = mpsc::channel::<String>(limits::INBOX);
        self.runtime.spawn(async move {
            let told = facts.clone();
            let tell = async move {
                while let Some(text) = lines.recv().await {
                    told.send(WorkerFact::CallOutput { turn, call: number, text }).ok();
                }
            };
            let run = (prepared.run)(CallContext { root, output, interrupted, tag });
            let (output, ()) = tokio::join!(run, tell);
            facts.send(WorkerFact::CallReturned { turn, call: number, output, at: FileTime::now() }).ok();
        });
        self.publish(started);
    }

    pub(super) fn call_output(&mut self, number: CallNumber, text: String) {
        if let Some(call) = self.call_id(number) {
            self.publish(EventKind::CallOutput { call, text });
        }
    }

    /// A call has come to its end: what it changed until `at` is found out before anybody is told.
    pub(super) fn call_returned(&mut self, turn: u64, number: CallNumber, output: tool::Output, at: FileTime) {
        if turn != self.number {
            return;
        }
        let Some(window) = self.call_mut(number).and_then(|call| take(&call.window)) else {
            return self.settle_call(number, output);
        };
        let (facts, request) = (self.facts.clone(), self.publisher.request.clone());
        if let Some(job) = output.job {
            self.job_windows.insert(job, window);
            self.snapshot(
                SnapshotMoment::After,
                Moment { session: self.writer().id(), entry: None, origin: Origin::After },
            );
            self.workspace_thread
                .run(move |_| drop(facts.send(WorkerFact::WindowClosed { turn, call: number, output })));
        } else {
            window.stop(at);
            self.workspace_thread.run(move |workspace| {
                end(workspace, window, request.as_deref(), &facts);
                facts.send(WorkerFact::WindowClosed { turn, call: number, output }).ok();
            });
        }
    }

    /// Gives a call its result.
    pub(super) fn settle_call(&mut self, number: CallNumber, output: tool::Output) {
        let Some(call) = self.call_mut(number).filter(|call| !call.is_settled) else { return };
        call.is_settled = true;
        let (id, title, job) = (call.id.clone(), call.title.clone(), output.job);
        self.settle_question(number, Verdict::NotAllowed);
        self.append(vec![result(&id, &title, output)]);
        if let Some((job, entry)) = job.zip(self.writer().conversation().head()) {
            self.job_entries.insert(job, entry);
        }
        self.publish_jobs();
        self.step(turn::Fact::Settled(number));
        self.withdraw_question();
    }

    /// Tells a call to end. One that waits for the snapshot before it has not begun, and never will.
    pub(super) fn cancel_call(&mut self, number: CallNumber) {
        let Some(call) = self.call_mut(number) else { return };
        call.cancel();
        if call.prepared.is_some() {
            self.release_window(number);
            self.settle_call(number, tool::Output::interrupted("The user stopped this before it began."));
        }
    }

    /// Gives a call that never ran, or does not end, its result; what it changes from now on is found by the next snapshot.
    pub(super) fn abandon_call(&mut self, number: CallNumber) {
        let Some(call) = self.call_mut(number) else { return };
        call.cancel();
        let text =
            if call.prepared.is_some() { "The user stopped this before it began." } else { "The user stopped this." };
        self.release_window(number);
        self.settle_call(number, tool::Output::interrupted(text));
    }

    /// Has the workspace thread close a call's window once it is open, if it is ever going to be.
    fn release_window(&mut self, number: CallNumber) {
        let Some(slot) = self.call_mut(number).map(|call| Arc::clone(&call.window)) else { return };
        let (facts, request) = (self.facts.clone(), self.publisher.request.clone());
        self.workspace_thread.run(move |workspace| {
            if let Some(window) = take(&slot) {
                end(workspace, window, request.as_deref(), &facts);
            }
        });
    }

    /// Has a window closed by a snapshot.
    pub(super) fn end_window(&self, window: Window) {
        let (facts, request) = (self.facts.clone(), self.publisher.request.clone());
        self.workspace_thread.run(move |workspace| end(workspace, window, request.as_deref(), &facts));
    }

    pub(super) fn job_ended(&mut self, ended: &JobEnded) {
        if let Some(window) = self.job_windows.remove(&ended.id) {
            window.stop(FileTime::now());
            self.end_window(window);
        }
        self.publish_jobs();
    }

    /// Tells people and the model of the jobs that end with the session.
    pub(super) fn tell_of_jobs_left(&mut self) {
        let jobs = self.toolbox.jobs().list().into_iter().filter(|job| job.state == JobState::Running);
        let names: Vec<String> = jobs.map(|job| format!("`{}`", tool::in_one_line(&job.command))).collect();
        for name in &names {
            self.publish(EventKind::Warning { text: format!("{name} was ended with the session") });
        }
        // It is part of that turn, so that undoing the turn takes it back too. Anywhere else it would be something said since, and keep
        // the conversation from going back.
        let head = self.writer().conversation().head();
        let Some((turn, _)) = self.last_turn.filter(|(_, left)| !names.is_empty() && Some(*left) == head) else {
            return;
        };
        let text = format!("These background jobs were ended when the session was closed: {}.", names.join(", "));
        let note = NewEntry { id: ids::entry(), at: ids::now(), body: Body::Note { about: Vec::new(), text } };
        match self.writer_mut().end_turn(turn, note) {
            Ok(_) => self.publish_appended(),
            Err(err) => self.publish(EventKind::Warning { text: in_words(&err) }),
        }
    }

    pub(super) fn end_job(&mut self, job: &str) -> Result<Reply, Refusal> {
        let jobs = self.toolbox.jobs().clone();
        let found: Option<JobId> = jobs.list().into_iter().find(|one| one.id.to_string() == job).map(|job| job.id);
        let Some(id) = found else { return Err(refusal(Reason::NotFound, format!("there is no job `{job}`"))) };
        self.runtime.spawn(async move { drop(jobs.end(id).await) });
        Ok(Reply::Done)
    }
}

impl PendingCall {
    fn new(id: &CallId, tool: &str, title: &str, prepared: Option<Prepared>) -> Self {
        Self {
            id: id.clone(),
            tool: tool.to_owned(),
            title: title.to_owned(),
            is_settled: prepared.is_none(),
            prepared,
            question: None,
            unprotected: false,
            window: Slot::default(),
            interrupted: watch::Sender::new(false),
        }
    }
}

/// Decides about a call that makes sense.
fn take_in(
    policy: &Policy,
    id: &CallId,
    name: &str,
    prepared: Prepared,
    refused: &mut Vec<Body>,
) -> (PendingCall, CallPermission, Effects) {
    let effects = if prepared.access == Access::Reads { Effects::Reads } else { Effects::Mutates };
    let title = prepared.title.clone();
    match permission::decide(policy, name, &prepared.access) {
        Decision::Allow => (PendingCall::new(id, name, &title, Some(prepared)), CallPermission::Allowed, effects),
        Decision::Ask { why, suggested } => {
            let rule = suggested.map(|rule| Rule { tool: rule.tool().to_owned(), prefix: rule.prefix_text() });
            let detail = detail(&prepared.access);
            let question = Question {
                call: id.clone(),
                tool: name.to_owned(),
                title: title.clone(),
                detail,
                diffs: Vec::new(),
                why,
                rule,
            };
            let call = PendingCall { question: Some(question), ..PendingCall::new(id, name, &title, Some(prepared)) };
            (call, CallPermission::Ask, effects)
        }
        Decision::Deny { why } => {
            refused.push(result(id, &title, tool::Output::new(Outcome::Denied, why)));
            (PendingCall::new(id, name, &title, None), CallPermission::Settled, effects)
        }
    }
}

/// What a title may not have room for.
fn detail(access: &Access) -> Option<String> {
    match access {
        Access::Runs { command } => Some(command.clone()),
        Access::Reads | Access::Writes { .. } | Access::Unknown => None,
    }
}

fn result(call: &CallId, title: &str, output: tool::Output) -> Body {
    let tool::Output { outcome, mut parts, todos, details, job: _ } = output;
    if parts.is_empty() {
        parts.push(Part::text("There was no output."));
    }
    Body::ToolResult { call: call.clone(), title: title.to_owned(), outcome, parts, todos, details }
}

fn put(slot: &Slot, window: Window) {
    *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(window);
}

fn take(slot: &Slot) -> Option<Window> {
    slot.lock().unwrap_or_else(PoisonError::into_inner).take()
}

fn end(workspace: &mut Workspace, window: Window, request: Option<&str>, facts: &mpsc::UnboundedSender<WorkerFact>) {
    let began = Instant::now();
    let result = workspace.windows().end(window, ids::checkpoint(), Durability::Soon, &NoProgress);
    let warnings = rule_warnings(workspace, result.as_ref().ok());
    for kind in std::iter::once(snapshot(SnapshotMoment::After, began, result.as_ref())).chain(warnings) {
        facts.send(WorkerFact::Told { request: request.map(str::to_owned), kind }).ok();
    }
}
