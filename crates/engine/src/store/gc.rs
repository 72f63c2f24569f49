//! Dead objects: forgetting everything that is not in a set of needed ones, and rewriting segments without it.
//!
//! What is needed is told by the layer that knows what refers to objects.

use std::collections::{HashMap, HashSet};

use super::compact::{Rewriting, Stopped, Work};
use super::{ObjectKind, Store, StoreError, pack};
use crate::base::id::ObjectId;
use crate::base::progress::Progress;

/// Bytes that an object takes beside its record: its row, twice while it is in the log, and a share of the index.
pub(crate) const ROW_BYTES: u64 = 300;

/// Bytes that a commit may take in the database's log whatever is in it.
pub(crate) const COMMIT_BYTES: u64 = 64 << 10;

/// Objects that nobody needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dead {
    /// How many.
    pub(crate) objects: u64,
    /// Bytes of records that hold nothing else.
    pub(crate) bytes: u64,
}

/// The columns of a checkpoint that [`roots`] reads.
pub(crate) const ROOTS: &str = "snapshot, aside, rules";

/// The objects from which everything that a checkpoint holds is reached.
pub(crate) fn roots(row: &rusqlite::Row<'_>) -> rusqlite::Result<Vec<(ObjectId, ObjectKind)>> {
    let id = |bytes: [u8; 32]| ObjectId::from_bytes(bytes);
    let mut roots = vec![(id(row.get(0)?), ObjectKind::Tree), (id(row.get(2)?), ObjectKind::Rules)];
    roots.extend(row.get::<_, Option<[u8; 32]>>(1)?.map(|aside| (id(aside), ObjectKind::Aside)));
    Ok(roots)
}

impl Store {
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
    pub(crate) fn bytes_beside_packs(&self) -> Result<u64, StoreError> {
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
pub(crate) fn find_dead(
    connection: &rusqlite::Connection,
    live: &HashSet<ObjectId>,
) -> rusqlite::Result<(Vec<[u8; 32]>, Dead)> {
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

/// Forgets the objects that are not in `live`.
pub(crate) fn delete_dead(tx: &rusqlite::Transaction<'_>, live: &HashSet<ObjectId>) -> rusqlite::Result<Dead> {
    let (ids, dead) = find_dead(tx, live)?;
    let mut delete = tx.prepare("DELETE FROM objects WHERE id = ?")?;
    for id in &ids {
        delete.execute([&id[..]])?;
    }
    tx.execute("UPDATE meta SET value = value + 1 WHERE key = 'collections'", [])?;
    Ok(dead)
}
