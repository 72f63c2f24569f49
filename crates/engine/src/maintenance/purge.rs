//! Purging: every stored version of a path goes for good.
//!
//! ```text
//! rewrite    every checkpoint gets trees without the path; rows that tell of it go        (one transaction)
//! flag       the same transaction says that bytes have yet to be removed
//! remove     the scan index, objects that nothing needs, every hole in every segment, free pages and log of the database
//! done       the flag goes
//! ```
//!
//! A crash before the transaction changes nothing. One after it leaves the flag, and the next clean-up or purge finishes.

use rusqlite::{Transaction, params};
use thiserror::Error;

use super::strip_paths::{Directory, Without};
use crate::base::fault;
use crate::base::id::ObjectId;
use crate::base::path::WorkspacePath;
use crate::base::progress::{Phase, Progress, Step};
use crate::history::operation::{self, Operation};
use crate::maintenance::Maintenance;
use crate::scan::ScanError;
use crate::store::compact::{Density, Holes, Reach, Rewriting};
use crate::store::db::in_transaction;
use crate::store::tree::decode_node;
use crate::store::{Durability, Store, StoreError};
use crate::workspace::Workspace;

/// What a purge did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Purged {
    /// Checkpoints that held something of it.
    pub checkpoints: u64,
    /// Different contents that were taken out of them.
    pub contents: u64,
    /// Of these, how many are still stored because another path holds them.
    pub still_stored: u64,
    /// Paths that hold these, one for each content.
    pub holders: Vec<WorkspacePath>,
    /// Paths that are still on disk: the next checkpoint captures them again.
    pub on_disk: Vec<WorkspacePath>,
    /// Bytes of the store before.
    pub bytes_before: u64,
    /// Bytes of the store afterwards.
    pub bytes_after: u64,
    /// Whether the caller stopped it: no checkpoint holds the path any more, but its bytes may not all be gone yet.
    pub stopped: bool,
}

/// A path was not purged, or not to the end.
#[derive(Debug, Error)]
pub enum PurgeError {
    /// An interrupted rewind has to be finished or taken back first; nothing was changed.
    #[error("an interrupted {} of `{}` has to be finished first", .operation.kind.name(), .operation.what)]
    Pending {
        /// The operation.
        operation: Box<Operation>,
    },
    /// No checkpoint holds the paths any more, but not all bytes could be removed; the next clean-up goes on.
    #[error("no checkpoint holds it any more, but its bytes are not all removed from the store")]
    Unfinished {
        /// Why.
        source: StoreError,
    },
    /// The store failed; nothing was changed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A checkpoint's new trees.
struct Update {
    seq: i64,
    directory: Directory,
    gaps: Option<u64>,
}

impl Workspace {
    fn rewrite_checkpoints(
        &self,
        paths: &[WorkspacePath],
        purged: &mut Purged,
        progress: &dyn Progress,
    ) -> Result<(), StoreError> {
        let store = &self.store;
        let batch = store.batch_beyond_budget()?;
        let mut without = Without::new(paths, &batch);
        let points = directories(store)?;
        let total = Some(points.len() as u64);
        let (mut updates, mut roots) = (Vec::new(), Vec::with_capacity(points.len()));
        for (done, (seq, old)) in points.into_iter().enumerate() {
            progress.report(Step { phase: Phase::Marking, done: done as u64, total });
            let directory = without.root(old)?;
            roots.push(directory.0);
            if directory != old {
                let gaps = directory.1.map_or(Ok(Some(0)), |aside| without.gap_count(aside))?;
                updates.push(Update { seq, directory, gaps });
            }
        }
        let mut held = without.still_held(&roots)?;
        for (path, content) in displaced_elsewhere(store, paths)? {
            if without.removed.contains_key(&content) {
                held.entry(content).or_insert_with(|| path.as_bytes().to_vec());
            }
        }
        purged.checkpoints = updates.len() as u64;
        purged.contents = without.removed.len() as u64;
        purged.still_stored = held.len() as u64;
        purged.holders = held.values().filter_map(|path| WorkspacePath::parse(path).ok()).collect();
        purged.holders.sort();
        purged.holders.dedup();
        batch.commit(Durability::Synced, |tx| {
            for update in &updates {
                apply(tx, update)?;
            }
            paths.iter().try_for_each(|path| delete_rows(tx, path))?;
            tx.execute("INSERT OR REPLACE INTO meta VALUES ('purging', 1)", []).map_err(in_transaction(tx))
        })?;
        Ok(())
    }

    /// Removes the bytes of what a purge took out of the checkpoints; returns whether all of them are gone. Only for whoever owns
    /// the store.
    pub(super) fn remove_purged(&mut self, progress: &dyn Progress) -> Result<bool, StoreError> {
        self.store.db().erase_deleted()?;
        self.drop_index()?;
        self.store.collect_dead(&[], progress)?;
        let how =
            Rewriting { holes: Holes::None, density: Density::Trimmed, reach: Reach::All, threads: self.env.threads };
        if self.store.rewrite(&how, progress)?.is_some() {
            return Ok(false);
        }
        let mut db = self.store.db();
        db.rewrite()?;
        db.transaction(Durability::Synced, |tx| {
            tx.execute("DELETE FROM meta WHERE key = 'purging'", []).map(drop).map_err(in_transaction(tx))
        })?;
        Ok(true)
    }

    /// The scan index holds names and hashes of what was purged.
    fn drop_index(&mut self) -> Result<(), StoreError> {
        for name in ["index", "index.new"] {
            let path = self.store.dir().join(name);
            match fault::step().and_then(|()| std::fs::remove_file(&path)) {
                Err(err) if err.kind() != std::io::ErrorKind::NotFound => {
                    return Err(StoreError::io("remove", &path)(err));
                }
                _ => {}
            }
        }
        self.reopen_scanner().map_err(|err| match err {
            ScanError::Store(err) => err,
            ScanError::Root { root, source } => StoreError::io("read", &root)(source),
            ScanError::Cancelled => StoreError::Collected,
        })
    }
}

impl Maintenance<&Workspace> {
    /// Whether a purge was interrupted before all bytes were removed.
    pub fn is_purge_unfinished(&self) -> Result<bool, StoreError> {
        self.0.store.db().read(|connection| {
            connection.query_row("SELECT EXISTS (SELECT 1 FROM meta WHERE key = 'purging')", [], |row| row.get(0))
        })
    }
}

impl Maintenance<&mut Workspace> {
    /// Removes every stored version of `paths`, and of everything below them, from all checkpoints, labelled ones too.
    ///
    /// The paths become gaps of the checkpoints that held them, so that a rewind neither restores nor deletes them. Files on disk are
    /// not touched. What else a checkpoint holds stays as it was.
    pub fn purge(&mut self, paths: &[WorkspacePath], progress: &dyn Progress) -> Result<Purged, PurgeError> {
        let _own = self.0.store.own()?;
        if let Some(operation) = operation::pending(&self.0.store)? {
            return Err(PurgeError::Pending { operation: Box::new(operation) });
        }
        let mut purged = Purged { bytes_before: self.0.store.bytes()?, ..Purged::default() };
        self.0.store.db().erase_deleted()?;
        self.0.rewrite_checkpoints(paths, &mut purged, progress)?;
        let removed = self.0.remove_purged(progress).map_err(|source| PurgeError::Unfinished { source })?;
        purged.stopped = !removed;
        let is_there = |path: &&WorkspacePath| self.0.env.root.join(path.to_path()).symlink_metadata().is_ok();
        purged.on_disk = paths.iter().filter(is_there).cloned().collect();
        purged.bytes_after = self.0.store.bytes()?;
        Ok(purged)
    }
}

/// All checkpoints' roots, by row number.
fn directories(store: &Store) -> Result<Vec<(i64, Directory)>, StoreError> {
    store.db().read(|connection| {
        let mut statement = connection.prepare("SELECT seq, snapshot, aside FROM checkpoints ORDER BY seq")?;
        let rows = statement.query_map([], |row| {
            let aside = row.get::<_, Option<[u8; 32]>>(2)?.map(ObjectId::from_bytes);
            Ok((row.get(0)?, (ObjectId::from_bytes(row.get(1)?), aside)))
        })?;
        rows.collect()
    })
}

/// What operations displaced at other paths than `paths`.
fn displaced_elsewhere(store: &Store, paths: &[WorkspacePath]) -> Result<Vec<(WorkspacePath, ObjectId)>, StoreError> {
    let rows: Vec<(Vec<u8>, Vec<u8>)> = store.db().read(|connection| {
        let mut statement = connection.prepare("SELECT path, node FROM displaced")?;
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
    })?;
    let parsed =
        rows.iter().filter_map(|(path, node)| Some((WorkspacePath::parse(path).ok()?, decode_node(node)?.content)));
    Ok(parsed.filter(|(path, _)| !paths.iter().any(|purged| path.starts_with(purged))).collect())
}

fn apply(tx: &Transaction<'_>, update: &Update) -> Result<(), StoreError> {
    let (tree, aside) = &update.directory;
    tx.prepare_cached("UPDATE checkpoints SET snapshot = ?, aside = ?, gaps = coalesce(?, gaps) WHERE seq = ?")
        .and_then(|mut statement| {
            let aside = aside.as_ref().map(|id| &id.as_bytes()[..]);
            statement.execute(params![&tree.as_bytes()[..], aside, update.gaps, update.seq])
        })
        .map(drop)
        .map_err(in_transaction(tx))
}

/// Deletes every row that tells of `path` or of something below it.
fn delete_rows(tx: &Transaction<'_>, path: &WorkspacePath) -> Result<(), StoreError> {
    let (mut low, mut high) = (path.as_bytes().to_vec(), path.as_bytes().to_vec());
    low.push(b'/');
    high.push(b'/' + 1);
    for table in ["changes", "displaced", "declared", "held", "wanted", "window_paths", "late_gaps"] {
        tx.execute(
            &format!("DELETE FROM {table} WHERE path = ?1 OR (path > ?2 AND path < ?3)"),
            params![path.as_bytes(), low, high],
        )
        .map_err(in_transaction(tx))?;
    }
    Ok(())
}
