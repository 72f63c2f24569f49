//! Moving the head: what an operation does to a conversation, and how that is taken back.
//!
//! Entries stay where they are; an operation remembers where the head was and where it went. If the head has moved on since, an
//! undo leaves it where it is.

use rusqlite::{Connection, OptionalExtension, Transaction, params};
use serde::{Deserialize, Serialize};

use super::entry::{Block, Body, Entry, Part};
use super::remove;
use super::rows::{self, EntryRow};
use crate::base::id::{EntryId, OperationId};
use crate::base::limits;
use crate::base::path::WorkspacePath;
use crate::base::settings::Timestamp;
use crate::history::codes::{REDO, UNDO};
use crate::store::StoreError;
use crate::store::db::in_transaction;

/// Whether what leaves a conversation is removed at once, so that it cannot come back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Discard {
    /// It stays until retention takes it.
    #[default]
    No,
    /// It goes.
    Now,
}

/// What an operation did, or is to do, to a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Moved {
    /// Row numbers of the head before and after.
    pub(crate) from: Option<i64>,
    pub(crate) to: Option<i64>,
    /// What the user was about to say before and after; `None` if that was left alone.
    pub(crate) draft_before: Option<Vec<Part>>,
    pub(crate) draft_after: Option<Vec<Part>>,
    /// The note that is still to be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<PendingNote>,
    /// Whether what left was removed.
    #[serde(default)]
    pub(crate) discard: Discard,
}

/// A note that is written when it is known what became of the files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PendingNote {
    pub(crate) id: EntryId,
    pub(crate) at: Timestamp,
    pub(crate) kind: NoteKind,
    /// The files that it is about, if they are known beforehand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) about: Vec<String>,
}

/// What a note is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum NoteKind {
    /// Files went back, and the conversation did not.
    WentBack,
    /// The conversation went back, and files did not.
    Stayed,
    /// The same, and it is not known any more which files differ.
    MayDiffer,
    /// Both moved, but for these files.
    Kept,
    /// The conversation goes on from here a second time, and files do not.
    Forked,
}

impl Moved {
    /// What `operation` did, with its row number.
    pub(crate) fn of(tx: &Transaction<'_>, operation: OperationId) -> Result<Option<(i64, Self)>, StoreError> {
        let row: Option<(i64, Option<String>)> = tx
            .query_row("SELECT seq, conversation FROM operations WHERE id = ?", [&operation.as_bytes()[..]], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()
            .map_err(in_transaction(tx))?;
        Ok(row.and_then(|(seq, text)| Some((seq, parse(text)?))))
    }

    /// What the operation with row number `seq` did.
    pub(crate) fn by_seq(connection: &Connection, seq: i64) -> rusqlite::Result<Option<Self>> {
        let text: Option<Option<String>> = connection
            .prepare_cached("SELECT conversation FROM operations WHERE seq = ?")?
            .query_row([seq], |row| row.get(0))
            .optional()?;
        Ok(parse(text.flatten()))
    }

    /// Writes it down as what the operation with row number `seq` does.
    pub(crate) fn store(&self, tx: &Transaction<'_>, seq: i64) -> Result<(), StoreError> {
        let text = serde_json::to_string(self).expect("numbers and parts serialise");
        tx.execute("UPDATE operations SET conversation = ? WHERE seq = ?", params![text, seq])
            .map(drop)
            .map_err(in_transaction(tx))
    }

    /// Carries it out for the operation with row number `seq`, which gave new states to `files`. Returns whether the head was where
    /// it had to be; otherwise nothing is written.
    pub(crate) fn carry_out(
        mut self,
        tx: &Transaction<'_>,
        session: i64,
        seq: i64,
        files: &[WorkspacePath],
    ) -> Result<bool, StoreError> {
        if !rows::is_head(tx, session, self.from)? {
            return Ok(false);
        }
        if let Some(entry) = self.note.take().and_then(|note| note.entry(files)) {
            self.to = Some(rows::insert(tx, session, self.to, &entry)?);
        }
        rows::move_head(tx, session, self.from, self.to)?;
        if let Some(draft) = &self.draft_after {
            rows::set_draft(tx, session, draft)?;
        }
        if self.discard == Discard::Now {
            remove::discard(tx, session, self.from, self.to)?;
            (self.draft_before, self.draft_after) = (None, None);
        }
        retitle(tx, session, self.to)?;
        self.store(tx, seq)?;
        Ok(true)
    }
}

fn parse(text: Option<String>) -> Option<Moved> {
    text.and_then(|text| serde_json::from_str(&text).ok())
}

impl PendingNote {
    /// The note as an entry, if there is anything to tell: `files` are those that the operation was about.
    pub(super) fn entry(self, files: &[WorkspacePath]) -> Option<Entry> {
        let about: Vec<String> = match self.kind {
            NoteKind::WentBack | NoteKind::Stayed | NoteKind::Forked => files.iter().map(name).collect(),
            NoteKind::MayDiffer => Vec::new(),
            NoteKind::Kept => self.about,
        };
        if about.is_empty() && self.kind != NoteKind::MayDiffer {
            return None;
        }
        let mut list: Vec<String> =
            about.iter().take(limits::MAX_NOTED_FILES).map(|path| format!("- {path}")).collect();
        if about.len() > list.len() {
            list.push(format!("- and {} more", about.len() - list.len()));
        }
        let what = match self.kind {
            NoteKind::WentBack => {
                "The user has taken these files back to an earlier state. They are no longer as you left or saw them; read them \
                 again before you rely on what is in them:"
            }
            NoteKind::Stayed => {
                "The user has taken this conversation back to here, but not the files. These files differ from what you last \
                 saw; read them again before you rely on what is in them:"
            }
            NoteKind::MayDiffer => {
                "The user has taken this conversation back to here, but not the files. All of them may differ from what you last \
                 saw; read a file again before you rely on what is in it."
            }
            NoteKind::Kept => {
                "The user has taken this conversation and the files to where they are here, but for these files. They may not be \
                 as you last saw them; read them again before you rely on what is in them:"
            }
            NoteKind::Forked => {
                "This conversation was forked from here, but the files are those of now. These files differ from what you last \
                 saw; read them again before you rely on what is in them:"
            }
        };
        list.insert(0, what.to_owned());
        let text = list.join("\n");
        Some(Entry { id: self.id, parent: None, at: self.at, body: Body::Note { about, text } })
    }
}

/// A path as a note tells it.
pub(crate) fn name(path: &WorkspacePath) -> String {
    path.display().to_string()
}

/// What notes after the entry `to` are about that undos and redos have added; `None` if anything else was said since, but for what
/// another agent said after the end of its turn.
pub(crate) fn noted_since(
    connection: &Connection,
    session: i64,
    head: Option<i64>,
    to: Option<i64>,
) -> rusqlite::Result<Option<Vec<String>>> {
    let mut noted = Vec::new();
    let mut at = head;
    while at != to {
        let Some(seq) = at else { return Ok(None) };
        let Some((row, parent)) = rows::by_seq(connection, seq)? else { return Ok(None) };
        let about = match row.entry.body {
            Body::Note { about, .. } => about,
            // Without a prompt before it, it is the rest of what the turn said, come late.
            Body::Reply { .. } | Body::ToolResult { .. } => {
                at = parent;
                continue;
            }
            _ => return Ok(None),
        };
        // Later operations may have come back to it.
        let by_undo: Option<bool> = connection
            .prepare_cached(
                &format!("SELECT kind IN ({UNDO}, {REDO}) FROM operations WHERE session = ? AND json_extract(conversation, '$.to') = ?
                 ORDER BY seq LIMIT 1"),
            )?
            .query_row([session, seq], |row| row.get(0))
            .optional()?;
        if by_undo != Some(true) {
            return Ok(None);
        }
        noted.extend(about);
        at = parent;
    }
    Ok(Some(noted))
}

/// Calls a session after the first prompt of what is retained.
pub(crate) fn retitle(tx: &Transaction<'_>, session: i64, head: Option<i64>) -> Result<String, StoreError> {
    let title = title(tx, head).map_err(in_transaction(tx))?;
    rows::set_title(tx, session, &title)?;
    Ok(title)
}

fn title(connection: &Connection, head: Option<i64>) -> rusqlite::Result<String> {
    let Some(first) = rows::prompts(connection, head)?.into_iter().next() else { return Ok(String::new()) };
    Ok(rows::prompt(connection, first)?.map_or_else(String::new, |prompt| prompt.body.first_line()))
}

/// The last entry of the round that the entry with row number `seq` is in: a call is never cut off from its results.
pub(crate) fn settled(connection: &Connection, seq: i64, head: Option<i64>) -> rusqlite::Result<i64> {
    let retained = rows::chain_seqs(connection, head)?;
    let mut at = seq;
    loop {
        let results = rows::children(connection, at)?;
        let is_result = |row: &&EntryRow| matches!(row.entry.body, Body::ToolResult { .. } | Body::Approved { .. });
        let mut results = results.iter().filter(is_result);
        // What is retained, else what came last.
        let next = results.clone().find(|row| retained.binary_search(&row.seq).is_ok()).or_else(|| results.next_back());
        match next {
            Some(next) if is_open(connection, at)? => at = next.seq,
            _ => return Ok(at),
        }
    }
}

/// Whether calls of the round that ends with the entry `seq` are still to be answered.
pub(super) fn is_open(connection: &Connection, seq: i64) -> rusqlite::Result<bool> {
    let mut answered = std::collections::HashSet::new();
    let mut at = Some(seq);
    while let Some(seq) = at {
        let Some((row, parent)) = rows::by_seq(connection, seq)? else { return Ok(false) };
        match row.entry.body {
            Body::ToolResult { call, .. } => drop(answered.insert(call)),
            Body::Approved { .. } => {}
            Body::Reply { blocks, .. } => {
                let open = |block: &Block| matches!(block, Block::Call { id, .. } if !answered.contains(id));
                return Ok(blocks.iter().any(open));
            }
            _ => return Ok(false),
        }
        at = parent;
    }
    Ok(false)
}
