//! Going back: exact and selective rewinds, conflicts, undo and redo, on real directories.

mod corners;
mod hiding;
mod ignoring;
mod killed;
mod yours;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use retake_engine::checkpoint::Checkpoint;
use retake_engine::id::{CheckpointId, OperationId, SessionId};
use retake_engine::operation::OperationError;
use retake_engine::progress::NoProgress;
use retake_engine::rewind::{
    Action, Applied, Conflict, Goal, KeptBecause, NewRewind, OnConflict, PathStatus, RewindError, RewindRequest,
};
use retake_engine::session::NewSession;
use retake_engine::window::{NewWindow, Reach};
use retake_engine::{Durability, Timestamp, Workspace, WorkspacePath};
use retake_testkit::Scratch;

use crate::scanners::{environment, numbered};

/// An exact rewind that replaces what a person changed.
pub(crate) fn exactly(to: &Checkpoint) -> RewindRequest {
    let request = RewindRequest::new(Goal::Exact { checkpoint: to.id, session: None });
    RewindRequest { on_yours: OnConflict::Overwrite, ..request }
}

/// A workspace and a clock that gives out identities.
pub(crate) struct Bench {
    pub(crate) root: PathBuf,
    pub(crate) workspace: Workspace,
    clock: i64,
    pub(crate) scratch: Scratch,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let scratch = Scratch::new();
        Self::at(scratch.path()).with(scratch)
    }

    /// In the directory `place`, which is kept.
    pub(crate) fn at(place: &Path) -> Self {
        let root = place.join("root");
        fs::create_dir(&root).unwrap();
        let workspace = Workspace::open_or_create(environment(&root, place.join("store"))).unwrap();
        Self { root, workspace, clock: 0, scratch: Scratch::new() }
    }

    fn with(self, scratch: Scratch) -> Self {
        Self { scratch, ..self }
    }

    pub(crate) fn recover(&mut self) {
        let new = self.identities();
        self.workspace.rewinds_mut().recover(retake_engine::rewind::RecoveryChoice::Ask, new.after, new.at).unwrap();
    }

    pub(crate) fn tick(&mut self) -> i64 {
        self.clock += 1;
        self.clock
    }

    pub(crate) fn write(&self, path: &str, content: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.root.join(path)).ok()
    }

    pub(crate) fn remove(&self, path: &str) {
        fs::remove_file(self.root.join(path)).unwrap();
    }

    pub(crate) fn checkpoint(&mut self) -> Checkpoint {
        let new = numbered(self.tick());
        self.workspace.checkpoints_mut().take(new, Durability::Soon, &NoProgress).unwrap()
    }

    pub(crate) fn session(&mut self) -> SessionId {
        let at = Timestamp(self.tick());
        let id = SessionId::new(at, random(at.0, 1));
        self.workspace
            .sessions_mut()
            .create(NewSession {
                id,
                at,
                title: "test".to_owned(),
                kind: retake_engine::session::SessionKind::Commands,
            })
            .unwrap();
        id
    }

    /// Runs `work` in a window of `session`; returns the checkpoint before it.
    pub(crate) fn tool(&mut self, session: SessionId, declared: &[&str], work: impl FnOnce(&Path)) -> Checkpoint {
        self.window(session, declared, None, work)
    }

    /// Runs `work` as a command of a session of its own, which can be undone; returns the checkpoint before it.
    pub(crate) fn command(&mut self, work: impl FnOnce(&Path)) -> Checkpoint {
        let session = self.session();
        let at = Timestamp(self.tick());
        self.window(session, &[], Some(OperationId::new(at, random(at.0, 2))), work)
    }

    fn window(
        &mut self,
        session: SessionId,
        declared: &[&str],
        operation: Option<OperationId>,
        work: impl FnOnce(&Path),
    ) -> Checkpoint {
        let window = NewWindow {
            session,
            turn: None,
            tool: if declared.is_empty() { "bash: work".to_owned() } else { format!("edit {}", declared.join(" ")) },
            reach: if declared.is_empty() { Reach::Everything } else { Reach::Declared },
            declared: declared.iter().map(|text| path(text)).collect(),
            operation: operation.map_or(retake_engine::window::PartOf::Nothing, retake_engine::window::PartOf::Own),
        };
        let new = numbered(self.tick());
        let began = self.workspace.windows().begin(window, new, &NoProgress).unwrap();
        work(&self.root);
        let new = numbered(self.tick());
        self.workspace.windows().end(began.window, new, Durability::Soon, &NoProgress).unwrap();
        began.before
    }

    pub(crate) fn identities(&mut self) -> NewRewind {
        let at = Timestamp(self.tick());
        NewRewind {
            note: retake_engine::id::EntryId::new([0; 10]),
            operation: OperationId::new(at, random(at.0, 2)),
            safety: CheckpointId::new(at, random(at.0, 3)),
            after: CheckpointId::new(at, random(at.0, 4)),
            at,
        }
    }

    pub(crate) fn apply(&mut self, request: &RewindRequest) -> Result<Applied, RewindError> {
        let new = self.identities();
        self.workspace.rewinds_mut().apply(request, None, &new, &NoProgress)
    }

    pub(crate) fn exact(&mut self, to: &Checkpoint) -> Result<Applied, RewindError> {
        self.apply(&exactly(to))
    }

    pub(crate) fn selective(
        &mut self,
        session: SessionId,
        to: &Checkpoint,
        on_conflict: OnConflict,
    ) -> Result<Applied, RewindError> {
        let goal = Goal::Selective { session, checkpoint: to.id };
        self.apply(&RewindRequest { on_conflict, ..RewindRequest::new(goal) })
    }

    pub(crate) fn undo(&mut self) -> Result<Applied, RewindError> {
        self.apply(&RewindRequest::new(Goal::Undo { operation: None, session: None }))
    }

    pub(crate) fn redo(&mut self) -> Result<Applied, RewindError> {
        self.apply(&RewindRequest::new(Goal::Redo { session: None }))
    }

    /// Every name below the root, but for version control.
    pub(crate) fn names(&self) -> Vec<String> {
        fn walk(directory: &Path, prefix: &str, names: &mut Vec<String>) {
            for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
                let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
                if entry.file_type().unwrap().is_dir() {
                    walk(&entry.path(), &format!("{name}/"), names);
                }
                names.push(name);
            }
        }
        let mut names = Vec::new();
        walk(&self.root, "", &mut names);
        names.sort();
        names
    }
}

fn random(seed: i64, kind: u8) -> [u8; 10] {
    let mut random = [kind; 10];
    random[..8].copy_from_slice(&seed.to_be_bytes());
    random
}

pub(crate) fn path(text: &str) -> WorkspacePath {
    WorkspacePath::parse(text.as_bytes()).unwrap()
}

pub(crate) fn conflicts(refused: Result<Applied, RewindError>) -> Vec<(String, Conflict)> {
    match refused {
        Err(RewindError::Refused { plan }) => {
            plan.conflicts().map(|path| (path.path.display().to_string(), path.conflict.unwrap())).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_exact_rewind_brings_everything_back_and_touches_nothing_else() {
    let mut bench = Bench::new();
    bench.write("same", "same");
    bench.write("changed", "one");
    bench.write("dir/gone", "gone");
    bench.write("dir/deep/also", "also");
    bench.write("script", "#!/bin/sh");
    fs::set_permissions(bench.root.join("script"), fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink("changed", bench.root.join("link")).unwrap();
    fs::create_dir(bench.root.join("empty")).unwrap();
    let start = bench.checkpoint();
    let names = bench.names();
    let untouched = fs::metadata(bench.root.join("same")).unwrap();

    bench.write("changed", "two");
    fs::remove_dir_all(bench.root.join("dir")).unwrap();
    bench.write("dir", "a file now");
    bench.write("new/file", "new");
    fs::remove_file(bench.root.join("link")).unwrap();
    std::os::unix::fs::symlink("elsewhere", bench.root.join("link")).unwrap();
    fs::set_permissions(bench.root.join("script"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::remove_dir(bench.root.join("empty")).unwrap();
    let applied = bench.exact(&start).unwrap();
    assert!(applied.statuses.iter().all(|(_, status)| *status == PathStatus::Done), "{:?}", applied.statuses);

    assert_eq!(bench.names(), names);
    assert_eq!(bench.workspace.current(&NoProgress).unwrap().snapshot(), start.snapshot);
    let now = fs::metadata(bench.root.join("same")).unwrap();
    assert_eq!(
        (now.ino(), now.mtime_nsec(), now.ctime_nsec()),
        (untouched.ino(), untouched.mtime_nsec(), untouched.ctime_nsec())
    );

    bench.undo().unwrap();
    assert_eq!(bench.read("changed").as_deref(), Some("two"));
    assert_eq!(bench.read("dir").as_deref(), Some("a file now"));
    assert_eq!(bench.read("new/file").as_deref(), Some("new"));
    bench.redo().unwrap();
    assert_eq!(bench.workspace.current(&NoProgress).unwrap().snapshot(), start.snapshot);
    assert!(matches!(bench.redo(), Err(RewindError::Operation(_))), "there is nothing more to redo");
    for _ in 0..3 {
        bench.undo().unwrap();
        assert_eq!(bench.read("changed").as_deref(), Some("two"));
        bench.redo().unwrap();
        assert_eq!(bench.read("changed").as_deref(), Some("one"));
    }
    assert!(bench.workspace.rewinds().interrupted().unwrap().is_none());
    assert!(bench.workspace.maintenance().check().unwrap().damage.is_empty());
}

#[test]
fn what_came_since_and_could_not_be_captured_stays_and_is_told() {
    let mut bench = Bench::new();
    bench.write("ours", "1");
    bench.checkpoint();
    let session = bench.session();
    let before = bench.tool(session, &[], |root| {
        fs::write(root.join("ours"), "2").unwrap();
        assert!(Command::new("mkfifo").arg(root.join("pipe")).status().unwrap().success());
    });
    let applied = bench.selective(session, &before, OnConflict::Stop).unwrap();
    assert_eq!(bench.read("ours").as_deref(), Some("1"));
    assert_eq!(applied.plan.kept, [retake_engine::rewind::Kept { path: path("pipe"), why: KeptBecause::NotCaptured }]);
}

#[test]
fn a_plan_names_the_tools_whose_changes_go_and_no_others() {
    let mut bench = Bench::new();
    bench.checkpoint();
    let session = bench.session();
    let write = |name: &'static str| move |root: &Path| fs::write(root.join(name), "1").unwrap();
    let before = bench.tool(session, &["a"], write("a"));
    bench.tool(session, &[], |_| {});
    let between = bench.tool(session, &["b"], write("b"));
    bench.selective(session, &between, OnConflict::Stop).unwrap();
    bench.tool(session, &["c"], write("c"));
    bench.write("c", "mine");
    let undoes = |on_conflict| {
        let goal = Goal::Selective { session, checkpoint: before.id };
        let request = RewindRequest { on_conflict, ..RewindRequest::new(goal) };
        bench.workspace.rewinds().plan(&request, &NoProgress).unwrap().undoes
    };
    assert_eq!(undoes(OnConflict::Overwrite), ["edit a", "edit c"], "`b` has gone back before");
    assert_eq!(undoes(OnConflict::Keep), ["edit a"], "`c` stays as it is");
}

#[test]
fn a_selective_rewind_takes_back_only_what_the_session_did() {
    let mut bench = Bench::new();
    bench.write("ours", "1");
    bench.write("theirs", "1");
    bench.checkpoint();
    let session = bench.session();
    let before = bench.tool(session, &[], |root| {
        fs::write(root.join("ours"), "2").unwrap();
        fs::create_dir(root.join("made")).unwrap();
        fs::write(root.join("made/file"), "x").unwrap();
    });
    bench.write("theirs", "2");
    bench.write("made/by-hand", "y");
    bench.tool(session, &["ours"], |root| fs::write(root.join("ours"), "3").unwrap());
    let applied = bench.selective(session, &before, OnConflict::Stop).unwrap();
    assert_eq!(bench.read("ours").as_deref(), Some("1"));
    assert_eq!(bench.read("theirs").as_deref(), Some("2"));
    assert_eq!(bench.read("made/file"), None);
    assert_eq!(bench.read("made/by-hand").as_deref(), Some("y"));
    assert_eq!(applied.plan.kept[0].why, KeptBecause::HoldsOthers);
    bench.undo().unwrap();
    assert_eq!(bench.read("ours").as_deref(), Some("3"));
    assert_eq!(bench.read("made/file").as_deref(), Some("x"));
}

#[test]
fn what_somebody_else_changed_is_a_conflict_with_four_ways_out() {
    let text = |middle: &str| format!("first\n\n\n\n{middle}\n\n\n\nlast\n");
    for (choice, expected) in [
        (OnConflict::Keep, "FIRST\n\n\n\nagent\n\n\n\nlast\n".to_owned()),
        (OnConflict::Overwrite, text("middle")),
        (OnConflict::Merge, "FIRST\n\n\n\nmiddle\n\n\n\nlast\n".to_owned()),
    ] {
        let mut bench = Bench::new();
        bench.write("file", &text("middle"));
        let session = bench.session();
        let before = bench.tool(session, &[], |root| fs::write(root.join("file"), text("agent")).unwrap());
        bench.write("file", "FIRST\n\n\n\nagent\n\n\n\nlast\n");
        let refused = bench.selective(session, &before, OnConflict::Stop);
        assert_eq!(conflicts(refused), [("file".to_owned(), Conflict::ChangedSince)]);
        assert_eq!(bench.read("file").as_deref(), Some("FIRST\n\n\n\nagent\n\n\n\nlast\n"), "nothing was changed");
        bench.selective(session, &before, choice).unwrap();
        assert_eq!(bench.read("file"), Some(expected), "{choice:?}");
        if choice != OnConflict::Keep {
            bench.undo().unwrap();
            assert_eq!(bench.read("file").as_deref(), Some("FIRST\n\n\n\nagent\n\n\n\nlast\n"));
        }
    }
}

#[test]
fn what_somebody_changed_and_the_session_then_moved_away_comes_back_as_they_left_it() {
    let mut bench = Bench::new();
    bench.write("notes", "mine\n");
    let session = bench.session();
    let before = bench.tool(session, &[], |root| fs::write(root.join("other"), "x").unwrap());
    bench.write("notes", "mine\nand more\n");
    bench.tool(session, &[], |root| fs::rename(root.join("notes"), root.join("moved")).unwrap());
    let refused = bench.selective(session, &before, OnConflict::Stop);
    assert_eq!(conflicts(refused).iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>(), ["notes"]);
    bench.selective(session, &before, OnConflict::Merge).unwrap();
    assert_eq!(bench.read("notes").as_deref(), Some("mine\nand more\n"));
    assert_eq!(bench.read("moved"), None);
    bench.undo().unwrap();
    assert_eq!((bench.read("notes"), bench.read("moved").as_deref()), (None, Some("mine\nand more\n")));
}

#[test]
fn ignored_files_and_repositories_survive_and_what_must_give_way_to_a_file_is_refused() {
    let mut bench = Bench::new();
    bench.write("place", "a file");
    bench.write(".gitignore", "*.o\n");
    let start = bench.checkpoint();
    bench.remove("place");
    bench.write("place/kept.o", "built");
    bench.write("place/source.c", "c");
    bench.write("other/.git/HEAD", "ref: refs/heads/main\n");
    bench.write("other/source.c", "c");
    match bench.exact(&start) {
        Err(RewindError::Refused { plan }) => assert_eq!(plan.blocked, [path("place")]),
        other => panic!("{other:?}"),
    }
    assert_eq!(bench.read("place/source.c").as_deref(), Some("c"), "nothing was changed");
    bench.remove("place/kept.o");
    let applied = bench.exact(&start).unwrap();
    assert_eq!(bench.read("place").as_deref(), Some("a file"));
    assert_eq!(bench.read("other/source.c"), None);
    assert_eq!(bench.read("other/.git/HEAD").as_deref(), Some("ref: refs/heads/main\n"));
    let kept = |text: &str, why| retake_engine::rewind::Kept { path: path(text), why };
    let staying = [kept("other/.git", KeptBecause::NotCaptured), kept("other", KeptBecause::HoldsOthers)];
    assert_eq!(applied.plan.kept, staying);
}

#[test]
fn a_path_is_deleted_only_if_the_target_proves_that_it_was_not_there() {
    let mut bench = Bench::new();
    bench.write("precious.log", "was there, but ignored");
    bench.write(".gitignore", "*.log\n");
    let start = bench.checkpoint();
    bench.remove(".gitignore");
    bench.write("new.txt", "new");
    let applied = bench.exact(&start).unwrap();
    assert_eq!(bench.read("precious.log").as_deref(), Some("was there, but ignored"));
    assert_eq!(bench.read("new.txt"), None);
    assert_eq!(bench.read(".gitignore").as_deref(), Some("*.log\n"));
    assert_eq!(
        applied.plan.kept,
        [retake_engine::rewind::Kept { path: path("precious.log"), why: KeptBecause::NotProven }]
    );
}

#[test]
fn what_the_rules_leave_out_now_is_saved_before_it_is_replaced() {
    let mut bench = Bench::new();
    bench.write("data.txt", "then");
    bench.write("build/out.txt", "then");
    let start = bench.checkpoint();
    bench.write(".gitignore", "*.txt\nbuild/\n");
    bench.write("data.txt", "now, ignored");
    bench.remove("build/out.txt");
    bench.write("build/other.txt", "never captured");
    bench.exact(&start).unwrap();
    assert_eq!(bench.read("data.txt").as_deref(), Some("then"));
    assert_eq!(bench.read("build/out.txt").as_deref(), Some("then"));
    assert_eq!(bench.read("build/other.txt").as_deref(), Some("never captured"));
    bench.undo().unwrap();
    assert_eq!(bench.read("data.txt").as_deref(), Some("now, ignored"));
    assert_eq!(bench.read("build/out.txt"), None);
    assert_eq!(bench.read("build/other.txt").as_deref(), Some("never captured"));
}

#[test]
fn a_path_that_a_tool_declared_goes_back_to_what_it_was_just_before() {
    let mut bench = Bench::new();
    bench.write(".gitignore", "*.secret\nout/\n");
    bench.write("a.secret", "old");
    bench.write("out/x", "not captured");
    bench.checkpoint();
    let session = bench.session();
    let before = bench.tool(session, &["unrelated"], |_| {});
    bench.tool(session, &["a.secret", "out/new"], |root| {
        fs::write(root.join("a.secret"), "new").unwrap();
        fs::write(root.join("out/new"), "new").unwrap();
    });
    bench.selective(session, &before, OnConflict::Stop).unwrap();
    assert_eq!(bench.read("a.secret").as_deref(), Some("old"));
    assert_eq!(bench.read("out/new"), None);
    assert_eq!(bench.read("out/x").as_deref(), Some("not captured"));
}

#[test]
fn one_path_alone_goes_back_with_the_directory_it_needs() {
    let mut bench = Bench::new();
    bench.write("a/b/file", "1");
    bench.write("a/other", "1");
    let start = bench.checkpoint();
    fs::remove_dir_all(bench.root.join("a")).unwrap();
    let goal = Goal::Exact { checkpoint: start.id, session: None };
    let request = RewindRequest { paths: vec![path("a/b/file")], ..RewindRequest::new(goal) };
    let plan = bench.workspace.rewinds().plan(&request, &NoProgress).unwrap();
    let actions: Vec<_> = plan.paths.iter().map(|path| (path.path.display().to_string(), path.action)).collect();
    let recreate = |text: &str| (text.to_owned(), Action::Recreate);
    assert_eq!(actions, [recreate("a"), recreate("a/b"), recreate("a/b/file")]);
    assert_eq!(bench.names(), Vec::<String>::new(), "planning wrote nothing");
    bench.apply(&request).unwrap();
    assert_eq!(bench.names(), ["a", "a/b", "a/b/file"]);
}

#[test]
fn a_plan_that_was_shown_is_what_is_applied_or_nothing_is() {
    let mut bench = Bench::new();
    bench.write("file", "1");
    let start = bench.checkpoint();
    bench.write("file", "2");
    let request = exactly(&start);
    let plan = bench.workspace.rewinds().plan(&request, &NoProgress).unwrap();
    bench.write("file", "3");
    let new = bench.identities();
    let stale = bench.workspace.rewinds_mut().apply(&request, Some(&plan.fingerprint()), &new, &NoProgress);
    assert!(matches!(stale, Err(RewindError::Stale { .. })), "{stale:?}");
    assert_eq!(bench.read("file").as_deref(), Some("3"));
    bench.write("unrelated", "may change meanwhile");
    let plan = bench
        .workspace
        .rewinds()
        .plan(&RewindRequest { paths: vec![path("file")], ..request.clone() }, &NoProgress)
        .unwrap();
    bench.write("unrelated", "again");
    let new = bench.identities();
    let request = RewindRequest { paths: vec![path("file")], ..request };
    bench.workspace.rewinds_mut().apply(&request, Some(&plan.fingerprint()), &new, &NoProgress).unwrap();
    assert_eq!(bench.read("file").as_deref(), Some("1"));
}

#[test]
fn undo_of_an_older_operation_meets_later_changes_as_conflicts() {
    let mut bench = Bench::new();
    bench.write("file", "1");
    let one = bench.checkpoint();
    bench.write("file", "2");
    let two = bench.checkpoint();
    bench.write("file", "3");
    let first = bench.exact(&one).unwrap().operation.unwrap();
    bench.exact(&two).unwrap();
    let request = RewindRequest::new(Goal::Undo { operation: Some(first), session: None });
    assert_eq!(conflicts(bench.apply(&request)), [("file".to_owned(), Conflict::ChangedByOthers)]);
    bench.undo().unwrap();
    assert_eq!(bench.read("file").as_deref(), Some("1"));
    bench.undo().unwrap();
    assert_eq!(bench.read("file").as_deref(), Some("3"));
    assert!(matches!(bench.undo(), Err(RewindError::Operation(_))));
}
