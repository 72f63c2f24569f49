//! Held paths: captured although an ignore rule leaves them out, because an agent or a command may have changed that rule.
//!
//! A checkpoint that finds such a change does not record it: it fails with the paths, they are held, and the scan is repeated with them.
//! A held path is released when no rule leaves it out any more, or when the user confirms the change. A user's own change, which no tool
//! was at work for, holds nothing. Nothing here reads or writes the workspace.

use std::collections::BTreeSet;

use rusqlite::{Transaction, params};

use super::{ChangeKind, OpenWindow, Reach};
use crate::base::path::WorkspacePath;
use crate::base::progress::Progress;
use crate::history::checkpoint::{
    Checkpoint, CheckpointError, Checkpoints, NewCheckpoint, Purpose, RuleChanges, sequence_of,
};
use crate::history::owner::Changes;
use crate::store::db::in_transaction;
use crate::store::tree::NodeKind;
use crate::store::{Durability, StoreError};
use crate::workspace::Workspace;

/// What changed ignore rules mean for what is captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Files that this checkpoint is the first to hold: an agent's or a command's rule leaves them out.
    pub newly_held: u64,
    /// All files that are held now.
    pub held: u64,
    /// Files that the checkpoint before captured and this one does not, because an ignore rule leaves them out.
    pub no_longer: u64,
}

impl OpenWindow {
    /// Whether a tool may have been at work in it. A window with spans may be open while none is.
    pub(crate) fn may_change_rules(&self) -> bool {
        self.reach != Reach::Spans || self.spans.as_ref().is_none_or(|spans| !spans.is_empty())
    }
}

impl Workspace {
    /// Has `paths` captured whatever the rules say, until the user confirms the rules.
    pub(crate) fn hold(&mut self, paths: &BTreeSet<WorkspacePath>) -> Result<(), StoreError> {
        self.store.db().transaction(Durability::Soon, |tx| {
            let mut insert =
                tx.prepare_cached("INSERT OR IGNORE INTO held (path) VALUES (?)").map_err(in_transaction(tx))?;
            paths.iter().try_for_each(|path| insert.execute([path.as_bytes()]).map(drop).map_err(in_transaction(tx)))
        })
    }
}

impl Changes<'_> {
    /// What changed ignore rules mean for `checkpoint`.
    pub fn coverage(&self, checkpoint: &Checkpoint) -> Result<Coverage, StoreError> {
        let Some(seq) = sequence_of(&self.0.store, checkpoint.id)? else { return Ok(Coverage::default()) };
        self.0.store.db().read(|connection| {
            let count = |sql: &str| {
                connection.prepare_cached(sql)?.query_row(params![seq], |row| row.get::<_, u64>(0))
            };
            // The first byte of a node is its kind; a directory is no file.
            let left_out = format!(
                "SELECT count(*) FROM changes WHERE checkpoint = ?1 AND kind = {} AND substr(before, 1, 1) != x'{:02x}'",
                ChangeKind::LeftOut as u8,
                DIRECTORY
            );
            Ok(Coverage {
                newly_held: count("SELECT count(*) FROM held WHERE since = ?1")?,
                held: count("SELECT count(*) FROM held WHERE ?1 IS NOT NULL")?,
                no_longer: count(&left_out)?,
            })
        })
    }
}

impl Checkpoints<&mut Workspace> {
    /// Takes a checkpoint and applies the ignore rules as they are: what was held because an agent or a command had changed a rule is
    /// not captured any more.
    #[expect(clippy::needless_pass_by_value, reason = "an id is for one checkpoint only")]
    pub fn take_applying_rules(
        &mut self,
        new: NewCheckpoint,
        durability: Durability,
        progress: &dyn Progress,
    ) -> Result<Checkpoint, CheckpointError> {
        self.0
            .store
            .db()
            .transaction(durability, |tx| tx.execute("DELETE FROM held", []).map(drop).map_err(in_transaction(tx)))?;
        self.0.take(&new, &Purpose { rule_changes: RuleChanges::Apply, ..Purpose::ASKED }, durability, progress)
    }
}

/// A directory in the first byte of an encoded node.
const DIRECTORY: u8 = 2;

/// Whether the path of a change can be held: its content was captured.
pub(crate) fn is_holdable(kind: Option<NodeKind>) -> bool {
    kind.is_some_and(|kind| kind != NodeKind::Directory)
}

/// Writes down that checkpoint `seq` captured those of `held` that no checkpoint has before, and that `released` need not be held.
pub(crate) fn note(
    tx: &Transaction<'_>,
    seq: i64,
    held: &BTreeSet<WorkspacePath>,
    released: &[Vec<u8>],
) -> Result<(), StoreError> {
    if held.is_empty() {
        return Ok(());
    }
    let fresh: Vec<Vec<u8>> = tx
        .prepare_cached("SELECT path FROM held WHERE since IS NULL")
        .and_then(|mut statement| statement.query_map([], |row| row.get(0))?.collect())
        .map_err(in_transaction(tx))?;
    let was_held = |path: &&Vec<u8>| WorkspacePath::parse(path).is_ok_and(|path| held.contains(&path));
    for path in fresh.iter().filter(was_held) {
        tx.execute("UPDATE held SET since = ? WHERE path = ?", params![seq, path]).map_err(in_transaction(tx))?;
    }
    for path in released {
        tx.execute("DELETE FROM held WHERE path = ?", [path]).map_err(in_transaction(tx))?;
    }
    Ok(())
}
