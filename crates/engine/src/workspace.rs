//! The door to the engine: one workspace, its store and its scanner.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

use rusqlite::params;

use crate::checkpoint::{self, check_label, refuse_taken};
use crate::rewind::intent;
use crate::scan::rules::Rules;
use crate::scan::{Counters, ScanError, Scanner};
use crate::snapshot::{aside, beside, diff};
use crate::store::db::in_transaction;
use crate::store::{Kind, Store, pack};
use crate::take::knower;
use crate::view::{self, Beside, Hashing};
use crate::{
    Change, Checkpoint, CheckpointError, CheckpointId, ContentError, Current, Damage, Durability, Environment, Gap,
    GapKind, NewCheckpoint, NoProgress, Node, OpenError, Progress, ResolveError, Side, StoreError, UncapturedChange,
    WatchState, WorkspacePath, place, take,
};

/// A directory whose states are kept.
#[derive(Debug)]
pub struct Workspace {
    pub(crate) env: Environment,
    pub(crate) store: Store,
    pub(crate) scanner: Scanner,
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
    /// The roots of all workspaces whose store is in a data directory; some may not be there any more.
    pub fn roots(data_dir: &Path) -> Vec<std::path::PathBuf> {
        place::roots(data_dir)
    }

    /// Whether `root` already is a workspace; an error if that cannot be found out.
    pub fn exists(data_dir: &Path, root: &Path) -> Result<bool, OpenError> {
        place::exists(data_dir, root)
    }

    /// The folder of the store of `root`, if that is a workspace; reads nothing else.
    pub fn store_of(data_dir: &Path, root: &Path) -> Option<std::path::PathBuf> {
        let is_one = place::exists(data_dir, root).unwrap_or(false);
        is_one.then(|| place::store_dir(data_dir, root))
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

    /// Gives back memory that is only there to be quick: for a process that stays, when there may be nothing to do for long.
    pub fn rest(&self) {
        self.store.db().rest();
    }

    pub(crate) fn rules(&self) -> Result<Rules, StoreError> {
        let (declared, held) = self.store.db().read(|connection| {
            let paths = |sql: &str| {
                let mut statement = connection.prepare_cached(sql)?;
                let rows = statement.query_map([], |row| row.get::<_, Vec<u8>>(0))?;
                rows.collect::<rusqlite::Result<BTreeSet<_>>>()
            };
            Ok((paths("SELECT path FROM declared")?, paths("SELECT path FROM held")?))
        })?;
        Ok(Rules::collect(&self.env, declared, held, intent::temporary_names(&self.store)?))
    }

    pub(crate) fn reopen_scanner(&mut self) -> Result<(), ScanError> {
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
            tx.execute("INSERT OR IGNORE INTO declared (path) VALUES (?)", [path.as_bytes()])
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

    /// The newest checkpoint.
    pub fn newest(&self) -> Result<Option<Checkpoint>, StoreError> {
        checkpoint::newest(&self.store)
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
        let late = checkpoint::missed(&self.store, checkpoint.id)?.into_iter();
        gaps.extend(late.map(|path| Gap { path, kind: GapKind::Missed }));
        Ok(gaps)
    }

    /// What changed from one checkpoint to another without being captured, by path.
    pub fn uncaptured_changes(&self, from: &Checkpoint, to: &Checkpoint) -> Result<Vec<UncapturedChange>, StoreError> {
        beside::changes(&take::knower(&self.store, from)?, &take::knower(&self.store, to)?)
    }

    /// What differs between two sides, by path.
    pub fn diff(&self, from: &Side<'_>, to: &Side<'_>) -> Result<Vec<Change>, StoreError> {
        diff::diff(
            Some((view::root_tree(from), &|id| view::load_tree(&self.store, from, id))),
            Some((view::root_tree(to), &|id| view::load_tree(&self.store, to, id))),
        )
    }

    /// Splits off those of `changes` that are no deletions: an ignore rule leaves out what may still be there.
    pub fn split_left_out(
        &self,
        changes: Vec<Change>,
        to: &Beside<'_>,
    ) -> Result<(Vec<Change>, Vec<Change>), StoreError> {
        let knower = match to {
            Beside::Checkpoint(checkpoint) => knower(&self.store, checkpoint)?,
            Beside::Now(current) => current.knower(&self.store),
        };
        let (mut proven, mut left_out) = (Vec::new(), Vec::new());
        for change in changes {
            let is_left_out = change.after.is_none() && knower.is_left_out(&change.path)?;
            let is_gone = matches!(to, Beside::Now(_)) && !take::may_be_there(&self.env.root, &change.path);
            if is_left_out && !is_gone { &mut left_out } else { &mut proven }.push(change);
        }
        Ok((proven, left_out))
    }

    /// Splits off those of `changes` since `from` that are no additions: an ignore rule left out what was there.
    pub fn split_newly_captured(
        &self,
        changes: Vec<Change>,
        from: &Checkpoint,
    ) -> Result<(Vec<Change>, Vec<Change>), StoreError> {
        let knower = knower(&self.store, from)?;
        let (mut known, mut first) = (Vec::new(), Vec::new());
        for change in changes {
            let is_first = change.before.is_none() && knower.is_left_out(&change.path)?;
            if is_first { &mut first } else { &mut known }.push(change);
        }
        Ok((known, first))
    }

    /// Everything that is on one side, by path.
    pub fn everything(&self, side: &Side<'_>) -> Result<Vec<(WorkspacePath, Node)>, StoreError> {
        let all = diff::diff(None, Some((view::root_tree(side), &|id| view::load_tree(&self.store, side, id))))?;
        Ok(all.into_iter().filter_map(|change| Some((change.path, change.after?))).collect())
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

    /// Writes the content of the file or link that is at `path` on disk now, and was `node` when it was last looked at.
    pub fn content_on_disk(&self, path: &WorkspacePath, node: &Node, out: &mut dyn Write) -> Result<(), ContentError> {
        view::copy_from_disk(&self.env.root, path, node, out)
    }

    /// Reads everything that is stored and says what is damaged, and which checkpoints need it.
    pub fn check(&self) -> Result<Integrity, StoreError> {
        self.check_with(&NoProgress)
    }

    /// Like [`check`](Self::check), for somebody who waits.
    pub fn check_with(&self, progress: &dyn Progress) -> Result<Integrity, StoreError> {
        // Nobody cleans up meanwhile. A store that cannot be written to is not cleaned up by anybody.
        let _shared = self.store.share().ok();
        let mut checked = self.store.check(progress)?;
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

    /// Has what a check found damaged stored again by the next checkpoint, as far as it is still on disk. Earlier checkpoints
    /// that need it are whole again then.
    pub fn note_damage(&self, damage: &[Damage]) -> Result<(), StoreError> {
        self.store.note_damage(damage)
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

/// The store's counters as they are now.
pub(crate) fn counters(store: &Store) -> Result<Counters, StoreError> {
    let db = store.db();
    Ok(Counters { collections: db.counter("collections")?, commits: db.counter("commits")? })
}
