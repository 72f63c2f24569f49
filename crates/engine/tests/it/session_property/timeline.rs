//! Everything that ever happened to the agents' files: who changed what in which order, and what may go back because of that.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use retake_engine::id::{OperationId, SessionId};
use retake_testkit::naive::force::{self, Hand, Recorded};

use super::OURS;
use super::model::Session;

/// Contents by name.
pub(super) type Files = BTreeMap<String, String>;

/// The files at a time.
#[derive(Clone, Debug)]
pub(super) struct Moment {
    pub(super) at: u64,
    pub(super) files: Files,
}

/// A change of one file.
#[derive(Clone, Debug)]
struct Event {
    at: u64,
    session: SessionId,
    /// Until it is no longer known.
    operation: Option<OperationId>,
    by: Hand,
    name: String,
    before: Option<String>,
    after: Option<String>,
}

#[derive(Debug)]
pub(super) struct Timeline {
    pub(super) files: Files,
    clock: u64,
    events: Vec<Event>,
    /// What an undo or a redo is about in the end.
    roots: HashMap<OperationId, OperationId>,
    undone: Vec<OperationId>,
}

/// What may go back: the states that files get, and those that somebody else had a hand in.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    pub(super) goes: BTreeMap<String, Option<String>>,
    pub(super) conflicts: BTreeMap<String, Option<String>>,
    /// Whether anything goes back that another session did before this one was forked from it.
    pub(super) inherits: bool,
}

impl Verdict {
    /// The files `now` with what goes back, and with what is in conflict too if that is to be.
    pub(super) fn carried_out(&self, now: &Files, overwrite: bool) -> Files {
        let mut files = now.clone();
        let conflicts = self.conflicts.iter().filter(|_| overwrite);
        for (name, content) in self.goes.iter().chain(conflicts) {
            match content {
                Some(content) => files.insert(name.clone(), content.clone()),
                None => files.remove(name),
            };
        }
        files
    }
}

impl Timeline {
    pub(super) fn new(files: Files) -> Self {
        Self { files, clock: 0, events: Vec::new(), roots: HashMap::new(), undone: Vec::new() }
    }

    /// A time after everything that has happened.
    pub(super) fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    pub(super) fn moment(&mut self) -> Moment {
        Moment { at: self.tick(), files: self.files.clone() }
    }

    /// The files are now `files`, and `session` has done that.
    pub(super) fn change(&mut self, session: SessionId, operation: OperationId, by: Hand, files: Files) {
        let before = std::mem::replace(&mut self.files, files);
        for name in differing(&before, &self.files) {
            let (before, after) = (before.get(&name).cloned(), self.files.get(&name).cloned());
            let at = self.tick();
            self.events.push(Event { at, session, operation: Some(operation), by, name, before, after });
        }
    }

    /// An operation, and what it reverses.
    pub(super) fn operation(&mut self, id: OperationId, reverses: Option<OperationId>) {
        let root = reverses.map_or(id, |reversed| self.root(reversed));
        self.roots.insert(id, root);
    }

    fn root(&self, id: OperationId) -> OperationId {
        self.roots.get(&id).copied().unwrap_or(id)
    }

    /// An operation is undone now.
    pub(super) fn is_undone(&mut self, id: OperationId) {
        self.undone.push(id);
    }

    /// An operation is in force again.
    pub(super) fn is_redone(&mut self, id: OperationId) {
        self.undone.retain(|undone| *undone != id);
    }

    /// It is no longer known what these operations were.
    pub(super) fn forget(&mut self, operations: &[OperationId]) {
        for event in &mut self.events {
            if event.operation.is_some_and(|id| operations.contains(&id)) {
                (event.operation, event.by) = (None, Hand::Tool);
            }
        }
    }

    /// What a session may take back of everything since `then`.
    pub(super) fn since(&self, session: &Session, then: &Moment) -> Verdict {
        let mut verdict = Verdict::default();
        let ours = |event: &Event| session.owns(event.session, event.at);
        for name in OURS {
            let past: Vec<&Event> = self.events.iter().filter(|event| event.name == name).collect();
            let (seen, since): (Vec<&Event>, Vec<&Event>) = past.iter().partition(|event| event.at <= then.at);
            let left = in_force(&past, seen.len(), |event| self.undone(event));
            // What is there now may be somebody else's although the session had a hand in it.
            let is_sessions = left.is_empty() || left.iter().flatten().any(|event| ours(event));
            if is_sessions && since.iter().any(|event| ours(event)) {
                self.judge(&mut verdict, name, &left, ours, then.files.get(name));
                let inherited = |event: &&Event| ours(event) && event.session != session.id;
                verdict.inherits |= verdict.goes.contains_key(name) && since.iter().any(inherited);
            }
        }
        verdict
    }

    /// What undoing or redoing an operation may take back.
    pub(super) fn of(&self, operation: OperationId) -> Verdict {
        let mut verdict = Verdict::default();
        let root = self.root(operation);
        let ours = |event: &Event| event.operation.is_some_and(|id| self.root(id) == root);
        for name in OURS {
            let Some(chain) = self.since_the_first_of(operation, name) else { continue };
            self.judge(
                &mut verdict,
                name,
                &in_force(&chain, 0, |event| self.undone(event)),
                ours,
                chain[0].before.as_ref(),
            );
        }
        verdict
    }

    /// Whether an operation, with its undos and redos, made a file another one.
    pub(super) fn changed_files(&self, operation: OperationId) -> bool {
        let root = self.root(operation);
        let ours = |event: &Event| event.operation.is_some_and(|id| self.root(id) == root);
        OURS.into_iter().any(|name| {
            let Some(chain) = self.since_the_first_of(operation, name) else { return false };
            let last = chain.iter().rfind(|event| ours(event));
            last.is_some_and(|last| last.after != chain[0].before)
        })
    }

    /// All that happened to a file since the first change of it by an operation.
    fn since_the_first_of(&self, operation: OperationId, name: &str) -> Option<Vec<&Event>> {
        let is_first = |event: &&Event| event.name == name && event.operation == Some(operation);
        let first = self.events.iter().find(is_first)?;
        Some(self.events.iter().filter(|event| event.at >= first.at && event.name == name).collect())
    }

    /// The number of an event's operation, if that is undone.
    fn undone(&self, event: &Event) -> Option<usize> {
        self.undone.iter().position(|id| event.operation == Some(*id))
    }

    fn judge(
        &self,
        verdict: &mut Verdict,
        name: &str,
        in_force: &[Vec<&Event>],
        ours: impl Fn(&Event) -> bool,
        target: Option<&String>,
    ) {
        if self.files.get(name) == target {
            return;
        }
        let is_all_ours = in_force.iter().flatten().all(|event| ours(event));
        let whereto = if is_all_ours { &mut verdict.goes } else { &mut verdict.conflicts };
        whereto.insert(name.to_owned(), target.cloned());
    }
}

/// The changes in force of a file's past, of which the target has seen the first `seen`: each as the events that it is made of. `undone`
/// gives the number of an event's operation if that is undone.
fn in_force<'a>(past: &[&'a Event], seen: usize, undone: impl Fn(&Event) -> Option<usize>) -> Vec<Vec<&'a Event>> {
    let recorded = |event: &&'a Event| Recorded {
        before: Some(event.before.as_ref()),
        after: Some(event.after.as_ref()),
        by: event.by,
        undone: undone(event),
    };
    let recorded: Vec<Recorded<'a, String>> = past.iter().map(recorded).collect();
    let left = force::in_force(&recorded, seen).into_iter();
    left.map(|one| one.makers.into_iter().map(|row| past[row]).collect()).collect()
}

/// Names of files that are not the same.
pub(super) fn differing(one: &Files, two: &Files) -> Vec<String> {
    let names: BTreeSet<&String> = one.keys().chain(two.keys()).collect();
    names.into_iter().filter(|name| one.get(*name) != two.get(*name)).cloned().collect()
}
