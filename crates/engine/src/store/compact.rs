//! Rewriting segments: without their holes, and with small objects that were stored one by one compressed together.
//!
//! One segment at a time: what it holds goes to a new segment, which is synced; then the rows change in one transaction; only then
//! the old file goes. A crash at any step leaves each object in one of the two.

use std::fs::File;
use std::path::PathBuf;

use rusqlite::params;

use super::condense::{self, Order};
use super::pack::{self, Segment, SegmentId};
use super::{Durability, Location, Store, StoreError, bundle, db, record};
use crate::base::fault;
use crate::base::id::ObjectId;
use crate::base::progress::{Phase, Progress, Step};

/// How much of a segment may be holes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holes {
    /// A fourth: rewriting costs more than they do.
    Some,
    /// None: every byte counts.
    None,
}

/// What becomes of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Density {
    /// They stay as they are; a bundle stays whole as long as one of its objects is needed.
    AsTheyAre,
    /// Bundles lose what is not needed.
    Trimmed,
    /// Everything is compressed as well as it can be; a segment that mostly is not is rewritten for it.
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
    pub(crate) const COLLECT: Self =
        Self { holes: Holes::Some, density: Density::AsTheyAre, reach: Reach::Free, threads: 1 };
    /// While somebody waits for a checkpoint that needs every byte.
    pub(crate) const RECLAIM: Self = Self { holes: Holes::None, density: Density::Trimmed, ..Self::COLLECT };
}

/// The caller asked to stop; what was done is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stopped;

/// A clean-up under way.
pub(super) struct Work<'a> {
    pub(super) how: &'a Rewriting,
    pub(super) progress: &'a dyn Progress,
    /// Objects done so far.
    pub(super) done: u64,
    /// Where objects belong; found out when it is first needed.
    pub(super) order: Option<Order>,
}

/// A record, and the objects in it that are needed.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) at: Location,
    pub(super) ids: Vec<ObjectId>,
}

/// The segment that is being rewritten.
pub(super) struct Source {
    pub(super) file: File,
    pub(super) path: PathBuf,
}

impl Source {
    pub(super) fn read(&self, offset: u64, len: usize) -> Result<Vec<u8>, StoreError> {
        pack::read_record(&self.file, offset, len).map_err(StoreError::io("read", &self.path))
    }
}

/// The segment that takes the records, and where they are in it.
pub(super) struct Target<'a> {
    segment: Segment,
    moved: Vec<(ObjectId, Location)>,
    /// Objects moved by the whole clean-up.
    done: &'a mut u64,
    progress: &'a dyn Progress,
}

impl Target<'_> {
    /// Takes a record that holds `ids`.
    pub(super) fn take(&mut self, ids: &[ObjectId], record: &[u8]) -> Result<(), StoreError> {
        let len = u32::try_from(record.len()).expect("objects are chunked long before 4 GiB");
        let location = Location { pack: self.segment.id, offset: self.segment.append(record)?, len };
        self.moved.extend(ids.iter().map(|id| (*id, location)));
        *self.done += ids.len() as u64;
        self.progress.report(Step { phase: Phase::Packing, done: *self.done, total: None });
        Ok(())
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.progress.cancelled()
    }
}

impl Store {
    /// Rewrites a segment if it is worth it.
    pub(super) fn compact(&self, id: SegmentId, work: &mut Work<'_>) -> Result<Option<Stopped>, StoreError> {
        let how = work.how;
        // Our own segment is given up first; the next batch adopts one again.
        super::lock(&self.segment).take_if(|segment| segment.id == id);
        let opened = match how.reach {
            Reach::Free => pack::lock_segment(&self.packs, id)?,
            Reach::All => pack::open_segment(&self.packs, id)?,
        };
        let Some((file, path)) = opened else { return Ok(None) };
        let len = file.metadata().map_err(StoreError::io("read", &path))?.len();
        let source = Source { file, path };
        let mut stored = self.stored_in(id)?;
        // Of a segment that was cut short, what is left moves on.
        stored.retain(|stored| stored.at.offset + u64::from(stored.at.len) <= len);
        // A crash may have left one that was never written to.
        let is_nothing = stored.is_empty() && how.reach == Reach::All;
        if !is_nothing && !is_worth_it(&source, len, &stored, how)? {
            work.done += stored.iter().map(|stored| stored.ids.len() as u64).sum::<u64>();
            return Ok(None);
        }
        if !stored.is_empty()
            && let Some(stopped) = self.move_records(&source, &stored, id, work)?
        {
            return Ok(Some(stopped));
        }
        self.db().transaction(Durability::Synced, |tx| {
            tx.execute("DELETE FROM objects WHERE pack = ?", [id])
                .and_then(|_| tx.execute("DELETE FROM packs WHERE id = ?", [id]))
                .map_err(db::in_transaction(tx))
        })?;
        let path = &source.path;
        fault::step().and_then(|()| std::fs::remove_file(path)).map_err(StoreError::io("remove", path))?;
        super::lock(&self.open_packs).remove(&id);
        Ok(None)
    }

    fn move_records(
        &self,
        source: &Source,
        stored: &[Stored],
        from: SegmentId,
        work: &mut Work<'_>,
    ) -> Result<Option<Stopped>, StoreError> {
        let Work { how, progress, done, order } = work;
        if how.density == Density::Dense && order.is_none() {
            *order = Some(self.find_order()?);
        }
        let mut target = Target { segment: self.start_segment()?, moved: Vec::new(), done, progress: *progress };
        let copied = match order {
            Some(order) => condense::condense(source, stored, order, how.threads, &mut target),
            None => copy(source, stored, how.density, &mut target),
        };
        let Target { mut segment, moved, .. } = target;
        match copied.and_then(|stopped| segment.flush().and_then(|()| segment.sync()).map(|()| stopped)) {
            Ok(None) => {}
            // No row points there yet.
            Ok(stopped) => return segment.remove().map(|()| stopped),
            Err(err) => {
                segment.remove().ok();
                return Err(err);
            }
        }
        self.db().transaction(Durability::Synced, |tx| {
            let mut update = tx
                .prepare("UPDATE objects SET pack = ?1, offset = ?2, len = ?3 WHERE id = ?4 AND pack = ?5")
                .map_err(db::in_transaction(tx))?;
            for (id, at) in &moved {
                update
                    .execute(params![at.pack, at.offset, at.len, &id.as_bytes()[..], from])
                    .map_err(db::in_transaction(tx))?;
            }
            db::set_pack_lengths(tx, segment.id, segment.end(), Some(segment.end()))
        })?;
        Ok(None)
    }

    /// The records of a segment, in order.
    fn stored_in(&self, pack: SegmentId) -> Result<Vec<Stored>, StoreError> {
        self.db().read(|connection| {
            let mut statement =
                connection.prepare("SELECT id, offset, len FROM objects WHERE pack = ? ORDER BY offset")?;
            let mut rows = statement.query([pack])?;
            let mut stored: Vec<Stored> = Vec::new();
            while let Some(row) = rows.next()? {
                let id = ObjectId::from_bytes(row.get(0)?);
                let at = Location { pack, offset: row.get(1)?, len: row.get(2)? };
                match stored.last_mut() {
                    Some(last) if last.at == at => last.ids.push(id),
                    _ => stored.push(Stored { at, ids: vec![id] }),
                }
            }
            Ok(stored)
        })
    }
}

/// Whether rewriting a segment of `len` bytes would gain enough.
fn is_worth_it(source: &Source, len: u64, stored: &[Stored], how: &Rewriting) -> Result<bool, StoreError> {
    let whole: u64 = stored.iter().map(|stored| u64::from(stored.at.len)).sum();
    let (mut used, mut loose, mut alone) = (whole, 0, 0);
    if how.density != Density::AsTheyAre {
        for Stored { at, ids } in stored {
            let record_len = u64::from(at.len);
            let head = source.read(at.offset, bundle::HEAD_LEN.min(at.len as usize))?;
            let Ok((header, _)) = record::header(&head) else { continue };
            match bundle::count(&head) {
                Some(count) => used -= record_len * count.saturating_sub(ids.len()) as u64 / (count as u64).max(1),
                None if header.is_small() => (loose, alone) = (loose + record_len, alone + 1),
                None if header.is_loose() => (loose, alone) = (loose + record_len, alone + 2),
                None => {}
            }
        }
    }
    let tolerated = match how.holes {
        Holes::Some => used / 4,
        Holes::None => 0,
    };
    // A single small object has nothing to be bundled with.
    let is_loose = how.density == Density::Dense && loose > whole / 2 && alone > 1;
    Ok(is_loose || len > pack::SEGMENT_HEADER + used + tolerated)
}

/// Copies records one by one.
fn copy(
    source: &Source,
    stored: &[Stored],
    density: Density,
    target: &mut Target<'_>,
) -> Result<Option<Stopped>, StoreError> {
    for Stored { at, ids } in stored {
        if target.is_cancelled() {
            return Ok(Some(Stopped));
        }
        let record = source.read(at.offset, at.len as usize)?;
        let trimmed = match density {
            Density::Trimmed => trim(&record, ids),
            Density::AsTheyAre | Density::Dense => None,
        };
        target.take(ids, trimmed.as_deref().unwrap_or(&record))?;
    }
    Ok(None)
}

/// A bundle with the objects `ids` only; `None` if it is none, holds no others, or is damaged.
fn trim(record: &[u8], ids: &[ObjectId]) -> Option<Vec<u8>> {
    if bundle::count(record).is_none_or(|count| count <= ids.len()) {
        return None;
    }
    let whole = bundle::decode(record).ok()?;
    let parts: Result<Vec<_>, _> =
        ids.iter().map(|id| whole.get(*id).map(|(kind, plain)| (*id, kind, plain))).collect();
    Some(bundle::encode(&parts.ok()?))
}
