//! Comparing checkpoints with one another or with what is on disk, as far as ignore rules make that uncertain.

use super::capture::{evidence, may_be_there};
use super::checkpoint::Checkpoint;
use crate::history::checkpoint::Checkpoints;
use crate::snapshot::diff::Change;
use crate::snapshot::uncaptured::{self, UncapturedChange};
use crate::store::StoreError;
use crate::workspace::Workspace;
use crate::workspace::view::Current;

/// The later side of a comparison, with what was left out beside it.
#[derive(Clone, Copy, Debug)]
pub enum Beside<'a> {
    /// A checkpoint.
    Checkpoint(&'a Checkpoint),
    /// What is on disk now.
    Now(&'a Current),
}

impl Checkpoints<&Workspace> {
    /// What changed from one checkpoint to another without being captured, by path.
    pub fn uncaptured_changes(&self, from: &Checkpoint, to: &Checkpoint) -> Result<Vec<UncapturedChange>, StoreError> {
        uncaptured::changes(&evidence(&self.0.store, from)?, &evidence(&self.0.store, to)?)
    }

    /// Splits off those of `changes` that are no deletions: an ignore rule leaves out what may still be there.
    pub fn split_left_out(
        &self,
        changes: Vec<Change>,
        to: &Beside<'_>,
    ) -> Result<(Vec<Change>, Vec<Change>), StoreError> {
        let evidence = match to {
            Beside::Checkpoint(checkpoint) => evidence(&self.0.store, checkpoint)?,
            Beside::Now(current) => current.evidence(&self.0.store),
        };
        let (mut proven, mut left_out) = (Vec::new(), Vec::new());
        for change in changes {
            let is_left_out = change.after.is_none() && evidence.is_left_out(&change.path)?;
            let is_gone = matches!(to, Beside::Now(_)) && !may_be_there(&self.0.env.root, &change.path);
            if is_left_out && !is_gone { &mut left_out } else { &mut proven }.push(change);
        }
        Ok((proven, left_out))
    }

    /// Splits off those of `changes` since `from` that are no additions: an ignore rule left out what was there.
    pub fn split_newly_captured(
        &self,
        changes: Vec<Change>,
        from: &Checkpoint,
    ) -> Result<(Vec<Change>, Vec<Change>), StoreError> {
        let evidence = evidence(&self.0.store, from)?;
        let (mut known, mut first) = (Vec::new(), Vec::new());
        for change in changes {
            let is_first = change.before.is_none() && evidence.is_left_out(&change.path)?;
            if is_first { &mut first } else { &mut known }.push(change);
        }
        Ok((known, first))
    }
}
