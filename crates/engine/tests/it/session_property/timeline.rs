//! Everything that ever happened to the agents' files: who changed what in which order, and what may go back because of that.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use retake_engine::{OperationId, SessionId};

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
    undone: HashSet<OperationId>,
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
        Self { files, clock: 0, events: Vec::new(), roots: HashMap::new(), undone: HashSet::new() }
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
    pub(super) fn change(&mut self, session: SessionId, operation: OperationId, files: Files) {
        let before = std::mem::replace(&mut self.files, files);
        for name in differing(&before, &self.files) {
            let (before, after) = (before.get(&name).cloned(), self.files.get(&name).cloned());
            let at = self.tick();
            self.events.push(Event { at, session, operation: Some(operation), name, before, after });
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

    pub(super) fn set_undone(&mut self, id: OperationId, undone: bool) {
        let _ = if undone { self.undone.insert(id) } else { self.undone.remove(&id) };
    }

    /// It is no longer known what these operations were.
    pub(super) fn forget(&mut self, operations: &[OperationId]) {
        for event in &mut self.events {
            event.operation = event.operation.filter(|id| !operations.contains(id));
        }
    }

    /// What a session may take back of everything since `then`.
    pub(super) fn since(&self, session: &Session, then: &Moment) -> Verdict {
        let mut verdict = Verdict::default();
        let ours = |event: &Event| session.owns(event.session, event.at);
        for name in OURS {
            let chain: Vec<&Event> =
                self.events.iter().filter(|event| event.at > then.at && event.name == name).collect();
            if chain.iter().any(|event| ours(event)) {
                self.judge(&mut verdict, name, &chain, ours, then.files.get(name));
                let inherited = |event: &&Event| ours(event) && event.session != session.id;
                verdict.inherits |= verdict.goes.contains_key(name) && chain.iter().any(inherited);
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
            let is_first = |event: &&Event| event.name == name && event.operation == Some(operation);
            let Some(first) = self.events.iter().find(is_first) else { continue };
            let chain: Vec<&Event> =
                self.events.iter().filter(|event| event.at >= first.at && event.name == name).collect();
            self.judge(&mut verdict, name, &chain, ours, first.before.as_ref());
        }
        verdict
    }

    /// Whether an operation, with its undos and redos, made a file another one.
    pub(super) fn changed_files(&self, operation: OperationId) -> bool {
        let root = self.root(operation);
        let ours = |event: &Event| event.operation.is_some_and(|id| self.root(id) == root);
        OURS.into_iter().any(|name| {
            let is_first = |event: &&Event| event.name == name && event.operation == Some(operation);
            let Some(first) = self.events.iter().find(is_first) else { return false };
            let chain: Vec<&Event> =
                self.events.iter().filter(|event| event.at >= first.at && event.name == name).collect();
            let last = self.in_force(&chain, &ours).into_iter().rfind(|event| ours(event));
            last.is_some_and(|last| last.after != first.before)
        })
    }

    fn judge(
        &self,
        verdict: &mut Verdict,
        name: &str,
        chain: &[&Event],
        ours: impl Fn(&Event) -> bool,
        target: Option<&String>,
    ) {
        if self.files.get(name) == target {
            return;
        }
        let in_force = self.in_force(chain, &ours);
        let whereto = if in_force.iter().all(|event| ours(event)) { &mut verdict.goes } else { &mut verdict.conflicts };
        whereto.insert(name.to_owned(), target.cloned());
    }

    /// `chain` without what others did and took back again.
    fn in_force<'a>(&self, chain: &[&'a Event], ours: &impl Fn(&Event) -> bool) -> Vec<&'a Event> {
        let mut left: Vec<&Event> = Vec::new();
        for event in chain {
            left.push(event);
            let Some(family) = event.operation.filter(|_| !ours(event)).map(|id| self.root(id)) else { continue };
            let is_family = |other: &&&Event| !ours(other) && other.operation.is_some_and(|id| self.root(id) == family);
            let same_hand = left.iter().rev().take_while(is_family).count();
            let is_cancelled = |from: &usize| {
                let taken_back = left[*from..].iter().any(|other| other.operation != event.operation);
                (taken_back || self.undone.contains(&family)) && left[*from].before == event.after
            };
            let cancelled = (left.len() - same_hand..left.len()).rev().find(is_cancelled);
            cancelled.into_iter().for_each(|from| left.truncate(from));
        }
        left
    }
}

/// Names of files that are not the same.
pub(super) fn differing(one: &Files, two: &Files) -> Vec<String> {
    let names: BTreeSet<&String> = one.keys().chain(two.keys()).collect();
    names.into_iter().filter(|name| one.get(*name) != two.get(*name)).cloned().collect()
}
