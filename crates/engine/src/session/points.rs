//! Points of a conversation: pairing checkpoints with entries, listing what one can go back to, finding it again.

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};

use super::entry::{Body, Entry};
use super::head_target;
use super::rows::{self, EntryRow};
use super::writer::SessionError;
use crate::base::id::{CheckpointId, EntryId, SessionId};
use crate::base::limits;
use crate::base::progress::Progress;
use crate::base::settings::Timestamp;
use crate::history::checkpoint::{
    self, Checkpoint, CheckpointError, Checkpoints, NewCheckpoint, Origin, Purpose, ResolveError, RuleChanges,
};
use crate::history::codes::{CONVERSATION, TURN};
use crate::history::lineage::{self, Lineage};
use crate::history::sessions::Sessions;
use crate::history::turn_summary::{TurnSummary, begins_turn, summarise, summarise_turns};
use crate::store::{Durability, StoreError};
use crate::workspace::Workspace;

/// What a checkpoint is taken for.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The conversation.
    pub session: SessionId,
    /// The entry that it belongs to; the head for `None`.
    pub entry: Option<EntryId>,
    /// What it is taken for.
    pub origin: Origin,
}

/// A prompt that one can go back to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Target {
    /// The prompt.
    pub id: EntryId,
    /// Its number, for people.
    pub number: u64,
    /// When it was said.
    pub at: Timestamp,
    /// Its first line, exactly as the user typed it.
    pub text: String,
    /// What the turn did to the files.
    pub files: TurnSummary,
    /// The label of its checkpoint.
    pub label: Option<String>,
    /// Whether the files of that moment can still be had; what was said always can.
    pub has_files: bool,
}

/// The prompt that a checkpoint was taken at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptAt {
    /// The prompt.
    pub prompt: EntryId,
    /// What its turn did to the files.
    pub files: TurnSummary,
    /// Its number in its conversation and in every fork of that, for people; `None` if it is part of none.
    pub number: Option<u64>,
}

/// What a user means by a point.
#[derive(Clone, Debug)]
pub enum Point {
    /// A checkpoint.
    Checkpoint(Box<Checkpoint>),
    /// An entry of a conversation.
    Entry {
        /// The conversation.
        session: SessionId,
        /// The entry.
        entry: Box<Entry>,
        /// The last checkpoint at or before it, if it can still be had.
        checkpoint: Option<Box<Checkpoint>>,
    },
}

impl Workspace {
    /// The prompts that have this number, each with its session and by row number.
    fn prompts_numbered(&self, text: &str, session: Option<SessionId>) -> Result<Vec<(SessionId, i64)>, StoreError> {
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
        let number: Option<usize> = text.parse().ok().filter(|_| is_number);
        let Some(at) = number.and_then(|number| number.checked_sub(1)) else { return Ok(Vec::new()) };
        self.store.db().read(|connection| {
            let mut found = Vec::new();
            for (id, head) in heads(connection)? {
                if session.is_none_or(|session| session == id) {
                    found.extend(rows::prompts(connection, head)?.get(at).map(|seq| (id, *seq)));
                }
            }
            Ok(found)
        })
    }

    fn entries_like(&self, text: &str, session: Option<SessionId>) -> Result<Vec<(SessionId, i64)>, StoreError> {
        let lower = text.to_ascii_lowercase();
        if lower.len() < limits::MIN_ID_DIGITS || !lower.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(Vec::new());
        }
        self.store.db().read(|connection| {
            let mut statement = connection.prepare_cached(&format!(
                "SELECT sessions.id, entries.seq FROM entries JOIN sessions ON sessions.seq = entries.session
                 WHERE entries.id GLOB ? AND sessions.kind = {CONVERSATION}"
            ))?;
            let mut rows = statement.query([format!("{lower}*")])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let (owner, seq) = (SessionId::from_bytes(row.get(0)?), row.get(1)?);
                found.extend(seen_from(connection, session, owner, seq)?.map(|session| (session, seq)));
            }
            Ok(found)
        })
    }

    /// The prompt that a checkpoint was taken at, in `wanted` if that was forked from there.
    fn entry_of(&self, checkpoint: &Checkpoint, wanted: Option<SessionId>) -> Result<Option<Point>, ResolveError> {
        let (Origin::Prompt, Some(owner)) = (checkpoint.origin, checkpoint.session) else { return Ok(None) };
        let found = self.store.db().read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT entry FROM points JOIN checkpoints ON checkpoints.seq = points.checkpoint WHERE checkpoints.id = ?",
            )?;
            let mut rows = statement.query([&checkpoint.id.as_bytes()[..]])?;
            let Some(seq) = rows.next()?.map(|row| row.get::<_, i64>(0)).transpose()? else { return Ok(None) };
            Ok(Some((seen_from(connection, wanted, owner, seq)?.unwrap_or(owner), seq)))
        })?;
        found.map_or(Ok(None), |(session, seq)| self.entry_point(session, seq))
    }

    fn entry_point(&self, session: SessionId, seq: i64) -> Result<Option<Point>, ResolveError> {
        let found = self.store.db().read(|connection| {
            let Some((EntryRow { entry, .. }, _)) = rows::by_seq(connection, seq)? else { return Ok(None) };
            let point = match (&entry.body, rows::standing(connection, session)?) {
                (Body::Prompt { .. }, _) => head_target::point_before(connection, seq)?,
                (_, Some(standing)) => head_target::last_point(connection, standing.seq, Some(seq))?,
                (_, None) => None,
            };
            Ok(Some((entry, point)))
        })?;
        let Some((entry, point)) = found else { return Ok(None) };
        let checkpoint = point.map(|seq| checkpoint::by_seq(&self.store, seq)).transpose()?.flatten().map(Box::new);
        Ok(Some(Point::Entry { session, entry: Box::new(entry), checkpoint }))
    }
}

impl Checkpoints<&mut Workspace> {
    /// Takes a checkpoint of a moment in a conversation.
    #[expect(clippy::needless_pass_by_value, reason = "an id is for one checkpoint only")]
    pub fn take_at(
        &mut self,
        moment: Moment,
        new: NewCheckpoint,
        durability: Durability,
        progress: &dyn Progress,
    ) -> Result<Checkpoint, CheckpointError> {
        let found = self.0.store.db().read(|connection| {
            let entry = moment.entry.map(|id| rows::find(connection, id)).transpose()?.flatten();
            let entry = entry.map(|(seq, _)| seq);
            let prompt = match moment.origin {
                Origin::Prompt => entry.map(|seq| rows::prompt(connection, seq)).transpose()?.flatten(),
                _ => None,
            };
            Ok((rows::standing(connection, moment.session)?, entry, prompt))
        })?;
        let (Some(standing), entry, prompt) = found else { return Err(CheckpointError::UnknownSession) };
        let note = prompt.and_then(|prompt| match &prompt.body {
            Body::Prompt { parts } => Some(super::first_line(parts)),
            _ => None,
        });
        let purpose = Purpose {
            origin: moment.origin,
            session: Some((standing.seq, moment.session)),
            entry,
            note,
            own: None,
            rule_changes: RuleChanges::Judge,
            created: None,
            also: &|tx, seq| match (moment.origin, entry) {
                (Origin::Prompt, Some(entry)) => begins_turn(tx, entry, seq),
                (Origin::Turn, _) => summarise_turns(tx, standing.seq, seq),
                _ => Ok(()),
            },
        };
        self.0.take(&new, &purpose, durability, progress)
    }
}

impl Sessions<&Workspace> {
    /// The prompts of a conversation that one can go back to, newest first.
    pub fn targets(&self, session: SessionId) -> Result<Vec<Target>, SessionError> {
        let targets = self.0.store.db().read(|connection| {
            let Some(standing) = rows::standing(connection, session)? else { return Ok(None) };
            let prompts = rows::prompts(connection, standing.head)?;
            let mut known = HashMap::new();
            for session in Lineage::of(connection, standing.seq)?.sessions() {
                known.extend(known_of(connection, session)?);
            }
            let mut targets = Vec::with_capacity(prompts.len());
            for (number, seq) in prompts.into_iter().enumerate().rev() {
                let Some(Entry { id, at, body, .. }) = rows::prompt(connection, seq)? else { continue };
                let (files, label, has_files) = known.remove(&seq).unwrap_or_default();
                targets.push(Target {
                    id,
                    number: number as u64 + 1,
                    at,
                    text: body.first_line(),
                    files: files.with_names(&self.0.env),
                    label,
                    has_files,
                });
            }
            Ok(Some(targets))
        })?;
        targets.ok_or(SessionError::NotAConversation { session })
    }

    /// The prompts that checkpoints were taken at, with what their turns did, by checkpoint.
    pub fn prompts_at(&self) -> Result<HashMap<CheckpointId, PromptAt>, StoreError> {
        self.0.store.db().read(|connection| {
            let mut statement = connection.prepare_cached(&format!(
                "SELECT checkpoints.id, entries.id, operations.seq, operations.summary, entries.seq FROM operations
                     JOIN entries ON entries.seq = operations.entry
                     JOIN checkpoints ON checkpoints.seq = operations.before AND checkpoints.origin = ?
                 WHERE operations.kind = {TURN}"
            ))?;
            let numbers = numbers(connection)?;
            let mut rows = statement.query([Origin::Prompt as u8])?;
            let mut prompts = HashMap::new();
            while let Some(row) = rows.next()? {
                let Ok(prompt) = row.get_ref(1)?.as_str()?.parse() else { continue };
                let summary: Option<String> = row.get(3)?;
                let summary = summary.and_then(|text| serde_json::from_str(&text).ok());
                let files = summary.map_or_else(|| summarise(connection, row.get(2)?), Ok)?;
                let files = files.with_names(&self.0.env);
                let number = numbers.get(&row.get(4)?).copied();
                prompts.insert(CheckpointId::from_bytes(row.get(0)?), PromptAt { prompt, files, number });
            }
            Ok(prompts)
        })
    }

    /// The prompts of a conversation whose text, label, tools or changed files contain `query`, newest first. Case does not matter.
    pub fn search(&self, session: SessionId, query: &str) -> Result<Vec<Target>, SessionError> {
        let query = query.to_lowercase();
        let by_path: HashSet<String> = self.0.store.db().read(|connection| {
            let Some(standing) = rows::standing(connection, session)? else { return Ok(HashSet::new()) };
            let mut statement = connection.prepare_cached(&format!(
                "SELECT DISTINCT entries.id FROM operations JOIN entries ON entries.seq = operations.entry
                     JOIN changes ON changes.operation = operations.seq
                 WHERE operations.session = ?1 AND operations.kind = {TURN}
                     AND instr(lower(CAST(changes.path AS TEXT)), ?2)"
            ))?;
            let mut found = HashSet::new();
            for session in Lineage::of(connection, standing.seq)?.sessions() {
                for id in statement.query_map(params![session, query], |row| row.get(0))? {
                    found.insert(id?);
                }
            }
            Ok(found)
        })?;
        let mut targets = self.0.sessions().targets(session)?;
        targets.retain(|target| {
            let texts = target.files.tools.iter().chain(&target.label).chain([&target.text]);
            texts.into_iter().any(|text| text.to_lowercase().contains(&query))
                || by_path.contains(&target.id.to_string())
        });
        Ok(targets)
    }

    /// What `text` names: a label, the beginning of the id of a checkpoint or of an entry, or the number of a prompt; of that session
    /// only, for entries, or of what it was forked from. A number that several sessions have, or that is a label or an id too, is
    /// ambiguous.
    pub fn resolve_point(&self, text: &str, session: Option<SessionId>) -> Result<Point, ResolveError> {
        let entries = self.0.entries_like(text, session)?;
        let checkpoint = self.0.checkpoints().resolve(text);
        let others = entries.len() + usize::from(!matches!(checkpoint, Err(ResolveError::Unknown { .. })));
        match (self.0.prompts_numbered(text, session)?.as_slice(), others) {
            ([], _) => {}
            (&[(session, seq)], 0) => {
                let point = self.0.entry_point(session, seq)?;
                return point.ok_or_else(|| ResolveError::Unknown { point: text.to_owned() });
            }
            (numbered, 0) => {
                let sessions = numbered.iter().map(|(session, _)| *session).collect();
                return Err(ResolveError::AmbiguousNumber { number: text.parse().unwrap_or_default(), sessions });
            }
            (numbered, _) => {
                let count = numbered.len() + others;
                return Err(ResolveError::AmbiguousPoint { point: text.to_owned(), count });
            }
        }
        match (entries.len(), checkpoint) {
            (0, Ok(checkpoint)) => self
                .0
                .entry_of(&checkpoint, session)
                .map(|entry| entry.unwrap_or_else(|| Point::Checkpoint(Box::new(checkpoint)))),
            (0, Err(err)) => Err(err),
            (1, Err(ResolveError::Unknown { .. })) => {
                let (session, seq) = entries[0];
                self.0.entry_point(session, seq)?.ok_or_else(|| ResolveError::Unknown { point: text.to_owned() })
            }
            (_, _) => Err(ResolveError::AmbiguousPoint { point: text.to_owned(), count: others }),
        }
    }
}

/// The session that an entry of `owner` is meant in, if `wanted` is; `None` if it is not to be found there.
fn seen_from(
    connection: &Connection,
    wanted: Option<SessionId>,
    owner: SessionId,
    entry: i64,
) -> rusqlite::Result<Option<SessionId>> {
    let Some(wanted) = wanted.filter(|wanted| *wanted != owner) else { return Ok(Some(owner)) };
    let Some(standing) = rows::standing(connection, wanted)? else { return Ok(None) };
    Ok(lineage::inherits(connection, standing.seq, entry)?.then_some(wanted))
}

/// The conversations, each with the row number of its head, oldest first.
fn heads(connection: &Connection) -> rusqlite::Result<Vec<(SessionId, Option<i64>)>> {
    let mut statement = connection
        .prepare_cached(&format!("SELECT id, head FROM sessions WHERE kind = {CONVERSATION} ORDER BY seq"))?;
    statement.query_map([], |row| Ok((SessionId::from_bytes(row.get(0)?), row.get(1)?)))?.collect()
}

/// The numbers of the prompts that are part of any conversation, by row number. A prompt has the same one in a fork.
fn numbers(connection: &Connection) -> rusqlite::Result<HashMap<i64, u64>> {
    let mut numbers = HashMap::new();
    for (_, head) in heads(connection)? {
        numbers.extend(rows::prompts(connection, head)?.into_iter().zip(1..));
    }
    Ok(numbers)
}

pub(super) type PromptFacts = (TurnSummary, Option<String>, bool);

/// What is known of each prompt that was said in a session, by row number.
pub(super) fn known_of(connection: &Connection, session: i64) -> rusqlite::Result<HashMap<i64, PromptFacts>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT operations.entry, operations.seq, operations.summary, checkpoints.label, checkpoints.seq IS NOT NULL
         FROM operations LEFT JOIN checkpoints ON checkpoints.seq = operations.before
         WHERE operations.session = ? AND operations.kind = {TURN}"
    ))?;
    let mut rows = statement.query([session])?;
    let mut known = HashMap::new();
    while let Some(row) = rows.next()? {
        let Some(entry) = row.get::<_, Option<i64>>(0)? else { continue };
        let summary: Option<String> = row.get(2)?;
        let summary = summary.and_then(|text| serde_json::from_str(&text).ok());
        let summary = summary.map_or_else(|| summarise(connection, row.get(1)?), Ok)?;
        known.insert(entry, (summary, row.get(3)?, row.get(4)?));
    }
    Ok(known)
}

impl Point {
    /// The checkpoint that the point's files are in.
    pub fn checkpoint(&self) -> Option<&Checkpoint> {
        match self {
            Self::Checkpoint(checkpoint) => Some(checkpoint),
            Self::Entry { checkpoint, .. } => checkpoint.as_deref(),
        }
    }

    /// The id of that checkpoint.
    pub fn checkpoint_id(&self) -> Option<CheckpointId> {
        self.checkpoint().map(|checkpoint| checkpoint.id)
    }
}
