//! The Rust tests: built once, run as often as wanted, with what tidy and the next run have to know of them written down.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, Result, anyhow};

use super::binaries::{self, Test};
use super::options::Extent;
use super::runner::{self, End, Manner, Outcome};
use super::{Report, times};
use crate::shell::{cargo, root};

/// Where the last whole run's outcomes are kept, in the words of `cargo test`.
pub(crate) fn test_output() -> PathBuf {
    root().join("target/test-output.txt")
}

/// The tests of all test programs.
pub(super) struct Suite {
    manner: Manner,
    tests: Vec<Test>,
    ignored: Vec<Test>,
}

impl Suite {
    /// Builds them.
    pub(super) fn build(extent: Extent) -> Result<Self> {
        let mut suite = Self { manner: Manner::of(extent), tests: Vec::new(), ignored: Vec::new() };
        for binary in binaries::build()? {
            let (tests, ignored) = binaries::tests(&binary)?;
            suite.tests.extend(tests);
            suite.ignored.extend(ignored);
        }
        Ok(suite)
    }

    /// Those whose name has one of `filters` in it.
    pub(super) fn only(mut self, filters: &[String]) -> Self {
        self.tests.retain(|test| filters.iter().any(|filter| is_named(test, filter)));
        self
    }

    /// Whether a test has `filter` in its name.
    pub(super) fn has(&self, filter: &str) -> bool {
        self.tests.iter().any(|test| is_named(test, filter))
    }

    /// Runs them; a failing test is printed when it ends, with its output.
    pub(super) fn run(&self) -> Result<Report> {
        let outcomes = runner::run(self.tests.clone(), &self.manner, &times::last(), print)?;
        let failed: Vec<String> =
            outcomes.iter().filter(|one| one.end != End::Passed).map(|one| one.test.clone()).collect();
        println!("{} tests ran, {} failed", outcomes.len(), failed.len());
        let error = (!failed.is_empty()).then(|| {
            let place = runner::failures();
            anyhow!(
                "{} tests failed; what they left is in {}:\n  {}",
                failed.len(),
                place.display(),
                failed.join("\n  ")
            )
        });
        Ok(Report { outcomes, failed, error })
    }

    /// Writes down how a whole run ended, in the words of `cargo test`.
    pub(super) fn evidence(&self, outcomes: &[Outcome]) -> String {
        let name = |full: &str| full.split_once(' ').map_or(full, |(_, name)| name).to_owned();
        let ran = outcomes.iter().map(|one| match one.end {
            End::Passed => format!("test {} ... ok\n", name(&one.test)),
            End::Failed(_) | End::TimedOut(_) => format!("test {} ... FAILED\n", name(&one.test)),
        });
        ran.chain(self.ignored.iter().map(|test| format!("test {} ... ignored\n", test.name))).collect()
    }
}

fn is_named(test: &Test, filter: &str) -> bool {
    test.full_name().contains(filter)
}

fn print(outcome: &Outcome) {
    let Outcome { test, seconds, end } = outcome;
    match end {
        End::Passed => println!("ok      {seconds:>6.1} s  {test}"),
        End::Failed(printed) => println!("{printed}\nFAILED  {seconds:>6.1} s  {test}"),
        End::TimedOut(printed) => println!("{printed}\nTIMEOUT {seconds:>6.1} s  {test}: ended, it took too long"),
    }
}

/// Runs the examples in documentation; what `cargo test` printed of them.
pub(super) fn doctests() -> Result<String> {
    let mut command = cargo();
    command.args(["test", "--workspace", "--all-features", "--doc"]);
    let mut child = command.stdout(Stdio::piped()).spawn().context("cannot start `cargo test --doc`")?;
    let stdout = child.stdout.take().expect("the standard output was piped above");
    let mut printed = Vec::new();
    tee(stdout, &mut printed)?;
    let status = child.wait()?;
    match status.success() {
        true => Ok(String::from_utf8_lossy(&printed).into_owned()),
        false => Err(anyhow!("`cargo test --doc` failed: {status}")),
    }
}

/// Forgets the last run's outcomes.
pub(super) fn forget() -> Result<()> {
    match fs::remove_file(test_output()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).context("cannot remove the last outcomes"),
        _ => Ok(()),
    }
}

/// Keeps the outcomes of a whole run in which all passed, for tidy.
pub(super) fn remember(evidence: &str) -> Result<()> {
    let (path, part) = (test_output(), test_output().with_extension("part"));
    File::create(&part)?.write_all(evidence.as_bytes())?;
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
