//! Corners of rewinding that random stories ran into, one by one.

use retake_engine::window::FileTime;
use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::*;

fn make_fifo(bench: &Bench, path: &str) {
    mknodat(CWD, bench.root.join(path), FileType::Fifo, Mode::from_raw_mode(0o644), 0).unwrap();
}

#[test]
fn a_conflict_is_told_even_if_nothing_is_known_of_either_side() {
    let mut bench = Bench::new();
    make_fifo(&bench, "pipe");
    let start = bench.checkpoint();
    let session = bench.session();
    bench.tool(session, &[], |root| {
        fs::remove_file(root.join("pipe")).unwrap();
        fs::write(root.join("pipe"), "a file now").unwrap();
    });
    bench.remove("pipe");
    let refused = bench.selective(session, &start, OnConflict::Stop);
    assert_eq!(conflicts(refused), [("pipe".to_owned(), Conflict::UnknownThen)]);

    let before = bench.tool(session, &[], |root| fs::write(root.join("made"), "ours").unwrap());
    bench.remove("made");
    make_fifo(&bench, "made");
    let refused = bench.selective(session, &before, OnConflict::Stop);
    assert_eq!(conflicts(refused), [("made".to_owned(), Conflict::NotCaptured)]);
}

#[test]
fn an_operation_that_has_not_ended_is_not_undone() {
    let mut bench = Bench::new();
    let session = bench.session();
    let operation = OperationId::new(Timestamp(1), random(1, 2));
    let window = NewWindow {
        session,
        turn: None,
        tool: "make".to_owned(),
        reach: Reach::Everything,
        declared: Vec::new(),
        operation: retake_engine::window::PartOf::Own(operation),
    };
    let new = numbered(bench.tick());
    let began = bench.workspace.windows().begin(window, new, &NoProgress).unwrap();
    bench.write("made", "by make");
    bench.checkpoint();
    let undo = RewindRequest::new(Goal::Undo { operation: Some(operation), session: None });
    match bench.apply(&undo) {
        Err(RewindError::Operation(OperationError::NotFinished { operation: found })) => assert_eq!(found, operation),
        other => panic!("{other:?}"),
    }
    let new = numbered(bench.tick());
    bench.workspace.windows().end(began.window, new, Durability::Soon, &NoProgress).unwrap();
    bench.apply(&undo).unwrap();
    assert_eq!(bench.read("made"), None);
}

#[test]
fn permissions_go_back_without_the_other_names_of_the_file() {
    let mut bench = Bench::new();
    bench.write("one", "shared");
    fs::hard_link(bench.root.join("one"), bench.root.join("two")).unwrap();
    let mode = |bench: &Bench, path: &str| fs::metadata(bench.root.join(path)).unwrap().mode() & 0o7777;
    fs::set_permissions(bench.root.join("one"), fs::Permissions::from_mode(0o600)).unwrap();
    let start = bench.checkpoint();
    fs::set_permissions(bench.root.join("one"), fs::Permissions::from_mode(0o644)).unwrap();
    bench.apply(&RewindRequest { paths: vec![path("one")], ..exactly(&start) }).unwrap();
    assert_eq!((mode(&bench, "one"), mode(&bench, "two")), (0o600, 0o644));
    assert_eq!(bench.read("one").as_deref(), Some("shared"));
    bench.undo().unwrap();
    assert_eq!((mode(&bench, "one"), mode(&bench, "two")), (0o644, 0o644));
}

#[test]
fn a_directory_comes_back_where_a_link_has_taken_its_place() {
    let mut bench = Bench::new();
    bench.write("dir/deep/file", "inside");
    bench.write("elsewhere/deep/file", "not to be touched");
    let start = bench.checkpoint();
    fs::remove_dir_all(bench.root.join("dir")).unwrap();
    std::os::unix::fs::symlink("elsewhere", bench.root.join("dir")).unwrap();
    bench.exact(&start).unwrap();
    assert!(fs::symlink_metadata(bench.root.join("dir")).unwrap().is_dir());
    assert_eq!(bench.read("dir/deep/file").as_deref(), Some("inside"));
    assert_eq!(bench.read("elsewhere/deep/file").as_deref(), Some("not to be touched"));
    bench.undo().unwrap();
    assert_eq!(fs::read_link(bench.root.join("dir")).unwrap(), Path::new("elsewhere"));
}

#[test]
fn a_version_control_directory_is_there_although_it_is_not_captured() {
    let mut bench = Bench::new();
    bench.write("module/.git/HEAD", "ref: refs/heads/main\n");
    let start = bench.checkpoint();
    fs::remove_dir_all(bench.root.join("module/.git")).unwrap();
    bench.write("module/.git", "gitdir: ../elsewhere\n");
    let file = bench.checkpoint();
    let applied = bench.exact(&start).unwrap();
    assert_eq!(
        bench.read("module/.git").as_deref(),
        Some("gitdir: ../elsewhere\n"),
        "nothing proves that it was not there"
    );
    assert_eq!(
        applied.plan.kept,
        [retake_engine::rewind::Kept { path: path("module/.git"), why: KeptBecause::NotProven }]
    );

    bench.remove("module/.git");
    bench.write("module/.git/HEAD", "ref: refs/heads/main\n");
    assert_eq!(conflicts(bench.exact(&file)), [("module/.git".to_owned(), Conflict::NotCaptured)]);
    assert_eq!(bench.read("module/.git/HEAD").as_deref(), Some("ref: refs/heads/main\n"));
}

#[test]
fn what_an_operation_wrote_can_be_undone_even_if_it_is_ignored_by_then() {
    let mut bench = Bench::new();
    bench.write("same", "same");
    let start = bench.checkpoint();
    bench.write("file", "new");
    fs::create_dir(bench.root.join("empty")).unwrap();
    bench.exact(&start).unwrap();
    bench.write(".gitignore", "*\n");
    for _ in 0..2 {
        bench.undo().unwrap();
        assert_eq!(bench.names(), [".gitignore", "empty", "file", "same"]);
        bench.redo().unwrap();
        assert_eq!(bench.names(), [".gitignore", "same"]);
    }
}

#[test]
fn permissions_of_a_directory_go_back_although_it_is_ignored_now() {
    let mut bench = Bench::new();
    fs::create_dir(bench.root.join("build")).unwrap();
    fs::set_permissions(bench.root.join("build"), fs::Permissions::from_mode(0o700)).unwrap();
    let start = bench.checkpoint();
    fs::set_permissions(bench.root.join("build"), fs::Permissions::from_mode(0o755)).unwrap();
    bench.write("build/out", "never captured");
    bench.write(".gitignore", "build/\n");
    bench.exact(&start).unwrap();
    let mode = |bench: &Bench| fs::metadata(bench.root.join("build")).unwrap().mode() & 0o7777;
    assert_eq!(mode(&bench), 0o700);
    assert_eq!(bench.read("build/out").as_deref(), Some("never captured"));
    bench.undo().unwrap();
    assert_eq!(mode(&bench), 0o755);
}

#[test]
fn a_plan_that_has_to_look_twice_forgets_nothing() {
    let mut bench = Bench::new();
    bench.write("data.txt", "then");
    bench.write("deep/er/file", "1");
    let start = bench.checkpoint();
    bench.write("data.txt", "now, ignored");
    bench.write("deep/er/file", "2");
    bench.write(".gitignore", "*.txt\n");
    let request = exactly(&start);
    let plan = bench.workspace.rewinds().plan(&request, &NoProgress).unwrap();
    let paths: Vec<_> = plan.paths.iter().map(|path| path.path.display().to_string()).collect();
    assert_eq!(paths, [".gitignore", "data.txt", "deep/er/file"]);
}

#[test]
fn a_directory_stays_with_what_could_not_be_captured_in_it() {
    let mut bench = Bench::new();
    bench.write("place", "a file");
    let session = bench.session();
    let before = bench.tool(session, &[], |root| {
        fs::remove_file(root.join("place")).unwrap();
        fs::create_dir(root.join("place")).unwrap();
        fs::write(root.join("place/made"), "ours").unwrap();
    });
    bench.remove("place/made");
    make_fifo(&bench, "place/made");
    let refused = bench.selective(session, &before, OnConflict::Stop);
    let expected = [("place".to_owned(), Conflict::InTheWay), ("place/made".to_owned(), Conflict::NotCaptured)];
    assert_eq!(conflicts(refused), expected);
    bench.selective(session, &before, OnConflict::Keep).unwrap();
    assert_eq!(bench.names(), ["place", "place/made"]);
}

/// `dir/a` was edited by the session, by a person, and went when the session put a file in the place of `dir`; then a person wrote that.
fn a_file_in_a_directorys_place() -> (Bench, SessionId, Checkpoint) {
    let mut bench = Bench::new();
    bench.write("dir/a", "1\n2\n3\n4\n5\n6\n7\n");
    let start = bench.checkpoint();
    let session = bench.session();
    bench.tool(session, &[], |root| fs::write(root.join("dir/a"), "one\n2\n3\n4\n5\n6\n7\n").unwrap());
    bench.write("dir/a", "one\n2\n3\n4\n5\n6\nseven\n");
    bench.checkpoint();
    bench.tool(session, &[], |root| {
        fs::remove_dir_all(root.join("dir")).unwrap();
        fs::write(root.join("dir"), "ours").unwrap();
    });
    bench.write("dir", "mine");
    (bench, session, start)
}

fn planned(bench: &Bench, request: &RewindRequest, wanted: &str) -> retake_engine::rewind::PlannedPath {
    let plan = bench.workspace.rewinds().plan(request, &NoProgress).unwrap();
    plan.paths.into_iter().find(|planned| planned.path == path(wanted)).unwrap()
}

#[test]
fn a_merge_is_refused_where_a_file_keeps_the_place_of_its_directory() {
    let (mut bench, session, start) = a_file_in_a_directorys_place();
    let request = RewindRequest::new(Goal::Selective { checkpoint: start.id, session });
    assert!(planned(&bench, &request, "dir/a").merged.is_some(), "it can be merged if `dir` goes back");
    let choices = |dir| [(path("dir"), dir), (path("dir/a"), OnConflict::Merge)].into();
    let kept = RewindRequest { choices: choices(OnConflict::Keep), ..request.clone() };
    let found = planned(&bench, &kept, "dir/a");
    assert_eq!((found.conflict, found.merged), (Some(Conflict::InTheWay), None));
    let all = [("dir".to_owned(), Conflict::ChangedSince), ("dir/a".to_owned(), Conflict::InTheWay)];
    assert_eq!(conflicts(bench.apply(&kept)), all);
    assert_eq!(bench.read("dir").as_deref(), Some("mine"));
    bench.apply(&RewindRequest { choices: choices(OnConflict::Overwrite), ..request }).unwrap();
    assert_eq!(bench.read("dir/a").as_deref(), Some("1\n2\n3\n4\n5\n6\nseven\n"));
}

#[test]
fn only_keep_is_offered_for_a_path_below_a_file_that_is_not_in_the_plan() {
    let (mut bench, session, start) = a_file_in_a_directorys_place();
    let goal = Goal::Selective { checkpoint: start.id, session };
    for on_conflict in [OnConflict::Stop, OnConflict::Overwrite, OnConflict::Merge] {
        let request = RewindRequest { paths: vec![path("dir/a")], on_conflict, ..RewindRequest::new(goal.clone()) };
        let found = planned(&bench, &request, "dir/a");
        assert_eq!((found.conflict, found.merged), (Some(Conflict::InTheWay), None));
        assert_eq!(conflicts(bench.apply(&request)), [("dir/a".to_owned(), Conflict::InTheWay)]);
    }
    assert_eq!(bench.read("dir").as_deref(), Some("mine"));
}

#[test]
fn only_keep_is_offered_where_somebody_put_a_directory_with_content_in_a_files_place() {
    let mut bench = Bench::new();
    bench.write("a", "one\n");
    let start = bench.checkpoint();
    let session = bench.session();
    bench.tool(session, &[], |root| fs::write(root.join("a"), "two\n").unwrap());
    bench.remove("a");
    bench.write("a/mine", "mine");
    let request = RewindRequest::new(Goal::Selective { checkpoint: start.id, session });
    assert_eq!(planned(&bench, &request, "a").conflict, Some(Conflict::InTheWay));
    // An empty one can go.
    bench.remove("a/mine");
    assert_eq!(planned(&bench, &request, "a").conflict, Some(Conflict::ChangedSince));
    bench.apply(&RewindRequest { on_conflict: OnConflict::Overwrite, ..request }).unwrap();
    assert_eq!(bench.read("a").as_deref(), Some("one\n"));
}

/// A command that ends, and what happens while the workspace has not been scanned yet.
fn ended_command(bench: &mut Bench, session: SessionId, work: impl FnOnce(&Path), then: impl FnOnce(&Path)) {
    let window = NewWindow {
        session,
        turn: None,
        tool: "make".to_owned(),
        reach: Reach::Everything,
        declared: Vec::new(),
        operation: retake_engine::window::PartOf::Nothing,
    };
    let new = numbered(bench.tick());
    let began = bench.workspace.windows().begin(window, new, &NoProgress).unwrap();
    work(&bench.root);
    let end = FileTime::now();
    began.window.stop(end);
    // The kernel stamps files with a clock that is a tick behind.
    while FileTime::floor() <= end {
        std::thread::yield_now();
    }
    then(&bench.root);
    let new = numbered(bench.tick());
    bench.workspace.windows().end(began.window, new, Durability::Soon, &NoProgress).unwrap();
}

#[test]
fn a_save_after_the_command_ended_is_contested_and_not_the_commands() {
    let mut bench = Bench::new();
    for name in ["both", "moved/in", "gone"] {
        bench.write(name, "start");
    }
    bench.write("aside/file", "start");
    let start = bench.checkpoint();
    let session = bench.session();
    let by_command = |root: &Path| {
        for name in ["both", "command", "gone"] {
            fs::write(root.join(name), "the command's").unwrap();
        }
    };
    ended_command(&mut bench, session, by_command, |root| {
        fs::write(root.join("both"), "mine").unwrap();
        fs::write(root.join("mine"), "mine").unwrap();
        fs::rename(root.join("moved"), root.join("elsewhere")).unwrap();
    });
    let mut stopping = conflicts(bench.selective(session, &start, OnConflict::Stop));
    stopping.sort_by(|(one, _), (other, _)| one.cmp(other));
    let names: Vec<_> = stopping.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["both", "elsewhere", "elsewhere/in", "mine", "moved", "moved/in"]);
    assert!(stopping.iter().all(|(_, conflict)| *conflict == Conflict::Contested), "{stopping:?}");
    bench.selective(session, &start, OnConflict::Keep).unwrap();
    assert_eq!(bench.read("both").as_deref(), Some("mine"));
    assert_eq!((bench.read("mine").as_deref(), bench.read("command")), (Some("mine"), None));
    assert_eq!(bench.read("gone").as_deref(), Some("start"));
}

#[test]
fn a_command_owns_all_that_it_did_up_to_its_last_moment() {
    let mut bench = Bench::new();
    bench.write("dir/old", "start");
    let start = bench.checkpoint();
    let session = bench.session();
    let by_command = |root: &Path| {
        fs::remove_dir_all(root.join("dir")).unwrap();
        fs::create_dir(root.join("new")).unwrap();
        fs::write(root.join("new/file"), "the command's").unwrap();
    };
    ended_command(&mut bench, session, by_command, |_| {});
    bench.selective(session, &start, OnConflict::Stop).unwrap();
    assert_eq!(bench.names(), ["dir", "dir/old"]);
}
