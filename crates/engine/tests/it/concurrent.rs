//! Two processes that checkpoint one workspace while a third program writes to it: both finish, and nothing that never existed is stored.
//!
//! The writer rewrites files block by block, stamping each block with the number of the pass. At every instant such a file reads
//! `n+1 … n+1 n … n`; any other sequence mixes two instants and was never there. Another file is replaced by rename and has to be whole.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use retake_engine::progress::NoProgress;
use retake_engine::snapshot::GapKind;
use retake_engine::view::Side;
use retake_engine::{Durability, Workspace};
use retake_testkit::naive::NaiveNodes;
use retake_testkit::{Scratch, rerun};

use crate::compare::read_back;
use crate::rewind_hostile::{take_turn, when};
use crate::scanners::{environment, numbered};

const CHILD: &str = "concurrent::checkpoints_in_a_child_process";
const ROUNDS: i64 = 100;
const BLOCK: usize = 4096;
const BLOCKS: usize = 64;

#[test]
fn two_processes_and_a_writer_store_nothing_torn_and_both_finish() {
    let scratch = Scratch::new();
    let (root, store) = (scratch.dir("root"), scratch.path().join("store"));
    for name in ["one", "two"] {
        fs::write(root.join(name), stamped(0)).unwrap();
    }
    fs::write(root.join("whole"), stamped(0)).unwrap();
    Workspace::open_or_create(environment(&root, store.clone())).unwrap();

    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| write_until(&root, &scratch.dir("beside"), &is_over));
        let children: Vec<_> = (1..=2).map(|who| start_child(who, &root, &store)).collect();
        let outputs: Vec<_> = children.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
        is_over.store(true, Ordering::Relaxed);
        for output in outputs {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
    });

    let workspace = Workspace::open(environment(&root, store)).unwrap();
    let checkpoints = workspace.checkpoints().all().unwrap();
    assert_eq!(checkpoints.len(), 2 * ROUNDS as usize);
    for checkpoint in checkpoints {
        let nodes = read_back(&workspace, &Side::Stored(checkpoint.snapshot)).unwrap();
        let gaps = workspace.checkpoints().gaps(&checkpoint).unwrap();
        let unstable: Vec<_> = gaps.iter().map(|gap| (gap.path.as_bytes(), gap.kind)).collect();
        assert!(unstable.iter().all(|(_, kind)| *kind == GapKind::Unstable), "{unstable:?}");
        assert_whole(&nodes, |name| unstable.iter().any(|(path, _)| *path == name));
    }
}

/// The body of the two processes; on its own it has nothing to do.
#[test]
fn checkpoints_in_a_child_process() {
    let Some(who) = std::env::var_os("RETAKE_TEST_CHILD") else { return };
    let who: i64 = who.to_str().unwrap().parse().unwrap();
    let path = |variable| PathBuf::from(std::env::var_os(variable).unwrap());
    let environment = environment(&path("RETAKE_TEST_ROOT"), path("RETAKE_TEST_STORE"));
    let mut workspace = Workspace::open(environment.clone()).unwrap();
    for round in 0..ROUNDS {
        // Half of the rounds as a new run of the command line would, half as a long-lived process.
        if round % 2 == 0 {
            workspace = Workspace::open(environment.clone()).unwrap();
        }
        workspace.checkpoints_mut().take(numbered(who * 1_000 + round), Durability::Soon, &NoProgress).unwrap();
    }
}

fn start_child(who: u32, root: &Path, store: &Path) -> std::process::Child {
    let mut command = rerun::test(CHILD);
    command.env("RETAKE_TEST_CHILD", who.to_string()).env("RETAKE_TEST_ROOT", root).env("RETAKE_TEST_STORE", store);
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_store_that_another_process_makes_at_the_same_moment_has_lost_nothing() {
    let _turn = take_turn();
    let scratch = Scratch::new();
    let (root, data_dir) = (scratch.dir("root"), scratch.dir("store"));
    fs::write(root.join("file"), stamped(1)).unwrap();
    let make = move |number| {
        let mut workspace = Workspace::open_or_create(environment(&root, data_dir.clone())).unwrap();
        workspace.checkpoints_mut().take(numbered(number), Durability::Synced, &NoProgress).unwrap();
        workspace
    };
    let other = make.clone();
    when("store-contents-seen", move || drop(other(1)));
    assert_eq!(make(2).checkpoints().all().unwrap().len(), 2);
    fail::remove("store-contents-seen");
}

fn write_until(root: &Path, beside: &Path, is_over: &AtomicBool) {
    let files = ["one", "two"].map(|name| File::options().write(true).open(root.join(name)).unwrap());
    for pass in 1_u64.. {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        for file in &files {
            for block in 0..BLOCKS {
                file.write_all_at(&pass.to_le_bytes(), (block * BLOCK) as u64).unwrap();
            }
        }
        fs::write(beside.join("saved"), stamped(pass)).unwrap();
        fs::rename(beside.join("saved"), root.join("whole")).unwrap();
    }
}

fn stamped(pass: u64) -> Vec<u8> {
    (0..BLOCKS).flat_map(|_| [pass.to_le_bytes().as_slice(), &[0; BLOCK - 8]].concat()).collect()
}

/// Checks that each file is there, or said to be missing, and in a state that it once had.
fn assert_whole(nodes: &NaiveNodes, is_gap: impl Fn(&[u8]) -> bool) {
    for name in ["one", "two", "whole"].map(str::as_bytes) {
        let Some(node) = nodes.get(name) else {
            assert!(is_gap(name), "{} is missing and no gap says so", name.escape_ascii());
            continue;
        };
        assert_eq!(node.content.len(), BLOCK * BLOCKS, "{}", name.escape_ascii());
        let stamp = |block: &[u8]| u64::from_le_bytes(block[..8].try_into().unwrap());
        let stamps: Vec<u64> = node.content.chunks(BLOCK).map(stamp).collect();
        let (first, last) = (stamps[0], stamps[BLOCKS - 1]);
        let once_was = stamps.is_sorted_by(|a, b| a >= b) && first - last <= u64::from(name != b"whole");
        assert!(once_was, "{} was never in the state {stamps:?}", name.escape_ascii());
    }
}
