//! What is kept: the budget, damage, lost tails, interrupted first snapshots.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use retake_engine::checkpoint::{CheckpointError, NewCheckpoint};
use retake_engine::progress::{NoProgress, Phase, Progress, Step};
use retake_engine::view::Side;
use retake_engine::{Durability, ScanError, StoreError, Workspace, WorkspacePath};
use retake_testkit::Scratch;

use crate::scanners::{environment, numbered};

/// Bytes that do not compress.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

fn labelled(number: i64, label: &str) -> NewCheckpoint {
    NewCheckpoint { label: Some(label.to_owned()), ..numbered(number) }
}

fn store_bytes(workspace: &Workspace) -> u64 {
    workspace.maintenance().usage().unwrap().store_bytes
}

fn read(workspace: &Workspace, point: &str, path: &str) -> Result<Vec<u8>, String> {
    let made = workspace.checkpoints().resolve(point).map_err(|err| err.to_string())?;
    let side = Side::Stored(made.snapshot);
    let path = WorkspacePath::parse(path.as_bytes()).unwrap();
    let node = workspace.entry(&side, &path).map_err(|err| err.to_string())?.ok_or("not there")?;
    let mut out = Vec::new();
    workspace.content(&side, &path, &node, &mut out).map_err(|err| err.to_string())?;
    Ok(out)
}

#[test]
fn the_budget_is_never_exceeded() {
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    let mut env = environment(&root, scratch.path().join("store"));
    env.settings.budget = 2 << 20;
    let budget = env.settings.budget;
    let mut workspace = Workspace::open_or_create(env).unwrap();
    fs::write(root.join("file"), noise(1000, 200_000)).unwrap();
    workspace.checkpoints_mut().take(labelled(1, "pinned"), Durability::Soon, &NoProgress).unwrap();
    for number in 2..40 {
        fs::write(root.join("file"), noise(number as u64, 200_000)).unwrap();
        workspace.checkpoints_mut().take(numbered(number), Durability::Soon, &NoProgress).unwrap();
        assert!(store_bytes(&workspace) <= budget, "{} bytes after {number}", store_bytes(&workspace));
    }
    let kept = workspace.checkpoints().all().unwrap();
    assert!(kept.len() < 12, "old ones went");
    assert_eq!(kept.last().unwrap().label.as_deref(), Some("pinned"), "the labelled one stays");
    let numbers: Vec<i64> = kept.iter().map(|checkpoint| checkpoint.at.0).collect();
    assert!(numbers[..numbers.len() - 1].windows(2).all(|pair| pair[0] == pair[1] + 1), "the newest stay: {numbers:?}");
    assert_eq!(read(&workspace, "pinned", "file").unwrap(), noise(1000, 200_000));
    assert!(workspace.maintenance().check().unwrap().damage.is_empty());

    // Too much even without all that may go: refused whole, and nothing goes.
    fs::write(root.join("huge"), noise(77, 3 << 20)).unwrap();
    let refused = workspace.checkpoints_mut().take(numbered(99), Durability::Soon, &NoProgress);
    assert!(matches!(refused, Err(CheckpointError::Budget { .. })), "{refused:?}");
    assert_eq!(workspace.checkpoints().all().unwrap(), kept);
    assert!(store_bytes(&workspace) <= budget);
    assert!(workspace.maintenance().check().unwrap().affected.is_empty());
    fs::remove_file(root.join("huge")).unwrap();
    workspace.checkpoints_mut().take(numbered(100), Durability::Soon, &NoProgress).unwrap();
    assert!(workspace.maintenance().check().unwrap().affected.is_empty());
}

#[test]
fn what_fits_only_when_compressed_with_care_is_compressed_with_care() {
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    let mut env = environment(&root, scratch.path().join("store"));
    // Hexadecimal digits of noise: one compressor halves them, the quick one finds nothing in them.
    let digits = |seed| noise(seed, 1 << 18).iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect();
    let files: Vec<Vec<u8>> = (0..40).map(digits).collect();
    for (number, content) in files.iter().enumerate() {
        fs::write(root.join(number.to_string()), content).unwrap();
    }
    env.settings.budget = 14 << 20;
    let mut workspace = Workspace::open_or_create(env).unwrap();
    workspace.checkpoints_mut().take(labelled(1, "all"), Durability::Soon, &NoProgress).unwrap();
    assert!(store_bytes(&workspace) <= 14 << 20);
    assert_eq!(read(&workspace, "all", "39").unwrap(), files[39]);
}

#[test]
fn damage_is_named_and_the_rest_stays_readable() {
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    fs::write(root.join("good"), noise(1, 5000)).unwrap();
    let mut workspace = Workspace::open_or_create(environment(&root, scratch.path().join("store"))).unwrap();
    workspace.checkpoints_mut().take(labelled(1, "one"), Durability::Synced, &NoProgress).unwrap();
    let pack = workspace.store_dir().join("packs/00000001.pack");
    let before = fs::metadata(&pack).unwrap().len();
    fs::write(root.join("bad"), noise(2, 5000)).unwrap();
    workspace.checkpoints_mut().take(labelled(2, "two"), Durability::Synced, &NoProgress).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&pack).unwrap();
    file.write_all_at(b"damage", before + 2000).unwrap();

    assert_eq!(read(&workspace, "two", "good").unwrap(), noise(1, 5000));
    assert_eq!(read(&workspace, "one", "good").unwrap(), noise(1, 5000));
    let error = read(&workspace, "two", "bad").unwrap_err();
    assert!(error.contains("damaged"), "{error}");
    let integrity = workspace.maintenance().check().unwrap();
    assert_eq!(integrity.damage.len(), 1, "{:?}", integrity.damage);
    let affected: Vec<_> = integrity.affected.iter().map(|checkpoint| checkpoint.label.as_deref()).collect();
    assert_eq!(affected, [Some("two")]);
}

#[test]
fn what_power_loss_took_is_found_out_and_what_was_synced_stays() {
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    let store = scratch.path().join("store");
    fs::write(root.join("file"), noise(1, 5000)).unwrap();
    let mut workspace = Workspace::open_or_create(environment(&root, store.clone())).unwrap();
    workspace.checkpoints_mut().take(labelled(1, "synced"), Durability::Synced, &NoProgress).unwrap();
    let pack = workspace.store_dir().join("packs/00000001.pack");
    let synced = fs::metadata(&pack).unwrap().len();
    fs::write(root.join("file"), noise(2, 5000)).unwrap();
    workspace.checkpoints_mut().take(labelled(2, "soon"), Durability::Soon, &NoProgress).unwrap();
    drop(workspace);
    // The rows are there, the pages of the segment never reached the disk: zeros.
    let len = fs::metadata(&pack).unwrap().len();
    let file = fs::OpenOptions::new().write(true).open(&pack).unwrap();
    file.write_all_at(&vec![0; usize::try_from(len - synced).unwrap()], synced).unwrap();

    let mut workspace = Workspace::open(environment(&root, store)).unwrap();
    assert_eq!(read(&workspace, "synced", "file").unwrap(), noise(1, 5000));
    fs::write(root.join("other"), "so that something is written").unwrap();
    workspace.checkpoints_mut().take(labelled(3, "after"), Durability::Synced, &NoProgress).unwrap();
    assert_eq!(read(&workspace, "after", "file").unwrap(), noise(2, 5000), "it was read again from disk");
    assert_eq!(read(&workspace, "synced", "file").unwrap(), noise(1, 5000));
}

/// Cancels after a number of files; counts what was read.
struct Cancelling {
    after: u64,
    read: AtomicU64,
}

impl Progress for Cancelling {
    fn report(&self, step: Step) {
        if step.phase == Phase::Reading {
            self.read.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn cancelled(&self) -> bool {
        self.read.load(Ordering::Relaxed) >= self.after
    }
}

#[test]
fn a_cancelled_first_snapshot_goes_on_where_it_stopped() {
    let scratch = Scratch::on_disk();
    let root = scratch.dir("root");
    for number in 0..300 {
        fs::write(root.join(format!("{number}")), noise(number, 100)).unwrap();
    }
    age(&root);
    let store = scratch.path().join("store");
    let progress = Cancelling { after: 200, read: AtomicU64::new(0) };
    let mut workspace = Workspace::open_or_create(environment(&root, store.clone())).unwrap();
    let cancelled = workspace.checkpoints_mut().take(numbered(1), Durability::Synced, &progress);
    assert!(matches!(cancelled, Err(CheckpointError::Scan(ScanError::Cancelled))), "{cancelled:?}");
    assert!(workspace.checkpoints().all().unwrap().is_empty());
    drop(workspace);
    let progress = Cancelling { after: u64::MAX, read: AtomicU64::new(0) };
    let mut workspace = Workspace::open_or_create(environment(&root, store)).unwrap();
    workspace.checkpoints_mut().take(labelled(2, "whole"), Durability::Synced, &progress).unwrap();
    let read_again = progress.read.into_inner();
    assert!(read_again <= 101, "{read_again} files were read the second time");
    for number in 0..300 {
        assert_eq!(read(&workspace, "whole", &number.to_string()).unwrap(), noise(number, 100));
    }
}

/// Waits until nothing in `root` is racy any more: until a new file's time is clearly later.
fn age(root: &Path) {
    let newest = || fs::metadata(root.join("probe")).unwrap().modified().unwrap();
    fs::write(root.join("probe"), "").unwrap();
    let first = newest();
    while newest().duration_since(first).unwrap_or_default().as_millis() < 40 {
        fs::write(root.join("probe"), "x").unwrap();
    }
    fs::remove_file(root.join("probe")).unwrap();
}

#[test]
fn a_damaged_or_missing_index_changes_no_snapshot() {
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    for number in 0..50_u64 {
        fs::create_dir_all(root.join(format!("d{}", number % 7))).unwrap();
        fs::write(root.join(format!("d{}/{number}", number % 7)), noise(number, 100)).unwrap();
    }
    let store = scratch.path().join("store");
    let mut workspace = Workspace::open_or_create(environment(&root, store.clone())).unwrap();
    let expected = workspace.checkpoints_mut().take(numbered(1), Durability::Soon, &NoProgress).unwrap().snapshot;
    let index = workspace.store_dir().join("index");
    let sound = fs::read(&index).unwrap();
    let mut number = 1;
    let mut check = |bytes: Option<&[u8]>| {
        number += 1;
        match bytes {
            Some(bytes) => fs::write(&index, bytes).unwrap(),
            None => fs::remove_file(&index).unwrap(),
        }
        let mut workspace = Workspace::open(environment(&root, store.clone())).unwrap();
        let made = workspace.checkpoints_mut().take(numbered(number), Durability::Soon, &NoProgress).unwrap();
        assert_eq!(made.snapshot, expected);
        assert!(workspace.maintenance().check().unwrap().affected.is_empty());
    };
    check(None);
    check(Some(b""));
    check(Some(b"garbage that is no index"));
    for cut in (0..sound.len()).step_by(sound.len() / 23) {
        check(Some(&sound[..cut]));
    }
    for at in (0..sound.len()).step_by(97) {
        let mut damaged = sound.clone();
        damaged[at] ^= 0x55;
        check(Some(&damaged));
    }
}

#[test]
fn a_store_of_a_newer_version_is_not_touched() {
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    let store = scratch.path().join("store");
    let workspace = Workspace::open_or_create(environment(&root, store.clone())).unwrap();
    let db = workspace.store_dir().join("retake.db");
    drop(workspace);
    let connection = rusqlite::Connection::open(&db).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    let opened = Workspace::open(environment(&root, store));
    let newer = matches!(opened, Err(retake_engine::OpenError::Store(StoreError::Newer { found: 99, .. })));
    assert!(newer, "{opened:?}");
}

#[test]
fn a_refused_checkpoint_takes_no_earlier_one_with_it() {
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    let mut env = environment(&root, scratch.path().join("store"));
    env.settings.budget = 3 << 20;
    let mut workspace = Workspace::open_or_create(env).unwrap();
    for number in 1..=6 {
        fs::write(root.join("f"), noise(number as u64, 300_000)).unwrap();
        workspace.checkpoints_mut().take(numbered(number), Durability::Soon, &NoProgress).unwrap();
    }
    // Sizes around the point where it just fits, or just does not, once all that may go is gone.
    for (number, size) in (2_000_000..3_100_000).step_by(20_000).rev().enumerate() {
        fs::write(root.join("big"), noise(size as u64, size)).unwrap();
        let before = workspace.checkpoints().all().unwrap();
        match workspace.checkpoints_mut().take(numbered(100 + number as i64), Durability::Soon, &NoProgress) {
            Ok(_) => break,
            Err(CheckpointError::Budget { .. }) => {
                assert_eq!(workspace.checkpoints().all().unwrap(), before, "{size}")
            }
            Err(other) => panic!("{size}: {other}"),
        }
    }
    assert!(store_bytes(&workspace) <= 3 << 20);
}

#[test]
fn contents_without_their_database_are_not_written_over() {
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    let store = scratch.path().join("store");
    fs::write(root.join("file"), noise(1, 5000)).unwrap();
    let mut workspace = Workspace::open_or_create(environment(&root, store.clone())).unwrap();
    workspace.checkpoints_mut().take(numbered(1), Durability::Synced, &NoProgress).unwrap();
    let dir = workspace.store_dir().to_owned();
    drop(workspace);
    for name in ["retake.db", "retake.db-wal", "retake.db-shm"] {
        fs::remove_file(dir.join(name)).unwrap();
    }
    let pack = fs::read(dir.join("packs/00000001.pack")).unwrap();
    for _ in 0..2 {
        let opened = Workspace::open_or_create(environment(&root, store.clone()));
        let orphaned = matches!(opened, Err(retake_engine::OpenError::Store(StoreError::Orphaned { .. })));
        assert!(orphaned, "{opened:?}");
        assert_eq!(fs::read(dir.join("packs/00000001.pack")).unwrap(), pack);
    }
}

#[test]
fn a_cancelled_verification_leaves_nothing_that_was_only_hashed() {
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    let mut workspace = Workspace::open_or_create(environment(&root, scratch.path().join("store"))).unwrap();
    for number in 0..20_u64 {
        fs::write(root.join(format!("{number}")), noise(number, 100)).unwrap();
    }
    workspace.checkpoints_mut().take(numbered(1), Durability::Soon, &NoProgress).unwrap();
    for after in 0..25_u64 {
        for number in 0..20 {
            fs::write(root.join(format!("{number}")), noise(1000 + after * 50 + number, 100)).unwrap();
        }
        let progress = Cancelling { after, read: AtomicU64::new(0) };
        workspace.checkpoints_mut().verify(numbered(1_000 + after as i64), &progress).ok();
        let label = format!("after {after}");
        workspace.checkpoints_mut().take(labelled(100 + after as i64, &label), Durability::Soon, &NoProgress).unwrap();
        for number in 0..20 {
            let read = read(&workspace, &label, &number.to_string()).unwrap();
            assert_eq!(read, noise(1000 + after * 50 + number, 100));
        }
    }
}

#[test]
fn the_log_of_the_database_stays_short() {
    let scratch = Scratch::new();
    let root = scratch.dir("root");
    let store = scratch.path().join("store");
    fs::write(root.join("file"), "x").unwrap();
    for number in 0..120 {
        // As a fresh process would.
        let mut workspace = Workspace::open_or_create(environment(&root, store.clone())).unwrap();
        workspace.checkpoints_mut().take(numbered(number), Durability::Soon, &NoProgress).unwrap();
        let log = fs::metadata(workspace.store_dir().join("retake.db-wal")).unwrap().len();
        assert!(log < 1 << 20, "{log} bytes after {number}");
    }
}
