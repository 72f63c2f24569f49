//! What a session leaves behind when it is deleted: everything that its forks need becomes theirs.

use rusqlite::{Transaction, params};

use super::rows;
use crate::history::codes::{CONVERSATION, TURN};
use crate::history::{lineage, operation};
use crate::store::StoreError;
use crate::store::db::in_transaction;

/// A fork that takes over.
#[derive(Clone, Copy, Debug)]
struct Successor {
    session: i64,
    /// The newest checkpoint when it was forked.
    forked_after: i64,
}

/// Hands over what forks of `session` need of it, to each what no older one has taken: entries with their points and the turns that they
/// are of, and what was changed until it was forked. Then each is a fork of the next older one from when that was forked itself, so that
/// all of them own what they did before, and none what another fork did.
pub(super) fn hand_over(tx: &Transaction<'_>, session: i64) -> Result<(), StoreError> {
    let wrap = in_transaction(tx);
    let successors: Vec<Successor> = tx
        .prepare_cached(
            &format!("SELECT seq, ifnull(forked_after, 0) AS after FROM sessions WHERE parent = ? AND kind = {CONVERSATION} ORDER BY after, seq"),
        )
        .and_then(|mut statement| {
            let successor = |row: &rusqlite::Row<'_>| Ok(Successor { session: row.get(0)?, forked_after: row.get(1)? });
            statement.query_map([session], successor)?.collect()
        })
        .map_err(&wrap)?;
    for successor in &successors {
        hand_over_entries(tx, session, *successor)?;
    }
    for successor in &successors {
        hand_over_changes(tx, session, *successor)?;
    }
    take_its_place(tx, session, &successors)
}

fn hand_over_entries(tx: &Transaction<'_>, session: i64, successor: Successor) -> Result<(), StoreError> {
    let wrap = in_transaction(tx);
    let Successor { session: successor, forked_after } = successor;
    for entry in lineage::needed_by(tx, session, successor).map_err(&wrap)? {
        let run = |sql: &str, by: i64| tx.prepare_cached(sql).and_then(|mut s| s.execute([by, entry])).map_err(&wrap);
        run("UPDATE entries SET session = ?1 WHERE seq = ?2", successor)?;
        // It is nothing that the successor did itself, so it does not undo it either.
        let inherited = operation::INHERITED;
        let turn = format!("UPDATE operations SET session = ?1, live = {inherited} WHERE entry = ?2 AND kind = {TURN}");
        run(&turn, successor)?;
        // When the session that goes came back to it later, that was none of the successor's.
        run("DELETE FROM points WHERE checkpoint > ?1 AND entry = ?2", forked_after)?;
    }
    tx.execute(
        "UPDATE checkpoints SET session = ?2 WHERE session = ?1 AND (
             seq IN (SELECT checkpoint FROM points JOIN entries ON entries.seq = points.entry WHERE entries.session = ?2)
             OR seq IN (SELECT before FROM operations WHERE session = ?2)
             OR seq IN (SELECT after FROM operations WHERE session = ?2))",
        [session, successor],
    )
    .map(drop)
    .map_err(&wrap)
}

/// What was changed until a fork was made is its past, as it was before.
fn hand_over_changes(tx: &Transaction<'_>, session: i64, successor: Successor) -> Result<(), StoreError> {
    let wrap = in_transaction(tx);
    let Successor { session: successor, forked_after } = successor;
    let run = |sql: &str| tx.execute(sql, params![session, successor, forked_after]).map_err(&wrap);
    run("UPDATE windows SET session = ?2,
             operation = (SELECT seq FROM operations WHERE seq = windows.operation AND session <> ?1)
         WHERE session = ?1 AND opened <= ?3")?;
    run("UPDATE changes SET session = ?2,
             operation = (SELECT seq FROM operations WHERE seq = changes.operation AND session <> ?1)
         WHERE session = ?1 AND checkpoint <= ?3")
    .map(drop)
}

/// The oldest successor has the origin of the session that goes; each of the others is forked from the next older one.
fn take_its_place(tx: &Transaction<'_>, session: i64, successors: &[Successor]) -> Result<(), StoreError> {
    let wrap = in_transaction(tx);
    for pair in successors.windows(2) {
        follow(tx, pair[0], pair[1])?;
    }
    let Some(oldest) = successors.first() else { return Ok(()) };
    tx.execute(
        "UPDATE sessions SET (parent, forked_at, forked_after, origin) =
             (SELECT parent, forked_at, forked_after, origin FROM sessions WHERE seq = ?1) WHERE seq = ?2",
        [session, oldest.session],
    )
    .map(drop)
    .map_err(&wrap)
}

/// The younger of two successors is forked from the elder: from when that was forked itself, where what was said in them parts.
fn follow(tx: &Transaction<'_>, elder: Successor, younger: Successor) -> Result<(), StoreError> {
    let wrap = in_transaction(tx);
    let forked_at: Option<i64> = tx
        .query_row("SELECT forked_at FROM sessions WHERE seq = ?", [younger.session], |row| row.get(0))
        .map_err(&wrap)?;
    let mut parted = None;
    for entry in rows::chain_seqs(tx, forked_at).map_err(&wrap)?.into_iter().rev() {
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
