//! Changes of what is retained: planned beside everything else, made when nothing else goes on.

use retake_engine::session::entry::{Body, Entry, EntryId};
use retake_engine::session::{ForkError, Moment};
use retake_engine::{
    Durability, Goal, HeadSeen, MadeBy, NoProgress, OperationError, Origin, Plan, RewindError, RewindRequest, Scope,
    SessionId, Workspace, WorkspacePath,
};
use tokio::sync::oneshot;

use super::publish::in_words;
use super::{Controller, refusal};
use crate::contract::{
    Change, ChangeGoal, Command, DiffOf, Outcome, Reason, Refusal, Reply, Request, Seen, WhileRunning,
};
use crate::diff::{self, FileDiff};
use crate::document::{Bytes, RewindDocument};
use crate::fresh;
use crate::tool::{Job, JobState};
use crate::turn::Activity;

impl Controller {
    /// Lists what one can go back to.
    pub(super) fn list_targets(&self, query: Option<String>, answer: oneshot::Sender<Outcome>) {
        let (session, head) = (self.writer().id(), self.writer().conversation().head());
        self.keeper.run(move |workspace| {
            let found = match query {
                Some(query) => workspace.search(session, &query),
                None => workspace.targets(session),
            };
            let outcome = match found {
                Ok(targets) => Outcome::Ok(Reply::Targets { head, targets }),
                Err(err) => Outcome::Refused(refusal(Reason::Failed, in_words(&err))),
            };
            answer.send(outcome).ok();
        });
    }

    /// Works out what a change would do; the turn may go on meanwhile.
    pub(super) fn plan(&self, change: &Change, answer: oneshot::Sender<Outcome>) {
        let (session, change) = (self.writer().id(), change.clone());
        self.keeper.run(move |workspace| {
            let planned = to_request(workspace, session, &change)
                .and_then(|request| workspace.plan(&request, &NoProgress).map_err(|err| refused(&err)));
            let document = planned.map(|plan| RewindDocument::planned(&plan));
            let outcome = document.map(|document| Reply::Change { document: Box::new(document) });
            answer.send(outcome.map_or_else(Outcome::Refused, Outcome::Ok)).ok();
        });
    }

    /// Tells line by line what a change would do, or what a turn has done.
    pub(super) fn diff(&self, of: DiffOf, answer: oneshot::Sender<Outcome>) {
        let session = self.writer().id();
        self.keeper.run(move |workspace| {
            let files = match of {
                DiffOf::Change { change } => to_request(workspace, session, &change)
                    .and_then(|request| workspace.plan(&request, &NoProgress).map_err(|err| refused(&err)))
                    .map(|plan| diff::of_plan(workspace, &plan)),
                DiffOf::Turn { prompt } => diff_of_turn(workspace, prompt),
            };
            let outcome = files.map(|files| Reply::Diff { files });
            answer.send(outcome.map_or_else(Outcome::Refused, Outcome::Ok)).ok();
        });
    }

    /// Forks the session; a turn may go on meanwhile.
    pub(super) fn fork(&self, entry: EntryId, answer: oneshot::Sender<Outcome>) {
        let (session, new) = (self.writer().id(), fresh::fork(self.made_by));
        self.keeper.run(move |workspace| {
            let outcome = match workspace.fork(session, entry, &new, &NoProgress) {
                Ok(forked) => Outcome::Ok(Reply::Forked {
                    session: forked.session.to_string(),
                    operation: forked.operation.to_string(),
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
                    Outcome::Refused(refusal(reason, in_words(&error)))
                }
            };
            answer.send(outcome).ok();
        });
    }

    /// Makes a change: now if nothing goes on, else when the turn has come to its end.
    pub(super) fn apply(&mut self, mut request: Request, answer: oneshot::Sender<Outcome>) {
        let Command::Apply { head_seen, running, .. } = &mut request.command else { return };
        let head = self.writer().conversation().head();
        // What was seen is compared with what is there now: the end of the turn adds to it.
        if head_seen.take().is_some_and(|Seen { head: seen }| seen != head) {
            let text = "the conversation has moved on since; nothing was changed";
            return drop(answer.send(Outcome::Refused(refusal(Reason::StaleHead, text))));
        }
        let running = *running;
        match self.turn.activity() {
            Activity::Idle => self.apply_now(request, answer),
            Activity::Running if running == WhileRunning::Refuse => {
                let mut refusal = refusal(Reason::Running, "nothing was changed: a turn is running");
                refusal.hint = Some("stop it first, or ask for that with `--interrupt`".to_owned());
                drop(answer.send(Outcome::Refused(refusal)));
            }
            Activity::Running | Activity::Waiting if self.waiting.is_some() => {
                let text = "nothing was changed: another change waits for the turn to end";
                drop(answer.send(Outcome::Refused(refusal(Reason::Running, text))));
            }
            Activity::Running | Activity::Waiting => {
                if let Some(refusal) = self.is_hopeless(&request) {
                    return drop(answer.send(Outcome::Refused(refusal)));
                }
                self.waiting = Some((request, answer));
                self.stop();
            }
        }
    }

    /// Why a change would be refused even if the turn were stopped for it, as far as that can be known while it runs.
    fn is_hopeless(&self, request: &Request) -> Option<Refusal> {
        let Command::Apply { change, .. } = &request.command else { return None };
        // What is about the running turn itself can be worked out only when it has ended, and what failed may not fail then.
        let is_known = |refusal: &Refusal| !matches!(refusal.reason, Reason::Running | Reason::Failed);
        self.plan_to_apply(change, self.made_by).err().filter(is_known)
    }

    /// The plan of a change that can be made as it is.
    fn plan_to_apply(&self, change: &Change, made_by: MadeBy) -> Result<Plan, Refusal> {
        let (session, change) = (self.writer().id(), change.clone());
        let plan = self.keeper.ask(move |workspace| {
            let request = RewindRequest { made_by, ..to_request(workspace, session, &change)? };
            // What tools at work have changed until now is theirs, and a plan has to know it.
            let moment = Moment { session, entry: None, origin: Origin::After };
            let taken = workspace.checkpoint_at(moment, fresh::checkpoint(), Durability::Soon, &NoProgress);
            taken.map_err(|err| refusal(Reason::Failed, in_words(&err)))?;
            workspace.plan(&request, &NoProgress).map_err(|err| refused(&err))
        })?;
        match plan.is_applicable() {
            true => Ok(plan),
            false => Err(refused(&RewindError::Refused { plan: Box::new(plan) })),
        }
    }

    /// Makes a change; nothing else goes on.
    pub(super) fn apply_now(&mut self, request: Request, answer: oneshot::Sender<Outcome>) {
        self.request = (!request.id.is_empty()).then(|| request.id.clone());
        let outcome = match request.command {
            Command::Apply { change, plan_seen, .. } => self.change(change, plan_seen),
            _ => Err(refusal(Reason::Invalid, "this is no change")),
        };
        self.request = None;
        answer.send(outcome.map_or_else(Outcome::Refused, Outcome::Ok)).ok();
    }

    fn change(&mut self, change: Change, plan_seen: Option<String>) -> Result<Reply, Refusal> {
        if let Some(seen) = plan_seen {
            self.check_seen(&change, seen)?;
        }
        let held = self.held.iter().flat_map(|held| held.parts.clone()).collect();
        self.return_held();
        let draft = self.draft.clone();
        self.end_jobs_since(&change, self.made_by)?;
        let (session, head, made_by) = (self.writer().id(), self.writer().conversation().head(), self.made_by);
        let keeper = self.keeper.clone();
        // The writer is the keeper's for as long as that takes, and nobody else's.
        let result = self.lend_writer(move |writer| {
            keeper.ask(move |workspace| {
                let mut writer = writer;
                let result = to_request(workspace, session, &change).and_then(|mut request| {
                    request.made_by = made_by;
                    request.head_seen = Some(HeadSeen(head));
                    let applied = workspace.apply_in(&mut writer, &request, None, &fresh::rewind(), &NoProgress);
                    applied.map_err(|err| refused(&err))
                });
                (writer, result)
            })
        });
        self.toolbox.recall(self.writer().conversation());
        let operation = result.as_ref().ok().and_then(|applied| applied.operation);
        self.publish_head_moved(operation.map(|id| id.to_string()));
        self.take_draft(&draft, held);
        let applied = result?;
        self.stopped = false;
        self.publish_state();
        Ok(Reply::Change { document: Box::new(RewindDocument::applied(&applied)) })
    }

    /// Refuses a change that would come to something else by now than what the user saw. Before jobs are ended for it: what they still
    /// write goes with them.
    fn check_seen(&self, change: &Change, seen: String) -> Result<(), Refusal> {
        let (session, change) = (self.writer().id(), change.clone());
        self.keeper.ask(move |workspace| {
            let request = to_request(workspace, session, &change)?;
            let plan = workspace.plan(&request, &NoProgress).map_err(|err| refused(&err))?;
            match plan.fingerprint() == seen {
                true => Ok(()),
                false => Err(refused(&RewindError::Stale { plan: Box::new(plan) })),
            }
        })
    }

    /// Ends background jobs that were started at or after the place that files go back to; none, if nothing will go back. Returns their
    /// commands.
    pub(super) fn end_jobs_since(&mut self, change: &Change, made_by: MadeBy) -> Result<Vec<String>, Refusal> {
        let goal = &change.goal;
        let jobs = self.toolbox.jobs().clone();
        let is_running = |job: &Job| matches!(job.state, JobState::Running);
        let leaves_files = matches!(
            goal,
            ChangeGoal::Rewind { scope: Scope::Conversation, .. }
                | ChangeGoal::KeepPrompt { scope: Scope::Conversation, .. }
        );
        if leaves_files || !jobs.list().iter().any(is_running) {
            return Ok(Vec::new());
        }
        let plan = self.plan_to_apply(change, made_by)?;
        let entries = self.writer().conversation().entries();
        let retained = &entries[..retained(entries, goal, &plan)];
        let is_later = |job: &Job| {
            let entry = self.job_entries.get(&job.id);
            is_running(job) && !entry.is_some_and(|entry| retained.iter().any(|one| one.id == *entry))
        };
        let mut ended = Vec::new();
        for job in self.runtime.block_on(jobs.end_if(is_later)) {
            if let Some(window) = self.job_windows.remove(&job.id) {
                self.end_window(window);
            }
            ended.push(job.command);
        }
        self.publish_jobs();
        Ok(ended)
    }
}

fn diff_of_turn(workspace: &Workspace, prompt: EntryId) -> Result<Vec<FileDiff>, Refusal> {
    let failed = |err: &dyn std::error::Error| refusal(Reason::Failed, in_words(err));
    let points = workspace.turn_points(prompt).map_err(|err| failed(&err))?;
    let points = points.ok_or_else(|| refusal(Reason::NotFound, "there is no such prompt"))?;
    // While it runs, up to the last snapshot.
    let after = if points.has_ended { points.after } else { workspace.newest().map_err(|err| failed(&err))? };
    let (Some(before), Some(after)) = (points.before, after) else {
        return Err(refusal(Reason::NotFound, "the files as they were then are not kept"));
    };
    diff::between(workspace, before.snapshot, after.snapshot).map_err(|err| failed(&err))
}

/// How many of the entries were there at the place that files go back to.
fn retained(entries: &[Entry], goal: &ChangeGoal, plan: &Plan) -> usize {
    let position = |wanted: EntryId| entries.iter().position(|one| one.id == wanted);
    if let ChangeGoal::Rewind { entry, scope: Scope::Code, .. } = goal {
        let is_prompt = |at: usize| matches!(entries[at].body, Body::Prompt { .. });
        return position(*entry).map_or(0, |at| if is_prompt(at) { at } else { at + 1 });
    }
    if let ChangeGoal::KeepPrompt { prompt, scope: Scope::Code, .. } = goal {
        return position(*prompt).map_or(0, |at| at + 1);
    }
    let Some(conversation) = &plan.conversation else { return entries.len() };
    let after = conversation.to.map_or(Some(0), |to| position(to).map(|at| at + 1));
    // On another branch: from where they part.
    after.or_else(|| position(conversation.leaves.first()?.id)).unwrap_or(entries.len())
}

/// What a change asks the engine for.
fn to_request(workspace: &Workspace, session: SessionId, change: &Change) -> Result<RewindRequest, Refusal> {
    let not_found = |err: &dyn std::error::Error| refusal(Reason::NotFound, in_words(err));
    let goal = match &change.goal {
        ChangeGoal::Rewind { entry, scope, files, discard } => {
            Goal::Entry { session, entry: *entry, scope: *scope, files: *files, discard: *discard }
        }
        ChangeGoal::KeepPrompt { prompt, scope, files } => {
            Goal::AfterPrompt { session, prompt: *prompt, scope: *scope, files: *files }
        }
        ChangeGoal::Checkpoint { checkpoint, files } => {
            let checkpoint = workspace.resolve(checkpoint).map_err(|err| not_found(&err))?.id;
            match files {
                retake_engine::Files::Selective => Goal::Selective { session, checkpoint },
                retake_engine::Files::Exact => Goal::Exact { checkpoint },
            }
        }
        ChangeGoal::Undo { operation: None } => Goal::Undo { operation: None, session: Some(session) },
        ChangeGoal::Undo { operation: Some(text) } => {
            let operation = workspace.resolve_operation(text).map_err(|err| not_found(&err))?;
            if operation.session != Some(session) {
                let text = format!("operation {} is not one of this session", operation.id.short());
                return Err(refusal(Reason::NotFound, text));
            }
            Goal::Undo { operation: Some(operation.id), session: Some(session) }
        }
        ChangeGoal::Redo => Goal::Redo { session: Some(session) },
    };
    let path = |bytes: &Bytes| -> Result<WorkspacePath, Refusal> {
        let bytes = bytes.decode().ok_or_else(|| refusal(Reason::Invalid, "a path is not valid base64"))?;
        WorkspacePath::parse(&bytes).map_err(|err| refusal(Reason::Invalid, err.to_string()))
    };
    let mut request = RewindRequest::new(goal);
    request.paths = change.paths.iter().map(path).collect::<Result<_, _>>()?;
    request.on_conflict = change.on_conflict;
    let choices = change.choices.iter().map(|(bytes, choice)| Ok((path(bytes)?, *choice)));
    request.choices = choices.collect::<Result<_, Refusal>>()?;
    request.across_branches = change.across_branches;
    Ok(request)
}

/// An error of the engine as clients are told it.
pub(super) fn refused(error: &RewindError) -> Refusal {
    let reason = match error {
        RewindError::Refused { .. }
        | RewindError::ForkInUse { .. }
        | RewindError::Pending { .. }
        | RewindError::ChangedSinceCrash { .. } => Reason::Conflicts,
        RewindError::Stale { .. } => Reason::StalePlan,
        RewindError::StaleHead => Reason::StaleHead,
        RewindError::InUse { .. } => Reason::InUse,
        RewindError::UnknownEntry { .. } | RewindError::Gone | RewindError::FilesGone { .. } => Reason::NotFound,
        RewindError::NotATarget { .. } => Reason::Invalid,
        RewindError::Operation(error) => match error {
            OperationError::NothingToUndo | OperationError::NothingToRedo => Reason::Nothing,
            OperationError::Running { .. } | OperationError::NotFinished { .. } => Reason::Running,
            OperationError::Unknown { .. } | OperationError::Ambiguous { .. } => Reason::NotFound,
            OperationError::AlreadyUndone { .. }
            | OperationError::NotReversible { .. }
            | OperationError::WithinTurn { .. }
            | OperationError::NewestGone { .. }
            | OperationError::NewerInSession { .. } => Reason::Invalid,
            OperationError::Store(_) => Reason::Failed,
        },
        RewindError::SessionNotOpen { .. }
        | RewindError::RolledBack { .. }
        | RewindError::Partial { .. }
        | RewindError::NotRecorded { .. }
        | RewindError::LeftOver { .. }
        | RewindError::DamagedTarget { .. }
        | RewindError::Unfinished { .. }
        | RewindError::Safety(_)
        | RewindError::Store(_) => Reason::Failed,
    };
    let document = RewindDocument::failed(error).map(Box::new);
    Refusal { reason, message: in_words(error), hint: None, document }
}
