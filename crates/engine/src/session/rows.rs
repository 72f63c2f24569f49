//! Entries, heads and drafts in the database.
//!
//! Free functions over a connection, because two of them write: a session's writer appends, and an operation moves the head in the
//! transaction that records it.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::entry::{Body, Entry, Part};
use super::load::invalid;
use super::parse;
use crate::base::id::{EntryId, SessionId};
use crate::base::settings::Timestamp;
use crate::history::codes::CONVERSATION;
use crate::history::lineage;
use crate::store::StoreError;
use crate::store::db::in_transaction;

/// An entry that is a prompt.
const PROMPT: u8 = EntryKind::Prompt as u8;

/// What kind of entry a row is, as far as a query has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    Other = 0,
    Prompt = 1,
}

impl EntryKind {
    fn of(body: &Body) -> Self {
        match body {
            Body::Prompt { .. } => Self::Prompt,
            _ => Self::Other,
        }
    }
}

/// An entry with its row number.
#[derive(Clone, Debug)]
pub(crate) struct EntryRow {
    pub(crate) seq: i64,
    pub(crate) entry: Entry,
}

/// Where a session stands.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    pub(crate) seq: i64,
    pub(crate) head: Option<i64>,
    pub(crate) draft: Vec<Part>,
}

/// Where a session stands; `None` if there is no such session, or it is no conversation.
pub(crate) fn standing(connection: &Connection, session: SessionId) -> rusqlite::Result<Option<Standing>> {
    connection
        .prepare_cached(&format!("SELECT seq, head, draft FROM sessions WHERE id = ? AND kind = {CONVERSATION}"))?
        .query_row([&session.as_bytes()[..]], |row| {
            Ok(Standing { seq: row.get(0)?, head: row.get(1)?, draft: parse_draft(row.get(2)?) })
        })
        .optional()
}

fn parse_draft(text: Option<String>) -> Vec<Part> {
    text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

/// Writes an entry after `parent` and returns its row number. The head stays.
pub(crate) fn insert(
    tx: &Transaction<'_>,
    session: i64,
    parent: Option<i64>,
    entry: &Entry,
) -> Result<i64, StoreError> {
    let body = serde_json::to_string(&entry.body).expect("entries serialise");
    tx.prepare_cached("INSERT INTO entries (id, session, parent, at, kind, body) VALUES (?, ?, ?, ?, ?, ?)")
        .and_then(|mut insert| {
            let kind = EntryKind::of(&entry.body) as u8;
            insert.execute(params![entry.id.to_string(), session, parent, entry.at.0, kind, body])
        })
        .map_err(in_transaction(tx))?;
    Ok(tx.last_insert_rowid())
}

/// Whether the head is at `head`.
pub(crate) fn is_head(tx: &Transaction<'_>, session: i64, head: Option<i64>) -> Result<bool, StoreError> {
    tx.prepare_cached("SELECT head IS ?2 FROM sessions WHERE seq = ?1")
        .and_then(|mut statement| statement.query_row(params![session, head], |row| row.get(0)))
        .map_err(in_transaction(tx))
}

/// Moves the head from `from` to `to`; `false`, and nothing is written, if it is not there any more.
pub(crate) fn move_head(
    tx: &Transaction<'_>,
    session: i64,
    from: Option<i64>,
    to: Option<i64>,
) -> Result<bool, StoreError> {
    tx.prepare_cached("UPDATE sessions SET head = ?3 WHERE seq = ?1 AND head IS ?2")
        .and_then(|mut update| update.execute(params![session, from, to]))
        .map(|moved| moved == 1)
        .map_err(in_transaction(tx))
}

/// Sets what the user is about to say.
pub(crate) fn set_draft(tx: &Transaction<'_>, session: i64, draft: &[Part]) -> Result<(), StoreError> {
    let text = (!draft.is_empty()).then(|| serde_json::to_string(draft).expect("parts serialise"));
    tx.execute("UPDATE sessions SET draft = ? WHERE seq = ?", params![text, session])
        .map(drop)
        .map_err(in_transaction(tx))
}

/// Whether somebody has said just this: then the log has it.
pub(crate) fn was_said(connection: &Connection, parts: &[Part]) -> rusqlite::Result<bool> {
    let body = serde_json::to_string(&Body::Prompt { parts: parts.to_vec() }).expect("entries serialise");
    connection
        .prepare_cached(&format!("SELECT EXISTS (SELECT 1 FROM entries WHERE kind = {PROMPT} AND body = ?)"))?
        .query_row([body], |row| row.get(0))
}

/// Sets what the session is called.
pub(crate) fn set_title(tx: &Transaction<'_>, session: i64, title: &str) -> Result<(), StoreError> {
    tx.execute("UPDATE sessions SET title = ? WHERE seq = ?", params![title, session])
        .map(drop)
        .map_err(in_transaction(tx))
}

fn from_row(row: &Row<'_>, parent: Option<EntryId>) -> rusqlite::Result<EntryRow> {
    let (seq, at) = (row.get(0)?, row.get(3)?);
    let body = parse::body(row.get_ref(4)?.as_str()?).map_err(|err| invalid(4, err.into()))?;
    let id: EntryId = row.get_ref(1)?.as_str()?.parse().map_err(|err| invalid(1, Box::new(err)))?;
    Ok(EntryRow { seq, entry: Entry { id, parent, at: Timestamp(at), body } })
}

/// Row numbers from the first entry to `head`, with the kind of each.
fn walk(connection: &Connection, head: Option<i64>) -> rusqlite::Result<Vec<(i64, u8)>> {
    let mut seqs = Vec::new();
    let mut wanted = head;
    let mut of_session = connection.prepare_cached("SELECT session FROM entries WHERE seq = ?")?;
    let mut entries = connection
        .prepare_cached("SELECT seq, parent, kind FROM entries WHERE session = ? AND seq <= ? ORDER BY seq DESC")?;
    while let Some(from) = wanted {
        let session: i64 = of_session.query_row([from], |row| row.get(0))?;
        let mut rows = entries.query([session, from])?;
        while let Some(row) = rows.next()? {
            let seq = row.get(0)?;
            if Some(seq) == wanted {
                seqs.push((seq, row.get(2)?));
                wanted = row.get(1)?;
                if wanted.is_none() {
                    break;
                }
            }
        }
    }
    seqs.reverse();
    Ok(seqs)
}

/// Row numbers from the first entry to `head`.
pub(crate) fn chain_seqs(connection: &Connection, head: Option<i64>) -> rusqlite::Result<Vec<i64>> {
    Ok(walk(connection, head)?.into_iter().map(|(seq, _)| seq).collect())
}

/// Row numbers of the prompts from the first entry to `head`.
pub(crate) fn prompts(connection: &Connection, head: Option<i64>) -> rusqlite::Result<Vec<i64>> {
    let is_prompt = |(seq, kind)| (kind == EntryKind::Prompt as u8).then_some(seq);
    Ok(walk(connection, head)?.into_iter().filter_map(is_prompt).collect())
}

/// The entry with this row number, if it is a prompt, without its parent.
pub(crate) fn prompt(connection: &Connection, seq: i64) -> rusqlite::Result<Option<Entry>> {
    let entry = connection
        .prepare_cached(&format!("SELECT seq, id, parent, at, body FROM entries WHERE seq = ? AND kind = {PROMPT}"))?
        .query_row([seq], |row| from_row(row, None))
        .optional()?;
    Ok(entry.map(|row| row.entry))
}

/// One entry, with the row number of its parent.
pub(crate) fn by_seq(connection: &Connection, seq: i64) -> rusqlite::Result<Option<(EntryRow, Option<i64>)>> {
    connection
        .prepare_cached("SELECT seq, id, parent, at, body FROM entries WHERE seq = ?")?
        .query_row([seq], |row| Ok((row.get::<_, Option<i64>>(2)?, from_row(row, None)?)))
        .optional()?
        .map(|(parent, mut row)| {
            row.entry.parent = parent.map(|parent| id_of(connection, parent)).transpose()?.flatten();
            Ok((row, parent))
        })
        .transpose()
}

/// The id of the entry with this row number.
pub(crate) fn id_of(connection: &Connection, seq: i64) -> rusqlite::Result<Option<EntryId>> {
    let text: Option<String> = connection
        .prepare_cached("SELECT id FROM entries WHERE seq = ?")?
        .query_row([seq], |row| row.get(0))
        .optional()?;
    Ok(text.and_then(|text| text.parse().ok()))
}

/// The row number and the session of the entry with this id.
pub(crate) fn find(connection: &Connection, id: EntryId) -> rusqlite::Result<Option<(i64, i64)>> {
    connection
        .prepare_cached("SELECT seq, session FROM entries WHERE id = ?")?
        .query_row([id.to_string()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
}

/// Entries that continue `seq`, oldest first.
pub(crate) fn children(connection: &Connection, seq: i64) -> rusqlite::Result<Vec<EntryRow>> {
    let parent = id_of(connection, seq)?;
    let mut statement =
        connection.prepare_cached("SELECT seq, id, parent, at, body FROM entries WHERE parent = ? ORDER BY seq")?;
    statement.query_map([seq], |row| from_row(row, parent))?.collect()
}

/// Everything that was ever said in a session, abandoned branches included, and what it was forked from, oldest first.
pub(crate) fn all(connection: &Connection, session: i64) -> rusqlite::Result<Vec<EntryRow>> {
    let mut all = Vec::new();
    for seq in lineage::inherited(connection, session)? {
        all.extend(by_seq(connection, seq)?.map(|(row, _)| row));
    }
    let mut statement =
        connection.prepare_cached("SELECT seq, id, parent, at, body FROM entries WHERE session = ? ORDER BY seq")?;
    let mut ids: HashMap<i64, EntryId> = HashMap::new();
    let mut rows = statement.query([session])?;
    while let Some(row) = rows.next()? {
        let parent = match row.get::<_, Option<i64>>(2)? {
            None => None,
            Some(seq) => match ids.get(&seq) {
                Some(id) => Some(*id),
                None => id_of(connection, seq)?,
            },
        };
        let row = from_row(row, parent)?;
        ids.insert(row.seq, row.entry.id);
        all.push(row);
    }
    Ok(all)
}

/// Pairs a checkpoint with the head of a session, unless that is at `known`.
pub(crate) fn pair_new_head(
    tx: &Transaction<'_>,
    session: i64,
    known: Option<i64>,
    checkpoint: i64,
) -> Result<(), StoreError> {
    let sql = "INSERT OR IGNORE INTO points SELECT head, ?3 FROM sessions WHERE seq = ?1 AND head IS NOT ?2";
    tx.execute(sql, params![session, known, checkpoint]).map(drop).map_err(in_transaction(tx))
}

/// Row numbers of checkpoints paired with an entry, newest last. Some may be gone.
pub(crate) fn paired(connection: &Connection, entry: i64) -> rusqlite::Result<Vec<i64>> {
    let mut statement =
        connection.prepare_cached("SELECT checkpoint FROM points WHERE entry = ? ORDER BY checkpoint")?;
    statement.query_map([entry], |row| row.get(0))?.collect()
}
