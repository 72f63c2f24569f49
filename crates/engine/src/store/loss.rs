//! Segments whose file is not what the database says: bytes that crashed processes left behind, and bytes that are gone.
//!
//! What was never committed is cut off. What is gone stays on record, in case the file comes back, but does not count as
//! stored: a new checkpoint stores again what it needs of it.

use std::collections::HashSet;

use super::pack::{self, SegmentId};
use super::{Store, StoreError, lock};

impl Store {
    /// Looks for segments that are missing or shorter than what was committed to them; returns whether there are any
    /// that this process did not know of.
    pub(crate) fn find_losses(&self) -> Result<bool, StoreError> {
        let mut lost = HashSet::new();
        for (id, committed) in self.committed()? {
            if self.segment_len(id) < committed {
                lost.insert(id);
            }
        }
        let mut known = lock(&self.lost);
        let news = lost.iter().any(|id| !known.contains(id));
        *known = lost;
        Ok(news)
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
                crate::fault::step().and_then(|()| file.set_len(end)).map_err(StoreError::io("truncate", &path))?;
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
