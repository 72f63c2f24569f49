//! The floor under every scanner: `lstat` of paths that are already known, on two threads, and nothing else.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// How often the paths are gone through; the best time counts.
pub(super) const ROUNDS: usize = 5;
const VERSION_CONTROL: [&str; 5] = [".git", ".hg", ".svn", ".jj", ".sl"];

/// Result of [`measure`].
#[derive(Debug)]
pub(super) struct Measured {
    /// Number of paths, directories included.
    pub(super) paths: usize,
    /// The fastest round.
    pub(super) best: Duration,
}

/// Times an `lstat` of every path below `dir` but version-control directories; listing them is not timed.
pub(super) fn measure(dir: &Path) -> Result<Measured> {
    let paths = gather(dir)?;
    if paths.is_empty() {
        bail!("{} is empty", dir.display());
    }
    let (front, back) = paths.split_at(paths.len() / 2);
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let seen = thread::scope(|scope| {
            let other = scope.spawn(|| lstat_all(front));
            lstat_all(back) + other.join().expect("lstat_all does not panic")
        });
        best = best.min(start.elapsed());
        if seen != paths.len() {
            bail!("{} changed while it was measured", dir.display());
        }
    }
    Ok(Measured { paths: paths.len(), best })
}

fn gather(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    let mut folders = vec![dir.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))? {
            let entry = entry?;
            if VERSION_CONTROL.iter().any(|name| entry.file_name() == *name) {
                continue;
            }
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            }
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}

fn lstat_all(paths: &[PathBuf]) -> usize {
    paths.iter().filter(|path| fs::symlink_metadata(path).is_ok()).count()
}
