//! Hidden files: what tools created where an ignore rule hides it that is newer than the session.
//!
//! No checkpoint holds them, only their names, beside it. That a tool created one follows from the names before and after: it is noted as
//! a change without states, so that a rewind can take it back. Names that the rules of the session's beginning leave out are not noted: a
//! build may create thousands of them.

use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rusqlite::OptionalExtension;

use super::heartbeat::Abandoned;
use super::{By, FileTime, OpenWindow, Verdict, rows};
use crate::base::path::WorkspacePath;
use crate::history::capture::{Scene, evidence};
use crate::history::checkpoint::{self, Checkpoint};
use crate::history::past_rules::RulesThen;
use crate::scan::rules::is_version_control;
use crate::snapshot::gaps;
use crate::snapshot::presence::{Evidence, Presence};
use crate::store::tree::{Node, NodeKind};
use crate::store::{Store, StoreError};

/// Hidden paths that came since the checkpoint `previous`, which `then` answers for, and who created them.
pub(crate) fn created(
    scene: &Scene<'_>,
    previous: &Checkpoint,
    windows: &[OpenWindow],
    abandoned: &Abandoned,
    then: &Evidence<'_>,
) -> Result<Vec<(WorkspacePath, By, Option<FileTime>)>, StoreError> {
    let mut created = Vec::new();
    if windows.is_empty() {
        return Ok(created);
    }
    let (mut names, now) = (Vec::new(), scene.evidence());
    for path in gaps::newly_left_out(previous.aside, scene.scanned.aside, |id| scene.read(id))? {
        find_new(scene, path, then, &now, &mut names)?;
    }
    let mut start = None;
    for path in names {
        let is_directory = scene.root.join(path.to_path()).symlink_metadata().is_ok_and(|meta| meta.is_dir());
        if is_directory && is_version_control(path.file_name()) {
            continue;
        }
        if start.is_none() {
            let begun = beginning(scene.store, windows)?;
            start = Some(begun.map(|point| Ok::<_, StoreError>((evidence(scene.store, &point)?, point))).transpose()?);
        }
        if let Some((start, point)) = start.as_ref().and_then(Option::as_ref) {
            let rules = RulesThen::new(scene.store, point, start, &scene.outer, &scene.root)?;
            if rules.leaves_out(&path, is_directory)? {
                continue;
            }
        }
        let (by, changed) = abandoned.attribute(&scene.root, &path, windows, then)?;
        if by.verdict != Verdict::Outside || changed.is_some() {
            created.push((path, by, changed));
        }
    }
    Ok(created)
}

/// Adds `path`, which is hidden, to `found` if it was not there before; of a directory that was, what is new in it.
fn find_new(
    scene: &Scene<'_>,
    path: WorkspacePath,
    then: &Evidence<'_>,
    now: &Evidence<'_>,
    found: &mut Vec<WorkspacePath>,
) -> Result<(), StoreError> {
    match then.at(&path)? {
        Presence::Absent => found.push(path),
        // What is hidden in a directory that the scan entered is told by name.
        Presence::There(node) if node.kind == NodeKind::Directory && !matches!(now.at(&path)?, Presence::There(_)) => {
            let place = scene.root.join(path.to_path());
            let is_directory = place.symlink_metadata().is_ok_and(|meta| meta.is_dir());
            // What cannot be listed cannot be taken back either.
            let entries = place.read_dir().into_iter().flatten().flatten();
            for entry in entries.filter(|_| is_directory) {
                if let Ok(below) = path.join(entry.file_name().as_bytes()) {
                    find_new(scene, below, then, now, found)?;
                }
            }
        }
        Presence::There(_) | Presence::Unknown => {}
    }
    Ok(())
}

/// The directory at `path` of the workspace at `root`, if it is one, as a row tells it.
pub(crate) fn directory_at(root: &Path, path: &WorkspacePath) -> Option<Node> {
    let meta = root.join(path.to_path()).symlink_metadata().ok().filter(Metadata::is_dir)?;
    Some(rows::hidden_directory(meta.ino()))
}

/// The checkpoint before the first tool of the sessions that `windows` are of, if it is still there.
fn beginning(store: &Store, windows: &[OpenWindow]) -> Result<Option<Checkpoint>, StoreError> {
    let mut first: Option<i64> = None;
    for window in windows {
        let opened: Option<i64> = store.db().read(|connection| {
            connection
                .prepare_cached("SELECT min(opened) FROM windows WHERE session = ?")?
                .query_row([window.session], |row| row.get(0))
                .optional()
                .map(Option::flatten)
        })?;
        first = first.into_iter().chain(opened).min();
    }
    first.map_or(Ok(None), |seq| checkpoint::by_seq(store, seq))
}
