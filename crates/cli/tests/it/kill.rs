//! SIGKILL at any moment of the real program: what was announced stays whole, and the next run goes on as if nothing had been.

use std::cell::{Cell, RefCell};
use std::fs;
use std::process::Command;

use retake_testkit::{Killer, cases};

use crate::history::{self, History, Missing};
use crate::sandbox::{Run, Sandbox, noise};

const FILES: u64 = 300;
/// Unless the environment says otherwise.
const KILLS: u32 = 30;
/// Kills are tried in batches, each with a new store and timed anew, since the machine may become slower or faster.
const BATCH: u32 = 30;
const KILLS_PER_BATCH: u32 = 3;

#[test]
fn kills_lose_nothing_that_was_announced() {
    let s = Sandbox::in_memory();
    for n in 0..FILES {
        s.write(path(n), noise(n, 40 + 7 * n as usize));
    }
    let round = Cell::new(0);
    let (kills, mut killed, mut batches) = (cases(KILLS), 0, 0);
    while killed < kills {
        assert!(batches <= u64::from(kills / KILLS_PER_BATCH), "only {killed} kills came in time");
        batches += 1;
        killed += kill_a_batch(&s, &round, batches);
    }
}

/// Starts a new store and kills runs on it; returns how many kills came in time.
fn kill_a_batch(s: &Sandbox, round: &Cell<u64>, seed: u64) -> u32 {
    if s.path("data").exists() {
        fs::remove_dir_all(s.path("data")).expect("it is ours");
    }
    let mut history = History::default();
    // The first ones take longer than those that follow, and kills timed by them would come too late.
    for _ in 0..3 {
        change(s, round);
        history.checkpoint(s);
    }
    let before = RefCell::new(s.everything_in_the_workspace());
    let command = || {
        change(s, round);
        before.replace(s.everything_in_the_workspace());
        checkpoint(s)
    };
    let killed = Killer::new(command).at_random(BATCH, seed, |_, ended| {
        let run = Run::from_output(ended.output().clone());
        assert_eq!(*before.borrow(), s.everything_in_the_workspace());
        if let Some(id) = run.announced() {
            history.remember(s, &id);
        }
        // The newest is, most of the time, the one that followed the kill before this one.
        history.assert_newest_kept(s);
        s.write(path(round.get() % FILES), noise(round.get(), 99));
        history.checkpoint(s);
        history::assert_no_litter(s);
    });
    history.assert_kept(s, Missing::None);
    killed
}

fn path(n: u64) -> String {
    format!("src/{}/{n}", n % 20)
}

/// What may have happened between two checkpoints: files modified, added, deleted, and now and then a large one.
fn change(s: &Sandbox, round: &Cell<u64>) {
    let now = round.get() + 1;
    round.set(now);
    for n in 0..8 {
        s.write(path((now * 31 + n * 7) % FILES), noise(now * 100 + n, 500));
    }
    s.write(format!("new/{now}"), "new");
    if let Some(old) = now.checked_sub(5).filter(|old| *old > 0) {
        s.remove(format!("new/{old}"));
    }
    if now.is_multiple_of(15) {
        s.write("large", noise(now, 1_200_000));
    }
}

fn checkpoint(s: &Sandbox) -> Command {
    let mut command = s.retake_command();
    command.args(["checkpoint", "--json"]);
    command
}
