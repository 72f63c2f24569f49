//! Loading a long conversation: one thread reads rows while others make entries of them, which takes as long.

use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, PoisonError};

use rusqlite::{Connection, Row};

use super::entry::{Entry, EntryId};
use super::parse;
use super::rows::EntryRow;
use crate::Timestamp;

/// Rows that are handed over together: enough to be worth it, few enough for a short conversation to need no other thread.
const PIECE: usize = 1_024;
/// Threads that make entries.
const MAKERS: usize = 2;

/// Entries that were made, by the number of their piece.
type Made = Mutex<Vec<(usize, rusqlite::Result<Vec<EntryRow>>)>>;

/// Rows as they were read, with all bodies in one text.
#[derive(Default)]
struct Piece {
    rows: Vec<Raw>,
    text: String,
}

struct Raw {
    seq: i64,
    id: EntryId,
    at: i64,
    end: usize,
}

impl Piece {
    fn push(&mut self, row: &Row<'_>) -> rusqlite::Result<()> {
        self.text.push_str(row.get_ref(4)?.as_str()?);
        let end = self.text.len();
        let id = row.get_ref(1)?.as_str()?.parse().map_err(|err| invalid(1, Box::new(err)))?;
        self.rows.push(Raw { seq: row.get(0)?, id, at: row.get(3)?, end });
        Ok(())
    }

    fn entries(&self) -> rusqlite::Result<Vec<EntryRow>> {
        let mut begin = 0;
        let entry = |raw: &Raw| {
            let body = &self.text[std::mem::replace(&mut begin, raw.end)..raw.end];
            let body = parse::body(body).map_err(|err| invalid(4, err.into()))?;
            Ok(EntryRow { seq: raw.seq, entry: Entry { id: raw.id, parent: None, at: Timestamp(raw.at), body } })
        };
        self.rows.iter().map(entry).collect()
    }
}

/// A column that does not hold what it should.
pub(super) fn invalid(column: usize, err: Box<dyn std::error::Error + Send + Sync>) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, err)
}

/// All entries from the first one to `head`, without their parents. Entries of abandoned branches are passed over unread.
pub(super) fn chain(connection: &Connection, head: Option<i64>) -> rusqlite::Result<Vec<EntryRow>> {
    let made = Made::default();
    let (pieces, queue) = sync_channel::<(usize, Piece)>(MAKERS);
    let queue = Mutex::new(queue);
    let last = std::thread::scope(|scope| {
        let mut count = 0;
        let last = read(connection, head, &mut |piece| {
            if count < MAKERS {
                scope.spawn(|| make(&queue, &made));
            }
            // Makers end only after the last piece.
            pieces.send((count, piece)).ok();
            count += 1;
        });
        drop(pieces);
        last
    })?;
    let mut made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
    made.sort_by_key(|(number, _)| *number);
    let mut chain = Vec::new();
    for (_, entries) in made {
        chain.extend(entries?);
    }
    chain.extend(last.entries()?);
    chain.reverse();
    Ok(chain)
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
            piece.push(row)?;
            wanted = row.get(2)?;
            if piece.rows.len() == PIECE {
                hand_over(std::mem::take(&mut piece));
            }
            if wanted.is_none() {
                break;
            }
        }
        assert_ne!(wanted, Some(from), "an entry is in the session that it says");
    }
    Ok(piece)
}

/// Makes entries of pieces until there are no more.
fn make(queue: &Mutex<Receiver<(usize, Piece)>>, made: &Made) {
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((number, piece)) = next else { return };
        let entries = piece.entries();
        made.lock().unwrap_or_else(PoisonError::into_inner).push((number, entries));
    }
}
