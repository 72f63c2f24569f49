//! Changes that are not taken back without anybody looking.

use std::collections::BTreeSet;

use crate::history::codes::TURN;
use crate::history::owner::Verdict;
use crate::history::owner::rows::ChangeRow;
use crate::store::{Store, StoreError};

/// What is not the model's beyond doubt when it takes files back by itself, since nobody looks at the plan: what changed while only a
/// background job was at work, and what the user had Retake bring back.
pub(super) struct Doubtful {
    lasting: BTreeSet<i64>,
    turns: BTreeSet<i64>,
}

impl Doubtful {
    pub(super) fn load(store: &Store) -> Result<Self, StoreError> {
        let (lasting, turns): (Vec<i64>, Vec<i64>) = store.db().read(|connection| {
            // The window of a job stays open when its call has ended, which the snapshot after the call shows.
            let mut lasting = connection.prepare_cached(
                "SELECT seq FROM windows WHERE EXISTS (SELECT 1 FROM checkpoints WHERE checkpoints.session = windows.session
                     AND checkpoints.seq > windows.opened AND (windows.closed IS NULL OR checkpoints.seq < windows.closed))",
            )?;
            let mut turns = connection.prepare_cached(&format!("SELECT seq FROM operations WHERE kind = {TURN}"))?;
            let lasting = lasting.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
            Ok((lasting, turns.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?))
        })?;
        Ok(Self { lasting: lasting.into_iter().collect(), turns: turns.into_iter().collect() })
    }

    /// Whether a change is one of these.
    pub(super) fn holds(&self, change: &ChangeRow) -> bool {
        match change.by.window {
            Some(window) => change.by.verdict == Verdict::Presumed && self.lasting.contains(&window),
            None => change.by.operation.is_some_and(|operation| !self.turns.contains(&operation)),
        }
    }
}
