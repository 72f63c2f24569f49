//! Cleaning up: what is older than the settings say goes, and what stays takes as little room as it can.

use std::collections::HashSet;

use crate::base::progress::Progress;
use crate::base::settings::Timestamp;
use crate::maintenance::Maintenance;
use crate::session::remove;
use crate::store::StoreError;
use crate::store::compact::{Density, Holes, Reach, Rewriting};
use crate::workspace::Workspace;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// What a clean-up did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Checkpoints that were older than the settings keep.
    pub checkpoints: u64,
    /// Operations that can no longer be undone.
    pub operations: u64,
    /// Objects that nothing needs any more.
    pub objects: u64,
    /// Bytes of the store before.
    pub bytes_before: u64,
    /// Bytes of the store afterwards.
    pub bytes_after: u64,
    /// Whether the caller stopped it: then not all room is gained yet, and nothing else is wrong.
    pub stopped: bool,
}

/// What a clean-up would do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collectable {
    /// Checkpoints that are older than the settings keep.
    pub checkpoints: u64,
    /// Objects that nothing needs, or would need then.
    pub objects: u64,
    /// Bytes of these objects; better compression of the others may gain more.
    pub bytes: u64,
}

impl Workspace {
    fn cutoff(&self, now: Timestamp) -> Timestamp {
        Timestamp(now.0.saturating_sub(DAY_MS.saturating_mul(self.env.settings.keep_days.into())))
    }
}

impl Maintenance<&mut Workspace> {
    /// Removes unlabelled checkpoints older than [`keep_days`](crate::base::settings::Settings::keep_days), then everything that nothing needs, and
    /// compresses what stays with care.
    ///
    /// The newest checkpoint stays, and so do those that an interrupted rewind, a tool call under way, or an operation younger than
    /// that depends on. Waits for checkpoints and rewinds of other processes, and they for it. After a crash everything that should
    /// be there is there. Needs room for one more segment meanwhile.
    pub fn gc(&mut self, now: Timestamp, progress: &dyn Progress) -> Result<Collected, StoreError> {
        let _own = self.0.store.own()?;
        let bytes_before = self.0.store.bytes()?;
        let cutoff = self.0.cutoff(now);
        let retired = self.0.store.retire(cutoff, |tx| remove::retire(tx, cutoff).map(drop))?;
        // What an interrupted purge left comes first: until then the store holds what it should not.
        let purged = !self.0.maintenance().is_purge_unfinished()? || self.0.remove_purged(progress)?;
        let dead = self.0.store.collect_dead(&self.0.scanner.contents(), progress)?;
        let how =
            Rewriting { holes: Holes::Some, density: Density::Dense, reach: Reach::All, threads: self.0.env.threads };
        let stopped = !purged || self.0.store.rewrite(&how, progress)?.is_some();
        self.0.store.db().shrink();
        Ok(Collected {
            checkpoints: retired.checkpoints,
            operations: retired.operations,
            objects: dead.objects,
            bytes_before,
            bytes_after: self.0.store.bytes()?,
            stopped,
        })
    }

    /// What [`gc`](Maintenance::gc) would do. Writes nothing.
    pub fn gc_preview(&mut self, now: Timestamp, progress: &dyn Progress) -> Result<Collectable, StoreError> {
        let outdated: HashSet<i64> = self.0.store.outdated(self.0.cutoff(now))?.into_iter().collect();
        let dead = self.0.store.count_dead(&self.0.scanner.contents(), &outdated, progress)?;
        Ok(Collectable { checkpoints: outdated.len() as u64, objects: dead.objects, bytes: dead.bytes })
    }
}
