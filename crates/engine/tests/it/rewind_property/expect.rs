//! What a rewind must do to every path, worked out from the model and a full read of the disk.
//!
//! Written from the rules alone: all ours and nothing since goes back, what is there already stays, everything else is a conflict;
//! nothing is deleted without proof of its absence; a directory stays with whatever in it stays.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

use retake_engine::changes::Certainty;
use retake_engine::rewind::{Conflict, KeptBecause, OnConflict};
use retake_testkit::naive::{Everything, Known, NaiveGap, NaiveKind, NaiveNode, NaiveTree, Shape};
use retake_testkit::tree::Who;

use super::force::{Step, after, in_force, is_yours, leads};
use super::judge::{judge, merge};
use super::model::{By, Happening, Model, Path, Row};
use super::world::SAVE_HIDDEN;

/// Where a rewind goes, with everything looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Goal {
    /// To a point, with everything.
    Exact(usize),
    /// To a point, with what one session did.
    Selective(Who, usize),
    /// Before an operation.
    Reverse(usize),
}

impl Goal {
    /// The point that it is about.
    pub(super) fn target(self, model: &Model) -> usize {
        match self {
            Self::Exact(target) | Self::Selective(_, target) => target,
            Self::Reverse(operation) => model.operations[operation].before,
        }
    }
}

/// What is asked for.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) goal: Goal,
    pub(super) choice: OnConflict,
    /// What becomes of the conflicts of single paths.
    pub(super) choices: BTreeMap<Path, OnConflict>,
    /// What becomes of a person's changes where nothing else decides.
    pub(super) on_yours: OnConflict,
    pub(super) only: Vec<Path>,
}

/// What must become of one path.
#[derive(Debug, Clone)]
pub(super) struct Planned {
    pub(super) now: Option<NaiveNode>,
    pub(super) target: Option<NaiveNode>,
    pub(super) conflict: Option<Conflict>,
    pub(super) choice: OnConflict,
    pub(super) certainty: Option<Certainty>,
    pub(super) yours: bool,
    pub(super) merged: Option<NaiveNode>,
}

/// What a rewind must come to.
#[derive(Debug, Default)]
pub(super) struct Expected {
    pub(super) paths: BTreeMap<Path, Planned>,
    pub(super) kept: BTreeSet<(Path, &'static str)>,
    pub(super) blocked: BTreeSet<Path>,
    /// Files that what is reversed changed and that are as before already.
    pub(super) already: BTreeSet<Path>,
    /// Paths that the rules leave out and that have to be captured, because they are about to be touched.
    pub(super) captured: BTreeSet<Path>,
    /// Hidden paths that are saved before they go.
    pub(super) saved: BTreeMap<Path, By>,
    /// How many files go to the state of a session's point that the session never wrote.
    pub(super) foreign: usize,
    /// What is there now, these paths included.
    pub(super) now: NaiveTree,
}

impl Planned {
    /// Whether this path keeps everything from being done.
    fn stops(&self) -> bool {
        match (self.conflict, self.choice) {
            (None, _) | (Some(_), OnConflict::Keep) => false,
            (Some(_), OnConflict::Stop) => true,
            (Some(conflict), OnConflict::Overwrite) => !is_overwritable(conflict),
            (Some(_), OnConflict::Merge) => self.merged.is_none(),
        }
    }

    /// What must be there afterwards.
    pub(super) fn result(&self) -> Option<&NaiveNode> {
        match (self.conflict, self.choice) {
            (None, _) | (Some(_), OnConflict::Overwrite) => self.target.as_ref(),
            (Some(_), OnConflict::Merge) => self.merged.as_ref(),
            (Some(_), OnConflict::Stop | OnConflict::Keep) => self.now.as_ref(),
        }
    }

    /// What would be there if an open decision is made for it.
    pub(super) fn aim(&self) -> Option<&NaiveNode> {
        let is_open = self.choice == OnConflict::Stop && self.conflict.is_some_and(is_overwritable);
        if is_open { self.target.as_ref() } else { self.result() }
    }

    /// Whether anything is to be done.
    pub(super) fn is_touched(&self) -> bool {
        self.result() != self.now.as_ref()
    }
}

impl Expected {
    /// Whether nothing may be done at all.
    pub(super) fn is_refused(&self) -> bool {
        !self.blocked.is_empty() || self.paths.values().any(Planned::stops)
    }

    /// The paths that change.
    pub(super) fn touched(&self) -> BTreeSet<Path> {
        self.paths.iter().filter(|(_, planned)| planned.is_touched()).map(|(path, _)| path.clone()).collect()
    }
}

pub(super) fn is_overwritable(conflict: Conflict) -> bool {
    matches!(
        conflict,
        Conflict::ChangedByOthers
            | Conflict::ChangedLater
            | Conflict::ChangedSince
            | Conflict::UncapturedSince
            | Conflict::Contested
            | Conflict::Yours
    )
}

pub(super) fn is_directory(node: Option<&NaiveNode>) -> bool {
    node.is_some_and(|node| node.kind == NaiveKind::Directory)
}

pub(super) fn parent(path: &[u8]) -> Option<&[u8]> {
    path.iter().rposition(|byte| *byte == b'/').map(|at| &path[..at])
}

/// Reads the disk with these paths declared, and with these saved.
type Read<'a> = dyn Fn(&BTreeSet<Path>, &BTreeSet<Path>) -> Result<NaiveTree, String> + 'a;

/// Works out what `wanted` must come to. `read` reads the disk with more paths captured than the model has declared.
pub(super) fn expect(
    model: &Model,
    wanted: &Wanted,
    disk: &Everything,
    root: &std::path::Path,
    read: &Read<'_>,
) -> Result<Expected, String> {
    let mut declared = model.declared.clone();
    let mut saved: BTreeSet<Path> = BTreeSet::new();
    // Hidden directories some of whose content is saved.
    let mut parted: BTreeSet<Path> = BTreeSet::new();
    loop {
        let now = read(&declared, &saved)?;
        let plan = Planner { model, wanted, disk, root, now: &now, saved: &saved, parted: &parted };
        let mut expected = plan.draft();
        let save = plan.draft_hidden(&mut expected);
        let is_saved = save.keys().all(|path| saved.contains(path));
        // What must be touched is captured first, if it can be.
        let uncaptured = expected.paths.iter().filter(|(_, planned)| planned.conflict == Some(Conflict::NotCaptured));
        let before = declared.len();
        declared.extend(uncaptured.map(|(path, _)| path.clone()));
        if declared.len() == before && is_saved {
            plan.settle(&mut expected);
            plan.keep_what_is_not_captured(&mut expected);
            expected.paths.retain(|_, planned| planned.conflict.is_some() || planned.now != planned.target);
            expected.foreign = plan.foreign(&expected);
            expected.captured = declared.difference(&model.declared).cloned().collect();
            expected.saved = save;
            expected.now = now;
            return Ok(expected);
        }
        let hidden = model.rows.iter().filter(|row| row.happening == Happening::Hidden).map(|row| &row.path);
        let is_parted = |path: &&Path| !save.contains_key(*path) && save.keys().any(|saved| is_in(saved, path));
        parted.extend(hidden.filter(|path| now.is_left_out(path)).filter(is_parted).cloned());
        saved.extend(save.into_keys());
    }
}

pub(super) struct Planner<'a> {
    pub(super) model: &'a Model,
    pub(super) wanted: &'a Wanted,
    pub(super) disk: &'a Everything,
    pub(super) root: &'a std::path::Path,
    pub(super) now: &'a NaiveTree,
    pub(super) saved: &'a BTreeSet<Path>,
    pub(super) parted: &'a BTreeSet<Path>,
}

impl Planner<'_> {
    fn draft(&self) -> Expected {
        let mut expected = Expected::default();
        match self.wanted.goal {
            Goal::Exact(target) => self.draft_exact(target, &mut expected),
            Goal::Selective(who, target) => self.draft_selective(who, target, &mut expected),
            Goal::Reverse(operation) => self.draft_reverse(operation, &mut expected),
        }
        if !matches!(self.wanted.goal, Goal::Exact(_)) {
            // A directory is named for all that is in it.
            let all = expected.kept.clone();
            let is_kept = |path: &[u8]| all.contains(&(path.to_vec(), name(KeptBecause::NotProven)));
            expected.kept.retain(|(path, _)| !parent(path).is_some_and(is_kept));
        }
        expected
    }

    fn is_covered(&self, path: &[u8]) -> bool {
        let is_in = |wanted: &Path| path == wanted || path.starts_with(&[wanted.as_slice(), b"/"].concat());
        self.wanted.only.is_empty() || self.wanted.only.iter().any(is_in)
    }

    /// Whether `path` was captured only so that it can go.
    fn has_saved(&self, path: &[u8]) -> bool {
        self.saved.iter().any(|saved| path == saved || path.starts_with(&[saved.as_slice(), b"/"].concat()))
    }

    pub(super) fn then(&self) -> &NaiveTree {
        &self.model.points[self.wanted.goal.target(self.model)].tree
    }

    fn foreign(&self, expected: &Expected) -> usize {
        let Goal::Exact(target) = self.wanted.goal else { return 0 };
        let Some(who) = self.model.points[target].session else { return 0 };
        let is_its = |row: &&Row| self.model.session_of(row.by) == Some(who);
        let own: BTreeSet<&Path> = self.model.rows.iter().filter(is_its).map(|row| &row.path).collect();
        let is_file = |planned: &Planned| !is_directory(planned.now.as_ref().or(planned.target.as_ref()));
        expected.paths.iter().filter(|(path, planned)| is_file(planned) && !own.contains(path)).count()
    }

    /// What has come since and is not captured cannot go away; an undo is only about what came while its operation was made.
    fn keep_what_is_not_captured(&self, expected: &mut Expected) {
        for (path, _) in self.now.gaps.iter().filter(|(_, gap)| *gap != NaiveGap::HardLink) {
            let mut is_new = self.is_covered(path) && self.then().known(path) == Known::Absent;
            if let Goal::Reverse(operation) = self.wanted.goal
                && let Some(after) = self.model.operations[operation].after
            {
                is_new &= self.model.points[after]
                    .tree
                    .gaps
                    .iter()
                    .any(|(gap, kind)| gap == path && *kind != NaiveGap::HardLink);
            }
            if is_new && !expected.paths.contains_key(path) {
                expected.kept.insert((path.clone(), name(KeptBecause::NotCaptured)));
            }
        }
    }

    pub(super) fn choice(&self, path: &[u8]) -> OnConflict {
        self.wanted.choices.get(path).copied().unwrap_or(self.wanted.choice)
    }

    pub(super) fn planned(
        &self,
        path: &[u8],
        conflict: Option<Conflict>,
        now: Option<&NaiveNode>,
        target: Option<&NaiveNode>,
    ) -> Planned {
        let choice = if conflict.is_some() { self.choice(path) } else { OnConflict::Stop };
        let (now, target) = (now.cloned(), target.cloned());
        Planned { now, target, conflict, choice, certainty: None, yours: false, merged: None }
    }

    fn draft_exact(&self, target_point: usize, expected: &mut Expected) {
        let then = &self.model.points[target_point].tree;
        let uncovered = self.uncovered(target_point);
        let mut ignored: BTreeSet<Path> = BTreeSet::new();
        let paths: BTreeSet<&Path> = self.now.nodes.keys().chain(then.nodes.keys()).collect();
        for path in paths.into_iter().filter(|path| self.is_covered(path) && !self.has_saved(path)) {
            let (now, target) = (self.now.known(path), then.known(path));
            let planned = match (now, target) {
                _ if now == target => continue,
                (_, Known::Unknown) => {
                    expected.kept.insert((path.clone(), name(KeptBecause::NotProven)));
                    continue;
                }
                (Known::Unknown, Known::There(node)) => {
                    self.planned(path, Some(Conflict::NotCaptured), None, Some(node))
                }
                (Known::Unknown, Known::Absent) => continue,
                (Known::There(node), Known::Absent) if uncovered.get(path) == Some(&Some(node.clone())) => {
                    if parent(path).is_none_or(|parent| !uncovered.contains_key(parent)) {
                        expected.kept.insert((path.clone(), name(KeptBecause::Hidden)));
                    }
                    continue;
                }
                (Known::There(node), Known::Absent) if self.was_ignored(path, node) => {
                    if parent(path).is_none_or(|above| !ignored.contains(above)) {
                        expected.kept.insert((path.clone(), name(KeptBecause::IgnoredThen)));
                    }
                    ignored.insert(path.clone());
                    continue;
                }
                (now, then) => self.planned_exact(path, target_point, now.state().flatten(), then.state().flatten()),
            };
            expected.paths.insert(path.clone(), planned);
        }
    }

    /// Whether the rules of the target ignored the name of `node`, which has come since.
    fn was_ignored(&self, path: &Path, node: &NaiveNode) -> bool {
        let then = self.then();
        !then.sought.contains(path) && then.would_leave_out(path, is_directory(Some(node)), self.now)
    }

    /// The change to what is on disk and in no point yet.
    fn unseen(&self, path: &Path, past: &[&Row], then: Option<&NaiveNode>, now: Option<&NaiveNode>) -> Option<Row> {
        let last = past.last().map_or(Some(then), |row| after(row))?;
        (last != now).then(|| Row {
            point: usize::MAX,
            path: path.clone(),
            happening: Happening::Changed,
            before: last.cloned(),
            after: now.cloned(),
            by: self.model.attribute(path),
            open: Vec::new(),
            inode: None,
        })
    }

    /// A path of an exact rewind. What is on disk and in no point yet is a change like the recorded ones.
    fn planned_exact(&self, path: &Path, point: usize, now: Option<&NaiveNode>, then: Option<&NaiveNode>) -> Planned {
        let is_step = |row: &&Row| row.path == *path && row.happening != Happening::Hidden;
        let mut past: Vec<&Row> = self.model.rows.iter().filter(is_step).collect();
        let unseen = self.unseen(path, &past, then, now);
        past.extend(&unseen);
        let mut chain = in_force(self.model, &past, past.iter().filter(|row| row.point <= point).count());
        // A rule that leaves out a file does not change it.
        while chain.last().is_some_and(|step| step.happening == Happening::LeftOut && step.before == now) {
            chain.pop();
        }
        let yours = is_yours(&chain.iter().map(known_authors).collect::<Vec<_>>(), now);
        let conflict = match (yours, leads(&chain, then, now)) {
            (true, _) => Some(Conflict::Yours),
            (false, false) => Some(Conflict::UncapturedSince),
            (false, true) => None,
        };
        let doubt = conflict.filter(|_| now.is_some());
        let is_single = self.wanted.choices.contains_key(path);
        let is_agreed =
            self.wanted.on_yours == OnConflict::Overwrite && self.wanted.choice == OnConflict::Stop && !is_single;
        let mut planned = self.planned(path, doubt.filter(|_| !is_agreed), now, then);
        planned.yours = yours;
        if doubt.is_some() {
            planned.merged = merge(&chain, &|step| !step.is_persons(), now);
        }
        planned
    }

    /// Paths that a rewind has left and that nothing has changed since, with how it left them.
    fn uncovered(&self, target: usize) -> BTreeMap<Path, Option<NaiveNode>> {
        let rows = &self.model.rows;
        let is_changed = |at: usize| {
            rows[at + 1..].iter().any(|row| row.path == rows[at].path && row.happening == Happening::Changed)
        };
        let is_uncovered = |at: &usize| rows[*at].happening == Happening::Uncovered && rows[*at].point > target;
        let left = (0..rows.len()).filter(is_uncovered).filter(|at| !is_changed(*at));
        left.map(|at| (rows[at].path.clone(), rows[at].after.clone())).collect()
    }

    /// What tools hid goes back; what else a rule hides that is newer than the target stays and is named. Returns what has to be saved.
    fn draft_hidden(&self, expected: &mut Expected) -> BTreeMap<Path, By> {
        let model = self.model;
        let target = self.wanted.goal.target(model);
        let is_exact = matches!(self.wanted.goal, Goal::Exact(_));
        let mut candidates: BTreeMap<&Path, Option<&Row>> = BTreeMap::new();
        if is_exact {
            let before: BTreeSet<&Path> = self.then().names_left_out().collect();
            let names = self.now.names_left_out().filter(|path| !before.contains(path));
            candidates.extend(names.chain(self.saved).map(|path| (path, None)));
        }
        let rows = model.rows.iter().filter(|row| row.happening == Happening::Hidden && row.point > target);
        let rows = rows.filter(|row| is_exact || self.has_made(row.by));
        candidates.extend(rows.map(|row| (&row.path, Some(row))));
        let (mut save, mut bytes, mut decided) = (BTreeMap::new(), 0, Vec::new());
        for (path, row) in candidates {
            let Some(top) = self.disk.get(path) else { continue };
            let is_entered = self.saved.contains(path) || self.parted.contains(path);
            let is_decided = decided.iter().any(|above: &&Path| is_in(path, above));
            if is_decided || !self.is_covered(path) || !(is_entered || self.now.is_left_out(path)) {
                continue;
            }
            if self.now.version_control.contains(path) {
                if parent(path).is_some() && self.then().known(path) == Known::Absent {
                    expected.kept.insert((path.clone(), name(KeptBecause::NotCaptured)));
                }
                continue;
            }
            let is_directory = top.shape == Shape::Directory;
            let is_proven =
                self.then().known(path) == Known::Absent && !self.then().would_leave_out(path, is_directory, self.now);
            let (mut going, mut staying) = (BTreeSet::new(), BTreeSet::new());
            let by = row.map_or_else(|| self.brought_back(path), |row| Some(row.by).filter(|by| self.has_made(*by)));
            if is_proven && by.is_some() {
                (going, staying) = self.parts(path, row);
            }
            if going.is_empty() {
                if is_proven || row.is_some() {
                    expected.kept.insert((path.clone(), name(KeptBecause::Hidden)));
                }
                continue;
            }
            decided.push(path);
            let goes = |below: &Path| going.iter().any(|gone| below == gone || is_in(below, gone));
            let size: u64 =
                self.disk.iter().filter(|(below, _)| goes(below)).map(|(_, t)| t.content.len() as u64).sum();
            if bytes + size > SAVE_HIDDEN {
                expected.kept.insert((path.clone(), name(KeptBecause::SaveLimit)));
                continue;
            }
            bytes += size;
            let by = by.unwrap_or(By::Outside);
            // Directories that stay for what is in them are not the plan's affair.
            expected.paths.retain(|above, _| {
                staying.is_empty() || !(above == path || is_in(above, path)) || !going.iter().any(|g| is_in(g, above))
            });
            for gone in &going {
                let is_gap = |(gap, kind): &&(Path, NaiveGap)| {
                    *kind != NaiveGap::HardLink && (gap == gone || is_in(gap, gone)) && self.has_saved(gap)
                };
                let gaps = self.now.gaps.iter().filter(is_gap);
                expected.kept.extend(gaps.map(|(gap, _)| (gap.clone(), name(KeptBecause::NotCaptured))));
                if self.saved.contains(gone) && !expected.paths.contains_key(gone) {
                    self.delete_saved(gone, by, expected);
                }
            }
            expected.kept.extend(staying.into_iter().map(|path| (path, name(KeptBecause::Hidden))));
            save.extend(going.into_iter().map(|path| (path, by)));
        }
        save
    }

    /// Plans that `top` goes with all that is below it.
    fn delete_saved(&self, top: &Path, by: By, expected: &mut Expected) {
        for (path, node) in self.now.nodes.iter().filter(|(path, _)| *path == top || is_in(path, top)) {
            let mut planned = self.planned(path, None, Some(node), None);
            let is_certain = matches!(by, By::Window { certain: true, .. });
            let certainty = if is_certain { Certainty::Certain } else { Certainty::Presumed };
            planned.certainty = (!matches!(self.wanted.goal, Goal::Exact(_))).then_some(certainty);
            expected.paths.insert(path.clone(), planned);
        }
    }

    /// Whether a tool whose changes are taken back did it.
    fn has_made(&self, by: By) -> bool {
        let By::Window { number, .. } = by else { return false };
        let window = &self.model.windows[number];
        match self.wanted.goal {
            Goal::Exact(_) => true,
            Goal::Selective(who, _) => window.who == who,
            Goal::Reverse(operation) => window.operation == Some(operation),
        }
    }

    /// The tool that made what is at `path`, if Retake has written it as it is and nobody else has had a part in it.
    fn brought_back(&self, path: &Path) -> Option<By> {
        let is_step = |row: &&Row| row.path == *path && row.happening != Happening::Hidden;
        let past: Vec<&Row> = self.model.rows.iter().filter(is_step).collect();
        let target = self.wanted.goal.target(self.model);
        let chain = in_force(self.model, &past, past.iter().filter(|row| row.point <= target).count());
        let (mut state, mut tool) = (None, None);
        for row in chain.iter().flat_map(|step| step.makers.iter().copied()) {
            match (row.happening, row.by) {
                // A rule came.
                (Happening::LeftOut, _) => {}
                (Happening::Changed, By::Retake(_)) => state = row.after.as_ref(),
                (Happening::Changed, by) if self.has_made(by) => (state, tool) = (row.after.as_ref(), Some(by)),
                // And went, with the file as it was.
                (Happening::Captured | Happening::Uncovered, _) if row.after.as_ref() == state => {}
                _ => return None,
            }
        }
        let is_retakes = |row: &Row| matches!(row.by, By::Retake(_)) && row.after.as_ref() == state;
        let (node, thing) = (state?, self.disk.get(path)?);
        let kind = match thing.shape {
            Shape::File => NaiveKind::File,
            Shape::Symlink => NaiveKind::Symlink,
            Shape::Directory => NaiveKind::Directory,
            Shape::Special => return None,
        };
        let is_same = (node.kind, node.mode, &node.content) == (kind, thing.mode, &thing.content);
        tool.filter(|_| is_same && past.iter().any(|row| is_retakes(row)))
    }

    /// What is at and below the hidden path `top`, which `row` tells the creation of: as the tool left it that created it or as Retake
    /// brought it back, and what came or changed since. The topmost paths of both.
    fn parts(&self, top: &Path, row: Option<&Row>) -> (BTreeSet<Path>, BTreeSet<Path>) {
        let ended = match row.map(|row| row.by) {
            Some(By::Window { number, .. }) => {
                self.model.windows[number].closed.map_or(i128::MAX, |(_, at)| i128::from(at.0))
            }
            _ => i128::MIN,
        };
        let all: Vec<&Path> = self.disk.keys().filter(|path| *path == top || is_in(path, top)).collect();
        let inode = row.and_then(|row| row.inode);
        let is_same_directory = inode.is_some() && inode == self.disk.get(top).map(|thing| thing.inode);
        let is_newer = |path: &Path| {
            let is_known = path == top && is_same_directory;
            let is_later = changed(&self.root.join(std::ffi::OsStr::from_bytes(path))) > ended;
            !is_known && is_later && self.brought_back(path).is_none()
        };
        let newer: Vec<&Path> = all.iter().filter(|path| is_newer(path)).copied().collect();
        let stays = |path: &Path| newer.iter().any(|newer| path == *newer || is_in(path, newer));
        // A directory goes with all that is in it, or not at all.
        let goes = |path: &Path| !stays(path) && !newer.iter().any(|newer| is_in(newer, path));
        let topmost = |holds: &dyn Fn(&Path) -> bool| -> BTreeSet<Path> {
            let is_first = |path: &&&Path| parent(path).is_none_or(|above| **path == top || !holds(&above.to_vec()));
            all.iter().filter(|path| holds(path)).filter(is_first).map(|path| (*path).clone()).collect()
        };
        (topmost(&goes), topmost(&stays))
    }

    fn draft_selective(&self, who: Who, target: usize, expected: &mut Expected) {
        let model = self.model;
        // Retake's writes for nobody in particular were the user's decision, and count as the session's.
        let is_ours = |row: &Row| match row.by {
            By::Retake(operation) => model.operations[operation].session.is_none_or(|other| other == who),
            by => model.session_of(by) == Some(who),
        };
        let steps = || model.rows.iter().filter(|row| row.happening != Happening::Hidden);
        // What it contests with others is its affair too.
        let is_contender = |row: &Row| row.by == By::Contested && row.open.iter().any(|n| model.windows[*n].who == who);
        let is_of_session = |row: &&Row| model.session_of(row.by) == Some(who) || is_contender(row);
        let since = steps().filter(|row| row.point > target);
        let paths: BTreeSet<&Path> = since.filter(is_of_session).map(|row| &row.path).collect();
        for path in paths.into_iter().filter(|path| self.is_covered(path)) {
            let mut state = model.points[target].tree.known(path);
            let mut from = target;
            if state == Known::Unknown {
                let declares =
                    model.windows.iter().filter(|window| window.who == who && window.declared.contains(path));
                if let Some(opened) = declares.map(|window| window.opened).filter(|opened| *opened >= target).min() {
                    state = model.points[opened].tree.known(path);
                    from = opened;
                }
            }
            let mut past: Vec<&Row> = steps().filter(|row| row.path == *path).collect();
            let seen = past.iter().filter(|row| row.point <= from).count();
            let chain = in_force(self.model, &past, seen);
            let unseen = match (state.state(), self.now.known(path).state()) {
                (Some(then), Some(now)) => self.unseen(path, &past, then, now),
                _ => None,
            };
            past.extend(&unseen);
            let made_now = in_force(self.model, &past, seen);
            let is_affair = |row: &&Row| is_ours(row) || row.by == By::Contested;
            if made_now.is_empty() || made_now.iter().flat_map(|step| &step.makers).any(is_affair) {
                self.draft_path(path, &chain, &is_ours, Some(who), state, expected);
            }
        }
    }

    fn draft_reverse(&self, operation: usize, expected: &mut Expected) {
        let model = self.model;
        let root = model.root_of(operation);
        let is_ours = |row: &Row| model.operation_of(row.by).is_some_and(|number| model.root_of(number) == root);
        let is_its = |row: &Row| model.operation_of(row.by) == Some(operation);
        let is_at_work = |number: &usize| model.windows[*number].operation == Some(operation);
        let is_contender = |row: &Row| row.by == By::Contested && row.open.iter().any(is_at_work);
        let steps = || model.rows.iter().filter(|row| row.happening != Happening::Hidden);
        let its = steps().filter(|row| is_its(row) || is_contender(row));
        let paths: BTreeSet<&Path> = its.map(|row| &row.path).collect();
        for path in paths.into_iter().filter(|path| self.is_covered(path)) {
            let since = model.operations[operation].before;
            let rows: Vec<&Row> = steps().filter(|row| row.path == *path && row.point > since).collect();
            let chain = &rows[rows.iter().position(|row| is_its(row)).unwrap_or(0)..];
            let target = match (chain[0].happening, &chain[0].before) {
                (Happening::Captured, _) => Known::Unknown,
                (_, Some(node)) => Known::There(node),
                (_, None) => Known::Absent,
            };
            let session = model.operations[operation].session;
            self.draft_path(path, &in_force(self.model, chain, 0), &is_ours, session, target, expected);
            let last = chain.iter().rfind(|row| is_ours(row)).and_then(|row| row.after.as_ref());
            let Some(planned) = expected.paths.get(path) else { continue };
            let is_there = planned.conflict.is_none() && planned.now == planned.target;
            let target = planned.target.as_ref();
            if is_there && last != target && !is_directory(last.or(target)) {
                expected.already.insert(path.clone());
            }
        }
    }

    fn draft_path(
        &self,
        path: &Path,
        chain: &[Step<'_>],
        is_ours: &dyn Fn(&Row) -> bool,
        session: Option<Who>,
        target: Known<'_>,
        expected: &mut Expected,
    ) {
        let now = self.now.known(path);
        // Rules that came and went have changed nothing; what nobody knew then cannot go back.
        let is_coverage =
            |step: &Step<'_>| matches!(step.happening, Happening::Captured | Happening::Uncovered | Happening::LeftOut);
        let was_left_out = target == Known::Unknown && self.then().is_left_out(path);
        if was_left_out && !chain.is_empty() && chain.iter().all(is_coverage) {
            if now != Known::Unknown {
                expected.kept.insert((path.clone(), name(KeptBecause::NotProven)));
            }
            return;
        }
        let session_of = |row: &Row| self.model.session_of(row.by);
        let conflict = judge(chain, is_ours, &session_of, session, target, now);
        let mut planned = self.planned(path, conflict, now.state().flatten(), target.state().flatten());
        let is_presumed = |row: &&Row| is_ours(row) && matches!(row.by, By::Window { certain: false, .. });
        let presumed = chain.iter().flat_map(|step| &step.makers).any(is_presumed);
        planned.certainty = Some(if presumed { Certainty::Presumed } else { Certainty::Certain });
        if conflict.is_some_and(is_overwritable) {
            let is_all_ours = |step: &Step<'_>| step.makers.iter().all(|row| is_ours(row));
            planned.merged = merge(chain, &is_all_ours, planned.now.as_ref());
        }
        expected.paths.insert(path.clone(), planned);
    }
}

/// A step with only those makers of which it is known that they changed the path: while it was not captured, anybody may have.
fn known_authors<'r>(step: &Step<'r>) -> Step<'r> {
    let is_known = |row: &&&Row| matches!(row.happening, Happening::Changed | Happening::Uncaptured);
    Step { makers: step.makers.iter().filter(is_known).copied().collect(), ..step.clone() }
}

/// Whether `path` is below the directory `above`.
fn is_in(path: &[u8], above: &[u8]) -> bool {
    path.starts_with(&[above, b"/"].concat())
}

/// When something at `path` last changed, by the clock of files.
fn changed(path: &std::path::Path) -> i128 {
    let meta = path.symlink_metadata().expect("it is there");
    i128::from(meta.ctime()) * 1_000_000_000 + i128::from(meta.ctime_nsec())
}

/// The reason as a word, because it has no order.
pub(super) fn name(why: KeptBecause) -> &'static str {
    match why {
        KeptBecause::NotProven => "kept: not proven",
        KeptBecause::HoldsOthers => "kept: holds others",
        KeptBecause::IgnoredThen => "kept: ignored then",
        KeptBecause::NotCaptured => "kept: not captured",
        KeptBecause::Hidden => "kept: hidden",
        KeptBecause::SaveLimit => "kept: over the limit",
    }
}
