//! The naive model of a workspace's past: what every checkpoint found by a full read, and who was at work in between.
//!
//! It keeps whole trees and compares them path by path; nothing in it comes from the engine but the words for ids.

use std::collections::{BTreeMap, BTreeSet};

use retake_engine::id::{CheckpointId, OperationId};
use retake_engine::window::FileTime;
use retake_testkit::naive::{self, Everything, Known, NaiveKind, NaiveNode, NaiveTree, Shape};
use retake_testkit::tree::Who;

/// A path relative to the root.
pub(super) type Path = Vec<u8>;

/// A checkpoint and what was there.
#[derive(Debug)]
pub(super) struct Point {
    pub(super) id: CheckpointId,
    pub(super) session: Option<Who>,
    pub(super) tree: NaiveTree,
    /// Paths that the rules left out and that only this point captured, because a rewind touched them.
    pub(super) wanted: BTreeSet<Path>,
}

/// Whether a difference between two checkpoints is a change at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Happening {
    Changed,
    /// Nobody knows what was there before.
    Captured,
    /// Nobody knows what is there after.
    Uncaptured,
    /// A tool created it where a rule hides it that is newer than the session.
    Hidden,
    /// A rewind took away the rule that hid it.
    Uncovered,
    /// It is there, and a rule leaves it out.
    LeftOut,
}

/// Who did it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Outside,
    Contested,
    /// The window, by number, and whether it had declared the path.
    Window {
        number: usize,
        certain: bool,
    },
    /// The operation, by number.
    Retake(usize),
}

/// One path that differs between a checkpoint and the one before it.
#[derive(Debug, Clone)]
pub(super) struct Row {
    /// The later one of the two points.
    pub(super) point: usize,
    pub(super) path: Path,
    pub(super) happening: Happening,
    pub(super) before: Option<NaiveNode>,
    pub(super) after: Option<NaiveNode>,
    pub(super) by: By,
    /// The windows that were open.
    pub(super) open: Vec<usize>,
    /// The inode of a directory that was created hidden.
    pub(super) inode: Option<u64>,
}

/// A tool call.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) who: Who,
    pub(super) everything: bool,
    pub(super) declared: BTreeSet<Path>,
    pub(super) operation: Option<usize>,
    /// The point that was taken before it.
    pub(super) opened: usize,
    pub(super) state: WindowState,
    /// The point that closed it, and when that was, by the clock of files.
    pub(super) closed: Option<(usize, FileTime)>,
}

/// How far a tool call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WindowState {
    Open,
    /// Its process is gone: the next checkpoint closes it.
    Lost,
    Closed,
}

/// What an operation was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OperationIs {
    Exec,
    Rewind,
    Undo,
    Redo,
}

/// An operation.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) id: OperationId,
    pub(super) session: Option<Who>,
    pub(super) is: OperationIs,
    /// The point before it.
    pub(super) before: usize,
    /// The point after it.
    pub(super) after: Option<usize>,
    pub(super) reverses: Option<usize>,
    pub(super) is_done: bool,
    pub(super) is_undone: bool,
}

/// All that is known of the past.
#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) points: Vec<Point>,
    pub(super) rows: Vec<Row>,
    pub(super) windows: Vec<Window>,
    pub(super) operations: Vec<Operation>,
    /// Paths that are captured whatever the rules say.
    pub(super) declared: BTreeSet<Path>,
    /// Paths that a tool's rule leaves out and that are captured all the same.
    pub(super) held: BTreeSet<Path>,
}

impl Model {
    /// Adds a point. `own` are paths that an operation has just written, `created` hidden paths that are captured for the first time.
    pub(super) fn record(
        &mut self,
        id: CheckpointId,
        session: Option<Who>,
        mut tree: NaiveTree,
        own: Option<(&BTreeSet<Path>, usize)>,
        created: &BTreeMap<Path, By>,
        wanted: BTreeSet<Path>,
    ) -> usize {
        let point = self.points.len();
        if let Some(last) = self.points.last() {
            // Whatever rule has come, what is not there any more was deleted.
            tree.absent = tree.gone_since(&last.tree);
            let mut rows = self.hidden(point, &last.tree, &tree);
            for (path, (before, after)) in naive::diff(&last.tree.nodes, &tree.nodes) {
                // A directory is entered only for what is saved in it.
                let is_entered = created.keys().any(|saved| saved.starts_with(&[path, b"/"].concat()));
                let is_left = is_entered || own.is_some_and(|(paths, _)| !paths.contains(path));
                let is_uncovered = is_left && last.tree.is_left_out(path);
                let happening = if before.is_none() && last.tree.known(path) == Known::Unknown {
                    if is_uncovered { Happening::Uncovered } else { Happening::Captured }
                } else if after.is_none() && tree.known(path) == Known::Unknown {
                    if tree.is_left_out(path) { Happening::LeftOut } else { Happening::Uncaptured }
                } else {
                    Happening::Changed
                };
                let is_in = |above: &Path| path == above || path.starts_with(&[above.as_slice(), b"/"].concat());
                let creator = created.iter().find(|(above, _)| is_in(above)).filter(|_| before.is_none());
                let happening = if creator.is_some() { Happening::Changed } else { happening };
                let by = match own {
                    _ if creator.is_some() => creator.map_or(By::Outside, |(_, by)| *by),
                    Some((paths, operation)) if paths.contains(path) => By::Retake(operation),
                    _ => self.attribute(path),
                };
                let (before, after) = (before.cloned(), after.cloned());
                let open = self.open().map(|(number, _)| number).collect();
                rows.push(Row { point, path: path.to_vec(), happening, before, after, by, open, inode: None });
            }
            self.rows.extend(rows);
            let lost = |window: &Window| window.state == WindowState::Lost;
            for number in (0..self.windows.len()).filter(|number| lost(&self.windows[*number])).collect::<Vec<_>>() {
                self.close(number, point);
            }
        }
        let is_gap = |path: &Path| tree.gaps.iter().any(|(gap, _)| gap == path);
        let is_released = |path: &Path| (tree.nodes.contains_key(path) || is_gap(path)) && !tree.helped.contains(path);
        let released: Vec<Path> = self.held.iter().filter(|path| is_released(path)).cloned().collect();
        self.points.push(Point { id, session, tree, wanted });
        // Nobody knows any more which points looked for it.
        for path in released {
            self.held.remove(&path);
            if !self.declared.contains(&path) {
                for point in self.points.iter_mut().filter(|point| !point.wanted.contains(&path)) {
                    point.tree.sought.remove(&path);
                }
            }
        }
        point
    }

    /// What came where a rule hides it that no tool at work began with.
    fn hidden(&self, point: usize, last: &NaiveTree, tree: &NaiveTree) -> Vec<Row> {
        let first = |who: Who| self.windows.iter().filter(|window| window.who == who).map(|window| window.opened).min();
        let Some(start) = self.open().filter_map(|(_, window)| first(window.who)).min() else { return Vec::new() };
        let before: BTreeSet<&Path> = last.names_left_out().collect();
        let open: Vec<usize> = self.open().map(|(number, _)| number).collect();
        let is_new = |path: &&Path| {
            !before.contains(path) && last.known(path) == Known::Absent && !tree.version_control.contains(*path)
        };
        let is_directory = |path: &Path| {
            let is_hidden = || tree.hidden.get(path).copied().unwrap_or_default();
            tree.partly.contains(path) || tree.directories_left_out.contains(path) || is_hidden()
        };
        // In a directory that was captured before, what is new is hidden too.
        let is_below_known = |path: &&Path| {
            let above = path.iter().rposition(|byte| *byte == b'/').map(|at| &path[..at]);
            let node = above.and_then(|above| last.nodes.get(above));
            node.is_some_and(|node| node.kind == NaiveKind::Directory)
        };
        let is_free = |path: &&Path| !self.points[start].tree.would_leave_out(path, is_directory(path), tree);
        let row = |path: &Path| {
            let by = self.attribute(path);
            let happening = Happening::Hidden;
            let inode = tree.inodes.get(path).copied();
            Row { point, path: path.clone(), happening, before: None, after: None, by, open: open.clone(), inode }
        };
        let names = tree.names_left_out().chain(tree.hidden.keys().filter(is_below_known));
        names.filter(is_new).filter(is_free).map(row).filter(|row| row.by != By::Outside).collect()
    }

    /// Paths that were captured, are there, and would not be captured any more: a tool is at work, or an operation that went to the point
    /// `target` has brought the rule back.
    pub(super) fn to_hold(&self, tree: &NaiveTree, target: Option<usize>, disk: &Everything) -> BTreeSet<Path> {
        let Some(last) = self.points.last() else { return BTreeSet::new() };
        let is_at_work = self.open().next().is_some();
        let is_wanted = |path: &Path| {
            let is_captured = |point: &Point| point.tree.known(path) != Known::Unknown && !point.wanted.contains(path);
            let was_captured = target.is_some_and(|point| is_captured(&self.points[point]));
            let is_left_out = !tree.nodes.contains_key(path) && tree.known(path) == Known::Unknown;
            let is_file = disk.get(path).is_some_and(|thing| thing.shape != Shape::Directory);
            (is_at_work || was_captured)
                && is_left_out
                && tree.is_left_out(path)
                && is_file
                && !tree.sought.contains(path)
                && !last.wanted.contains(path)
        };
        let files = last.tree.nodes.iter().filter(|(_, node)| node.kind != NaiveKind::Directory);
        files.map(|(path, _)| path).filter(|path| is_wanted(path)).cloned().collect()
    }

    /// Ends a tool call at point `point`, and the operation that it is.
    pub(super) fn close(&mut self, number: usize, point: usize) {
        let ended = FileTime::now();
        // What changes from now on has a later time.
        while FileTime::floor() <= ended {
            std::thread::yield_now();
        }
        self.windows[number].state = WindowState::Closed;
        self.windows[number].closed = Some((point, ended));
        if let Some(operation) = self.windows[number].operation {
            self.operations[operation].is_done = true;
            self.operations[operation].after = Some(point);
        }
    }

    fn open(&self) -> impl Iterator<Item = (usize, &Window)> {
        self.windows.iter().enumerate().filter(|(_, window)| window.state != WindowState::Closed)
    }

    /// Whether a tool is at work that is another session's than `who`, or that began at point `target` or later.
    pub(super) fn is_in_use(&self, who: Option<Who>, target: usize) -> bool {
        let prevents = |window: &Window| Some(window.who) != who || window.opened >= target;
        self.windows.iter().any(|window| window.state == WindowState::Open && prevents(window))
    }

    /// Who changed `path` since the last point: a tool that declared it, else one that may change anything, else nobody.
    pub(super) fn attribute(&self, path: &[u8]) -> By {
        let declaring: Vec<_> = self.open().filter(|(_, window)| window.declared.contains(path)).collect();
        let reaching: Vec<_> = self.open().filter(|(_, window)| window.everything).collect();
        let certain = !declaring.is_empty();
        let suspects = if certain { declaring } else { reaching };
        let Some((number, newest)) = suspects.last() else { return By::Outside };
        match suspects.iter().all(|(_, window)| window.who == newest.who) {
            true => By::Window { number: *number, certain },
            false => By::Contested,
        }
    }

    /// The session that a change belongs to.
    pub(super) fn session_of(&self, by: By) -> Option<Who> {
        match by {
            By::Outside | By::Contested => None,
            By::Window { number, .. } => Some(self.windows[number].who),
            By::Retake(operation) => self.operations[operation].session,
        }
    }

    /// The operation that a change belongs to.
    pub(super) fn operation_of(&self, by: By) -> Option<usize> {
        match by {
            By::Outside | By::Contested => None,
            By::Window { number, .. } => self.windows[number].operation,
            By::Retake(operation) => Some(operation),
        }
    }

    /// The newest operation of `who` (of anybody, for `None`) that changed something and is not undone; else why there is
    /// none.
    pub(super) fn next_to_undo(&self, who: Option<Who>) -> Result<usize, &'static str> {
        let is_running = |number| {
            let is_its = |window: &Window| window.operation == Some(number) && window.state == WindowState::Open;
            self.windows.iter().any(is_its)
        };
        let is_next = |number: usize| {
            let operation = &self.operations[number];
            is_of(operation, who) && (is_running(number) || self.is_original(number) && !operation.is_undone)
        };
        match (0..self.operations.len()).rfind(|number| is_next(*number)) {
            Some(number) if is_running(number) => Err("none: running"),
            Some(number) => Ok(number),
            None => Err("none: nothing to undo"),
        }
    }

    /// The newest undo of `who` that is not taken back, unless something new was changed since.
    pub(super) fn next_to_redo(&self, who: Option<Who>) -> Option<usize> {
        let is_undo = |operation: &Operation| operation.is == OperationIs::Undo && !operation.is_undone;
        let undo = self.operations.iter().rposition(|operation| is_of(operation, who) && is_undo(operation))?;
        let mut newer = undo + 1..self.operations.len();
        (!newer.any(|number| is_of(&self.operations[number], who) && self.is_original(number))).then_some(undo)
    }

    /// Whether an operation that has ended is no undo or redo and changed something, or may have.
    fn is_original(&self, number: usize) -> bool {
        let at_work = |window: &usize| self.windows[*window].operation == Some(number);
        let is_its = |row: &Row| match row.by {
            By::Contested => row.open.iter().any(at_work),
            by => self.operation_of(by) == Some(number),
        };
        let operation = &self.operations[number];
        match operation.is {
            OperationIs::Exec => operation.is_done && self.rows.iter().any(is_its),
            OperationIs::Rewind => operation.is_done,
            OperationIs::Undo | OperationIs::Redo => false,
        }
    }

    /// Marks what an undo or a redo did to the operation that it is about.
    pub(super) fn mark(&mut self, is: OperationIs, reverses: Option<usize>) {
        let Some(reversed) = reverses else { return };
        self.operations[reversed].is_undone = true;
        if let (OperationIs::Redo, Some(original)) = (is, self.operations[reversed].reverses) {
            self.operations[original].is_undone = false;
        }
    }

    /// The operation that an undo or a redo is about in the end.
    pub(super) fn root_of(&self, mut number: usize) -> usize {
        while let Some(reversed) = self.operations[number].reverses {
            number = reversed;
        }
        number
    }
}

fn is_of(operation: &Operation, who: Option<Who>) -> bool {
    who.is_none() || operation.session == who
}
