//! Batches: objects on their way into the store, committed together with whatever refers to them.
//!
//! Dropped without a commit, a batch leaves nothing. It notices when another process cleaned up meanwhile, or was quicker with the same
//! contents, and then has to be made again.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rusqlite::{Transaction, params};

use super::db::{self, Location};
use super::loss::Lost;
use super::pack::{Segment, SegmentId};
use super::{Durability, Effort, ObjectKind, Store, StoreError, gc, lock, record};
use crate::base::id::ObjectId;
use crate::base::limits;

/// Objects that are being collected, and in the end committed together.
#[derive(Debug)]
pub(crate) struct Batch<'a> {
    store: &'a Store,
    /// How many clean-ups the store had seen when this batch began.
    collections: u64,
    /// The store had no object at all, so that nothing has to be looked up.
    empty: bool,
    effort: Effort,
    /// Bytes put so far, before compression.
    plain: AtomicU64,
    pending: Mutex<Pending>,
}

#[derive(Debug, Default)]
struct Pending {
    rows: Vec<(ObjectId, Location)>,
    known: HashSet<ObjectId>,
    segments: Vec<OpenSegment>,
    /// Bytes that may be stored.
    room: u64,
    /// Bytes that were to be stored.
    needed: u64,
    /// How many commits the store had seen when this batch began or last committed.
    commits: u64,
}

#[derive(Debug)]
struct OpenSegment {
    segment: Segment,
    committed: u64,
}

impl Store {
    /// Starts collecting objects. A batch is compressed with care for room as long as it is small: what is written at
    /// every turn. Beyond that it is done quickly, unless `effort` forbids it.
    pub(crate) fn batch(&self, effort: Effort) -> Result<Batch<'_>, StoreError> {
        self.check_tails_once()?;
        let (collections, commits, empty) = {
            let db = self.db();
            let empty = db.read(|c| c.query_row("SELECT NOT EXISTS (SELECT 1 FROM objects)", [], |row| row.get(0)))?;
            (db.counter("collections")?, db.counter("commits")?, empty)
        };
        let used = self.committed_bytes()?.saturating_add(self.bytes_beside_packs()?);
        let room = self.budget.saturating_sub(used);
        let pending = Pending { room, commits, needed: gc::COMMIT_BYTES, ..Pending::default() };
        Ok(Batch { store: self, collections, empty, effort, plain: AtomicU64::new(0), pending: Mutex::new(pending) })
    }

    /// Starts collecting objects that are stored whatever the budget says: because of them others can go.
    pub(crate) fn batch_beyond_budget(&self) -> Result<Batch<'_>, StoreError> {
        let batch = self.batch(Effort::Small)?;
        lock(&batch.pending).room = u64::MAX;
        Ok(batch)
    }
}

impl<'a> Batch<'a> {
    /// The store that this batch goes to.
    pub(crate) fn store(&self) -> &'a Store {
        self.store
    }

    /// Whether `id` need not be put any more.
    pub(crate) fn has(&self, id: &ObjectId) -> Result<bool, StoreError> {
        if lock(&self.pending).known.contains(id) {
            return Ok(true);
        }
        Ok(!self.empty && self.store.contains(id)?)
    }

    /// Stores an object under its id unless it is already there. Compresses on the calling thread.
    pub(crate) fn put(&self, kind: ObjectKind, id: ObjectId, plain: &[u8]) -> Result<(), StoreError> {
        if self.has(&id)? {
            return Ok(());
        }
        let before = self.plain.fetch_add(plain.len() as u64, Ordering::Relaxed);
        let effort = if before < limits::QUICK_FROM { Effort::Small } else { self.effort };
        let record = record::encode(kind, id, plain, effort);
        let mut pending = lock(&self.pending);
        if !pending.known.insert(id) {
            return Ok(());
        }
        pending.needed += record.len() as u64 + gc::ROW_BYTES;
        // Beyond the budget nothing is stored any more, but it is still counted: how much room is needed decides what to do.
        if pending.needed > pending.room {
            return Ok(());
        }
        let location = self.append(&mut pending, &record)?;
        pending.rows.push((id, location));
        Ok(())
    }

    fn append(&self, pending: &mut Pending, record: &[u8]) -> Result<Location, StoreError> {
        if pending.segments.last().is_none_or(|open| !open.segment.has_room()) {
            if let Some(full) = pending.segments.last_mut() {
                full.segment.flush()?;
            }
            let kept = lock(&self.store.segment).take();
            let kept = kept.filter(|segment| segment.has_room() && segment.is_linked());
            let segment = kept.map_or_else(|| self.store.acquire_segment(), Ok)?;
            pending.segments.push(OpenSegment { committed: segment.end(), segment });
        }
        let open = pending.segments.last_mut().expect("just made sure of one");
        let offset = open.segment.append(record)?;
        let len = u32::try_from(record.len()).expect("objects are chunked long before 4 GiB");
        Ok(Location { pack: open.segment.id, offset, len })
    }

    /// Bytes needed, if they are more than the budget leaves.
    pub(crate) fn over_budget(&self) -> Option<u64> {
        let pending = lock(&self.pending);
        (pending.needed > pending.room).then_some(pending.needed)
    }

    /// Whether the same objects could be stored in less room.
    pub(crate) fn could_be_smaller(&self) -> bool {
        self.effort == Effort::Quick && self.plain.load(Ordering::Relaxed) > limits::QUICK_FROM
    }

    /// Commits all objects so far, together with what `also` writes.
    pub(crate) fn commit<T>(
        &self,
        durability: Durability,
        also: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut pending = lock(&self.pending);
        for open in &mut pending.segments {
            open.segment.flush()?;
            if durability == Durability::Synced && open.segment.end() > open.committed {
                open.segment.sync()?;
            }
        }
        // Neighbouring keys share pages: sorted rows go in several times faster.
        pending.rows.sort_unstable_by_key(|(id, _)| *id);
        let beside = self.store.bytes_beside_packs()?;
        let committed = self.store.db().transaction(durability, |tx| {
            if db::counter_in(tx, "collections")? != self.collections {
                return Err(StoreError::Collected);
            }
            let others_committed = db::counter_in(tx, "commits")? != pending.commits;
            let inserted = insert_rows(tx, &pending.rows, &lock(&self.store.lost)).map_err(db::in_transaction(tx))?;
            // Another process was quicker with the same contents, or took the room: begin again, with less to store.
            if others_committed
                && (inserted < pending.rows.len() || self.committed_with(tx, &pending)? + beside > self.store.budget)
            {
                return Err(StoreError::Collected);
            }
            for open in &pending.segments {
                let end = open.segment.end();
                if end > open.committed {
                    db::set_pack_lengths(tx, open.segment.id, end, (durability == Durability::Synced).then_some(end))?;
                }
            }
            also(tx)
        });
        let value = match committed {
            Ok(value) => value,
            Err(err) => {
                // A commit that failed late may count all the same once the log is read again: nothing is cut off here. Whoever
                // adopts these segments asks the database first.
                pending.segments.clear();
                return Err(err);
            }
        };
        pending.rows.clear();
        pending.commits = self.store.db().counter("commits")?;
        for open in &mut pending.segments {
            open.committed = open.segment.end();
        }
        Ok(value)
    }

    /// Bytes of contents that will count once this batch is committed.
    fn committed_with(&self, tx: &Transaction<'_>, pending: &Pending) -> Result<u64, StoreError> {
        let committed: u64 = tx
            .query_row("SELECT coalesce(sum(committed), 0) FROM packs", [], |row| row.get(0))
            .map_err(db::in_transaction(tx))?;
        let ours: u64 = pending.segments.iter().map(|open| open.segment.end() - open.committed).sum();
        Ok(committed + ours)
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        let pending = self.pending.get_mut().unwrap_or_else(PoisonError::into_inner);
        for mut open in pending.segments.drain(..) {
            // What was not committed is nobody's. If this fails the segment is not kept, and its next adopter cuts it.
            if open.segment.end() == open.committed || open.segment.truncate(open.committed).is_ok() {
                *lock(&self.store.segment) = Some(open.segment);
            }
        }
    }
}

/// Inserts rows that are not there yet, or that store again what was lost; returns how many.
fn insert_rows(tx: &Transaction<'_>, rows: &[(ObjectId, Location)], lost: &Lost) -> rusqlite::Result<usize> {
    let segments: Vec<String> = lost.segments.iter().map(SegmentId::to_string).collect();
    let mut insert = tx.prepare_cached(&format!(
        "INSERT INTO objects VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE
         SET pack = excluded.pack, offset = excluded.offset, len = excluded.len
         WHERE pack IN ({}) OR id IN (SELECT id FROM damaged)",
        segments.join(", ")
    ))?;
    let mut inserted = 0;
    for (id, at) in rows {
        inserted += insert.execute(params![&id.as_bytes()[..], at.pack, at.offset, at.len])?;
    }
    let mended = rows.iter().filter(|(id, _)| lost.objects.contains(id));
    for (id, _) in mended {
        tx.prepare_cached("DELETE FROM damaged WHERE id = ?")?.execute([&id.as_bytes()[..]])?;
    }
    tx.prepare_cached("UPDATE meta SET value = value + 1 WHERE key = 'commits'")?.execute([])?;
    Ok(inserted)
}
