//! Ignore rules that hide files: what stays captured, what goes back, what is named.

use retake_engine::Settings;
use retake_engine::changes::Coverage;
use retake_engine::rewind::Kept;
use retake_engine::snapshot::{Changed, GapKind};
use retake_engine::view::Side;

use super::*;

fn kept(applied: &Applied) -> Vec<(String, KeptBecause)> {
    applied.plan.kept.iter().map(|kept| (kept.path.display().to_string(), kept.why)).collect()
}

fn deleted(bench: &Bench, checkpoint: &Checkpoint) -> u64 {
    let stored = bench.workspace.checkpoints().all().unwrap();
    stored.iter().find(|point| point.id == checkpoint.id).unwrap().changed.deleted
}

/// Waits until a file that changes has a later time than all before.
fn pass_time() {
    let now = retake_engine::window::FileTime::now();
    while retake_engine::window::FileTime::floor() <= now {
        std::thread::yield_now();
    }
}

impl Bench {
    fn newest(&self) -> Checkpoint {
        self.workspace.checkpoints().newest().unwrap().unwrap()
    }

    fn is_captured(&self, checkpoint: &Checkpoint, text: &str) -> bool {
        self.workspace.entry(&Side::Stored(checkpoint.snapshot), &path(text)).unwrap().is_some()
    }
}

#[test]
fn an_ignore_file_that_ignores_itself_goes_back() {
    for name in [".gitignore", ".retakeignore"] {
        let mut bench = Bench::new();
        bench.write("a", "mine");
        bench.write("dir/b", "mine");
        bench.checkpoint();
        bench.command(|root| fs::write(root.join(name), "*\n").unwrap());
        let after = bench.newest();
        assert!(bench.is_captured(&after, name), "{name}");
        assert_eq!(after.changed, Changed { added: 1, modified: 0, deleted: 0 }, "nothing was deleted");
        bench.undo().unwrap();
        assert_eq!(bench.names(), ["a", "dir", "dir/b"]);
    }
}

#[test]
fn paths_that_a_command_hides_stay_captured_until_the_user_confirms_it() {
    let mut bench = Bench::new();
    bench.write("a", "mine");
    bench.write("dir/b", "mine");
    bench.checkpoint();
    bench.command(|root| fs::write(root.join(".gitignore"), "*\n").unwrap());
    let hidden = bench.newest();
    assert_eq!(bench.workspace.changes().coverage(&hidden).unwrap(), Coverage { newly_held: 2, held: 2, no_longer: 0 });
    bench.write("dir/b", "overwritten");
    let later = bench.checkpoint();
    assert_eq!(later.changed, Changed { added: 0, modified: 1, deleted: 0 });
    fs::remove_file(bench.root.join("dir/b")).unwrap();
    assert_eq!(bench.checkpoint().changed.deleted, 1, "a real deletion is one");
    bench.exact(&later).unwrap();
    assert_eq!(bench.read("dir/b").as_deref(), Some("overwritten"));
    assert!(bench.workspace.maintenance().index_agrees(&NoProgress).unwrap());

    let new = numbered(bench.tick());
    let confirmed = bench.workspace.checkpoints_mut().take_applying_rules(new, Durability::Soon, &NoProgress).unwrap();
    assert!(!bench.is_captured(&confirmed, "a") && bench.is_captured(&confirmed, ".gitignore"));
    assert_eq!(
        bench.workspace.changes().coverage(&confirmed).unwrap(),
        Coverage { newly_held: 0, held: 0, no_longer: 2 }
    );
    assert_eq!(confirmed.changed.deleted, 0);
    assert!(bench.workspace.maintenance().index_agrees(&NoProgress).unwrap());
}

#[test]
fn a_users_own_rule_applies_at_once_and_deletes_nothing() {
    let mut bench = Bench::new();
    bench.write("a", "1");
    bench.write("logs/x", "1");
    let start = bench.checkpoint();
    bench.write(".gitignore", "logs\n");
    let now = bench.checkpoint();
    assert!(!bench.is_captured(&now, "logs/x"));
    assert_eq!(bench.workspace.changes().coverage(&now).unwrap(), Coverage { newly_held: 0, held: 0, no_longer: 1 });
    assert_eq!(deleted(&bench, &now), 0);
    assert!(bench.workspace.changes().between(&start, None).unwrap().iter().all(|change| change.after.is_some()));
    bench.exact(&start).unwrap();
    assert_eq!(bench.names(), ["a", "logs", "logs/x"]);
}

#[test]
fn a_new_directory_that_a_command_ignores_is_not_captured() {
    let mut bench = Bench::new();
    bench.write(".gitignore", "*.log\n");
    bench.checkpoint();
    bench.command(|root| {
        fs::write(root.join(".gitignore"), "*.log\nnode_modules\n").unwrap();
        fs::create_dir_all(root.join("node_modules/left-pad")).unwrap();
        fs::write(root.join("node_modules/left-pad/index.js"), "pad").unwrap();
    });
    let after = bench.newest();
    assert!(!bench.is_captured(&after, "node_modules"));
    assert_eq!(bench.workspace.changes().coverage(&after).unwrap(), Coverage::default());
    bench.undo().unwrap();
    assert_eq!(bench.names(), [".gitignore"]);
    for _ in 0..2 {
        bench.redo().unwrap();
        assert_eq!(bench.read("node_modules/left-pad/index.js").as_deref(), Some("pad"));
        bench.undo().unwrap();
        assert_eq!(bench.names(), [".gitignore"]);
    }
}

#[test]
fn files_that_a_command_created_and_hid_go_back_by_any_rewind() {
    let hide = |root: &Path| {
        fs::write(root.join(".gitignore"), "evil.sh\n").unwrap();
        fs::write(root.join("evil.sh"), "evil").unwrap();
    };
    let mut bench = Bench::new();
    bench.write("a", "1");
    let start = bench.checkpoint();
    for exact in [true, false] {
        let session = bench.session();
        let before = bench.tool(session, &[], hide);
        let applied = match exact {
            true => bench.exact(&start).unwrap(),
            false => bench.selective(session, &before, OnConflict::Stop).unwrap(),
        };
        assert_eq!(bench.names(), ["a"], "exact: {exact}");
        assert_eq!(applied.plan.undoes, ["bash: work"]);
        assert!(bench.exact(&start).unwrap().operation.is_none(), "a second one changes nothing");
        bench.undo().unwrap();
        assert_eq!(bench.read("evil.sh").as_deref(), Some("evil"), "exact: {exact}");
        bench.redo().unwrap();
        assert_eq!(bench.names(), ["a"], "exact: {exact}");
    }
    assert!(bench.workspace.maintenance().index_agrees(&NoProgress).unwrap());
}

#[test]
fn hidden_files_that_an_undo_brought_back_go_with_the_same_rewind() {
    let mut bench = Bench::new();
    bench.write("a", "1");
    let start = bench.checkpoint();
    bench.command(|root| {
        fs::write(root.join(".gitignore"), "evil.sh\nlink\nout\n").unwrap();
        fs::write(root.join("evil.sh"), "evil").unwrap();
        std::os::unix::fs::symlink("evil.sh", root.join("link")).unwrap();
        fs::create_dir_all(root.join("out/deep")).unwrap();
        fs::write(root.join("out/deep/y"), "made").unwrap();
    });
    let made = bench.names();
    let mut gone = start.clone();
    for is_checkpoint_between in [false, true, false] {
        for target in [&start, &gone] {
            pass_time();
            let applied = bench.exact(target).unwrap();
            assert_eq!((bench.names(), kept(&applied)), (vec!["a".to_owned()], Vec::new()));
            assert!(bench.exact(target).unwrap().operation.is_none(), "a second one changes nothing");
            bench.undo().unwrap();
            assert_eq!(bench.names(), made);
            if is_checkpoint_between {
                bench.checkpoint();
            }
        }
        bench.redo().unwrap();
        gone = bench.checkpoint();
        bench.undo().unwrap();
    }
    bench.redo().unwrap();
    assert_eq!(bench.names(), ["a"]);
    assert!(bench.workspace.maintenance().index_agrees(&NoProgress).unwrap());
}

#[test]
fn a_hidden_file_that_a_user_changed_after_an_undo_brought_it_back_stays() {
    type Edit = fn(&Path);
    let edits: [(&str, Edit); 4] = [
        ("evil.sh", |root| fs::write(root.join("evil.sh"), "mine").unwrap()),
        ("evil.sh", |root| fs::set_permissions(root.join("evil.sh"), fs::Permissions::from_mode(0o700)).unwrap()),
        ("out/deep/y", |root| fs::write(root.join("out/deep/y"), "MADE").unwrap()),
        ("out/mine", |root| fs::write(root.join("out/mine"), "mine").unwrap()),
    ];
    for (at, edit) in edits {
        let mut bench = Bench::new();
        bench.write("a", "1");
        let start = bench.checkpoint();
        bench.command(|root| {
            fs::write(root.join(".gitignore"), "evil.sh\nout\n").unwrap();
            fs::write(root.join("evil.sh"), "evil").unwrap();
            fs::create_dir_all(root.join("out/deep")).unwrap();
            fs::write(root.join("out/deep/y"), "made").unwrap();
            fs::write(root.join("out/z"), "made").unwrap();
        });
        bench.exact(&start).unwrap();
        bench.undo().unwrap();
        pass_time();
        edit(&bench.root);
        let edited = fs::read(bench.root.join(at)).unwrap();
        let applied = bench.exact(&start).unwrap();
        assert_eq!(kept(&applied), [(at.to_owned(), KeptBecause::Hidden)]);
        let mut names = vec!["a".to_owned()];
        names.extend(at.match_indices('/').map(|(end, _)| at[..end].to_owned()).chain([at.to_owned()]));
        for _ in 0..2 {
            assert_eq!(bench.names(), names);
            assert_eq!(fs::read(bench.root.join(at)).unwrap(), edited);
            let again = bench.exact(&start).unwrap();
            assert!(again.operation.is_none(), "{:?}", again.plan);
        }
    }
}

#[test]
fn a_file_that_a_later_command_of_the_session_hides_goes_back_to_before_the_rule() {
    let mut bench = Bench::new();
    bench.write("a", "1");
    bench.checkpoint();
    let session = bench.session();
    let before_rule = bench.tool(session, &[], |root| fs::write(root.join(".gitignore"), "out\n").unwrap());
    let before_file = bench.tool(session, &[], |root| fs::write(root.join("out"), "made").unwrap());
    let applied = bench.selective(session, &before_file, OnConflict::Stop).unwrap();
    assert_eq!(kept(&applied), [("out".to_owned(), KeptBecause::Hidden)], "the rule hid the name at that point");
    bench.selective(session, &before_rule, OnConflict::Stop).unwrap();
    assert_eq!(bench.names(), ["a"]);
}

#[test]
fn what_a_user_made_under_a_commands_rule_stays_and_is_named_every_time() {
    let mut bench = Bench::new();
    bench.write("a", "1");
    let start = bench.checkpoint();
    bench.command(|root| {
        fs::write(root.join(".gitignore"), "hidden\nmine\n").unwrap();
        fs::write(root.join("hidden"), "the command's").unwrap();
    });
    bench.write("mine/file", "the user's");
    bench.checkpoint();
    let first = bench.exact(&start).unwrap();
    let names = ["a", "mine", "mine/file"];
    assert_eq!(
        (bench.names(), kept(&first)),
        (names.map(str::to_owned).to_vec(), vec![("mine".to_owned(), KeptBecause::Hidden)])
    );
    for _ in 0..2 {
        let again = bench.exact(&start).unwrap();
        assert!(again.operation.is_none(), "{:?}", again.plan);
        assert_eq!(kept(&again), [("mine".to_owned(), KeptBecause::Hidden)]);
        assert_eq!(bench.names(), names);
        bench.checkpoint();
    }
}

#[test]
fn a_hidden_file_that_a_user_changed_since_stays() {
    let mut bench = Bench::new();
    let start = bench.checkpoint();
    bench.command(|root| {
        fs::write(root.join(".gitignore"), "out\n").unwrap();
        fs::write(root.join("out"), "the command's").unwrap();
    });
    pass_time();
    bench.write("out", "the user's");
    let applied = bench.undo().unwrap();
    assert_eq!(bench.read("out").as_deref(), Some("the user's"));
    assert_eq!(kept(&applied), [("out".to_owned(), KeptBecause::Hidden)]);
    assert!(bench.exact(&start).unwrap().operation.is_none());
    assert_eq!(bench.read("out").as_deref(), Some("the user's"));
}

#[test]
fn in_a_directory_that_a_command_hid_only_its_own_files_go() {
    let mut bench = Bench::new();
    bench.write("a", "1");
    bench.write("moved/old", "the user's, and older than the command");
    let start = bench.checkpoint();
    bench.command(|root| {
        fs::write(root.join(".gitignore"), "out\n").unwrap();
        fs::create_dir_all(root.join("out/deep")).unwrap();
        fs::write(root.join("out/z"), "the command's").unwrap();
        fs::write(root.join("out/deep/y"), "the command's").unwrap();
    });
    pass_time();
    bench.write("out/thesis", "the user's");
    fs::rename(bench.root.join("moved"), bench.root.join("out/moved")).unwrap();
    // The end of a later command says nothing about what the first one made.
    pass_time();
    bench.command(|_| ());
    let hidden =
        |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), KeptBecause::Hidden)).collect::<Vec<_>>();
    let applied = bench.exact(&start).unwrap();
    assert_eq!(kept(&applied), hidden(&["out/moved", "out/thesis"]));
    let names = ["a", "moved", "moved/old", "out", "out/moved", "out/moved/old", "out/thesis"];
    assert_eq!(bench.names(), names);
    let again = bench.exact(&start).unwrap();
    assert!(again.operation.is_none(), "{:?}", again.plan);
    assert_eq!(kept(&again), hidden(&["out"]));
    assert_eq!(bench.names(), names);
    assert!(bench.workspace.maintenance().index_agrees(&NoProgress).unwrap());
    bench.undo().unwrap();
    assert_eq!(bench.read("out/deep/y").as_deref(), Some("the command's"));
    assert_eq!(bench.read("out/thesis").as_deref(), Some("the user's"));
    bench.redo().unwrap();
    assert_eq!(bench.names(), names);
}

#[test]
fn hidden_files_beyond_the_limit_stay_and_are_named() {
    let mut bench = Bench::new();
    let place = bench.scratch.path().to_owned();
    let env = environment(&bench.root, place.join("store"));
    let settings = Settings { save_hidden: 10, ..env.settings };
    bench.workspace = Workspace::open(retake_engine::Environment { settings, ..env }).unwrap();
    let start = bench.checkpoint();
    bench.command(|root| {
        fs::write(root.join(".gitignore"), "large\nsmall\n").unwrap();
        fs::write(root.join("large"), "more than ten bytes").unwrap();
        fs::write(root.join("small"), "ten bytes!").unwrap();
    });
    let applied = bench.undo().unwrap();
    assert_eq!(kept(&applied), [("large".to_owned(), KeptBecause::SaveLimit)]);
    assert_eq!(bench.names(), ["large"]);
    let again = bench.exact(&start).unwrap();
    assert!(again.operation.is_none());
    assert_eq!(bench.names(), ["large"]);
    let texts: Vec<_> = again.not_restored().into_iter().map(|one| one.text).collect();
    assert!(texts.len() == 1 && !texts[0].contains("you"), "a command made it: {texts:?}");
}

#[test]
fn a_repository_that_a_command_made_is_never_taken_back() {
    let mut bench = Bench::new();
    let start = bench.checkpoint();
    bench.command(|root| {
        fs::write(root.join(".gitignore"), "sub\n").unwrap();
        for place in [root.to_owned(), root.join("sub")] {
            fs::create_dir_all(place.join(".git")).unwrap();
            fs::write(place.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        }
        fs::write(root.join("sub/file"), "1").unwrap();
    });
    let applied = bench.exact(&start).unwrap();
    assert_eq!(kept(&applied), [("sub".to_owned(), KeptBecause::HoldsOthers)]);
    assert_eq!(bench.read(".git/HEAD").as_deref(), Some("ref: refs/heads/main\n"));
    assert_eq!(bench.read("sub/.git/HEAD").as_deref(), Some("ref: refs/heads/main\n"));
    assert_eq!(bench.read("sub/file"), None);
}

#[test]
fn names_that_the_rules_hid_before_stay_without_a_word() {
    let mut bench = Bench::new();
    bench.write(".gitignore", "target\n*.o\n");
    let start = bench.checkpoint();
    bench.command(|root| {
        fs::create_dir(root.join("target")).unwrap();
        fs::write(root.join("target/a"), "built").unwrap();
        fs::write(root.join("x.o"), "built").unwrap();
        fs::write(root.join("source"), "made").unwrap();
    });
    let applied = bench.exact(&start).unwrap();
    assert_eq!(applied.plan.kept, Vec::<Kept>::new());
    assert_eq!(bench.names(), [".gitignore", "target", "target/a", "x.o"]);
}

#[test]
fn a_redone_rule_does_not_stop_the_capture() {
    let mut bench = Bench::new();
    bench.write("a", "1");
    bench.checkpoint();
    bench.command(|root| fs::write(root.join(".gitignore"), "*\n").unwrap());
    bench.undo().unwrap();
    bench.redo().unwrap();
    bench.write("a", "2");
    let now = bench.checkpoint();
    assert_eq!(now.changed.modified, 1);
    // A rule that hid a path at the target is not held up by going back to it.
    bench.write(".gitignore", "notes\n");
    bench.write("notes/n", "1");
    let ignoring = bench.checkpoint();
    bench.remove(".gitignore");
    bench.checkpoint();
    bench.exact(&ignoring).unwrap();
    assert!(!bench.is_captured(&bench.newest(), "notes/n"));
}

#[test]
fn a_file_that_a_command_grew_beyond_the_limit_names_the_command() {
    let mut bench = Bench::new();
    let place = bench.scratch.path().to_owned();
    let env = environment(&bench.root, place.join("store"));
    let settings = Settings { max_file: 10, ..env.settings };
    bench.workspace = Workspace::open(retake_engine::Environment { settings, ..env }).unwrap();
    bench.write("file", "small");
    bench.checkpoint();
    bench.command(|root| fs::write(root.join("file"), "more than ten bytes").unwrap());
    let gaps = bench.workspace.checkpoints().gaps(&bench.newest()).unwrap();
    assert_eq!(gaps.iter().map(|gap| gap.kind).collect::<Vec<_>>(), [GapKind::TooLarge]);
    match bench.undo() {
        Err(RewindError::Refused { plan }) => {
            let path = plan.conflicts().next().unwrap();
            assert_eq!(path.conflict, Some(Conflict::UncapturedSince));
            assert_eq!(path.changed_by.as_deref(), Some("bash: work"));
        }
        other => panic!("{other:?}"),
    }
    let undo = RewindRequest::new(Goal::Undo { operation: None, session: None });
    bench.apply(&RewindRequest { on_conflict: OnConflict::Overwrite, ..undo }).unwrap();
    assert_eq!(bench.read("file").as_deref(), Some("small"));
    bench.redo().unwrap();
    assert_eq!(bench.read("file").as_deref(), Some("more than ten bytes"));
}

#[test]
fn a_rewind_and_its_undo_make_nobody_else_the_author_of_a_file_beyond_the_limit() {
    let mut bench = Bench::new();
    let place = bench.scratch.path().to_owned();
    let env = environment(&bench.root, place.join("store"));
    let settings = Settings { max_file: 10, ..env.settings };
    bench.workspace = Workspace::open(retake_engine::Environment { settings, ..env }).unwrap();
    bench.write("file", "small");
    let start = bench.checkpoint();
    bench.command(|root| fs::write(root.join("file"), "more than ten bytes").unwrap());
    let command = bench.workspace.operations().all().unwrap()[0].id;
    let undo = RewindRequest::new(Goal::Undo { operation: Some(command), session: None });
    let refused = |bench: &mut Bench| match bench.apply(&undo) {
        Err(RewindError::Refused { plan }) => {
            let path = plan.conflicts().next().unwrap();
            (path.conflict, path.changed_by.clone())
        }
        other => panic!("{other:?}"),
    };
    let by_the_command = (Some(Conflict::UncapturedSince), Some("bash: work".to_owned()));
    assert_eq!(refused(&mut bench), by_the_command);
    for _ in 0..2 {
        bench.exact(&start).unwrap();
        assert_eq!(bench.read("file").as_deref(), Some("small"));
        bench.undo().unwrap();
        assert_eq!(bench.read("file").as_deref(), Some("more than ten bytes"));
        assert_eq!(refused(&mut bench), by_the_command, "only Retake has written it since");
    }
    bench.apply(&RewindRequest { on_conflict: OnConflict::Overwrite, ..undo.clone() }).unwrap();
    assert_eq!(bench.read("file").as_deref(), Some("small"));
}

#[test]
fn what_a_person_made_of_a_file_beyond_the_limit_stays_after_a_rewind_and_its_undo() {
    let mut bench = Bench::new();
    let place = bench.scratch.path().to_owned();
    let env = environment(&bench.root, place.join("store"));
    let settings = Settings { max_file: 10, ..env.settings };
    bench.workspace = Workspace::open(retake_engine::Environment { settings, ..env }).unwrap();
    bench.write("file", "small");
    let start = bench.checkpoint();
    bench.command(|root| fs::write(root.join("file"), "more than ten bytes").unwrap());
    let command = bench.workspace.operations().all().unwrap()[0].id;
    let undo = RewindRequest::new(Goal::Undo { operation: Some(command), session: None });
    bench.write("file", "mine");
    bench.checkpoint();
    for _ in 0..3 {
        match bench.apply(&undo) {
            Err(RewindError::Refused { plan }) => assert_eq!(plan.conflicts().count(), 1),
            other => panic!("{other:?}"),
        }
        assert_eq!(bench.read("file").as_deref(), Some("mine"));
        bench.exact(&start).unwrap();
        assert_eq!(bench.read("file").as_deref(), Some("small"));
        bench.undo().unwrap();
        assert_eq!(bench.read("file").as_deref(), Some("mine"));
    }
}

#[test]
fn a_file_that_two_commands_grew_and_shrank_again_names_the_last() {
    let mut bench = Bench::new();
    let place = bench.scratch.path().to_owned();
    let env = environment(&bench.root, place.join("store"));
    let settings = Settings { max_file: 10, ..env.settings };
    bench.workspace = Workspace::open(retake_engine::Environment { settings, ..env }).unwrap();
    bench.write("file", "small");
    let start = bench.checkpoint();
    let session = bench.session();
    bench.tool(session, &[], |root| fs::write(root.join("file"), "more than ten bytes").unwrap());
    bench.tool(session, &[], |root| fs::write(root.join("file"), "less").unwrap());
    let found = conflicts(bench.selective(session, &start, OnConflict::Stop));
    assert_eq!(found, [("file".to_owned(), Conflict::UncapturedSince)], "no other program is known to have changed it");
}

#[test]
fn a_file_that_a_command_deleted_in_a_directory_that_it_hides_is_deleted_and_comes_back() {
    type Work = fn(&Path);
    let delete: Work = |root| fs::remove_file(root.join("sub/k")).unwrap();
    let empty: Work = |root| {
        fs::remove_dir_all(root.join("sub")).unwrap();
        fs::create_dir(root.join("sub")).unwrap();
    };
    let rename: Work = |root| {
        fs::rename(root.join("sub"), root.join("SUB2")).unwrap();
        fs::create_dir(root.join("sub")).unwrap();
    };
    for (work, deleted, newly_held) in [(delete, 1, 1), (empty, 2, 0), (rename, 2, 0)] {
        let mut bench = Bench::new();
        bench.write("sub/k", "k");
        bench.write("sub/l", "l");
        let start = bench.checkpoint();
        bench.command(|root| {
            fs::write(root.join(".gitignore"), "sub/\n").unwrap();
            work(root);
        });
        let after = bench.newest();
        assert_eq!(after.changed.deleted, deleted);
        assert_eq!(
            bench.workspace.changes().coverage(&after).unwrap(),
            Coverage { newly_held, held: newly_held, no_longer: 0 }
        );
        let sides = [Side::Stored(start.snapshot), Side::Stored(after.snapshot)];
        let changes = bench.workspace.diff(&sides[0], &sides[1]).unwrap();
        let (changes, left_out) = bench
            .workspace
            .checkpoints()
            .split_left_out(changes, &retake_engine::view::Beside::Checkpoint(&after))
            .unwrap();
        assert!(left_out.iter().all(|change| change.path == path("sub")), "{left_out:?}");
        assert_eq!(Changed::count(&changes).deleted, deleted);
        let all = ["sub", "sub/k", "sub/l"];
        bench.undo().unwrap();
        assert_eq!(bench.names(), all);
        bench.redo().unwrap();
        assert_eq!(bench.read("sub/k"), None);
        bench.exact(&start).unwrap();
        assert_eq!(bench.names(), all);
        assert!(bench.workspace.maintenance().index_agrees(&NoProgress).unwrap());
    }
}

#[test]
fn a_file_that_a_command_made_in_a_directory_that_it_hides_is_the_commands() {
    let mut bench = Bench::new();
    bench.write("sub/k", "k");
    let start = bench.checkpoint();
    bench.command(|root| {
        fs::rename(root.join("sub"), root.join("SUB2")).unwrap();
        fs::create_dir(root.join("sub")).unwrap();
        fs::write(root.join("sub/hid"), "the command's").unwrap();
        fs::write(root.join(".gitignore"), "sub/\n").unwrap();
    });
    let plan = bench.workspace.rewinds().plan(&RewindRequest::new(exactly(&start).goal), &NoProgress).unwrap();
    assert!(plan.is_applicable() && plan.paths.iter().all(|path| !path.yours), "{plan:?}");
    bench.exact(&start).unwrap();
    assert_eq!(bench.names(), ["sub", "sub/k"]);
    bench.undo().unwrap();
    assert_eq!(bench.read("sub/hid").as_deref(), Some("the command's"));
}

#[test]
fn a_removed_rule_goes_back_and_what_it_hid_is_no_addition() {
    let mut bench = Bench::new();
    bench.write(".gitignore", "node_modules\n");
    bench.write("node_modules/a", "1");
    bench.write("node_modules/b/c", "1");
    let start = bench.checkpoint();
    bench.command(|root| fs::remove_file(root.join(".gitignore")).unwrap());
    assert_eq!(bench.newest().changed, Changed { added: 0, modified: 0, deleted: 1 });
    let names = bench.names();
    let applied = bench.undo().unwrap();
    assert_eq!(kept(&applied), [("node_modules".to_owned(), KeptBecause::NotProven)]);
    assert_eq!(bench.read(".gitignore").as_deref(), Some("node_modules\n"));
    assert_eq!(bench.names().len(), names.len() + 1);
    assert!(!bench.is_captured(&bench.newest(), "node_modules/a"));
    bench.redo().unwrap();
    assert_eq!(bench.names(), names);
    bench.exact(&start).unwrap();
    assert_eq!(bench.read("node_modules/b/c").as_deref(), Some("1"));
}

#[test]
fn a_file_that_a_rewind_left_is_like_any_other_once_it_is_edited() {
    let mut bench = Bench::new();
    bench.write("d/a", "1");
    let start = bench.checkpoint();
    bench.command(|root| fs::write(root.join("d/.retakeignore"), "*\n").unwrap());
    bench.write("d/mine", "m");
    let first = bench.exact(&start).unwrap();
    assert_eq!(kept(&first), [("d/mine".to_owned(), KeptBecause::Hidden)]);
    bench.checkpoint();
    assert!(bench.exact(&start).unwrap().operation.is_none(), "nothing has changed since");
    bench.write("d/mine", "more");
    let plan = bench.workspace.rewinds().plan(&exactly(&start), &NoProgress).unwrap();
    assert_eq!(plan.kept, Vec::<Kept>::new(), "before a checkpoint has found the edit");
    bench.checkpoint();
    let second = bench.exact(&start).unwrap();
    assert_eq!((kept(&second), bench.names()), (Vec::new(), vec!["d".to_owned(), "d/a".to_owned()]));
    bench.undo().unwrap();
    assert_eq!(bench.read("d/mine").as_deref(), Some("more"));
}
