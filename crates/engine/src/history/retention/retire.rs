//! Checkpoints that go, and what goes with them.
//!
//! A checkpoint that something depends on never goes: the newest one, from which the next one tells what changed; the one
//! before an interrupted rewind; the one before a tool call that is still under way.

use std::collections::HashSet;

use rusqlite::{OptionalExtension, Transaction, params};

use crate::base::id::SessionId;
use crate::base::settings::Timestamp;
use crate::history::codes::CONVERSATION;
use crate::history::{operation, session_lock};
use crate::store::{Durability, Store, StoreError, db};

/// Row numbers of checkpoints that something depends on.
pub(super) const NEEDED: &str = "SELECT max(seq) FROM checkpoints
    UNION SELECT before FROM operations WHERE seq IN (SELECT operation FROM intents)
    UNION SELECT opened FROM windows WHERE closed IS NULL";

/// Row numbers of checkpoints that retention takes: unlabelled ones older than `?1` that neither something depends on nor an
/// operation since then.
const OUTDATED: &str = "SELECT seq FROM checkpoints WHERE label IS NULL AND at < ?1
    AND seq NOT IN (SELECT before FROM operations WHERE at >= ?1)
    AND seq NOT IN (SELECT after FROM operations WHERE at >= ?1 AND after IS NOT NULL)";

/// A condition for operations that can no longer be undone, since the point before them is gone.
const GONE: &str = "operations.before NOT IN (SELECT seq FROM checkpoints)
    AND NOT (operations.kind = 4 AND operations.state = 0) AND operations.seq NOT IN (SELECT operation FROM intents)";

/// What retention took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Retired {
    /// Checkpoints.
    pub(crate) checkpoints: u64,
    /// Operations that can no longer be undone.
    pub(crate) operations: u64,
}

impl Store {
    /// Removes unlabelled checkpoints taken before `cutoff`.
    ///
    /// `also` runs in the same transaction, when they are gone.
    pub(crate) fn retire(
        &self,
        cutoff: Timestamp,
        also: impl Fn(&Transaction<'_>) -> Result<(), StoreError>,
    ) -> Result<Retired, StoreError> {
        let outdated = self.outdated(cutoff)?;
        self.db().transaction(Durability::Synced, |tx| {
            let retired = remove(tx, &outdated)?;
            also(tx)?;
            Ok(retired)
        })
    }

    /// The checkpoints that [`retire`](Self::retire) would remove, by row number.
    pub(crate) fn outdated(&self, cutoff: Timestamp) -> Result<Vec<i64>, StoreError> {
        let mut outdated: Vec<i64> = self.db().read(|connection| {
            let mut statement = connection.prepare(&format!("{OUTDATED} AND seq NOT IN ({NEEDED}) ORDER BY seq"))?;
            statement.query_map([cutoff.0], |row| row.get(0))?.collect()
        })?;
        let needed = self.needed_by_live_sessions()?;
        outdated.retain(|seq| !needed.contains(seq));
        Ok(outdated)
    }

    /// Checkpoints that operations of sessions refer to which somebody has open, by row number.
    fn needed_by_live_sessions(&self) -> Result<HashSet<i64>, StoreError> {
        let sessions: Vec<(i64, [u8; 16])> = self.db().read(|connection| {
            let mut statement =
                connection.prepare(&format!("SELECT seq, id FROM sessions WHERE kind = {CONVERSATION}"))?;
            statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        })?;
        let is_live = |id: [u8; 16]| session_lock::is_live(self.dir(), SessionId::from_bytes(id));
        let mut needed = HashSet::new();
        for (seq, _) in sessions.into_iter().filter(|(_, id)| is_live(*id)) {
            let points: Vec<Option<i64>> = self.db().read(|connection| {
                let mut statement = connection.prepare(
                    "SELECT before FROM operations WHERE session = ?1 UNION SELECT after FROM operations WHERE session = ?1",
                )?;
                statement.query_map([seq], |row| row.get(0))?.collect()
            })?;
            needed.extend(points.into_iter().flatten());
        }
        Ok(needed)
    }
}

/// Removes checkpoints, unless they were labelled or are needed meanwhile, and what makes no sense without them.
pub(super) fn remove(tx: &Transaction<'_>, points: &[i64]) -> Result<Retired, StoreError> {
    let wrap = db::in_transaction(tx);
    let mut delete = tx
        .prepare(&format!("DELETE FROM checkpoints WHERE seq = ? AND label IS NULL AND seq NOT IN ({NEEDED})"))
        .map_err(&wrap)?;
    let mut retired = Retired::default();
    for seq in points {
        retired.checkpoints += delete.execute([seq]).map_err(&wrap)? as u64;
    }
    if retired.checkpoints > 0 {
        retired.operations = remove_dependents(tx).map_err(&wrap)?;
    }
    Ok(retired)
}

/// Removes what only told of checkpoints that are gone; returns how many operations went.
fn remove_dependents(tx: &Transaction<'_>) -> rusqlite::Result<u64> {
    let oldest: Option<i64> =
        tx.query_row("SELECT min(seq) FROM checkpoints", [], |row| row.get(0)).optional()?.flatten();
    let Some(oldest) = oldest else { return Ok(0) };
    operation::remember_gone(tx, GONE)?;
    // What led up to the oldest point is of no use to any rewind.
    tx.execute("DELETE FROM changes WHERE checkpoint <= ?", [oldest])?;
    let operations = tx.execute(&format!("DELETE FROM operations WHERE {GONE}"), [])?;
    tx.execute(
        "DELETE FROM windows WHERE closed <= ?
             AND seq NOT IN (SELECT window FROM changes WHERE window IS NOT NULL)
             AND (operation IS NULL OR operation NOT IN (SELECT seq FROM operations))",
        params![oldest],
    )?;
    Ok(operations as u64)
}
