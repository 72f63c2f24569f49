//! Files that tools created and hid by an ignore rule of their own: they go back with the rest.
//!
//! A hidden file is captured by no checkpoint, so it is saved first, as far as the limit allows: the plan names it, and the scan is
//! repeated with it. It goes only if a tool whose changes are taken back created it, it is as that tool left it, and the target proves
//! that it was not there and that no rule hid it then. It is as the tool left it if nothing has touched it since the tool ended, or if an
//! undo or a redo brought it back and it still has that content. Everything else stays and is named, file by file in a directory that the
//! tool created.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

use super::chain;
use super::plan::{Now, in_force_since, planned};
use super::structure::Draft;
use super::{Kept, KeptBecause, RewindError, RewindRequest};
use crate::base::id::ObjectId;
use crate::base::path::WorkspacePath;
use crate::history::checkpoint::Checkpoint;
use crate::history::operation;
use crate::history::owner::rows::{self, ChangeRow, HiddenRow};
use crate::history::owner::{By, Certainty, ChangeKind, FileTime, Verdict};
use crate::history::past_rules::RulesThen;
use crate::scan::rules::is_version_control;
use crate::snapshot::gaps;
use crate::snapshot::presence::{Evidence, Presence};
use crate::store::StoreError;
use crate::store::tree::{Node, NodeKind, same};

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
        // What this scan saves is no name that a rule leaves out.
        let saved = now.saved.iter().filter_map(|path| WorkspacePath::parse(path).ok());
        candidates.extend(names.into_iter().chain(saved).map(|path| (path, None)));
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
    let brought_back = BroughtBack { scope, now, undone: operation::undone(now.store)? };
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
        let creator = match &hidden {
            _ if !is_proven => None,
            Some(hidden) => Some(hidden.row.by).filter(|by| (scope.ours)(&hidden.row) && by.window.is_some()),
            None => brought_back.maker(&path, &meta)?,
        };
        let found =
            creator.map(|by| Ok::<_, StoreError>((by, Found::at(&brought_back, &path, &meta, hidden.as_ref())?)));
        let Some((by, found)) = found.transpose()?.filter(|(_, found)| !found.untouched.is_empty()) else {
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

/// Knows what an undo or a redo brought back and nobody has changed since: Retake's own writes are the tool's whose work they bring back.
struct BroughtBack<'a> {
    scope: &'a Scope<'a>,
    now: &'a Now<'a>,
    undone: BTreeSet<i64>,
}

impl BroughtBack<'_> {
    /// Who made what is at `path`, if Retake has written it as it is and all who had a part in it are ours.
    fn maker(&self, path: &WorkspacePath, meta: &Metadata) -> Result<Option<By>, StoreError> {
        let history = rows::of_paths(self.now.store, std::iter::once(path))?.remove(path).unwrap_or_default();
        let chain = in_force_since(&history, self.scope.target_seq, &self.undone);
        let (mut state, mut by) = (None, None);
        for maker in chain.iter().flat_map(|one| &one.makers) {
            let is_tools = maker.by.window.is_some() && (self.scope.ours)(maker);
            match maker.kind {
                ChangeKind::Changed if is_tools || chain::is_retakes(maker) => {
                    state = maker.after;
                    by = is_tools.then_some(maker.by).or(by);
                }
                // A rule that leaves a path out does not change it.
                ChangeKind::LeftOut => {}
                ChangeKind::Captured | ChangeKind::Uncovered if same(state.as_ref(), maker.after.as_ref()) => {}
                _ => return Ok(None),
            }
        }
        let Some(node) = state else { return Ok(None) };
        let is_written = |row: &ChangeRow| chain::is_retakes(row) && same(row.after.as_ref(), Some(&node));
        let is_back = history.iter().any(is_written) && self.is_there(path, &node, meta)?;
        Ok(by.filter(|_| is_back))
    }

    /// Whether `node` is what is at `path`.
    fn is_there(&self, path: &WorkspacePath, node: &Node, meta: &Metadata) -> Result<bool, StoreError> {
        let has_mode = meta.mode() & 0o7777 == u32::from(node.mode);
        Ok(match node.kind {
            NodeKind::Directory => meta.is_dir() && has_mode,
            NodeKind::File => {
                meta.is_file() && has_mode && meta.len() == node.size && (self.now.read)(path, node)?.is_some()
            }
            NodeKind::Symlink => {
                let target = self.now.root_path.join(path.to_path()).read_link();
                target.is_ok_and(|target| ObjectId::of(target.as_os_str().as_bytes()) == node.content)
            }
        })
    }
}

/// What a tool created hidden, as it is on disk: parted into what is as the tool left it and what is not.
struct Found<'a> {
    brought_back: &'a BroughtBack<'a>,
    /// When the tool ended; `None` if that tells nothing.
    ended: Option<FileTime>,
    /// Paths as the tool left them, with all that is below them.
    untouched: Vec<WorkspacePath>,
    /// Paths that came or changed since, with all that is below them.
    others: Vec<WorkspacePath>,
    /// How much the files of `untouched` hold.
    bytes: u64,
}

impl<'a> Found<'a> {
    /// What is at `path`, which `hidden` tells the creation of, if that was after the target.
    fn at(
        brought_back: &'a BroughtBack<'a>,
        path: &WorkspacePath,
        meta: &Metadata,
        hidden: Option<&HiddenRow>,
    ) -> Result<Self, StoreError> {
        let ended = hidden.and_then(|hidden| hidden.ended);
        let mut found = Self { brought_back, ended, untouched: Vec::new(), others: Vec::new(), bytes: 0 };
        // A directory that is still the tool's changes with every name in it; one that was moved here brings names with old times.
        if meta.is_dir() && hidden.and_then(|hidden| hidden.directory) == Some(meta.ino()) {
            found.sort_directory(path)?;
        } else {
            found.sort(path, meta)?;
        }
        Ok(found)
    }

    fn sort(&mut self, path: &WorkspacePath, meta: &Metadata) -> Result<(), StoreError> {
        let changed = i128::from(meta.ctime()) * 1_000_000_000 + i128::from(meta.ctime_nsec());
        let is_older = self.ended.is_some_and(|ended| changed <= i128::from(ended.0));
        if !is_older && self.brought_back.maker(path, meta)?.is_none() {
            self.others.push(path.clone());
        } else if meta.is_dir() {
            self.sort_directory(path)?;
        } else {
            self.untouched.push(path.clone());
            self.bytes += meta.len();
        }
        Ok(())
    }

    fn sort_directory(&mut self, path: &WorkspacePath) -> Result<(), StoreError> {
        let (untouched, others) = (self.untouched.len(), self.others.len());
        let place = self.brought_back.now.root_path.join(path.to_path());
        // What cannot be listed cannot be saved either, and stays.
        for entry in place.read_dir().into_iter().flatten().flatten() {
            let Ok(below) = path.join(entry.file_name().as_bytes()) else { continue };
            if let Ok(meta) = entry.path().symlink_metadata() {
                self.sort(&below, &meta)?;
            }
        }
        if self.others.len() == others {
            self.untouched.truncate(untouched);
            self.untouched.push(path.clone());
        }
        Ok(())
    }
}
