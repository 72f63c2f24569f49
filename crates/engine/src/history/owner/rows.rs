//! Changes, sessions and windows in the database.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::window::{self, Window};
use super::{By, Certainty, ChangeKind, FileTime, OpenWindow, Owner, PathChange, Reach, Verdict};
use crate::base::id::{CheckpointId, ObjectId, OperationId, SessionId};
use crate::base::path::WorkspacePath;
use crate::base::settings::Timestamp;
use crate::history::codes::{CHANGED, WITH_SPANS};
use crate::history::lineage::Lineage;
use crate::snapshot::diff::Change;
use crate::store::db::in_transaction;
use crate::store::tree::{Node, NodeKind, decode_node, encode_node, same};
use crate::store::{Store, StoreError};

/// One row of `changes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChangeRow {
    pub(crate) checkpoint: i64,
    pub(crate) path: WorkspacePath,
    pub(crate) kind: ChangeKind,
    pub(crate) before: Option<Node>,
    pub(crate) after: Option<Node>,
    pub(crate) by: By,
}

/// A change, and whose it is.
#[derive(Clone, Debug)]
pub(crate) struct Attributed {
    pub(crate) change: Change,
    pub(crate) kind: ChangeKind,
    pub(crate) by: By,
    /// When it was made, if it may be judged again.
    pub(crate) changed: Option<FileTime>,
}

/// Writes `changes` as found by checkpoint `seq`.
pub(crate) fn insert(
    tx: &Transaction<'_>,
    seq: i64,
    changes: impl IntoIterator<Item = Attributed>,
) -> Result<(), StoreError> {
    let mut statement = tx
        .prepare_cached(
            "INSERT INTO changes (checkpoint, path, kind, before, after, certainty, session, window, operation, changed)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .map_err(in_transaction(tx))?;
    for Attributed { change, kind, by, changed } in changes {
        statement
            .execute(params![
                seq,
                change.path.as_bytes(),
                kind as u8,
                change.before.as_ref().map(encode_node),
                change.after.as_ref().map(encode_node),
                by.verdict as u8,
                by.session,
                by.window,
                by.operation,
                changed.map(|changed| changed.0),
            ])
            .map_err(in_transaction(tx))?;
    }
    Ok(())
}

const COLUMNS: &str = "changes.checkpoint, changes.path, changes.kind, changes.before, changes.after,
    changes.certainty, changes.session, changes.window, changes.operation";

fn from_row(row: &Row<'_>) -> rusqlite::Result<Option<ChangeRow>> {
    let path: Vec<u8> = row.get(1)?;
    let node = |column| {
        let bytes: Option<Vec<u8>> = row.get(column)?;
        Ok::<_, rusqlite::Error>(bytes.as_deref().and_then(decode_node))
    };
    // A row that does not make sense is no reason for anything.
    let Ok(path) = WorkspacePath::parse(&path) else { return Ok(None) };
    let kind = match row.get::<_, u8>(2)? {
        0 => ChangeKind::Changed,
        1 => ChangeKind::Captured,
        3 => ChangeKind::Hidden,
        4 => ChangeKind::Uncovered,
        5 => ChangeKind::LeftOut,
        _ => ChangeKind::Uncaptured,
    };
    let verdict = match row.get::<_, u8>(5)? {
        0 => Verdict::Outside,
        1 => Verdict::Certain,
        2 => Verdict::Presumed,
        _ => Verdict::Contested,
    };
    let by = By { verdict, session: row.get(6)?, window: row.get(7)?, operation: row.get(8)? };
    Ok(Some(ChangeRow { checkpoint: row.get(0)?, path, kind, before: node(3)?, after: node(4)?, by }))
}

fn select(connection: &Connection, rest: &str, values: impl rusqlite::Params) -> rusqlite::Result<Vec<ChangeRow>> {
    let mut statement = connection.prepare_cached(&format!("SELECT {COLUMNS} FROM changes {rest}"))?;
    statement.query_map(values, from_row)?.filter_map(Result::transpose).collect()
}

/// Files that were created hidden have no states that a chain could be made of: see `hidden`.
const HIDDEN: u8 = ChangeKind::Hidden as u8;

/// All changes, by path and in order, of paths that a change after checkpoint `seq` matching `condition` touched.
fn since(store: &Store, seq: i64, condition: &str) -> Result<BTreeMap<WorkspacePath, Vec<ChangeRow>>, StoreError> {
    let rows = store.db().read(|connection| {
        let rest = format!(
            "WHERE kind != {HIDDEN} AND path IN
                 (SELECT path FROM changes WHERE checkpoint > ?1 AND kind != {HIDDEN} AND {condition})
             ORDER BY changes.seq"
        );
        select(connection, &rest, [seq])
    })?;
    let mut by_path: BTreeMap<WorkspacePath, Vec<ChangeRow>> = BTreeMap::new();
    for row in rows {
        by_path.entry(row.path.clone()).or_default().push(row);
    }
    Ok(by_path)
}

/// Everything that ever happened to `paths`, by path and in order.
pub(crate) fn of_paths<'a>(
    store: &Store,
    paths: impl Iterator<Item = &'a WorkspacePath>,
) -> Result<BTreeMap<WorkspacePath, Vec<ChangeRow>>, StoreError> {
    let rest = format!("WHERE path = ?1 AND kind != {HIDDEN} ORDER BY changes.seq");
    store.db().read(|connection| {
        paths.map(|path| Ok((path.clone(), select(connection, &rest, [path.as_bytes()])?))).collect()
    })
}

/// A condition for changes by whose windows match `owner`, or that they contest with others.
fn by(owner: &str, windows: &str) -> String {
    format!(
        "({owner} OR (certainty = {} AND EXISTS (SELECT 1 FROM windows WHERE {windows}
             AND windows.opened < changes.checkpoint
             AND (windows.closed IS NULL OR windows.closed >= changes.checkpoint))))",
        Verdict::Contested as u8
    )
}

/// Everything that ever happened to paths that a session changed after checkpoint `seq`, or may have, by path and in order. What it was
/// forked from is its own past.
pub(crate) fn of_session(
    store: &Store,
    seq: i64,
    lineage: &Lineage,
) -> Result<BTreeMap<WorkspacePath, Vec<ChangeRow>>, StoreError> {
    let own = |session| lineage.condition(session, "changes.checkpoint");
    since(store, seq, &by(&own("changes.session"), &own("windows.session")))
}

/// Everything that ever happened to the paths that operation `operation`, which began at checkpoint `seq`, changed, or may have.
pub(crate) fn of_operation(
    store: &Store,
    seq: i64,
    operation: i64,
) -> Result<BTreeMap<WorkspacePath, Vec<ChangeRow>>, StoreError> {
    since(store, seq, &by(&format!("operation = {operation}"), &format!("windows.operation = {operation}")))
}

/// A path that was created where an ignore rule hides it.
#[derive(Clone, Debug)]
pub(crate) struct HiddenRow {
    pub(crate) row: ChangeRow,
    /// The inode of the directory that it was.
    pub(crate) directory: Option<u64>,
    /// When the tool that created it ended, by the clock of files; while it is at work, it has not ended.
    pub(crate) ended: Option<FileTime>,
}

/// A hidden directory in place of a state, which no checkpoint has: its inode stands where a size would.
pub(crate) fn hidden_directory(inode: u64) -> Node {
    Node { kind: NodeKind::Directory, mode: 0, content: ObjectId::default(), size: inode }
}

/// Hidden files that tools created after checkpoint `seq`, oldest first.
pub(crate) fn hidden_since(store: &Store, seq: i64) -> Result<Vec<HiddenRow>, StoreError> {
    store.db().read(|connection| {
        let mut statement = connection.prepare_cached(&format!(
            "SELECT {COLUMNS}, CASE WHEN windows.closed IS NULL THEN {} ELSE windows.ended END
             FROM changes LEFT JOIN windows ON windows.seq = changes.window
             WHERE changes.kind = {HIDDEN} AND changes.checkpoint > ?1 ORDER BY changes.seq",
            i64::MAX
        ))?;
        let rows = statement.query_map([seq], |row| {
            let ended = row.get::<_, Option<i64>>(9)?.map(FileTime);
            let directory = |row: &ChangeRow| row.after.map(|node| node.size);
            Ok(from_row(row)?.map(|row| HiddenRow { directory: directory(&row), row, ended }))
        })?;
        rows.filter_map(Result::transpose).collect()
    })
}

/// Hidden paths that tools of `session` created after checkpoint `from`, up to checkpoint `to`.
pub(crate) fn hidden_by(
    store: &Store,
    session: SessionId,
    from: i64,
    to: i64,
) -> Result<BTreeSet<WorkspacePath>, StoreError> {
    let rest = format!(
        "WHERE changes.kind = {HIDDEN} AND changes.checkpoint > ?1 AND changes.checkpoint <= ?2
             AND changes.session = (SELECT seq FROM sessions WHERE id = ?3)"
    );
    let values = params![from, to, &session.as_bytes()[..]];
    let rows = store.db().read(|connection| select(connection, &rest, values))?;
    Ok(rows.into_iter().map(|row| row.path).collect())
}

/// Paths that a rewind after checkpoint `seq` uncovered and that nothing has changed since, each as it was found.
pub(crate) fn uncovered_since(store: &Store, seq: i64) -> Result<BTreeMap<WorkspacePath, Option<Node>>, StoreError> {
    let rest = format!(
        "WHERE changes.kind = {} AND changes.checkpoint > ?1 AND NOT EXISTS (
             SELECT 1 FROM changes later WHERE later.path = changes.path AND later.seq > changes.seq AND later.kind = {CHANGED})
         ORDER BY changes.seq",
        ChangeKind::Uncovered as u8
    );
    let rows = store.db().read(|connection| select(connection, &rest, [seq]))?;
    Ok(rows.into_iter().map(|row| (row.path, row.after)).collect())
}

/// The paths that a session ever wrote.
pub(crate) fn paths_of_session(store: &Store, lineage: &Lineage) -> Result<BTreeSet<WorkspacePath>, StoreError> {
    let paths: Vec<Vec<u8>> = store.db().read(|connection| {
        let own = lineage.condition("session", "checkpoint");
        let mut statement = connection.prepare_cached(&format!("SELECT DISTINCT path FROM changes WHERE {own}"))?;
        statement.query_map([], |row| row.get(0))?.collect()
    })?;
    Ok(paths.iter().filter_map(|path| WorkspacePath::parse(path).ok()).collect())
}

/// Changes with everything that people want to know of them; `rest` is the condition and order.
fn described(store: &Store, rest: &str, values: impl rusqlite::Params) -> Result<Vec<PathChange>, StoreError> {
    store.db().read(|connection| {
        let mut statement = connection.prepare_cached(&format!(
            "SELECT {COLUMNS}, checkpoints.id, checkpoints.at, sessions.id, windows.turn, windows.tool, operations.id
             FROM changes
             JOIN checkpoints ON checkpoints.seq = changes.checkpoint
             LEFT JOIN sessions ON sessions.seq = changes.session
             LEFT JOIN windows ON windows.seq = changes.window
             LEFT JOIN operations ON operations.seq = changes.operation
             {rest}"
        ))?;
        let rows = statement.query_map(values, |row| {
            let Some(change) = from_row(row)? else { return Ok(None) };
            let session = row.get::<_, Option<[u8; 16]>>(11)?.map(SessionId::from_bytes);
            let operation = row.get::<_, Option<[u8; 16]>>(14)?.map(OperationId::from_bytes);
            let certainty = match change.by.verdict {
                Verdict::Certain => Certainty::Certain,
                _ => Certainty::Presumed,
            };
            let owner = match (change.by.verdict, change.by.window, session, operation) {
                (Verdict::Contested, ..) => Owner::Contested,
                (_, None, session, Some(operation)) => Owner::Retake { operation, session },
                (_, Some(_), Some(session), _) => {
                    let tool = row.get::<_, Option<String>>(13)?.unwrap_or_default();
                    Owner::Session { session, turn: row.get(12)?, tool, certainty }
                }
                _ => Owner::Outside,
            };
            let at = Timestamp(row.get(10)?);
            let checkpoint = CheckpointId::from_bytes(row.get(9)?);
            let ChangeRow { path, before, after, .. } = change;
            Ok(Some(PathChange { path, before, after, checkpoint, at, owner }))
        })?;
        rows.filter_map(Result::transpose).collect()
    })
}

/// The history of `path` and everything below it, newest first.
pub(crate) fn history(store: &Store, path: &WorkspacePath) -> Result<Vec<PathChange>, StoreError> {
    let (mut low, mut high) = (path.as_bytes().to_vec(), path.as_bytes().to_vec());
    low.push(b'/');
    high.push(b'/' + 1);
    described(
        store,
        &format!(
            "WHERE changes.kind = {CHANGED} AND (changes.path = ?1 OR (changes.path > ?2 AND changes.path < ?3))
         ORDER BY changes.seq DESC"
        ),
        params![path.as_bytes(), low, high],
    )
}

/// All changes after checkpoint `from` in order, also those that were found by checkpoints which are gone.
pub(crate) fn after(store: &Store, from: i64) -> Result<Vec<ChangeRow>, StoreError> {
    let rest = &format!("WHERE changes.kind = {CHANGED} AND changes.checkpoint > ?1 ORDER BY changes.seq");
    store.db().read(|connection| select(connection, rest, [from]))
}

/// All changes after checkpoint `from` up to checkpoint `to`, in order.
pub(crate) fn between(store: &Store, from: i64, to: i64) -> Result<Vec<PathChange>, StoreError> {
    described(
        store,
        &format!(
            "WHERE changes.kind = {CHANGED} AND changes.checkpoint > ?1 AND changes.checkpoint <= ?2 ORDER BY changes.seq"
        ),
        [from, to],
    )
}

/// The windows that are open, oldest first.
pub(crate) fn open_windows(store: &Store) -> Result<Vec<OpenWindow>, StoreError> {
    store.db().read(|connection| {
        let mut statement = connection.prepare_cached(
            "SELECT seq, session, operation, everything FROM windows WHERE closed IS NULL ORDER BY seq",
        )?;
        let rows = statement.query_map([], |row| {
            let reach = match row.get::<_, u8>(3)? {
                0 => Reach::Declared,
                1 => Reach::Everything,
                _ => Reach::Spans,
            };
            Ok(OpenWindow {
                seq: row.get(0)?,
                session: row.get(1)?,
                operation: row.get(2)?,
                reach,
                declared: BTreeSet::new(),
                spans: Some(Vec::new()),
                ended: None,
            })
        })?;
        let mut windows: Vec<OpenWindow> = rows.collect::<rusqlite::Result<_>>()?;
        let mut declared = connection.prepare_cached("SELECT path FROM window_paths WHERE window = ?")?;
        for window in &mut windows {
            let paths: Vec<Vec<u8>> =
                declared.query_map([window.seq], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
            window.declared = paths.iter().filter_map(|path| WorkspacePath::parse(path).ok()).collect();
            if window.reach == Reach::Spans {
                window.spans = window::spans_of(store.dir(), window.seq).read();
            }
            window.ended = window::ended(store.dir(), window.seq);
        }
        Ok(windows)
    })
}

/// A window that is open, if it has spans, with all that is known of it now.
pub(crate) fn window_with_spans(tx: &Transaction<'_>, window: &Window) -> Result<Option<OpenWindow>, StoreError> {
    let sql = &format!("SELECT session, operation FROM windows WHERE seq = ? AND everything IN {WITH_SPANS}");
    let row = tx.query_row(sql, [window.seq], |row| Ok((row.get(0)?, row.get(1)?))).optional();
    let Some((session, operation)) = row.map_err(in_transaction(tx))? else { return Ok(None) };
    let mut window = OpenWindow {
        seq: window.seq,
        session,
        operation,
        reach: Reach::Spans,
        declared: BTreeSet::new(),
        spans: window.spans().read(),
        ended: None,
    };
    window.is_held();
    Ok(Some(window))
}

/// A change that may have to be judged again.
pub(crate) struct Rejudged {
    pub(crate) seq: i64,
    pub(crate) path: WorkspacePath,
    pub(crate) changed: FileTime,
    /// What it was found to be.
    pub(crate) verdict: u8,
    /// Another session is presumed to have made it.
    pub(crate) is_presumed_of_others: bool,
}

/// The changes that checkpoints before `before` found in the turn of `window`, made at `since` or later, and that may be its own, by what was known then: not those
/// that another session declared, nor those that it contests with one. A tool may be announced when windows in which its work was found
/// have already ended.
pub(crate) fn to_judge_again(
    tx: &Transaction<'_>,
    window: &OpenWindow,
    since: FileTime,
    before: i64,
) -> Result<Vec<Rejudged>, StoreError> {
    let sql = "SELECT changes.seq, path, changed, certainty,
             changes.session IS NOT NULL AND changes.session != windows.session
         FROM changes JOIN windows ON windows.seq = ?1
         WHERE changes.checkpoint >= coalesce((SELECT min(opened) FROM windows first
                 WHERE first.operation = windows.operation), windows.opened)
             AND changed >= ?4 AND changes.checkpoint < ?5
             AND (changes.window = ?1 OR (changes.window IS NULL AND changes.operation IS NULL)
                 OR (changes.session != windows.session AND certainty = ?2))
             AND NOT (certainty = ?3 AND EXISTS (SELECT 1 FROM windows others WHERE others.session != windows.session
                 AND others.opened < changes.checkpoint
                 AND (others.closed IS NULL OR others.closed >= changes.checkpoint)))";
    let row = |row: &Row<'_>| {
        let path: Vec<u8> = row.get(1)?;
        let Ok(path) = WorkspacePath::parse(&path) else { return Ok(None) };
        let (seq, changed, verdict) = (row.get(0)?, FileTime(row.get(2)?), row.get(3)?);
        Ok(Some(Rejudged { seq, path, changed, verdict, is_presumed_of_others: row.get(4)? }))
    };
    tx.prepare_cached(sql)
        .and_then(|mut statement| {
            let values = params![window.seq, Verdict::Presumed as u8, Verdict::Contested as u8, since.0, before];
            statement.query_map(values, row)?.filter_map(Result::transpose).collect()
        })
        .map_err(in_transaction(tx))
}

/// The first checkpoint at or after `since` before which a tool of a session declared `path`.
pub(crate) fn first_declared(
    store: &Store,
    lineage: &Lineage,
    path: &WorkspacePath,
    since: i64,
) -> Result<Option<i64>, StoreError> {
    store.db().read(|connection| {
        connection
            .prepare_cached(&format!(
                "SELECT min(opened) FROM windows JOIN window_paths ON window = seq
                 WHERE path = ? AND opened >= ? AND {}",
                lineage.condition("session", "opened")
            ))?
            .query_row(params![path.as_bytes(), since], |row| row.get(0))
            .optional()
            .map(Option::flatten)
    })
}

/// Paths that tools declared while they may have been at work already, and the first checkpoint before which one of those tools began, of
/// the windows since checkpoint `since` that match `condition`.
pub(crate) fn declared_at_work(
    store: &Store,
    since: i64,
    condition: &str,
) -> Result<Vec<(WorkspacePath, i64)>, StoreError> {
    let rows: Vec<(Vec<u8>, i64)> = store.db().read(|connection| {
        let mut statement = connection.prepare_cached(&format!(
            "SELECT path, min(opened) FROM windows JOIN window_paths ON window = seq
             WHERE opened >= ? AND everything IN {WITH_SPANS} AND {condition} GROUP BY path"
        ))?;
        statement.query_map([since], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
    })?;
    Ok(rows.into_iter().filter_map(|(path, seq)| Some((WorkspacePath::parse(&path).ok()?, seq))).collect())
}

/// Has `paths` captured from checkpoint `seq` on, whatever the rules say.
pub(crate) fn declare(tx: &Transaction<'_>, paths: &[Vec<u8>], seq: i64) -> Result<(), StoreError> {
    for path in paths {
        tx.execute("INSERT OR IGNORE INTO declared (path, since) VALUES (?, ?)", params![path, seq])
            .map_err(in_transaction(tx))?;
    }
    Ok(())
}

/// Writes down that checkpoint `seq` captured `paths`, which the rules leave out, because a rewind touches them.
pub(crate) fn note_wanted(tx: &Transaction<'_>, paths: &[Vec<u8>], seq: i64) -> Result<(), StoreError> {
    for path in paths {
        tx.execute("INSERT OR IGNORE INTO wanted (path, checkpoint) VALUES (?, ?)", params![path, seq])
            .map_err(in_transaction(tx))?;
    }
    Ok(())
}

/// Paths that a checkpoint captured although the rules left them out, because a rewind touched them.
pub(crate) fn wanted_by(store: &Store, checkpoint: CheckpointId) -> Result<BTreeSet<WorkspacePath>, StoreError> {
    let paths: Vec<Vec<u8>> = store.db().read(|connection| {
        let mut statement = connection
            .prepare_cached("SELECT path FROM wanted WHERE checkpoint = (SELECT seq FROM checkpoints WHERE id = ?1)")?;
        statement.query_map([&checkpoint.as_bytes()[..]], |row| row.get(0))?.collect()
    })?;
    Ok(paths.iter().filter_map(|path| WorkspacePath::parse(path).ok()).collect())
}

/// Writes down that checkpoint `seq` is the first that looked for those of `paths` that nobody has looked for before.
pub(crate) fn note_sought(tx: &Transaction<'_>, seq: i64, paths: &BTreeSet<WorkspacePath>) -> Result<(), StoreError> {
    let fresh: Vec<Vec<u8>> = tx
        .prepare_cached("SELECT path FROM declared WHERE since IS NULL")
        .and_then(|mut statement| statement.query_map([], |row| row.get(0))?.collect())
        .map_err(in_transaction(tx))?;
    let looked_for = |path: &Vec<u8>| WorkspacePath::parse(path).is_ok_and(|path| paths.contains(&path));
    for path in fresh.iter().filter(|path| looked_for(path)) {
        tx.execute("UPDATE declared SET since = ? WHERE path = ?", params![seq, path]).map_err(in_transaction(tx))?;
    }
    Ok(())
}

/// Paths that a checkpoint found deleted: they were not there, whatever the rules left out around them.
pub(crate) fn deleted_at(store: &Store, checkpoint: CheckpointId) -> Result<BTreeSet<WorkspacePath>, StoreError> {
    let paths: Vec<Vec<u8>> = store.db().read(|connection| {
        let mut statement = connection.prepare_cached(&format!(
            "SELECT path FROM changes WHERE kind = {CHANGED} AND after IS NULL
                 AND checkpoint = (SELECT seq FROM checkpoints WHERE id = ?1)"
        ))?;
        statement.query_map([&checkpoint.as_bytes()[..]], |row| row.get(0))?.collect()
    })?;
    Ok(paths.iter().filter_map(|path| WorkspacePath::parse(path).ok()).collect())
}

/// Paths that a checkpoint looked for whatever the rules said.
pub(crate) fn sought_by(store: &Store, checkpoint: CheckpointId) -> Result<BTreeSet<WorkspacePath>, StoreError> {
    let paths: Vec<Vec<u8>> = store.db().read(|connection| {
        let mut statement = connection.prepare_cached(
            "SELECT path FROM declared WHERE since <= (SELECT seq FROM checkpoints WHERE id = ?1)
                 UNION SELECT path FROM held WHERE since <= (SELECT seq FROM checkpoints WHERE id = ?1)
                 UNION SELECT path FROM wanted WHERE checkpoint = (SELECT seq FROM checkpoints WHERE id = ?1)",
        )?;
        statement.query_map([&checkpoint.as_bytes()[..]], |row| row.get(0))?.collect()
    })?;
    Ok(paths.iter().filter_map(|path| WorkspacePath::parse(path).ok()).collect())
}

/// Paths that are not as they were at checkpoint `point`.
pub(crate) fn differing(store: &Store, point: i64) -> Result<Vec<WorkspacePath>, StoreError> {
    let mut ends: BTreeMap<WorkspacePath, (Option<Node>, Option<Node>)> = BTreeMap::new();
    for change in after(store, point)? {
        ends.entry(change.path).or_insert((change.before, None)).1 = change.after;
    }
    let differs = |(before, after): &(Option<Node>, Option<Node>)| {
        let node = before.or(*after);
        !same(before.as_ref(), after.as_ref())
            && node.is_some_and(|node| node.kind != crate::store::tree::NodeKind::Directory)
    };
    Ok(ends.into_iter().filter(|(_, ends)| differs(ends)).map(|(path, _)| path).collect())
}
