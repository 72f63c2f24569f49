//! The store of one workspace: objects in packs, everything else in SQLite.
//!
//! ```text
//! retake.db   what exists and where      (SQLite, WAL; its -wal and -shm beside it)
//! packs/      objects, append-only       (one writer per segment)
//! index       the scan cache             (rebuildable; see `scan::index`)
//! workspace   which directory this is    (for finding moved workspaces)
//! ```
//!
//! Objects become visible when their rows commit. A [`Batch`] collects objects and commits them with whatever refers to
//! them in one transaction; dropped without a commit it leaves nothing. Every read is verified against the object's
//! hash; a damaged object is an error that names it, and everything else stays readable.

mod batch;
pub(crate) mod bundle;
mod check;
pub(crate) mod compact;
mod condense;
pub(crate) mod content;
pub(crate) mod db;
mod error;
pub(crate) mod gc;
mod loss;
pub(crate) mod pack;
pub(crate) mod record;
#[cfg(test)]
mod tests;
pub(crate) mod tree;

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::params;

pub use check::Damage;
pub use db::Durability;
pub use error::StoreError;

use crate::base::fault;
use crate::base::id::ObjectId;
use crate::base::plain_file;
pub(crate) use batch::Batch;
use bundle::Bundle;
pub(crate) use content::{CopyError, PutError};
use db::{Db, Location};
use loss::Lost;
use pack::{Segment, SegmentId};
pub(crate) use record::{Effort, ObjectKind};

/// Bundles that are kept decompressed: neighbours are often read one after the other.
const OPEN_BUNDLES: usize = 16;

/// An open store.
#[derive(Debug)]
pub(crate) struct Store {
    dir: PathBuf,
    packs: PathBuf,
    budget: u64,
    db: Mutex<Db>,
    open_packs: Mutex<HashMap<SegmentId, Arc<File>>>,
    /// The bundles that were read last, by segment and offset.
    bundles: Mutex<VecDeque<(SegmentId, u64, Arc<Bundle>)>>,
    /// The segment this process appends to, kept for as long as the store is open.
    segment: Mutex<Option<Segment>>,
    /// What does not count as stored although it is on record.
    lost: Mutex<Lost>,
    /// Whether all segments are known to hold what was committed to them before the store was opened.
    tails_checked: AtomicBool,
}

impl Store {
    /// Opens the store in `dir`, creating what is missing.
    pub(crate) fn open(dir: &Path, budget: u64) -> Result<Self, StoreError> {
        let packs = dir.join("packs");
        if !packs.is_dir() {
            create_private_dirs(&packs)?;
        }
        if is_network(dir) {
            return Err(StoreError::Network { path: dir.to_owned() });
        }
        refuse_orphans(dir, &packs)?;
        let db = Db::open(&dir.join("retake.db"))?;
        let store = Self {
            dir: dir.to_owned(),
            packs,
            budget,
            db: Mutex::new(db),
            open_packs: Mutex::default(),
            bundles: Mutex::default(),
            segment: Mutex::default(),
            lost: Mutex::default(),
            tails_checked: AtomicBool::new(false),
        };
        match store.check_tails_once() {
            // Whoever only reads can do without; a writer tries again.
            Err(
                StoreError::Io { .. }
                | StoreError::WrongKind { .. }
                | StoreError::DiskFull { .. }
                | StoreError::ReadOnly { .. },
            )
            | Ok(()) => Ok(store),
            Err(err) => Err(err),
        }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn budget(&self) -> u64 {
        self.budget
    }

    #[cfg(test)]
    pub(crate) fn set_budget(&mut self, budget: u64) {
        self.budget = budget;
    }

    pub(crate) fn db(&self) -> MutexGuard<'_, Db> {
        lock(&self.db)
    }

    /// Where `id` lies, for reading many objects in a good order; those that are nowhere come first.
    pub(crate) fn position(&self, id: &ObjectId) -> Option<(SegmentId, u64)> {
        self.db().locate(id).ok().flatten().map(|location| (location.pack, location.offset))
    }

    /// Whether `id` is stored, as far as is known without reading it.
    pub(crate) fn contains(&self, id: &ObjectId) -> Result<bool, StoreError> {
        let location = self.db().locate(id)?;
        Ok(location.is_some_and(|location| !lock(&self.lost).has(id, &location)))
    }

    /// Reads and verifies an object.
    pub(crate) fn read(&self, id: ObjectId) -> Result<(ObjectKind, Vec<u8>), StoreError> {
        let location = self.db().locate(&id)?.ok_or(StoreError::Missing { id })?;
        match self.read_at(location, id) {
            // A clean-up may have moved the object between the look-up and the read, or removed the segment that this process
            // has open and started another under its number.
            Err(first) => {
                lock(&self.open_packs).remove(&location.pack);
                let again = self.db().locate(&id)?;
                again.map_or(Err(first), |again| self.read_at(again, id))
            }
            sound => sound,
        }
    }

    /// An object's bytes; `None` if they are damaged, which must not keep a clean-up from going on.
    pub(crate) fn readable(&self, id: ObjectId) -> Result<Option<(ObjectKind, Vec<u8>)>, StoreError> {
        match self.read(id) {
            Ok(object) => Ok(Some(object)),
            Err(StoreError::Damaged { .. } | StoreError::Missing { .. }) => Ok(None),
            Err(err) => Err(err),
        }
    }

    fn read_at(&self, location: Location, id: ObjectId) -> Result<(ObjectKind, Vec<u8>), StoreError> {
        // Whatever was at this place before: an object is what its hash says.
        if let Some(object) = self.opened_bundle(location).and_then(|bundle| bundle.get(id).ok()) {
            return Ok(object);
        }
        let path = pack::segment_path(&self.packs, location.pack);
        let damaged = |what| StoreError::Damaged { id, pack: path.clone(), what };
        let file = self.pack_file(location.pack).map_err(|err| match err.kind() {
            std::io::ErrorKind::NotFound => damaged("its segment is missing"),
            _ if plain_file::not_a_file(&err).is_some() => damaged("its segment is not a file"),
            _ => StoreError::io("open", &path)(err),
        })?;
        let bytes =
            pack::read_record(&file, location.offset, location.len as usize).map_err(|err| match err.kind() {
                std::io::ErrorKind::UnexpectedEof => damaged("its segment is cut short"),
                _ => StoreError::io("read", &path)(err),
            })?;
        let decoded = match bundle::count(&bytes) {
            None => record::decode(&bytes, id),
            Some(_) => bundle::decode(&bytes).and_then(|bundle| {
                let object = bundle.get(id);
                self.keep_bundle(location, bundle);
                object
            }),
        };
        decoded.map_err(|torn| damaged(torn.0))
    }

    fn opened_bundle(&self, at: Location) -> Option<Arc<Bundle>> {
        let bundles = lock(&self.bundles);
        let found = bundles.iter().find(|(pack, offset, _)| (*pack, *offset) == (at.pack, at.offset));
        found.map(|(_, _, bundle)| Arc::clone(bundle))
    }

    fn keep_bundle(&self, at: Location, bundle: Bundle) {
        let mut bundles = lock(&self.bundles);
        bundles.retain(|(pack, offset, _)| (*pack, *offset) != (at.pack, at.offset));
        if bundles.len() >= OPEN_BUNDLES {
            bundles.pop_front();
        }
        bundles.push_back((at.pack, at.offset, Arc::new(bundle)));
    }

    fn pack_file(&self, id: SegmentId) -> std::io::Result<Arc<File>> {
        let mut open = lock(&self.open_packs);
        if let Some(file) = open.get(&id) {
            return Ok(Arc::clone(file));
        }
        let file = Arc::new(plain_file::open(&pack::segment_path(&self.packs, id))?);
        open.insert(id, Arc::clone(&file));
        Ok(file)
    }

    /// Keeps files from being rewound as long as the result lives. Waits while that happens.
    pub(crate) fn share(&self) -> Result<File, StoreError> {
        let (path, file) = self.lock_file()?;
        file.lock_shared().map(|()| file).map_err(StoreError::io("lock", &path))
    }

    /// Keeps everybody else from taking checkpoints, rewinding and cleaning up as long as the result lives. Waits for
    /// whoever is at it.
    pub(crate) fn own(&self) -> Result<File, StoreError> {
        let (path, file) = self.lock_file()?;
        file.lock().map(|()| file).map_err(StoreError::io("lock", &path))
    }

    fn lock_file(&self) -> Result<(PathBuf, File), StoreError> {
        use std::os::unix::fs::OpenOptionsExt;
        if !self.db().writable {
            return Err(StoreError::ReadOnly { path: self.dir.clone() });
        }
        let path = self.dir.join("lock");
        let mut options = std::fs::OpenOptions::new();
        let file = plain_file::open_with(options.write(true).create(true).truncate(false).mode(0o600), &path);
        match file {
            Ok(file) => Ok((path, file)),
            Err(err) if err.kind() == std::io::ErrorKind::PermissionDenied => {
                Err(StoreError::ReadOnly { path: self.dir.clone() })
            }
            Err(err) => Err(StoreError::io("create", &path)(err)),
        }
    }

    /// Bytes on disk of everything in the store's folder.
    pub(crate) fn bytes(&self) -> Result<u64, StoreError> {
        let mut total = 0;
        for dir in [&self.dir, &self.packs] {
            for entry in dir.read_dir().map_err(StoreError::io("list", dir))? {
                match entry.and_then(|entry| entry.metadata()) {
                    Ok(meta) if meta.is_file() => total += meta.len(),
                    Ok(_) => {}
                    // Another process has renamed or removed it since it was listed.
                    Err(err) if err.kind() == std::io::ErrorKind::NotFound => {}
                    Err(err) => return Err(StoreError::io("list", dir)(err)),
                }
            }
        }
        Ok(total)
    }

    fn acquire_segment(&self) -> Result<Segment, StoreError> {
        self.trim_tails()?;
        let segment = Segment::acquire(&self.packs, |id| self.db().pack_lengths(id))?;
        segment.map_or_else(|| self.start_segment(), Ok)
    }

    /// Starts a segment under a number that was never used: rows may still point to one that is missing.
    fn start_segment(&self) -> Result<Segment, StoreError> {
        let last = self.committed()?.last().map_or(0, |(id, _)| *id);
        Segment::start_new(&self.packs, last)
    }

    fn check_tails_once(&self) -> Result<(), StoreError> {
        if !self.tails_checked.load(Ordering::Relaxed) {
            self.check_tails()?;
            self.tails_checked.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// After power loss, rows may have survived whose records did not: forgets those. A segment that another process
    /// writes to has been checked by it.
    fn check_tails(&self) -> Result<(), StoreError> {
        let db = self.db();
        if !db.writable {
            return Ok(());
        }
        let unsynced: Vec<SegmentId> = db.read(|connection| {
            let mut statement = connection.prepare("SELECT id FROM packs WHERE synced < committed")?;
            statement.query_map([], |row| row.get(0))?.collect()
        })?;
        drop(db);
        for id in unsynced {
            let Some((file, path)) = pack::lock_segment(&self.packs, id)? else { continue };
            // Only now: whoever had the lock until a moment ago may have committed more.
            let Some((committed, synced)) = self.db().pack_lengths(id)? else { continue };
            let sound = pack::sound_until(&file, synced, committed).map_err(StoreError::io("read", &path))?;
            file.sync_data().map_err(StoreError::io("sync", &path))?;
            pack::sync_names(&self.packs)?;
            self.db().transaction(Durability::Synced, |tx| {
                if sound < committed {
                    tx.execute("DELETE FROM objects WHERE pack = ? AND offset >= ?", params![id, sound])
                        .and_then(|_| tx.execute("UPDATE meta SET value = value + 1 WHERE key = 'collections'", []))
                        .map_err(db::in_transaction(tx))?;
                }
                // Not if it was rewritten meanwhile and its row is gone.
                tx.execute("UPDATE packs SET committed = ?2, synced = ?2 WHERE id = ?1", params![id, sound])
                    .map(drop)
                    .map_err(db::in_transaction(tx))
            })?;
        }
        Ok(())
    }

    /// Makes everything committed so far survive power loss. Meant for a moment when nobody waits.
    pub(crate) fn sync(&self) -> Result<(), StoreError> {
        let segment = lock(&self.segment);
        let Some(segment) = segment.as_ref().filter(|segment| segment.is_linked()) else { return Ok(()) };
        let Some((committed, synced)) = self.db().pack_lengths(segment.id)? else { return Ok(()) };
        if synced < committed {
            segment.sync()?;
            self.db().transaction(Durability::Synced, |tx| {
                // Not if it was rewritten meanwhile and its row is gone.
                tx.execute("UPDATE packs SET synced = ?2 WHERE id = ?1", params![segment.id, committed])
                    .map(drop)
                    .map_err(db::in_transaction(tx))
            })?;
        }
        Ok(())
    }
}

/// Contents without a database are somebody's history: they are not written over, and their owner is told.
fn refuse_orphans(dir: &Path, packs: &Path) -> Result<(), StoreError> {
    let holds_records =
        |id: &SegmentId| pack::segment_path(packs, *id).metadata().is_ok_and(|meta| meta.len() > pack::SEGMENT_HEADER);
    // The contents first: another process that makes this store at the moment makes its database before any of them.
    let has_contents = pack::segments(packs)?.iter().any(holds_records);
    fault::place("store-contents-seen");
    let database = dir.join("retake.db");
    plain_file::require(&database).map_err(StoreError::io("open", &database))?;
    if has_contents && !database.metadata().is_ok_and(|meta| meta.len() > 0) {
        return Err(StoreError::Orphaned { path: dir.to_owned() });
    }
    Ok(())
}

/// Locks `mutex`; a panic elsewhere leaves nothing half-done that the next user could not see.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Creates `dir` and its missing parents, readable by the owner alone.
pub(crate) fn create_private_dirs(dir: &Path) -> Result<(), StoreError> {
    crate::base::fault::step()
        .and_then(|()| std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir))
        .map_err(StoreError::io("create", dir))
}

/// Waits for this process's turn to create something in `dir`; the turn ends when the file is dropped.
pub(crate) fn take_turn(dir: &Path) -> Result<File, StoreError> {
    File::open(dir).and_then(|file| file.lock().map(|()| file)).map_err(StoreError::io("lock", dir))
}

/// Makes an existing directory private.
pub(crate) fn make_private(dir: &Path) -> Result<(), StoreError> {
    let meta = dir.metadata().map_err(StoreError::io("read", dir))?;
    if meta.permissions().mode() & 0o077 != 0 {
        std::fs::set_permissions(dir, PermissionsExt::from_mode(0o700)).map_err(StoreError::io("protect", dir))?;
    }
    Ok(())
}

/// SQLite's write-ahead log needs memory shared between all its users, which these file systems do not give.
#[cfg(target_os = "linux")]
fn is_network(dir: &Path) -> bool {
    const NETWORK: [u32; 7] = [0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42, 0x5346_414f, 0x7375_7245, 0x00c3_6400];
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the magic numbers have 32 bits")]
    rustix::fs::statfs(dir).is_ok_and(|fs| NETWORK.contains(&(fs.f_type as u32)))
}

#[cfg(not(target_os = "linux"))]
fn is_network(_dir: &Path) -> bool {
    false
}
