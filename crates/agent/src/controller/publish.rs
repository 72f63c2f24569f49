//! What the controller publishes, and when that is news.

use std::time::Instant;

use retake_engine::Workspace;
use retake_engine::checkpoint::{Checkpoint, CheckpointError};

use super::{Attached, Controller};
use crate::contract::{CheckpointRef, EventKind, JobFacts, OperationRef, SnapshotMoment, State};
use crate::ignore_warnings;
pub(super) use crate::query::in_words;
use crate::tool::JobState;
use crate::turn::Activity;

impl Controller {
    /// Publishes an event. What lasts is on disk by now.
    pub(super) fn publish(&mut self, kind: EventKind) {
        self.publisher.publish(kind);
    }

    /// Publishes the entries that were appended since.
    pub(super) fn publish_appended(&mut self) {
        let Self { writer: Some(writer), publisher, .. } = self else { return };
        publisher.appended(writer.conversation().entries());
    }

    /// Publishes that the conversation is another one now.
    pub(super) fn publish_head_moved(&mut self, operation: Option<OperationRef>) {
        let Self { writer: Some(writer), publisher, .. } = self else { return };
        publisher.head_moved(writer.conversation().entries(), operation);
    }

    /// Publishes the draft, if that is news.
    pub(super) fn publish_draft(&mut self) {
        self.publisher.draft(&self.draft);
    }

    /// Tells what the session does now, if that is news.
    pub(super) fn publish_state(&mut self) {
        let state = match self.turn.activity() {
            Activity::Idle if self.stopped => State::Paused,
            Activity::Idle => State::Idle,
            Activity::Running => State::Running,
            Activity::Waiting => State::Paused,
        };
        self.publisher.state(state);
    }

    /// Tells of background jobs, if there is news.
    pub(super) fn publish_jobs(&mut self) {
        let jobs = self.toolbox.jobs().list();
        let jobs: Vec<JobFacts> = jobs
            .into_iter()
            .map(|job| JobFacts {
                job: job.id.to_string(),
                command: job.command,
                ended: match job.state {
                    JobState::Running => None,
                    JobState::Ended { exit } => Some(exit.to_string()),
                },
            })
            .collect();
        if jobs != self.publisher.view().jobs {
            self.publish(EventKind::JobsChanged { jobs });
        }
    }

    /// Attaches a client.
    pub(super) fn attach(&self, from: Option<u64>) -> Attached {
        self.publisher.attach(self.writer().conversation().entries(), from)
    }
}

/// Warnings about files that changed ignore rules leave out of `checkpoint`. A count that cannot be read is no reason to stop.
pub(super) fn rule_warnings(
    workspace: &Workspace,
    checkpoint: Option<&Checkpoint>,
) -> impl Iterator<Item = Box<EventKind>> {
    let coverage = checkpoint.and_then(|checkpoint| workspace.changes().coverage(checkpoint).ok()).unwrap_or_default();
    ignore_warnings::warnings(&coverage).into_iter().map(|text| Box::new(EventKind::Warning { text }))
}

/// What is told of a snapshot.
pub(super) fn snapshot(
    moment: SnapshotMoment,
    began: Instant,
    result: Result<&Checkpoint, &CheckpointError>,
) -> Box<EventKind> {
    let ms = began.elapsed().as_secs_f64() * 1e3;
    let (checkpoint, error) = match result {
        Ok(checkpoint) => (Some(CheckpointRef::from(checkpoint.id)), None),
        Err(error) => (None, Some(in_words(error))),
    };
    Box::new(EventKind::Snapshot { moment, checkpoint, ms, error })
}
