//! The naive model: a full copy of the files at every moment, and who was at work between two of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use retake_engine::session::entry::Entry;
use retake_testkit::naive::force::{self, Hand, Recorded};
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
    /// The session's tools.
    Ours,
    /// Retake, because the model wanted it: the session's, too.
    OurRewind,
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

    /// The model took files back at this moment.
    pub(super) fn is_our_rewind(&mut self, moment: usize) {
        self.0[moment].0 = By::OurRewind;
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
        let is_meant = |made: By| made == by || (by == By::Ours && made != By::Outside);
        let steps = self.0[moment..=now].windows(2).filter(|pair| is_meant(pair[1].0));
        steps.flat_map(|pair| differing(&pair[0].1, &pair[1].1)).collect()
    }

    /// What going back to `moment` means: paths with their states then, and those of them that need a decision.
    pub(super) fn going_back(&self, moment: usize) -> (BTreeMap<String, Option<Node>>, BTreeSet<String>) {
        self.going_back_over(self.now(), moment, |by| by == By::Outside)
    }

    /// The same for the model, had it been done at the moment `now`: what the user had brought back is somebody else's, unless it was
    /// taken away again.
    pub(super) fn going_back_from(
        &self,
        now: usize,
        moment: usize,
    ) -> (BTreeMap<String, Option<Node>>, BTreeSet<String>) {
        self.going_back_over(now, moment, |by| !matches!(by, By::Ours | By::OurRewind))
    }

    fn going_back_over(
        &self,
        now: usize,
        moment: usize,
        is_of_others: impl Fn(By) -> bool,
    ) -> (BTreeMap<String, Option<Node>>, BTreeSet<String>) {
        let (mut states, mut conflicts) = (BTreeMap::new(), BTreeSet::new());
        for path in self.changed_until(By::Ours, moment, now) {
            let makers = self.makers(&path, moment, now);
            let is_sessions = makers.is_empty() || makers.iter().any(|by| *by != By::Outside);
            if self.at(moment).get(&path) == self.at(now).get(&path) || !is_sessions {
                continue;
            }
            if makers.into_iter().any(&is_of_others) {
                conflicts.insert(path.clone());
            }
            states.insert(path.clone(), self.at(moment).get(&path).cloned());
        }
        (states, conflicts)
    }

    /// Who made what the path is at the moment `now`, of the time since `moment`.
    fn makers(&self, path: &str, moment: usize, now: usize) -> Vec<By> {
        let (mut past, mut makers, mut seen) = (Vec::new(), Vec::new(), 0);
        for (at, pair) in self.0[..=now].windows(2).enumerate() {
            let (before, after) = (pair[0].1.get(path), pair[1].1.get(path));
            if before == after {
                continue;
            }
            let by = match pair[1].0 {
                By::Ours => Hand::Tool,
                By::OurRewind | By::Retake(_) => Hand::Retake,
                By::Outside => Hand::Person,
            };
            past.push(Recorded { before: Some(before), after: Some(after), by, undone: None });
            makers.push(pair[1].0);
            seen += usize::from(at < moment);
        }
        force::in_force(&past, seen).into_iter().flat_map(|one| one.makers).map(|row| makers[row]).collect()
    }
}

/// Paths that are not the same in both.
pub(super) fn differing(one: &Files, two: &Files) -> BTreeSet<String> {
    let all = one.keys().chain(two.keys());
    all.filter(|path| one.get(*path) != two.get(*path)).cloned().collect()
}

/// `path_search` with `states` in place of what is there.
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
