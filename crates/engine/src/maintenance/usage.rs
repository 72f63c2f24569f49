//! What the store takes, and whether what it holds is undamaged.

use crate::base::progress::{NoProgress, Progress};
use crate::history::checkpoint::{self, Checkpoint};
use crate::maintenance::Maintenance;
use crate::store::{Damage, ObjectKind, StoreError, pack};
use crate::workspace::Workspace;

/// What the store takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Usage {
    /// Everything in the store's folder, in bytes.
    pub store_bytes: u64,
    /// Objects, in bytes.
    pub pack_bytes: u64,
    /// Files that hold objects.
    pub packs: u64,
    /// The database with its log, in bytes.
    pub database_bytes: u64,
    /// The scan index, in bytes.
    pub index_bytes: u64,
    /// Checkpoints.
    pub checkpoints: u64,
    /// Objects.
    pub objects: u64,
    /// Bytes that the store may take.
    pub budget: u64,
}

/// What an integrity check found.
#[derive(Clone, Debug, Default)]
pub struct Integrity {
    /// What is not as it was written.
    pub damage: Vec<Damage>,
    /// Checkpoints that are not whole any more; of all others every byte is.
    pub affected: Vec<Checkpoint>,
}

impl Maintenance<&Workspace> {
    /// Reads everything that is stored and says what is damaged, and which checkpoints need it.
    pub fn check(&self) -> Result<Integrity, StoreError> {
        self.0.maintenance().check_with(&NoProgress)
    }

    /// Like [`check`](Self::check), for somebody who waits.
    pub fn check_with(&self, progress: &dyn Progress) -> Result<Integrity, StoreError> {
        // Nobody cleans up meanwhile. A store that cannot be written to is not cleaned up by anybody.
        let _shared = self.0.store.share().ok();
        let mut checked = self.0.store.check(progress)?;
        let mut affected = Vec::new();
        for checkpoint in checkpoint::all(&self.0.store)? {
            let roots =
                [Some((checkpoint.snapshot.0, ObjectKind::Tree)), checkpoint.aside.map(|id| (id, ObjectKind::Aside))];
            let roots: Vec<_> = roots.into_iter().flatten().collect();
            if !self.0.store.is_whole(&roots, &mut checked)? {
                affected.push(checkpoint);
            }
        }
        Ok(Integrity { damage: checked.damage, affected })
    }

    /// Has what a check found damaged stored again by the next checkpoint, as far as it is still on disk. Earlier checkpoints
    /// that need it are whole again then.
    pub fn note_damage(&self, damage: &[Damage]) -> Result<(), StoreError> {
        self.0.store.note_damage(damage)
    }

    /// What the store takes.
    pub fn usage(&self) -> Result<Usage, StoreError> {
        let dir = self.0.store.dir();
        let len = |name: &str| dir.join(name).metadata().map_or(0, |meta| meta.len());
        let packs = pack::segments(&dir.join("packs"))?;
        let pack_len = |id: &u32| pack::segment_path(&dir.join("packs"), *id).metadata().map_or(0, |meta| meta.len());
        let count = |table: &str| {
            let sql = format!("SELECT count(*) FROM {table}");
            self.0.store.db().read(|connection| connection.query_row(&sql, [], |row| row.get(0)))
        };
        Ok(Usage {
            store_bytes: self.0.store.bytes()?,
            pack_bytes: packs.iter().map(pack_len).sum(),
            packs: packs.len() as u64,
            database_bytes: ["retake.db", "retake.db-wal", "retake.db-shm"].into_iter().map(len).sum(),
            index_bytes: len("index"),
            checkpoints: count("checkpoints")?,
            objects: count("objects")?,
            budget: self.0.store.budget(),
        })
    }
}
