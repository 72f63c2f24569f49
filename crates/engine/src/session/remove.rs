//! What leaves a conversation for good: a suffix that is discarded, branches that nobody can go back to any more, whole sessions.
//! What a fork needs stays.

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::path::Path;

use rusqlite::{OptionalExtension, Transaction, params};

use super::writer::{self, SessionError, SessionWriter};
use super::{fork_handover, rows};
use crate::base::id::SessionId;
use crate::base::plain_file;
use crate::base::settings::Timestamp;
use crate::history::sessions::{Sessions, Shown};
use crate::history::{lineage, operation, turn_summary};
use crate::store::db::in_transaction;
use crate::store::{Durability, StoreError};
use crate::workspace::Workspace;

/// Where adapters keep what belongs to a session: a file each, with the session's id as `session` in its first line.
const TIES: &str = "acp";

/// What deleting a session took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deleted {
    /// Entries.
    pub entries: u64,
    /// Checkpoints; labelled ones stay.
    pub checkpoints: u64,
    /// Forks of it that were undone, which nothing could bring back any more.
    pub undone_forks: Vec<SessionId>,
}

impl Sessions<&Workspace> {
    /// Forks of a session that are undone: they go with it when it is deleted, with what was said in them.
    pub fn undone_forks(&self, session: SessionId) -> Result<Vec<SessionId>, StoreError> {
        let sql = format!(
            "WITH RECURSIVE undone (seq) AS (
                 SELECT seq FROM sessions WHERE id = ?1
                 UNION SELECT sessions.seq FROM sessions JOIN undone ON sessions.parent = undone.seq WHERE kind = {}
             ) SELECT id FROM sessions JOIN undone USING (seq) WHERE id <> ?1 ORDER BY seq",
            Shown::No as u8
        );
        self.0.store.db().read(|connection| {
            let id = |row: &rusqlite::Row<'_>| row.get(0).map(SessionId::from_bytes);
            connection.prepare_cached(&sql)?.query_map([&session.as_bytes()[..]], id)?.collect()
        })
    }
}

impl Sessions<&mut Workspace> {
    /// Deletes a session with everything that only it needs; its forks keep what they were made from. Files stay as they are, and what
    /// it did can no longer be taken back.
    #[expect(clippy::needless_pass_by_value, reason = "nobody writes to it any more")]
    pub fn delete(&mut self, writer: SessionWriter) -> Result<Deleted, SessionError> {
        let session = writer.seq();
        let _own = self.0.store.own()?;
        // What it has replaced may still be needed to put everything in order.
        if let Some(operation) = operation::unfinished(&self.0.store, session)? {
            return Err(SessionError::Pending { operation: Box::new(operation) });
        }
        let undone_forks = self.0.sessions().undone_forks(writer.id())?;
        self.0.store.db().erase_deleted()?;
        let deleted = self.0.store.db().transaction(Durability::Synced, |tx| delete(tx, session))?;
        self.0.store.db().erase();
        writer::forget_lock(self.0.store.dir(), writer.id());
        let gone: Vec<String> = undone_forks.iter().chain([&writer.id()]).map(ToString::to_string).collect();
        forget_ties(self.0.store.dir(), &gone);
        Ok(Deleted { undone_forks, ..deleted })
    }
}

/// Removes what adapters keep beside sessions: files whose first line names the session.
fn forget_ties(store: &Path, gone: &[String]) {
    let Ok(files) = std::fs::read_dir(store.join(TIES)) else { return };
    for file in files.flatten().map(|file| file.path()) {
        let mut first = String::new();
        // One that cannot be read is nobody's that is known.
        let read = plain_file::open(&file).and_then(|file| BufReader::new(file).read_line(&mut first));
        let named = serde_json::from_str::<serde_json::Value>(&first).ok().filter(|_| read.is_ok());
        let is_gone = named.is_some_and(|named| gone.iter().any(|id| named["session"] == id.as_str()));
        if is_gone {
            // It names nothing any more; what is left is found out by whoever reads it.
            std::fs::remove_file(&file).ok();
        }
    }
}

fn delete(tx: &Transaction<'_>, session: i64) -> Result<Deleted, StoreError> {
    let wrap = in_transaction(tx);
    let run = |sql: &str| tx.execute(sql, [session]).map_err(&wrap);
    let mut deleted = Deleted::default();
    // With its operations goes what could bring these back.
    for undone in hidden(tx, "parent = ?", [session])? {
        let with_it = delete(tx, undone)?;
        deleted.entries += with_it.entries;
        deleted.checkpoints += with_it.checkpoints;
    }
    fork_handover::hand_over(tx, session)?;
    run(
        "DELETE FROM operations WHERE reverses IN (SELECT seq FROM operations WHERE json_extract(fork, '$.session') = ?)",
    )?;
    run("DELETE FROM operations WHERE json_extract(fork, '$.session') = ?")?;
    run("DELETE FROM points WHERE entry IN (SELECT seq FROM entries WHERE session = ?)")?;
    let entries = run("DELETE FROM entries WHERE session = ?")?;
    // The newest checkpoint tells the next one what has changed since; it stays, but not as this session's.
    let checkpoints = run("DELETE FROM checkpoints WHERE session = ? AND label IS NULL
             AND seq <> (SELECT max(seq) FROM checkpoints)")?;
    run("UPDATE checkpoints SET session = NULL, note = NULL WHERE session = ?")?;
    run("DELETE FROM operations WHERE session = ?")?;
    run("UPDATE changes SET window = NULL, operation = NULL WHERE session = ?")?;
    run("DELETE FROM windows WHERE session = ?")?;
    run("DELETE FROM sessions WHERE seq = ?")?;
    deleted.entries += entries as u64;
    deleted.checkpoints += checkpoints as u64;
    Ok(deleted)
}

/// Sessions whose fork is undone and for which `condition` holds, by row number.
fn hidden(tx: &Transaction<'_>, condition: &str, values: impl rusqlite::Params) -> Result<Vec<i64>, StoreError> {
    let sql = format!("SELECT seq FROM sessions WHERE kind = {} AND {condition}", Shown::No as u8);
    tx.prepare(&sql)
        .and_then(|mut statement| statement.query_map(values, |row| row.get(0))?.collect())
        .map_err(in_transaction(tx))
}

/// Removes what is on the way from `to` to `from` and everything that continues it. What a fork needs stays.
pub(crate) fn discard(
    tx: &Transaction<'_>,
    session: i64,
    from: Option<i64>,
    to: Option<i64>,
) -> Result<(), StoreError> {
    let wrap = in_transaction(tx);
    let kept: HashSet<i64> = rows::chain_seqs(tx, to).map_err(&wrap)?.into_iter().collect();
    let leaving: Vec<i64> = rows::chain_seqs(tx, from).map_err(&wrap)?;
    let Some(first) = leaving.into_iter().find(|seq| !kept.contains(seq)) else { return Ok(()) };
    let branch: Vec<i64> = tx
        .prepare_cached(
            "WITH RECURSIVE branch (seq) AS (
                 VALUES (?1) UNION ALL SELECT entries.seq FROM entries JOIN branch ON entries.parent = branch.seq
             ) SELECT branch.seq FROM branch JOIN entries ON entries.seq = branch.seq WHERE entries.session = ?2",
        )
        .and_then(|mut statement| statement.query_map([first, session], |row| row.get(0))?.collect())
        .map_err(&wrap)?;
    // A fork needs what it was made from.
    let needed: HashSet<i64> = lineage::needed_by_others(tx, session).map_err(&wrap)?.into_iter().collect();
    let leaving: Vec<i64> = branch.into_iter().filter(|seq| !needed.contains(seq)).collect();
    for seq in &leaving {
        // What was about to be said before a turn is mostly what was said then.
        tx.prepare_cached(
            "UPDATE operations SET conversation = json_set(conversation, '$.draft_before', NULL, '$.draft_after', NULL)
             WHERE session = ?1 AND conversation IS NOT NULL AND (entry = ?2
                 OR json_extract(conversation, '$.from') = ?2 OR json_extract(conversation, '$.to') = ?2)",
        )
        .and_then(|mut update| update.execute([session, *seq]))
        .map_err(&wrap)?;
        forget_commands(tx, *seq)?;
    }
    remove(tx, leaving.into_iter())
}

/// Keeps only the names of the tools that the turn with the prompt `seq` called: what they were called with is what was said.
fn forget_commands(tx: &Transaction<'_>, seq: i64) -> Result<(), StoreError> {
    let wrap = in_transaction(tx);
    const ITS: &str = "(SELECT id FROM entries WHERE seq = ?1)";
    let name = |column: &str| format!("substr({column}, 1, instr({column} || ':', ':') - 1)");
    let points =
        format!("SELECT opened FROM windows WHERE turn = {ITS} UNION SELECT closed FROM windows WHERE turn = {ITS}");
    for sql in [
        format!("UPDATE checkpoints SET note = {} WHERE note IS NOT NULL AND seq IN ({points})", name("note")),
        format!("UPDATE windows SET tool = {} WHERE turn = {ITS}", name("tool")),
    ] {
        tx.prepare_cached(&sql).and_then(|mut update| update.execute([seq])).map_err(&wrap)?;
    }
    let turn: Option<i64> = tx
        .prepare_cached("SELECT seq FROM operations WHERE entry = ?")
        .and_then(|mut turn| turn.query_row([seq], |row| row.get(0)).optional())
        .map_err(&wrap)?;
    turn.map_or(Ok(()), |turn| turn_summary::summarise_again(tx, turn))
}

fn remove(tx: &Transaction<'_>, entries: impl Iterator<Item = i64>) -> Result<(), StoreError> {
    let wrap = in_transaction(tx);
    for seq in entries {
        tx.prepare_cached("DELETE FROM points WHERE entry = ?").and_then(|mut s| s.execute([seq])).map_err(&wrap)?;
        tx.prepare_cached("DELETE FROM entries WHERE seq = ?").and_then(|mut s| s.execute([seq])).map_err(&wrap)?;
    }
    Ok(())
}

/// Removes entries written before `cutoff` that are on no branch that leads to a head, to a label or to an operation that can be
/// undone.
pub(crate) fn retire(tx: &Transaction<'_>, cutoff: Timestamp) -> Result<u64, StoreError> {
    let wrap = in_transaction(tx);
    // An operation that is gone cannot be redone.
    let forgotten = "seq NOT IN (SELECT json_extract(fork, '$.session') FROM operations WHERE fork IS NOT NULL)";
    for undone in hidden(tx, forgotten, [])? {
        delete(tx, undone)?;
    }
    let roots: Vec<i64> = tx
        .prepare_cached(
            "SELECT head FROM sessions WHERE head IS NOT NULL
             UNION SELECT seq FROM entries WHERE at >= ?1
             UNION SELECT entry FROM points JOIN checkpoints ON checkpoints.seq = checkpoint WHERE label IS NOT NULL
             UNION SELECT json_extract(conversation, '$.from') FROM operations WHERE conversation IS NOT NULL
             UNION SELECT json_extract(conversation, '$.to') FROM operations WHERE conversation IS NOT NULL",
        )
        .and_then(|mut statement| {
            statement
                .query_map(params![cutoff.0], |row| row.get::<_, Option<i64>>(0))?
                .filter_map(Result::transpose)
                .collect()
        })
        .map_err(&wrap)?;
    let parents: std::collections::HashMap<i64, Option<i64>> = tx
        .prepare_cached("SELECT seq, parent FROM entries")
        .and_then(|mut statement| statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect())
        .map_err(&wrap)?;
    let mut needed = HashSet::new();
    for root in roots {
        let mut at = Some(root);
        while let Some(seq) = at.filter(|seq| needed.insert(*seq)) {
            at = parents.get(&seq).copied().flatten();
        }
    }
    let outdated: Vec<i64> = parents.keys().copied().filter(|seq| !needed.contains(seq)).collect();
    remove(tx, outdated.iter().copied())?;
    Ok(outdated.len() as u64)
}
