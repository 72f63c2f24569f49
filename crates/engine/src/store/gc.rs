//! Making room: checkpoints that may go, objects nobody needs, segments with holes.
//!
//! Collecting never takes an object that a checkpoint reaches. A batch of another process that relied on objects without
//! a checkpoint yet notices by the store's counter of collections and starts over.

use std::collections::HashSet;

use rusqlite::params;

use super::pack::{self, SegmentId};
use super::{Durability, Kind, Location, Store, StoreError, content, db};
use crate::snapshot::tree::{self, decode_aside, decode_tree};
use crate::{ObjectId, limits};

/// Bytes that an object takes beside its record: its row, twice while it is in the log, and a share of the index.
pub(crate) const ROW_BYTES: u64 = 300;

/// Bytes that a commit may take in the database's log whatever is in it.
pub(crate) const COMMIT_BYTES: u64 = 64 << 10;

/// Bytes by which making room may itself enlarge the store: checkpoints go only if what they leave is surely enough.
const EVICTION_BYTES: u64 = 128 << 10;

/// How much of a segment may be holes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holes {
    /// A fourth: rewriting costs more than they do.
    Some,
    /// None: every byte counts.
    None,
}

/// What is reachable, and how much room it takes.
#[derive(Debug, Default)]
struct Live {
    ids: HashSet<ObjectId>,
    bytes: u64,
}

/// A checkpoint as far as collecting is concerned.
struct Point {
    seq: i64,
    pinned: bool,
    roots: Vec<(ObjectId, Kind)>,
}

impl Store {
    /// Removes the oldest unpinned checkpoints until `needed` more bytes fit the budget once the space is
    /// [reclaimed](Self::reclaim). `kept` are contents (with their sizes) that the checkpoint in the making relies on.
    /// Returns how many went; `None` if there can never be enough room, and then nothing is removed.
    pub(crate) fn evict(&self, needed: u64, kept: &[(ObjectId, u64)]) -> Result<Option<u64>, StoreError> {
        let mut live = Live::default();
        for &(id, size) in kept {
            self.mark_content(id, size, &mut live)?;
        }
        let points = self.points()?;
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
        self.db().transaction(Durability::Synced, |tx| {
            // A label that was given meanwhile counts.
            let mut delete = tx
                .prepare("DELETE FROM checkpoints WHERE seq = ? AND label IS NULL")
                .map_err(db::in_transaction(tx))?;
            for seq in &evicted {
                delete.execute([seq]).map_err(db::in_transaction(tx))?;
            }
            Ok(())
        })?;
        Ok(Some(evicted.len() as u64))
    }

    /// Removes what no checkpoint reaches and that is not in `kept`, down to the last hole.
    pub(crate) fn reclaim(&self, kept: &[(ObjectId, u64)]) -> Result<(), StoreError> {
        self.collect_to(kept, Holes::None)?;
        self.db().empty_log();
        Ok(())
    }

    /// Removes every object that no checkpoint reaches and that is not in `kept`, and the space it took.
    pub(crate) fn collect(&self, kept: &[(ObjectId, u64)]) -> Result<(), StoreError> {
        self.collect_to(kept, Holes::Some)
    }

    fn collect_to(&self, kept: &[(ObjectId, u64)], holes: Holes) -> Result<(), StoreError> {
        loop {
            let before = self.db().counter("commits")?;
            let mut live = Live::default();
            for &(id, size) in kept {
                self.mark_content(id, size, &mut live)?;
            }
            for point in self.points()? {
                self.mark_point(&point, &mut live)?;
            }
            let done = self.db().transaction(Durability::Synced, |tx| {
                let now: u64 = tx
                    .query_row("SELECT value FROM meta WHERE key = 'commits'", [], |row| row.get(0))
                    .map_err(db::in_transaction(tx))?;
                if now != before {
                    return Ok(false);
                }
                delete_dead(tx, &live.ids).map_err(db::in_transaction(tx))?;
                Ok(true)
            })?;
            // Somebody committed meanwhile: what is reachable has to be found out again.
            if done {
                break;
            }
        }
        for id in pack::segments(&self.packs)? {
            self.compact(id, holes)?;
        }
        Ok(())
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

    /// All checkpoints, newest first.
    fn points(&self) -> Result<Vec<Point>, StoreError> {
        self.db().read(|connection| {
            let mut statement = connection
                .prepare("SELECT seq, label IS NOT NULL, snapshot, aside, rules FROM checkpoints ORDER BY seq DESC")?;
            let rows = statement.query_map([], |row| {
                let id = |bytes: [u8; 32]| ObjectId::from_bytes(bytes);
                let mut roots = vec![(id(row.get(2)?), Kind::Tree), (id(row.get(4)?), Kind::Rules)];
                roots.extend(row.get::<_, Option<[u8; 32]>>(3)?.map(|aside| (id(aside), Kind::Aside)));
                Ok(Point { seq: row.get(0)?, pinned: row.get(1)?, roots })
            })?;
            rows.collect()
        })
    }

    fn mark_point(&self, point: &Point, live: &mut Live) -> Result<(), StoreError> {
        self.mark_roots(&point.roots, live)
    }

    fn mark_roots(&self, roots: &[(ObjectId, Kind)], live: &mut Live) -> Result<(), StoreError> {
        let mut queue = roots.to_vec();
        while let Some((id, kind)) = queue.pop() {
            if !self.mark(id, live)? {
                continue;
            }
            match kind {
                Kind::Tree => {
                    let tree = self.readable(id)?.and_then(|(_, bytes)| decode_tree(&bytes).ok()).unwrap_or_default();
                    for (_, node) in tree {
                        match node.kind {
                            tree::Kind::Directory => queue.push((node.content, Kind::Tree)),
                            _ => self.mark_content(node.content, node.size, live)?,
                        }
                    }
                }
                Kind::Aside => {
                    let aside = self.readable(id)?.and_then(|(_, bytes)| decode_aside(&bytes).ok()).unwrap_or_default();
                    queue.extend(aside.into_iter().filter_map(|entry| Some((entry.child?, Kind::Aside))));
                }
                Kind::Blob | Kind::Rules | Kind::Chunks => {}
            }
        }
        Ok(())
    }

    fn mark_content(&self, id: ObjectId, size: u64, live: &mut Live) -> Result<(), StoreError> {
        if !self.mark(id, live)? || size < limits::CHUNKED_FROM {
            return Ok(());
        }
        // A large file that is a single chunk is stored under one id, as that chunk.
        if let Some((Kind::Chunks, list)) = self.readable(id)? {
            for (chunk, _) in content::chunk_list(id, &list)? {
                self.mark(chunk, live)?;
            }
        }
        Ok(())
    }

    /// Marks an object; returns whether that was news.
    fn mark(&self, id: ObjectId, live: &mut Live) -> Result<bool, StoreError> {
        let news = live.ids.insert(id);
        if news {
            live.bytes += self.db().locate(&id)?.map_or(0, |location| u64::from(location.len) + ROW_BYTES);
        }
        Ok(news)
    }

    /// An object's bytes; `None` if they are damaged, which must not keep a clean-up from going on.
    fn readable(&self, id: ObjectId) -> Result<Option<(Kind, Vec<u8>)>, StoreError> {
        match self.read(id) {
            Ok(object) => Ok(Some(object)),
            Err(StoreError::Damaged { .. } | StoreError::Missing { .. }) => Ok(None),
            Err(err) => Err(err),
        }
    }

    /// Rewrites a segment without its holes, if they are worth it and nobody is writing to it.
    fn compact(&self, id: SegmentId, holes: Holes) -> Result<(), StoreError> {
        // Our own segment is given up first; the next batch adopts one again.
        super::lock(&self.segment).take_if(|segment| segment.id == id);
        let Some((file, path)) = pack::lock_segment(&self.packs, id)? else { return Ok(()) };
        let len = file.metadata().map_err(StoreError::io("read", &path))?.len();
        let mut rows = self.rows_in(id)?;
        // Of a segment that was cut short, what is left moves on.
        rows.retain(|(_, at)| at.offset + u64::from(at.len) <= len);
        let used: u64 = rows.iter().map(|(_, location)| u64::from(location.len)).sum();
        let tolerated = match holes {
            Holes::Some => used / 4,
            Holes::None => 0,
        };
        if len <= pack::SEGMENT_HEADER + used + tolerated {
            return Ok(());
        }
        if !rows.is_empty() {
            self.move_rows(&file, &rows, id)?;
        }
        self.db().transaction(Durability::Synced, |tx| {
            tx.execute("DELETE FROM objects WHERE pack = ?", [id])
                .and_then(|_| tx.execute("DELETE FROM packs WHERE id = ?", [id]))
                .map_err(db::in_transaction(tx))
        })?;
        crate::fault::step().and_then(|()| std::fs::remove_file(&path)).map_err(StoreError::io("remove", &path))?;
        super::lock(&self.open_packs).remove(&id);
        Ok(())
    }

    fn move_rows(
        &self,
        file: &std::fs::File,
        rows: &[(ObjectId, Location)],
        from: SegmentId,
    ) -> Result<(), StoreError> {
        let path = pack::segment_path(&self.packs, from);
        let mut target = self.start_segment()?;
        let mut moved = Vec::with_capacity(rows.len());
        for (id, at) in rows {
            let record = pack::read_record(file, at.offset, at.len as usize).map_err(StoreError::io("read", &path))?;
            moved.push((*id, target.append(&record)?));
        }
        target.flush()?;
        target.sync()?;
        self.db().transaction(Durability::Synced, |tx| {
            let mut update = tx
                .prepare("UPDATE objects SET pack = ?1, offset = ?2 WHERE id = ?3 AND pack = ?4")
                .map_err(db::in_transaction(tx))?;
            for (id, offset) in &moved {
                update.execute(params![target.id, offset, &id.as_bytes()[..], from]).map_err(db::in_transaction(tx))?;
            }
            db::set_pack_lengths(tx, target.id, target.end(), Some(target.end()))
        })
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

fn delete_dead(tx: &rusqlite::Transaction<'_>, live: &HashSet<ObjectId>) -> rusqlite::Result<()> {
    let mut dead: Vec<[u8; 32]> = Vec::new();
    {
        let mut all = tx.prepare("SELECT id FROM objects")?;
        let mut rows = all.query([])?;
        while let Some(row) = rows.next()? {
            let id: [u8; 32] = row.get(0)?;
            if !live.contains(&ObjectId::from_bytes(id)) {
                dead.push(id);
            }
        }
    }
    let mut delete = tx.prepare("DELETE FROM objects WHERE id = ?")?;
    for id in &dead {
        delete.execute([&id[..]])?;
    }
    tx.execute("UPDATE meta SET value = value + 1 WHERE key = 'collections'", [])?;
    Ok(())
}
