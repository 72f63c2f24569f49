//! Runs each test in a process of its own, with a time limit, so that a test that hangs costs itself alone and is named.
//!
//! Nothing but cargo is needed for it. A failing test leaves its output in [`failures`], where tests put what they saw, too.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::binaries::Test;
use super::options::Extent;
use crate::shell::root;

/// The slowest test needs a quarter of it on a machine whose cores all have other work.
const LIMIT: Duration = Duration::from_secs(300);
/// For runs with [`Extent::Long`].
const LONG_LIMIT: Duration = Duration::from_secs(3 * 3600);
/// How many cases each property test tries in such a run.
const LONG_CASES: &str = "2000";
/// How often running tests are compared with their limit.
const WATCH: Duration = Duration::from_millis(200);

/// How tests are run.
#[derive(Clone, Debug)]
pub(super) struct Manner {
    /// A test that takes longer is ended.
    limit: Duration,
    /// How many cases property tests try, if not as many as usual.
    cases: Option<String>,
}

impl Manner {
    pub(super) fn of(extent: Extent) -> Self {
        match extent {
            Extent::Usual => Self { limit: LIMIT, cases: None },
            Extent::Long => Self {
                limit: LONG_LIMIT,
                cases: Some(std::env::var("RETAKE_CASES").unwrap_or_else(|_| LONG_CASES.to_owned())),
            },
        }
    }
}

/// How a test ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outcome {
    pub(super) test: String,
    pub(super) seconds: f64,
    pub(super) end: End,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    Passed,
    /// With what it printed.
    Failed(String),
    /// The same, for one that was ended after its time.
    TimedOut(String),
}

/// Where a failing test leaves what it printed and showed: a directory of its own for each.
pub(super) fn failures() -> PathBuf {
    root().join("target/failures")
}

/// The directory of one test.
fn failure_of(test: &Test) -> PathBuf {
    failures().join(test.full_name().replace(['/', ' '], "-").replace("::", "."))
}

/// Runs `tests`, those that took longest the last time first, and tells `report` of each as it ends.
pub(super) fn run(
    mut tests: Vec<Test>,
    manner: &Manner,
    last: &HashMap<String, f64>,
    report: impl Fn(&Outcome) + Sync,
) -> Result<Vec<Outcome>> {
    tests.sort_by(|a, b| {
        let time = |test: &Test| last.get(&test.full_name()).copied().unwrap_or_default();
        time(a).total_cmp(&time(b))
    });
    let workers = thread::available_parallelism().map_or(2, usize::from) * 2;
    let (waiting, outcomes, watched) = (Mutex::new(tests), Mutex::new(Vec::new()), Watched::default());
    thread::scope(|scope| {
        let working: Vec<_> = (0..workers)
            .map(|_| {
                scope.spawn(|| -> Result<()> {
                    loop {
                        let Some(test) = lock(&waiting).pop() else { return Ok(()) };
                        let outcome = run_one(&test, manner, &watched)?;
                        report(&outcome);
                        lock(&outcomes).push(outcome);
                    }
                })
            })
            .collect();
        while working.iter().any(|worker| !worker.is_finished()) {
            watched.end_overdue();
            thread::park_timeout(WATCH);
        }
        working.into_iter().try_for_each(|worker| worker.join().expect("a worker does not panic"))
    })?;
    Ok(outcomes.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn run_one(test: &Test, manner: &Manner, watched: &Watched) -> Result<Outcome> {
    let place = failure_of(test);
    match fs::remove_dir_all(&place) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => fs::create_dir_all(&place)?,
    }
    let printed = place.join("output.txt");
    let file = File::create(&printed).with_context(|| format!("cannot write {}", printed.display()))?;
    let mut command = test.command();
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    // A group of its own, to be ended together. What a failure looks like goes where its output is.
    command.process_group(0).env("RETAKE_FAILURE_DIR", &place);
    if let Some(cases) = &manner.cases {
        command.env("RETAKE_CASES", cases);
    }
    let start = Instant::now();
    let mut child = command.spawn().with_context(|| format!("cannot start {}", test.full_name()))?;
    watched.add(child.id(), start + manner.limit);
    let status = child.wait();
    let was_ended = watched.remove(child.id());
    let (status, seconds) = (status?, start.elapsed().as_secs_f64());
    let said = || String::from_utf8_lossy(&fs::read(&printed).unwrap_or_default()).into_owned();
    let end = match was_ended {
        true => End::TimedOut(said()),
        false if status.success() => End::Passed,
        false => End::Failed(format!("{}{status}\n", said())),
    };
    if end == End::Passed {
        fs::remove_dir_all(&place)?;
    }
    Ok(Outcome { test: test.full_name(), seconds, end })
}

/// The processes that run, with the moment at which each is ended.
#[derive(Default)]
struct Watched(Mutex<HashMap<u32, Running>>);

struct Running {
    deadline: Instant,
    was_ended: bool,
}

impl Watched {
    fn add(&self, process: u32, deadline: Instant) {
        lock(&self.0).insert(process, Running { deadline, was_ended: false });
    }

    /// Forgets a process that has ended; says whether its time was up.
    fn remove(&self, process: u32) -> bool {
        lock(&self.0).remove(&process).is_some_and(|running| running.was_ended)
    }

    fn end_overdue(&self) {
        for (process, running) in lock(&self.0).iter_mut() {
            if Instant::now() < running.deadline || running.was_ended {
                continue;
            }
            running.was_ended = true;
            let group = format!("-{process}");
            // One that has just ended by itself is not there any more.
            Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status().ok();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::binaries::Binary;

    /// Scripts that are run as tests are.
    fn run_scripts(place: &str, limit: Duration, scripts: &[(&str, &str)]) -> Vec<(String, End)> {
        let directory = root().join("target/tmp").join(place);
        fs::create_dir_all(&directory).expect("a directory below `target`");
        let test = |(name, script): &(&str, &str)| {
            fs::write(directory.join(name), script).expect("it can be written");
            Test { binary: Binary::new(place, "/bin/sh", &directory), name: (*name).to_owned() }
        };
        let manner = Manner { limit, cases: Some("7".to_owned()) };
        let ran = run(scripts.iter().map(test).collect(), &manner, &HashMap::new(), |_| ()).expect("they are run");
        let mut ended: Vec<(String, End)> = ran.into_iter().map(|one| (one.test, one.end)).collect();
        ended.sort_by(|a, b| a.0.cmp(&b.0));
        ended
    }

    #[test]
    fn a_test_that_hangs_is_ended_with_all_it_started_and_named() {
        let hang = "echo before; sleep 600 & echo $! > child; wait";
        let ended = run_scripts("hanging", Duration::from_secs(2), &[("hang", hang)]);
        assert_eq!(ended, [("hanging hang".to_owned(), End::TimedOut("before\n".to_owned()))]);
        let child = fs::read_to_string(root().join("target/tmp/hanging/child")).expect("it was started");
        let is_running = || {
            let stat = fs::read_to_string(format!("/proc/{}/stat", child.trim())).unwrap_or_default();
            !stat.is_empty() && !stat.contains(") Z ")
        };
        while is_running() {
            thread::yield_now();
        }
    }

    #[test]
    fn a_test_that_fails_leaves_what_it_printed_and_one_that_passes_leaves_nothing() {
        let scripts =
            [("fail", "echo why >&2; exit 3"), ("pass", "test $RETAKE_CASES = 7 && touch $RETAKE_FAILURE_DIR/x")];
        let ended = run_scripts("ending", LIMIT, &scripts);
        let failed = End::Failed("why\nexit status: 3\n".to_owned());
        assert_eq!(ended, [("ending fail".to_owned(), failed), ("ending pass".to_owned(), End::Passed)]);
        assert_eq!(fs::read_to_string(failures().join("ending-fail/output.txt")).expect("it is left"), "why\n");
        assert!(!failures().join("ending-pass").exists());
        fs::remove_dir_all(failures().join("ending-fail")).expect("it is there");
    }
}
