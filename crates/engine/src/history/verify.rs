//! Verifying: what is on disk now, and what a watch has not reported of it.

use rusqlite::params;

use super::checkpoint::{self, Checkpoint, CheckpointError, NewCheckpoint};
use crate::base::progress::{NoProgress, Progress};
use crate::history::checkpoint::Checkpoints;
use crate::scan::{ScanError, Scanner};
use crate::snapshot::diff::{self, Change};
use crate::store::Durability;
use crate::store::db::in_transaction;
use crate::workspace::view::{self, Current, Hashing, Side};
use crate::workspace::{Workspace, counters};

/// What a verifying scan found.
#[derive(Clone, Debug)]
pub enum Verified {
    /// The watch had reported everything.
    Sound,
    /// Changes had gone unreported: they are in this new checkpoint, and gaps of the one before it.
    Missed(Box<Checkpoint>),
}

impl Workspace {
    /// What is on disk and was not reported by the watch.
    fn find_missed(&mut self, progress: &dyn Progress) -> Result<Vec<Change>, CheckpointError> {
        let reported = self.scan_for_paths(progress, Thoroughness::AskWatch)?;
        let found = self.scan_for_paths(progress, Thoroughness::LookAtAll)?;
        let load = |side: &Current, id| view::load_tree(&self.store, &Side::Now(side), id);
        Ok(diff::diff(
            Some((reported.snapshot().0, &|id| load(&reported, id))),
            Some((found.snapshot().0, &|id| load(&found, id))),
        )?)
    }

    fn scan_for_paths(&mut self, progress: &dyn Progress, how: Thoroughness) -> Result<Current, CheckpointError> {
        let rules = self.rules()?;
        let sink = Hashing::default();
        let scanned = match how {
            Thoroughness::AskWatch => self.scanner.scan(&rules, &sink, progress)?,
            Thoroughness::LookAtAll => self.scanner.scan_fully(&rules, &sink, progress)?,
        };
        Ok(Current::without_gaps(scanned, sink, &self.env.root))
    }

    /// Hashes what is on disk now, without storing anything.
    pub fn current(&mut self, progress: &dyn Progress) -> Result<Current, ScanError> {
        let mut scanner = Scanner::open(&self.env.root, self.store.dir(), self.env.threads)?;
        let store = &self.store;
        scanner.fit_to(counters(store)?, |id, _| store.contains(id))?;
        let sink = Hashing::default();
        let scanned = scanner.scan(&self.rules()?, &sink, progress)?;
        Ok(Current::without_gaps(scanned, sink, &self.env.root).with_gaps(store)?)
    }
}

impl Checkpoints<&mut Workspace> {
    /// Looks at everything although the workspace is watched; meant for idle moments. What the watch had not reported
    /// becomes the checkpoint `new`, and gaps of the newest one before.
    pub fn verify(&mut self, new: NewCheckpoint, progress: &dyn Progress) -> Result<Verified, CheckpointError> {
        let Some(previous) = checkpoint::newest(&self.0.store)? else { return Ok(Verified::Sound) };
        let missed = self.0.find_missed(progress);
        // Whatever came of it: the index in memory now claims contents that were only hashed.
        self.0.reopen_scanner()?;
        let missed = missed?;
        if missed.is_empty() {
            return Ok(Verified::Sound);
        }
        let checkpoint = self.0.checkpoints_mut().take(new, Durability::Soon, &NoProgress)?;
        self.0.store.db().transaction(Durability::Soon, |tx| {
            let Some(seq) = checkpoint::sequence(tx, previous.id)? else { return Ok(()) };
            for change in &missed {
                tx.execute("INSERT OR IGNORE INTO late_gaps VALUES (?, ?)", params![seq, change.path.as_bytes()])
                    .map_err(in_transaction(tx))?;
            }
            Ok(())
        })?;
        Ok(Verified::Missed(Box::new(checkpoint)))
    }
}

/// How a scan for comparing looks.
#[derive(Clone, Copy)]
enum Thoroughness {
    AskWatch,
    LookAtAll,
}
