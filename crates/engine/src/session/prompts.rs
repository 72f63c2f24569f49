//! The prompts of a session: how many there are, and all that were ever said as a tree.
//!
//! Only prompts are read whole, and of other entries no more than how they hang together, so that a conversation of many thousand turns
//! is listed in no time. Nothing is written.

use std::collections::HashMap;

use rusqlite::Connection;

use super::entry::Entry;
use super::points::{PromptFacts, known_of};
use super::rows;
use super::writer::SessionError;
use crate::base::id::{EntryId, SessionId};
use crate::base::settings::Timestamp;
use crate::history::codes::{DONE, TURN};
use crate::history::lineage::{self, Lineage};
use crate::history::sessions::{ForkedFrom, Session, Sessions};
use crate::history::turn_summary::TurnSummary;
use crate::workspace::Workspace;

/// How far a conversation has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// Prompts that are retained.
    pub prompts: u64,
    /// When the last entry that is retained was written.
    pub last: Option<Timestamp>,
}

/// All prompts of a session, those that were left behind too, and the sessions that were forked from it.
#[derive(Clone, Debug, Default)]
pub struct PromptTree {
    /// The prompts, oldest first.
    pub prompts: Vec<SaidPrompt>,
    /// The forks in this workspace, oldest first.
    pub forks: Vec<TreeFork>,
}

/// A prompt that was said, whether it is retained or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaidPrompt {
    /// The prompt.
    pub id: EntryId,
    /// The prompt before it on its branch.
    pub parent: Option<EntryId>,
    /// When it was said.
    pub at: Timestamp,
    /// Its first line, exactly as the user typed it.
    pub text: String,
    /// Its number, for people; `None` if it is not retained.
    pub number: Option<u64>,
    /// What the turn did to the files, if that is known.
    pub files: Option<TurnSummary>,
    /// The label of its checkpoint.
    pub label: Option<String>,
    /// Whether the files of that moment can still be had.
    pub has_files: bool,
    /// The entry that ended its turn; `None` if nothing did.
    pub end: Option<EntryId>,
}

/// A session that was forked from another one.
#[derive(Clone, Debug)]
pub struct TreeFork {
    /// The new session.
    pub session: Session,
    /// Where it branches off; `None` if that is gone, or nothing had been said.
    pub place: Option<ForkPlace>,
}

/// Where a fork branches off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForkPlace {
    /// Before this prompt.
    Before(EntryId),
    /// After this prompt, somewhere in its turn.
    After(EntryId),
}

impl Sessions<&Workspace> {
    /// How far a conversation has come.
    pub fn outline(&self, session: SessionId) -> Result<Outline, SessionError> {
        let outline = self.0.store.db().read(|connection| {
            let Some(standing) = rows::standing(connection, session)? else { return Ok(None) };
            let prompts = rows::prompts(connection, standing.head)?.len() as u64;
            let mut at = connection.prepare_cached("SELECT at FROM entries WHERE seq = ?")?;
            let last = standing.head.map(|head| at.query_row([head], |row| row.get(0))).transpose()?;
            Ok(Some(Outline { prompts, last: last.map(Timestamp) }))
        })?;
        outline.ok_or(SessionError::NotAConversation { session })
    }

    /// All prompts that were ever said in a session, and its forks.
    pub fn prompt_tree(&self, session: SessionId) -> Result<PromptTree, SessionError> {
        let forks = self.0.sessions().all()?.into_iter().rev();
        let forks = forks.filter(|other| other.forked_from.as_ref().is_some_and(|from| from.session == session));
        let tree = self.0.store.db().read(|connection| {
            let Some(standing) = rows::standing(connection, session)? else { return Ok(None) };
            let branches = Branches::of(connection, standing.seq)?;
            let mut prompts = prompts(connection, &standing, &branches)?;
            for prompt in &mut prompts {
                prompt.files = prompt.files.take().map(|files| files.with_names(&self.0.env));
            }
            let mut tree = PromptTree { prompts, forks: Vec::new() };
            for session in forks {
                let place = place(connection, &branches, session.forked_from.as_ref())?;
                tree.forks.push(TreeFork { session, place });
            }
            Ok(Some(tree))
        })?;
        tree.ok_or(SessionError::NotAConversation { session })
    }
}

/// How the prompts of a session hang together, all by row number.
struct Branches {
    /// The prompts, oldest first, each with the one before it on its branch.
    prompts: Vec<(i64, Option<i64>)>,
    /// The last prompt at or before each entry.
    last: HashMap<i64, i64>,
}

impl Branches {
    fn of(connection: &Connection, session: i64) -> rusqlite::Result<Self> {
        let mut branches = Self { prompts: Vec::new(), last: HashMap::new() };
        let mut one = connection.prepare_cached("SELECT parent, kind FROM entries WHERE seq = ?")?;
        for seq in lineage::inherited(connection, session)? {
            let (parent, kind) = one.query_row([seq], |row| Ok((row.get(0)?, row.get(1)?)))?;
            branches.add(seq, parent, kind);
        }
        let mut own =
            connection.prepare_cached("SELECT seq, parent, kind FROM entries WHERE session = ? ORDER BY seq")?;
        let mut rows = own.query([session])?;
        while let Some(row) = rows.next()? {
            branches.add(row.get(0)?, row.get(1)?, row.get(2)?);
        }
        Ok(branches)
    }

    fn add(&mut self, seq: i64, parent: Option<i64>, kind: u8) {
        let before = parent.and_then(|parent| self.last.get(&parent).copied());
        if kind == rows::EntryKind::Prompt as u8 {
            self.prompts.push((seq, before));
            self.last.insert(seq, seq);
        } else if let Some(before) = before {
            self.last.insert(seq, before);
        }
    }
}

fn prompts(
    connection: &Connection,
    standing: &rows::Standing,
    branches: &Branches,
) -> rusqlite::Result<Vec<SaidPrompt>> {
    let retained = rows::prompts(connection, standing.head)?.into_iter();
    let numbers: HashMap<i64, u64> = retained.zip(1..).collect();
    let (mut known, mut ends): (HashMap<i64, PromptFacts>, HashMap<i64, EntryId>) = Default::default();
    for session in Lineage::of(connection, standing.seq)?.sessions() {
        known.extend(known_of(connection, session)?);
        ends.extend(ends_of(connection, session)?);
    }
    let mut ids: HashMap<i64, EntryId> = HashMap::new();
    let mut prompts = Vec::with_capacity(branches.prompts.len());
    for (seq, before) in &branches.prompts {
        let Some(Entry { id, at, body, .. }) = rows::prompt(connection, *seq)? else { continue };
        ids.insert(*seq, id);
        let (files, label, has_files) = match known.remove(seq) {
            Some((files, label, has_files)) => (Some(files), label, has_files),
            None => (None, None, false),
        };
        prompts.push(SaidPrompt {
            id,
            parent: before.and_then(|before| ids.get(&before).copied()),
            at,
            text: body.first_line(),
            number: numbers.get(seq).copied(),
            files,
            label,
            has_files,
            end: ends.remove(seq),
        });
    }
    Ok(prompts)
}

/// What ended the turns of a session, by the row number of their prompts.
fn ends_of(connection: &Connection, session: i64) -> rusqlite::Result<Vec<(i64, EntryId)>> {
    let mut statement = connection.prepare_cached(
        &format!("SELECT operations.entry, entries.id FROM operations
             JOIN entries ON entries.seq = json_extract(operations.conversation, '$.to')
         WHERE operations.session = ? AND operations.kind = {TURN} AND operations.state = {DONE} AND operations.entry IS NOT NULL"),
    )?;
    let ends = statement.query_map([session], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))?;
    let ends: Vec<(i64, String)> = ends.collect::<rusqlite::Result<_>>()?;
    Ok(ends.into_iter().filter_map(|(prompt, id)| Some((prompt, id.parse().ok()?))).collect())
}

/// Where a fork branches off.
fn place(
    connection: &Connection,
    branches: &Branches,
    from: Option<&ForkedFrom>,
) -> rusqlite::Result<Option<ForkPlace>> {
    let Some(entry) = from.and_then(|from| from.entry) else { return Ok(None) };
    let Some((seq, _)) = rows::find(connection, entry)? else { return Ok(None) };
    // A fork from a prompt begins before it; one from what was answered has the prompt.
    match branches.last.get(&seq) {
        Some(last) if *last == seq => Ok(Some(ForkPlace::Before(entry))),
        Some(last) => Ok(rows::id_of(connection, *last)?.map(ForkPlace::After)),
        None => Ok(None),
    }
}
