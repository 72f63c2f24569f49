//! What going back costs: a turn of fifteen paths beside the quickest peers, the whole tree beside `git reset --hard`, and
//! both directions after a long history.
//!
//! Ours syncs what it writes and saves what it replaces; no peer does either.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::engine::{ROUNDS, example, figure, git, retake};
use super::peers::{OURS, run_peer};
use super::table::Row;
use super::{millis, tree};
use crate::shell::{read, root, run};

const SIZES: [usize; 3] = [3_000, 20_000, 75_000];
const WHOLE_TREE: usize = 20_000;
/// Those that restore quickest in the table of all peers; shadow repositories come near at 3,000 files only.
const QUICK_PEERS: [&str; 2] = ["zed", "commit"];
const PEER_CAP: Duration = Duration::from_secs(120);

/// A turn is taken back: in a fresh process, and in process by scan and by watch.
pub(super) fn turns(scratch: &Path) -> Result<String> {
    let mut text = String::from(
        "\n### Taking back a turn\n\n| files | quickest peer | `retake rewind` | in process, scan | in process, watch | \
         peer / `retake rewind` | peer / watch |\n|---|--:|--:|--:|--:|--:|--:|\n",
    );
    for files in SIZES {
        let base = scratch.join(format!("restore.{files}"));
        tree::make(&base, files, 1)?;
        let timed = |id: &str| -> Result<f64> {
            let out = scratch.join(format!("restore.{files}.{id}"));
            let printed = run_peer(id, &base, &out, Some(&root().join("target/release/retake")), PEER_CAP)?;
            Row::parse(id, "", &printed).restore().with_context(|| format!("no restore in `{printed}`"))
        };
        let ours = timed(OURS)?;
        let peers = QUICK_PEERS.map(timed).into_iter().collect::<Result<Vec<_>>>()?;
        let peer = peers.into_iter().fold(f64::INFINITY, f64::min);
        let printed =
            read(Command::new(example("turns")).arg(&base).arg(scratch.join(format!("restore.{files}.store"))))?;
        let (scan, watch) = (figure(&printed, "scan_restore")?, figure(&printed, "watch_restore")?);
        text += &format!(
            "| {files} | {peer:.1} | {ours:.1} | {scan:.1} | {watch:.1} | {:.1}× | {:.1}× |\n",
            peer / ours,
            peer / watch
        );
    }
    Ok(text)
}

/// Every tracked file was changed and goes back.
pub(super) fn whole_tree(scratch: &Path) -> Result<String> {
    let (base, store) = (scratch.join("whole"), scratch.join("store.whole"));
    tree::make(&base, WHOLE_TREE, 1)?;
    run(git(&base).args(["add", "-A"]))?;
    run(git(&base).args(["commit", "-q", "--no-verify", "-m", "start"]))?;
    run(retake(&base, &store).args(["checkpoint", "-m", "start"]))?;
    let files = read(git(&base).args(["ls-files", "-z"]).stdout(Stdio::piped()))?;
    let files: Vec<_> = files.split('\0').filter(|name| !name.is_empty()).map(|name| base.join(name)).collect();
    let (mut theirs, mut ours) = (f64::MAX, f64::MAX);
    for round in 0..3 {
        change_all(&files, round)?;
        theirs = theirs.min(timed(git(&base).args(["reset", "-q", "--hard"]))?);
        change_all(&files, round)?;
        ours = ours.min(timed(retake(&base, &store).args(["rewind", "start", "--yes"]))?);
    }
    Ok(format!(
        "\n### Taking back the whole tree: {} changed files of {WHOLE_TREE}\n\n| `git reset --hard` | `retake rewind` | git / `retake rewind` |\n\
         |--:|--:|--:|\n| {theirs:.0} | {ours:.0} | {:.1}× |\n",
        files.len(),
        theirs / ours
    ))
}

fn change_all(files: &[PathBuf], round: usize) -> Result<()> {
    for file in files.iter().filter(|file| file.symlink_metadata().is_ok_and(|meta| meta.is_file())) {
        let mut content = fs::read(file)?;
        content.extend_from_slice(format!("\n// round {round}\n").as_bytes());
        fs::write(file, content)?;
    }
    Ok(())
}

/// Plans, rewinds, undos and redos in a workspace with a long history, of one checkpoint and of half the history.
pub(super) fn after_history(base: &Path, store: &Path, checkpoints: usize) -> Result<String> {
    let log = read(retake(base, store).arg("log").stdout(Stdio::piped()))?;
    let points: Vec<&str> = log.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let mut rows = String::new();
    for (name, point) in [("the last but one", points[1]), ("half way back", points[checkpoints / 2])] {
        let best = |args: &[&str]| -> Result<f64> {
            (0..ROUNDS).try_fold(f64::MAX, |best, _| Ok(best.min(timed(retake(base, store).args(args))?)))
        };
        let plan = best(&["rewind", point, "--dry-run"])?;
        let rewind = timed(retake(base, store).args(["rewind", point, "--yes"]))?;
        let (mut undo, mut redo) = (f64::MAX, f64::MAX);
        for _ in 0..ROUNDS {
            undo = undo.min(timed(retake(base, store).args(["undo", "--yes"]))?);
            redo = redo.min(timed(retake(base, store).args(["redo", "--yes"]))?);
        }
        timed(retake(base, store).args(["undo", "--yes"]))?;
        rows += &format!("| {name} | {plan:.1} | {rewind:.1} | {undo:.1} | {redo:.1} |\n");
    }
    Ok(format!(
        "\n| to the checkpoint | `retake rewind --dry-run` | `retake rewind` | `retake undo` | `retake redo` |\n\
         |---|--:|--:|--:|--:|\n{rows}"
    ))
}

fn timed(command: &mut Command) -> Result<f64> {
    let started = Instant::now();
    run(command)?;
    Ok(millis(started.elapsed()))
}
