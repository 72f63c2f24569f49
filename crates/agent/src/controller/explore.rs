//! The model's own checkpoints: answering its calls, and going back when all calls of its answer have their results.

use retake_engine::Workspace;
use retake_engine::operation::{MadeBy, Operation, OperationKind};
use retake_engine::progress::NoProgress;
use retake_engine::rewind::{Files, Goal, PathStatus, RewindRequest};
use retake_engine::session::NewEntry;
use retake_engine::session::entry::{Body, Details, Outcome, SummaryBy, Usage};
use retake_engine::session::{Discard, Scope, SessionWriter};

use super::Controller;
use crate::contract::{Change, ChangeGoal, EventKind, Refusal};
use crate::explore::{JobCommands, ModelCheckpoint, ModelCheckpoints, Restored, Rewind};
use crate::permission::{self, Decision, Policy};
use crate::rewind_document::Bytes;
use crate::tool::{Access, Exploring, JobState, Output};
use crate::{ids, limits};

impl Controller {
    /// The title and the result of a call of `checkpoint` or `rewind`; `settled` are results of the same answer.
    pub(super) fn explore(
        &self,
        policy: &Policy,
        name: &str,
        asked: Result<Exploring, Output>,
        settled: &[Body],
    ) -> (String, Output) {
        let asked = match asked {
            Ok(asked) => asked,
            Err(output) => return (name.to_owned(), output),
        };
        if let Some(output) = denied(policy, name, &asked) {
            return (asked.title(), output);
        }
        let beside = |is_meant: &dyn Fn(&Details) -> bool| {
            settled
                .iter()
                .any(|body| matches!(body, Body::ToolResult { details: Some(details), .. } if is_meant(details)))
        };
        let has_rewind = beside(&|details| matches!(details, Details::Rewound { .. }));
        let marks = ModelCheckpoints::of(self.writer().conversation().entries());
        let output = match &asked {
            // What is called together with a rewind is left behind.
            Exploring::Checkpoint { .. } if has_rewind => Output::failed(
                "A rewind was requested in this message, and everything in it is left behind; make the checkpoint once you have gone back.",
            ),
            Exploring::Checkpoint { name: Some(name), .. }
                if beside(
                    &|details| matches!(details, Details::Checkpoint { name: Some(other), .. } if other == name),
                ) =>
            {
                ModelCheckpoints::taken(name)
            }
            Exploring::Checkpoint { goal, name } => marks.checkpoint(goal, name.as_deref()),
            Exploring::Rewind { .. } if has_rewind => Output::failed(
                "A rewind was requested in this message already, and it is enough. Go on from its report; for another checkpoint, ask again then.",
            ),
            Exploring::Rewind { report, name, restore_files } => {
                let output = marks.rewind(report, name.as_deref(), *restore_files);
                let has_checkpoint = beside(&|details| matches!(details, Details::Checkpoint { .. }));
                if has_checkpoint && output.details.is_some() {
                    Output::failed(
                        "A checkpoint was made in this message, and going back would leave it behind; nothing was changed: ask for the rewind in a message of its own.",
                    )
                } else {
                    output
                }
            }
        };
        (asked.title(), output)
    }

    /// Goes back to the model's checkpoint, if the calls of its last answer asked for that.
    pub(super) fn go_back_if_asked(&mut self) {
        let Some(rewind) = Rewind::pending(self.writer().conversation().entries()) else { return };
        let (restored, ended) = match rewind.restore_files {
            true => self.restore_files(&rewind.mark),
            false => (Restored::NotAsked, Vec::new()),
        };
        if let Restored::Done(files) = &restored
            && !files.is_empty()
        {
            let (shown, more) = (files.len().min(limits::MAX_LISTED), files.len().saturating_sub(limits::MAX_LISTED));
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let text = format!("the model took back what it had changed: {}{more}", files[..shown].join(", "));
            self.publish(EventKind::Warning { text });
        }
        let jobs = JobCommands { ended, running: self.running_jobs() };
        let summary = summary(&rewind, self.writer(), &restored, &jobs);
        self.append(vec![summary]);
        self.toolbox.recall(self.writer().conversation());
    }

    fn running_jobs(&self) -> Vec<String> {
        let jobs = self.toolbox.jobs().list().into_iter().filter(|job| job.state == JobState::Running);
        jobs.map(|job| job.command).collect()
    }

    /// Takes the files back that the session has changed since a checkpoint of the model's. Returns which jobs it ended, too.
    fn restore_files(&mut self, mark: &ModelCheckpoint) -> (Restored, Vec<String>) {
        let goal =
            ChangeGoal::Rewind { entry: mark.entry, scope: Scope::Code, files: Files::Selective, discard: Discard::No };
        let ended = match self.end_jobs_since(&Change::new(goal), None, MadeBy::Model) {
            Ok(ended) => ended.commands,
            Err(refusal) => return (Restored::Refused(reasons(&refusal)), Vec::new()),
        };
        let (workspace_thread, mark) = (self.workspace_thread.clone(), mark.clone());
        // What tools have changed until now is in the snapshots after them, which the workspace thread takes first.
        let restored = self.lend_writer(move |writer| {
            workspace_thread.ask(move |workspace| {
                let mut writer = writer;
                let restored = restore(workspace, &mut writer, &mark);
                (writer, restored)
            })
        });
        (restored, ended)
    }
}

/// The result of a call that the rules do not allow. Nobody is asked about these.
fn denied(policy: &Policy, name: &str, asked: &Exploring) -> Option<Output> {
    let decision = match (permission::decide(policy, name, &Access::Reads), asked) {
        // Taking an edit back is an edit.
        (Decision::Allow, Exploring::Rewind { restore_files: true, .. }) => {
            permission::decide(policy, "edit_file", &Access::Writes { paths: Vec::new() })
        }
        (decision, _) => decision,
    };
    match decision {
        Decision::Allow => None,
        Decision::Deny { why } => Some(Output::new(Outcome::Denied, why)),
        Decision::Ask { .. } => Some(Output::new(
            Outcome::Denied,
            "This would change files, about which the user wants to be asked; nothing was changed. Go back without `restore_files`.",
        )),
    }
}

/// Makes the rewind that a process which died was about to make. The entry belongs to the turn that was ended for it.
pub(super) fn finish_left(
    workspace: &mut Workspace,
    writer: &mut SessionWriter,
) -> Result<(), retake_engine::session::SessionError> {
    let Some(rewind) = Rewind::left(writer.conversation().entries()) else { return Ok(()) };
    let turn = workspace
        .operations()
        .next_to_undo(Some(writer.id()))
        .ok()
        .filter(|operation| operation.kind == OperationKind::Turn);
    let Some(turn) = turn else { return Ok(()) };
    let restored = if rewind.restore_files { restore(workspace, writer, &rewind.mark) } else { Restored::NotAsked };
    // Recovery may have finished what the process was at.
    let is_ours = |operation: &Operation| {
        operation.made_by == MadeBy::Model && operation.session == Some(writer.id()) && operation.at >= turn.at
    };
    let restored = match restored {
        Restored::Done(files) if files.is_empty() && workspace.operations().all()?.iter().any(is_ours) => {
            Restored::Before
        }
        restored => restored,
    };
    let body = summary(&rewind, writer, &restored, &JobCommands::default());
    let new = NewEntry { id: ids::entry(), at: ids::now(), body };
    writer.end_turn(turn.id, new).map(drop)
}

fn summary(rewind: &Rewind, writer: &SessionWriter, restored: &Restored, jobs: &JobCommands) -> Body {
    let (from, to) = rewind.range;
    let text = rewind.frame(writer.conversation().entries(), restored, jobs);
    let by = SummaryBy::Model { call: rewind.call.clone(), checkpoint: rewind.mark.entry };
    Body::Summary { from, to, text, by, usage: Usage::default() }
}

fn restore(workspace: &mut Workspace, writer: &mut SessionWriter, mark: &ModelCheckpoint) -> Restored {
    let (session, entry) = (writer.id(), mark.entry);
    let goal = Goal::Entry { session, entry, scope: Scope::Code, files: Files::Selective, discard: Discard::No };
    let mut request = RewindRequest::new(goal);
    request.made_by = MadeBy::Model;
    match workspace.rewinds_mut().apply_in(writer, &request, None, &ids::rewind(), &NoProgress) {
        Ok(applied) => {
            let done = applied.statuses.iter().filter(|(_, status)| *status == PathStatus::Done);
            Restored::Done(done.map(|(path, _)| path.display().to_string()).collect())
        }
        Err(error) => Restored::Refused(reasons(&crate::query::refused(&error))),
    }
}

/// Why files did not go back, for the model.
fn reasons(refusal: &Refusal) -> String {
    let Some(document) = &refusal.document else { return refusal.message.clone() };
    let mut reasons: Vec<String> = Vec::new();
    if let Some(branch) = &document.branch {
        reasons.push(branch.in_words());
    }
    let name = |path: &Bytes| String::from_utf8_lossy(&path.decode().unwrap_or_default()).into_owned();
    reasons.extend(document.conflicts.iter().map(|conflict| format!("`{}`: {}", name(&conflict.path), conflict.text)));
    reasons.extend(document.blocked.iter().map(|path| format!("`{}` is in the way", name(path))));
    if reasons.is_empty() { refusal.message.clone() } else { reasons.join("; ") }
}
