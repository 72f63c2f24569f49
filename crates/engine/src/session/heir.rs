//! What a session leaves behind when it is deleted: everything that its forks need becomes theirs.

use rusqlite::{Transaction, params};

use super::lineage;
use crate::operation;
use crate::store::StoreError;
use crate::store::db::in_transaction;

/// A fork that takes over.
#[derive(Clone, Copy, Debug)]
struct Heir {
    session: i64,
    /// The newest checkpoint when it was forked.
    forked_after: i64,
}

/// Hands over what forks of `session` need of it: entries with their points and the turns that they are of to the oldest fork, and to
/// each what was changed until it was forked and is no older fork's past. Then each is a fork of the next older one from when that was
/// forked itself, so that all of them own what they did before, and none what another fork did.
pub(super) fn hand_over(tx: &Transaction<'_>, session: i64) -> Result<(), StoreError> {
    let wrap = in_transaction(tx);
    let heirs: Vec<Heir> = tx
        .prepare_cached(
            "SELECT seq, ifnull(forked_after, 0) AS after FROM sessions WHERE parent = ? AND kind = 1 ORDER BY after, seq",
        )
        .and_then(|mut statement| {
            let heir = |row: &rusqlite::Row<'_>| Ok(Heir { session: row.get(0)?, forked_after: row.get(1)? });
            statement.query_map([session], heir)?.collect()
        })
        .map_err(&wrap)?;
    let Some(oldest) = heirs.first() else { return Ok(()) };
    for entry in lineage::needed_by_others(tx, session).map_err(&wrap)? {
        let run =
            |sql: &str| tx.prepare_cached(sql).and_then(|mut s| s.execute([oldest.session, entry])).map_err(&wrap);
        run("UPDATE entries SET session = ?1 WHERE seq = ?2")?;
        // It is nothing that the heir did itself, so it does not undo it either.
        let inherited = operation::INHERITED;
        run(&format!("UPDATE operations SET session = ?1, live = {inherited} WHERE entry = ?2 AND kind = 4"))?;
    }
    hand_over_checkpoints(tx, session, oldest.session)?;
    for heir in &heirs {
        hand_over_changes(tx, session, *heir, oldest.session)?;
    }
    take_its_place(tx, session, &heirs)
}

/// What was changed until a fork was made is its past, as it was before. Older forks have taken what is theirs.
fn hand_over_changes(tx: &Transaction<'_>, session: i64, heir: Heir, oldest: i64) -> Result<(), StoreError> {
    let wrap = in_transaction(tx);
    let Heir { session: heir, forked_after } = heir;
    let run = |sql: &str| tx.execute(sql, params![session, heir, forked_after, oldest]).map_err(&wrap);
    run("UPDATE windows SET session = ?2,
             operation = (SELECT seq FROM operations WHERE seq = windows.operation AND session = ?4)
         WHERE session = ?1 AND opened <= ?3")?;
    run("UPDATE changes SET session = ?2,
             operation = (SELECT seq FROM operations WHERE seq = changes.operation AND session = ?4)
         WHERE session = ?1 AND checkpoint <= ?3")
    .map(drop)
}

fn hand_over_checkpoints(tx: &Transaction<'_>, session: i64, heir: i64) -> Result<(), StoreError> {
    tx.execute(
        "UPDATE checkpoints SET session = ?2 WHERE session = ?1 AND (
             seq IN (SELECT checkpoint FROM points JOIN entries ON entries.seq = points.entry WHERE entries.session = ?2)
             OR seq IN (SELECT before FROM operations WHERE session = ?2)
             OR seq IN (SELECT after FROM operations WHERE session = ?2))",
        [session, heir],
    )
    .map(drop)
    .map_err(in_transaction(tx))
}

/// The oldest heir has the origin of the session that goes; each of the others is forked from the next older one.
fn take_its_place(tx: &Transaction<'_>, session: i64, heirs: &[Heir]) -> Result<(), StoreError> {
    let wrap = in_transaction(tx);
    for pair in heirs.windows(2) {
        let sql = "UPDATE sessions SET parent = ?2, forked_after = ?3 WHERE seq = ?1";
        tx.execute(sql, [pair[1].session, pair[0].session, pair[0].forked_after]).map_err(&wrap)?;
    }
    let Some(oldest) = heirs.first() else { return Ok(()) };
    tx.execute(
        "UPDATE sessions SET (parent, forked_at, forked_after, origin) =
             (SELECT parent, forked_at, forked_after, origin FROM sessions WHERE seq = ?1) WHERE seq = ?2",
        [session, oldest.session],
    )
    .map(drop)
    .map_err(&wrap)
}
