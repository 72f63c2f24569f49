//! Rewriting segments: without their holes, and with records that were compressed in a hurry compressed with care.
//!
//! One segment at a time: its records go to a new segment, which is synced; then their rows change in one transaction; only then
//! the old file goes. A crash at any step leaves each object in one of the two.

use std::fs::File;
use std::path::Path;
use std::thread;

use rusqlite::params;

use super::pack::{self, Segment, SegmentId};
use super::{Durability, Effort, Location, Store, StoreError, db, record};
use crate::scan::{Phase, Step};
use crate::{ObjectId, Progress, fault};

/// Bytes of records that are compressed at a time.
const PORTION: usize = 16 << 20;

/// How much of a segment may be holes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holes {
    /// A fourth: rewriting costs more than they do.
    Some,
    /// None: every byte counts.
    None,
}

/// What becomes of records that were compressed in a hurry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Density {
    /// They stay as they are.
    AsTheyAre,
    /// They are compressed with care; a segment that mostly consists of them is rewritten for it.
    Dense,
}

/// Which segments may be rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Those that no process keeps for itself.
    Free,
    /// All. Only for whoever [owns](Store::own) the store: nobody is writing then, and a process that kept a segment for its next
    /// checkpoint sees that it is gone.
    All,
}

/// How segments are rewritten.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rewriting {
    pub(crate) holes: Holes,
    pub(crate) density: Density,
    pub(crate) reach: Reach,
    /// Threads that compress.
    pub(crate) threads: usize,
}

impl Rewriting {
    /// While somebody waits for a checkpoint.
    pub(super) const COLLECT: Self =
        Self { holes: Holes::Some, density: Density::AsTheyAre, reach: Reach::Free, threads: 1 };
    /// While somebody waits for a checkpoint that needs every byte.
    pub(super) const RECLAIM: Self = Self { holes: Holes::None, ..Self::COLLECT };
}

/// The caller asked to stop; what was done is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stopped;

impl Store {
    /// Rewrites a segment if it is worth it. `done` counts records for `progress`.
    pub(super) fn compact(
        &self,
        id: SegmentId,
        how: &Rewriting,
        done: &mut u64,
        progress: &dyn Progress,
    ) -> Result<Option<Stopped>, StoreError> {
        // Our own segment is given up first; the next batch adopts one again.
        super::lock(&self.segment).take_if(|segment| segment.id == id);
        let opened = match how.reach {
            Reach::Free => pack::lock_segment(&self.packs, id)?,
            Reach::All => pack::open_segment(&self.packs, id)?,
        };
        let Some((file, path)) = opened else { return Ok(None) };
        let len = file.metadata().map_err(StoreError::io("read", &path))?.len();
        let mut rows = self.rows_in(id)?;
        // Of a segment that was cut short, what is left moves on.
        rows.retain(|(_, at)| at.offset + u64::from(at.len) <= len);
        // A crash may have left one that was never written to.
        let is_nothing = rows.is_empty() && how.reach == Reach::All;
        if !is_nothing && !is_worth_it(&file, &path, len, &rows, how)? {
            *done += rows.len() as u64;
            return Ok(None);
        }
        if !rows.is_empty()
            && let Some(stopped) = self.move_rows(&file, &rows, id, how, done, progress)?
        {
            return Ok(Some(stopped));
        }
        self.db().transaction(Durability::Synced, |tx| {
            tx.execute("DELETE FROM objects WHERE pack = ?", [id])
                .and_then(|_| tx.execute("DELETE FROM packs WHERE id = ?", [id]))
                .map_err(db::in_transaction(tx))
        })?;
        fault::step().and_then(|()| std::fs::remove_file(&path)).map_err(StoreError::io("remove", &path))?;
        super::lock(&self.open_packs).remove(&id);
        Ok(None)
    }

    fn move_rows(
        &self,
        file: &File,
        rows: &[(ObjectId, Location)],
        from: SegmentId,
        how: &Rewriting,
        done: &mut u64,
        progress: &dyn Progress,
    ) -> Result<Option<Stopped>, StoreError> {
        let path = pack::segment_path(&self.packs, from);
        let mut target = self.start_segment()?;
        let copied = copy(file, &path, rows, &mut target, how, done, progress);
        let moved = match copied.and_then(|moved| target.flush().and_then(|()| target.sync()).map(|()| moved)) {
            Ok(Some(moved)) => moved,
            // No row points there yet.
            Ok(None) => return target.remove().map(|()| Some(Stopped)),
            Err(err) => {
                target.remove().ok();
                return Err(err);
            }
        };
        self.db().transaction(Durability::Synced, |tx| {
            let mut update = tx
                .prepare("UPDATE objects SET pack = ?1, offset = ?2, len = ?3 WHERE id = ?4 AND pack = ?5")
                .map_err(db::in_transaction(tx))?;
            for (id, at) in &moved {
                update
                    .execute(params![at.pack, at.offset, at.len, &id.as_bytes()[..], from])
                    .map_err(db::in_transaction(tx))?;
            }
            db::set_pack_lengths(tx, target.id, target.end(), Some(target.end()))
        })?;
        Ok(None)
    }

    fn rows_in(&self, id: SegmentId) -> Result<Vec<(ObjectId, Location)>, StoreError> {
        self.db().read(|connection| {
            let mut statement =
                connection.prepare("SELECT id, offset, len FROM objects WHERE pack = ? ORDER BY offset")?;
            let rows = statement.query_map([id], |row| {
                let location = Location { pack: id, offset: row.get(1)?, len: row.get(2)? };
                Ok((ObjectId::from_bytes(row.get(0)?), location))
            })?;
            rows.collect()
        })
    }
}

/// Whether rewriting a segment of `len` bytes would gain enough.
fn is_worth_it(
    file: &File,
    path: &Path,
    len: u64,
    rows: &[(ObjectId, Location)],
    how: &Rewriting,
) -> Result<bool, StoreError> {
    let used: u64 = rows.iter().map(|(_, at)| u64::from(at.len)).sum();
    let tolerated = match how.holes {
        Holes::Some => used / 4,
        Holes::None => 0,
    };
    if len > pack::SEGMENT_HEADER + used + tolerated {
        return Ok(true);
    }
    if how.density == Density::AsTheyAre {
        return Ok(false);
    }
    let mut loose = 0;
    for (_, at) in rows {
        let head = pack::read_record(file, at.offset, record::HEADER_LEN).map_err(StoreError::io("read", path))?;
        if record::header(&head).is_ok_and(|(header, _)| header.is_loose()) {
            loose += u64::from(at.len);
        }
    }
    Ok(loose > used / 2)
}

/// Copies records to `target`, portion by portion; `None` when cancelled.
fn copy(
    file: &File,
    path: &Path,
    rows: &[(ObjectId, Location)],
    target: &mut Segment,
    how: &Rewriting,
    done: &mut u64,
    progress: &dyn Progress,
) -> Result<Option<Vec<(ObjectId, Location)>>, StoreError> {
    let mut moved = Vec::with_capacity(rows.len());
    let mut rest = rows;
    while !rest.is_empty() {
        if progress.cancelled() {
            return Ok(None);
        }
        let mut records = Vec::new();
        let mut bytes = 0;
        for (id, at) in rest.iter().take_while(|(_, at)| {
            let fits = bytes == 0 || bytes + at.len as usize <= PORTION;
            bytes += at.len as usize;
            fits
        }) {
            let record = pack::read_record(file, at.offset, at.len as usize).map_err(StoreError::io("read", path))?;
            records.push((*id, record));
        }
        rest = &rest[records.len()..];
        if how.density == Density::Dense {
            condense(&mut records, how.threads);
        }
        *done += records.len() as u64;
        progress.report(Step { phase: Phase::Packing, done: *done, total: None });
        for (id, record) in records {
            let len = u32::try_from(record.len()).expect("objects are chunked long before 4 GiB");
            let offset = target.append(&record)?;
            moved.push((id, Location { pack: target.id, offset, len }));
        }
    }
    Ok(Some(moved))
}

/// Compresses records with care, each in place. One that is damaged stays as it is: so it can still be told what happened to it.
fn condense(records: &mut [(ObjectId, Vec<u8>)], threads: usize) {
    let share = records.len().div_ceil(threads.max(1)).max(1);
    thread::scope(|scope| {
        for part in records.chunks_mut(share) {
            scope.spawn(move || {
                for (id, bytes) in part {
                    let Ok((header, _)) = record::header(bytes) else { continue };
                    if header.is_improvable()
                        && let Ok((kind, plain)) = record::decode(bytes, *id)
                    {
                        let dense = record::encode(kind, *id, &plain, Effort::Dense);
                        // A loose one is taken in any case: what was tried once is not tried again at the next clean-up.
                        if header.is_loose() || dense.len() < bytes.len() {
                            *bytes = dense;
                        }
                    }
                }
            });
        }
    });
}
