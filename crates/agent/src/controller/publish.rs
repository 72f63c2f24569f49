//! Telling clients: events get their numbers here, are folded into the view that newcomers get, and are kept for a while.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use retake_engine::session::entry::EntryId;
use retake_engine::{Checkpoint, CheckpointError, Workspace};

use super::{Attached, Beginning, Controller};
use crate::contract::{CheckpointRef, Event, EventKind, JobFacts, OperationRef, SnapshotMoment, State};
use crate::coverage;
use crate::limits;
pub(super) use crate::question::in_words;
use crate::tool::JobState;
use crate::turn::Activity;

impl Controller {
    /// Tells everybody. What lasts is on disk by now.
    pub(super) fn publish(&mut self, kind: EventKind) {
        let event = Arc::new(Event { seq: self.view.seq + 1, request: self.request.clone(), kind });
        self.view.apply(&event);
        if self.kept.len() == limits::KEPT_EVENTS {
            self.kept.pop_front();
        }
        self.kept.push_back(Arc::clone(&event));
        self.published.store(event.seq, Ordering::Release);
        // Nobody may be listening.
        self.events.send(event).ok();
    }

    /// Tells of the entries that were appended since the view was last told.
    pub(super) fn publish_appended(&mut self) {
        let told = self.view.entries.len();
        let appended = self.writer().conversation().entries()[told..].to_vec();
        appended.into_iter().for_each(|entry| self.publish(EventKind::Appended { entry }));
    }

    /// Tells that the conversation is another one now.
    pub(super) fn publish_head_moved(&mut self, operation: Option<OperationRef>) {
        let now = self.writer().conversation().entries();
        let same = self.view.entries.iter().zip(now).take_while(|(told, now)| told.id == now.id).count();
        if same == now.len() && same == self.view.entries.len() {
            return;
        }
        let keep: Option<EntryId> = same.checked_sub(1).map(|last| now[last].id);
        let added = now[same..].to_vec();
        self.publish(EventKind::HeadMoved { operation, keep, added });
    }

    /// Tells what the user is about to say, if that is news.
    pub(super) fn publish_draft(&mut self) {
        if self.draft != self.view.draft {
            let parts = self.draft.clone();
            self.publish(EventKind::DraftChanged { parts });
        }
    }

    /// Tells what the session does now, if that is news.
    pub(super) fn publish_state(&mut self) {
        let state = match self.turn.activity() {
            Activity::Idle if self.stopped => State::Paused,
            Activity::Idle => State::Idle,
            Activity::Running => State::Running,
            Activity::Waiting => State::Paused,
        };
        if state != self.view.state {
            self.publish(EventKind::StateChanged { state });
        }
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
        if jobs != self.view.jobs {
            self.publish(EventKind::JobsChanged { jobs });
        }
    }

    pub(super) fn attach(&self, from: Option<u64>) -> Attached {
        let events = self.events.subscribe();
        let oldest = self.kept.front().map_or(self.view.seq + 1, |event| event.seq);
        let beginning = match from {
            Some(from) if oldest <= from.saturating_add(1) && from <= self.view.seq => {
                Beginning::Missed(self.kept.iter().filter(|event| event.seq > from).cloned().collect())
            }
            _ => Beginning::View(Box::new(self.view.clone())),
        };
        Attached { beginning, events }
    }
}

/// Warnings about files that changed ignore rules leave out of `checkpoint`. A count that cannot be read is no reason to stop.
pub(super) fn rule_warnings(
    workspace: &Workspace,
    checkpoint: Option<&Checkpoint>,
) -> impl Iterator<Item = Box<EventKind>> {
    let coverage = checkpoint.and_then(|checkpoint| workspace.coverage(checkpoint).ok()).unwrap_or_default();
    coverage::warnings(&coverage).into_iter().map(|text| Box::new(EventKind::Warning { text }))
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
