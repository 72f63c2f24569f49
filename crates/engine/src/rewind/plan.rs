//! Making a plan. Reads the store and the listing of directories that would go; writes nothing.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;

use rusqlite::OptionalExtension;

use super::chain::{self, InForce};
use super::contested::Doubtful;
use super::fingerprint::ChangingDirectory;
use super::goal::Resolved;
use super::hidden::{self, HiddenReach, Saves, Scope};
use super::structure::{self, Draft};
use super::{
    Action, BranchMoved, Conflict, Kept, KeptBecause, Means, Merged, OnConflict, Plan, PlannedPath, RewindError,
    RewindRequest, exact, judge, merge,
};
use crate::base::fault;
use crate::base::id::{ObjectId, SnapshotId};
use crate::base::path::WorkspacePath;
use crate::git::GitState;
use crate::history::capture::evidence;
use crate::history::checkpoint;
use crate::history::codes::WITH_COMMANDS;
use crate::history::ledger::{self, LedgerItem};
use crate::history::lineage::Lineage;
use crate::history::operation::{self, MadeBy, Operation, OperationKind};
use crate::history::owner::rows::{self, ChangeRow};
use crate::history::owner::{ChangeKind, OpenWindow, attribute, window};
use crate::scan::rules::Outer;
use crate::session::head_target::add_left_before;
use crate::snapshot::gaps::{self, Gap};
use crate::snapshot::presence::{Evidence, Presence};
use crate::snapshot::uncaptured::{self, Difference, UncapturedChange};
use crate::store::tree::{GapKind, Node, NodeKind, same};
use crate::store::{CopyError, Store, StoreError};

/// What is on disk, as far as a plan needs it.
pub(crate) struct Now<'a> {
    pub(crate) store: &'a Store,
    pub(crate) root: BorrowedFd<'a>,
    pub(crate) snapshot: SnapshotId,
    pub(crate) evidence: Evidence<'a>,
    pub(crate) git: GitState,
    /// Gives the content of a file that is on disk.
    pub(crate) read: &'a Read<'a>,
    pub(crate) root_path: &'a Path,
    pub(crate) aside: Option<ObjectId>,
    /// The rules from outside the workspace.
    pub(crate) outer: Arc<Outer>,
    /// Hidden paths that this scan captured so that they can go.
    pub(crate) saved: &'a BTreeSet<Vec<u8>>,
    /// Hidden directories that this scan entered only for some of `saved`.
    pub(crate) parted: &'a BTreeSet<Vec<u8>>,
    /// Bytes of hidden files that a rewind may save.
    pub(crate) save_hidden: u64,
}

impl Now<'_> {
    /// Whether this scan captured `path`, or a directory that it is in, only so that it can go.
    pub(crate) fn has_saved(&self, path: &WorkspacePath) -> bool {
        let mut within = Some(path.clone());
        while let Some(place) = within {
            if self.saved.contains(place.as_bytes()) {
                return true;
            }
            within = place.parent();
        }
        false
    }
}

/// Gives a content; `None` if it is not to be had.
pub(crate) type Read<'a> = dyn Fn(&WorkspacePath, &Node) -> Result<Option<Vec<u8>>, StoreError> + 'a;

/// A plan, and paths that it needs captured which the rules leave out.
pub(crate) struct Made {
    pub(crate) plan: Plan,
    pub(crate) uncaptured: BTreeSet<WorkspacePath>,
    pub(crate) save: Saves,
}

/// Makes the plan for `request`, which `resolved` is about.
pub(crate) fn make(request: &RewindRequest, resolved: &Resolved, now: &Now<'_>) -> Result<Made, RewindError> {
    let then = evidence(now.store, resolved.target()?)?;
    let mut draft = Draft::default();
    let save = match (&resolved.reverses, resolved.exact) {
        (Some(operation), _) => draft_reverse(request, resolved, operation, now, &then, &mut draft)?,
        (None, true) => exact::draft(request, resolved, now, &then, &mut draft)?,
        (None, false) => draft_selective(request, resolved, now, &then, &mut draft)?,
    };
    let to_capture = draft
        .paths
        .values()
        .filter(|path| path.conflict == Some(Conflict::NotCaptured))
        .map(|path| path.path.clone())
        .collect();
    // Choices decide which of them go, so they are noted before choices are looked at.
    let directories = draft.paths.values().filter_map(ChangingDirectory::of).collect();
    structure::settle(request, resolved.exact, now, &then, &mut draft)?;
    let uncaptured = changed_beside(request, resolved, now, &then)?;
    let plan = finish(request, resolved, now, keep_new(uncaptured, draft), directories)?;
    Ok(Made { plan, uncaptured: to_capture, save })
}

fn draft_selective(
    request: &RewindRequest,
    resolved: &Resolved,
    now: &Now<'_>,
    then: &Evidence<'_>,
    draft: &mut Draft,
) -> Result<Saves, RewindError> {
    let session = resolved.session.ok_or(RewindError::Gone)?;
    let lineage = lineage(now.store, session)?;
    let doubtful = match request.made_by {
        MadeBy::Model => Some(Doubtful::load(now.store)?),
        MadeBy::Command | MadeBy::Client => None,
    };
    // Writes that Retake made for nobody in particular were the user's decision; they count as ours.
    let is_sessions = |change: &ChangeRow| match change.by.session {
        Some(owner) => lineage.owns(owner, change.checkpoint),
        None => change.by.operation.is_some(),
    };
    let is_doubtful = |change: &ChangeRow| doubtful.as_ref().is_some_and(|doubtful| doubtful.holds(change));
    let ours = |change: &ChangeRow| is_sessions(change) && !is_doubtful(change);
    let target_seq = resolved.target_seq()?;
    let open = rows::open_windows(now.store)?;
    let undone = operation::undone(now.store)?;
    let mut covered = BTreeSet::new();
    for (path, history) in rows::of_session(now.store, target_seq, &lineage)? {
        if !request.covers(&path) {
            continue;
        }
        let (mut target, mut seen) = (then.at(&path)?, target_seq);
        if target == Presence::Unknown
            && let Some(seq) = rows::first_declared(now.store, &lineage, &path, target_seq)?
            && let Some(before_tool) = checkpoint::by_seq(now.store, seq)?
        {
            target = evidence(now.store, &before_tool)?.at(&path)?;
            seen = seq;
        }
        let chain = in_force_since(&history, seen, &undone);
        // What the session did is taken back already, and what is there now is somebody else's.
        let made_now = match (now.evidence.at(&path)?.state(), target.state()) {
            (Some(current), Some(target)) => {
                let unseen = unseen(&path, &history, target, current, &open);
                in_force_since(&history.iter().cloned().chain(unseen).collect::<Vec<_>>(), seen, &undone)
            }
            _ => chain.clone(),
        };
        let is_affair = |one: &InForce| one.is_contested() || one.makers.iter().any(is_sessions);
        if !made_now.is_empty() && !made_now.iter().any(is_affair) {
            continue;
        }
        if target == Presence::Unknown && is_only_covered(&path, &chain, then, now, &mut covered, draft)? {
            continue;
        }
        draft_path(request, &path, &chain, ours, Some(session), target, now, draft)?;
    }
    let declared = rows::declared_at_work(now.store, target_seq, &lineage.condition("session", "opened"))?;
    draft_unseen(request, declared, Some(then), now, draft)?;
    let target = resolved.target()?;
    let scope = Scope { target, target_seq, ours: &ours, reach: HiddenReach::Own };
    hidden::draft(&scope, request, now, then, draft)
}

/// Paths that a tool declared too late for anybody to know what it found there have to be decided about, changed or not.
fn draft_unseen(
    request: &RewindRequest,
    declared: Vec<(WorkspacePath, i64)>,
    then: Option<&Evidence<'_>>,
    now: &Now<'_>,
    draft: &mut Draft,
) -> Result<(), RewindError> {
    let mut before_tools: BTreeMap<i64, Option<Evidence<'_>>> = BTreeMap::new();
    for (path, seq) in declared {
        let is_known = |evidence: &Evidence<'_>| Ok::<_, StoreError>(evidence.at(&path)? != Presence::Unknown);
        if !request.covers(&path) || draft.paths.contains_key(&path) || then.map_or(Ok(false), is_known)? {
            continue;
        }
        let before_tool = match before_tools.entry(seq) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let checkpoint = checkpoint::by_seq(now.store, seq)?;
                place.insert(checkpoint.map(|checkpoint| evidence(now.store, &checkpoint)).transpose()?)
            }
        };
        if !before_tool.as_ref().map_or(Ok(false), is_known)? {
            draft_path(request, &path, &[], |_| false, None, Presence::Unknown, now, draft)?;
        }
    }
    Ok(())
}

fn draft_reverse(
    request: &RewindRequest,
    resolved: &Resolved,
    operation: &Operation,
    now: &Now<'_>,
    then: &Evidence<'_>,
    draft: &mut Draft,
) -> Result<Saves, RewindError> {
    let root = root_of(now.store, operation)?;
    let family = family(now.store, root)?;
    let ours = |change: &ChangeRow| change.by.operation.is_some_and(|seq| family.contains(&seq));
    let undone = operation::undone(now.store)?;
    let mut covered = BTreeSet::new();
    for (path, mut history) in rows::of_operation(now.store, operation.before_seq, operation.seq)? {
        history.retain(|change| change.checkpoint > operation.before_seq);
        let first = history.iter().position(|change| change.by.operation == Some(operation.seq)).unwrap_or(0);
        let history = &history[first..];
        if !request.covers(&path) || (fault::seeded("bug-undo-skips-a-path") && !draft.paths.is_empty()) {
            continue;
        }
        let target = match history.first() {
            Some(change) if change.kind != ChangeKind::Captured => {
                change.before.map_or(Presence::Absent, Presence::There)
            }
            _ => Presence::Unknown,
        };
        let chain = chain::in_force(history, 0, &undone);
        if target == Presence::Unknown && is_only_covered(&path, &chain, then, now, &mut covered, draft)? {
            continue;
        }
        draft_path(request, &path, &chain, ours, operation.session_seq, target, now, draft)?;
        let last = history.iter().rfind(|change| ours(change)).and_then(|change| change.after);
        let planned = draft.paths.get(&path).filter(|planned| planned.conflict.is_none());
        if planned.is_some_and(|planned| planned.action == Action::Unchanged && differs(last, planned.target)) {
            draft.already.push(path);
        }
    }
    let of_operation = format!("operation = {}", operation.seq);
    let declared = rows::declared_at_work(now.store, operation.before_seq, &of_operation)?;
    draft_unseen(request, declared, None, now, draft)?;
    let target = resolved.target()?;
    let created = |row: &ChangeRow| row.by.operation == Some(operation.seq);
    let scope = Scope { target, target_seq: operation.before_seq, ours: &created, reach: HiddenReach::Own };
    hidden::draft(&scope, request, now, then, draft)
}

/// Whether rules that came and went are all that happened to `path` since `then`, when one left it out: then it stays. Where it is captured
/// now it is one of the `covered`, and named unless its directory is.
fn is_only_covered(
    path: &WorkspacePath,
    chain: &[InForce],
    then: &Evidence<'_>,
    now: &Now<'_>,
    covered: &mut BTreeSet<WorkspacePath>,
    draft: &mut Draft,
) -> Result<bool, StoreError> {
    if !judge::is_coverage_alone(chain) || !then.is_left_out(path)? {
        return Ok(false);
    }
    if now.evidence.at(path)? != Presence::Unknown {
        if path.parent().is_none_or(|parent| !covered.contains(&parent)) {
            draft.kept.push(Kept { path: path.clone(), why: KeptBecause::NotProven });
        }
        covered.insert(path.clone());
    }
    Ok(true)
}

/// Whether two states of a path that is no directory are not the same.
fn differs(one: Option<Node>, other: Option<Node>) -> bool {
    let is_directory = one.or(other).is_some_and(|node| node.kind == NodeKind::Directory);
    !is_directory && !same(one.as_ref(), other.as_ref())
}

/// The operation that an undo or a redo is about in the end.
fn root_of(store: &Store, operation: &Operation) -> Result<i64, StoreError> {
    let mut root = operation.clone();
    while let Some(seq) = root.reverses_seq {
        match operation::by_seq(store, seq)? {
            Some(reversed) => root = reversed,
            None => break,
        }
    }
    Ok(root.seq)
}

/// An operation with all undos and redos of it.
fn family(store: &Store, root: i64) -> Result<BTreeSet<i64>, StoreError> {
    let seqs: Vec<i64> = store.db().read(|connection| {
        let mut statement = connection.prepare_cached(
            "WITH RECURSIVE family (seq) AS (
                 VALUES (?1) UNION SELECT operations.seq FROM operations JOIN family ON operations.reverses = family.seq
             ) SELECT seq FROM family",
        )?;
        statement.query_map([root], |row| row.get(0))?.collect()
    })?;
    Ok(seqs.into_iter().collect())
}

#[expect(clippy::too_many_arguments, reason = "all that is known of the path")]
fn draft_path(
    request: &RewindRequest,
    path: &WorkspacePath,
    chain: &[InForce],
    ours: impl Fn(&ChangeRow) -> bool + Copy,
    session: Option<i64>,
    target: Presence,
    now: &Now<'_>,
    draft: &mut Draft,
) -> Result<(), RewindError> {
    let known_now = now.evidence.at(path)?;
    let conflict = judge::judge(chain, ours, session, target, known_now);
    let node = |known: Presence| known.state().flatten();
    let mut planned = planned(request, path.clone(), conflict, node(known_now), node(target));
    planned.certainty = Some(judge::certainty(chain, ours));
    if conflict.is_some_and(Conflict::can_overwrite) {
        planned.merged = merged(now, path, planned.now, chain, |one| one.is_all(ours))?;
    }
    let own = chain::windows(chain, ours);
    if conflict == Some(Conflict::UncapturedSince) {
        let told = chain::windows(chain, |maker| ours(maker) && judge::tells_author(maker));
        planned.changed_by = last_tool(now.store, &told)?;
    }
    draft.windows.insert(path.clone(), own);
    draft.add(planned);
    Ok(())
}

/// What is left of the file at `path`, which is `current` now, without our changes in `chain`; `None` if they do not come out cleanly.
pub(super) fn merged(
    now: &Now<'_>,
    path: &WorkspacePath,
    current: Option<Node>,
    chain: &[InForce],
    ours: impl Fn(&InForce) -> bool,
) -> Result<Option<Merged>, StoreError> {
    merge::merge(chain, ours, current.as_ref(), |wanted| content_of(now, path, current, wanted))
}

/// The content of `wanted`, which is a state of `path` that may be on disk: that is `current`.
pub(super) fn content_of(
    now: &Now<'_>,
    path: &WorkspacePath,
    current: Option<Node>,
    wanted: &Node,
) -> Result<Option<Vec<u8>>, StoreError> {
    if current.as_ref() == Some(wanted) { (now.read)(path, wanted) } else { readable(now.store, wanted) }
}

/// What changed since `then` without being captured; if an operation is reversed, only what changed while it was made.
fn changed_beside(
    request: &RewindRequest,
    resolved: &Resolved,
    now: &Now<'_>,
    then: &Evidence<'_>,
) -> Result<Vec<UncapturedChange>, RewindError> {
    let mut changes = uncaptured::changes(then, &now.evidence)?;
    changes.retain(|change| request.covers(&change.path));
    let after = resolved.reverses.as_ref().and_then(|operation| operation.after).filter(|_| !changes.is_empty());
    if let Some(after) = after.map(|id| checkpoint::by_id(now.store, id)).transpose()?.flatten() {
        let of_operation = uncaptured::changes(then, &evidence(now.store, &after)?)?;
        let is_its = |path: &WorkspacePath| of_operation.binary_search_by(|change| change.path.cmp(path)).is_ok();
        changes.retain(|change| is_its(&change.path));
    }
    Ok(changes)
}

/// Takes what changed without being captured into the draft: what has come since, such as a very large file, cannot go away, since it
/// could not be brought back. What is planned, kept or in conflict is told there.
fn keep_new(changes: Vec<UncapturedChange>, mut draft: Draft) -> Draft {
    let kept: BTreeSet<WorkspacePath> = draft.kept.iter().map(|kept| kept.path.clone()).collect();
    for change in changes {
        if draft.paths.contains_key(&change.path) || kept.contains(&change.path) {
            continue;
        }
        match change.difference {
            Difference::New => draft.kept.push(Kept { path: change.path, why: KeptBecause::NotCaptured }),
            _ => draft.uncaptured.push(change),
        }
    }
    draft
}

/// Paths of `plan` whose content would have to come from the store and cannot.
pub(super) fn damaged(store: &Store, plan: &Plan) -> Result<BTreeSet<WorkspacePath>, StoreError> {
    let mut damaged = BTreeSet::new();
    for path in plan.paths.iter().filter(|path| matches!(path.action, Action::Restore | Action::Recreate)) {
        let Some(node) = path.target.filter(|node| node.kind != NodeKind::Directory) else { continue };
        match store.copy_content(node.content, &mut std::io::sink()) {
            Ok(()) => {}
            Err(CopyError::Store(StoreError::Missing { .. } | StoreError::Damaged { .. })) => {
                damaged.insert(path.path.clone());
            }
            Err(CopyError::Store(err)) => return Err(err),
            // A sink takes everything.
            Err(CopyError::Write(_)) => {}
        }
    }
    Ok(damaged)
}

/// A stored content; `None` if it is gone or damaged.
fn readable(store: &Store, node: &Node) -> Result<Option<Vec<u8>>, StoreError> {
    let mut content = Vec::new();
    match store.copy_content(node.content, &mut content) {
        Ok(()) => Ok(Some(content)),
        Err(CopyError::Store(StoreError::Missing { .. } | StoreError::Damaged { .. })) => Ok(None),
        Err(CopyError::Store(err)) => Err(err),
        Err(CopyError::Write(_)) => Ok(None),
    }
}

pub(super) fn planned(
    request: &RewindRequest,
    path: WorkspacePath,
    conflict: Option<Conflict>,
    now: Option<Node>,
    target: Option<Node>,
) -> PlannedPath {
    let choice = if conflict.is_some() { request.choice(&path) } else { OnConflict::Stop };
    let action = Action::between(now.as_ref(), target.as_ref());
    PlannedPath {
        path,
        action,
        conflict,
        choice,
        certainty: None,
        yours: false,
        now,
        target,
        merged: None,
        can_keep: true,
        changed_by: None,
    }
}

fn finish(
    request: &RewindRequest,
    resolved: &Resolved,
    now: &Now<'_>,
    draft: Draft,
    directories: Vec<ChangingDirectory>,
) -> Result<Plan, RewindError> {
    let Draft { paths, kept, uncaptured, mut already, blocked, windows } = draft;
    // What is redone is where it belongs.
    already.retain(|_| resolved.kind == OperationKind::Undo);
    // A conflict is told even if nothing is known of either side.
    let is_news = |path: &PlannedPath| path.conflict.is_some() || path.action != Action::Unchanged;
    let paths: Vec<PlannedPath> = paths.into_values().filter(is_news).collect();
    let (target, target_seq) = (resolved.target()?, resolved.target_seq()?);
    // As long as a decision is open, the plan is about what it would take back.
    let goes = |path: &&PlannedPath| !same(path.now.as_ref(), path.aim().as_ref());
    let authors = paths.iter().filter(goes).filter_map(|path| windows.get(&path.path));
    let authors: BTreeSet<i64> = authors.flatten().copied().collect();
    let undoes = tools_of(now.store, &authors)?;
    let mut ledger = commands_since(now.store, target_seq)?;
    // A command is named once: where it is taken back, or where it stays.
    ledger.retain(|item| !undoes.contains(&item.what));
    let running = window::at_work(now.store)?.into_iter();
    ledger.extend(running.map(|at_work| LedgerItem { kind: "running".to_owned(), what: at_work.tool, remedy: None }));
    ledger.extend(ledger::git_moves(&target.git, &now.git));
    let mut gaps = gaps::gaps(target.aside, |id| now.store.read(id).map(|(_, bytes)| bytes))?;
    gaps.retain(|gap| request.covers(&gap.path));
    add_separated(now, &paths, &mut gaps)?;
    let foreign = match (resolved.exact, resolved.session) {
        (true, Some(session)) => {
            let own = rows::paths_of_session(now.store, &lineage(now.store, session)?)?;
            paths.iter().filter(|path| !own.contains(&path.path) && !is_directory(path)).count() as u64
        }
        _ => 0,
    };
    let branch = branch_moved(&target.git, &now.git).filter(|_| !request.across_branches && !paths.is_empty());
    let means = match (&resolved.reverses, resolved.exact) {
        (Some(_), _) => None,
        (None, true) => Some(Means::Workspace),
        (None, false) => Some(Means::Session),
    };
    let mut conversation = resolved.aim.as_ref().map(|aim| aim.planned(now.store)).transpose()?;
    // An undo is about one operation, which it names.
    if let (None, Some(aim), Some(planned)) = (&resolved.reverses, &resolved.aim, &mut conversation) {
        add_left_before(planned, aim, now.store, &authors)?;
    }
    Ok(Plan {
        what: resolved.what.clone(),
        session: resolved.session_id,
        means,
        paths,
        kept,
        uncaptured,
        already,
        blocked,
        branch,
        checked_out: checked_out(&now.git),
        ledger,
        gaps,
        foreign,
        undoes,
        scope: resolved.scope,
        conversation,
        fork: None,
        directories,
        newest: newest(now.store)?,
    })
}

/// Adds files that are hard links now and would be written: each becomes a file of its own.
fn add_separated(now: &Now<'_>, paths: &[PlannedPath], gaps: &mut Vec<Gap>) -> Result<(), StoreError> {
    let is_written = |path: &WorkspacePath| {
        let found = paths.binary_search_by(|planned| planned.path.cmp(path)).ok();
        found.is_some_and(|at| {
            paths[at].result().is_some() && !same(paths[at].now.as_ref(), paths[at].result().as_ref())
        })
    };
    let separated =
        now.evidence.gaps()?.into_iter().filter(|gap| gap.kind == GapKind::HardLink && is_written(&gap.path));
    gaps.extend(separated);
    gaps.sort_unstable_by(|a, b| (&a.path, a.kind).cmp(&(&b.path, b.kind)));
    gaps.dedup();
    Ok(())
}

fn is_directory(path: &PlannedPath) -> bool {
    path.now.or(path.target).is_some_and(|node| node.kind == NodeKind::Directory)
}

fn branch_moved(then: &GitState, now: &GitState) -> Option<BranchMoved> {
    // Moving along one branch is no reason to stop, and without a repository there is nothing to compare.
    if then.branch == now.branch && (then.branch.is_some() || then.head == now.head) {
        return None;
    }
    Some(BranchMoved { then: checked_out(then)?, now: checked_out(now)? })
}

/// The branch, or the commit of a detached HEAD.
fn checked_out(git: &GitState) -> Option<String> {
    git.branch.clone().or_else(|| git.head.clone())
}

/// The newest checkpoint, by row number.
fn newest(store: &Store) -> Result<i64, StoreError> {
    store
        .db()
        .read(|connection| connection.query_row("SELECT coalesce(max(seq), 0) FROM checkpoints", [], |row| row.get(0)))
}

/// Commands that ran since checkpoint `seq` and are not undone, oldest first.
pub(super) fn commands_since(store: &Store, seq: i64) -> Result<Vec<LedgerItem>, StoreError> {
    let tools: Vec<String> = store.db().read(|connection| {
        let mut statement = connection.prepare_cached(
            &format!("SELECT tool FROM windows LEFT JOIN operations ON operations.seq = windows.operation
             WHERE opened >= ? AND everything IN {WITH_COMMANDS} AND coalesce(operations.undone, 0) = 0 ORDER BY windows.seq"),
        )?;
        statement.query_map([seq], |row| row.get(0))?.collect()
    })?;
    Ok(tools.into_iter().map(|what| LedgerItem { kind: "command".to_owned(), what, remedy: None }).collect())
}

/// The changes in force of `history` since checkpoint `seq`.
pub(super) fn in_force_since(history: &[ChangeRow], seq: i64, undone: &BTreeSet<i64>) -> Vec<InForce> {
    chain::in_force(history, history.partition_point(|change| change.checkpoint <= seq), undone)
}

/// The change of `path` from the last recorded state, or from that of the `target`, to the `current` one that no checkpoint has seen yet.
pub(super) fn unseen(
    path: &WorkspacePath,
    history: &[ChangeRow],
    target: Option<Node>,
    current: Option<Node>,
    open: &[OpenWindow],
) -> Option<ChangeRow> {
    let last = history.last().map_or(Some(target.as_ref()), chain::after)?;
    let (before, by) = (last.copied(), attribute(path, open, None));
    let (kind, checkpoint) = (ChangeKind::Changed, i64::MAX);
    let is_change = !same(last, current.as_ref());
    is_change.then(|| ChangeRow { checkpoint, path: path.clone(), kind, before, after: current, by })
}

/// The tool call of the newest of these windows.
pub(super) fn last_tool(store: &Store, windows: &BTreeSet<i64>) -> Result<Option<String>, StoreError> {
    Ok(tools_of(store, &windows.last().copied().into_iter().collect())?.pop())
}

/// The tool calls of these windows, oldest first.
fn tools_of(store: &Store, windows: &BTreeSet<i64>) -> Result<Vec<String>, StoreError> {
    store.db().read(|connection| {
        let mut statement = connection.prepare_cached("SELECT tool FROM windows WHERE seq = ?")?;
        let tool = |seq: &i64| statement.query_row([seq], |row| row.get(0)).optional().transpose();
        windows.iter().filter_map(tool).collect()
    })
}

/// A session with what it was forked from.
fn lineage(store: &Store, session: i64) -> Result<Lineage, StoreError> {
    store.db().read(|connection| Lineage::of(connection, session))
}
