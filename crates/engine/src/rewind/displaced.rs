//! Displaced files: before one goes for good, its content is in the store.
//!
//! Between the safety snapshot and the swap somebody may have saved a file once more. What was displaced is compared with
//! what was captured, and stored if it differs. Somebody who still has the file open is given a moment to finish.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use rusqlite::{Transaction, params};
use rustix::fs::FileType;

use super::files::Files;
use super::swap::Done;
use crate::base::id::ObjectId;
use crate::base::limits;
use crate::base::path::WorkspacePath;
use crate::history::intent::Item;
use crate::scan::lease::{self, Writers};
use crate::scan::stat::{Facts, seen};
use crate::store::db::in_transaction;
use crate::store::tree::{Node, NodeKind, encode_node, same};
use crate::store::{Batch, ObjectKind, PutError, StoreError};

/// How long writers may take to finish with files that were displaced under them.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a path looked like when it was captured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Captured {
    pub(super) facts: Facts,
    /// It was old enough then for a later change to show in its times.
    pub(super) settled: bool,
}

/// A temporary file that holds what was displaced from a path.
#[derive(Debug)]
pub(super) struct Held {
    /// The number of the item.
    pub(super) item: usize,
    pub(super) temp: WorkspacePath,
}

/// The temporary files that hold something after `done`.
pub(super) fn held_by(items: &[Item], done: &[Done]) -> Vec<Held> {
    let held = done.iter().filter_map(|step| match step {
        Done::SetAside { path, temp } | Done::Exchanged { path, temp } => Some((path, temp)),
        _ => None,
    });
    held.filter_map(|(path, temp)| {
        let item = items.binary_search_by(|item| item.path.cmp(path)).ok()?;
        Some(Held { item, temp: temp.clone() })
    })
    .collect()
}

/// All temporary files that may hold something, if nobody knows what was done.
pub(super) fn possibly_held(items: &[Item]) -> Vec<Held> {
    let temps = |(item, of): (usize, &Item)| [of.temp.clone(), of.aside()].map(|temp| Held { item, temp });
    items.iter().enumerate().flat_map(temps).collect()
}

/// Displaced files that were looked at.
#[derive(Debug, Default)]
pub(super) struct Displaced {
    /// States that were captured nowhere else, by path.
    pub(super) nodes: BTreeMap<WorkspacePath, Node>,
    /// What each temporary file looked like then.
    pub(super) seen: BTreeMap<WorkspacePath, Facts>,
    /// Paths of files that somebody still had open for writing when patience had run out.
    pub(super) still_open: BTreeSet<WorkspacePath>,
    pub(super) patience: Patience,
}

/// Waiting for writers: all of them together get the same time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Patience {
    since: Option<Instant>,
}

/// Puts displaced contents that are not as captured into `batch`.
pub(super) fn keep(
    files: &Files<'_>,
    batch: &Batch<'_>,
    items: &[Item],
    held: &[Held],
    facts: &BTreeMap<WorkspacePath, Captured>,
) -> Result<Displaced, StoreError> {
    let mut displaced = Displaced::default();
    for Held { item, temp } in held {
        let item = &items[*item];
        let facts = facts.get(&item.path).filter(|captured| captured.settled).map(|captured| &captured.facts);
        keep_one(files, batch, item, temp, facts, &mut displaced)?;
    }
    Ok(displaced)
}

/// Puts the content of one temporary file into `batch`, unless it looks as `facts` say it was captured. `false` if it cannot
/// be read, so that it has to stay.
pub(super) fn keep_one(
    files: &Files<'_>,
    batch: &Batch<'_>,
    item: &Item,
    temp: &WorkspacePath,
    facts: Option<&Facts>,
    displaced: &mut Displaced,
) -> Result<bool, StoreError> {
    let now = match files.look(temp) {
        Ok(Some(now)) => now,
        Ok(None) => return Ok(true),
        Err(_) => return Ok(false),
    };
    let node = match now.facts.file_type() {
        FileType::Symlink => {
            let Ok(target) = files.read_link(temp) else { return Ok(false) };
            let content = ObjectId::of(&target);
            batch.put(ObjectKind::Blob, content, &target)?;
            displaced.seen.insert(temp.clone(), now.facts);
            Node { kind: NodeKind::Symlink, mode: 0, content, size: target.len() as u64 }
        }
        FileType::RegularFile => {
            let Ok(file) = files.open(temp) else { return Ok(false) };
            if !displaced.patience.wait_for_writers(&file) {
                displaced.still_open.insert(item.path.clone());
            }
            let Ok(now) = rustix::fs::fstat(&file).map(|stat| seen(&stat).facts) else { return Ok(false) };
            // Renaming moves the ctime, so that is not compared.
            let untouched = |then: &Facts| {
                (then.ino, then.size, then.mtime, then.permissions())
                    == (now.ino, now.size, now.mtime, now.permissions())
            };
            if facts.is_some_and(untouched) {
                displaced.seen.insert(temp.clone(), now);
                return Ok(true);
            }
            let (content, size) = match put(batch, file, now.size) {
                Ok(stored) => stored,
                Err(PutError::Read) => return Ok(false),
                Err(PutError::Store(err)) => return Err(err),
            };
            displaced.seen.insert(temp.clone(), now);
            Node { kind: NodeKind::File, mode: now.permissions(), content, size }
        }
        _ => return Ok(false),
    };
    let is = |other: &Option<Node>| same(other.as_ref(), Some(&node));
    if !is(&item.before) && !is(&item.after) {
        displaced.nodes.insert(item.path.clone(), node);
    }
    Ok(true)
}

/// Whether what lies at `temp`, if anything does, is something that can be stored. Somebody may have put a directory, a
/// pipe or a file that may not be read in the place of a file while it was being replaced.
pub(super) fn is_storable(files: &Files<'_>, temp: &WorkspacePath) -> bool {
    match files.look(temp).map(|seen| seen.map(|seen| seen.facts.file_type())) {
        Ok(None | Some(FileType::Symlink)) => true,
        Ok(Some(FileType::RegularFile)) => files.open(temp).is_ok(),
        Ok(Some(_)) | Err(_) => false,
    }
}

/// Stores a file's content.
fn put(batch: &Batch<'_>, mut file: std::fs::File, size: u64) -> Result<(ObjectId, u64), PutError> {
    use std::io::Read;
    if size >= limits::CHUNKED_FROM {
        return batch.put_chunked(&mut file);
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(|_| PutError::Read)?;
    let id = ObjectId::of(&bytes);
    batch.put(ObjectKind::Blob, id, &bytes).map_err(PutError::Store)?;
    Ok((id, bytes.len() as u64))
}

impl Patience {
    /// Gives those who have `file` open a moment to finish; `false` if they have not.
    fn wait_for_writers(&mut self, file: &std::fs::File) -> bool {
        while lease::writers(file) == Writers::Some {
            if self.since.get_or_insert_with(Instant::now).elapsed() >= PATIENCE {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        true
    }
}

/// Writes down what was displaced, so that it is kept as long as the operation.
pub(super) fn insert(
    tx: &Transaction<'_>,
    operation: i64,
    displaced: &BTreeMap<WorkspacePath, Node>,
) -> Result<(), StoreError> {
    for (path, node) in displaced {
        tx.execute(
            "INSERT OR IGNORE INTO displaced (operation, path, node) VALUES (?, ?, ?)",
            params![operation, path.as_bytes(), encode_node(node)],
        )
        .map_err(in_transaction(tx))?;
    }
    Ok(())
}
