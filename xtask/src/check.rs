//! `cargo xtask test`: everything CI runs, in order, stopping at the first failure; or the tests that filters name; once or many times.
//!
//! The outcomes of the tests are kept in [`test_output`], so that tidy can tell which ran and passed.

mod binaries;
mod load;
mod options;
mod repeat;
mod runner;
mod suite;
mod times;

use std::fmt::Write as _;
use std::thread;
use std::time::{Instant, SystemTime};

use anyhow::{Context, Error, Result};

use crate::deny;
use crate::fuzz;
use crate::interop;
use crate::page;
use crate::shell::{cargo, ensure, run};
use crate::tidy;
use load::Busy;
use options::Extent;
pub(crate) use options::Options;
use repeat::Chosen;
use runner::Outcome;
use suite::Suite;
pub(crate) use suite::test_output;

/// How a run ended.
#[derive(Default)]
struct Report {
    outcomes: Vec<Outcome>,
    /// The tests that failed.
    failed: Vec<String>,
    /// Why the run failed, if it did.
    error: Option<Error>,
}

/// Runs what `options` ask for.
pub(crate) fn test(options: &Options) -> Result<()> {
    if let Some(times) = options.repeat {
        return repeat::repeat(options, times);
    }
    let _busy = Busy::start(options.load);
    let report = if options.filters.is_empty() { whole(options.extent) } else { Chosen::find(options)?.run()? };
    report.error.map_or(Ok(()), Err)
}

/// Runs every check, each under its headline and with the time it took.
fn whole(extent: Extent) -> Report {
    let (all, start) = (Instant::now(), SystemTime::now());
    let (mut report, mut steps) = (Report::default(), Steps::default());
    report.error = checks(extent, &mut report, &mut steps).err();
    println!("\nSlowest tests:\n{}", times::slowest(&report.outcomes, start));
    println!("Steps:\n{}", steps.0);
    match report.error {
        None => println!("All checks passed in {:.1} s.", all.elapsed().as_secs_f64()),
        Some(_) => println!("Failed after {:.1} s.", all.elapsed().as_secs_f64()),
    }
    report
}

fn checks(extent: Extent, report: &mut Report, steps: &mut Steps) -> Result<()> {
    steps.step("tools", tools)?;
    // What npm fetches needs the network above all; meanwhile cargo compiles.
    let fetched = thread::spawn(|| page::prepare().and_then(|page| interop::fetch().map(|()| page)));
    steps.step("fmt", || run(cargo().args(["fmt", "--all", "--check"])))?;
    steps.step("clippy", || {
        run(cargo().args(["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"]))
    })?;
    let suite = steps.step("build", || Suite::build(extent))?;
    steps.step("tests", || {
        suite::forget()?;
        let ran = suite.run()?;
        (report.outcomes, report.failed) = (ran.outcomes, ran.failed);
        times::keep(&report.outcomes)?;
        ran.error.map_or(Ok(()), Err)
    })?;
    let examples = steps.step("doctests", suite::doctests)?;
    suite::remember(&(suite.evidence(&report.outcomes) + &examples))?;
    let page = steps.step("fetched", || fetched.join().expect("nothing panics there"))?;
    steps.step("interop", interop::check)?;
    steps.step("page", || page.check())?;
    steps.step("browser", || page::browser(&[]))?;
    steps.step("docs", || run(cargo().args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings")))?;
    steps.step("deny", deny::check)?;
    steps.step("tidy", tidy::run)?;
    match extent {
        Extent::Usual => Ok(()),
        Extent::Long => steps.step("fuzz", || fuzz::run_named(&[])),
    }
}

/// The steps that have ended, with their times, as text.
#[derive(Default)]
struct Steps(String);

impl Steps {
    fn step<T>(&mut self, name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        println!("\n==> {name}");
        let start = Instant::now();
        let done = work();
        let took = start.elapsed().as_secs_f64();
        let result = if done.is_ok() { "ok" } else { "FAILED" };
        println!("==> {name}: {result}, {took:.1} s");
        writeln!(self.0, "{took:>8.1} s  {name}: {result}").expect("a string takes everything");
        done.with_context(|| format!("step `{name}`"))
    }
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
    ensure("chromium", "chromium")
}
