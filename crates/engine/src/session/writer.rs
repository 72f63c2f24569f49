//! The writer of a session: the one who appends to its conversation.
//!
//! There is one at a time, held by a lock on a file for as long as its process lives. It has a connection of its own, so that an
//! entry is written at once even while a snapshot is being taken. Whoever opens a session first puts in order what a process that
//! died has left: what was coming is written, calls without results get one that says so, and the turn ends.

use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use rusqlite::{OptionalExtension, Transaction, params};
use thiserror::Error;

use super::conversation::{Conversation, first_line, joined};
use super::entry::{Block, Body, CallId, EndReason, Entry, Outcome, Part};
use super::heads::{self, Moved};
use super::{Discard, head_target, load, rows, unfinished};
use crate::base::id::{EntryId, OperationId, SessionId};
use crate::base::settings::Timestamp;
use crate::history::checkpoint;
use crate::history::codes::{RUNNING, TURN};
use crate::history::operation::{self, MadeBy, NewOperation, Operation, OperationKind, OperationState};
use crate::history::session_lock::{is_live, lock_path, lock_patiently};
use crate::history::sessions::Sessions;
use crate::store::db::{Db, in_transaction};
use crate::store::{Durability, StoreError};
use crate::workspace::Workspace;

/// Something could not be done in a session; nothing was written.
#[derive(Debug, Error)]
pub enum SessionError {
    /// Another process has it open.
    #[error("session {} is open in another process", .session.short())]
    Live {
        /// The session.
        session: SessionId,
    },
    /// There is no such session, or it is no conversation.
    #[error("session {} is not a conversation", .session.short())]
    NotAConversation {
        /// The session.
        session: SessionId,
    },
    /// The head is not where the caller saw it, or an interrupted rewind is still to move it.
    #[error("the conversation has moved on since")]
    StaleHead,
    /// An interrupted operation has to be recovered first.
    #[error("an interrupted {} of `{}` has to be finished first", .operation.kind.name(), .operation.what)]
    Pending {
        /// The operation.
        operation: Box<Operation>,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// An entry that is about to be written.
#[derive(Clone, Debug)]
pub struct NewEntry {
    /// Its identity, made from fresh random bytes.
    pub id: EntryId,
    /// The time.
    pub at: Timestamp,
    /// What it says.
    pub body: Body,
}

/// A turn that is about to begin.
#[derive(Clone, Debug)]
pub struct NewTurn {
    /// The operation that it is.
    pub operation: OperationId,
    /// The time.
    pub at: Timestamp,
    /// Who makes it.
    pub made_by: MadeBy,
    /// What is written first: the prompt comes last, and it is the only one.
    pub entries: Vec<NewEntry>,
    /// What the user is about to say from then on, as [`SessionWriter::left_of`] tells; mostly nothing.
    pub draft: Vec<Part>,
}

/// The one who appends to a session's conversation.
#[derive(Debug)]
pub struct SessionWriter {
    db: Db,
    id: SessionId,
    seq: i64,
    head: Option<i64>,
    conversation: Conversation,
    draft: Vec<Part>,
    /// Where what is coming is noted.
    coming: PathBuf,
    _lock: File,
}

impl Sessions<&Workspace> {
    /// Opens a session for writing. `random` gives fresh random bytes for entries that have to be added because a process died.
    pub fn open(
        &self,
        session: SessionId,
        at: Timestamp,
        random: &mut dyn FnMut() -> [u8; 10],
    ) -> Result<SessionWriter, SessionError> {
        let lock = lock_patiently(self.0.store.dir(), session)?.ok_or(SessionError::Live { session })?;
        let db = Db::open(&self.0.store.dir().join("retake.db"))?;
        let standing = db.read(|connection| rows::standing(connection, session))?;
        let standing = standing.ok_or(SessionError::NotAConversation { session })?;
        let mut writer = SessionWriter {
            db,
            id: session,
            seq: standing.seq,
            head: None,
            conversation: Conversation::default(),
            draft: Vec::new(),
            coming: coming_path(self.0.store.dir(), session),
            _lock: lock,
        };
        writer.reload()?;
        writer.put_in_order(at, random)?;
        Ok(writer)
    }

    /// Whether a process has the session open for writing.
    pub fn is_live(&self, session: SessionId) -> bool {
        is_live(self.0.store.dir(), session)
    }

    /// What a session's conversation is now.
    pub fn conversation(&self, session: SessionId) -> Result<Conversation, SessionError> {
        let chain = self.0.store.db().read(|connection| {
            let Some(standing) = rows::standing(connection, session)? else { return Ok(None) };
            load::chain(connection, standing.head).map(Some)
        })?;
        let chain = chain.ok_or(SessionError::NotAConversation { session })?;
        Ok(Conversation::new(chain))
    }

    /// What the user of a session is about to say.
    pub fn draft(&self, session: SessionId) -> Result<Vec<Part>, SessionError> {
        let standing = self.0.store.db().read(|connection| rows::standing(connection, session))?;
        standing.map(|standing| standing.draft).ok_or(SessionError::NotAConversation { session })
    }

    /// Everything that was ever said in a session, abandoned branches included, oldest first.
    pub fn all_entries(&self, session: SessionId) -> Result<Vec<Entry>, SessionError> {
        let all = self.0.store.db().read(|connection| {
            let Some(standing) = rows::standing(connection, session)? else { return Ok(None) };
            rows::all(connection, standing.seq).map(Some)
        })?;
        let all = all.ok_or(SessionError::NotAConversation { session })?;
        Ok(all.into_iter().map(|row| row.entry).collect())
    }
}

impl SessionWriter {
    /// The session.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Gives back memory that is only there to be quick, as [`Workspace::rest`] does.
    pub fn rest(&self) {
        self.db.rest();
    }

    /// The conversation as it is.
    pub fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// What the user is about to say.
    pub fn draft(&self) -> &[Part] {
        &self.draft
    }

    pub(crate) fn seq(&self) -> i64 {
        self.seq
    }

    /// Reads everything again: an operation has moved the head.
    pub(crate) fn reload(&mut self) -> Result<(), StoreError> {
        let (standing, chain) = self.db.read(|connection| {
            let standing = rows::standing(connection, self.id)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
            let chain = load::chain(connection, standing.head)?;
            Ok((standing, chain))
        })?;
        self.head = standing.head;
        self.draft = standing.draft;
        self.conversation = Conversation::new(chain);
        Ok(())
    }

    /// Appends to the conversation.
    pub fn append(&mut self, new: Vec<NewEntry>, durability: Durability) -> Result<&[Entry], SessionError> {
        self.write(new, durability, |_, _| Ok(()))
    }

    /// What stays of `draft`, which waits to be said, when `said` is said by whoever made that from `loaded`.
    ///
    /// It goes if it is what was said, or what that was made from; and if it was said before, as what a rewind left there was, because then
    /// the log has it. Anything else somebody has typed elsewhere, and is nowhere but here.
    pub fn left_of(&self, draft: &[Part], said: &[Part], loaded: Option<&[Part]>) -> Result<Vec<Part>, SessionError> {
        let is_said = draft == said || loaded == Some(draft);
        if is_said || self.db.read(|connection| rows::was_said(connection, draft))? {
            return Ok(Vec::new());
        }
        Ok(draft.to_vec())
    }

    /// Begins a turn: its prompt is durable when this returns.
    pub fn begin_turn(&mut self, turn: NewTurn) -> Result<&[Entry], SessionError> {
        let Some(Body::Prompt { parts }) = turn.entries.last().map(|entry| &entry.body) else {
            panic!("a turn begins with a prompt");
        };
        let what = first_line(parts);
        let is_first = self.conversation.prompts().next().is_none();
        let (session, from, draft) = (self.seq, self.head, self.draft.clone());
        let NewTurn { operation, at, made_by, entries, draft: left } = turn;
        // What stays is none of the turn's, and undoing that leaves it alone.
        let (draft_before, draft_after) = if left.is_empty() { (Some(draft), Some(Vec::new())) } else { (None, None) };
        self.write(entries, Durability::Synced, |tx, head| {
            let before = newest_checkpoint(tx)?;
            let new = NewOperation {
                id: operation,
                at,
                session: Some(session),
                kind: OperationKind::Turn,
                what: &what,
                made_by,
            };
            let seq = operation::insert(tx, &new, before, None)?;
            let moved = Moved { from, to: Some(head), draft_before, draft_after, note: None, discard: Discard::No };
            moved.store(tx, seq)?;
            tx.execute("UPDATE operations SET entry = ? WHERE seq = ?", [head, seq]).map_err(in_transaction(tx))?;
            // Until a checkpoint of its own is taken, the prompt has the one before it.
            if before > 0 {
                checkpoint::pair(tx, head, before)?;
            }
            if is_first {
                rows::set_title(tx, session, &what)?;
            }
            rows::set_draft(tx, session, &left)
        })?;
        self.draft = left;
        let written = self.conversation.entries();
        Ok(&written[written.len() - 1..])
    }

    /// Cuts what the model sees of the conversation: it goes on after `cut`, and that can be undone.
    pub fn clear(&mut self, operation: OperationId, made_by: MadeBy, cut: NewEntry) -> Result<&[Entry], SessionError> {
        assert_eq!(cut.body, Body::Cleared, "only this cuts");
        self.project(operation, made_by, OperationKind::Clear, "what the model sees", cut)
    }

    /// Puts a summary in the place of a part of what the model sees, and that can be undone.
    pub fn summarise(
        &mut self,
        operation: OperationId,
        made_by: MadeBy,
        what: &str,
        summary: NewEntry,
    ) -> Result<&[Entry], SessionError> {
        assert!(matches!(summary.body, Body::Summary { .. }), "only this summarises");
        self.project(operation, made_by, OperationKind::Summary, what, summary)
    }

    /// Adds an entry that changes what the model sees of those before it, as an operation.
    fn project(
        &mut self,
        operation: OperationId,
        made_by: MadeBy,
        kind: OperationKind,
        what: &str,
        entry: NewEntry,
    ) -> Result<&[Entry], SessionError> {
        let (session, from, at) = (self.seq, self.head, entry.at);
        self.write(vec![entry], Durability::Synced, |tx, head| {
            let new = NewOperation { id: operation, at, session: Some(session), kind, what, made_by };
            let before = newest_checkpoint(tx)?;
            let seq = operation::insert(tx, &new, before, None)?;
            let (draft_before, draft_after) = (None, None);
            Moved { from, to: Some(head), draft_before, draft_after, note: None, discard: Discard::No }
                .store(tx, seq)?;
            operation::finish(tx, operation, OperationState::Done, Some(before))
        })
    }

    /// Notes what will be written when it is complete: should this process die first, it is written as it is now, at the end of the turn
    /// that runs. What was noted before is forgotten.
    pub fn note_coming(&self, entries: &[NewEntry]) -> Result<(), StoreError> {
        unfinished::note(&self.coming, self.conversation.entries(), entries)
    }

    /// Ends a turn with a last entry.
    pub fn end_turn(&mut self, operation: OperationId, end: NewEntry) -> Result<&[Entry], SessionError> {
        unfinished::forget(&self.coming);
        self.write(vec![end], Durability::Synced, |tx, head| end_turn(tx, operation, head))
    }

    /// Takes a turn back that came to nothing: its prompt is what the user is about to say, and then what else they were. Returns the
    /// prompt.
    pub fn take_back_turn(&mut self, operation: OperationId) -> Result<Vec<Part>, SessionError> {
        let (session, head, draft) = (self.seq, self.head, self.draft.clone());
        let said = self.db.transaction(Durability::Synced, |tx| {
            let Some((seq, moved)) = Moved::of(tx, operation)? else { return Ok(None) };
            if !rows::move_head(tx, session, head, moved.from)? {
                return Ok(None);
            }
            let said = head_target::prompt_of(tx, seq).map_err(in_transaction(tx))?.unwrap_or_default();
            rows::set_draft(tx, session, &joined([said.clone(), draft]))?;
            heads::retitle(tx, session, moved.from)?;
            operation::finish(tx, operation, OperationState::Failed, None)?;
            Ok(Some(said))
        })?;
        let said = said.ok_or(SessionError::StaleHead)?;
        self.reload()?;
        Ok(said)
    }

    /// Sets what the user is about to say.
    pub fn set_draft(&mut self, draft: Vec<Part>) -> Result<(), SessionError> {
        let session = self.seq;
        self.db.transaction(Durability::Soon, |tx| rows::set_draft(tx, session, &draft))?;
        self.draft = draft;
        Ok(())
    }

    /// Writes entries after the head and moves it, with whatever `also` writes, which is told the new head.
    fn write(
        &mut self,
        new: Vec<NewEntry>,
        durability: Durability,
        also: impl FnOnce(&Transaction<'_>, i64) -> Result<(), StoreError>,
    ) -> Result<&[Entry], SessionError> {
        let mut parent = self.conversation.head();
        let mut entries = Vec::with_capacity(new.len());
        for NewEntry { id, at, body } in new {
            entries.push(Entry { id, parent, at, body });
            parent = Some(id);
        }
        let (session, from) = (self.seq, self.head);
        let head = self.db.transaction(durability, |tx| {
            // An interrupted rewind is still to move it.
            if !rows::is_head(tx, session, from)? || operation::is_pending(tx, session)? {
                return Ok(None);
            }
            let mut head = from;
            for entry in &entries {
                head = Some(rows::insert(tx, session, head, entry)?);
            }
            rows::move_head(tx, session, from, head)?;
            head.map_or(Ok(()), |head| also(tx, head))?;
            Ok(Some(head))
        })?;
        let head = head.ok_or(SessionError::StaleHead)?;
        self.head = head;
        let before = self.conversation.entries().len();
        entries.into_iter().for_each(|entry| self.conversation.push(entry));
        Ok(&self.conversation.entries()[before..])
    }

    /// Ends what a process that died has left unfinished.
    fn put_in_order(&mut self, at: Timestamp, random: &mut dyn FnMut() -> [u8; 10]) -> Result<(), SessionError> {
        let session = self.seq;
        let unfinished: Option<([u8; 16], Option<i64>)> = self.db.read(|connection| {
            connection
                .prepare_cached(
                    &format!("SELECT id, entry FROM operations WHERE session = ? AND kind = {TURN} AND summary IS NULL AND state = {RUNNING}"),
                )?
                .query_row([session], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()
        })?;
        let Some((id, prompt)) = unfinished else { return Ok(()) };
        let operation = OperationId::from_bytes(id);
        let coming = unfinished::read(&self.coming, self.conversation.entries());
        if !coming.is_empty() {
            self.write(coming, Durability::Synced, |_, _| Ok(()))?;
        }
        unfinished::forget(&self.coming);
        if prompt.is_some() && prompt == self.head {
            return self.take_back_turn(operation).map(drop);
        }
        let entries = self.conversation.entries();
        let mut end: Vec<NewEntry> = unanswered(entries)
            .into_iter()
            .map(|call| NewEntry { id: EntryId::new(random()), at, body: cut_short(tool_of(entries, &call), call) })
            .collect();
        let reason = EndReason::Interrupted;
        end.push(NewEntry { id: EntryId::new(random()), at, body: Body::Ended { reason } });
        self.write(end, Durability::Synced, |tx, head| end_turn(tx, operation, head)).map(drop)
    }
}

/// Calls of the last reply that have no result.
pub fn unanswered(entries: &[Entry]) -> Vec<CallId> {
    let mut answered = HashSet::new();
    for entry in entries.iter().rev() {
        match &entry.body {
            Body::ToolResult { call, .. } => drop(answered.insert(call)),
            Body::Approved { .. } => {}
            Body::Reply { blocks, .. } => {
                let calls = blocks.iter().filter_map(|block| match block {
                    Block::Call { id, .. } => Some(id),
                    Block::Text { .. } | Block::Reasoning { .. } => None,
                });
                return calls.filter(|call| !answered.contains(call)).cloned().collect();
            }
            _ => break,
        }
    }
    Vec::new()
}

/// The tool that a call of the last reply is for.
fn tool_of(entries: &[Entry], wanted: &CallId) -> String {
    let last = entries.iter().rev().find_map(|entry| match &entry.body {
        Body::Reply { blocks, .. } => Some(blocks),
        _ => None,
    });
    let name = last.into_iter().flatten().find_map(|block| match block {
        Block::Call { id, name, .. } if id == wanted => Some(name.clone()),
        _ => None,
    });
    name.unwrap_or_default()
}

/// The result of a call that its process did not survive.
fn cut_short(tool: String, call: CallId) -> Body {
    let text = "Retake was ended before this call came to its end. What it had done until then may have happened.";
    Body::ToolResult {
        call,
        title: tool,
        outcome: Outcome::Interrupted,
        parts: vec![Part::text(text)],
        todos: None,
        details: None,
    }
}

/// The row number of the newest checkpoint; 0 if there is none.
fn newest_checkpoint(tx: &Transaction<'_>) -> Result<i64, StoreError> {
    tx.query_row("SELECT ifnull(max(seq), 0) FROM checkpoints", [], |row| row.get(0)).map_err(in_transaction(tx))
}

fn end_turn(tx: &Transaction<'_>, operation: OperationId, head: i64) -> Result<(), StoreError> {
    if let Some((seq, moved)) = Moved::of(tx, operation)? {
        Moved { to: Some(head), ..moved }.store(tx, seq)?;
        tx.execute(
            "UPDATE operations SET state = ?, after = ifnull(after, (SELECT max(seq) FROM checkpoints)) WHERE seq = ?",
            params![OperationState::Done as u8, seq],
        )
        .map_err(in_transaction(tx))?;
    }
    Ok(())
}

fn coming_path(store_dir: &Path, session: SessionId) -> PathBuf {
    store_dir.join("sessions").join(format!("{session}.coming"))
}

/// Removes what tells that somebody has a session open, which is gone, and what was coming in it.
pub(crate) fn forget_lock(store_dir: &Path, session: SessionId) {
    unfinished::forget(&coming_path(store_dir, session));
    // If it stays, it is a file that nobody has locked.
    std::fs::remove_file(lock_path(store_dir, session)).ok();
}
