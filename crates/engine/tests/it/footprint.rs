//! What the engine leaves behind: nothing in version control, nothing in the workspace, and only private files in the store.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use retake_engine::progress::NoProgress;
use retake_engine::view::Side;
use retake_engine::{Durability, WatchState, Workspace};
use retake_testkit::naive::{self, Reading};
use retake_testkit::repos::{self, State};
use retake_testkit::{Scratch, fingerprint};

use crate::compare;
use crate::scanners::{environment, numbered};

#[test]
fn no_state_of_a_repository_is_touched_and_its_files_are_captured() {
    for state in State::ALL {
        let scratch = Scratch::new();
        let root = repos::make(state, scratch.path());
        let before = (fingerprint(&root), everything(&root));
        do_everything(&root, &scratch.path().join("store"));
        before.0.assert_same(&fingerprint(&root));
        assert_eq!(before.1, everything(&root), "{state:?}");
    }
}

#[test]
fn a_directory_without_git_keeps_inodes_times_and_modes() {
    let scratch = Scratch::new();
    let root = scratch.dir("plain");
    repos::write(&root, "src/main.rs", "fn main() {}\n");
    repos::write(&root, ".gitignore", "*.log\n");
    repos::write(&root, "noise.log", "noise\n");
    let before = everything(&root);
    do_everything(&root, &scratch.path().join("store"));
    assert_eq!(before, everything(&root));
}

#[test]
fn the_store_is_for_its_owner_alone() {
    let scratch = Scratch::new();
    let (root, store) = (scratch.dir("plain"), scratch.path().join("store"));
    repos::write(&root, "a", "secret\n");
    do_everything(&root, &store);
    for (path, trace) in everything(&store) {
        let wanted = if store.join(&path).is_dir() { 0o700 } else { 0o600 };
        assert_eq!(trace.mode & 0o7777, wanted, "{}", path.display());
    }
    assert_eq!(fs::metadata(&store).unwrap().permissions().mode() & 0o7777, 0o700);
}

/// Every operation that issue 2 knows, with a change of the workspace's own in between that is taken back before the end.
fn do_everything(root: &Path, store: &Path) {
    let read = || naive::read(root, &Reading::default()).unwrap().nodes;
    let truth = read();
    let mut workspace = Workspace::open_or_create(environment(root, store.to_owned())).unwrap();
    let first = workspace.checkpoints_mut().take(numbered(1), Durability::Synced, &NoProgress).unwrap();
    compare::tree("the snapshot", &workspace, &Side::Stored(first.snapshot), &truth).unwrap();
    assert!(matches!(workspace.watch(), WatchState::Watching { .. }));
    let second = workspace.checkpoints_mut().take(numbered(2), Durability::Soon, &NoProgress).unwrap();
    assert_eq!(first.snapshot, second.snapshot);
    workspace.checkpoints_mut().set_label(second.id, Some("point")).unwrap();
    let now = workspace.current(&NoProgress).unwrap();
    assert!(workspace.diff(&Side::Stored(first.snapshot), &Side::Now(&now)).unwrap().is_empty());
    drop(workspace);
    let workspace = Workspace::open(environment(root, store.to_owned())).unwrap();
    assert_eq!(workspace.checkpoints().resolve("point").unwrap().id, second.id);
    assert_eq!(workspace.checkpoints().all().unwrap().len(), 2);
    assert!(workspace.maintenance().usage().unwrap().checkpoints == 2);
}

#[derive(Debug, PartialEq, Eq)]
struct Trace {
    mode: u32,
    inode: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// Every path below `root`, ignored ones and version control too.
fn everything(root: &Path) -> BTreeMap<PathBuf, Trace> {
    let mut traces = BTreeMap::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let trace = Trace {
                mode: metadata.mode(),
                inode: metadata.ino(),
                modified: (metadata.mtime(), metadata.mtime_nsec()),
                changed: (metadata.ctime(), metadata.ctime_nsec()),
            };
            traces.insert(path.strip_prefix(root).unwrap().to_owned(), trace);
            if metadata.is_dir() {
                directories.push(path);
            }
        }
    }
    traces
}
