//! Changes of what is retained: planned beside everything else, made when nothing else goes on.

use retake_engine::Durability;
use retake_engine::checkpoint::Origin;
use retake_engine::id::EntryId;
use retake_engine::operation::MadeBy;
use retake_engine::progress::NoProgress;
use retake_engine::rewind::{Goal, HeadSeen, Plan, RewindError, RewindRequest, with_any_head};
use retake_engine::session::Scope;
use retake_engine::session::entry::{Body, Entry};
use retake_engine::session::{ForkError, Moment, PlannedConversation};
use retake_engine::window::WindowId;
use tokio::sync::oneshot;

use super::publish::in_words;
use super::{Controller, WantedChange, refusal};
use crate::contract::{
    Change, ChangeGoal, OperationRef, Reason, Refusal, Reply, RequestOutcome, SeenHead, WhileRunning,
};
use crate::ids;
pub(super) use crate::query::{refused, to_request};
use crate::rewind_document::{Bytes, RewindDocument};
use crate::tool::{Job, JobState};
use crate::turn::Activity;

impl Controller {
    /// Forks the session; a turn may go on meanwhile.
    pub(super) fn fork(&self, entry: EntryId, answer: oneshot::Sender<RequestOutcome>) {
        let (session, new) = (self.writer().id(), ids::fork(self.made_by));
        self.workspace_thread.run(move |workspace| {
            let outcome = match workspace.sessions_mut().fork(session, entry, &new, &NoProgress) {
                Ok(forked) => RequestOutcome::Ok(Reply::Forked {
                    session: forked.session.into(),
                    operation: forked.operation.into(),
                    draft: forked.draft,
                    differing: forked.differing.iter().map(|path| Bytes::new(path.as_bytes())).collect(),
                }),
                Err(error) => {
                    let reason = match error {
                        ForkError::UnknownEntry { .. } => Reason::NotFound,
                        ForkError::NotATarget { .. } => Reason::Invalid,
                        ForkError::NotSettled { .. } => Reason::Running,
                        _ => Reason::Failed,
                    };
                    RequestOutcome::Refused(refusal(reason, in_words(&error)))
                }
            };
            answer.send(outcome).ok();
        });
    }

    /// Makes a change: now if nothing goes on, else when the turn has come to its end.
    pub(super) fn apply(
        &mut self,
        mut wanted: WantedChange,
        head_seen: Option<SeenHead>,
        running: WhileRunning,
        answer: oneshot::Sender<RequestOutcome>,
    ) {
        let head = self.writer().conversation().head();
        // What was seen is compared with what is there now: the end of the turn adds to it.
        if head_seen.is_some_and(|SeenHead { head: seen }| seen != head) {
            let text = "the conversation has moved on since; nothing was changed";
            return drop(answer.send(RequestOutcome::Refused(refusal(Reason::StaleHead, text))));
        }
        if self.turn.activity() != Activity::Idle {
            wanted.plan_seen = wanted.plan_seen.map(|seen| with_any_head(&seen));
        }
        match self.turn.activity() {
            Activity::Idle => self.apply_now(wanted, answer),
            Activity::Running if running == WhileRunning::Refuse => {
                let mut refusal = refusal(Reason::Running, "nothing was changed: a turn is running");
                refusal.hint = Some("stop it first".to_owned());
                drop(answer.send(RequestOutcome::Refused(refusal)));
            }
            Activity::Running | Activity::Waiting if self.waiting.is_some() => {
                let text = "nothing was changed: another change waits for the turn to end";
                drop(answer.send(RequestOutcome::Refused(refusal(Reason::Running, text))));
            }
            Activity::Running | Activity::Waiting => {
                if let Some(refusal) = self.is_hopeless(&wanted.change) {
                    return drop(answer.send(RequestOutcome::Refused(refusal)));
                }
                self.waiting = Some((wanted, answer));
                self.stop();
            }
        }
    }

    /// Why a change would be refused even if the turn were stopped for it, as far as that can be known while it runs.
    fn is_hopeless(&self, change: &Change) -> Option<Refusal> {
        // What is about the running turn itself can be worked out only when it has ended, and what failed may not fail then.
        let is_known = |refusal: &Refusal| !matches!(refusal.reason, Reason::Running | Reason::Failed);
        self.plan_to_apply(change, self.made_by).err().filter(is_known)
    }

    /// The plan of a change that can be made as it is, and the engine's goal.
    fn plan_to_apply(&self, change: &Change, made_by: MadeBy) -> Result<(Goal, Plan), Refusal> {
        let (session, change) = (self.writer().id(), change.clone());
        let (goal, plan) = self.workspace_thread.ask(move |workspace| {
            let request = RewindRequest { made_by, ..to_request(workspace, session, &change)? };
            // What tools at work have changed until now is theirs, and a plan has to know it.
            let moment = Moment { session, entry: None, origin: Origin::After };
            let taken = workspace.checkpoints_mut().take_at(moment, ids::checkpoint(), Durability::Soon, &NoProgress);
            taken.map_err(|err| refusal(Reason::Failed, in_words(&err)))?;
            let plan = workspace.rewinds().plan(&request, &NoProgress).map_err(|err| refused(&err))?;
            Ok::<_, Refusal>((request.goal, plan))
        })?;
        match plan.is_applicable() {
            true => Ok((goal, plan)),
            false => Err(refused(&RewindError::Refused { plan: Box::new(plan) })),
        }
    }

    /// Makes a change; nothing else goes on.
    pub(super) fn apply_now(&mut self, wanted: WantedChange, answer: oneshot::Sender<RequestOutcome>) {
        self.publisher.request = wanted.request;
        let outcome = self.change(wanted.change, wanted.plan_seen);
        self.publisher.request = None;
        answer.send(outcome.map_or_else(RequestOutcome::Refused, RequestOutcome::Ok)).ok();
    }

    fn change(&mut self, change: Change, plan_seen: Option<String>) -> Result<Reply, Refusal> {
        let seen = plan_seen.map(|seen| self.check_seen(&change, seen)).transpose()?;
        let held = self.held.iter().flat_map(|held| held.parts.clone()).collect();
        self.return_held();
        let draft = self.draft.clone();
        let EndedJobs { seen, .. } = self.end_jobs_since(&change, seen, self.made_by)?;
        let (session, head, made_by) = (self.writer().id(), self.writer().conversation().head(), self.made_by);
        let workspace_thread = self.workspace_thread.clone();
        // The writer is the workspace thread's for as long as that takes, and nobody else's.
        let result = self.lend_writer(move |writer| {
            workspace_thread.ask(move |workspace| {
                let mut writer = writer;
                let result = to_request(workspace, session, &change).and_then(|mut request| {
                    request.made_by = made_by;
                    request.head_seen = Some(HeadSeen(head));
                    let applied = workspace.rewinds_mut().apply_in(
                        &mut writer,
                        &request,
                        seen.as_deref(),
                        &ids::rewind(),
                        &NoProgress,
                    );
                    applied.map_err(|err| refused(&err))
                });
                (writer, result)
            })
        });
        self.toolbox.recall(self.writer().conversation());
        let operation = result.as_ref().ok().and_then(|applied| applied.operation);
        self.publish_head_moved(operation.map(OperationRef::from));
        self.take_draft(&draft, held);
        let applied = result?;
        self.stopped = false;
        self.publish_state();
        Ok(Reply::Change { document: Box::new(RewindDocument::applied(&applied)) })
    }

    /// Refuses a change whose plan is already another than the one that the user saw, before prompts that are held go back to the draft
    /// and jobs are ended. The engine compares again under its lock. A rewind to a prompt that another client has rewound already, so that
    /// nothing is left of it to take back, is refused too.
    fn check_seen(&self, change: &Change, fingerprint: String) -> Result<Sighted, Refusal> {
        let (session, asked) = (self.writer().id(), change.clone());
        let seen = self.workspace_thread.ask(move |workspace| {
            let request = to_request(workspace, session, &asked)?;
            let plan = workspace.rewinds().plan(&request, &NoProgress).map_err(|err| refused(&err))?;
            match plan.is_as_seen(&fingerprint) {
                true => Ok(Sighted { fingerprint, plan }),
                false => Err(refused(&RewindError::Stale { plan: Box::new(plan) })),
            }
        })?;
        match self.is_rewound(change, &seen.plan) {
            true => {
                let text = "nothing was changed: the prompt is not in the conversation any more";
                Err(refusal(Reason::Nothing, text))
            }
            false => Ok(seen),
        }
    }

    /// Whether the prompt that a change rewinds to has left the conversation, and `plan` changes nothing.
    fn is_rewound(&self, change: &Change, plan: &Plan) -> bool {
        let ChangeGoal::Rewind { entry, .. } = &change.goal else { return false };
        let is_there = self.writer().conversation().entries().iter().any(|one| one.id == *entry);
        let stays = |planned: &PlannedConversation| planned.leaves.is_empty() && planned.returns.is_empty();
        !is_there && plan.paths.is_empty() && plan.conversation.as_ref().is_some_and(stays)
    }

    /// Ends background jobs that were started at or after the place that files go back to; none, if nothing will go back. Their last
    /// writes are no reason to refuse a plan that was `seen`; a save of a person is.
    pub(super) fn end_jobs_since(
        &mut self,
        change: &Change,
        seen: Option<Sighted>,
        made_by: MadeBy,
    ) -> Result<EndedJobs, Refusal> {
        let jobs = self.toolbox.jobs().clone();
        let is_running = |job: &Job| matches!(job.state, JobState::Running);
        let leaves_files = matches!(
            change.goal,
            ChangeGoal::Rewind { scope: Scope::Conversation, .. }
                | ChangeGoal::KeepPrompt { scope: Scope::Conversation, .. }
        );
        if leaves_files || !jobs.list().iter().any(is_running) {
            return Ok(EndedJobs { commands: Vec::new(), seen: seen.map(|seen| seen.fingerprint) });
        }
        let (goal, plan) = self.plan_to_apply(change, made_by)?;
        let entries = self.writer().conversation().entries();
        let retained = &entries[..retained(entries, &goal, &plan)];
        let is_later = |job: &Job| {
            let entry = self.job_entries.get(&job.id);
            is_running(job) && !entry.is_some_and(|entry| retained.iter().any(|one| one.id == *entry))
        };
        let (mut commands, mut windows) = (Vec::new(), Vec::new());
        for job in self.runtime.block_on(jobs.end_if(is_later)) {
            if let Some(window) = self.job_windows.remove(&job.id) {
                windows.push(window.id());
                self.end_window(window);
            }
            commands.push(job.command);
        }
        self.publish_jobs();
        let seen = seen.map(|seen| self.seen_after(change, made_by, seen.plan, windows)).transpose()?;
        Ok(EndedJobs { commands, seen })
    }

    /// The fingerprint of the plan now that the jobs of `windows` have ended, if it differs from `before` only in what they wrote last.
    fn seen_after(
        &self,
        change: &Change,
        made_by: MadeBy,
        before: Plan,
        windows: Vec<WindowId>,
    ) -> Result<String, Refusal> {
        let (session, change) = (self.writer().id(), change.clone());
        self.workspace_thread.ask(move |workspace| {
            let request = RewindRequest { made_by, ..to_request(workspace, session, &change)? };
            let plan = workspace.rewinds().plan(&request, &NoProgress).map_err(|err| refused(&err))?;
            match workspace.rewinds().differs_by_last_writes(&before, &plan, &windows) {
                Ok(true) => Ok(plan.fingerprint()),
                Ok(false) => Err(refused(&RewindError::Stale { plan: Box::new(plan) })),
                Err(error) => Err(refusal(Reason::Failed, in_words(&error))),
            }
        })
    }
}

/// The plan that the user saw, as it was worked out again.
pub(super) struct Sighted {
    fingerprint: String,
    plan: Plan,
}

/// What ending jobs came to.
pub(super) struct EndedJobs {
    /// Their commands.
    pub(super) commands: Vec<String>,
    /// The fingerprint of the plan that was seen, with what they wrote last.
    seen: Option<String>,
}

/// How many of the entries were there at the place that files go back to.
fn retained(entries: &[Entry], goal: &Goal, plan: &Plan) -> usize {
    let position = |wanted: EntryId| entries.iter().position(|one| one.id == wanted);
    if let Goal::Entry { entry, scope: Scope::Code, .. } = goal {
        let is_prompt = |at: usize| matches!(entries[at].body, Body::Prompt { .. });
        return position(*entry).map_or(0, |at| if is_prompt(at) { at } else { at + 1 });
    }
    if let Goal::AfterPrompt { prompt, scope: Scope::Code, .. } = goal {
        return position(*prompt).map_or(0, |at| at + 1);
    }
    let Some(conversation) = &plan.conversation else { return entries.len() };
    let after = conversation.to.map_or(Some(0), |to| position(to).map(|at| at + 1));
    // On another branch: from where they part.
    after.or_else(|| position(conversation.leaves.first()?.id)).unwrap_or(entries.len())
}
