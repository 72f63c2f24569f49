//! Checkpoints: taking one, finding one again.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use thiserror::Error;

use super::ledger::{self, LedgerItem};
use super::operation::Operation;
use super::owner::By;
use super::sessions::Session;
use crate::base::id::{CheckpointId, ObjectId, SessionId, SnapshotId};
use crate::base::limits;
use crate::base::path::WorkspacePath;
use crate::base::settings::Timestamp;
use crate::git::GitState;
use crate::scan::ScanError;
use crate::snapshot::diff::Changed;
use crate::snapshot::gaps::{self, Gap};
use crate::store::db::in_transaction;
use crate::store::tree::{GapKind, Node};
use crate::store::{Durability, Store, StoreError};
use crate::workspace::Workspace;

/// The checkpoints of a workspace. From [`Workspace::checkpoints`] and [`Workspace::checkpoints_mut`].
#[derive(Debug)]
pub struct Checkpoints<W>(pub(crate) W);

impl Workspace {
    /// Its checkpoints, to look at.
    pub fn checkpoints(&self) -> Checkpoints<&Self> {
        Checkpoints(self)
    }

    /// Its checkpoints, to take and label them.
    pub fn checkpoints_mut(&mut self) -> Checkpoints<&mut Self> {
        Checkpoints(self)
    }
}

/// A point to go back to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Its identity.
    pub id: CheckpointId,
    /// The workspace's content.
    pub snapshot: SnapshotId,
    /// When it was taken.
    pub at: Timestamp,
    /// Its label; a checkpoint with one is kept for good.
    pub label: Option<String>,
    /// What changed since the checkpoint before it.
    pub changed: Changed,
    /// How much it could not capture.
    pub gap_count: u64,
    /// Where git stood.
    pub git: GitState,
    /// What it was taken for.
    pub origin: Origin,
    /// The session whose point it is.
    pub session: Option<SessionId>,
    /// What was about to happen, or had happened, in words.
    pub note: Option<String>,
    /// What was left out.
    pub(crate) aside: Option<ObjectId>,
}

/// What a checkpoint was taken for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// Somebody asked for it.
    #[default]
    Checkpoint = 0,
    /// A tool call was about to begin.
    Before = 1,
    /// A tool call had ended.
    After = 2,
    /// Files were about to be rewound.
    Safety = 3,
    /// Files had been rewound.
    Rewound = 4,
    /// The user said something.
    Prompt = 5,
    /// A turn had ended, or the conversation was cut.
    Turn = 6,
}

impl Checkpoint {
    /// Whether both hold the same files, and leave out the same.
    pub fn holds_the_same_as(&self, other: &Self) -> bool {
        (self.snapshot, self.aside) == (other.snapshot, other.aside)
    }

    /// What moved in git from this checkpoint to `later`: rewinding files does not move it back.
    pub fn git_moves(&self, later: &Self) -> Vec<LedgerItem> {
        ledger::git_moves(&self.git, &later.git)
    }
}

/// Why a checkpoint is taken, and what is to be written with it.
pub(crate) struct Purpose<'a> {
    pub(crate) origin: Origin,
    pub(crate) session: Option<(i64, SessionId)>,
    /// The entry of the session's conversation that it belongs to, by row number; the head for `None`.
    pub(crate) entry: Option<i64>,
    pub(crate) note: Option<String>,
    /// What an operation has just done itself.
    pub(crate) own: Option<Own<'a>>,
    /// What becomes of captured paths that a rule has come to leave out.
    pub(crate) rule_changes: RuleChanges,
    /// Hidden files that it is the first to capture, with all that is below them, and who created them.
    pub(crate) created: Option<&'a BTreeMap<WorkspacePath, By>>,
    /// Runs in the checkpoint's transaction, with its row number.
    pub(crate) also: &'a dyn Fn(&Transaction<'_>, i64) -> Result<(), StoreError>,
}

/// What becomes of captured paths that a rule has come to leave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RuleChanges {
    /// They stay captured where an agent or a command may have changed the rule.
    Judge,
    /// The user has confirmed it: they are not captured any more.
    Apply,
}

/// What an operation has done to the files.
pub(crate) struct Own<'a> {
    /// Who that was.
    pub(crate) by: By,
    /// The state that it gave to each path.
    pub(crate) put: &'a BTreeMap<WorkspacePath, Option<Node>>,
    /// States that it displaced without having captured them before.
    pub(crate) displaced: &'a BTreeMap<WorkspacePath, Node>,
    /// The point that it went to, if that is known: paths that it did not capture need not stay captured.
    pub(crate) target: Option<&'a Checkpoint>,
}

impl Purpose<'_> {
    /// Somebody asked for it.
    pub(crate) const ASKED: Self = Self {
        origin: Origin::Checkpoint,
        session: None,
        entry: None,
        note: None,
        own: None,
        rule_changes: RuleChanges::Judge,
        created: None,
        also: &|_, _| Ok(()),
    };
}

impl Purpose<'_> {
    /// Who created `path`, if it was hidden until now.
    pub(crate) fn creator(&self, path: &WorkspacePath) -> Option<By> {
        let created = self.created.filter(|created| !created.is_empty())?;
        std::iter::successors(Some(path.clone()), WorkspacePath::parent).find_map(|above| created.get(&above).copied())
    }

    /// Whether `path` is a directory that was hidden until now and is captured only for what is saved below it.
    pub(crate) fn enters(&self, path: &WorkspacePath) -> bool {
        let is_below = |created: &WorkspacePath| {
            std::iter::successors(created.parent(), WorkspacePath::parent).any(|above| above == *path)
        };
        self.created.is_some_and(|created| created.keys().any(is_below))
    }
}

/// What the caller gives to a new checkpoint.
#[derive(Clone, Debug)]
pub struct NewCheckpoint {
    /// Its identity, made from fresh random bytes.
    pub id: CheckpointId,
    /// The time.
    pub at: Timestamp,
    /// A label, if it should have one.
    pub label: Option<String>,
}

/// A checkpoint could not be taken. Unless it says otherwise nothing was changed, and all earlier ones are as they were.
#[derive(Debug, Error)]
pub enum CheckpointError {
    /// It does not fit the budget, even without all checkpoints that may go.
    #[error(
        "the checkpoint needs {needed} bytes more, which do not fit the store's budget of {budget} bytes; \
         nothing was stored"
    )]
    Budget {
        /// The budget.
        budget: u64,
        /// Bytes that this checkpoint would add.
        needed: u64,
    },
    /// The oldest checkpoints went, as the budget demands, and then it failed all the same.
    #[error("the oldest checkpoints ({removed}) were removed to make room, but the new one could not be stored")]
    RoomMade {
        /// How many went.
        removed: u64,
        /// Why it failed.
        source: Box<Self>,
    },
    /// No checkpoint can have this label.
    #[error(transparent)]
    Label(#[from] InvalidLabel),
    /// A label names one checkpoint, and this one already names another.
    #[error("`{label}` already names checkpoint {}", .holder.id.short())]
    LabelTaken {
        /// The label.
        label: String,
        /// What it names: the checkpoint that has this label, or this id.
        holder: Box<Checkpoint>,
    },
    /// A rewind was interrupted and has to be finished or taken back first.
    #[error("an interrupted {} of `{}` has to be finished first", .operation.kind.name(), .operation.what)]
    Pending {
        /// The operation.
        operation: Box<Operation>,
    },
    /// The session is not known here.
    #[error("the session is not known in this workspace")]
    UnknownSession,
    /// Scanning failed.
    #[error(transparent)]
    Scan(ScanError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<ScanError> for CheckpointError {
    fn from(err: ScanError) -> Self {
        match err {
            ScanError::Store(err) => Self::Store(err),
            other => Self::Scan(other),
        }
    }
}

/// The text cannot be a label: it is blank or too long.
#[derive(Debug, Error)]
#[error("the label is not usable: {0}")]
pub struct InvalidLabel(&'static str);

/// A checkpoint could not be found.
#[derive(Debug, Error)]
pub enum ResolveError {
    /// Nothing has this label, id or number.
    #[error("there is no checkpoint `{point}`")]
    Unknown {
        /// What was asked for.
        point: String,
    },
    /// More than one checkpoint answers to it.
    #[error("`{point}` could be any of {} checkpoints", .candidates.len())]
    Ambiguous {
        /// What was asked for.
        point: String,
        /// All that answer to it, newest first.
        candidates: Vec<Checkpoint>,
    },
    /// More than one checkpoint or entry answers to it.
    #[error("`{point}` could be any of {count} points")]
    AmbiguousPoint {
        /// What was asked for.
        point: String,
        /// How many answer to it.
        count: usize,
    },
    /// It is the number of a prompt, and prompts of several sessions have it.
    #[error("{} sessions have a prompt {number}", .sessions.len())]
    AmbiguousNumber {
        /// The number.
        number: u64,
        /// The sessions.
        sessions: Vec<SessionId>,
    },
    /// No session has this id.
    #[error("there is no session `{session}`")]
    UnknownSession {
        /// What was asked for.
        session: String,
    },
    /// More than one session answers to it.
    #[error("`{session}` could be any of {} sessions", .candidates.len())]
    AmbiguousSession {
        /// What was asked for.
        session: String,
        /// All that answer to it, newest first.
        candidates: Vec<Session>,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Checkpoints<&Workspace> {
    /// All checkpoints, newest first.
    pub fn all(&self) -> Result<Vec<Checkpoint>, StoreError> {
        all(&self.0.store)
    }

    /// The newest checkpoint.
    pub fn newest(&self) -> Result<Option<Checkpoint>, StoreError> {
        newest(&self.0.store)
    }

    /// The checkpoint that `point` names: a label, or the beginning of an id.
    pub fn resolve(&self, point: &str) -> Result<Checkpoint, ResolveError> {
        resolve(&self.0.store, point)
    }

    /// Everything a checkpoint could not capture, by path.
    pub fn gaps(&self, checkpoint: &Checkpoint) -> Result<Vec<Gap>, StoreError> {
        let mut gaps = gaps::gaps(checkpoint.aside, |id| self.0.store.read(id).map(|(_, bytes)| bytes))?;
        let late = missed(&self.0.store, checkpoint.id)?.into_iter();
        gaps.extend(late.map(|path| Gap { path, kind: GapKind::Missed }));
        Ok(gaps)
    }
}

impl Checkpoints<&mut Workspace> {
    /// Gives a checkpoint a label, or takes it away. A label that names another checkpoint is refused.
    pub fn set_label(&mut self, id: CheckpointId, label: Option<&str>) -> Result<(), CheckpointError> {
        label.map_or(Ok(()), check_label)?;
        let taken = self.0.store.db().transaction(Durability::Synced, |tx| set_label(tx, id, label))?;
        refuse_taken(label, taken)
    }
}

const COLUMNS: &str = "id, snapshot, at, label, added, modified, deleted, gaps, git, aside,
    (SELECT count(*) FROM late_gaps WHERE checkpoint = seq), origin,
    (SELECT sessions.id FROM sessions WHERE sessions.seq = checkpoints.session), note";

/// Checks that `label` can be one; whether another checkpoint has it already is not looked at.
pub fn check_label(label: &str) -> Result<(), InvalidLabel> {
    let why = if label.trim().is_empty() {
        "it is empty"
    } else if label.len() > limits::MAX_LABEL {
        "it is longer than 1000 bytes"
    } else {
        return Ok(());
    };
    Err(InvalidLabel(why))
}

/// The checkpoint other than `own` that `label` already names: as its label, or as its whole id.
pub(crate) fn holder(
    connection: &Connection,
    label: Option<&str>,
    own: CheckpointId,
) -> rusqlite::Result<Option<Checkpoint>> {
    let Some(label) = label else { return Ok(None) };
    let rest = "WHERE (label = ?1 OR handle = ?2) AND id <> ?3 ORDER BY seq DESC LIMIT 1";
    let params = params![label, label.to_ascii_lowercase(), &own.as_bytes()[..]];
    Ok(select(connection, rest, params)?.pop())
}

/// Turns what [`holder`] found into an error.
pub(crate) fn refuse_taken(label: Option<&str>, holder: Option<Checkpoint>) -> Result<(), CheckpointError> {
    match (label, holder) {
        (Some(label), Some(holder)) => {
            Err(CheckpointError::LabelTaken { label: label.to_owned(), holder: Box::new(holder) })
        }
        _ => Ok(()),
    }
}

/// Sets or removes a label; returns who has it, if another checkpoint does, and changes nothing then.
pub(crate) fn set_label(
    tx: &Transaction<'_>,
    id: CheckpointId,
    label: Option<&str>,
) -> Result<Option<Checkpoint>, StoreError> {
    let taken = holder(tx, label, id).map_err(in_transaction(tx))?;
    if taken.is_none() {
        tx.execute("UPDATE checkpoints SET label = ? WHERE id = ?", params![label, &id.as_bytes()[..]])
            .map_err(in_transaction(tx))?;
    }
    Ok(taken)
}

/// Writes a checkpoint's row and returns its number; who has its label, if another checkpoint does, and writes nothing
/// then.
pub(crate) fn insert(
    tx: &Transaction<'_>,
    checkpoint: &Checkpoint,
    session: Option<i64>,
    rules: ObjectId,
) -> Result<Result<i64, Checkpoint>, StoreError> {
    if let Some(taken) = holder(tx, checkpoint.label.as_deref(), checkpoint.id).map_err(in_transaction(tx))? {
        return Ok(Err(taken));
    }
    let git = serde_json::to_string(&checkpoint.git).expect("plain strings serialise");
    let Changed { added, modified, deleted } = checkpoint.changed;
    tx.prepare_cached(
        "INSERT INTO checkpoints (id, handle, at, label, snapshot, aside, rules, git, added, modified, deleted, gaps,
             origin, session, note)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )
    .and_then(|mut insert| {
        insert.execute(params![
            &checkpoint.id.as_bytes()[..],
            checkpoint.id.to_string(),
            checkpoint.at.0,
            checkpoint.label,
            &checkpoint.snapshot.0.as_bytes()[..],
            checkpoint.aside.as_ref().map(|id| &id.as_bytes()[..]),
            &rules.as_bytes()[..],
            git,
            added,
            modified,
            deleted,
            checkpoint.gap_count,
            checkpoint.origin as u8,
            session,
            checkpoint.note,
        ])
    })
    .map_err(in_transaction(tx))?;
    Ok(Ok(tx.last_insert_rowid()))
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<Checkpoint> {
    let git: String = row.get(8)?;
    Ok(Checkpoint {
        id: CheckpointId::from_bytes(row.get(0)?),
        snapshot: SnapshotId(ObjectId::from_bytes(row.get(1)?)),
        at: Timestamp(row.get(2)?),
        label: row.get(3)?,
        changed: Changed { added: row.get(4)?, modified: row.get(5)?, deleted: row.get(6)? },
        gap_count: row.get::<_, u64>(7)? + row.get::<_, u64>(10)?,
        git: serde_json::from_str(&git).unwrap_or_default(),
        aside: row.get::<_, Option<[u8; 32]>>(9)?.map(ObjectId::from_bytes),
        origin: match row.get::<_, u8>(11)? {
            0 => Origin::Checkpoint,
            1 => Origin::Before,
            2 => Origin::After,
            3 => Origin::Safety,
            4 => Origin::Rewound,
            5 => Origin::Prompt,
            _ => Origin::Turn,
        },
        session: row.get::<_, Option<[u8; 16]>>(12)?.map(SessionId::from_bytes),
        note: row.get(13)?,
    })
}

fn select(connection: &Connection, rest: &str, params: impl rusqlite::Params) -> rusqlite::Result<Vec<Checkpoint>> {
    let mut statement = connection.prepare_cached(&format!("SELECT {COLUMNS} FROM checkpoints {rest}"))?;
    let rows = statement.query_map(params, from_row)?;
    rows.collect()
}

/// All checkpoints, newest first.
pub(crate) fn all(store: &Store) -> Result<Vec<Checkpoint>, StoreError> {
    store.db().read(|connection| select(connection, "ORDER BY seq DESC", []))
}

/// The newest checkpoint.
pub(crate) fn newest(store: &Store) -> Result<Option<Checkpoint>, StoreError> {
    store.db().read(|connection| Ok(select(connection, "ORDER BY seq DESC LIMIT 1", [])?.pop()))
}

/// The checkpoint that `point` names: a label, or the beginning of an id.
pub(crate) fn resolve(store: &Store, point: &str) -> Result<Checkpoint, ResolveError> {
    let lower = point.to_ascii_lowercase();
    let is_id = lower.len() >= limits::MIN_ID_DIGITS && lower.bytes().all(|b| b.is_ascii_hexdigit());
    let pattern = if is_id { format!("{lower}*") } else { String::new() };
    let mut candidates = store.db().read(|connection| {
        select(connection, "WHERE label = ?1 OR handle GLOB ?2 ORDER BY seq DESC", [point, &pattern])
    })?;
    match candidates.len() {
        0 => Err(ResolveError::Unknown { point: point.to_owned() }),
        1 => Ok(candidates.remove(0)),
        _ => Err(ResolveError::Ambiguous { point: point.to_owned(), candidates }),
    }
}

/// The description of the rules that were in force outside the workspace.
pub(crate) fn rules(store: &Store, id: CheckpointId) -> Result<Option<ObjectId>, StoreError> {
    store.db().read(|connection| {
        connection
            .prepare_cached("SELECT rules FROM checkpoints WHERE id = ?")?
            .query_row([&id.as_bytes()[..]], |row| row.get::<_, [u8; 32]>(0).map(ObjectId::from_bytes))
            .optional()
    })
}

/// A checkpoint's row number.
pub(crate) fn sequence_of(store: &Store, id: CheckpointId) -> Result<Option<i64>, StoreError> {
    store.db().read(|connection| {
        connection
            .prepare_cached("SELECT seq FROM checkpoints WHERE id = ?")?
            .query_row([&id.as_bytes()[..]], |row| row.get(0))
            .optional()
    })
}

/// The checkpoint with this id.
pub(crate) fn by_id(store: &Store, id: CheckpointId) -> Result<Option<Checkpoint>, StoreError> {
    store.db().read(|connection| Ok(select(connection, "WHERE id = ?", [&id.as_bytes()[..]])?.pop()))
}

/// Paths whose state in the checkpoint was found out to be wrong afterwards.
pub(crate) fn missed(store: &Store, id: CheckpointId) -> Result<Vec<WorkspacePath>, StoreError> {
    let paths: Vec<Vec<u8>> = store.db().read(|connection| {
        let mut statement = connection.prepare_cached(
            "SELECT path FROM late_gaps JOIN checkpoints ON checkpoint = seq WHERE id = ? ORDER BY path",
        )?;
        statement.query_map([&id.as_bytes()[..]], |row| row.get(0))?.collect()
    })?;
    Ok(paths.iter().filter_map(|path| WorkspacePath::parse(path).ok()).collect())
}

/// The checkpoint with this row number.
pub(crate) fn by_seq(store: &Store, seq: i64) -> Result<Option<Checkpoint>, StoreError> {
    store.db().read(|connection| Ok(select(connection, "WHERE seq = ?", [seq])?.pop()))
}

/// A checkpoint's row number, inside a transaction.
pub(crate) fn sequence(tx: &Transaction<'_>, id: CheckpointId) -> Result<Option<i64>, StoreError> {
    tx.query_row("SELECT seq FROM checkpoints WHERE id = ?", [&id.as_bytes()[..]], |row| row.get(0))
        .optional()
        .map_err(in_transaction(tx))
}

/// Pairs the checkpoint with row number `checkpoint` with an entry.
pub(crate) fn pair(tx: &Transaction<'_>, entry: i64, checkpoint: i64) -> Result<(), StoreError> {
    tx.execute("INSERT OR IGNORE INTO points VALUES (?, ?)", [entry, checkpoint]).map(drop).map_err(in_transaction(tx))
}

/// Pairs the checkpoint with row number `checkpoint` with the head of a session. If that is an entry of the session which this one was
/// forked from, it has checkpoints of its own.
pub(crate) fn pair_head(tx: &Transaction<'_>, session: i64, checkpoint: i64) -> Result<(), StoreError> {
    let sql = "INSERT OR IGNORE INTO points SELECT head, ?2 FROM sessions
         JOIN entries ON entries.seq = head AND entries.session = sessions.seq WHERE sessions.seq = ?1";
    tx.execute(sql, [session, checkpoint]).map(drop).map_err(in_transaction(tx))
}
