//! Retention: which checkpoints may go when there is no room or they are old, and which objects something still needs.
//!
//! Collecting never takes an object that a checkpoint, an operation or an interrupted rewind [needs](needed). A batch of
//! another process that relied on objects without a checkpoint yet notices by the store's counter of collections and starts over.

pub(crate) mod needed;
pub(crate) mod retire;

use std::collections::HashSet;

use crate::base::id::ObjectId;
use crate::base::progress::{NoProgress, Phase, Progress, Step};
use crate::store::compact::Rewriting;
use crate::store::gc::{self, Dead};
use crate::store::{Durability, Store, StoreError, db};
use needed::Live;

/// Bytes by which making room may itself enlarge the store: checkpoints go only if what they leave is surely enough.
const EVICTION_BYTES: u64 = 128 << 10;

impl Store {
    /// Removes the oldest unpinned checkpoints until `needed` more bytes fit the budget once the space is
    /// [reclaimed](Self::reclaim). `kept` are contents (with their sizes) that the checkpoint in the making relies on.
    /// Returns how many went; `None` if there can never be enough room, and then nothing is removed.
    /// The checkpoint with row number `spared` stays, whatever its age.
    pub(crate) fn evict(
        &self,
        needed: u64,
        kept: &[(ObjectId, u64)],
        spared: Option<i64>,
    ) -> Result<Option<u64>, StoreError> {
        let mut live = Live::default();
        self.mark_beside_points(kept, &mut live)?;
        let mut points = self.points()?;
        points.iter_mut().for_each(|point| point.pinned |= Some(point.seq) == spared);
        for point in points.iter().filter(|point| point.pinned) {
            self.mark_point(point, &mut live)?;
        }
        self.db().empty_log();
        let beside = self.bytes_beside_packs()?.saturating_add(EVICTION_BYTES);
        let fits = |live: &Live, budget: u64| live.bytes.saturating_add(needed).saturating_add(beside) <= budget;
        if !fits(&live, self.budget()) {
            return Ok(None);
        }
        // Some slack, so that the next checkpoints need not do this again at once.
        let target = self.budget() - self.budget() / 10;
        let mut evicted = Vec::new();
        for point in points.iter().filter(|point| !point.pinned) {
            if evicted.is_empty() {
                self.mark_point(point, &mut live)?;
            }
            if !evicted.is_empty() || !fits(&live, target) {
                evicted.push(point.seq);
            }
        }
        let retired = self.db().transaction(Durability::Synced, |tx| retire::remove(tx, &evicted))?;
        Ok(Some(retired.checkpoints))
    }

    /// Removes what nothing needs and that is not in `kept`, down to the last hole.
    pub(crate) fn reclaim(&self, kept: &[(ObjectId, u64)]) -> Result<(), StoreError> {
        self.collect_dead(kept, &NoProgress)?;
        self.rewrite(&Rewriting::RECLAIM, &NoProgress)?;
        self.db().empty_log();
        Ok(())
    }

    /// Removes every object that nothing needs and that is not in `kept`, and the space it took.
    pub(crate) fn collect(&self, kept: &[(ObjectId, u64)]) -> Result<(), StoreError> {
        self.collect_dead(kept, &NoProgress)?;
        self.rewrite(&Rewriting::COLLECT, &NoProgress).map(drop)
    }

    /// Forgets every object that nothing needs and that is not in `kept`; their bytes stay until segments are
    /// [rewritten](Self::rewrite).
    pub(crate) fn collect_dead(&self, kept: &[(ObjectId, u64)], progress: &dyn Progress) -> Result<Dead, StoreError> {
        loop {
            let before = self.db().counter("commits")?;
            let live = self.live(kept, &HashSet::new(), progress)?;
            let done = self.db().transaction(Durability::Synced, |tx| {
                if db::counter_in(tx, "commits")? != before {
                    return Ok(None);
                }
                gc::delete_dead(tx, &live.ids).map(Some).map_err(db::in_transaction(tx))
            })?;
            // Else somebody committed meanwhile: what is needed has to be found out again.
            if let Some(dead) = done {
                return Ok(dead);
            }
        }
    }

    /// What [`collect_dead`](Self::collect_dead) would find if the checkpoints `without` were gone.
    pub(crate) fn count_dead(
        &self,
        kept: &[(ObjectId, u64)],
        without: &HashSet<i64>,
        progress: &dyn Progress,
    ) -> Result<Dead, StoreError> {
        let live = self.live(kept, without, progress)?;
        self.db().read(|connection| Ok(gc::find_dead(connection, &live.ids)?.1))
    }

    fn live(
        &self,
        kept: &[(ObjectId, u64)],
        without: &HashSet<i64>,
        progress: &dyn Progress,
    ) -> Result<Live, StoreError> {
        let mut live = Live::default();
        self.mark_beside_points(kept, &mut live)?;
        let points = self.points()?;
        let total = Some(points.len() as u64);
        for (done, point) in points.iter().enumerate().filter(|(_, point)| !without.contains(&point.seq)) {
            progress.report(Step { phase: Phase::Marking, done: done as u64, total });
            self.mark_point(point, &mut live)?;
        }
        Ok(live)
    }
}
