//! What a session leaves behind when it is deleted: everything that its forks need becomes one of theirs.

use rusqlite::{OptionalExtension, Transaction, params};

use super::lineage;
use crate::store::StoreError;
use crate::store::db::in_transaction;

/// A fork that takes over.
#[derive(Clone, Copy, Debug)]
struct Heir {
    session: i64,
    /// The newest checkpoint when it was forked.
    forked_after: i64,
}

/// Hands over what forks of `session` need of it: entries with their points, the turns that they are of, and what was changed in them.
/// The oldest fork gets it, so that nobody comes to own what another fork did.
pub(super) fn hand_over(tx: &Transaction<'_>, session: i64) -> Result<(), StoreError> {
    let wrap = in_transaction(tx);
    let heir = tx
        .query_row(
            "SELECT seq, ifnull(forked_after, 0) FROM sessions WHERE parent = ? AND kind = 1
             ORDER BY forked_after, seq LIMIT 1",
            [session],
            |row| Ok(Heir { session: row.get(0)?, forked_after: row.get(1)? }),
        )
        .optional()
        .map_err(&wrap)?;
    let Some(heir) = heir else { return Ok(()) };
    for entry in lineage::needed_by_others(tx, session).map_err(&wrap)? {
        let run = |sql: &str| tx.prepare_cached(sql).and_then(|mut s| s.execute([heir.session, entry])).map_err(&wrap);
        run("UPDATE entries SET session = ?1 WHERE seq = ?2")?;
        run("UPDATE operations SET session = ?1 WHERE entry = ?2 AND kind = 4")?;
    }
    hand_over_changes(tx, session, heir)?;
    take_its_place(tx, session, heir)
}

/// What was changed until the fork was made is the heir's past, as it was before.
fn hand_over_changes(tx: &Transaction<'_>, session: i64, heir: Heir) -> Result<(), StoreError> {
    let wrap = in_transaction(tx);
    let Heir { session: heir, forked_after } = heir;
    let run = |sql: &str| tx.execute(sql, params![session, heir, forked_after]).map_err(&wrap);
    run("UPDATE windows SET session = ?2,
             operation = (SELECT seq FROM operations WHERE seq = windows.operation AND session = ?2)
         WHERE session = ?1 AND opened <= ?3")?;
    run("UPDATE changes SET session = ?2,
             operation = (SELECT seq FROM operations WHERE seq = changes.operation AND session = ?2)
         WHERE session = ?1 AND checkpoint <= ?3")?;
    tx.execute(
        "UPDATE checkpoints SET session = ?2 WHERE session = ?1 AND (
             seq IN (SELECT checkpoint FROM points JOIN entries ON entries.seq = points.entry WHERE entries.session = ?2)
             OR seq IN (SELECT before FROM operations WHERE session = ?2)
             OR seq IN (SELECT after FROM operations WHERE session = ?2))",
        [session, heir],
    )
    .map(drop)
    .map_err(&wrap)
}

/// The heir has the origin of the session that goes; the other forks are the heir's, from when it was forked itself.
fn take_its_place(tx: &Transaction<'_>, session: i64, heir: Heir) -> Result<(), StoreError> {
    let wrap = in_transaction(tx);
    let Heir { session: heir, forked_after } = heir;
    tx.execute(
        "UPDATE sessions SET (parent, forked_at, forked_after, origin) =
             (SELECT parent, forked_at, forked_after, origin FROM sessions WHERE seq = ?1) WHERE seq = ?2",
        [session, heir],
    )
    .map_err(&wrap)?;
    tx.execute(
        "UPDATE sessions SET parent = ?2, forked_after = min(forked_after, ?3) WHERE parent = ?1",
        [session, heir, forked_after],
    )
    .map(drop)
    .map_err(&wrap)
}
