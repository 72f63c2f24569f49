//! Random trees and random steps: every snapshot and every diff, by every scanner, against a naive full read.
//!
//! `RETAKE_CASES` says how many cases (1,000 unless told), `RETAKE_SEED` repeats a run, `RETAKE_JOBS` sets the number of threads.
//! `RETAKE_SEEDED_BUG` and `RETAKE_COARSE` are for the tests in [`seeded`](crate::seeded), which run this test in a process of its own.

use std::cell::{Cell, RefCell};
use std::env;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use retake_testkit::Scratch;
use retake_testkit::naive::{self, Reading};
use retake_testkit::tree::{self, Case, Counts, MAX_FILE, Sandbox};

use crate::compare::Verdict;
use crate::scanners::Scanners;

/// Below this many cases a kind of thing may be missing by chance.
const ENOUGH_TO_MEET_ALL: u32 = 1_000;

#[test]
fn snapshots_and_diffs_agree_with_a_full_read() {
    switch_on_what_was_asked_for();
    let cases: u32 = number("RETAKE_CASES").unwrap_or(1_000);
    let seed: u64 = number("RETAKE_SEED").unwrap_or_else(|| u64::from_le_bytes(fresh_seed()));
    let jobs: u32 =
        number("RETAKE_JOBS").unwrap_or_else(|| thread::available_parallelism().map_or(1, |n| n.get() as u32));
    eprintln!("RETAKE_SEED={seed} RETAKE_CASES={cases} RETAKE_JOBS={jobs}");
    let has_failed = AtomicBool::new(false);
    let outcomes: Vec<_> = thread::scope(|scope| {
        let share = |job| cases / jobs + u32::from(job < cases % jobs);
        let start = |job| {
            scope.spawn({
                let has_failed = &has_failed;
                move || run_cases(share(job), seed, job, has_failed)
            })
        };
        let running: Vec<_> = (0..jobs).map(start).collect();
        running.into_iter().map(|job| job.join().expect("panics are caught inside")).collect()
    });
    let mut counts = Counts::default();
    for outcome in outcomes {
        let again = format!("RETAKE_SEED={seed} RETAKE_CASES={cases} RETAKE_JOBS={jobs}");
        counts.merge(&outcome.unwrap_or_else(|report| panic!("{again}\n{report}")));
    }
    eprintln!("{counts}");
    let missing = counts.missing();
    assert!(cases < ENOUGH_TO_MEET_ALL || missing.is_empty(), "the generator never made {missing:?}");
}

/// Runs one thread's share of the cases, unless another one fails; the report of a failure holds the smallest case found.
fn run_cases(cases: u32, seed: u64, job: u32, has_failed: &AtomicBool) -> Result<Counts, String> {
    let is_seeded = env::var_os("RETAKE_SEEDED_BUG").is_some();
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: if is_seeded { 50 } else { 4_000 },
        ..Config::default()
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8..12].copy_from_slice(&job.to_le_bytes());
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let counts = RefCell::new(Counts::default());
    let first_report = RefCell::new(None);
    let done = Cell::new(0);
    let outcome = runner.run(&tree::case(), |case| {
        if has_failed.load(Ordering::Relaxed) && first_report.borrow().is_none() {
            return Ok(());
        }
        let report = run_guarded(&case, &mut counts.borrow_mut()).err();
        done.set(done.get() + u32::from(first_report.borrow().is_none()));
        match report {
            None => Ok(()),
            Some(report) => {
                has_failed.store(true, Ordering::Relaxed);
                first_report.borrow_mut().get_or_insert_with(|| report.clone());
                Err(TestCaseError::fail(report))
            }
        }
    });
    match outcome {
        Ok(()) => Ok(counts.into_inner()),
        Err(TestError::Fail(smallest, case)) => {
            let first = first_report.into_inner().unwrap_or_default();
            let number = done.get();
            Err(format!(
                "case {number} of thread {job}, as found:\n{first}\n\nas small as it gets:\n{smallest}\n{case:?}"
            ))
        }
        Err(TestError::Abort(reason)) => Err(format!("aborted: {reason}")),
    }
}

/// Runs one case; a panic of the engine becomes a report that tells the steps too.
fn run_guarded(case: &Case, counts: &mut Counts) -> Verdict {
    let scratch = Scratch::new();
    let mut sandbox = Sandbox::new(&scratch.dir("root"), &scratch.dir("outside"), counts);
    let verdict = catch_unwind(AssertUnwindSafe(|| run(case, &scratch, &mut sandbox)));
    let verdict = verdict.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Err(format!("PANIC: {}", text.unwrap_or("of an unknown kind")))
    });
    verdict.map_err(|report| format!("{report}\nafter\n  {}", sandbox.log().join("\n  ")))
}

fn run(case: &Case, scratch: &Scratch, sandbox: &mut Sandbox<'_>) -> Verdict {
    let (root, stores) = (scratch.dir("root"), scratch.dir("stores"));
    let global_excludes = Some(sandbox.global_excludes());
    let reading = Reading { global_excludes, max_file: MAX_FILE, ..Reading::default() };
    let read = || naive::read(&root, &reading).map_err(|error| format!("ERROR: the naive read: {error}"));
    let mut scanners = Scanners::open(&root, &stores, &sandbox.global_excludes(), case.threads)?;
    for round in std::iter::once(&case.start).chain(&case.rounds) {
        for step in round {
            sandbox.apply(step);
        }
        let truth = read()?;
        sandbox.counts().add_decisions(&truth.decisions);
        sandbox.note("checkpoint");
        let is_linked = |meta: fs::Metadata| meta.is_file() && meta.nlink() > 1;
        let is_unseen = |link: &PathBuf| {
            let captured = truth.nodes.contains_key(link.as_os_str().as_bytes());
            !captured || !fs::symlink_metadata(root.join(link)).is_ok_and(is_linked)
        };
        if sandbox.take_new_links().iter().any(is_unseen) {
            // What is written through a name that is not captured, or is gone again, is reported to no one: a limit of every watch, which ends with the next full look.
            scanners.watch_anew()?;
        }
        scanners.check(&truth)?;
    }
    scanners.check_history(&read()?)
}

fn switch_on_what_was_asked_for() {
    let asked = [("RETAKE_SEEDED_BUG", env::var("RETAKE_SEEDED_BUG").ok()), ("RETAKE_COARSE", None)];
    for (variable, name) in asked {
        if env::var_os(variable).is_some() {
            let name = name.as_deref().unwrap_or("coarse-clock");
            fail::cfg(name, "return").expect("fail points, which the feature `faults` compiles in");
        }
    }
}

fn number<T: std::str::FromStr>(variable: &str) -> Option<T> {
    let text = env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is a number, not `{text}`")))
}

fn fresh_seed() -> [u8; 8] {
    let now = std::time::UNIX_EPOCH.elapsed().expect("a clock after 1970").as_nanos() as u64;
    (now ^ u64::from(std::process::id()) << 40).to_le_bytes()
}
