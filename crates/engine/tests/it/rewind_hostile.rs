//! Rewinds under attack: directories swapped under them, damaged stores, editors that save meanwhile, trees that bite.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use retake_engine::Workspace;
use retake_engine::id::ObjectId;
use retake_engine::progress::NoProgress;
use retake_engine::rewind::{Conflict, OnConflict, PathStatus, RewindError, RewindRequest};
use retake_engine::snapshot::Node;
use retake_engine::view::Side;
use retake_testkit::privilege::{assert_denied, give_to_nobody, run_as_nobody};
use retake_testkit::rerun;
use retake_testkit::tinyfs::{Ran, TinyFs, within_mounts};

use crate::rewind::{Bench, conflicts, exactly, path};
use crate::scanners::environment;

/// Lets `event` happen once, when a rewind of this thread comes to `place`.
pub(crate) fn when(place: &str, event: impl Fn() + Send + Sync + 'static) {
    let (thread, done) = (std::thread::current().id(), AtomicBool::new(false));
    // Other tests of this process pass the same place.
    fail::cfg_callback(place, move || {
        if std::thread::current().id() == thread && !done.swap(true, Ordering::Relaxed) {
            event();
        }
    })
    .unwrap();
}

/// One test at a time: a place has one event.
static EVENTS: Mutex<()> = Mutex::new(());

/// Waits until no other test has an event.
pub(crate) fn take_turn() -> MutexGuard<'static, ()> {
    EVENTS.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn a_parent_swapped_for_a_link_leads_nowhere() {
    let _turn = take_turn();
    for place in ["rewind-staged", "rewind-armed"] {
        let mut bench = Bench::new();
        let outside = bench.scratch.dir("outside");
        fs::write(outside.join("file"), "outside").unwrap();
        bench.write("dir/file", "one");
        let start = bench.checkpoint();
        bench.write("dir/file", "two");
        let root = bench.root.clone();
        let target = outside.clone();
        when(place, move || {
            fs::rename(root.join("dir"), root.join("moved")).unwrap();
            symlink(&target, root.join("dir")).unwrap();
        });
        let refused = bench.exact(&start);
        assert!(refused.is_err(), "{place}: {refused:?}");
        assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "outside", "{place}");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1, "{place}");
        assert_eq!(bench.read("moved/file").as_deref(), Some("two"), "{place}");
        // Once the directory is back, so is everything else, and nothing lies about.
        fs::remove_file(bench.root.join("dir")).unwrap();
        fs::rename(bench.root.join("moved"), bench.root.join("dir")).unwrap();
        bench.recover();
        assert_eq!(bench.names(), ["dir", "dir/file"], "{place}");
        assert_eq!(bench.read("dir/file").as_deref(), Some("two"), "{place}");
        bench.exact(&start).unwrap();
        assert_eq!(bench.read("dir/file").as_deref(), Some("one"), "{place}");
        fail::remove(place);
    }
}

#[test]
fn what_changes_between_staging_and_the_swap_is_refused_or_kept() {
    let _turn = take_turn();
    let mut bench = Bench::new();
    bench.write("file", "one");
    let start = bench.checkpoint();
    bench.write("file", "two");
    let root = bench.root.clone();
    when("rewind-staged", move || fs::write(root.join("file"), "saved before the swap").unwrap());
    assert!(matches!(bench.exact(&start), Err(RewindError::Stale { .. })));
    assert_eq!(bench.read("file").as_deref(), Some("saved before the swap"));
    fail::remove("rewind-staged");

    let root = bench.root.clone();
    when("rewind-armed", move || fs::write(root.join("file"), "saved at the last moment").unwrap());
    let applied = bench.exact(&start).unwrap();
    fail::remove("rewind-armed");
    assert_eq!(applied.statuses, [(path("file"), PathStatus::Displaced)]);
    assert_eq!(bench.read("file").as_deref(), Some("one"));
    bench.undo().unwrap();
    assert_eq!(bench.read("file").as_deref(), Some("saved at the last moment"));
}

#[test]
fn a_damaged_content_is_told_before_anything_is_changed_and_only_its_path_fails() {
    let mut bench = Bench::new();
    let noise: Vec<u8> = (0..200_u32).flat_map(|n| *ObjectId::of(&n.to_le_bytes()).as_bytes()).collect();
    fs::write(bench.root.join("damaged"), &noise).unwrap();
    bench.write("sound", "one");
    let start = bench.checkpoint();
    let pack = bench.workspace.store_dir().join("packs/00000001.pack");
    let mut bytes = fs::read(&pack).unwrap();
    let at = bytes.windows(64).position(|window| window == &noise[1000..1064]).expect("noise is stored as it is");
    bytes[at] ^= 1;
    fs::write(&pack, bytes).unwrap();
    bench.write("damaged", "two");
    bench.write("sound", "two");
    let plan = bench.workspace.rewinds().plan(&exactly(&start), &NoProgress).unwrap();
    let told: Vec<_> = plan.conflicts().map(|path| path.path.display().to_string()).collect();
    assert_eq!(told, ["damaged"]);
    assert_eq!(conflicts(bench.exact(&start)), [("damaged".to_owned(), Conflict::Damaged)]);
    assert_eq!((bench.read("damaged").as_deref(), bench.read("sound").as_deref()), (Some("two"), Some("two")));
    let request = exactly(&start);
    let choices = [(path("damaged"), OnConflict::Keep)].into();
    let applied = bench.apply(&RewindRequest { choices, ..request }).unwrap();
    assert_eq!(applied.statuses, [(path("damaged"), PathStatus::Kept), (path("sound"), PathStatus::Done)]);
    assert_eq!((bench.read("damaged").as_deref(), bench.read("sound").as_deref()), (Some("two"), Some("one")));
    assert_eq!(bench.names(), ["damaged", "sound"]);
}

#[test]
fn every_version_that_an_editor_saves_meanwhile_is_on_disk_or_in_the_store() {
    for in_place in [true, false] {
        let mut bench = Bench::new();
        bench.write("file", "start");
        for n in 0..40 {
            bench.write(&format!("other/{n}"), "1");
        }
        let start = bench.checkpoint();
        let stop = Arc::new(AtomicBool::new(false));
        let rounds = Arc::new(AtomicU64::new(0));
        let editor = {
            let (file, temp) = (bench.root.join("file"), bench.scratch.path().join("saving"));
            let (stop, rounds) = (Arc::clone(&stop), Arc::clone(&rounds));
            std::thread::spawn(move || edit_until(&stop, &rounds, &file, &temp, in_place))
        };
        let (mut applied, mut displaced) = (0, 0);
        // As many as it takes for the two to meet a few times.
        for round in 0..2_000 {
            rounds.store(round, Ordering::Relaxed);
            for n in 0..40 {
                bench.write(&format!("other/{n}"), &format!("round {round}"));
            }
            if let Ok(done) = bench.exact(&start) {
                applied += 1;
                displaced += u32::from(done.statuses.iter().any(|(_, status)| *status == PathStatus::Displaced));
            }
            if round >= 30 && applied >= 5 && (displaced > 0 || round >= 200) {
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
        let replaced = editor.join().unwrap();
        let last = bench.read("file").unwrap();
        let side = Side::Stored(start.snapshot);
        for version in &replaced {
            let node = |content: &str| Node {
                kind: retake_engine::snapshot::NodeKind::File,
                mode: 0o644,
                content: ObjectId::of(content.as_bytes()),
                size: content.len() as u64,
            };
            let stored = bench.workspace.content(&side, &path("file"), &node(version), &mut Vec::new()).is_ok();
            assert!(stored || *version == last, "lost: {version}");
        }
        assert!(applied > 0, "in place: {in_place}: no rewind got through");
        assert!(!replaced.is_empty(), "in place: {in_place}: no version was ever replaced");
    }
}

/// Saves one version after the other; returns those that somebody else replaced before the next one was saved.
fn edit_until(stop: &AtomicBool, rounds: &AtomicU64, file: &Path, temp: &Path, in_place: bool) -> Vec<String> {
    let mut replaced = Vec::new();
    let mut number = 0_u64;
    while !stop.load(Ordering::Relaxed) {
        number += 1;
        let version = format!("version {number} {}", "x".repeat((number % 50) as usize));
        if in_place {
            fs::write(file, &version).unwrap();
        } else {
            fs::write(temp, &version).unwrap();
            fs::rename(temp, file).unwrap();
        }
        if number.is_multiple_of(2) {
            // A save between capture and change refuses the rewind, so a whole round has this version to replace, however long it takes.
            let round = rounds.load(Ordering::Relaxed);
            while rounds.load(Ordering::Relaxed) < round + 2 && !stop.load(Ordering::Relaxed) {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        } else {
            std::thread::sleep(std::time::Duration::from_millis(number % 7 * 4));
        }
        if fs::read_to_string(file).is_ok_and(|now| now != version) {
            replaced.push(version);
        }
    }
    replaced
}

#[test]
fn what_is_mounted_below_is_not_touched() {
    if within_mounts("rewind_hostile::what_is_mounted_below_is_not_touched") == Ran::InChild {
        return;
    }
    let mut bench = Bench::new();
    bench.write("file", "one");
    bench.write("mounted/inside", "one");
    let start = bench.checkpoint();
    bench.write("file", "two");
    let mount = TinyFs::over(&bench.root.join("mounted"), 1 << 20);
    bench.write("mounted/inside", "on the other file system");
    bench.write("mounted/more", "more");
    let not_captured = ["mounted", "mounted/inside"].map(|path| (path.to_owned(), Conflict::NotCaptured));
    assert_eq!(conflicts(bench.exact(&start)), not_captured);
    let request = exactly(&start);
    let choices = ["mounted", "mounted/inside"].map(|name| (path(name), OnConflict::Keep)).into();
    bench.apply(&RewindRequest { choices, ..request }).unwrap();
    assert_eq!(bench.read("file").as_deref(), Some("one"));
    assert_eq!(bench.read("mounted/inside").as_deref(), Some("on the other file system"));
    assert_eq!(bench.names(), ["file", "mounted", "mounted/inside", "mounted/more"]);
    drop(mount);
    assert_eq!(bench.read("mounted/inside").as_deref(), Some("one"));
}

#[test]
fn another_name_of_a_file_keeps_its_content() {
    let mut bench = Bench::new();
    bench.write("file", "one");
    let start = bench.checkpoint();
    bench.write("file", "two");
    let outside = bench.scratch.path().join("other-name");
    fs::hard_link(bench.root.join("file"), &outside).unwrap();
    bench.exact(&start).unwrap();
    assert_eq!(bench.read("file").as_deref(), Some("one"));
    assert_eq!(fs::read_to_string(&outside).unwrap(), "two");
    assert_eq!(fs::metadata(&outside).unwrap().nlink(), 1);
}

#[test]
fn names_that_differ_in_case_only_are_two_names() {
    let mut bench = Bench::new();
    bench.write("README", "upper");
    let start = bench.checkpoint();
    fs::rename(bench.root.join("README"), bench.root.join("readme")).unwrap();
    bench.exact(&start).unwrap();
    assert_eq!(bench.names(), ["README"]);
    bench.undo().unwrap();
    assert_eq!(bench.names(), ["readme"]);
}

#[test]
fn another_branch_has_to_be_confirmed() {
    let mut bench = Bench::new();
    for branch in ["main", "other"] {
        bench.write(&format!(".git/refs/heads/{branch}"), &"1".repeat(40));
    }
    bench.write(".git/HEAD", "ref: refs/heads/main\n");
    bench.write("file", "one");
    let start = bench.checkpoint();
    bench.write("file", "two");
    bench.write(".git/HEAD", "ref: refs/heads/other\n");
    let request = exactly(&start);
    match bench.apply(&request) {
        Err(RewindError::Refused { plan }) => {
            let moved = plan.branch.unwrap();
            assert_eq!((moved.then.as_str(), moved.now.as_str()), ("main", "other"));
            assert_eq!(plan.ledger[0].remedy.as_deref(), Some("git symbolic-ref HEAD refs/heads/main"));
        }
        other => panic!("{other:?}"),
    }
    bench.apply(&RewindRequest { across_branches: true, ..request }).unwrap();
    assert_eq!(bench.read("file").as_deref(), Some("one"));
    assert_eq!(bench.read(".git/HEAD").as_deref(), Some("ref: refs/heads/other\n"));
}

#[test]
fn a_moved_workspace_goes_back_where_it_is_now() {
    let mut bench = Bench::new();
    bench.write("file", "one");
    let start = bench.checkpoint();
    bench.write("file", "two");
    let moved = bench.scratch.path().join("moved");
    let from = bench.root.clone();
    fs::rename(&from, &moved).unwrap();
    bench.workspace = Workspace::relink(environment(&moved, bench.scratch.path().join("store")), &from).unwrap();
    bench.root = moved;
    bench.exact(&start).unwrap();
    assert_eq!(bench.read("file").as_deref(), Some("one"));
    assert!(!from.exists());
}

#[test]
fn read_only_directories_and_unreadable_files_are_no_obstacle_and_no_loss() {
    let scratch = retake_testkit::Scratch::new();
    assert_denied(scratch.path());
    scratch.dir("work");
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).unwrap();
    give_to_nobody(&scratch.path().join("work"));
    let mut command = rerun::test("rewind_hostile::without_privileges");
    command.env("RETAKE_UNPRIVILEGED", scratch.path().join("work"));
    let output = run_as_nobody(command).output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

/// Run by the test above as somebody who is denied things; does nothing when the test runner calls it.
#[test]
fn without_privileges() {
    let Some(place) = std::env::var_os("RETAKE_UNPRIVILEGED").map(std::path::PathBuf::from) else { return };
    let mut bench = Bench::at(&place);
    let chmod = |bench: &Bench, path: &str, mode: u32| {
        fs::set_permissions(bench.root.join(path), fs::Permissions::from_mode(mode)).unwrap();
    };
    bench.write("locked/file", "one");
    bench.write("locked/gone", "gone");
    bench.write("read-only", "one");
    bench.write("secret", "one");
    chmod(&bench, "read-only", 0o444);
    chmod(&bench, "locked", 0o555);
    let start = bench.checkpoint();
    chmod(&bench, "locked", 0o755);
    bench.write("locked/file", "two");
    bench.remove("locked/gone");
    bench.write("locked/new", "new");
    chmod(&bench, "locked", 0o555);
    chmod(&bench, "read-only", 0o644);
    bench.write("read-only", "two");
    chmod(&bench, "secret", 0o000);
    assert_eq!(conflicts(bench.exact(&start)), [("secret".to_owned(), Conflict::NotCaptured)]);
    chmod(&bench, "secret", 0o600);
    let applied = bench.exact(&start).unwrap();
    assert!(applied.statuses.iter().all(|(_, status)| *status == PathStatus::Done), "{applied:?}");
    assert_eq!(bench.workspace.current(&NoProgress).unwrap().snapshot(), start.snapshot);
    let mode = |bench: &Bench, path: &str| fs::metadata(bench.root.join(path)).unwrap().mode() & 0o7777;
    assert_eq!((mode(&bench, "locked"), mode(&bench, "read-only"), mode(&bench, "secret")), (0o555, 0o444, 0o644));
    bench.undo().unwrap();
    assert_eq!(bench.read("locked/new").as_deref(), Some("new"));
    assert_eq!(mode(&bench, "locked"), 0o555);
    chmod(&bench, "locked", 0o755);
}
