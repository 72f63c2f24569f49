//! What a turn did to the files: counted when it ends, and again when a background job of it ends.

use std::collections::BTreeMap;

use rusqlite::{Connection, Transaction, params};
use serde::{Deserialize, Serialize};

use super::ledger::LedgerItem;
use super::outside_effects;
use super::owner::ChangeKind;
use crate::base::settings::Environment;
use crate::history::codes::{CHANGED, DONE, TURN, WITH_COMMANDS};
use crate::snapshot::diff::Changed;
use crate::store::StoreError;
use crate::store::db::in_transaction;
use crate::store::tree::{Node, NodeKind, decode_node};

/// What a turn did to the files, in short.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct TurnSummary {
    /// Files added.
    pub added: u64,
    /// Files modified.
    pub modified: u64,
    /// Files deleted.
    pub deleted: u64,
    /// The tool calls that changed something, or could have, oldest first.
    pub tools: Vec<String>,
    /// Whether commands ran, which may have had effects that nothing knows of.
    pub ran_commands: bool,
    /// Effects that are known to be outside the files: git moved, a process left running, a gap, a path that a command line names.
    pub outside: Vec<LedgerItem>,
}

impl TurnSummary {
    /// With the paths outside the workspace that its command lines name.
    pub(crate) fn with_names(mut self, environment: &Environment) -> Self {
        if self.ran_commands {
            self.outside.extend(outside_effects::named(environment, &self.tools));
        }
        self
    }
}

/// The checkpoint with row number `checkpoint` is the one before the turn that `entry` began.
pub(crate) fn begins_turn(tx: &Transaction<'_>, entry: i64, checkpoint: i64) -> Result<(), StoreError> {
    tx.execute("UPDATE operations SET before = ? WHERE entry = ?", [checkpoint, entry])
        .map(drop)
        .map_err(in_transaction(tx))
}

/// Writes down what turns that have ended did to the files, and the checkpoint after them.
pub(crate) fn summarise_turns(tx: &Transaction<'_>, session: i64, checkpoint: i64) -> Result<(), StoreError> {
    let wrap = in_transaction(tx);
    let open: Vec<i64> = tx
        .prepare_cached(&format!(
            "SELECT seq FROM operations WHERE session = ? AND kind = {TURN} AND state = {DONE} AND summary IS NULL"
        ))
        .and_then(|mut statement| statement.query_map([session], |row| row.get(0))?.collect())
        .map_err(&wrap)?;
    for operation in open {
        tx.execute("UPDATE operations SET after = ? WHERE seq = ?", params![checkpoint, operation]).map_err(&wrap)?;
        let summary = summarise(tx, operation).map_err(&wrap)?;
        let text = serde_json::to_string(&summary).expect("counts and names serialise");
        tx.execute("UPDATE operations SET summary = ? WHERE seq = ?", params![text, operation]).map_err(&wrap)?;
    }
    Ok(())
}

/// Counts again what a turn did to the files, after a background job of it has ended.
pub(crate) fn summarise_again(tx: &Transaction<'_>, operation: i64) -> Result<(), StoreError> {
    let wrap = in_transaction(tx);
    let summary = summarise(tx, operation).map_err(&wrap)?;
    let text = serde_json::to_string(&summary).expect("counts and names serialise");
    tx.execute("UPDATE operations SET summary = ? WHERE seq = ? AND summary IS NOT NULL", params![text, operation])
        .map(drop)
        .map_err(&wrap)
}

/// What the turn with row number `operation` did to the files.
pub(crate) fn summarise(connection: &Connection, operation: i64) -> rusqlite::Result<TurnSummary> {
    let mut summary = TurnSummary::default();
    let mut tools = connection.prepare_cached(&format!(
        "SELECT tool, everything IN {WITH_COMMANDS} FROM windows WHERE operation = ? ORDER BY seq"
    ))?;
    let mut rows = tools.query([operation])?;
    while let Some(row) = rows.next()? {
        summary.tools.push(row.get(0)?);
        summary.ran_commands |= row.get::<_, bool>(1)?;
    }
    let mut changes = connection.prepare_cached(&format!(
        "SELECT path, before, after FROM changes WHERE operation = ? AND kind = {CHANGED} ORDER BY seq"
    ))?;
    let mut rows = changes.query([operation])?;
    let mut ends: BTreeMap<Vec<u8>, (Option<Node>, Option<Node>)> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let node = |column| {
            let bytes: Option<Vec<u8>> = row.get(column)?;
            Ok::<_, rusqlite::Error>(bytes.as_deref().and_then(decode_node))
        };
        let (before, after) = (node(1)?, node(2)?);
        ends.entry(row.get(0)?).or_insert((before, None)).1 = after;
    }
    let hidden = hidden(connection, operation, |path| is_known(&ends, path))?;
    let mut changed = Changed::default();
    for (before, after) in ends.into_values() {
        if before.or(after).is_none_or(|node| node.kind == NodeKind::Directory) {
            continue;
        }
        match (before, after) {
            (None, Some(_)) => changed.added += 1,
            (Some(_), None) => changed.deleted += 1,
            (before, after) if before != after => changed.modified += 1,
            _ => {}
        }
    }
    changed.added += hidden;
    summary.outside = outside_effects::left(connection, operation, &summary.tools)?;
    Ok(TurnSummary { added: changed.added, modified: changed.modified, deleted: changed.deleted, ..summary })
}

/// How many paths the turn with row number `operation` created hidden, but for those that `is_counted`; a directory is one of them.
fn hidden(connection: &Connection, operation: i64, is_counted: impl Fn(&[u8]) -> bool) -> rusqlite::Result<u64> {
    let mut statement =
        connection.prepare_cached("SELECT DISTINCT path FROM changes WHERE operation = ? AND kind = ?")?;
    let paths = statement.query_map(params![operation, ChangeKind::Hidden as u8], |row| row.get::<_, Vec<u8>>(0))?;
    let paths: Vec<Vec<u8>> = paths.collect::<rusqlite::Result<_>>()?;
    Ok(paths.iter().filter(|path| !is_counted(path)).count() as u64)
}

/// Whether `ends` tells of `path`, or of something below it.
fn is_known<T>(ends: &BTreeMap<Vec<u8>, T>, path: &[u8]) -> bool {
    let below = [path, b"/"].concat();
    ends.contains_key(path) || ends.range(below.clone()..).next().is_some_and(|(next, _)| next.starts_with(&below))
}
