//! `cargo xtask bench`: how fast Retake is beside other tools, beside the bare system calls, in process, and around another agent.
//!
//! Numbers of one run belong together; rows are compared, never runs. Nothing here is a test: no check fails on a time.

mod engine;
mod lstat;
mod peers;
mod proxy;
mod report;
mod restore;
mod table;
mod tree;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::shell::read;

/// Runs the bench that `args` name, or all of them.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        [] => {
            peers::run(&peers::Args::all())?;
            engine::run_all(true)?;
            proxy::run(true)
        }
        ["peers", ref rest @ ..] => peers::run(&peers::Args::parse(rest)?),
        ["engine"] => engine::run_all(false),
        ["engine", "--write"] => engine::run_all(true),
        ["proxy"] => proxy::run(false),
        ["proxy", "--write"] => proxy::run(true),
        ["flood"] => proxy::flood(),
        ["lstat", dir] => {
            let found = lstat::measure(Path::new(dir))?;
            println!("{:.1} ms, best of {}, {} paths", millis(found.best), lstat::ROUNDS, found.paths);
            Ok(())
        }
        ["tree", out, files] => tree::make(Path::new(out), number(files)?, 1),
        ["tree", out, files, seed] => tree::make(Path::new(out), number(files)?, seed.parse()?),
        _ => bail!("cannot understand `bench {}`; see `cargo xtask help`", words.join(" ")),
    }
}

/// One line on the machine that a measurement was made on.
fn machine(scratch: &Path) -> Result<String> {
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpus
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("unknown CPU", |name| name.trim_matches([' ', '\t', ':']));
    let cores = std::thread::available_parallelism()?;
    let kernel = read(Command::new("uname").arg("-sr"))?;
    let disk = read(Command::new("df").arg("--output=fstype").arg(scratch)).unwrap_or_default();
    let disk = disk.lines().last().unwrap_or("unknown file system");
    let git = read(Command::new("git").arg("--version"))?;
    let day = read(Command::new("date").arg("+%Y-%m-%d"))?;
    Ok(format!("{day}, {cpu}, {cores} cores, {kernel}, {disk}, {git}"))
}

fn number(word: &str) -> Result<usize> {
    word.replace('_', "").parse().with_context(|| format!("`{word}` is not a number"))
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}
