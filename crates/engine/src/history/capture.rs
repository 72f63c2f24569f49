//! Taking a checkpoint: scan, make room if there is none, attribute what changed, commit it all at once.
//!
//! Scans of several processes run side by side; committing takes turns, so that every checkpoint knows exactly which one
//! is before it. While files are being rewound no checkpoint is taken.

use std::collections::{BTreeSet, HashMap};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rusqlite::Transaction;

use super::checkpoint::{
    self, Checkpoint, CheckpointError, NewCheckpoint, Purpose, RuleChanges, check_label, refuse_taken,
};
use super::operation;
use super::owner::rows::{self};
use super::owner::{held, late_attribution, window};
use crate::base::id::{CheckpointId, ObjectId, SessionId, SnapshotId};
use crate::base::path::WorkspacePath;
use crate::base::progress::Progress;
use crate::base::settings::Timestamp;
use crate::git::{self, GitState};
use crate::history::checkpoint::{Checkpoints, Origin};
use crate::history::intent;
use crate::history::owner::window::Windows;
use crate::scan::rules::{Outer, Rules};
use crate::scan::{Counters, Scanned, Scanner, Sink};
use crate::snapshot::diff::{self, Change};
use crate::snapshot::presence::{Evidence, Presence};
use crate::store::db::in_transaction;
use crate::store::{Batch, Durability, Effort, ObjectKind, PutError, Store, StoreError, lock, take_turn};
use crate::workspace::view::{self, Side};
use crate::workspace::{Workspace, counters};

impl Workspace {
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

    /// Takes a checkpoint for `purpose`.
    pub(crate) fn take(
        &mut self,
        new: &NewCheckpoint,
        purpose: &Purpose<'_>,
        durability: Durability,
        progress: &dyn Progress,
    ) -> Result<Checkpoint, CheckpointError> {
        let label = new.label.as_deref();
        label.map_or(Ok(()), check_label)?;
        let taken = self.store.db().read(|connection| checkpoint::holder(connection, label, new.id))?;
        refuse_taken(label, taken)?;
        let _shared = self.store.share()?;
        if let Some(operation) = operation::pending(&self.store)? {
            return Err(CheckpointError::Pending { operation: Box::new(operation) });
        }
        self.take_owned(new, purpose, durability, progress)
    }

    /// Takes a checkpoint for somebody who keeps everybody else from rewinding.
    pub(crate) fn take_owned(
        &mut self,
        new: &NewCheckpoint,
        purpose: &Purpose<'_>,
        durability: Durability,
        progress: &dyn Progress,
    ) -> Result<Checkpoint, CheckpointError> {
        self.making_room(None, |this, effort| this.try_take(new, purpose, effort, durability, progress))
    }

    /// Takes a checkpoint, so that it is known what has changed; the newest one there is, if there is no room for another.
    pub(crate) fn point_now(
        &mut self,
        session: Option<(i64, SessionId)>,
        note: String,
        id: CheckpointId,
        at: Timestamp,
        progress: &dyn Progress,
    ) -> Result<i64, CheckpointError> {
        let purpose = Purpose {
            origin: Origin::Safety,
            session,
            entry: None,
            note: Some(note),
            own: None,
            rule_changes: RuleChanges::Judge,
            created: None,
            also: &|_, _| Ok(()),
        };
        let checkpoint = NewCheckpoint { id, at, label: None };
        let newest = |store: &Store| Ok::<_, StoreError>(checkpoint::newest(store)?.map(|newest| newest.id));
        let id = match self.take_owned(&checkpoint, &purpose, Durability::Soon, progress) {
            Ok(taken) => Some(taken.id),
            Err(err @ CheckpointError::Scan(_)) => return Err(err),
            // Files are not touched: that they cannot be saved is no reason to refuse.
            Err(_) => newest(&self.store)?,
        };
        Ok(id.map(|id| checkpoint::sequence_of(&self.store, id)).transpose()?.flatten().unwrap_or(0))
    }

    /// Repeats `attempt` until it fits the budget or never will. The oldest checkpoints go if they must, but not the one
    /// with row number `spared`.
    pub(crate) fn making_room<T>(
        &mut self,
        spared: Option<i64>,
        attempt: impl FnMut(&mut Self, Effort) -> Result<T, Failure>,
    ) -> Result<T, CheckpointError> {
        let mut removed = 0;
        self.try_making_room(spared, attempt, &mut removed).map_err(|err| match removed {
            0 => err,
            _ => CheckpointError::RoomMade { removed, source: Box::new(err) },
        })
    }

    /// Counts in `removed` how many checkpoints had to go, even if it fails in the end.
    fn try_making_room<T>(
        &mut self,
        spared: Option<i64>,
        mut attempt: impl FnMut(&mut Self, Effort) -> Result<T, Failure>,
        removed: &mut u64,
    ) -> Result<T, CheckpointError> {
        let mut room_made = false;
        let mut effort = Effort::Quick;
        loop {
            match attempt(self, effort) {
                Ok(value) => return Ok(value),
                // Somebody cleaned up meanwhile: look again at what is still there.
                Err(Failure::Other(CheckpointError::Store(StoreError::Collected))) => self.reopen_scanner()?,
                // The index on disk still knows what they hold.
                Err(Failure::LeftOut { paths }) => {
                    self.hold(&paths)?;
                    self.reopen_scanner()?;
                }
                Err(Failure::OverBudget { smaller: true, .. }) => {
                    self.reopen_scanner()?;
                    effort = Effort::Small;
                }
                Err(Failure::OverBudget { needed, .. }) => {
                    let kept = self.scanner.contents();
                    self.reopen_scanner()?;
                    let evicted = if room_made { None } else { self.store.evict(needed, &kept, spared)? };
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

    fn try_take(
        &mut self,
        new: &NewCheckpoint,
        purpose: &Purpose<'_>,
        effort: Effort,
        durability: Durability,
        progress: &dyn Progress,
    ) -> Result<Checkpoint, Failure> {
        let rules = self.rules()?;
        let git = git::state(&self.env.root);
        let scene = scan(&self.store, &mut self.scanner, &rules, effort, progress)?;
        let checkpoint = scene.record(&git, new, purpose, durability)?;
        let after = counters(&self.store);
        drop(scene);
        // The checkpoint is made and stays: an index that cannot be saved costs the next one time, nothing else.
        after.and_then(|after| self.scanner.save(after)).ok();
        Ok(checkpoint)
    }
}

impl Checkpoints<&mut Workspace> {
    /// Takes a checkpoint of everything on disk now.
    ///
    /// With [`Durability::Synced`] it survives power loss once this returns. A cancelled or failed call changes nothing,
    /// but what was read is kept, so that the next one is quicker.
    #[expect(clippy::needless_pass_by_value, reason = "an id is for one checkpoint only")]
    pub fn take(
        &mut self,
        new: NewCheckpoint,
        durability: Durability,
        progress: &dyn Progress,
    ) -> Result<Checkpoint, CheckpointError> {
        self.0.take(&new, &Purpose::ASKED, durability, progress)
    }
}

impl Windows<'_> {
    /// Announces that a tool is about to write `path`: it is captured from now on whatever the rules say.
    pub fn declare(&mut self, path: &WorkspacePath) -> Result<(), StoreError> {
        self.0.store.db().transaction(Durability::Soon, |tx| {
            tx.execute("INSERT OR IGNORE INTO declared (path) VALUES (?)", [path.as_bytes()])
                .map(drop)
                .map_err(in_transaction(tx))
        })
    }
}

/// What is on disk, with its contents on the way into the store.
pub(crate) struct Scene<'a> {
    pub(crate) store: &'a Store,
    pub(crate) root: PathBuf,
    pub(crate) outer: Arc<Outer>,
    pub(crate) sink: Storing<'a>,
    pub(crate) scanned: Scanned,
    rules: ObjectId,
    /// Paths that were looked for whatever the rules say.
    pub(super) sought: BTreeSet<WorkspacePath>,
    /// Whether times of files are this machine's.
    pub(super) clock_is_ours: bool,
    /// Held paths that no rule leaves out any more.
    released: Vec<Vec<u8>>,
    /// Paths that a rewind touches and that a rule leaves out: captured this once.
    wanted: Vec<Vec<u8>>,
    /// Paths that a rewind touches and that are gaps, by their size, say: captured from now on.
    declared: Vec<Vec<u8>>,
}

/// Paths that `rules` have looked for.
pub(crate) fn sought(rules: &Rules) -> BTreeSet<WorkspacePath> {
    rules
        .declared
        .iter()
        .chain(&rules.wanted)
        .chain(&rules.held)
        .filter_map(|path| WorkspacePath::parse(path).ok())
        .collect()
}

/// Scans into the store; nothing is committed yet.
pub(crate) fn scan<'a>(
    store: &'a Store,
    scanner: &mut Scanner,
    rules: &Rules,
    effort: Effort,
    progress: &dyn Progress,
) -> Result<Scene<'a>, Failure> {
    if store.find_losses()? {
        scanner.recheck_contents(|id, size| store.contains_content(*id, size))?;
    }
    scanner.fit_to(counters(store)?, |id, _| store.contains(id))?;
    let sink = Storing { batch: store.batch(effort)?, trees: Mutex::default() };
    let scanned = scanner.scan(rules, &sink, progress)?;
    let scene = Scene::new(store, scanner, rules, sink, scanned)?;
    scene.check_budget()?;
    Ok(scene)
}

/// Scans only the directories of `touched` into the store; everything else is as the last scan found it. Those of
/// `wanted` that `rules` leave out are added there, so that the snapshot tells what has become of them.
pub(crate) fn scan_touched<'a>(
    store: &'a Store,
    scanner: &mut Scanner,
    rules: &mut Rules,
    touched: &BTreeSet<WorkspacePath>,
    wanted: &BTreeSet<WorkspacePath>,
    effort: Effort,
) -> Result<Scene<'a>, Failure> {
    scanner.fit_to(counters(store)?, |id, _| store.contains(id))?;
    let sink = Storing { batch: store.batch(effort)?, trees: Mutex::default() };
    let scanned = scanner.scan_touched(rules, touched.iter(), &sink)?;
    let mut scene = Scene::new(store, scanner, rules, sink, scanned)?;
    let mut unknown = BTreeSet::new();
    let evidence = scene.evidence();
    for path in wanted {
        if evidence.at(path)? == Presence::Unknown {
            unknown.insert(path.as_bytes().to_vec());
        }
    }
    drop(evidence);
    if !unknown.is_empty() {
        rules.wanted.extend(unknown);
        let scanned = scanner.scan_touched(rules, touched.iter(), &scene.sink)?;
        scene = Scene::new(store, scanner, rules, scene.sink, scanned)?;
    }
    Ok(scene)
}

impl<'a> Scene<'a> {
    /// What `scanner` has `scanned` into `sink` by `rules`.
    fn new(
        store: &'a Store,
        scanner: &Scanner,
        rules: &Rules,
        sink: Storing<'a>,
        scanned: Scanned,
    ) -> Result<Self, StoreError> {
        let rules_id = ObjectId::of(&rules.described);
        sink.batch.put(ObjectKind::Rules, rules_id, &rules.described)?;
        let (declared, wanted) = rules.wanted.iter().cloned().partition(|path| scanner.is_plain(path));
        Ok(Self {
            store,
            root: scanner.root_path().to_owned(),
            outer: rules.outer.clone(),
            sink,
            scanned,
            rules: rules_id,
            sought: sought(rules),
            clock_is_ours: scanner.clock_is_ours(),
            released: rules.held.iter().filter(|path| scanner.is_plain(path)).cloned().collect(),
            wanted,
            declared,
        })
    }
}

impl Scene<'_> {
    /// Fails if what was put so far does not fit.
    pub(crate) fn check_budget(&self) -> Result<(), Failure> {
        match self.sink.batch.over_budget() {
            Some(needed) => Err(Failure::OverBudget { needed, smaller: self.sink.batch.could_be_smaller() }),
            None => Ok(()),
        }
    }

    /// Commits everything as a checkpoint, with what changed since the one before and who did it.
    pub(crate) fn record(
        &self,
        git: &GitState,
        new: &NewCheckpoint,
        purpose: &Purpose<'_>,
        durability: Durability,
    ) -> Result<Checkpoint, Failure> {
        let _turn = take_turn(self.store.dir())?;
        let (changed, attributed, abandoned) = self.attribute(purpose)?;
        let checkpoint = Checkpoint {
            id: new.id,
            snapshot: self.scanned.snapshot,
            at: new.at,
            label: new.label.clone(),
            changed,
            gap_count: self.scanned.gap_count,
            git: git.clone(),
            origin: purpose.origin,
            session: purpose.session.map(|(_, id)| id),
            note: purpose.note.clone(),
            aside: self.scanned.aside,
        };
        let taken = self.sink.batch.commit(durability, |tx| {
            let session = purpose.session.map(|(seq, _)| seq);
            let seq = match checkpoint::insert(tx, &checkpoint, session, self.rules)? {
                Ok(seq) => seq,
                Err(holder) => return Ok(Some(holder)),
            };
            rows::insert(tx, seq, attributed)?;
            rows::note_sought(tx, seq, &self.sought)?;
            rows::declare(tx, &self.declared, seq)?;
            rows::note_wanted(tx, &self.wanted, seq)?;
            held::note(tx, seq, &self.sought, &self.released)?;
            for (window, ended) in &abandoned {
                // What its last tools did may have been found before they were announced, as with one that ends.
                late_attribution::judge_again(tx, window, seq)?;
                window::close(tx, window.seq, seq, *ended)?;
            }
            (purpose.also)(tx, seq)?;
            if let Some(session) = session {
                pair(tx, session, purpose.entry, seq)?;
            }
            Ok(None)
        })?;
        refuse_taken(checkpoint.label.as_deref(), taken)?;
        abandoned.iter().for_each(|(window, _)| window::forget_abandoned(self.store.dir(), window.seq));
        Ok(checkpoint)
    }

    /// What changed since the checkpoint before, which is returned too; since the last one that can be read, if that is
    /// damaged.
    pub(super) fn changes(&self) -> Result<(Vec<Change>, Option<Checkpoint>), StoreError> {
        let stored = |id| view::load_tree(self.store, &Side::Stored(SnapshotId(id)), id);
        let fresh = |id| self.tree(id);
        let now = self.scanned.snapshot.0;
        let newest = checkpoint::newest(self.store)?;
        let mut before = newest.as_ref().map(|newest| newest.snapshot.0);
        loop {
            let from: Option<(ObjectId, &diff::Load<'_>)> = before.map(|id| (id, &stored as _));
            match diff::diff(from, Some((now, &fresh))) {
                Ok(changes) => {
                    let whole = newest.filter(|newest| Some(newest.snapshot.0) == before);
                    return Ok((changes, whole));
                }
                Err(StoreError::Damaged { .. } | StoreError::Missing { .. }) if before.is_some() => {
                    before = checkpoint::all(self.store)?
                        .iter()
                        .map(|older| older.snapshot.0)
                        .skip_while(|id| Some(*id) != before)
                        .find(|id| Some(*id) != before);
                }
                Err(err) => return Err(err),
            }
        }
    }

    /// A tree of this scene or of the store.
    pub(crate) fn tree(&self, id: ObjectId) -> Result<crate::store::tree::Tree, StoreError> {
        crate::store::tree::decode_tree(&self.read(id)?)
            .map_err(|_| StoreError::Malformed { id, expected: "directory" })
    }

    pub(crate) fn read(&self, id: ObjectId) -> Result<Vec<u8>, StoreError> {
        match lock(&self.sink.trees).get(&id) {
            Some(bytes) => Ok(bytes.clone()),
            None => Ok(self.store.read(id)?.1),
        }
    }

    /// Answers for what is on disk.
    pub(crate) fn evidence(&self) -> Evidence<'_> {
        Evidence::new(self.scanned.snapshot.0, self.scanned.aside, BTreeSet::new(), |id| self.read(id))
            .having_sought(self.sought.clone())
    }
}

/// Whether something may be at `path` of the workspace at `root`. A name that is gone from a hidden directory was deleted.
pub(crate) fn may_be_there(root: &Path, path: &WorkspacePath) -> bool {
    let looked = root.join(path.to_path()).symlink_metadata();
    !looked.is_err_and(|err| matches!(err.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory))
}

/// Pairs the checkpoint with an entry of its session: with the head, if none is named.
fn pair(tx: &Transaction<'_>, session: i64, entry: Option<i64>, seq: i64) -> Result<(), StoreError> {
    match entry {
        Some(entry) => checkpoint::pair(tx, entry, seq),
        None => checkpoint::pair_head(tx, session, seq),
    }
}

/// Answers for a checkpoint.
pub(crate) fn evidence<'a>(store: &'a Store, checkpoint: &Checkpoint) -> Result<Evidence<'a>, StoreError> {
    let missed = checkpoint::missed(store, checkpoint.id)?.into_iter().collect();
    let sought = rows::sought_by(store, checkpoint.id)?;
    let evidence = Evidence::new(checkpoint.snapshot.0, checkpoint.aside, missed, |id| Ok(store.read(id)?.1));
    Ok(evidence.having_sought(sought).having_missed(rows::deleted_at(store, checkpoint.id)?))
}

/// Why an attempt at a checkpoint ended.
#[derive(Debug)]
pub(crate) enum Failure {
    /// `smaller`: with more time, less room would be needed.
    OverBudget { needed: u64, smaller: bool },
    /// An agent's or a command's rule leaves out paths that were captured: they have to be held.
    LeftOut { paths: BTreeSet<WorkspacePath> },
    /// Anything else.
    Other(CheckpointError),
}

impl<E: Into<CheckpointError>> From<E> for Failure {
    fn from(err: E) -> Self {
        Self::Other(err.into())
    }
}

/// A sink that stores, and keeps what is new of directories at hand.
pub(crate) struct Storing<'a> {
    pub(crate) batch: Batch<'a>,
    trees: Mutex<HashMap<ObjectId, Vec<u8>>>,
}

impl Sink for Storing<'_> {
    fn put(&self, kind: ObjectKind, id: ObjectId, plain: &[u8]) -> Result<(), StoreError> {
        if matches!(kind, ObjectKind::Tree | ObjectKind::Aside) {
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
