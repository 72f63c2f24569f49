//! Where a rewind, an undo or a redo takes a conversation. Reads only.

use std::collections::{BTreeSet, HashSet};

use rusqlite::{Connection, OptionalExtension};

use super::Discard;
use super::entry::{Body, Entry, Part};
use super::heads::{self, Moved, NoteKind, PendingNote};
use super::rows::{self, Standing};
use crate::base::id::{EntryId, SessionId};
use crate::base::settings::Timestamp;
use crate::history::checkpoint;
use crate::history::codes::CONVERSATION;
use crate::history::lineage::{self, Lineage};
use crate::history::operation::{Operation, OperationKind};
use crate::store::{Store, StoreError};

/// What goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Files.
    Code,
    /// What was said.
    Conversation,
    /// Files and what was said, as one operation.
    Both,
}

/// A prompt in a plan.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct PromptLine {
    /// The prompt.
    pub id: EntryId,
    /// Its first line.
    pub text: String,
}

/// What a plan would do to a conversation.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct PlannedConversation {
    /// The head now.
    pub from: Option<EntryId>,
    /// The head afterwards, but for a note.
    pub to: Option<EntryId>,
    /// Prompts that leave the conversation, oldest first.
    pub leaves: Vec<PromptLine>,
    /// Prompts that come back, oldest first.
    pub returns: Vec<PromptLine>,
    /// Prompts that left the conversation earlier and whose changes of files are taken back too, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_before: Vec<PromptLine>,
    /// What the user is then about to say; `None` if that stays as it is.
    pub draft: Option<Vec<Part>>,
    /// The conversation would go back, but it went on since.
    pub went_on: bool,
    /// The conversation would go back, but what was said was removed for good.
    #[serde(default)]
    pub removed: bool,
    /// What leaves is removed for good: this half cannot be undone.
    pub discards: bool,
    /// Forks that need some of what leaves, so that it is not removed from the store.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept_for: Vec<String>,
    /// Where a fork would begin that is what the conversation would have gone back to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork_at: Option<EntryId>,
}

/// Where a conversation is to go.
#[derive(Clone, Debug)]
pub(crate) struct HeadTarget {
    pub(crate) session: i64,
    pub(crate) id: SessionId,
    pub(crate) from: Option<i64>,
    pub(crate) to: Option<i64>,
    draft_before: Vec<Part>,
    draft: Option<Vec<Part>>,
    went_on: bool,
    removed: bool,
    fork_at: Option<EntryId>,
    pub(crate) discard: Discard,
    /// The checkpoint that belongs to the place, by row number.
    pub(crate) point: Option<i64>,
    note: NoteKind,
    /// Files that notes were about which the head passes over.
    noted: Vec<String>,
}

impl HeadTarget {
    /// What the operation is to write down and carry out, if `kept` are the files that it leaves as they are.
    pub(crate) fn moved(&self, note: EntryId, at: Timestamp, kept: impl Iterator<Item = String>) -> Moved {
        let about: BTreeSet<String> = match self.note {
            NoteKind::Kept => self.noted.iter().cloned().chain(kept).collect(),
            NoteKind::WentBack | NoteKind::Stayed | NoteKind::MayDiffer | NoteKind::Forked => BTreeSet::new(),
        };
        let about = about.into_iter().collect();
        Moved {
            from: self.from,
            to: self.to,
            draft_before: self.draft.is_some().then(|| self.draft_before.clone()),
            draft_after: self.draft.clone(),
            note: Some(PendingNote { id: note, at, kind: self.note, about }),
            discard: self.discard,
        }
    }

    /// Whether the head, or what the user is about to say, becomes another.
    pub(crate) fn moves(&self) -> bool {
        self.from != self.to || self.draft.is_some()
    }

    /// The same for people.
    pub(crate) fn planned(&self, store: &Store) -> Result<PlannedConversation, StoreError> {
        store.db().read(|connection| {
            let (before, after) = (rows::prompts(connection, self.from)?, rows::prompts(connection, self.to)?);
            let without = |all: &[i64], others: &[i64]| {
                let others: HashSet<i64> = others.iter().copied().collect();
                let lines = all.iter().filter(|seq| !others.contains(seq)).map(|seq| prompt_line(connection, *seq));
                lines.filter_map(Result::transpose).collect::<rusqlite::Result<Vec<_>>>()
            };
            let id = |seq: Option<i64>| seq.map(|seq| rows::id_of(connection, seq)).transpose().map(Option::flatten);
            Ok(PlannedConversation {
                from: id(self.from)?,
                to: id(self.to)?,
                leaves: without(&before, &after)?,
                returns: without(&after, &before)?,
                left_before: Vec::new(),
                draft: self.draft.clone(),
                went_on: self.went_on,
                removed: self.removed,
                discards: self.discard == Discard::Now,
                kept_for: match self.discard {
                    Discard::Now => forks_that_need(connection, self.session, self.from, self.to)?,
                    Discard::No => Vec::new(),
                },
                fork_at: self.fork_at,
            })
        })
    }
}

/// Adds to `planned` the prompts outside the conversation of `aim` whose changes are among those of the tool calls `windows`.
pub(crate) fn add_left_before(
    planned: &mut PlannedConversation,
    aim: &HeadTarget,
    store: &Store,
    windows: &BTreeSet<i64>,
) -> Result<(), StoreError> {
    planned.left_before = store.db().read(|connection| {
        let retained: HashSet<i64> =
            [rows::prompts(connection, aim.from)?, rows::prompts(connection, aim.to)?].into_iter().flatten().collect();
        let lineage = Lineage::of(connection, aim.session)?;
        let mut statement = connection.prepare_cached(
            "SELECT operations.entry, windows.session, windows.opened
             FROM windows JOIN operations ON operations.seq = windows.operation
             WHERE windows.seq = ? AND operations.entry IS NOT NULL",
        )?;
        let mut prompts = BTreeSet::new();
        for window in windows {
            let turn = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get(1)?, row.get(2)?));
            let Some((prompt, session, opened)) = statement.query_row([window], turn).optional()? else { continue };
            if !retained.contains(&prompt) && lineage.owns(session, opened) {
                prompts.insert(prompt);
            }
        }
        prompts.iter().filter_map(|seq| prompt_line(connection, *seq).transpose()).collect()
    })?;
    Ok(())
}

/// Sessions that reach an entry of `session` between `to` and `from`.
fn forks_that_need(
    connection: &Connection,
    session: i64,
    from: Option<i64>,
    to: Option<i64>,
) -> rusqlite::Result<Vec<String>> {
    let kept: HashSet<i64> = rows::chain_seqs(connection, to)?.into_iter().collect();
    let leaving: HashSet<i64> =
        rows::chain_seqs(connection, from)?.into_iter().filter(|seq| !kept.contains(seq)).collect();
    let mut statement = connection.prepare_cached(&format!(
        "SELECT seq, handle FROM sessions WHERE kind = {CONVERSATION} AND seq <> ? ORDER BY seq"
    ))?;
    let mut others = statement.query([session])?;
    let mut found = Vec::new();
    while let Some(row) = others.next()? {
        if lineage::inherited(connection, row.get(0)?)?.iter().any(|seq| leaving.contains(seq)) {
            found.push(row.get(1)?);
        }
    }
    Ok(found)
}

fn prompt_line(connection: &Connection, seq: i64) -> rusqlite::Result<Option<PromptLine>> {
    let prompt = rows::prompt(connection, seq)?;
    Ok(prompt.map(|Entry { id, body, .. }| PromptLine { id, text: body.first_line() }))
}

/// Aims at an entry: before it if it is a prompt, else after it and all that belongs to the same round.
pub(crate) fn at_entry(
    store: &Store,
    session: SessionId,
    entry: EntryId,
    scope: Scope,
    discard: Discard,
) -> Result<HeadTarget, NoTarget> {
    let place = store.db().read(|connection| place(connection, session, entry))?;
    let Place { standing, to, draft, point, .. } = place?;
    let Standing { seq, head, draft: draft_before } = standing;
    let keeps = scope == Scope::Code;
    // Of a conversation that begins anew, nothing was seen.
    let has_seen = store.db().read(|connection| Ok(!rows::prompts(connection, to)?.is_empty()))?;
    let is_kept = point.map(|seq| checkpoint::by_seq(store, seq)).transpose()?.flatten().is_some();
    let note = match scope {
        Scope::Code => NoteKind::WentBack,
        Scope::Conversation if !is_kept && has_seen => NoteKind::MayDiffer,
        Scope::Conversation => NoteKind::Stayed,
        Scope::Both => NoteKind::Kept,
    };
    Ok(HeadTarget {
        session: seq,
        id: session,
        from: head,
        to: if keeps { head } else { to },
        draft: draft.filter(|_| !keeps),
        draft_before,
        went_on: false,
        removed: false,
        fork_at: None,
        discard: if keeps { Discard::No } else { discard },
        point,
        note,
        noted: Vec::new(),
    })
}

/// Aims at just after a prompt: it stays, and nothing becomes what the user is about to say. Files are as they were when it was said.
pub(crate) fn after_prompt(
    store: &Store,
    session: SessionId,
    prompt: EntryId,
    scope: Scope,
) -> Result<HeadTarget, NoTarget> {
    let aim = at_entry(store, session, prompt, scope, Discard::No)?;
    let found = store.db().read(|connection| rows::find(connection, prompt))?;
    let row = found.map(|(seq, _)| store.db().read(|connection| rows::prompt(connection, seq))).transpose()?.flatten();
    let Some((seq, _)) = found.filter(|_| row.is_some()) else {
        return Err(NoPlace::NotATarget.into());
    };
    let to = if scope == Scope::Code { aim.to } else { Some(seq) };
    Ok(HeadTarget { to, draft: None, ..aim })
}

/// A place in a conversation: before a prompt, or after any other entry and all that belongs to the same round.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The conversation.
    pub(crate) standing: Standing,
    /// The entry, by row number.
    pub(crate) entry: i64,
    /// The head there.
    pub(crate) to: Option<i64>,
    /// The prompt that it is before.
    pub(crate) draft: Option<Vec<Part>>,
    /// The checkpoint that belongs to it, by row number; it may be gone.
    pub(crate) point: Option<i64>,
}

/// Why an entry is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPlace {
    NotAConversation,
    UnknownEntry,
    NotATarget,
}

/// A conversation cannot be taken to an entry.
#[derive(Debug)]
pub(crate) enum NoTarget {
    /// The entry is no place of it.
    Entry(NoPlace),
    /// The store failed.
    Store(StoreError),
}

impl From<NoPlace> for NoTarget {
    fn from(why: NoPlace) -> Self {
        Self::Entry(why)
    }
}

impl From<StoreError> for NoTarget {
    fn from(err: StoreError) -> Self {
        Self::Store(err)
    }
}

/// The place that `entry` is in the conversation of `session`.
pub(crate) fn place(
    connection: &Connection,
    session: SessionId,
    entry: EntryId,
) -> rusqlite::Result<Result<Place, NoPlace>> {
    let Some(standing) = rows::standing(connection, session)? else { return Ok(Err(NoPlace::NotAConversation)) };
    let Some((seq, owner)) = rows::find(connection, entry)? else { return Ok(Err(NoPlace::UnknownEntry)) };
    if owner != standing.seq && !lineage::inherits(connection, standing.seq, seq)? {
        return Ok(Err(NoPlace::UnknownEntry));
    }
    let Some((row, parent)) = rows::by_seq(connection, seq)? else { return Ok(Err(NoPlace::UnknownEntry)) };
    let (to, draft) = match row.entry.body {
        Body::Prompt { parts } => (before_turn(connection, seq, parent)?, Some(parts)),
        Body::Note { .. } | Body::Instructions { .. } | Body::Approved { .. } => return Ok(Err(NoPlace::NotATarget)),
        Body::Reply { .. } | Body::ToolResult { .. } | Body::Summary { .. } | Body::Cleared | Body::Ended { .. } => {
            (Some(heads::settled(connection, seq, standing.head)?), None)
        }
    };
    let point = match draft {
        Some(_) => point_before(connection, seq)?,
        None => last_point(connection, standing.seq, to)?,
    };
    Ok(Ok(Place { standing, entry: seq, to, draft, point }))
}

/// The head before the turn that the prompt `seq` began: instructions that were written with it go with it. What the prompt continues,
/// if nothing is known of the turn any more.
fn before_turn(connection: &Connection, seq: i64, parent: Option<i64>) -> rusqlite::Result<Option<i64>> {
    let turn: Option<i64> = connection
        .prepare_cached("SELECT seq FROM operations WHERE entry = ?")?
        .query_row([seq], |row| row.get(0))
        .optional()?;
    let moved = turn.map(|turn| Moved::by_seq(connection, turn)).transpose()?.flatten();
    Ok(moved.map_or(parent, |moved| moved.from))
}

/// An entry in words: the prompt's first line, or the id.
pub(crate) fn describe(store: &Store, entry: EntryId) -> Result<String, StoreError> {
    let row = store.db().read(|connection| {
        let found = rows::find(connection, entry)?;
        found.map(|(seq, _)| rows::by_seq(connection, seq)).transpose().map(Option::flatten)
    })?;
    Ok(match row.map(|(row, _)| row.entry.body) {
        Some(prompt @ Body::Prompt { .. }) => format!("{} before \"{}\"", entry.short(), prompt.first_line()),
        _ => format!("{} of the conversation", entry.short()),
    })
}

/// Aims at where the conversation of `session` is; `None` if it is none. Files go back, and the model is told.
pub(crate) fn staying(store: &Store, session: SessionId) -> Result<Option<HeadTarget>, StoreError> {
    let standing = store.db().read(|connection| rows::standing(connection, session))?;
    Ok(standing.map(|standing| stay(session, standing)))
}

fn stay(session: SessionId, standing: Standing) -> HeadTarget {
    let Standing { seq, head, draft } = standing;
    HeadTarget {
        session: seq,
        id: session,
        from: head,
        to: head,
        draft: None,
        draft_before: draft,
        went_on: false,
        removed: false,
        fork_at: None,
        discard: Discard::No,
        point: None,
        note: NoteKind::WentBack,
        noted: Vec::new(),
    }
}

/// The checkpoint before the turn that a prompt began, by row number; it may be gone.
pub(crate) fn point_before(connection: &Connection, prompt: i64) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT before FROM operations WHERE entry = ? AND before > 0")?
        .query_row([prompt], |row| row.get(0))
        .optional()
}

/// The last checkpoint at or before an entry that is no prompt, by row number; it may be gone. What a session was forked from may have
/// come back to the entry since then, and that is not this one's.
pub(crate) fn last_point(connection: &Connection, session: i64, entry: Option<i64>) -> rusqlite::Result<Option<i64>> {
    let lineage = Lineage::of(connection, session)?;
    let mut at = entry;
    let mut owner = connection.prepare_cached("SELECT parent, session FROM entries WHERE seq = ?")?;
    while let Some(seq) = at {
        let (parent, owner) = owner.query_row([seq], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let points = rows::paired(connection, seq)?;
        if let Some(point) = points.into_iter().rfind(|point| lineage.owns(owner, *point)) {
            return Ok(Some(point));
        }
        at = parent;
    }
    Ok(None)
}

/// Aims at where the conversation was before `operation`, or after it if that is an undo. `None` if the operation's session is no
/// conversation.
pub(crate) fn reversing(store: &Store, operation: &Operation) -> Result<Option<HeadTarget>, StoreError> {
    let Some(session) = operation.session else { return Ok(None) };
    store.db().read(|connection| {
        let Some(standing) = rows::standing(connection, session)? else { return Ok(None) };
        let moved = Moved::by_seq(connection, operation.seq)?;
        let stays = stay(session, standing);
        let Some(moved) = moved else { return Ok(Some(stays)) };
        let is_there =
            |end: Option<i64>| end.map_or(Ok(true), |seq| rows::id_of(connection, seq).map(|id| id.is_some()));
        if moved.discard == Discard::Now || !is_there(moved.from)? || !is_there(moved.to)? {
            return Ok(Some(HeadTarget { removed: moved.from != moved.to, ..stays }));
        }
        let Some(noted) = heads::noted_since(connection, stays.session, stays.from, moved.to)? else {
            let went_on = moved.from != moved.to;
            let fork_at = if went_on { fork_at(connection, operation, moved.from)? } else { None };
            return Ok(Some(HeadTarget { went_on, fork_at, ..stays }));
        };
        let mut draft = moved.draft_before.filter(|_| Some(&stays.draft_before) == moved.draft_after.as_ref());
        // What an operation put there and nobody edited may be replaced: it is still in the log.
        let is_ours = || is_unedited(connection, stays.session, &stays.draft_before);
        if operation.kind == OperationKind::Turn && (stays.draft_before.is_empty() || is_ours()?) {
            draft = prompt_of(connection, operation.seq)?;
        }
        // An operation that left the head alone has nothing to bring back there.
        let to = if moved.from == moved.to { stays.to } else { moved.from };
        let note = if to == stays.to { NoteKind::WentBack } else { NoteKind::Kept };
        Ok(Some(HeadTarget { to, draft, note, noted, ..stays }))
    })
}

/// The entry to fork from for what was retained before `operation`: the prompt of a turn, else the last entry that is a target.
fn fork_at(connection: &Connection, operation: &Operation, from: Option<i64>) -> rusqlite::Result<Option<EntryId>> {
    if operation.kind == OperationKind::Turn {
        let sql = "SELECT entries.id FROM operations JOIN entries ON entries.seq = operations.entry
             WHERE operations.seq = ?";
        let id: Option<String> =
            connection.prepare_cached(sql)?.query_row([operation.seq], |row| row.get(0)).optional()?;
        return Ok(id.and_then(|id| id.parse().ok()));
    }
    let mut at = from;
    while let Some(seq) = at {
        let Some((row, parent)) = rows::by_seq(connection, seq)? else { return Ok(None) };
        match row.entry.body {
            Body::Note { .. } | Body::Instructions { .. } | Body::Approved { .. } => at = parent,
            // A fork from there would be before it.
            Body::Prompt { .. } => return Ok(None),
            _ => return Ok(Some(row.entry.id)),
        }
    }
    Ok(None)
}

/// Whether `draft` is what the newest operation of a session left there.
fn is_unedited(connection: &Connection, session: i64, draft: &[Part]) -> rusqlite::Result<bool> {
    let newest: Option<i64> = connection
        .prepare_cached("SELECT max(seq) FROM operations WHERE session = ? AND conversation IS NOT NULL AND live < 2")?
        .query_row([session], |row| row.get(0))?;
    let moved = newest.map(|seq| Moved::by_seq(connection, seq)).transpose()?.flatten();
    Ok(moved.and_then(|moved| moved.draft_after).is_some_and(|left| left == draft))
}

/// What the user said to begin the turn with row number `operation`.
pub(super) fn prompt_of(connection: &Connection, operation: i64) -> rusqlite::Result<Option<Vec<Part>>> {
    let entry: Option<i64> =
        connection.query_row("SELECT entry FROM operations WHERE seq = ?", [operation], |row| row.get(0))?;
    let prompt = entry.map(|seq| rows::prompt(connection, seq)).transpose()?.flatten();
    Ok(prompt.and_then(|prompt| match prompt.body {
        Body::Prompt { parts } => Some(parts),
        _ => None,
    }))
}
