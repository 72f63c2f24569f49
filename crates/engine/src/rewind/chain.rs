//! The changes in force: the ones that made a path what it is, and who made them.
//!
//! One history per path is replayed from its first recorded change. An undo, a redo or a rewind that leads back to an earlier state takes
//! back everything after that state, and the state has the authors of the change that made it, so that a person's work stays theirs
//! through any number of rewinds. Anybody else who writes an earlier state has changed the path once more.

use std::collections::{BTreeMap, BTreeSet};

use crate::history::owner::rows::ChangeRow;
use crate::history::owner::{ChangeKind, Verdict};
use crate::store::tree::{Comparable, Node, comparable, same};

/// A change that is in force since the target.
#[derive(Clone, Debug)]
pub(super) struct InForce {
    pub(super) change: ChangeRow,
    /// The recorded changes that the state after it is made of: usually the change itself.
    pub(super) makers: Vec<ChangeRow>,
}

impl InForce {
    /// Whether a person had a part in it.
    pub(super) fn is_of_a_person(&self) -> bool {
        self.makers.iter().any(is_outside)
    }

    pub(super) fn is_contested(&self) -> bool {
        self.makers.iter().any(|maker| maker.by.verdict == Verdict::Contested)
    }

    /// Whether all who had a part in it are `ours`.
    pub(super) fn is_all(&self, ours: impl Fn(&ChangeRow) -> bool) -> bool {
        self.makers.iter().all(ours)
    }
}

/// Whether no agent and no command made the change.
fn is_outside(change: &ChangeRow) -> bool {
    change.by.verdict == Verdict::Outside && change.by.operation.is_none()
}

/// The windows in which `ours` of `chain` were made.
pub(super) fn windows(chain: &[InForce], ours: impl Fn(&ChangeRow) -> bool) -> BTreeSet<i64> {
    let makers = chain.iter().flat_map(|one| &one.makers).filter(|maker| ours(maker));
    makers.filter_map(|maker| maker.by.window).collect()
}

/// The changes in force since the target, of `history`: all recorded changes of a path in order, of which the target has seen the
/// first `seen`. They lead from the target's state to the last one, unless the path was not captured in between. What an operation of
/// `undone` did and took back by itself left the undo nothing to write, and is not in force either.
pub(super) fn in_force(history: &[ChangeRow], seen: usize, undone: &BTreeSet<i64>) -> Vec<InForce> {
    let mut replay = Replay::new(history, undone);
    for row in 0..history.len() {
        replay.take(row);
    }
    replay.since(seen)
}

/// Where the root is in [`Replay::places`].
const ROOT: usize = 0;

/// A state of the path together with the changes that led to it: a place in the tree of all such.
struct Place {
    /// The change that led here; `None` for the root.
    row: Option<usize>,
    /// The place that it led here from.
    under: usize,
    /// The changes that the state here is made of.
    makers: Vec<usize>,
}

struct Replay<'a> {
    history: &'a [ChangeRow],
    undone: &'a BTreeSet<i64>,
    places: Vec<Place>,
    /// Where the path was before the first change, and after each.
    moments: Vec<usize>,
    /// The last place of each state.
    latest: BTreeMap<Comparable, usize>,
}

impl<'a> Replay<'a> {
    fn new(history: &'a [ChangeRow], undone: &'a BTreeSet<i64>) -> Self {
        let root = Place { row: None, under: ROOT, makers: Vec::new() };
        let latest = history.first().and_then(before).map(|state| (comparable(state), ROOT)).into_iter().collect();
        Self { history, undone, places: vec![root], moments: vec![ROOT], latest }
    }

    /// The state at `place`; `None` if it was not captured.
    fn state(&self, place: usize) -> Option<Option<&'a Node>> {
        match (self.places[place].row, self.history.first()) {
            (Some(row), _) => after(&self.history[row]),
            (None, Some(first)) => before(first),
            (None, None) => None,
        }
    }

    /// `place` and all that it stands on, down to the root.
    fn down(&self, place: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(place), |place| (*place != ROOT).then(|| self.places[*place].under))
    }

    fn add(&mut self, place: Place) -> usize {
        self.places.push(place);
        self.places.len() - 1
    }

    /// Takes the change `row`.
    fn take(&mut self, row: usize) {
        let change = &self.history[row];
        let here = self.moments.last().copied().unwrap_or(ROOT);
        let next = match self.earlier(here, change) {
            Some(earlier) if is_retakes(change) || self.comes_to_nothing(here, earlier, change) => earlier,
            earlier => {
                let mut makers = vec![row];
                // A command that brings a person's state again, out of git's stash, say, has not written it.
                if let Some(earlier) = earlier.filter(|_| change.by.window.is_some()) {
                    let of_a_person = |maker: &&usize| is_outside(&self.history[**maker]);
                    makers.extend(self.places[earlier].makers.iter().filter(of_a_person));
                }
                self.add(Place { row: Some(row), under: here, makers })
            }
        };
        self.moments.push(next);
        if let Some(state) = after(change) {
            self.latest.insert(comparable(state), next);
        }
    }

    /// Whether `change` is the last of an undone operation, and all since `earlier` are of the same operation.
    fn comes_to_nothing(&self, here: usize, earlier: usize, change: &ChangeRow) -> bool {
        let operation = change.by.operation.filter(|operation| self.undone.contains(operation));
        let is_its = |place: &usize| {
            self.places[*place]
                .row
                .is_some_and(|row| operation.is_some() && self.history[row].by.operation == operation)
        };
        self.down(here).find(|place| *place == earlier || !is_its(place)) == Some(earlier) && operation.is_some()
    }

    /// The place of the state that `change` leads to from `here`, if the path was in that state before: below `here` if there is one.
    fn earlier(&self, here: usize, change: &ChangeRow) -> Option<usize> {
        // After a step that nobody recorded, no change leads back.
        let is_recorded = before(change).zip(self.state(here)).is_none_or(|(before, state)| same(before, state));
        let reached = comparable(after(change).filter(|_| is_recorded)?);
        let latest = self.latest.get(&reached).copied()?;
        let is_there = |place: &usize| self.state(*place).map(comparable) == Some(reached);
        self.down(here).find(is_there).or(Some(latest))
    }

    /// The changes in force that the first `seen` do not hold.
    fn since(&self, seen: usize) -> Vec<InForce> {
        let line = |moment: usize| -> Vec<usize> {
            let mut line: Vec<usize> = self.down(self.moments[moment]).filter(|place| *place != ROOT).collect();
            line.reverse();
            line
        };
        let rows = |line: &[usize]| -> Vec<usize> { line.iter().filter_map(|place| self.places[*place].row).collect() };
        let (then, now) = (line(seen), line(self.history.len()));
        let (then, known) = (rows(&then), rows(&now).partition_point(|row| *row < seen));
        let (old, new) = now.split_at(known);
        let mut left = Vec::new();
        if rows(old) != then {
            left.extend(self.jump(seen, old, &then));
        }
        left.extend(new.iter().filter_map(|place| {
            let Place { row, ref makers, .. } = self.places[*place];
            Some(InForce { change: self.history[row?].clone(), makers: self.rows(makers.iter().copied()) })
        }));
        left
    }

    /// The change from the target, which stood on the rows `then`, to the older state that the places `old` lead to.
    fn jump(&self, seen: usize, old: &[usize], then: &[usize]) -> Option<InForce> {
        let top = old.last().copied().unwrap_or(ROOT);
        let is_there = |row: &usize| self.places[self.moments[row + 1]].row == self.places[top].row;
        let row = (seen..self.history.len()).find(is_there)?;
        let target = self.state(self.moments[seen]);
        let kind = if target.is_some() { ChangeKind::Changed } else { ChangeKind::Captured };
        let (before, after) = (target.flatten().copied(), self.state(top).flatten().copied());
        let is_new = |place: &&usize| self.places[**place].row.is_some_and(|row| !then.contains(&row));
        let makers = old.iter().filter(is_new).flat_map(|place| self.places[*place].makers.iter().copied());
        let makers = self.rows(makers.chain([row]));
        let change = ChangeRow { kind, before, after, ..self.history[row].clone() };
        let is_change = kind != ChangeKind::Changed || !same(before.as_ref(), after.as_ref());
        is_change.then_some(InForce { change, makers })
    }

    fn rows(&self, rows: impl Iterator<Item = usize>) -> Vec<ChangeRow> {
        rows.map(|row| self.history[row].clone()).collect()
    }
}

/// The state before `change`; `None` if it was not captured.
pub(super) fn before(change: &ChangeRow) -> Option<Option<&Node>> {
    let is_known = matches!(change.kind, ChangeKind::Changed | ChangeKind::Uncaptured | ChangeKind::LeftOut);
    is_known.then_some(change.before.as_ref())
}

/// The state after `change`; `None` if it was not captured.
pub(super) fn after(change: &ChangeRow) -> Option<Option<&Node>> {
    let is_known = matches!(change.kind, ChangeKind::Changed | ChangeKind::Captured | ChangeKind::Uncovered);
    is_known.then_some(change.after.as_ref())
}

/// Whether Retake made the change: an undo, a redo or a rewind.
pub(super) fn is_retakes(change: &ChangeRow) -> bool {
    change.by.window.is_none() && change.by.operation.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::id::ObjectId;
    use crate::base::path::WorkspacePath;
    use crate::history::owner::By;
    use crate::store::tree::NodeKind;

    fn file(content: &str) -> Option<Node> {
        let size = content.len() as u64;
        let node = Node { kind: NodeKind::File, mode: 0o644, content: ObjectId::of(content.as_bytes()), size };
        (content != "-").then_some(node)
    }

    /// The changes `story`, such as `p12`: a person, the command of window 7 (`c`) or 8 (`d`) or Retake (`r`) leads from 1 to 2.
    fn history(story: &[&str]) -> Vec<ChangeRow> {
        let row = |(at, step): (usize, &&str)| {
            let window =
                |window| By { verdict: Verdict::Presumed, session: Some(1), window: Some(window), operation: None };
            let by = match &step[..1] {
                "c" => window(7),
                "d" => window(8),
                "r" => By::operation(None, 9),
                _ => By::OUTSIDE,
            };
            let (before, after) = (file(&step[1..2]), file(&step[2..3]));
            let kind = match &step[2..3] {
                "?" => ChangeKind::Uncaptured,
                _ if &step[1..2] == "?" => ChangeKind::Captured,
                _ => ChangeKind::Changed,
            };
            let (before, after) = match kind {
                ChangeKind::Uncaptured => (before, None),
                ChangeKind::Captured => (None, after),
                _ => (before, after),
            };
            let path = WorkspacePath::parse(b"a").expect("plain");
            ChangeRow { checkpoint: at as i64, path, kind, before, after, by }
        };
        story.iter().enumerate().map(row).collect()
    }

    /// The changes in force since the first `seen`: each by the number of its row, with those of its makers.
    fn left(story: &[&str], seen: usize) -> Vec<(i64, Vec<i64>)> {
        let makers = |one: &InForce| one.makers.iter().map(|maker| maker.checkpoint).collect();
        in_force(&history(story), seen, &BTreeSet::new())
            .iter()
            .map(|one| (one.change.checkpoint, makers(one)))
            .collect()
    }

    fn plain(rows: &[i64]) -> Vec<(i64, Vec<i64>)> {
        rows.iter().map(|row| (*row, vec![*row])).collect()
    }

    #[test]
    fn only_retake_takes_changes_back() {
        assert_eq!(left(&["c12", "p23"], 0), plain(&[0, 1]));
        assert_eq!(left(&["c12", "p23", "r32"], 0), plain(&[0]));
        assert_eq!(left(&["c12", "p23", "p32"], 0), plain(&[0, 1, 2]), "a person changed it in between");
        assert_eq!(left(&["c12", "d23", "c32"], 0), plain(&[0, 1, 2]), "another command did");
        assert_eq!(left(&["c12", "r21", "d13"], 0), plain(&[2]));
        assert_eq!(
            left(&["c12", "c2?", "p?3", "r3-"], 0),
            plain(&[0, 1, 2, 3]),
            "nothing is known of the time between"
        );
        assert_eq!(left(&["c12", "d21", "d12"], 0), plain(&[0, 1, 2]));
    }

    #[test]
    fn a_state_that_retake_brings_back_has_its_first_author() {
        assert_eq!(left(&["p12", "r21", "r12"], 0), plain(&[0]), "a rewind and its undo");
        assert_eq!(left(&["p-1", "c1-", "r-1"], 0), plain(&[0]), "the undo of a command that deleted it");
        assert_eq!(left(&["p12", "c21", "r12"], 0), plain(&[0]), "a command wrote the target's content");
        assert_eq!(left(&["p12", "d23", "r31", "r13"], 0), plain(&[0, 1]));
        assert_eq!(left(&["c12", "d23", "r32", "r21", "r12"], 0), plain(&[0]));
    }

    #[test]
    fn a_state_from_before_the_target_has_its_first_author_too() {
        assert_eq!(
            left(&["p12", "r21", "r12"], 2),
            vec![(2, vec![0, 2])],
            "taken back before the target, and back since"
        );
        assert_eq!(left(&["p12", "c23", "r32"], 2), plain(&[2]), "the target holds it");
        assert_eq!(left(&["p12", "c23", "r32", "d24"], 2), plain(&[2, 3]));
        assert_eq!(left(&["p12", "c23", "p34", "r42"], 2), plain(&[3]), "and what came since is gone");
        assert_eq!(left(&["c12", "r21"], 1), plain(&[1]), "Retake has taken it back");
    }

    #[test]
    fn a_state_that_is_written_again_is_a_change_of_its_own() {
        assert_eq!(left(&["c12", "d23", "p32"], 0), plain(&[0, 1, 2]), "a person restored what a command had written");
        assert_eq!(left(&["c12", "r21", "p12"], 0), plain(&[2]), "after an undo");
        let stashed = vec![(0, vec![0]), (1, vec![1]), (2, vec![2, 0])];
        assert_eq!(left(&["p12", "c21", "d12"], 0), stashed, "a command brings it out of a stash");
    }
}
