//! Before anything is touched: the plan, the safety snapshot, the durable intent.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::os::fd::BorrowedFd;

use super::displaced::Captured;
use super::goal::{self, Resolved};
use super::hidden::Saves;
use super::plan::{self, Made, Now};
use super::stage::mark_damaged;
use super::{NewRewind, OnConflict, Plan, PlannedPath, RewindError, RewindRequest, converse};
use crate::base::path::WorkspacePath;
use crate::base::progress::Progress;
use crate::base::settings::Environment;
use crate::git::{self, GitState};
use crate::history::capture::{self, Failure, Scene};
use crate::history::checkpoint::{Checkpoint, NewCheckpoint, Origin, Purpose, RuleChanges};
use crate::history::intent::{self, Intent, Item, Stage};
use crate::history::operation::{self, MadeBy, NewOperation};
use crate::rewind::Rewinds;
use crate::scan::rules::Rules;
use crate::scan::{Scanner, open, stat};
use crate::session::heads::{self, Moved};
use crate::snapshot::presence::Evidence;
use crate::store::tree::{Node, NodeKind, same};
use crate::store::{Durability, Effort, ObjectKind, Store, StoreError};
use crate::workspace::view::Hashing;
use crate::workspace::{Workspace, counters};

/// A plan that is about to be carried out: its safety snapshot is taken and its intent is durable.
pub(super) struct Prepared {
    pub(super) plan: Plan,
    pub(super) intent: Intent,
    pub(super) safety: Checkpoint,
    /// What the affected paths looked like when they were captured.
    pub(super) facts: BTreeMap<WorkspacePath, Captured>,
}

/// What preparing came to.
pub(super) enum Preparation {
    Ready(Box<Prepared>),
    /// There is nothing to do to the files.
    Nothing(Box<Plan>),
    Refused(RewindError),
}

impl Workspace {
    /// Scans into the store and makes the plan. If it can be carried out, commits the safety snapshot with the operation
    /// and its intent.
    pub(super) fn prepare(
        &mut self,
        request: &RewindRequest,
        seen: Option<&str>,
        resolved: &Resolved,
        new: &NewRewind,
        effort: Effort,
        progress: &dyn Progress,
    ) -> Result<Preparation, Failure> {
        let git = git::state(&self.env.root);
        let mut rules = self.rules()?;
        loop {
            let scene = capture::scan(&self.store, &mut self.scanner, &rules, effort, progress)?;
            let made = make(request, resolved, self.scanner.root_fd(), &scene, &git, &rules, &self.env);
            let outcome = match made {
                Err(err) => Err(Preparation::Refused(err)),
                Ok(Made { ref uncaptured, ref save, .. }) if capture(&mut rules, uncaptured, save) => Ok(None),
                Ok(Made { plan, save, .. }) => verdict(&self.store, plan, seen, request).map(|plan| Some((plan, save))),
            };
            match outcome {
                Ok(Some((plan, save))) => {
                    let root = self.scanner.root_fd();
                    let made_by = request.made_by;
                    let (intent, safety) = commit(&scene, root, &plan, resolved, new, &git, &save, made_by)?;
                    let after = counters(&self.store);
                    drop(scene);
                    let facts = |item: &Item| {
                        let (facts, settled) = self.scanner.facts(&item.path)?;
                        Some((item.path.clone(), Captured { facts, settled }))
                    };
                    let facts = intent.items.iter().filter_map(facts).collect();
                    after.and_then(|after| self.scanner.save(after)).ok();
                    return Ok(Preparation::Ready(Box::new(Prepared { plan, intent, safety, facts })));
                }
                Ok(None) => drop(scene),
                Err(preparation) => {
                    drop(scene);
                    self.reopen_scanner()?;
                    return Ok(preparation);
                }
            }
            // What was scanned is not committed, and the index in memory relies on it.
            self.reopen_scanner()?;
        }
    }
}

impl Rewinds<&Workspace> {
    /// Works out what a rewind would do. Writes nothing.
    pub fn plan(&self, request: &RewindRequest, progress: &dyn Progress) -> Result<Plan, RewindError> {
        let store = &self.0.store;
        let resolved = goal::resolve(store, &request.goal)?;
        if let Some(fork) = resolved.fork {
            return self.0.plan_fork(&resolved, fork);
        }
        if let Some(aim) = converse::only_conversation(&resolved) {
            return self.0.plan_conversation(aim, &resolved.what);
        }
        let mut rules = self.0.rules()?;
        let mut scanner = Scanner::open(&self.0.env.root, store.dir(), self.0.env.threads)?;
        scanner.fit_to(counters(store)?, |id, _| store.contains(id))?;
        let git = git::state(&self.0.env.root);
        // A later scan gives only what an earlier one has not.
        let mut objects = HashMap::new();
        loop {
            let sink = Hashing::default();
            let scanned = scanner.scan(&rules, &sink, progress)?;
            objects.extend(sink.into_objects());
            let evidence =
                Evidence::new(scanned.snapshot.0, scanned.aside, BTreeSet::new(), |id| match objects.get(&id) {
                    Some(bytes) => Ok(bytes.clone()),
                    None => Ok(store.read(id)?.1),
                });
            let read = |path: &WorkspacePath, node: &Node| read_current(scanner.root_fd(), path, node);
            let now = Now {
                store,
                root: scanner.root_fd(),
                snapshot: scanned.snapshot,
                evidence: evidence.having_sought(capture::sought(&rules)),
                git: git.clone(),
                read: &read,
                root_path: &self.0.env.root,
                aside: scanned.aside,
                outer: rules.outer.clone(),
                saved: &rules.saved,
                parted: &rules.parted,
                save_hidden: self.0.env.settings.save_hidden,
            };
            let Made { mut plan, uncaptured, save } = plan::make(request, &resolved, &now)?;
            drop(now);
            if !capture(&mut rules, &uncaptured, &save) {
                let damaged = plan::damaged(store, &plan)?;
                mark_damaged(&mut plan, &damaged, request);
                return Ok(plan);
            }
        }
    }
}

fn make(
    request: &RewindRequest,
    resolved: &Resolved,
    root: BorrowedFd<'_>,
    scene: &Scene<'_>,
    git: &GitState,
    rules: &Rules,
    env: &Environment,
) -> Result<Made, RewindError> {
    let read = |path: &WorkspacePath, node: &Node| read_current(root, path, node);
    let now = Now {
        store: scene.store,
        root,
        snapshot: scene.scanned.snapshot,
        evidence: scene.evidence(),
        git: git.clone(),
        read: &read,
        root_path: &env.root,
        aside: scene.scanned.aside,
        outer: rules.outer.clone(),
        saved: &rules.saved,
        parted: &rules.parted,
        save_hidden: env.settings.save_hidden,
    };
    plan::make(request, resolved, &now)
}

/// The plan, if it can be carried out and is the one that the user saw.
fn verdict(store: &Store, mut plan: Plan, seen: Option<&str>, request: &RewindRequest) -> Result<Plan, Preparation> {
    if let Some(seen) = seen.filter(|seen| !plan.is_as_seen(seen)) {
        // A plan that is shown has read every content. Only damage can then explain a difference, and reading is slow.
        let damaged = plan::damaged(store, &plan).map_err(|err| Preparation::Refused(err.into()))?;
        mark_damaged(&mut plan, &damaged, request);
        if !plan.is_as_seen(seen) {
            return Err(Preparation::Refused(RewindError::Stale { plan: Box::new(plan) }));
        }
    }
    if !plan.is_applicable() {
        return Err(Preparation::Refused(RewindError::Refused { plan: Box::new(plan) }));
    }
    if plan.is_empty() {
        return Err(Preparation::Nothing(Box::new(plan)));
    }
    Ok(plan)
}

/// Commits the safety snapshot with the operation and its intent; from here on a crash is recovered from.
#[expect(clippy::too_many_arguments, reason = "everything that one transaction writes")]
fn commit(
    scene: &Scene<'_>,
    root: BorrowedFd<'_>,
    plan: &Plan,
    resolved: &Resolved,
    new: &NewRewind,
    git: &GitState,
    save: &Saves,
    made_by: MadeBy,
) -> Result<(Intent, Checkpoint), Failure> {
    for merged in plan.paths.iter().filter(|path| path.choice == OnConflict::Merge).filter_map(|p| p.merged.as_ref()) {
        scene.sink.batch.put(ObjectKind::Blob, merged.node.content, &merged.content)?;
    }
    scene.check_budget()?;
    let items = items(plan, new);
    let loosened = loosened(root, &items);
    let operation = std::cell::Cell::new(0);
    let purpose = Purpose {
        origin: Origin::Safety,
        session: resolved.session.zip(resolved.session_id),
        entry: None,
        note: Some(format!("{} {}", resolved.kind.name(), resolved.what)),
        own: None,
        rule_changes: RuleChanges::Judge,
        created: Some(&save.paths),
        also: &|tx, seq| {
            operation.set(insert_operation(tx, resolved, new, plan, seq, made_by)?.0);
            intent::insert(tx, operation.get(), &items, &loosened)
        },
    };
    let checkpoint = NewCheckpoint { id: new.safety, at: new.at, label: None };
    let safety = scene.record(git, &checkpoint, &purpose, Durability::Synced)?;
    let operation = operation.get();
    Ok((Intent { operation, stage: Stage::Staging, items, loosened }, safety))
}

/// Writes the row of the operation that `resolved` is; returns its number, and what it is to do to the conversation.
pub(super) fn insert_operation(
    tx: &rusqlite::Transaction<'_>,
    resolved: &Resolved,
    new: &NewRewind,
    plan: &Plan,
    before: i64,
    made_by: MadeBy,
) -> Result<(i64, Option<Moved>), StoreError> {
    let Resolved { session, kind, what, .. } = resolved;
    let operation = NewOperation { id: new.operation, at: new.at, session: *session, kind: *kind, what, made_by };
    let seq = operation::insert(tx, &operation, before, resolved.reverses.as_ref().map(|reversed| reversed.seq))?;
    // What is to become of the conversation is written down before anything is touched: a crash is finished, not forgotten.
    let kept = plan.conflicts().filter(|path| match path.choice {
        OnConflict::Keep => true,
        OnConflict::Merge => !same(path.result().as_ref(), path.target.as_ref()),
        OnConflict::Overwrite | OnConflict::Stop => false,
    });
    let mut moved =
        resolved.aim.as_ref().map(|aim| aim.moved(new.note, new.at, kept.map(|path| heads::name(&path.path))));
    // The model knows what it asked for.
    moved.iter_mut().filter(|_| made_by == MadeBy::Model).for_each(|moved| moved.note = None);
    moved.as_ref().map_or(Ok(()), |moved| moved.store(tx, seq))?;
    Ok((seq, moved))
}

/// What has to be done to the files.
fn items(plan: &Plan, new: &NewRewind) -> Vec<Item> {
    let changing = |path: &&PlannedPath| !same(path.now.as_ref(), path.result().as_ref());
    let changing: Vec<&PlannedPath> = plan.paths.iter().filter(changing).collect();
    let is_directory = |node: Option<Node>| node.is_some_and(|node| node.kind == NodeKind::Directory);
    // Directories that are not there before or after cannot hold temporary files.
    let passing: BTreeSet<&WorkspacePath> = changing
        .iter()
        .filter(|path| !is_directory(path.now) || !is_directory(path.result()))
        .map(|path| &path.path)
        .collect();
    let temp = |path: &WorkspacePath, number: usize| {
        let mut above = path.parent();
        while let Some(parent) = above.take_if(|parent| passing.contains(parent)) {
            above = parent.parent();
        }
        let name = format!(".retake-{}-{number}", new.operation);
        match above {
            Some(directory) => directory.join(name.as_bytes()),
            None => WorkspacePath::parse(name.as_bytes()),
        }
        .expect("a plain name stays plain")
    };
    changing
        .iter()
        .enumerate()
        .map(|(number, path)| Item {
            path: path.path.clone(),
            before: path.now,
            after: path.result(),
            temp: temp(&path.path, number),
        })
        .collect()
}

/// Directories that cannot be written to now or once all is done, and will have to be, with their permissions.
fn loosened(root: BorrowedFd<'_>, items: &[Item]) -> Vec<(WorkspacePath, u16)> {
    if rustix::process::geteuid().is_root() {
        return Vec::new();
    }
    let directories: BTreeSet<WorkspacePath> =
        items.iter().flat_map(|item| [item.path.parent(), item.temp.parent()]).flatten().collect();
    let locks = |mode: u16| mode & 0o300 != 0o300;
    let is_locked_after = |path: &WorkspacePath| {
        let item = items.binary_search_by(|item| item.path.cmp(path)).ok().map(|at| &items[at]);
        item.and_then(|item| item.after).is_some_and(|after| after.kind == NodeKind::Directory && locks(after.mode))
    };
    directories
        .into_iter()
        .filter_map(|path| {
            let mode = stat::look(root, path.to_path()).ok()?.facts.permissions();
            (locks(mode) || is_locked_after(&path)).then_some((path, mode))
        })
        .collect()
}

/// Has `paths`, and `save` with all that is below, captured by the next scan; returns whether that is news.
fn capture(rules: &mut Rules, paths: &BTreeSet<WorkspacePath>, save: &Saves) -> bool {
    let before = (rules.wanted.len(), rules.saved.len());
    let bytes = |path: &WorkspacePath| path.as_bytes().to_vec();
    rules.wanted.extend(paths.iter().map(bytes));
    rules.saved.extend(save.paths.keys().map(bytes));
    rules.parted.extend(save.parted.iter().map(bytes));
    (rules.wanted.len(), rules.saved.len()) != before
}

/// A file's content as it is on disk; `None` if it is not what `node` says.
fn read_current(root: BorrowedFd<'_>, path: &WorkspacePath, node: &Node) -> Result<Option<Vec<u8>>, StoreError> {
    use std::io::Read;
    let mut content = Vec::new();
    let read = open::file(root, path.as_bytes())
        .map_err(std::io::Error::from)
        .and_then(|file| file.take(node.size + 1).read_to_end(&mut content));
    Ok((read.is_ok() && crate::base::id::ObjectId::of(&content) == node.content).then_some(content))
}
