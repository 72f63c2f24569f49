//! Tools whose process was killed: what they did goes back, what anybody did after them does not.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use retake_engine::id::{OperationId, SessionId};
use retake_engine::limits::DEATH_GRACE_MS;
use retake_engine::progress::NoProgress;
use retake_engine::rewind::{Applied, Conflict, Goal, OnConflict, RewindError, RewindRequest};
use retake_engine::window::{Began, NewWindow, PartOf, Reach};
use retake_engine::{Timestamp, Workspace};
use retake_testkit::rerun;

use super::{Bench, conflicts, random};
use crate::scanners::{environment, numbered};

const CHILD: &str = "rewind::killed::works_in_a_child_process_until_it_is_killed";

fn anything(session: SessionId) -> NewWindow {
    NewWindow {
        session,
        turn: None,
        tool: "bash: work".to_owned(),
        reach: Reach::Everything,
        declared: Vec::new(),
        operation: PartOf::Own(OperationId::new(Timestamp(7), random(7, 7))),
    }
}

/// The body of the other process; on its own it has nothing to do.
#[test]
fn works_in_a_child_process_until_it_is_killed() {
    let Some(root) = std::env::var_os("RETAKE_TEST_ROOT").map(PathBuf::from) else { return };
    let Ok(session) = std::env::var("RETAKE_TEST_SESSION") else { return };
    let mut workspace = Workspace::open(environment(&root, root.with_file_name("store"))).unwrap();
    let session = workspace.sessions().resolve(&session).unwrap().id;
    let _began = workspace.windows().begin(anything(session), numbered(1000), &NoProgress).unwrap();
    fs::write(root.join("mine"), "2").unwrap();
    fs::write(root.join("both"), "2").unwrap();
    fs::create_dir(root.join("made")).unwrap();
    fs::write(root.join("made/a"), "2").unwrap();
    fs::remove_file(root.join("left/gone")).unwrap();
    fs::write(root.with_file_name("worked"), "").unwrap();
    // Until it is killed.
    std::io::read_to_string(std::io::stdin()).unwrap();
}

/// Has a tool of `session` work in another process, which is killed.
fn killed_at_work(bench: &Bench, session: SessionId) {
    let mut child = rerun::test(CHILD)
        .env("RETAKE_TEST_ROOT", &bench.root)
        .env("RETAKE_TEST_SESSION", session.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while !bench.root.with_file_name("worked").exists() {
        assert!(child.try_wait().unwrap().is_none(), "the other process ended");
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The files of the windows that are open.
fn window_files(bench: &Bench) -> Vec<PathBuf> {
    let listed = fs::read_dir(bench.workspace.store_dir().join("windows")).unwrap();
    listed.map(|entry| entry.unwrap().path()).collect()
}

fn set_modified(file: &Path, at: SystemTime) {
    fs::File::options().write(true).open(file).unwrap().set_modified(at).unwrap();
}

fn changed(path: &Path) -> Duration {
    let metadata = fs::symlink_metadata(path).unwrap();
    Duration::new(metadata.ctime().try_into().unwrap(), metadata.ctime_nsec().try_into().unwrap())
}

/// Puts the last sign of life so far back that what has changed until now just counts, and returns when nothing can change in that
/// moment any more.
fn the_time_for_dying_is_over(bench: &Bench) {
    let names = bench.names();
    let last = names.iter().map(|name| changed(&bench.root.join(name))).chain([changed(&bench.root)]).max().unwrap();
    let sign = SystemTime::UNIX_EPOCH + last - Duration::from_millis(DEATH_GRACE_MS);
    window_files(bench).iter().for_each(|file| set_modified(file, sign));
    let probe = bench.root.with_file_name("probe");
    loop {
        fs::write(&probe, "").unwrap();
        if changed(&probe) > last {
            return;
        }
    }
}

fn undo(bench: &mut Bench, on_conflict: OnConflict) -> Result<Applied, RewindError> {
    let goal = Goal::Undo { operation: None, session: None };
    bench.apply(&RewindRequest { on_conflict, ..RewindRequest::new(goal) })
}

#[test]
fn what_changed_after_a_tool_was_killed_is_not_the_tools() {
    let mut bench = Bench::new();
    for name in ["mine", "both", "edited", "doomed", "left/gone", "left/stays", "moved/deep/x", "old/x"] {
        bench.write(name, "1");
    }
    bench.write("other/x", "another");
    let session = bench.session();
    let before = bench.checkpoint();
    killed_at_work(&bench, session);
    the_time_for_dying_is_over(&bench);
    bench.write("both", "the user's");
    bench.write("edited", "the user's");
    bench.write("new", "the user's");
    bench.remove("doomed");
    // What is in a directory that is moved keeps its times.
    fs::rename(bench.root.join("moved"), bench.root.join("away")).unwrap();
    bench.write("away/more", "the user's");
    fs::remove_dir_all(bench.root.join("old")).unwrap();
    fs::rename(bench.root.join("other"), bench.root.join("old")).unwrap();
    std::os::unix::fs::symlink("left", bench.root.join("other")).unwrap();
    let new = numbered(bench.tick());
    bench.workspace.windows().settle(new, &NoProgress).unwrap().unwrap();

    let theirs: Vec<_> = [
        "away",
        "away/deep",
        "away/deep/x",
        "away/more",
        "both",
        "doomed",
        "edited",
        "moved",
        "moved/deep",
        "moved/deep/x",
        "new",
        "old/x",
        "other",
        "other/x",
    ]
    .map(|name| (name.to_owned(), Conflict::Contested))
    .into();
    let mut refused = conflicts(undo(&mut bench, OnConflict::Stop));
    refused.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(refused, theirs);
    let mut refused = conflicts(bench.selective(session, &before, OnConflict::Stop));
    refused.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(refused, theirs);

    undo(&mut bench, OnConflict::Keep).unwrap();
    for name in ["both", "edited", "new", "away/more"] {
        assert_eq!(bench.read(name).as_deref(), Some("the user's"), "{name}");
    }
    assert_eq!(bench.read("old/x").as_deref(), Some("another"));
    assert_eq!(bench.read("mine").as_deref(), Some("1"));
    let names = [
        "away",
        "away/deep",
        "away/deep/x",
        "away/more",
        "both",
        "edited",
        "left",
        "left/gone",
        "left/stays",
        "mine",
        "new",
        "old",
        "old/x",
        "other",
    ];
    assert_eq!(bench.names(), names, "the tool's are taken back, the user's stay");
}

#[test]
fn a_tool_at_work_shows_that_it_is_alive() {
    let mut bench = Bench::new();
    let session = bench.session();
    let Began { window, .. } = bench.workspace.windows().begin(anything(session), numbered(1000), &NoProgress).unwrap();
    let file = window_files(&bench).remove(0);
    let modified = || fs::metadata(&file).unwrap().modified().unwrap();
    for _ in 0..2 {
        set_modified(&file, SystemTime::UNIX_EPOCH);
        while modified() == SystemTime::UNIX_EPOCH {
            std::thread::yield_now();
        }
    }
    set_modified(&file, SystemTime::UNIX_EPOCH);
    drop(window);
    assert!(modified() > SystemTime::UNIX_EPOCH, "to the last");
    bench.checkpoint();
    assert!(window_files(&bench).is_empty());
}

#[test]
fn without_a_sign_of_life_everything_is_contested_unless_the_session_is_at_work() {
    let mut bench = Bench::new();
    bench.write("a", "1");
    let session = bench.session();
    let outer = bench.workspace.windows().begin(anything(session), numbered(1000), &NoProgress).unwrap();
    let inner = NewWindow { operation: PartOf::Nothing, ..anything(session) };
    let outer_file = window_files(&bench).remove(0);
    let inner = bench.workspace.windows().begin(inner, numbered(1001), &NoProgress).unwrap();
    drop(inner);
    let files = window_files(&bench);
    files.iter().filter(|file| **file != outer_file).for_each(|file| fs::remove_file(file).unwrap());
    bench.write("a", "2");
    bench.checkpoint();
    drop(outer);
    fs::remove_file(&outer_file).unwrap();
    bench.write("b", "2");
    bench.checkpoint();
    assert_eq!(conflicts(undo(&mut bench, OnConflict::Stop)), [("b".to_owned(), Conflict::Contested)]);
    undo(&mut bench, OnConflict::Keep).unwrap();
    assert_eq!((bench.read("a").as_deref(), bench.read("b").as_deref()), (Some("1"), Some("2")));
}
