//! Loading a long conversation: one thread reads rows while others make entries of them, which takes longer.

use std::collections::VecDeque;
use std::thread::ScopedJoinHandle;

use rusqlite::{Connection, Row};

use super::entry::Entry;
use super::parse;
use crate::base::id::EntryId;
use crate::base::settings::Timestamp;

/// Rows that one thread makes entries of: enough to be worth it, few enough for a short conversation to need no other thread.
const PIECE: usize = 2_048;
/// Threads that make entries at a time.
const MAKERS: usize = 4;

/// Rows as they were read, newest first, with all ids and bodies in one text.
#[derive(Default)]
struct Piece {
    rows: Vec<Raw>,
    text: Vec<u8>,
}

/// Where in the text a row's id and body begin.
struct Raw {
    at: i64,
    id: usize,
    body: usize,
}

impl Piece {
    fn push(&mut self, row: &Row<'_>) -> rusqlite::Result<()> {
        let id = self.text.len();
        self.text.extend_from_slice(row.get_ref(1)?.as_bytes()?);
        let body = self.text.len();
        self.text.extend_from_slice(row.get_ref(4)?.as_bytes()?);
        self.rows.push(Raw { at: row.get(3)?, id, body });
        Ok(())
    }

    /// The entries, oldest first: made in the order in which they are read and freed later, which is twice as quick to free. The first
    /// one has no parent yet.
    fn entries(&self) -> rusqlite::Result<Vec<Entry>> {
        let text = std::str::from_utf8(&self.text).map_err(|err| invalid(4, err.into()))?;
        let cut = |column, range| text.get(range).ok_or_else(|| invalid(column, "cut within a character".into()));
        let mut entries = Vec::with_capacity(self.rows.len());
        let (mut parent, mut end) = (None, text.len());
        for raw in self.rows.iter().rev() {
            let id: EntryId = cut(1, raw.id..raw.body)?.parse().map_err(|err| invalid(1, Box::new(err)))?;
            let body = parse::body(cut(4, raw.body..end)?).map_err(|err| invalid(4, err.into()))?;
            entries.push(Entry { id, parent, at: Timestamp(raw.at), body });
            (parent, end) = (Some(id), raw.id);
        }
        Ok(entries)
    }
}

/// A column that does not hold what it should.
pub(super) fn invalid(column: usize, err: Box<dyn std::error::Error + Send + Sync>) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, err)
}

/// All entries from the first one to `head`. Entries of abandoned branches are passed over unread.
pub(super) fn chain(connection: &Connection, head: Option<i64>) -> rusqlite::Result<Vec<Entry>> {
    std::thread::scope(|scope| {
        let (mut made, mut makers) = (Vec::new(), VecDeque::new());
        let oldest = read(connection, head, &mut |piece| {
            if makers.len() == MAKERS {
                made.extend(makers.pop_front().map(join));
            }
            makers.push_back(scope.spawn(move || piece.entries()));
        })?;
        let mut chain = oldest.entries()?;
        made.extend(makers.into_iter().map(join));
        chain.reserve_exact(made.len() * PIECE);
        for entries in made.into_iter().rev() {
            let mut entries = entries?;
            entries[0].parent = chain.last().map(|entry| entry.id);
            chain.append(&mut entries);
        }
        Ok(chain)
    })
}

fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Reads rows from the newest one on, and hands over every whole piece; returns what is left.
fn read(connection: &Connection, head: Option<i64>, hand_over: &mut dyn FnMut(Piece)) -> rusqlite::Result<Piece> {
    let mut piece = Piece::default();
    let mut wanted = head;
    let mut of_session = connection.prepare_cached("SELECT session FROM entries WHERE seq = ?")?;
    let mut entries = connection.prepare_cached(
        "SELECT seq, id, parent, at, body FROM entries NOT INDEXED WHERE session = ? AND seq <= ? ORDER BY seq DESC",
    )?;
    // The entries of a session mostly follow one another, so that going through all from the head on is quicker than looking each one
    // up. What a session was forked from is in another one.
    while let Some(from) = wanted {
        let session: i64 = of_session.query_row([from], |row| row.get(0))?;
        let mut rows = entries.query([session, from])?;
        while let Some(row) = rows.next()? {
            if Some(row.get::<_, i64>(0)?) != wanted {
                continue;
            }
            if piece.rows.len() == PIECE {
                hand_over(std::mem::take(&mut piece));
            }
            piece.push(row)?;
            wanted = row.get(2)?;
            if wanted.is_none() {
                break;
            }
        }
        assert_ne!(wanted, Some(from), "an entry is in the session that it says");
    }
    Ok(piece)
}
