//! The turn that a prompt began, as a stretch between two checkpoints.

use rusqlite::OptionalExtension;

use crate::base::id::EntryId;
use crate::history::checkpoint::{self, Checkpoint};
use crate::history::codes::TURN;
use crate::history::sessions::Sessions;
use crate::store::StoreError;
use crate::workspace::Workspace;

/// The checkpoints around a turn.
#[derive(Clone, Debug)]
pub struct TurnPoints {
    /// The one before it, if it is still kept.
    pub before: Option<Checkpoint>,
    /// The one after it, if there is one and it is still kept.
    pub after: Option<Checkpoint>,
    /// Whether the turn has ended and is stored.
    pub has_ended: bool,
}

impl Sessions<&Workspace> {
    /// The checkpoints around the turn that a prompt began; `None` if nothing is known of such a turn.
    pub fn turn_points(&self, prompt: EntryId) -> Result<Option<TurnPoints>, StoreError> {
        let found: Option<(i64, Option<i64>)> = self.0.store.db().read(|connection| {
            let sql = &format!(
                "SELECT operations.before, operations.after FROM operations
                 JOIN entries ON entries.seq = operations.entry WHERE entries.id = ? AND operations.kind = {TURN}"
            );
            connection
                .prepare_cached(sql)?
                .query_row([prompt.to_string()], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()
        })?;
        let Some((before, after)) = found else { return Ok(None) };
        let point =
            |seq: Option<i64>| seq.map(|seq| checkpoint::by_seq(&self.0.store, seq)).transpose().map(Option::flatten);
        Ok(Some(TurnPoints { before: point(Some(before))?, after: point(after)?, has_ended: after.is_some() }))
    }
}
