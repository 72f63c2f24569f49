//! What a session leaves behind when it is deleted: everything that its forks need becomes theirs.
//!
//! Its forks become a row, each forked from the one before it, so that all of them own the same past as before:
//!
//! ```text
//! A --t1--+--t2--t3--+            B: t1
//!         B          C     =>     +-- C: t2, t3
//! ```

use rusqlite::{Transaction, params};

use super::{lineage, rows};
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
/// Each goes to the oldest fork that has it in its own past, so that nobody comes to know what was never said there.
pub(super) fn hand_over(tx: &Transaction<'_>, session: i64) -> Result<(), StoreError> {
    let heirs = heirs(tx, session).map_err(in_transaction(tx))?;
    for heir in &heirs {
        hand_over_entries(tx, session, *heir)?;
    }
    for heir in &heirs {
        hand_over_changes(tx, session, *heir)?;
    }
    for heir in &heirs {
        hand_over_checkpoints(tx, session, *heir)?;
    }
    let Some(first) = heirs.first() else { return Ok(()) };
    take_its_place(tx, session, *first)?;
    heirs.windows(2).try_for_each(|pair| follow(tx, pair[0], pair[1]))
}

/// Forks of a session, oldest first.
fn heirs(tx: &Transaction<'_>, session: i64) -> rusqlite::Result<Vec<Heir>> {
    let sql = "SELECT seq, ifnull(forked_after, 0) FROM sessions WHERE parent = ? ORDER BY forked_after, seq";
    let heir = |row: &rusqlite::Row<'_>| Ok(Heir { session: row.get(0)?, forked_after: row.get(1)? });
    tx.prepare_cached(sql)?.query_map([session], heir)?.collect()
}

fn hand_over_entries(tx: &Transaction<'_>, session: i64, heir: Heir) -> Result<(), StoreError> {
    let wrap = in_transaction(tx);
    for entry in lineage::needed_by(tx, session, heir.session).map_err(&wrap)? {
        let run = |sql: &str| tx.prepare_cached(sql).and_then(|mut s| s.execute([heir.session, entry])).map_err(&wrap);
        run("UPDATE entries SET session = ?1 WHERE seq = ?2")?;
        run("UPDATE operations SET session = ?1 WHERE entry = ?2 AND kind = 4")?;
    }
    Ok(())
}

/// What was changed until the fork was made is the heir's past, as it was before.
fn hand_over_changes(tx: &Transaction<'_>, session: i64, heir: Heir) -> Result<(), StoreError> {
    let Heir { session: heir, forked_after } = heir;
    let run = |sql: &str| tx.execute(sql, params![session, heir, forked_after]).map_err(in_transaction(tx));
    run("UPDATE windows SET session = ?2,
             operation = (SELECT seq FROM operations WHERE seq = windows.operation AND session IS NOT ?1)
         WHERE session = ?1 AND opened <= ?3")?;
    run("UPDATE changes SET session = ?2,
             operation = (SELECT seq FROM operations WHERE seq = changes.operation AND session IS NOT ?1)
         WHERE session = ?1 AND checkpoint <= ?3")
    .map(drop)
}

fn hand_over_checkpoints(tx: &Transaction<'_>, session: i64, heir: Heir) -> Result<(), StoreError> {
    let run = |sql: &str| tx.execute(sql, [session, heir.session]).map(drop).map_err(in_transaction(tx));
    run("UPDATE checkpoints SET session = ?2 WHERE session = ?1 AND (
             seq IN (SELECT checkpoint FROM points JOIN entries ON entries.seq = points.entry WHERE entries.session = ?2)
             OR seq IN (SELECT before FROM operations WHERE session = ?2)
             OR seq IN (SELECT after FROM operations WHERE session = ?2))")
}

/// The heir has the origin of the session that goes.
fn take_its_place(tx: &Transaction<'_>, session: i64, heir: Heir) -> Result<(), StoreError> {
    tx.execute(
        "UPDATE sessions SET (parent, forked_at, forked_after, origin) =
             (SELECT parent, forked_at, forked_after, origin FROM sessions WHERE seq = ?1) WHERE seq = ?2",
        [session, heir.session],
    )
    .map(drop)
    .map_err(in_transaction(tx))
}

/// The younger of two heirs is forked from the elder: from when that was forked itself, where what was said in them parts.
fn follow(tx: &Transaction<'_>, elder: Heir, younger: Heir) -> Result<(), StoreError> {
    let wrap = in_transaction(tx);
    let forked_at: Option<i64> = tx
        .query_row("SELECT forked_at FROM sessions WHERE seq = ?", [younger.session], |row| row.get(0))
        .map_err(&wrap)?;
    let way = rows::chain_seqs(tx, forked_at).map_err(&wrap)?;
    let mut parted = None;
    for entry in way.into_iter().rev() {
        if lineage::holds(tx, elder.session, entry).map_err(&wrap)? {
            parted = Some(entry);
            break;
        }
    }
    tx.execute(
        "UPDATE sessions SET parent = ?2, forked_at = ?3, forked_after = ?4 WHERE seq = ?1",
        params![younger.session, elder.session, parted, elder.forked_after],
    )
    .map(drop)
    .map_err(&wrap)
}
