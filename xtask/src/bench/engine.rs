//! What a turn costs a long-lived process, what a long history costs, how the store grows, how much memory it takes.
//!
//! The figures in process come from the engine's examples `turns` and `history`; the rest is measured around the release
//! binary. Git's figure is the yardstick: one file changed, `git add -A` and `git commit` with everything synced.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::peers::GIT_ENV;
use super::{machine, millis, report, restore, tree};
use crate::shell::{cargo, read, root, run};

const TURN_SIZES: [usize; 2] = [15_000, 75_000];
const MEMORY_SIZES: [usize; 2] = [75_000, 500_000];
const HISTORY: usize = 10_000;
const GROWTH_TURNS: usize = 50;
pub(super) const ROUNDS: usize = 5;

/// Measures everything and prints it as Markdown.
pub(super) fn run_all(write: bool) -> Result<()> {
    run(cargo().args(["build", "--release", "--package", "retake"]))?;
    run(cargo().args(["build", "--release", "--package", "retake-engine", "--examples"]))?;
    let scratch = root().join(format!("target/bench/engine.{}", std::process::id()));
    fs::create_dir_all(&scratch)?;
    tree::spread(&scratch);
    let measured = measure(&scratch);
    fs::remove_dir_all(&scratch)?;
    let text = measured?;
    println!("{text}");
    if write {
        report::write("engine", &text)?;
    }
    Ok(())
}

fn measure(scratch: &Path) -> Result<String> {
    let mut text = format!("Machine: {}. Milliseconds, best of the rounds.\n", machine(scratch)?);
    text += &turns(scratch)?;
    text += &restore::turns(scratch)?;
    text += &restore::whole_tree(scratch)?;
    text += &history(scratch)?;
    text += &growth(scratch)?;
    text += &memory(scratch)?;
    Ok(text)
}

fn turns(scratch: &Path) -> Result<String> {
    let mut text = String::from(
        "\n### A turn in a long-lived process\n\n\
         | files | first snapshot | bare `lstat` | scan, nothing changed | scan, one file | watch, nothing | watch, one file | \
         watch, one file, synced | `git add` + `commit`, one file, synced | watch / git, synced | watch / git, as the turn sees it |\n\
         |---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for files in TURN_SIZES {
        let base = scratch.join(format!("turns.{files}"));
        tree::make(&base, files, 1)?;
        let git = git_commit(&base)?;
        let printed = read(Command::new(example("turns")).arg(&base).arg(scratch.join(format!("store.{files}"))))?;
        let of = |name: &str| figure(&printed, name);
        let row = [
            of("first")?,
            of("bare_lstat")?,
            of("scan_nothing")?,
            of("scan_one")?,
            of("watch_nothing")?,
            of("watch_one")?,
            of("watch_one_synced")?,
            git,
        ];
        let cells: Vec<String> = row.iter().map(|ms| format!("{ms:.2}")).collect();
        text += &format!(
            "| {files} | {} | {:.0}× | {:.0}× |\n",
            cells.join(" | "),
            git / of("watch_one_synced")?,
            git / of("watch_one")?
        );
    }
    Ok(text)
}

/// `git add -A` and `git commit` of one changed file, everything synced; best of the rounds.
fn git_commit(base: &Path) -> Result<f64> {
    let mut best = f64::MAX;
    for round in 0..ROUNDS {
        fs::write(base.join("bench_git.txt"), format!("round {round}\n"))?;
        let started = Instant::now();
        run(git(base).args(["add", "-A"]))?;
        run(git(base).args(["commit", "-q", "--no-verify", "-m", "turn"]))?;
        best = best.min(millis(started.elapsed()));
    }
    Ok(best)
}

pub(super) fn git(base: &Path) -> Command {
    let mut git = Command::new("git");
    git.arg("-C").arg(base).args(["-c", "core.fsync=all", "-c", "gc.auto=0", "-c", "user.name=bench"]);
    git.args(["-c", "user.email=bench@example.invalid", "-c", "core.safecrlf=false"]);
    git.envs(GIT_ENV).stdout(Stdio::null()).stderr(Stdio::null());
    git
}

fn history(scratch: &Path) -> Result<String> {
    let base = scratch.join("history");
    tree::make(&base, 3_000, 1)?;
    let store = scratch.join("store.history");
    let printed = read(Command::new(example("history")).arg(&base).arg(&store).arg(HISTORY.to_string()))?;
    let of = |name: &str| figure(&printed, name);
    let timed = |args: &[&str]| -> Result<f64> {
        let mut best = f64::MAX;
        for _ in 0..ROUNDS {
            let started = Instant::now();
            run(retake(&base, &store).args(args))?;
            best = best.min(millis(started.elapsed()));
        }
        Ok(best)
    };
    Ok(format!(
        "\n### After {HISTORY} checkpoints of a workspace with 3,000 files\n\n\
         | in process: list all | find one | compare the last two | compare first and last | one more (watched) | \
         `retake log` | `retake log -n 20` | `retake diff` |\n|---|---|---|---|---|---|---|---|\n\
         | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.1} | {:.1} | {:.1} |\n",
        of("list")?,
        of("resolve")?,
        of("diff_last")?,
        of("diff_all")?,
        of("checkpoint")?,
        timed(&["log"])?,
        timed(&["log", "-n", "20"])?,
        timed(&["diff"])?,
    ) + &restore::after_history(&base, &store, HISTORY)?)
}

fn growth(scratch: &Path) -> Result<String> {
    let base = scratch.join("growth");
    tree::make(&base, 3_000, 1)?;
    let store = scratch.join("store.growth");
    let files = read(git(&base).args(["ls-files", "*.rs"]).stdout(Stdio::piped()))?;
    let files: Vec<&str> = files.lines().filter(|file| !file.contains('"')).collect();
    run(retake(&base, &store).arg("checkpoint"))?;
    run(git(&base).args(["add", "-A"]))?;
    run(git(&base).args(["commit", "-q", "-m", "start"]))?;
    let (ours, theirs) = (size(&store)?, size(&base.join(".git/objects"))?);
    for turn in 0..GROWTH_TURNS {
        for edit in 0..3 {
            let file = base.join(files[(turn * 31 + edit * 17) % files.len()]);
            let mut content = fs::read(&file)?;
            content.extend_from_slice(format!("// turn {turn} edit {edit}\n").as_bytes());
            fs::write(&file, content)?;
        }
        run(retake(&base, &store).arg("checkpoint"))?;
        run(git(&base).args(["add", "-A"]))?;
        run(git(&base).args(["commit", "-q", "-m", "turn"]))?;
    }
    let (ours_after, theirs_after) = (size(&store)?, size(&base.join(".git/objects"))?);
    run(retake(&base, &store).arg("gc"))?;
    run(git(&base).args(["gc", "-q", "--prune=now"]))?;
    let (ours_kept, theirs_kept) = (size(&store)?.0, size(&base.join(".git/objects"))?.0);
    let (our_blocks, git_blocks) = (ours_after.0 - ours.0, theirs_after.0 - theirs.0);
    #[allow(clippy::cast_precision_loss, reason = "a ratio for reading")]
    let (ratio, kept) = (our_blocks as f64 / git_blocks as f64, ours_kept as f64 / theirs_kept as f64);
    Ok(format!(
        "\n### Growth by {GROWTH_TURNS} turns of three edits\n\n| | KiB on disk | new files | KiB in all after `gc` |\n|---|---|---|---|\n\
         | Retake's store | {} | {} | {} |\n| git's objects | {} | {} | {} |\n\nOf git's size: growth {ratio:.2}, after `gc` {kept:.2}.\n",
        our_blocks / 1024,
        ours_after.1 - ours.1,
        ours_kept / 1024,
        git_blocks / 1024,
        theirs_after.1 - theirs.1,
        theirs_kept / 1024,
    ))
}

/// Bytes in allocated blocks and files below `dir`.
fn size(dir: &Path) -> Result<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let (mut bytes, mut files) = (0, 0);
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let meta = entry.metadata()?;
        if meta.is_dir() {
            let below = size(&entry.path())?;
            bytes += below.0;
            files += below.1;
        } else {
            bytes += meta.blocks() * 512;
            files += 1;
        }
    }
    Ok((bytes, files))
}

fn memory(scratch: &Path) -> Result<String> {
    let mut text = String::from(
        "\n### Peak memory of `retake checkpoint`\n\n| files | path bytes | first, MiB | nothing changed, MiB | \
         first, s | nothing changed, ms | bytes per file beyond its path (nothing changed) |\n|---|---|---|---|---|---|---|\n",
    );
    for files in MEMORY_SIZES {
        let base = scratch.join(format!("memory.{files}"));
        let path_bytes = plain_tree(&base, files)?;
        let store = scratch.join(format!("store.memory.{files}"));
        let (first_peak, first_time) = peak(&mut retake(&base, &store))?;
        let (again_peak, again_time) = peak(&mut retake(&base, &store))?;
        let (small_peak, _) = peak(&mut retake(&small(scratch)?, &scratch.join("store.small")))?;
        text += &format!(
            "| {files} | {path_bytes} | {} | {} | {:.1} | {:.0} | {} |\n",
            first_peak >> 20,
            again_peak >> 20,
            first_time.as_secs_f64(),
            millis(again_time),
            again_peak.saturating_sub(small_peak).saturating_sub(path_bytes) / files as u64,
        );
    }
    Ok(text)
}

/// A tree without git: many small files.
fn plain_tree(base: &Path, files: usize) -> Result<u64> {
    let mut path_bytes = 0;
    for number in 0..files {
        let path = format!("part_{}/module_{}/source_file_{number}.rs", number / 1_000, number / 12);
        path_bytes += path.len() as u64;
        let full = base.join(&path);
        if number % 12 == 0 || number % 1_000 == 0 {
            fs::create_dir_all(full.parent().context("it has one")?)?;
        }
        fs::write(full, format!("fn number_{number}() {{}}\n"))?;
    }
    Ok(path_bytes)
}

fn small(scratch: &Path) -> Result<PathBuf> {
    let base = scratch.join("small");
    fs::create_dir_all(&base)?;
    fs::write(base.join("file"), "x")?;
    Ok(base)
}

/// Runs `retake checkpoint` and watches its peak of resident memory.
fn peak(retake: &mut Command) -> Result<(u64, Duration)> {
    let started = Instant::now();
    let mut child = retake.arg("checkpoint").spawn()?;
    let status = PathBuf::from(format!("/proc/{}/status", child.id()));
    let mut peak = 0;
    while child.try_wait()?.is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        peak = peak.max(kib.unwrap_or(0) << 10);
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok((peak, started.elapsed()))
}

pub(super) fn retake(base: &Path, store: &Path) -> Command {
    let mut retake = Command::new(root().join("target/release/retake"));
    retake.arg("-C").arg(base).arg("--no-pager").env("RETAKE_DATA_DIR", store);
    retake.stdout(Stdio::null()).stderr(Stdio::null());
    retake
}

pub(super) fn example(name: &str) -> PathBuf {
    root().join("target/release/examples").join(name)
}

/// The number behind `"name":` in a line of JSON.
pub(super) fn figure(printed: &str, name: &str) -> Result<f64> {
    let rest = printed.split_once(&format!("\"{name}\":")).with_context(|| format!("no `{name}` in {printed}"))?.1;
    let number: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    number.parse().with_context(|| format!("`{name}` is no number in {printed}"))
}
