//! Files that tools created and hid by an ignore rule of their own: they go back with the rest.
//!
//! A hidden file is captured by no checkpoint, so it is saved first, as far as the limit allows: the plan names it, and the scan is
//! repeated with it. It goes only if a tool whose changes are taken back created it, nothing has touched it since that tool ended, and
//! the target proves that it was not there and that no rule hid it then. Everything else stays and is named, file by file in a directory
//! that the tool created.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::plan::{Now, planned};
use super::structure::Draft;
use super::{Kept, KeptBecause, RewindError, RewindRequest};
use crate::base::path::WorkspacePath;
use crate::history::checkpoint::Checkpoint;
use crate::history::owner::rows::{self, ChangeRow, HiddenRow};
use crate::history::owner::{By, Certainty, FileTime, Verdict};
use crate::history::past_rules::RulesThen;
use crate::scan::rules::is_version_control;
use crate::snapshot::gaps;
use crate::snapshot::presence::{Evidence, Presence};
use crate::store::tree::NodeKind;

/// Which hidden files a rewind is about.
pub(super) struct Scope<'a> {
    pub(super) target: &'a Checkpoint,
    pub(super) target_seq: i64,
    /// Whether the tool that created a file is one whose changes are taken back.
    pub(super) ours: &'a dyn Fn(&ChangeRow) -> bool,
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

/// Hidden paths that go, and have to be saved before.
#[derive(Debug, Default)]
pub(crate) struct Saves {
    /// Who created each of them; it goes with all that is below it.
    pub(crate) paths: BTreeMap<WorkspacePath, By>,
    /// Hidden directories that stay for some of what is in them: `paths` has the rest.
    pub(crate) parted: BTreeSet<WorkspacePath>,
}

/// Adds hidden files to the draft. Returns those that have to be saved before they go.
pub(super) fn draft(
    scope: &Scope<'_>,
    request: &RewindRequest,
    now: &Now<'_>,
    then: &Evidence<'_>,
    draft: &mut Draft,
) -> Result<Saves, RewindError> {
    let mut candidates: BTreeMap<WorkspacePath, Option<HiddenRow>> = BTreeMap::new();
    if scope.reach == HiddenReach::All {
        let names = gaps::newly_left_out(scope.target.aside, now.aside, |id| now.evidence.read_object(id))?;
        candidates.extend(names.into_iter().map(|path| (path, None)));
    }
    let rows = rows::hidden_since(now.store, scope.target_seq)?;
    let own = rows.into_iter().filter(|hidden| scope.reach == HiddenReach::All || (scope.ours)(&hidden.row));
    candidates.extend(own.map(|hidden| (hidden.row.path.clone(), Some(hidden))));
    let mut save = Saves::default();
    if candidates.is_empty() {
        return Ok(save);
    }
    let rules = RulesThen::new(now.store, scope.target, then, &now.outer, now.root_path)?;
    let (mut saved_bytes, mut decided) = (0, BTreeSet::new());
    let gaps = unsaved(now)?;
    for (path, hidden) in candidates {
        let is_entered = now.saved.contains(path.as_bytes()) || now.parted.contains(path.as_bytes());
        // What is captured by now is like any other file.
        if !request.covers(&path) || (!is_entered && !now.evidence.is_left_out(&path)?) {
            continue;
        }
        if std::iter::successors(path.parent(), WorkspacePath::parent).any(|above| decided.contains(&above)) {
            continue;
        }
        let Ok(meta) = now.root_path.join(path.to_path()).symlink_metadata() else { continue };
        if meta.is_dir() && is_version_control(path.file_name()) {
            // What moved in the workspace's own repository is told beside the files.
            if path.parent().is_some() && then.at(&path)? == Presence::Absent {
                draft.kept.push(Kept { path, why: KeptBecause::NotCaptured });
            }
            continue;
        }
        let is_proven = then.at(&path)? == Presence::Absent && !rules.leaves_out(&path, meta.is_dir())?;
        let creator = hidden.as_ref().filter(|hidden| (scope.ours)(&hidden.row) && hidden.row.by.window.is_some());
        let found =
            creator.filter(|_| is_proven).map(|hidden| (hidden.row.by, Found::at(now.root_path, &path, &meta, hidden)));
        let Some((by, found)) = found.filter(|(_, found)| !found.untouched.is_empty()) else {
            // What the rules of that time hid too is nobody's business.
            if is_proven || hidden.is_some() {
                draft.kept.push(Kept { path, why: KeptBecause::Hidden });
            }
            continue;
        };
        decided.insert(path.clone());
        if saved_bytes + found.bytes > now.save_hidden {
            draft.kept.push(Kept { path, why: KeptBecause::SaveLimit });
            continue;
        }
        saved_bytes += found.bytes;
        if !found.others.is_empty() {
            found.untouched.iter().for_each(|below| stay_above(below, &path, draft));
            save.parted.insert(path);
        }
        for below in found.untouched {
            let is_its = |gap: &&WorkspacePath| gap.starts_with(&below);
            let gaps = gaps.iter().filter(is_its).cloned();
            draft.kept.extend(gaps.map(|path| Kept { path, why: KeptBecause::NotCaptured }));
            if now.saved.contains(below.as_bytes()) && !draft.paths.contains_key(&below) {
                let certainty = (scope.reach == HiddenReach::Own).then(|| certainty(by));
                delete(request, &below, certainty, by.window, now, draft)?;
            }
            save.paths.insert(below, by);
        }
        draft.kept.extend(found.others.into_iter().map(|path| Kept { path, why: KeptBecause::Hidden }));
    }
    Ok(save)
}

/// Leaves the directories above `below` where they are, up to `top`: the scan entered them only to save what goes, and something stays in
/// them.
fn stay_above(below: &WorkspacePath, top: &WorkspacePath, draft: &mut Draft) {
    let above = std::iter::successors(below.parent(), WorkspacePath::parent);
    for directory in above.take_while(|directory| directory.as_bytes().len() >= top.as_bytes().len()) {
        draft.paths.remove(&directory);
    }
}

/// Hidden paths that this scan was to save and could not: pipes, say.
fn unsaved(now: &Now<'_>) -> Result<Vec<WorkspacePath>, RewindError> {
    if now.saved.is_empty() {
        return Ok(Vec::new());
    }
    let gaps = now.evidence.gaps()?.into_iter().filter(|gap| gap.kind.is_uncaptured() && now.has_saved(&gap.path));
    Ok(gaps.map(|gap| gap.path).collect())
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
    let Presence::There(node) = now.evidence.at(path)? else { return Ok(()) };
    let mut queue = vec![(path.clone(), node)];
    while let Some((path, node)) = queue.pop() {
        if node.kind == NodeKind::Directory {
            for (name, child) in now.evidence.tree(node.content)?.iter() {
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

/// What a tool created hidden, as it is on disk: parted into what is as the tool left it and what is not.
struct Found {
    /// When the tool ended.
    ended: Option<FileTime>,
    /// Paths as the tool left them, with all that is below them.
    untouched: Vec<WorkspacePath>,
    /// Paths that came or changed since, with all that is below them.
    others: Vec<WorkspacePath>,
    /// How much the files of `untouched` hold.
    bytes: u64,
}

impl Found {
    /// What is at `path`, which `hidden` tells the creation of.
    fn at(root: &Path, path: &WorkspacePath, meta: &Metadata, hidden: &HiddenRow) -> Self {
        let mut found = Self { ended: hidden.ended, untouched: Vec::new(), others: Vec::new(), bytes: 0 };
        // A directory that is still the tool's changes with every name in it; one that was moved here brings names with old times.
        if meta.is_dir() && hidden.directory == Some(meta.ino()) {
            found.sort_directory(root, path);
        } else {
            found.sort(root, path, meta);
        }
        found
    }

    fn sort(&mut self, root: &Path, path: &WorkspacePath, meta: &Metadata) {
        let changed = i128::from(meta.ctime()) * 1_000_000_000 + i128::from(meta.ctime_nsec());
        if self.ended.is_none_or(|ended| changed > i128::from(ended.0)) {
            self.others.push(path.clone());
        } else if meta.is_dir() {
            self.sort_directory(root, path);
        } else {
            self.untouched.push(path.clone());
            self.bytes += meta.len();
        }
    }

    fn sort_directory(&mut self, root: &Path, path: &WorkspacePath) {
        let (untouched, others) = (self.untouched.len(), self.others.len());
        // What cannot be listed cannot be saved either, and stays.
        for entry in root.join(path.to_path()).read_dir().into_iter().flatten().flatten() {
            let Ok(below) = path.join(entry.file_name().as_bytes()) else { continue };
            if let Ok(meta) = entry.path().symlink_metadata() {
                self.sort(root, &below, &meta);
            }
        }
        if self.others.len() == others {
            self.untouched.truncate(untouched);
            self.untouched.push(path.clone());
        }
    }
}
