//! `cargo xtask test`: everything CI runs, in order, stopping at the first failure.
//!
//! What the tests print is also kept in [`test_output`], so that tidy can tell which tests ran and passed.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::interop;
use crate::page;
use crate::shell::{cargo, ensure, root, run};
use crate::tidy;

/// Where the last test run's standard output is kept.
pub(crate) fn test_output() -> PathBuf {
    root().join("target/test-output.txt")
}

/// Runs every check, each under its headline and with the time it took.
pub(crate) fn test() -> Result<()> {
    let all = Instant::now();
    step("tools", tools)?;
    step("fmt", || run(cargo().args(["fmt", "--all", "--check"])))?;
    step("clippy", || {
        run(cargo().args(["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"]))
    })?;
    step("tests", tests)?;
    step("interop", interop::check)?;
    step("page", page::check)?;
    step("docs", || run(cargo().args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings")))?;
    step("tidy", tidy::run)?;
    println!("\nAll checks passed in {:.1} s.", all.elapsed().as_secs_f64());
    Ok(())
}

fn step(name: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
    println!("\n==> {name}");
    let start = Instant::now();
    let done = work();
    let took = start.elapsed().as_secs_f64();
    match done {
        Ok(()) => println!("==> {name}: ok, {took:.1} s"),
        Err(_) => println!("==> {name}: FAILED, {took:.1} s"),
    }
    done.with_context(|| format!("step `{name}`"))
}

/// Programs that the tests run. Mount and privilege tools exist only on Linux, and so do the tests that need them.
fn tools() -> Result<()> {
    ensure("git", "git")?;
    // The agent's shell, and what its tests play: an MCP server, a project with tests.
    ensure("bash", "bash")?;
    ensure("python3", "python3")?;
    // The terminal that the terminal client is shown in.
    ensure("tmux", "tmux")?;
    // The Agent Client Protocol's schemas and clients come from npm.
    ensure("node", "nodejs")?;
    ensure("npm", "npm")?;
    if cfg!(target_os = "linux") {
        ensure("mount", "mount")?;
        ensure("setpriv", "util-linux")?;
        ensure("setsid", "util-linux")?;
    }
    Ok(())
}

fn tests() -> Result<()> {
    let path = test_output();
    let part = path.with_extension("part");
    for old in [&path, &part] {
        match fs::remove_file(old) {
            Err(err) if err.kind() != io::ErrorKind::NotFound => {
                return Err(err).with_context(|| format!("cannot remove {}", old.display()));
            }
            _ => {}
        }
    }
    let mut command = cargo();
    command.args(["test", "--workspace", "--all-features"]);
    let mut child = command.stdout(Stdio::piped()).spawn().context("cannot start `cargo test`")?;
    let stdout = child.stdout.take().expect("the standard output was piped above");
    tee(stdout, &mut File::create(&part)?)?;
    let status = child.wait()?;
    if !status.success() {
        bail!("`cargo test` failed: {status}");
    }
    // Only a whole, passing run gets the name that tidy reads.
    fs::rename(&part, &path).with_context(|| format!("cannot write {}", path.display()))
}

/// Copies `from` to the terminal and to `copy`, line by line, so that progress is seen as it happens.
fn tee(from: impl io::Read, copy: &mut impl Write) -> Result<()> {
    let mut lines = BufReader::new(from);
    let mut line = Vec::new();
    let mut terminal = io::stdout();
    while lines.read_until(b'\n', &mut line)? != 0 {
        terminal.write_all(&line)?;
        terminal.flush()?;
        copy.write_all(&line)?;
        line.clear();
    }
    Ok(())
}
