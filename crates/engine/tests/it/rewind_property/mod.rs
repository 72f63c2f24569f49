//! Random stories of two sessions and the world outside, with rewinds, undos and redos in between: every one of them against a naive
//! model that reads everything each time.
//!
//! How many cases, and which: see [`cases`](crate::cases).

mod back;
mod check;
mod expect;
mod force;
mod judge;
mod model;
mod shape;
mod tally;
mod world;

use retake_testkit::Scratch;
use retake_testkit::tree::{self, Counts, Sandbox, Story};

use crate::cases;
use crate::compare::Verdict;
use tally::Met;
use world::World;

#[test]
fn rewinds_do_what_a_naive_model_says_and_nothing_else() {
    cases::run_all(tree::story, run_guarded);
}

/// Plays one story; a panic of the engine becomes a report that tells the steps too.
fn run_guarded(story: &Story, met: &mut Met) -> Verdict {
    let scratch = Scratch::new();
    let mut counts = Counts::default();
    let mut sandbox = Sandbox::new(&scratch.dir("root"), &scratch.dir("outside"), &mut counts);
    let verdict = cases::guarded(|| World::open(&scratch, &mut sandbox, met, story.threads)?.play(story));
    verdict.map_err(|report| format!("{report}\nafter\n  {}", sandbox.log().join("\n  ")))
}
