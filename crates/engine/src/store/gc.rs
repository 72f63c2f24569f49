//! Making room: checkpoints that may go, objects nobody needs, segments with holes.
//!
//! Collecting never takes an object that a checkpoint, an operation or an interrupted rewind [needs](super::live). A batch of
//! another process that relied on objects without a checkpoint yet notices by the store's counter of collections and starts over.

use std::collections::{HashMap, HashSet};

use super::compact::{Rewriting, Stopped, Work};
use super::live::Live;
use super::{Durability, Store, StoreError, db, pack, retire};
use crate::scan::{NoProgress, Phase, Step};
use crate::{ObjectId, Progress};

/// Bytes that an object takes beside its record: its row, twice while it is in the log, and a share of the index.
pub(crate) const ROW_BYTES: u64 = 300;

/// Bytes that a commit may take in the database's log whatever is in it.
pub(crate) const COMMIT_BYTES: u64 = 64 << 10;

/// Bytes by which making room may itself enlarge the store: checkpoints go only if what they leave is surely enough.
const EVICTION_BYTES: u64 = 128 << 10;

/// Objects that nobody needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dead {
    /// How many.
    pub(crate) objects: u64,
    /// Bytes of records that hold nothing else.
    pub(crate) bytes: u64,
}

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
        if !fits(&live, self.budget) {
            return Ok(None);
        }
        // Some slack, so that the next checkpoints need not do this again at once.
        let target = self.budget - self.budget / 10;
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
                delete_dead(tx, &live.ids).map(Some).map_err(db::in_transaction(tx))
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
        self.db().read(|connection| Ok(find_dead(connection, &live.ids)?.1))
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

    /// Rewrites all segments that are worth it, one after the other. A cancel leaves the rest as it is.
    pub(crate) fn rewrite(&self, how: &Rewriting, progress: &dyn Progress) -> Result<Option<Stopped>, StoreError> {
        let mut work = Work { how, progress, done: 0, order: None };
        for id in pack::segments(&self.packs)? {
            if let Some(stopped) = self.compact(id, &mut work)? {
                return Ok(Some(stopped));
            }
        }
        Ok(None)
    }

    /// Bytes of everything but contents: database, log, index.
    pub(super) fn bytes_beside_packs(&self) -> Result<u64, StoreError> {
        let len = |id| pack::segment_path(&self.packs, id).metadata().map_or(0, |meta| meta.len());
        let packs: u64 = pack::segments(&self.packs)?.into_iter().map(len).sum();
        Ok(self.bytes()?.saturating_sub(packs))
    }

    /// Bytes of contents that count. What other processes have written and not committed is theirs to account for.
    pub(super) fn committed_bytes(&self) -> Result<u64, StoreError> {
        self.db().read(|connection| {
            connection.query_row("SELECT coalesce(sum(committed), 0) FROM packs", [], |row| row.get(0))
        })
    }
}

/// The objects that are not in `live`, and the room of records that hold nothing else.
fn find_dead(connection: &rusqlite::Connection, live: &HashSet<ObjectId>) -> rusqlite::Result<(Vec<[u8; 32]>, Dead)> {
    let (mut ids, mut needed, mut unneeded) = (Vec::new(), HashSet::new(), HashMap::new());
    let mut all = connection.prepare("SELECT id, pack, offset, len FROM objects")?;
    let mut rows = all.query([])?;
    while let Some(row) = rows.next()? {
        let id: [u8; 32] = row.get(0)?;
        let record: (u32, u64) = (row.get(1)?, row.get(2)?);
        if live.contains(&ObjectId::from_bytes(id)) {
            needed.insert(record);
        } else {
            ids.push(id);
            unneeded.insert(record, row.get::<_, u64>(3)?);
        }
    }
    let bytes = unneeded.iter().filter(|(record, _)| !needed.contains(record)).map(|(_, len)| len).sum();
    let dead = Dead { objects: ids.len() as u64, bytes };
    Ok((ids, dead))
}

fn delete_dead(tx: &rusqlite::Transaction<'_>, live: &HashSet<ObjectId>) -> rusqlite::Result<Dead> {
    let (ids, dead) = find_dead(tx, live)?;
    let mut delete = tx.prepare("DELETE FROM objects WHERE id = ?")?;
    for id in &ids {
        delete.execute([&id[..]])?;
    }
    tx.execute("UPDATE meta SET value = value + 1 WHERE key = 'collections'", [])?;
    Ok(dead)
}
