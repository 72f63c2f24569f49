//! Measures what a turn costs a long-lived process: `turns DIR STORE [ROUNDS]`.
//!
//! Prints one line of JSON with milliseconds (best of the rounds): checkpoints found by scanning and by the watch, with
//! nothing and with one file changed, synced and not, beside a bare `lstat` of the same paths on two threads.

use std::path::{Path, PathBuf};
use std::time::Instant;

use retake_engine::checkpoint::NewCheckpoint;
use retake_engine::id::{CheckpointId, OperationId};
use retake_engine::progress::NoProgress;
use retake_engine::rewind::{Goal, NewRewind, OnConflict, RewindRequest};
use retake_engine::{Breadth, Durability, Environment, OpenError, Settings, Timestamp, Workspace};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args_os().skip(1);
    let root = PathBuf::from(args.next().ok_or("usage: turns DIR STORE [ROUNDS]")?).canonicalize()?;
    let data_dir = PathBuf::from(args.next().ok_or("usage: turns DIR STORE [ROUNDS]")?);
    let rounds: usize = args.next().map_or(Ok(7), |text| text.to_string_lossy().parse())?;
    let mut bench = Bench { workspace: open(&root, &data_dir)?, root, rounds, turn: 0 };
    let first = bench.timed(Durability::Synced)?;
    let mut figures = vec![("first", first)];
    figures.push(("scan_nothing", bench.best(Durability::Synced, false)?));
    figures.push(("scan_one", bench.best(Durability::Synced, true)?));
    figures.push(("scan_restore", bench.best_restore()?));
    let started = Instant::now();
    let state = bench.workspace.watch();
    figures.push(("watch_start", millis(started)));
    bench.timed(Durability::Soon)?;
    figures.push(("watch_nothing_synced", bench.best(Durability::Synced, false)?));
    figures.push(("watch_one_synced", bench.best(Durability::Synced, true)?));
    figures.push(("watch_nothing", bench.best(Durability::Soon, false)?));
    figures.push(("watch_one", bench.best(Durability::Soon, true)?));
    figures.push(("watch_restore", bench.best_restore()?));
    figures.push(("bare_lstat", bare_lstat(&bench.root, rounds)?));
    let fields: Vec<String> = figures.iter().map(|(name, ms)| format!("\"{name}\":{ms:.3}")).collect();
    let line = format!("{{{},\"watch\":\"{state:?}\"}}\n", fields.join(","));
    std::io::Write::write_all(&mut std::io::stdout(), line.as_bytes())?;
    Ok(())
}

struct Bench {
    workspace: Workspace,
    root: PathBuf,
    rounds: usize,
    turn: u64,
}

impl Bench {
    fn best(&mut self, durability: Durability, edit: bool) -> Result<f64, Box<dyn std::error::Error>> {
        let mut best = f64::MAX;
        for _ in 0..self.rounds {
            if edit {
                std::fs::write(self.root.join("bench_turn.txt"), format!("turn {}\n", self.turn))?;
            }
            best = best.min(self.timed(durability)?);
        }
        Ok(best)
    }

    /// Takes back a turn of fifteen paths: ten edits, three new files, two deletions. Durable, with its safety snapshot.
    fn best_restore(&mut self) -> Result<f64, Box<dyn std::error::Error>> {
        let dir = self.root.join("bench_restore");
        std::fs::create_dir_all(&dir)?;
        let write = |name: String, text: &str| std::fs::write(dir.join(name), text.repeat(200));
        let mut best = f64::MAX;
        for round in 0..self.rounds {
            (0..12).try_for_each(|n| write(format!("file{n}"), "as it was\n"))?;
            self.timed(Durability::Synced)?;
            let before = self.workspace.checkpoints().all()?.remove(0);
            (0..10).try_for_each(|n| write(format!("file{n}"), &format!("edit {round} {n}\n")))?;
            (10..12).try_for_each(|n| std::fs::remove_file(dir.join(format!("file{n}"))))?;
            (12..15).try_for_each(|n| write(format!("file{n}"), "new\n"))?;
            let mut request = RewindRequest::new(Goal::Exact { checkpoint: before.id, session: None });
            request.on_yours = OnConflict::Overwrite;
            let new = self.identities()?;
            let started = Instant::now();
            let applied = self.workspace.rewinds_mut().apply(&request, None, &new, &NoProgress)?;
            best = best.min(millis(started));
            assert_eq!(applied.plan.paths.len(), 15, "everything changed goes back");
        }
        Ok(best)
    }

    fn identities(&mut self) -> Result<NewRewind, Box<dyn std::error::Error>> {
        self.turn += 1;
        let at = Timestamp(i64::try_from(self.turn)?);
        let random = |kind: u8| {
            let mut random = [kind; 10];
            random[..8].copy_from_slice(&self.turn.to_le_bytes());
            random
        };
        Ok(NewRewind {
            note: retake_engine::id::EntryId::new([0; 10]),
            operation: OperationId::new(at, random(1)),
            safety: CheckpointId::new(at, random(2)),
            after: CheckpointId::new(at, random(3)),
            at,
        })
    }

    fn timed(&mut self, durability: Durability) -> Result<f64, Box<dyn std::error::Error>> {
        self.turn += 1;
        let mut random = [0; 10];
        random[..8].copy_from_slice(&self.turn.to_le_bytes());
        let at = Timestamp(i64::try_from(self.turn)?);
        let new = NewCheckpoint { id: CheckpointId::new(at, random), at, label: None };
        let started = Instant::now();
        self.workspace.checkpoints_mut().take(new, durability, &NoProgress)?;
        Ok(millis(started))
    }
}

fn open(root: &Path, data_dir: &Path) -> Result<Workspace, OpenError> {
    Workspace::open_or_create(Environment {
        root: root.to_owned(),
        data_dir: data_dir.to_owned(),
        global_excludes: None,
        homes: Vec::new(),
        breadth: Breadth::Guarded,
        settings: Settings::default(),
        threads: 2,
    })
}

/// The floor: nothing but `lstat`, with the paths at hand.
fn bare_lstat(root: &Path, rounds: usize) -> std::io::Result<f64> {
    let mut paths = Vec::new();
    let mut queue = vec![root.to_owned()];
    while let Some(dir) = queue.pop() {
        for entry in std::fs::read_dir(&dir)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() && entry.file_name() != ".git" {
                queue.push(entry.path());
            }
            paths.push(entry.path());
        }
    }
    let halves = paths.split_at(paths.len() / 2);
    let stat = |paths: &[PathBuf]| paths.iter().filter(|path| path.symlink_metadata().is_ok()).count();
    let mut best = f64::MAX;
    for _ in 0..rounds {
        let started = Instant::now();
        let seen = std::thread::scope(|scope| {
            let other = scope.spawn(|| stat(halves.1));
            stat(halves.0) + other.join().unwrap_or(0)
        });
        assert_eq!(seen, paths.len(), "the tree must not change meanwhile");
        best = best.min(millis(started));
    }
    Ok(best)
}

fn millis(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}
