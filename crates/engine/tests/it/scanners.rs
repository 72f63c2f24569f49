//! The ways to scan one directory, side by side, each with a store of its own: all of them have to agree with the naive read.

use std::path::{Path, PathBuf};

use retake_engine::checkpoint::{Checkpoint, NewCheckpoint};
use retake_engine::id::CheckpointId;
use retake_engine::progress::NoProgress;
use retake_engine::view::Side;
use retake_engine::{Breadth, Durability, Environment, GlobalExcludes, Settings, Timestamp, WatchState, Workspace};
use retake_testkit::naive::NaiveTree;
use retake_testkit::tree::MAX_FILE;

use crate::compare::{self, MISMATCH, Read, Verdict, no_error};

/// Every way to scan, on one directory.
pub(crate) struct Scanners {
    /// Driven by the index in memory and on disk.
    kept: Workspace,
    /// Told by the operating system what changed.
    watched: Workspace,
    /// Opened for each checkpoint, as each run of the command line does.
    fresh: Environment,
    clock: i64,
    points: Vec<Point>,
    /// What was read of the kept scanner's store.
    read: Read,
}

/// A checkpoint of the kept scanner's and what was there when it was taken.
struct Point {
    checkpoint: Checkpoint,
    tree: NaiveTree,
}

/// An environment for tests: nothing guarded, nothing looked up.
pub(crate) fn environment(root: &Path, data_dir: PathBuf) -> Environment {
    Environment {
        root: root.to_owned(),
        data_dir,
        global_excludes: None,
        homes: Vec::new(),
        breadth: Breadth::Guarded,
        settings: Settings::default(),
        threads: 2,
    }
}

/// A checkpoint's identity out of a number.
pub(crate) fn numbered(number: i64) -> NewCheckpoint {
    let at = Timestamp(1_700_000_000_000 + number);
    let mut random = [0; 10];
    random[..8].copy_from_slice(&number.to_be_bytes());
    NewCheckpoint { id: CheckpointId::new(at, random), at, label: None }
}

impl Scanners {
    /// Opens all of them on `root`, with their stores below `stores`.
    pub(crate) fn open(root: &Path, stores: &Path, global_excludes: &Path, threads: usize) -> Result<Self, String> {
        let environment = |name: &str| {
            let plain = environment(root, stores.join(name));
            let settings = Settings { max_file: MAX_FILE, ..plain.settings };
            Environment { global_excludes: Some(GlobalExcludes::at(global_excludes)), threads, settings, ..plain }
        };
        let open = |name| no_error("open", Workspace::open_or_create(environment(name)));
        let watched = watch(environment("watched"))?;
        Ok(Self {
            kept: open("kept")?,
            watched,
            fresh: environment("fresh"),
            clock: 0,
            points: Vec::new(),
            read: Read::default(),
        })
    }

    /// Starts the watch again: the next checkpoint looks at everything, those after it at what is reported.
    pub(crate) fn watch_anew(&mut self) -> Verdict {
        let environment = Environment { data_dir: self.fresh.data_dir.with_file_name("watched"), ..self.fresh.clone() };
        self.watched = watch(environment)?;
        Ok(())
    }

    /// Takes a checkpoint with each and compares them with what is there.
    pub(crate) fn check(&mut self, truth: &NaiveTree) -> Verdict {
        self.clock += 1;
        let kept = take(&mut self.kept, self.clock)?;
        let side = Side::Stored(kept.snapshot);
        compare::tree_but("the kept scanner's snapshot", &self.kept, &side, &truth.nodes, &mut self.read)?;
        compare::gaps("the kept scanner's", &self.kept, &kept, truth)?;
        let none = NaiveTree::default();
        let before = self.points.last().map_or(&none, |point| &point.tree);
        compare::counted("the kept scanner's checkpoint", kept.changed, before, truth)?;

        let watched = take(&mut self.watched, self.clock)?;
        same("the watched scanner's", &self.watched, &watched, &kept, truth)?;
        let mut fresh = no_error("open again", Workspace::open_or_create(self.fresh.clone()))?;
        let checkpoint = take(&mut fresh, self.clock)?;
        same("the fresh scanner's", &fresh, &checkpoint, &kept, truth)?;

        let mut tree = truth.clone();
        tree.absent = truth.gone_since(before);
        let point = Point { checkpoint: kept, tree };
        for earlier in &self.points {
            let is_equal = earlier.tree.nodes == point.tree.nodes;
            if is_equal != (earlier.checkpoint.snapshot == point.checkpoint.snapshot) {
                return Err(format!("{MISMATCH}: trees are equal: {is_equal}, snapshot ids say otherwise"));
            }
        }
        self.points.push(point);
        Ok(())
    }

    /// Compares, now that there are several points, what is there now and the differences between any two of them.
    pub(crate) fn check_history(&mut self, truth: &NaiveTree) -> Verdict {
        let now = no_error("current", self.kept.current(&NoProgress))?;
        compare::tree("what the kept scanner sees now", &self.kept, &Side::Now(&now), &truth.nodes)?;
        let watched = no_error("current", self.watched.current(&NoProgress))?;
        compare::tree("what the watched scanner sees now", &self.watched, &Side::Now(&watched), &truth.nodes)?;
        for (at, from) in self.points.iter().enumerate() {
            let stored = Side::Stored(from.checkpoint.snapshot);
            let found = no_error("diff", self.kept.diff(&stored, &Side::Now(&now)))?;
            compare::changes(&format!("point {at} and now"), &found, &from.tree.nodes, &truth.nodes)?;
            // Forward, and backward from each to the first.
            for (other, to) in self.points.iter().enumerate().filter(|(other, _)| *other > at || *other == 0) {
                let found = no_error("diff", self.kept.diff(&stored, &Side::Stored(to.checkpoint.snapshot)))?;
                compare::changes(&format!("points {at} and {other}"), &found, &from.tree.nodes, &to.tree.nodes)?;
            }
        }
        self.check_stores()
    }

    /// Reads a point back from each of the other scanners' stores: their ids were compared, their packs were not.
    fn check_stores(&self) -> Verdict {
        let (Some(first), Some(last)) = (self.points.first(), self.points.last()) else { return Ok(()) };
        let fresh = no_error("open at the end", Workspace::open(self.fresh.clone()))?;
        let side = |point: &Point| Side::Stored(point.checkpoint.snapshot);
        let read = &mut Read::default();
        compare::tree_but(
            "the watched scanner's first snapshot",
            &self.watched,
            &side(first),
            &first.tree.nodes,
            read,
        )?;
        compare::tree_but("the watched scanner's last snapshot", &self.watched, &side(last), &last.tree.nodes, read)?;
        compare::tree("the fresh scanner's last snapshot", &fresh, &side(last), &last.tree.nodes)
    }
}

fn take(workspace: &mut Workspace, number: i64) -> Result<Checkpoint, String> {
    no_error("checkpoint", workspace.checkpoints_mut().take(numbered(number), Durability::Soon, &NoProgress))
}

/// An equal id means an equal tree, so the whole is read back only to say what is wrong.
fn same(what: &str, workspace: &Workspace, found: &Checkpoint, kept: &Checkpoint, truth: &NaiveTree) -> Verdict {
    compare::gaps(what, workspace, found, truth)?;
    if found.snapshot == kept.snapshot && found.changed == kept.changed {
        return Ok(());
    }
    compare::tree(&format!("{what} snapshot"), workspace, &Side::Stored(found.snapshot), &truth.nodes)?;
    Err(format!(
        "{MISMATCH}: {what} checkpoint is {found:?}, the kept scanner's {kept:?}, and yet they read back equal"
    ))
}

fn watch(environment: Environment) -> Result<Workspace, String> {
    let mut workspace = no_error("open", Workspace::open_or_create(environment))?;
    match workspace.watch() {
        WatchState::Watching { .. } => Ok(workspace),
        state @ WatchState::Unavailable { .. } if cfg!(target_os = "linux") => Err(format!("ERROR: {state:?}")),
        WatchState::Unavailable { .. } => Ok(workspace),
    }
}
