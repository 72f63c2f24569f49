//! The model's own checkpoints: answering its calls, and going back when all calls of its answer have their results.

use retake_engine::session::NewEntry;
use retake_engine::session::entry::{Body, Details, SummaryBy, Usage};
use retake_engine::{
    Discard, Files, Goal, MadeBy, NoProgress, OperationKind, PathStatus, RewindError, RewindRequest, Scope,
    SessionWriter, Workspace,
};

use super::Controller;
use super::publish::in_words;
use crate::contract::{Change, ChangeGoal};
use crate::explore::{Mark, Marks, Restored, Rewind};
use crate::fresh;
use crate::tool::{Exploring, Output};

impl Controller {
    /// The title and the result of a call of `checkpoint` or `rewind`; `settled` are results of the same answer.
    pub(super) fn explore(&self, name: &str, asked: Result<Exploring, Output>, settled: &[Body]) -> (String, Output) {
        let asked = match asked {
            Ok(asked) => asked,
            Err(output) => return (name.to_owned(), output),
        };
        let beside = |is_meant: &dyn Fn(&Details) -> bool| {
            settled
                .iter()
                .any(|body| matches!(body, Body::ToolResult { details: Some(details), .. } if is_meant(details)))
        };
        let has_rewind = beside(&|details| matches!(details, Details::Rewound { .. }));
        let marks = Marks::of(self.writer().conversation().entries());
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
                Marks::taken(name)
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
        let restored = if rewind.restore_files { self.restore_files(&rewind.mark) } else { Restored::NotAsked };
        let summary = summary(&rewind, self.writer(), &restored);
        self.append(vec![summary]);
        self.toolbox.recall(self.writer().conversation());
    }

    /// Takes the files back that the session has changed since a checkpoint of the model's.
    fn restore_files(&mut self, mark: &Mark) -> Restored {
        let goal =
            ChangeGoal::Rewind { entry: mark.entry, scope: Scope::Code, files: Files::Selective, discard: Discard::No };
        if let Err(refusal) = self.end_jobs_since(&Change::new(goal)) {
            return Restored::Refused(refusal.message);
        }
        let (keeper, mark) = (self.keeper.clone(), mark.clone());
        // What tools have changed until now is in the snapshots after them, which the keeper takes first.
        self.lend_writer(move |writer| {
            keeper.ask(move |workspace| {
                let mut writer = writer;
                let restored = restore(workspace, &mut writer, &mark);
                (writer, restored)
            })
        })
    }
}

/// Makes the rewind that a process which died was about to make. The entry belongs to the turn that was ended for it.
pub(super) fn finish_left(
    workspace: &mut Workspace,
    writer: &mut SessionWriter,
) -> Result<(), retake_engine::SessionError> {
    let Some(rewind) = Rewind::left(writer.conversation().entries()) else { return Ok(()) };
    let turn = workspace.next_to_undo(Some(writer.id())).ok().filter(|operation| operation.kind == OperationKind::Turn);
    let Some(turn) = turn else { return Ok(()) };
    let restored = if rewind.restore_files { restore(workspace, writer, &rewind.mark) } else { Restored::NotAsked };
    let new = NewEntry { id: fresh::entry(), at: fresh::now(), body: summary(&rewind, writer, &restored) };
    writer.end_turn(turn.id, new).map(drop)
}

fn summary(rewind: &Rewind, writer: &SessionWriter, restored: &Restored) -> Body {
    let (from, to) = rewind.range;
    let text = rewind.frame(writer.conversation().entries(), restored);
    let by = SummaryBy::Model { call: rewind.call.clone(), checkpoint: rewind.mark.entry };
    Body::Summary { from, to, text, by, usage: Usage::default() }
}

fn restore(workspace: &mut Workspace, writer: &mut SessionWriter, mark: &Mark) -> Restored {
    let (session, entry) = (writer.id(), mark.entry);
    let goal = Goal::Entry { session, entry, scope: Scope::Code, files: Files::Selective, discard: Discard::No };
    let mut request = RewindRequest::new(goal);
    request.made_by = MadeBy::Model;
    match workspace.apply_in(writer, &request, None, &fresh::rewind(), &NoProgress) {
        Ok(applied) => {
            let done = applied.statuses.iter().filter(|(_, status)| *status == PathStatus::Done);
            Restored::Done(done.map(|(path, _)| path.display().to_string()).collect())
        }
        Err(RewindError::Refused { plan }) => {
            let conflicts = plan.conflicts().filter_map(|path| Some((path, path.conflict?)));
            let reasons: Vec<String> = conflicts
                .map(|(path, conflict)| format!("`{}`: {}", path.path.display(), conflict.describe()))
                .collect();
            Restored::Refused(if reasons.is_empty() {
                in_words(&RewindError::Refused { plan })
            } else {
                reasons.join("; ")
            })
        }
        Err(error) => Restored::Refused(in_words(&error)),
    }
}
