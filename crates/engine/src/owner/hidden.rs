//! Hidden files: what tools created where an ignore rule hides it that is newer than the session.
//!
//! No checkpoint holds them, only their names, beside it. That a tool created one follows from the names before and after: it is noted as
//! a change without states, so that a rewind can take it back. Names that the rules of the session's beginning leave out are not noted: a
//! build may create thousands of them.

use rusqlite::OptionalExtension;

use super::life::Abandoned;
use super::{By, FileTime, OpenWindow, Verdict};
use crate::scan::rules::is_version_control;
use crate::scan::rules_then::RulesThen;
use crate::snapshot::aside;
use crate::snapshot::known::{Knower, Known};
use crate::store::{Store, StoreError};
use crate::take::{Scene, knower};
use crate::{Checkpoint, WorkspacePath, checkpoint};

/// Hidden paths that came since the checkpoint `previous`, which `then` answers for, and who created them.
pub(crate) fn created(
    scene: &Scene<'_>,
    previous: &Checkpoint,
    windows: &[OpenWindow],
    abandoned: &Abandoned,
    then: &Knower<'_>,
) -> Result<Vec<(WorkspacePath, By, Option<FileTime>)>, StoreError> {
    let mut created = Vec::new();
    if windows.is_empty() {
        return Ok(created);
    }
    let names = aside::newly_left_out(previous.aside, scene.scanned.aside, |id| scene.read(id))?;
    let mut start = None;
    for path in names {
        let is_directory = scene.root.join(path.to_path()).symlink_metadata().is_ok_and(|meta| meta.is_dir());
        if then.at(&path)? != Known::Absent || (is_directory && is_version_control(path.file_name())) {
            continue;
        }
        if start.is_none() {
            start = Some(beginning(scene.store, windows)?.map(|start| knower(scene.store, &start)).transpose()?);
        }
        if let Some(start) = start.as_ref().and_then(Option::as_ref) {
            let rules = RulesThen::new(scene.store, scene.outer.clone(), start, &scene.root);
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
