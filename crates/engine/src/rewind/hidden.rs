//! Files that tools created and hid by an ignore rule of their own: they go back with the rest.
//!
//! A hidden file is captured by no checkpoint, so it is saved first, as far as the limit allows: the plan names it, and the scan is
//! repeated with it. It goes only if a tool whose changes are taken back created it, nothing has touched it since such a tool ended, and
//! the target proves that it was not there and that no rule hid it then. Everything else stays and is named.

use std::collections::BTreeMap;
use std::path::Path;

use super::plan::{Now, planned};
use super::structure::Draft;
use super::{Kept, KeptBecause, RewindError, RewindRequest};
use crate::owner::rows::{self, ChangeRow};
use crate::owner::{By, Verdict};
use crate::scan::rules::is_version_control;
use crate::scan::rules_then::RulesThen;
use crate::snapshot::aside;
use crate::snapshot::known::{Knower, Known};
use crate::snapshot::tree::Kind;
use crate::{Certainty, Checkpoint, FileTime, WorkspacePath};

/// Which hidden files a rewind is about.
pub(super) struct Scope<'a> {
    pub(super) target: &'a Checkpoint,
    pub(super) target_seq: i64,
    /// Whether the tool that created a file is one whose changes are taken back.
    pub(super) ours: &'a dyn Fn(&ChangeRow) -> bool,
    /// The same, as a condition for windows.
    pub(super) windows: String,
    pub(super) reach: HiddenReach,
}

/// How much a rewind has to name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HiddenReach {
    /// Only files that tools of its own created.
    Own,
    /// All that a rule hides which is newer than the target: it would come to light.
    All,
}

/// Adds hidden files to the draft. Returns those that have to be saved before they go, and who created them.
pub(super) fn draft(
    scope: &Scope<'_>,
    request: &RewindRequest,
    now: &Now<'_>,
    then: &Knower<'_>,
    draft: &mut Draft,
) -> Result<BTreeMap<WorkspacePath, By>, RewindError> {
    let mut candidates: BTreeMap<WorkspacePath, Option<ChangeRow>> = BTreeMap::new();
    if scope.reach == HiddenReach::All {
        let names = aside::newly_left_out(scope.target.aside, now.aside, |id| now.knower.read_object(id))?;
        candidates.extend(names.into_iter().map(|path| (path, None)));
    }
    let rows = rows::hidden_since(now.store, scope.target_seq)?;
    let own = rows.into_iter().filter(|row| scope.reach == HiddenReach::All || (scope.ours)(row));
    candidates.extend(own.map(|row| (row.path.clone(), Some(row))));
    let mut save = BTreeMap::new();
    if candidates.is_empty() {
        return Ok(save);
    }
    let ended = rows::last_end(now.store, scope.target_seq, &scope.windows)?;
    let rules = RulesThen::new(now.store, now.outer.clone(), then, now.root_path);
    let mut saved_bytes = 0;
    for (path, row) in candidates {
        let is_saved = now.saved.contains(path.as_bytes());
        // What is captured by now is like any other file.
        if !request.covers(&path) || (!is_saved && !now.knower.is_left_out(&path)?) {
            continue;
        }
        let Some(found) = Found::at(&now.root_path.join(path.to_path())) else { continue };
        if found.is_directory && is_version_control(path.file_name()) {
            continue;
        }
        let is_proven = then.at(&path)? == Known::Absent && !rules.leaves_out(&path, found.is_directory)?;
        let creator = row.as_ref().filter(|row| (scope.ours)(row) && row.by.window.is_some()).map(|row| row.by);
        let Some(by) = creator.filter(|_| is_proven && found.is_older_than(ended)) else {
            // What the rules of that time hid too is nobody's business.
            if is_proven || row.is_some() {
                draft.kept.push(Kept { path, why: KeptBecause::Hidden });
            }
            continue;
        };
        if saved_bytes + found.bytes > now.save_hidden {
            draft.kept.push(Kept { path, why: KeptBecause::SaveLimit });
            continue;
        }
        saved_bytes += found.bytes;
        if is_saved && !draft.paths.contains_key(&path) {
            let certainty = (scope.reach == HiddenReach::Own).then(|| certainty(by));
            delete(request, &path, certainty, by.window, now, draft)?;
        }
        save.insert(path, by);
    }
    Ok(save)
}

fn certainty(by: By) -> Certainty {
    if by.verdict == Verdict::Certain { Certainty::Certain } else { Certainty::Presumed }
}

/// Plans the deletion of `path` and of all that was saved below it.
fn delete(
    request: &RewindRequest,
    path: &WorkspacePath,
    certainty: Option<Certainty>,
    window: Option<i64>,
    now: &Now<'_>,
    draft: &mut Draft,
) -> Result<(), RewindError> {
    let Known::There(node) = now.knower.at(path)? else { return Ok(()) };
    let mut queue = vec![(path.clone(), node)];
    while let Some((path, node)) = queue.pop() {
        if node.kind == Kind::Directory {
            for (name, child) in now.knower.tree(node.content)?.iter() {
                let below = path.join(name).expect("trees hold plain names only");
                queue.push((below, *child));
            }
        }
        draft.windows.insert(path.clone(), window.into_iter().collect());
        let mut planned = planned(request, path, None, Some(node), None);
        planned.certainty = certainty;
        draft.add(planned);
    }
    Ok(())
}

/// A hidden file or directory as it is on disk.
struct Found {
    is_directory: bool,
    bytes: u64,
    /// When something in it last changed.
    changed: i128,
}

impl Found {
    /// What is at `path`; `None` if nothing is, or if it cannot be read.
    fn at(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        let top = path.symlink_metadata().ok()?;
        let mut found = Self { is_directory: top.is_dir(), bytes: 0, changed: i128::MIN };
        let mut queue = vec![(path.to_owned(), top)];
        while let Some((path, meta)) = queue.pop() {
            found.changed = found.changed.max(i128::from(meta.ctime()) * 1_000_000_000 + i128::from(meta.ctime_nsec()));
            if meta.is_dir() {
                // What cannot be listed cannot be saved either, and stays.
                for entry in path.read_dir().into_iter().flatten().flatten() {
                    queue.extend(entry.path().symlink_metadata().ok().map(|meta| (entry.path(), meta)));
                }
            } else {
                found.bytes += meta.len();
            }
        }
        Some(found)
    }

    fn is_older_than(&self, ended: Option<FileTime>) -> bool {
        ended.is_some_and(|ended| self.changed <= i128::from(ended.0))
    }
}
