//! The door to the engine: one workspace, its store and its scanner.

use std::collections::{BTreeSet, HashMap};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Mutex;

use rusqlite::params;

use crate::checkpoint::{self, check_label, refuse_taken};
use crate::scan::rules::Rules;
use crate::scan::{Counters, ScanError, Scanner, Sink};
use crate::snapshot::{aside, diff, tree};
use crate::store::db::in_transaction;
use crate::store::{Batch, Effort, Kind, PutError, Store, lock, pack};
use crate::view::{self, Hashing};
use crate::{
    Change, Changed, Checkpoint, CheckpointError, CheckpointId, ContentError, Current, Damage, Durability, Environment,
    Gap, GapKind, NewCheckpoint, NoProgress, Node, ObjectId, OpenError, Progress, ResolveError, Side, SnapshotId,
    StoreError, WatchState, WorkspacePath, git, place,
};

/// A directory whose states are kept.
#[derive(Debug)]
pub struct Workspace {
    env: Environment,
    store: Store,
    scanner: Scanner,
}

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

/// What a verifying scan found.
#[derive(Clone, Debug)]
pub enum Verified {
    /// The watch had reported everything.
    Sound,
    /// Changes had gone unreported: they are in this new checkpoint, and gaps of the one before it.
    Missed(Box<Checkpoint>),
}

impl Workspace {
    /// Whether `root` already is a workspace; an error if that cannot be found out.
    pub fn exists(data_dir: &Path, root: &Path) -> Result<bool, OpenError> {
        place::exists(data_dir, root)
    }

    /// Opens a workspace that has checkpoints already.
    pub fn open(mut env: Environment) -> Result<Self, OpenError> {
        if !place::prepare(&mut env)? {
            return Err(match place::moved_from(&env) {
                Some(from) => OpenError::Moved { root: env.root, from },
                None => OpenError::NotAWorkspace { root: env.root },
            });
        }
        let dir = place::store_dir(&env.data_dir, &env.root);
        Self::open_in(env, &dir)
    }

    /// Opens a workspace, making the directory one if it is none yet.
    pub fn open_or_create(mut env: Environment) -> Result<Self, OpenError> {
        let dir = match place::prepare(&mut env)? {
            true => place::store_dir(&env.data_dir, &env.root),
            false => place::create(&env)?,
        };
        Self::open_in(env, &dir)
    }

    /// Takes over the checkpoints of the workspace that was at `from` before it was moved here.
    pub fn relink(mut env: Environment, from: &Path) -> Result<Self, OpenError> {
        place::prepare(&mut env)?;
        let dir = place::relink(&env, from)?;
        Self::open_in(env, &dir)
    }

    fn open_in(env: Environment, dir: &Path) -> Result<Self, OpenError> {
        let store = Store::open(dir, env.settings.budget)?;
        let scanner = Scanner::open(&env.root, dir, env.threads)?;
        Ok(Self { env, store, scanner })
    }

    /// The directory.
    pub fn root(&self) -> &Path {
        &self.env.root
    }

    /// The folder of the store.
    pub fn store_dir(&self) -> &Path {
        self.store.dir()
    }

    /// Takes a checkpoint of everything on disk now.
    ///
    /// With [`Durability::Synced`] it survives power loss once this returns. A cancelled or failed call changes nothing,
    /// but what was read is kept, so that the next one is quicker.
    #[expect(clippy::needless_pass_by_value, reason = "an id is for one checkpoint only")]
    pub fn checkpoint(
        &mut self,
        new: NewCheckpoint,
        durability: Durability,
        progress: &dyn Progress,
    ) -> Result<Checkpoint, CheckpointError> {
        let label = new.label.as_deref();
        label.map_or(Ok(()), check_label)?;
        let taken = self.store.db().read(|connection| checkpoint::holder(connection, label, new.id))?;
        refuse_taken(label, taken)?;
        let mut removed = 0;
        self.checkpoint_making_room(&new, durability, progress, &mut removed).map_err(|err| match removed {
            0 => err,
            _ => CheckpointError::RoomMade { removed, source: Box::new(err) },
        })
    }

    /// Takes a checkpoint and counts in `removed` how many older ones had to go, even if it fails in the end.
    fn checkpoint_making_room(
        &mut self,
        new: &NewCheckpoint,
        durability: Durability,
        progress: &dyn Progress,
        removed: &mut u64,
    ) -> Result<Checkpoint, CheckpointError> {
        let mut room_made = false;
        let mut effort = Effort::Quick;
        loop {
            match self.try_checkpoint(new, effort, durability, progress) {
                Ok(checkpoint) => return Ok(checkpoint),
                // Somebody cleaned up meanwhile: look again at what is still there.
                Err(Failure::Other(CheckpointError::Store(StoreError::Collected))) => self.reopen_scanner()?,
                Err(Failure::OverBudget { smaller: true, .. }) => {
                    self.reopen_scanner()?;
                    effort = Effort::Small;
                }
                Err(Failure::OverBudget { needed, .. }) => {
                    let kept = self.scanner.contents();
                    self.reopen_scanner()?;
                    let evicted = if room_made { None } else { self.store.evict(needed, &kept)? };
                    let Some(evicted) = evicted else {
                        self.store.collect(&[])?;
                        return Err(CheckpointError::Budget { budget: self.store.budget(), needed });
                    };
                    *removed += evicted;
                    self.store.reclaim(&kept)?;
                    room_made = true;
                }
                Err(Failure::Other(err)) => {
                    // The index in memory may claim contents that were never committed.
                    self.reopen_scanner()?;
                    return Err(err);
                }
            }
        }
    }

    fn try_checkpoint(
        &mut self,
        new: &NewCheckpoint,
        effort: Effort,
        durability: Durability,
        progress: &dyn Progress,
    ) -> Result<Checkpoint, Failure> {
        let store = &self.store;
        if store.find_losses()? {
            self.scanner.recheck_contents(|id, size| store.contains_content(*id, size))?;
        }
        self.scanner.fit_to(counters(store)?, |id, _| store.contains(id))?;
        let rules = self.rules()?;
        let git = git::state(&self.env.root);
        let sink = Storing { batch: self.store.batch(effort)?, trees: Mutex::default() };
        let scanned = self.scanner.scan(&rules, &sink, progress)?;
        let rules_id = ObjectId::of(&rules.described);
        sink.batch.put(Kind::Rules, rules_id, &rules.described)?;
        if let Some(needed) = sink.batch.over_budget() {
            return Err(Failure::OverBudget { needed, smaller: sink.batch.could_be_smaller() });
        }
        let changed = self.changed_since_last(scanned.snapshot.0, &sink)?;
        let checkpoint = Checkpoint {
            id: new.id,
            snapshot: scanned.snapshot,
            at: new.at,
            label: new.label.clone(),
            changed,
            gap_count: scanned.gap_count,
            git,
            aside: scanned.aside,
        };
        let taken = sink.batch.commit(durability, |tx| checkpoint::insert(tx, &checkpoint, rules_id))?;
        refuse_taken(checkpoint.label.as_deref(), taken)?;
        let after = counters(&self.store);
        drop(sink);
        // The checkpoint is made and stays: an index that cannot be saved costs the next one time, nothing else.
        after.and_then(|after| self.scanner.save(after)).ok();
        Ok(checkpoint)
    }

    /// Counts what changed since the checkpoint before; since the last one that can be read, if that is damaged.
    fn changed_since_last(&self, now: ObjectId, sink: &Storing<'_>) -> Result<Changed, StoreError> {
        let stored = |id| view::load_tree(&self.store, &Side::Stored(SnapshotId(id)), id);
        let fresh = |id| match lock(&sink.trees).get(&id) {
            Some(bytes) => tree::decode_tree(bytes).map_err(|_| StoreError::Malformed { id, expected: "directory" }),
            None => stored(id),
        };
        let mut before = checkpoint::newest(&self.store)?.map(|newest| newest.snapshot.0);
        loop {
            let from: Option<(ObjectId, &diff::Load<'_>)> = before.map(|id| (id, &stored as _));
            match diff::diff(from, Some((now, &fresh))) {
                Ok(changes) => return Ok(Changed::count(&changes)),
                Err(StoreError::Damaged { .. } | StoreError::Missing { .. }) if before.is_some() => {
                    before = checkpoint::all(&self.store)?
                        .iter()
                        .map(|older| older.snapshot.0)
                        .skip_while(|id| Some(*id) != before)
                        .find(|id| Some(*id) != before);
                }
                Err(err) => return Err(err),
            }
        }
    }

    fn rules(&self) -> Result<Rules, StoreError> {
        let declared = self.store.db().read(|connection| {
            let mut statement = connection.prepare_cached("SELECT path FROM declared")?;
            let rows = statement.query_map([], |row| row.get::<_, Vec<u8>>(0))?;
            rows.collect::<rusqlite::Result<BTreeSet<_>>>()
        })?;
        Ok(Rules::collect(&self.env, declared))
    }

    fn reopen_scanner(&mut self) -> Result<(), ScanError> {
        let watched = matches!(self.scanner.watch_state(), WatchState::Watching { .. });
        self.scanner = Scanner::open(&self.env.root, self.store.dir(), self.env.threads)?;
        if watched {
            self.scanner.start_watch();
        }
        Ok(())
    }

    /// Announces that a tool is about to write `path`: it is captured from now on whatever the rules say.
    pub fn declare(&mut self, path: &WorkspacePath) -> Result<(), StoreError> {
        self.store.db().transaction(Durability::Soon, |tx| {
            tx.execute("INSERT OR IGNORE INTO declared VALUES (?)", [path.as_bytes()])
                .map(drop)
                .map_err(in_transaction(tx))
        })
    }

    /// Starts watching the workspace, so that checkpoints of this process take time only for what changed.
    pub fn watch(&mut self) -> WatchState {
        self.scanner.start_watch()
    }

    /// Looks at everything although the workspace is watched; meant for idle moments. What the watch had not reported
    /// becomes the checkpoint `new`, and gaps of the newest one before.
    pub fn verify(&mut self, new: NewCheckpoint, progress: &dyn Progress) -> Result<Verified, CheckpointError> {
        let Some(previous) = checkpoint::newest(&self.store)? else { return Ok(Verified::Sound) };
        let missed = self.find_missed(progress);
        // Whatever came of it: the index in memory now claims contents that were only hashed.
        self.reopen_scanner()?;
        let missed = missed?;
        if missed.is_empty() {
            return Ok(Verified::Sound);
        }
        let checkpoint = self.checkpoint(new, Durability::Soon, &NoProgress)?;
        self.store.db().transaction(Durability::Soon, |tx| {
            let Some(seq) = checkpoint::sequence(tx, previous.id)? else { return Ok(()) };
            for change in &missed {
                tx.execute("INSERT OR IGNORE INTO late_gaps VALUES (?, ?)", params![seq, change.path.as_bytes()])
                    .map_err(in_transaction(tx))?;
            }
            Ok(())
        })?;
        Ok(Verified::Missed(Box::new(checkpoint)))
    }

    /// What is on disk and was not reported by the watch.
    fn find_missed(&mut self, progress: &dyn Progress) -> Result<Vec<Change>, CheckpointError> {
        let reported = self.scan_for_paths(progress, Thoroughness::AskWatch)?;
        let found = self.scan_for_paths(progress, Thoroughness::LookAtAll)?;
        let load = |side: &Current, id| view::load_tree(&self.store, &Side::Now(side), id);
        Ok(diff::diff(
            Some((reported.snapshot().0, &|id| load(&reported, id))),
            Some((found.snapshot().0, &|id| load(&found, id))),
        )?)
    }

    fn scan_for_paths(&mut self, progress: &dyn Progress, how: Thoroughness) -> Result<Current, CheckpointError> {
        let rules = self.rules()?;
        let sink = Hashing::default();
        let scanned = match how {
            Thoroughness::AskWatch => self.scanner.scan(&rules, &sink, progress)?,
            Thoroughness::LookAtAll => self.scanner.scan_fully(&rules, &sink, progress)?,
        };
        Ok(Current::without_gaps(scanned, sink, &self.env.root))
    }

    /// Makes checkpoints taken with [`Durability::Soon`] survive power loss; meant for a moment when nobody waits.
    pub fn sync(&self) -> Result<(), StoreError> {
        self.store.sync()
    }

    /// Hashes what is on disk now, without storing anything.
    pub fn current(&mut self, progress: &dyn Progress) -> Result<Current, ScanError> {
        let mut scanner = Scanner::open(&self.env.root, self.store.dir(), self.env.threads)?;
        let store = &self.store;
        scanner.fit_to(counters(store)?, |id, _| store.contains(id))?;
        let sink = Hashing::default();
        let scanned = scanner.scan(&self.rules()?, &sink, progress)?;
        Ok(Current::without_gaps(scanned, sink, &self.env.root).with_gaps(store)?)
    }

    /// All checkpoints, newest first.
    pub fn checkpoints(&self) -> Result<Vec<Checkpoint>, StoreError> {
        checkpoint::all(&self.store)
    }

    /// The checkpoint that `point` names: a label, or the beginning of an id.
    pub fn resolve(&self, point: &str) -> Result<Checkpoint, ResolveError> {
        checkpoint::resolve(&self.store, point)
    }

    /// Gives a checkpoint a label, or takes it away. A label that names another checkpoint is refused.
    pub fn set_label(&mut self, id: CheckpointId, label: Option<&str>) -> Result<(), CheckpointError> {
        label.map_or(Ok(()), check_label)?;
        let taken = self.store.db().transaction(Durability::Synced, |tx| checkpoint::set_label(tx, id, label))?;
        refuse_taken(label, taken)
    }

    /// Everything a checkpoint could not capture, by path.
    pub fn gaps(&self, checkpoint: &Checkpoint) -> Result<Vec<Gap>, StoreError> {
        let mut gaps = aside::gaps(checkpoint.aside, |id| self.store.read(id).map(|(_, bytes)| bytes))?;
        let late: Vec<Vec<u8>> = self.store.db().read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT path FROM late_gaps JOIN checkpoints ON checkpoint = seq WHERE id = ? ORDER BY path",
            )?;
            let rows = statement.query_map([&checkpoint.id.as_bytes()[..]], |row| row.get(0))?;
            rows.collect()
        })?;
        let late = late.iter().filter_map(|path| WorkspacePath::parse(path).ok());
        gaps.extend(late.map(|path| Gap { path, kind: GapKind::Missed }));
        Ok(gaps)
    }

    /// What differs between two sides, by path.
    pub fn diff(&self, from: &Side<'_>, to: &Side<'_>) -> Result<Vec<Change>, StoreError> {
        diff::diff(
            Some((view::root_tree(from), &|id| view::load_tree(&self.store, from, id))),
            Some((view::root_tree(to), &|id| view::load_tree(&self.store, to, id))),
        )
    }

    /// What is at `path`.
    pub fn entry(&self, side: &Side<'_>, path: &WorkspacePath) -> Result<Option<Node>, StoreError> {
        view::entry(&self.store, side, path)
    }

    /// The children of a directory by name; of the root for `None`. Empty if it is no directory.
    pub fn list(&self, side: &Side<'_>, dir: Option<&WorkspacePath>) -> Result<Vec<(Vec<u8>, Node)>, StoreError> {
        let tree = match dir {
            None => view::root_tree(side),
            Some(path) => match self.entry(side, path)? {
                Some(node) if node.kind == crate::Kind::Directory => node.content,
                _ => return Ok(Vec::new()),
            },
        };
        view::load_tree(&self.store, side, tree)
    }

    /// Writes a file's content, or a link's target, to `out`, byte for byte.
    pub fn content(
        &self,
        side: &Side<'_>,
        path: &WorkspacePath,
        node: &Node,
        out: &mut dyn Write,
    ) -> Result<(), ContentError> {
        view::content(&self.store, side, path, node, out)
    }

    /// Reads everything that is stored and says what is damaged, and which checkpoints need it.
    pub fn check(&self) -> Result<Integrity, StoreError> {
        let mut checked = self.store.check()?;
        let mut affected = Vec::new();
        for checkpoint in self.checkpoints()? {
            let roots = [Some((checkpoint.snapshot.0, Kind::Tree)), checkpoint.aside.map(|id| (id, Kind::Aside))];
            let roots: Vec<_> = roots.into_iter().flatten().collect();
            if !self.store.is_whole(&roots, &mut checked)? {
                affected.push(checkpoint);
            }
        }
        Ok(Integrity { damage: checked.damage, affected })
    }

    /// What the store takes.
    pub fn usage(&self) -> Result<Usage, StoreError> {
        let dir = self.store.dir();
        let len = |name: &str| dir.join(name).metadata().map_or(0, |meta| meta.len());
        let packs = pack::segments(&dir.join("packs"))?;
        let pack_len = |id: &u32| pack::segment_path(&dir.join("packs"), *id).metadata().map_or(0, |meta| meta.len());
        let count = |table: &str| {
            let sql = format!("SELECT count(*) FROM {table}");
            self.store.db().read(|connection| connection.query_row(&sql, [], |row| row.get(0)))
        };
        Ok(Usage {
            store_bytes: self.store.bytes()?,
            pack_bytes: packs.iter().map(pack_len).sum(),
            packs: packs.len() as u64,
            database_bytes: ["retake.db", "retake.db-wal", "retake.db-shm"].into_iter().map(len).sum(),
            index_bytes: len("index"),
            checkpoints: count("checkpoints")?,
            objects: count("objects")?,
            budget: self.store.budget(),
        })
    }
}

/// How a scan for comparing looks.
#[derive(Clone, Copy)]
enum Thoroughness {
    AskWatch,
    LookAtAll,
}

/// Why an attempt at a checkpoint ended.
#[derive(Debug)]
enum Failure {
    /// `smaller`: with more time, less room would be needed.
    OverBudget {
        needed: u64,
        smaller: bool,
    },
    Other(CheckpointError),
}

impl<E: Into<CheckpointError>> From<E> for Failure {
    fn from(err: E) -> Self {
        Self::Other(err.into())
    }
}

/// A sink that stores, and keeps new trees at hand for counting what changed.
struct Storing<'a> {
    batch: Batch<'a>,
    trees: Mutex<HashMap<ObjectId, Vec<u8>>>,
}

impl Sink for Storing<'_> {
    fn put(&self, kind: Kind, id: ObjectId, plain: &[u8]) -> Result<(), StoreError> {
        if kind == Kind::Tree {
            lock(&self.trees).insert(id, plain.to_vec());
        }
        self.batch.put(kind, id, plain)
    }

    fn put_large(&self, source: &mut dyn Read) -> Result<(ObjectId, u64), PutError> {
        self.batch.put_chunked(source)
    }

    fn pause(&self) -> Result<Option<Counters>, StoreError> {
        if self.batch.over_budget().is_some() {
            return Ok(None);
        }
        self.batch.commit(Durability::Soon, |_| Ok(()))?;
        counters(self.batch.store()).map(Some)
    }
}

/// The store's counters as they are now.
fn counters(store: &Store) -> Result<Counters, StoreError> {
    let db = store.db();
    Ok(Counters { collections: db.counter("collections")?, commits: db.counter("commits")? })
}
