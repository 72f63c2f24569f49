//! The naive model: a full copy of the files at every moment, and who was at work between two of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use retake_engine::session::entry::Entry;
use retake_testkit::naive::{self, Shape};

/// Everything below the root, by path: shape, permission bits, content.
pub(super) type Files = BTreeMap<String, Node>;
pub(super) type Node = (Shape, u16, Vec<u8>);

pub(super) fn read(root: &Path) -> Files {
    let all = naive::everything(root).unwrap();
    let named = all.into_iter().map(|(path, thing)| (String::from_utf8(path).unwrap(), thing));
    named.map(|(path, thing)| (path, (thing.shape, thing.mode, thing.content))).collect()
}

/// Who changed files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// The session: its tools, or Retake for it.
    Ours,
    /// Retake, because the user wanted it: an operation that began at this moment, or its undo or redo. For the user that is the
    /// session, too.
    Retake(usize),
    Outside,
}

/// All moments so far, oldest first, each with who made it of the one before.
#[derive(Debug, Default)]
pub(super) struct Timeline(Vec<(By, Files)>);

impl Timeline {
    pub(super) fn push(&mut self, by: By, files: Files) {
        self.0.push((by, files));
    }

    /// The number of the newest moment.
    pub(super) fn now(&self) -> usize {
        self.0.len() - 1
    }

    pub(super) fn at(&self, moment: usize) -> &Files {
        &self.0[moment].1
    }

    /// Paths that `by` changed after `moment`.
    pub(super) fn changed(&self, by: By, moment: usize) -> BTreeSet<String> {
        self.changed_until(by, moment, self.now())
    }

    fn changed_until(&self, by: By, moment: usize, now: usize) -> BTreeSet<String> {
        let is_meant = |made: By| made == by || (by == By::Ours && matches!(made, By::Retake(_)));
        let steps = self.0[moment..=now].windows(2).filter(|pair| is_meant(pair[1].0));
        steps.flat_map(|pair| differing(&pair[0].1, &pair[1].1)).collect()
    }

    /// What going back to `moment` means: paths with their states then, and those of them that need a decision.
    pub(super) fn going_back(&self, moment: usize) -> (BTreeMap<String, Option<Node>>, BTreeSet<String>) {
        let others = self.changed(By::Outside, moment);
        self.going_back_over(self.now(), moment, |path| others.contains(path))
    }

    /// The same for the model, had it been done at the moment `now`: what the user had brought back is somebody else's, unless it was
    /// taken away again.
    pub(super) fn going_back_from(
        &self,
        now: usize,
        moment: usize,
    ) -> (BTreeMap<String, Option<Node>>, BTreeSet<String>) {
        self.going_back_over(now, moment, |path| self.others_changed(path, moment, now))
    }

    fn going_back_over(
        &self,
        now: usize,
        moment: usize,
        is_of_others: impl Fn(&str) -> bool,
    ) -> (BTreeMap<String, Option<Node>>, BTreeSet<String>) {
        let ours = self.changed_until(By::Ours, moment, now);
        let (then, now) = (self.at(moment), self.at(now));
        let differing = ours.into_iter().filter(|path| then.get(path) != now.get(path));
        let states: BTreeMap<_, _> = differing.map(|path| (path.clone(), then.get(&path).cloned())).collect();
        let conflicts = states.keys().filter(|path| is_of_others(path)).cloned().collect();
        (states, conflicts)
    }

    /// Whether somebody else than the model has changed a path. An undo and its redo that come to nothing are as if they had not been.
    fn others_changed(&self, path: &str, moment: usize, now: usize) -> bool {
        let mut steps: Vec<(By, Option<&Node>, Option<&Node>)> = Vec::new();
        for pair in self.0[moment..=now].windows(2) {
            let (by, before, after) = (pair[1].0, pair[0].1.get(path), pair[1].1.get(path));
            if before == after {
                continue;
            }
            steps.push((by, before, after));
            let of_family = steps.iter().rev().take_while(|step| step.0 == by && by != By::Ours && by != By::Outside);
            let first = steps.len() - of_family.count();
            if let Some(at) = (first..steps.len() - 1).rev().find(|at| steps[*at].1 == after) {
                steps.truncate(at);
            }
        }
        steps.iter().any(|step| step.0 != By::Ours)
    }
}

/// Paths that are not the same in both.
pub(super) fn differing(one: &Files, two: &Files) -> BTreeSet<String> {
    let all = one.keys().chain(two.keys());
    all.filter(|path| one.get(*path) != two.get(*path)).cloned().collect()
}

/// `files` with `states` in place of what is there.
pub(super) fn with(files: &Files, states: &BTreeMap<String, Option<Node>>) -> Files {
    let mut files = files.clone();
    for (path, state) in states {
        match state {
            Some(node) => drop(files.insert(path.clone(), node.clone())),
            None => drop(files.remove(path)),
        }
    }
    files
}

/// What an operation of the session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Turn,
    Rewind,
    Clear,
    Summary,
}

/// An operation that can be undone.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    pub(super) kind: Kind,
    /// The moment before it.
    pub(super) since: usize,
    /// The paths that it changed, with their states before it.
    pub(super) before: BTreeMap<String, Option<Node>>,
    pub(super) entries_before: Vec<Entry>,
    pub(super) entries_after: Vec<Entry>,
}

/// An operation that was undone.
#[derive(Clone, Debug)]
pub(super) struct Undone {
    pub(super) operation: Operation,
    /// The paths that the undo changed, with their states before it.
    pub(super) before: BTreeMap<String, Option<Node>>,
}
