//! Random stories of a session: prompts with tools, checkpoints of the model's own, a person who edits beside it, summaries, compactions, rewinds,
//! undos, restarts. After each step what clients show is what is stored, the model sees what a plain reading of the log says, and the files are
//! what a naive model says.
//!
//! `RETAKE_CASES` says how many (20 unless told), `RETAKE_SEED` repeats a run, `RETAKE_JOBS` sets the number of threads.

#![allow(clippy::print_stderr, reason = "the seed and what was met are for whoever runs it")]

mod back;
mod explore;
mod model;
mod play;
mod story;
mod turns;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::UNIX_EPOCH;
use std::{env, thread};

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use play::Player;
use story::Story;

/// Below this many cases a kind of thing may be missing by chance.
const ENOUGH_TO_MEET_ALL: u32 = 300;

/// Everything that some hundreds of stories have to bring up.
const ALL: &[&str] = &[
    "call: denied",
    "call: done",
    "call: failed",
    "call: interrupted",
    "checkpoint",
    "clear",
    "compaction",
    "draft",
    "goes back",
    "goes back: across turns",
    "goes back: files in conflict",
    "goes back: files restored",
    "goes back: files stay",
    "goes back: no checkpoint is open",
    "goes back: no files to restore",
    "outside: another path",
    "outside: a path of the session",
    "redo",
    "redo: nothing",
    "restart",
    "rewind: both",
    "rewind: code",
    "rewind: conflict kept",
    "rewind: conflict overwritten",
    "rewind: conflict stopped",
    "rewind: conversation",
    "rewind: files changed",
    "rewind: into another branch",
    "rewind: into a turn",
    "rewind: note",
    "rewind: nothing to do",
    "summary",
    "summary: of nothing",
    "turn: came to nothing",
    "turn: done",
    "turn: failed",
    "turn: interrupted",
    "undo",
    "undo: clear",
    "undo: conflict",
    "undo: nothing",
    "undo: rewind",
    "undo: summary",
    "undo: turn",
];

/// How often each was met.
#[derive(Debug, Default)]
struct Met(BTreeMap<&'static str, u64>);

impl Met {
    fn add(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }
}

#[test]
fn whatever_happens_what_is_shown_is_what_is_stored_and_files_are_as_a_naive_model_says() {
    let cases = u64::from(retake_testkit::cases(20));
    let seed = number("RETAKE_SEED").unwrap_or_else(|| UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64);
    let jobs = number("RETAKE_JOBS").unwrap_or(2);
    let again = format!("RETAKE_SEED={seed} RETAKE_CASES={cases} RETAKE_JOBS={jobs}");
    eprintln!("{again}");
    let share = |job| cases / jobs + u64::from(job < cases % jobs);
    let outcomes: Vec<_> = thread::scope(|scope| {
        let running: Vec<_> = (0..jobs).map(|job| scope.spawn(move || run_share(share(job), seed, job))).collect();
        running.into_iter().map(|job| job.join().unwrap()).collect()
    });
    let mut all = Met::default();
    for outcome in outcomes {
        let met = outcome.unwrap_or_else(|report| panic!("{again}\n{report}"));
        met.0.iter().for_each(|(what, count)| *all.0.entry(what).or_default() += count);
    }
    all.0.iter().for_each(|(what, count)| eprintln!("{count:>9}  {what}"));
    let missing: Vec<_> = ALL.iter().filter(|what| !all.0.contains_key(**what)).collect();
    assert!(cases < u64::from(ENOUGH_TO_MEET_ALL) || missing.is_empty(), "the generator never made {missing:?}");
}

fn run_share(cases: u64, seed: u64, job: u64) -> Result<Met, String> {
    let config = Config { cases: cases as u32, failure_persistence: None, max_shrink_iters: 150, ..Config::default() };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8..16].copy_from_slice(&job.to_le_bytes());
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let met = RefCell::new(Met::default());
    let outcome =
        runner.run(&story::stories(), |story| run_one(&story, &mut met.borrow_mut()).map_err(TestCaseError::fail));
    match outcome {
        Ok(()) => Ok(met.into_inner()),
        Err(TestError::Fail(report, story)) => Err(format!("{report}\nas small as it gets:\n{story:#?}")),
        Err(TestError::Abort(reason)) => Err(format!("aborted: {reason}")),
    }
}

fn run_one(story: &Story, met: &mut Met) -> Result<(), String> {
    let mut log = Vec::new();
    let played = catch_unwind(AssertUnwindSafe(|| Player::new(story, met, &mut log).play(story)));
    played.map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        format!("{}\nafter\n  {}", text.unwrap_or("a panic of an unknown kind"), log.join("\n  "))
    })
}

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is a number, not `{text}`")))
}
