//! Cleaning up in a loop while other processes take checkpoints and rewind: no object goes missing.
//!
//! Everything unlabelled is too old at once, so that each clean-up takes all it may. Contents come back again and again: a checkpoint
//! relies on an object that a clean-up would have taken a moment ago, or is about to take. With `RETAKE_RACE_SECONDS` it goes on for that
//! long.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use retake_engine::checkpoint::NewCheckpoint;
use retake_engine::id::OperationId;
use retake_engine::progress::NoProgress;
use retake_engine::rewind::NewRewind;
use retake_engine::view::Side;
use retake_engine::{Durability, Timestamp, Workspace, WorkspacePath};
use retake_testkit::{Scratch, rerun};

use crate::rewind::exactly;
use crate::scanners::{environment, numbered};

const CHILD: &str = "collecting::works_in_a_child_process";
/// Rounds of each process, unless a time is set.
const ROUNDS: i64 = 23;
/// Of so many checkpoints one is labelled.
const LABEL_EVERY: i64 = 7;
/// Of so many checkpoints one is followed by a rewind.
const REWIND_EVERY: i64 = 11;
/// Contents come back after so many rounds.
const CYCLE: i64 = 5;

#[test]
fn cleaning_up_takes_nothing_that_other_processes_rely_on() {
    let scratch = Scratch::new();
    let (root, store) = (scratch.dir("root"), scratch.path().join("store"));
    Workspace::open_or_create(environment(&root, store.clone())).unwrap();
    let collector = start("gc", &root, &store);
    let workers: Vec<_> = ["1", "2", "3"].iter().map(|role| start(role, &root, &store)).collect();
    let failures: Vec<_> = workers.into_iter().filter_map(failure).collect();
    fs::write(over(&store), "").unwrap();
    let failures: Vec<_> = failures.into_iter().chain(failure(collector)).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));

    let workspace = Workspace::open(environment(&root, store)).unwrap();
    let integrity = workspace.maintenance().check().unwrap();
    assert!(integrity.damage.is_empty() && integrity.affected.is_empty(), "{integrity:?}");
    let labelled: Vec<_> =
        workspace.checkpoints().all().unwrap().into_iter().filter(|point| point.label.is_some()).collect();
    assert!(labelled.len() >= 12, "only {} labels", labelled.len());
    for checkpoint in labelled {
        let label = checkpoint.label.expect("only labelled ones are left");
        let (who, round) = label.split_once(' ').unwrap();
        let side = Side::Stored(checkpoint.snapshot);
        for (path, expected) in files(who, round.parse().unwrap()) {
            let path = WorkspacePath::parse(path.as_bytes()).unwrap();
            let node = workspace.entry(&side, &path).unwrap().unwrap();
            let mut content = Vec::new();
            workspace.content(&side, &path, &node, &mut content).unwrap();
            assert!(content == expected, "`{}` in `{label}`", path.display());
        }
    }
}

/// The body of the other processes; on its own it has nothing to do.
#[test]
fn works_in_a_child_process() {
    let Some(role) = std::env::var_os("RETAKE_TEST_ROLE") else { return };
    let role = role.to_str().unwrap();
    let path = |variable| PathBuf::from(std::env::var_os(variable).unwrap());
    let mut environment = environment(&path("RETAKE_TEST_ROOT"), path("RETAKE_TEST_STORE"));
    environment.settings.keep_days = 0;
    let seconds = std::env::var("RETAKE_RACE_SECONDS").ok().map(|text| text.parse().unwrap());
    let until = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let is_over = |round| match (role, until) {
        ("gc", _) => over(&environment.data_dir).exists(),
        (_, Some(until)) => Instant::now() > until,
        (_, None) => round > ROUNDS,
    };
    let mut workspace = Workspace::open(environment.clone()).unwrap();
    for round in (1..).take_while(|round| !is_over(*round)) {
        // Some rounds as a new run of the command line would, some as a long-lived process.
        if round % 3 == 0 {
            workspace = Workspace::open(environment.clone()).unwrap();
        }
        match role {
            "gc" => drop(workspace.maintenance_mut().gc(Timestamp(i64::MAX / 2), &NoProgress).unwrap()),
            who => work(&mut workspace, &environment.root, who, round),
        }
    }
}

/// The file that tells that all work is done.
fn over(store: &Path) -> PathBuf {
    store.with_file_name("over")
}

/// What a process that failed had to say.
fn failure(child: Child) -> Option<String> {
    let output = child.wait_with_output().unwrap();
    (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Changes this process's files, takes a checkpoint, and now and then goes back to a labelled one.
fn work(workspace: &mut Workspace, root: &Path, who: &str, round: i64) {
    fs::create_dir_all(root.join(who)).unwrap();
    for (path, content) in files(who, round) {
        fs::write(root.join(path), content).unwrap();
    }
    let number = who.parse::<i64>().unwrap() * 1_000_000 + round * 10;
    let label = (round % LABEL_EVERY == 1).then(|| format!("{who} {round}"));
    let new = NewCheckpoint { label, ..numbered(number) };
    workspace.checkpoints_mut().take(new, Durability::Soon, &NoProgress).unwrap();
    if round % REWIND_EVERY != 0 {
        return;
    }
    let back = round - (round - 1) % LABEL_EVERY;
    let target = workspace.checkpoints().resolve(&format!("{who} {back}")).unwrap();
    let mut request = exactly(&target);
    request.paths = vec![WorkspacePath::parse(who.as_bytes()).unwrap()];
    let id = |n: i64| numbered(number + n).id;
    let new = NewRewind {
        note: retake_engine::id::EntryId::new([0; 10]),
        operation: operation(number),
        safety: id(1),
        after: id(2),
        at: Timestamp(0),
    };
    workspace.rewinds_mut().apply(&request, None, &new, &NoProgress).unwrap();
    for (path, expected) in files(who, back) {
        assert!(fs::read(root.join(&path)).unwrap() == expected, "`{path}` after going back to {back}");
    }
}

fn operation(number: i64) -> OperationId {
    let mut random = [1; 10];
    random[..8].copy_from_slice(&number.to_be_bytes());
    OperationId::new(Timestamp(0), random)
}

/// What one process's files are in a round: some come back, one is new each time, one is large.
fn files(who: &str, round: i64) -> Vec<(String, Vec<u8>)> {
    let text = |n: i64| format!("{who} {n}\n").repeat(200).into_bytes();
    let mut files: Vec<_> = (0..4).map(|n| (format!("{who}/{n}"), text((round + n) % CYCLE))).collect();
    files.push((format!("{who}/new"), text(1_000 + round)));
    let large: Vec<u8> = (0..140_000_i64).flat_map(|n| (n * (round % CYCLE + 1)).to_le_bytes()).collect();
    files.push((format!("{who}/large"), large));
    files
}

fn start(role: &str, root: &Path, store: &Path) -> Child {
    let mut command = rerun::test(CHILD);
    command.env("RETAKE_TEST_ROLE", role).env("RETAKE_TEST_ROOT", root).env("RETAKE_TEST_STORE", store);
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}
