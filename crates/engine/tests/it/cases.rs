//! Running random cases on several threads, and telling the smallest one that fails.
//!
//! `RETAKE_CASES` says how many (200 unless told), `RETAKE_SEED` repeats a run, `RETAKE_JOBS` sets the number of threads.
//! `RETAKE_SEEDED_BUG` and `RETAKE_COARSE` are for the tests in [`seeded`](crate::seeded), which run a property test in a process of its
//! own.

use std::cell::{Cell, RefCell};
use std::env;
use std::fmt::{Debug, Display};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use crate::compare::Verdict;

/// How many cases a run has unless told.
pub(crate) const USUAL: u32 = 200;
/// Below this many cases a kind of thing may be missing by chance.
const ENOUGH_TO_MEET_ALL: u32 = 1_000;

/// Counts what a run has met.
pub(crate) trait Tally: Default + Display + Send {
    /// Takes in what another thread counted.
    fn merge(&mut self, other: &Self);
    /// What should have been met and never was.
    fn missing(&self) -> Vec<&'static str>;
}

/// Runs as many cases of `strategy` as the environment says; panics with a report if one fails, or if something was never met.
pub(crate) fn run_all<S: Strategy, T: Tally>(
    strategy: impl Fn() -> S + Sync,
    run: impl Fn(&S::Value, &mut T) -> Verdict + Sync,
) where
    S::Value: Debug,
{
    run_usually(USUAL, strategy, run);
}

/// The same, with another number of cases unless told.
pub(crate) fn run_usually<S: Strategy, T: Tally>(
    usual: u32,
    strategy: impl Fn() -> S + Sync,
    run: impl Fn(&S::Value, &mut T) -> Verdict + Sync,
) where
    S::Value: Debug,
{
    switch_on_what_was_asked_for();
    let cases = retake_testkit::cases(usual);
    let seed: u64 = number("RETAKE_SEED").unwrap_or_else(fresh_seed);
    let jobs: u32 =
        number("RETAKE_JOBS").unwrap_or_else(|| thread::available_parallelism().map_or(1, |n| n.get() as u32));
    let again = format!("RETAKE_SEED={seed} RETAKE_CASES={cases} RETAKE_JOBS={jobs}");
    eprintln!("{again}");
    let has_failed = AtomicBool::new(false);
    let outcomes: Vec<_> = thread::scope(|scope| {
        let share = |job| cases / jobs + u32::from(job < cases % jobs);
        let start = |job| {
            scope.spawn({
                let (has_failed, strategy, run) = (&has_failed, &strategy, &run);
                move || run_share(share(job), &strategy(), run, seed, job, has_failed)
            })
        };
        let running: Vec<_> = (0..jobs).map(start).collect();
        running.into_iter().map(|job| job.join().expect("panics are caught inside")).collect()
    });
    let mut tally = T::default();
    for outcome in outcomes {
        tally.merge(&outcome.unwrap_or_else(|report| panic!("{again}\n{report}")));
    }
    eprintln!("{tally}");
    let missing = tally.missing();
    assert!(cases < ENOUGH_TO_MEET_ALL || missing.is_empty(), "the generator never made {missing:?}");
}

/// Runs one thread's share of the cases, unless another one fails; the report of a failure holds the smallest case found.
fn run_share<S: Strategy, T: Tally>(
    cases: u32,
    strategy: &S,
    run: impl Fn(&S::Value, &mut T) -> Verdict,
    seed: u64,
    job: u32,
    has_failed: &AtomicBool,
) -> Result<T, String>
where
    S::Value: Debug,
{
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
    let tally = RefCell::new(T::default());
    let first_report = RefCell::new(None);
    let done = Cell::new(0);
    let outcome = runner.run(strategy, |case| {
        if has_failed.load(Ordering::Relaxed) && first_report.borrow().is_none() {
            return Ok(());
        }
        let report = run(&case, &mut tally.borrow_mut()).err();
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
        Ok(()) => Ok(tally.into_inner()),
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

/// Turns a panic into a report.
pub(crate) fn guarded(run: impl FnOnce() -> Verdict) -> Verdict {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Err(format!("PANIC: {}", text.unwrap_or("of an unknown kind")))
    })
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

fn fresh_seed() -> u64 {
    let now = std::time::UNIX_EPOCH.elapsed().expect("a clock after 1970").as_nanos() as u64;
    now ^ u64::from(std::process::id()) << 40
}
