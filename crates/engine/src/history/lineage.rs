//! What a session was forked from: whose changes count as its own, and which entries of others it needs.

use rusqlite::{Connection, OptionalExtension, params};

/// A session with the sessions that it was forked from, each up to the checkpoint after which it went on without this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lineage(Vec<(i64, i64)>);

impl Lineage {
    /// The lineage of the session with this row number.
    pub(crate) fn of(connection: &Connection, session: i64) -> rusqlite::Result<Self> {
        let mut lineage = vec![(session, i64::MAX)];
        let mut statement = connection.prepare_cached("SELECT parent, forked_after FROM sessions WHERE seq = ?")?;
        let (mut at, mut until) = (session, i64::MAX);
        let parent = |row: &rusqlite::Row<'_>| Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, Option<i64>>(1)?));
        while let Some((Some(parent), forked_after)) = statement.query_row([at], parent).optional()? {
            until = until.min(forked_after.unwrap_or(0));
            at = parent;
            lineage.push((at, until));
        }
        Ok(Self(lineage))
    }

    /// Row numbers of the sessions, this one first.
    pub(crate) fn sessions(&self) -> impl Iterator<Item = i64> {
        self.0.iter().map(|(session, _)| *session)
    }

    /// Whether what `session` did until checkpoint `checkpoint` is this one's past.
    pub(crate) fn owns(&self, session: i64, checkpoint: i64) -> bool {
        self.0.iter().any(|(own, until)| *own == session && checkpoint <= *until)
    }

    /// The same as a condition on two columns.
    pub(crate) fn condition(&self, session: &str, checkpoint: &str) -> String {
        let one = |(own, until): &(i64, i64)| match *until {
            i64::MAX => format!("{session} = {own}"),
            until => format!("({session} = {own} AND {checkpoint} <= {until})"),
        };
        format!("({})", self.0.iter().map(one).collect::<Vec<_>>().join(" OR "))
    }
}

/// Row numbers of entries that session `?1` reaches: from its head, from what was said in it, and from where its operations may lead.
const REACHED: &str = "WITH RECURSIVE reached (seq) AS (
         SELECT head FROM sessions WHERE seq = ?1
         UNION SELECT parent FROM entries WHERE session = ?1
         UNION SELECT json_extract(conversation, '$.from') FROM operations WHERE session = ?1
         UNION SELECT json_extract(conversation, '$.to') FROM operations WHERE session = ?1
         UNION SELECT entries.parent FROM entries JOIN reached ON entries.seq = reached.seq
     )";

/// Row numbers of the entries of others that a session reaches, oldest first.
pub(crate) fn inherited(connection: &Connection, session: i64) -> rusqlite::Result<Vec<i64>> {
    let sql = format!(
        "{REACHED} SELECT entries.seq FROM reached JOIN entries ON entries.seq = reached.seq
         WHERE entries.session <> ?1 ORDER BY entries.seq"
    );
    connection.prepare_cached(&sql)?.query_map([session], |row| row.get(0))?.collect()
}

/// Whether a session reaches an entry of another one.
pub(crate) fn inherits(connection: &Connection, session: i64, entry: i64) -> rusqlite::Result<bool> {
    let sql = format!("{REACHED} SELECT EXISTS (SELECT 1 FROM reached WHERE seq = ?2)");
    connection.prepare_cached(&sql)?.query_row(params![session, entry], |row| row.get(0))
}

/// Whether an entry is a session's own, or one that it reaches.
pub(crate) fn holds(connection: &Connection, session: i64, entry: i64) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM entries WHERE seq = ?2 AND session = ?1)";
    let is_own: bool = connection.prepare_cached(sql)?.query_row(params![session, entry], |row| row.get(0))?;
    Ok(is_own || inherits(connection, session, entry)?)
}

/// Row numbers of the entries of `session` that its fork `fork` reaches, or one that was forked from that, oldest first.
pub(crate) fn needed_by(connection: &Connection, session: i64, fork: i64) -> rusqlite::Result<Vec<i64>> {
    let sql = "WITH RECURSIVE family (seq) AS (
             VALUES (?2) UNION SELECT sessions.seq FROM sessions JOIN family ON sessions.parent = family.seq
         ), reached (seq) AS (
             SELECT head FROM sessions WHERE seq IN family
             UNION SELECT parent FROM entries WHERE session IN family
             UNION SELECT json_extract(conversation, '$.from') FROM operations WHERE session IN family
             UNION SELECT json_extract(conversation, '$.to') FROM operations WHERE session IN family
             UNION SELECT entries.parent FROM entries JOIN reached ON entries.seq = reached.seq
         )
         SELECT entries.seq FROM reached JOIN entries ON entries.seq = reached.seq
         WHERE entries.session = ?1 ORDER BY entries.seq";
    connection.prepare_cached(sql)?.query_map([session, fork], |row| row.get(0))?.collect()
}

/// Row numbers of the entries of `session` that other sessions reach, oldest first.
pub(crate) fn needed_by_others(connection: &Connection, session: i64) -> rusqlite::Result<Vec<i64>> {
    let sql = "WITH RECURSIVE reached (seq) AS (
             SELECT head FROM sessions WHERE seq <> ?1
             UNION SELECT parent FROM entries WHERE session <> ?1
             UNION SELECT json_extract(conversation, '$.from') FROM operations WHERE session <> ?1
             UNION SELECT json_extract(conversation, '$.to') FROM operations WHERE session <> ?1
             UNION SELECT entries.parent FROM entries JOIN reached ON entries.seq = reached.seq
         )
         SELECT entries.seq FROM reached JOIN entries ON entries.seq = reached.seq
         WHERE entries.session = ?1 ORDER BY entries.seq";
    connection.prepare_cached(sql)?.query_map([session], |row| row.get(0))?.collect()
}
