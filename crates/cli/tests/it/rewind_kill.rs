//! SIGKILL at any moment of rewinds of thousands of files: afterwards all files are as they were or all as they should be.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use retake_testkit::{Killer, cases};

use crate::sandbox::Sandbox;

const FILES: usize = 2_000;
/// Unless the environment says otherwise.
const KILLS: u32 = 40;
/// Kills are timed by an undisturbed run before each batch, since the machine may become slower or faster.
const BATCH: u32 = 40;
const KILLS_PER_BATCH: u32 = 4;

type State = BTreeMap<PathBuf, Option<Vec<u8>>>;

#[test]
fn kills_leave_every_rewind_done_or_not_done() {
    let s = Sandbox::in_memory();
    let states = [("one", make_one as fn(&Sandbox)), ("two", make_two)].map(|(label, make)| {
        make(&s);
        s.retake(["checkpoint", "-m", label]).succeeds();
        state(&s)
    });
    let current = Cell::new(1);
    let (kills, mut killed, mut batches) = (cases(KILLS), 0, 0);
    let (mut done, mut not_done) = (0, 0);
    while killed < kills || done == 0 || not_done == 0 {
        assert!(
            batches <= u64::from(kills / KILLS_PER_BATCH),
            "only {killed} kills came in time; {done} rewinds were done, {not_done} were not"
        );
        batches += 1;
        let command = || {
            // The run that times the batch gets through.
            current.set(usize::from(state(&s) == states[1]));
            rewind(&s, ["two", "one"][current.get()])
        };
        killed += Killer::new(command).at_random(BATCH, batches, |_, _| {
            s.retake(["recover"]).succeeds();
            let now = state(&s);
            let is =
                states.iter().position(|state| *state == now).expect("one state or the other, and nothing between");
            if is == current.get() { not_done += 1 } else { done += 1 }
        });
    }
    let checked = s.environment();
    let workspace = retake_engine::Workspace::open(checked).expect("it is there");
    let integrity = workspace.maintenance().check().expect("it can be read");
    assert!(integrity.damage.is_empty() && integrity.affected.is_empty(), "{integrity:?}");
}

fn path(n: usize) -> String {
    format!("src/{}/{n}", n % 40)
}

fn make_one(s: &Sandbox) {
    for n in 0..FILES {
        s.write(path(n), format!("one {n}"));
    }
    s.write("becomes-directory", "a file").write("becomes-file/child", "child");
}

fn make_two(s: &Sandbox) {
    for n in 0..FILES {
        match n % 10 {
            0 => drop(s.remove(path(n))),
            1 => {}
            _ => drop(s.write(path(n), format!("two {n}"))),
        }
    }
    fs::remove_file(s.ws("becomes-directory")).expect("it is there");
    fs::remove_dir_all(s.ws("becomes-file")).expect("it is there");
    s.write("becomes-directory/child", "child").write("becomes-file", "a file").write("new/file", "new");
}

fn rewind(s: &Sandbox, to: &str) -> Command {
    let mut command = s.retake_command();
    command.args(["rewind", to, "--yes"]);
    command
}

/// Everything in the workspace: contents of files, `None` for directories.
fn state(s: &Sandbox) -> State {
    let mut found = State::new();
    let mut pending = vec![s.path("ws")];
    while let Some(path) = pending.pop() {
        for entry in fs::read_dir(&path).expect("it can be listed").map(|entry| entry.expect("it can be listed").path())
        {
            if entry.is_dir() {
                pending.push(entry.clone());
                found.insert(entry, None);
            } else {
                let content = fs::read(&entry).expect("it can be read");
                found.insert(entry, Some(content));
            }
        }
    }
    found
}
