//! Telling how far the first look at all files has come: not at all if it is quick, else a few times a second.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use retake_engine::Durability;
use retake_engine::checkpoint::Origin;
use retake_engine::progress::{Phase, Progress, Step};
use retake_engine::session::Moment;
use tokio::sync::mpsc;

use super::publish::snapshot;
use super::{Controller, WorkerFact};
use crate::contract::{Baseline, EventKind, SnapshotMoment};
use crate::{ids, limits};

impl Controller {
    /// Has the first snapshot taken, and clients told how far it has come.
    pub(super) fn take_baseline(&self) {
        let moment = Moment { session: self.writer().id(), entry: None, origin: Origin::Turn };
        let facts = self.facts.clone();
        self.workspace_thread.run(move |workspace| {
            let (began, progress) = (Instant::now(), Watched::new(facts.clone()));
            let result = workspace.checkpoints_mut().take_at(moment, ids::checkpoint(), Durability::Soon, &progress);
            facts
                .send(WorkerFact::Told {
                    request: None,
                    kind: snapshot(SnapshotMoment::Baseline, began, result.as_ref()),
                })
                .ok();
        });
    }
}

/// Tells the controller how far a scan has come.
struct Watched {
    facts: mpsc::UnboundedSender<WorkerFact>,
    /// When something was told; at first, when it began.
    told: Mutex<Instant>,
    files: AtomicU64,
    bytes: AtomicU64,
}

impl Watched {
    fn new(facts: mpsc::UnboundedSender<WorkerFact>) -> Self {
        Self { facts, told: Mutex::new(Instant::now()), files: AtomicU64::new(0), bytes: AtomicU64::new(0) }
    }
}

impl Progress for Watched {
    fn report(&self, step: Step) {
        // Several threads read, and whoever is late must not take anything back.
        let read = if step.phase == Phase::Reading { step.done } else { 0 };
        let files = self.files.fetch_max(read, Ordering::Relaxed).max(read);
        // When another thread is telling, the next step will do as well.
        let Ok(mut told) = self.told.try_lock() else { return };
        if told.elapsed() < Duration::from_millis(limits::BASELINE_PAUSE_MS) {
            return;
        }
        *told = Instant::now();
        let baseline = Baseline { files, bytes: self.bytes.load(Ordering::Relaxed) };
        self.facts.send(WorkerFact::Told { request: None, kind: Box::new(EventKind::Baseline { baseline }) }).ok();
    }

    fn took_in(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}
