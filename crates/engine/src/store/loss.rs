//! What is not as the database says: bytes that crashed processes left behind, bytes that are gone, and objects that a check
//! found damaged.
//!
//! What was never committed is cut off. What is gone or damaged stays on record, in case the disk thinks better of it, but
//! does not count as stored: a new checkpoint stores again what it needs of it.

use std::collections::HashSet;

use super::check::Damage;
use super::db::in_transaction;
use super::pack::{self, SegmentId};
use super::{Durability, Location, Store, StoreError, lock};
use crate::base::id::ObjectId;

/// What does not count as stored.
#[derive(Debug, Default)]
pub(super) struct Lost {
    /// Segments that are missing or cut short.
    pub(super) segments: HashSet<SegmentId>,
    /// Objects that a check found damaged.
    pub(super) objects: HashSet<ObjectId>,
}

impl Lost {
    pub(super) fn has(&self, id: &ObjectId, location: &Location) -> bool {
        self.segments.contains(&location.pack) || self.objects.contains(id)
    }
}

impl Store {
    /// Looks for what does not count as stored any more: segments that are missing or shorter than what was committed to
    /// them, and what checks have found damaged. Returns whether there is anything that this process did not know of.
    pub(crate) fn find_losses(&self) -> Result<bool, StoreError> {
        let mut lost = Lost { objects: self.damaged()?, ..Lost::default() };
        for (id, committed) in self.committed()? {
            if self.segment_len(id) < committed {
                lost.segments.insert(id);
            }
        }
        let mut known = lock(&self.lost);
        let news = !lost.segments.is_subset(&known.segments) || !lost.objects.is_subset(&known.objects);
        *known = lost;
        Ok(news)
    }

    fn damaged(&self) -> Result<HashSet<ObjectId>, StoreError> {
        self.db().read(|connection| {
            let mut statement = connection.prepare_cached("SELECT id FROM damaged")?;
            statement.query_map([], |row| Ok(ObjectId::from_bytes(row.get(0)?)))?.collect()
        })
    }

    /// Has the objects of `damage` stored again by the next checkpoint that needs them.
    pub(crate) fn note_damage(&self, damage: &[Damage]) -> Result<(), StoreError> {
        let objects: Vec<ObjectId> = damage.iter().filter_map(|damage| damage.object).collect();
        if objects.is_empty() {
            return Ok(());
        }
        self.db().transaction(Durability::Synced, |tx| {
            let mut insert =
                tx.prepare_cached("INSERT OR IGNORE INTO damaged VALUES (?)").map_err(in_transaction(tx))?;
            objects.iter().try_for_each(|id| insert.execute([&id.as_bytes()[..]]).map(drop).map_err(in_transaction(tx)))
        })
    }

    /// Cuts off what was never committed to segments that nobody writes to.
    pub(super) fn trim_tails(&self) -> Result<(), StoreError> {
        for id in pack::segments(&self.packs)? {
            let committed = || Ok(self.db().pack_lengths(id)?.map_or(0, |(committed, _)| committed));
            if self.segment_len(id) <= pack::SEGMENT_HEADER.max(committed()?) {
                continue;
            }
            // Only whoever has the lock may believe what it sees.
            let Some((file, path)) = pack::lock_segment(&self.packs, id)? else { continue };
            let end = pack::SEGMENT_HEADER.max(committed()?);
            let len = file.metadata().map_err(StoreError::io("read", &path))?.len();
            if end < len {
                crate::base::fault::step()
                    .and_then(|()| file.set_len(end))
                    .map_err(StoreError::io("truncate", &path))?;
            }
        }
        Ok(())
    }

    /// How much was committed to each segment.
    pub(super) fn committed(&self) -> Result<Vec<(SegmentId, u64)>, StoreError> {
        self.db().read(|connection| {
            let mut statement = connection.prepare_cached("SELECT id, committed FROM packs ORDER BY id")?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect()
        })
    }

    fn segment_len(&self, id: SegmentId) -> u64 {
        pack::segment_path(&self.packs, id).metadata().map_or(0, |meta| meta.len())
    }
}
