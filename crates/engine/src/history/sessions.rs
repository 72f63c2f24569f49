//! Sessions: who makes checkpoints, operations and changes. What is said in them is told by the layer above.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use rusqlite::{Connection, OptionalExtension, Transaction, params};
use serde::{Deserialize, Serialize};

use super::checkpoint::ResolveError;
use crate::base::id::{EntryId, SessionId};
use crate::base::limits;
use crate::base::settings::Timestamp;
use crate::store::db::in_transaction;
use crate::store::{Durability, Store, StoreError};
use crate::workspace::Workspace;

/// The sessions of a workspace, and what was said in them. From [`Workspace::sessions`] and [`Workspace::sessions_mut`].
#[derive(Debug)]
pub struct Sessions<W>(pub(crate) W);

impl Workspace {
    /// Its sessions, to look at or to open one for writing.
    pub fn sessions(&self) -> Sessions<&Self> {
        Sessions(self)
    }

    /// Its sessions, to create, fork and delete them.
    pub fn sessions_mut(&mut self) -> Sessions<&mut Self> {
        Sessions(self)
    }
}

/// A conversation, or one command, that changes things in the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Its identity.
    pub id: SessionId,
    /// When it began.
    pub at: Timestamp,
    /// What it is called: the first line of its first prompt.
    pub title: String,
    /// What it is.
    pub kind: SessionKind,
    /// What it was forked from.
    pub forked_from: Option<ForkedFrom>,
    /// Its forks that are in a workspace of their own, oldest first.
    pub forks_elsewhere: Vec<ForkElsewhere>,
}

/// What the caller gives to a new session.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// Its identity, made from fresh random bytes.
    pub id: SessionId,
    /// The time.
    pub at: Timestamp,
    /// What it is called.
    pub title: String,
    /// What it is.
    pub kind: SessionKind,
}

/// What a session is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionKind {
    /// Commands.
    #[default]
    Commands = 0,
    /// A conversation with a model.
    Conversation = 1,
}

/// What a session was forked from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForkedFrom {
    /// The session.
    pub session: SessionId,
    /// The entry: before it if it is a prompt, else after it. `None` if it is gone.
    pub entry: Option<EntryId>,
    /// The workspace that these are in; `None` for this one.
    pub root: Option<PathBuf>,
}

/// A fork of a session that is in a workspace of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForkElsewhere {
    /// The new session.
    pub session: SessionId,
    /// The entry that it was forked from; `None` if it is gone.
    pub entry: Option<EntryId>,
    /// The workspace that it is in, as far as is known here.
    pub root: PathBuf,
    /// When it was made.
    pub at: Timestamp,
}

/// What a session is known to have been forked from in another workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ForkOrigin {
    pub(crate) session: [u8; 16],
    pub(crate) entry: EntryId,
    /// The bytes of the workspace's path.
    pub(crate) root: Vec<u8>,
}

/// Whether a forked session is there for people, by the kind that its row has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    Yes = SessionKind::Conversation as isize,
    /// Its fork is undone.
    No = 2,
}

impl Sessions<&Workspace> {
    /// All sessions, newest first.
    pub fn all(&self) -> Result<Vec<Session>, StoreError> {
        self.0.store.db().read(|connection| {
            // One whose fork is undone is there for nobody.
            let mut statement = connection
                .prepare_cached("SELECT id, at, title, kind, seq FROM sessions WHERE kind < 2 ORDER BY seq DESC")?;
            let mut elsewhere = elsewhere(connection)?;
            let rows = statement.query_map([], |row| {
                let kind = if row.get(3)? { SessionKind::Conversation } else { SessionKind::Commands };
                let (id, at) = (SessionId::from_bytes(row.get(0)?), Timestamp(row.get(1)?));
                let (title, seq) = (row.get(2)?, row.get(4)?);
                let forked_from = forked_from(connection, seq)?;
                let forks_elsewhere = elsewhere.remove(&seq).unwrap_or_default();
                Ok(Session { id, at, title, kind, forked_from, forks_elsewhere })
            })?;
            rows.collect()
        })
    }

    /// The session that `text` names: the beginning of an id.
    pub fn resolve(&self, text: &str) -> Result<Session, ResolveError> {
        let wanted = text.to_ascii_lowercase();
        let mut found = self.0.sessions().all()?;
        found.retain(|session| session.id.to_string().starts_with(&wanted));
        match found.len() {
            1 if wanted.len() >= limits::MIN_ID_DIGITS => Ok(found.remove(0)),
            0 | 1 => Err(ResolveError::UnknownSession { session: text.to_owned() }),
            _ => Err(ResolveError::AmbiguousSession { session: text.to_owned(), candidates: found }),
        }
    }
}

impl Sessions<&mut Workspace> {
    /// Starts a session.
    pub fn create(&mut self, new: NewSession) -> Result<Session, StoreError> {
        self.0.store.db().transaction(Durability::Soon, |tx| {
            tx.execute(
                "INSERT INTO sessions (id, handle, at, title, kind) VALUES (?, ?, ?, ?, ?)",
                params![&new.id.as_bytes()[..], new.id.to_string(), new.at.0, new.title, new.kind as u8],
            )
            .map_err(in_transaction(tx))
        })?;
        let NewSession { id, at, title, kind } = new;
        Ok(Session { id, at, title, kind, forked_from: None, forks_elsewhere: Vec::new() })
    }
}

/// A session's row number.
pub(crate) fn sequence(store: &Store, id: SessionId) -> Result<Option<i64>, StoreError> {
    store.db().read(|connection| {
        connection
            .prepare_cached("SELECT seq FROM sessions WHERE id = ?")?
            .query_row([&id.as_bytes()[..]], |row| row.get(0))
            .optional()
    })
}

/// What the session with this row number was forked from.
pub(crate) fn forked_from(connection: &Connection, session: i64) -> rusqlite::Result<Option<ForkedFrom>> {
    let (parent, entry, origin) = connection
        .prepare_cached(
            "SELECT (SELECT id FROM sessions AS other WHERE other.seq = sessions.parent),
                 (SELECT id FROM entries WHERE entries.seq = sessions.forked_at), origin
             FROM sessions WHERE seq = ?",
        )?
        .query_row([session], |row| {
            Ok((row.get::<_, Option<[u8; 16]>>(0)?, row.get::<_, Option<String>>(1)?, row.get::<_, Option<String>>(2)?))
        })?;
    if let Some(id) = parent {
        let entry = entry.and_then(|text| text.parse().ok());
        return Ok(Some(ForkedFrom { session: SessionId::from_bytes(id), entry, root: None }));
    }
    let origin: Option<ForkOrigin> = origin.and_then(|text| serde_json::from_str(&text).ok());
    Ok(origin.map(|ForkOrigin { session, entry, root }| {
        let root = PathBuf::from(OsString::from_vec(root));
        ForkedFrom { session: SessionId::from_bytes(session), entry: Some(entry), root: Some(root) }
    }))
}

/// Forks in other workspaces, by the row number of the session that they were made from.
pub(crate) fn elsewhere(connection: &Connection) -> rusqlite::Result<HashMap<i64, Vec<ForkElsewhere>>> {
    let mut statement = connection.prepare_cached(
        "SELECT session, child, (SELECT id FROM entries WHERE entries.seq = forks_elsewhere.entry), root, at
         FROM forks_elsewhere ORDER BY rowid",
    )?;
    let mut rows = statement.query([])?;
    let mut found: HashMap<i64, Vec<ForkElsewhere>> = HashMap::new();
    while let Some(row) = rows.next()? {
        let entry: Option<String> = row.get(2)?;
        let fork = ForkElsewhere {
            session: SessionId::from_bytes(row.get(1)?),
            entry: entry.and_then(|text| text.parse().ok()),
            root: PathBuf::from(OsString::from_vec(row.get(3)?)),
            at: Timestamp(row.get(4)?),
        };
        found.entry(row.get(0)?).or_default().push(fork);
    }
    Ok(found)
}

/// Shows or hides a session.
pub(crate) fn set_kind(tx: &Transaction<'_>, session: i64, kind: Shown) -> Result<(), StoreError> {
    tx.execute("UPDATE sessions SET kind = ? WHERE seq = ?", params![kind as u8, session])
        .map(drop)
        .map_err(in_transaction(tx))
}
