//! Ignore rules that come and go: what stays captured, whose a file is that was hidden for a time, and which names are never deleted.

use super::*;

impl Bench {
    fn applying_rules(&mut self) -> Checkpoint {
        let new = numbered(self.tick());
        self.workspace.checkpoints_mut().take_applying_rules(new, Durability::Soon, &NoProgress).unwrap()
    }

    /// The file at `text` in `checkpoint`.
    fn holds(&self, checkpoint: &Checkpoint, text: &str) -> bool {
        let side = retake_engine::view::Side::Stored(checkpoint.snapshot);
        self.workspace.entry(&side, &path(text)).unwrap().is_some()
    }

    fn plan(&self, request: &RewindRequest) -> retake_engine::rewind::Plan {
        self.workspace.rewinds().plan(request, &NoProgress).unwrap()
    }
}

fn undecided(to: &Checkpoint) -> RewindRequest {
    RewindRequest::new(Goal::Exact { checkpoint: to.id, session: None })
}

#[test]
fn a_file_that_the_user_ignores_is_not_captured_after_a_rewind_and_its_undo() {
    for content in ["1", "2"] {
        let mut bench = Bench::new();
        bench.write("secret", "1");
        let start = bench.checkpoint();
        bench.write(".gitignore", "secret\n");
        bench.write("secret", content);
        let ignored = bench.checkpoint();
        assert!(!bench.holds(&ignored, "secret"));
        bench.exact(&start).unwrap();
        assert_eq!(bench.read("secret").as_deref(), Some("1"));
        bench.undo().unwrap();
        assert_eq!(bench.read("secret").as_deref(), Some(content));
        bench.write("secret", "key");
        let later = bench.checkpoint();
        assert!(!bench.holds(&later, "secret"), "content {content}");
        assert_eq!(bench.workspace.changes().coverage(&later).unwrap().held, 0);
        bench.command(|_| ());
        assert!(!bench.holds(&bench.workspace.checkpoints().newest().unwrap().unwrap(), "secret"), "content {content}");
        let confirmed = bench.applying_rules();
        assert!(!bench.holds(&confirmed, "secret"));
        assert!(bench.workspace.maintenance().index_agrees(&NoProgress).unwrap());
    }
}

#[test]
fn an_ignored_file_where_a_declared_path_had_its_directory_is_not_captured_after_a_rewind_that_keeps_it() {
    let mut bench = Bench::new();
    bench.write("notes", "1");
    bench.write("build/out/log", "1");
    bench.write(".gitignore", "build\n");
    bench.workspace.windows().declare(&path("build/out/log")).unwrap();
    let start = bench.checkpoint();
    assert!(bench.holds(&start, "build/out/log"), "it is declared");
    bench.remove("notes");
    fs::remove_dir_all(bench.root.join("build/out")).unwrap();
    bench.write("build/out", "2");
    let keep = RewindRequest { on_conflict: OnConflict::Keep, ..undecided(&start) };
    bench.apply(&keep).unwrap();
    assert_eq!(bench.read("notes").as_deref(), Some("1"));
    assert_eq!(bench.read("build/out").as_deref(), Some("2"));
    let after = bench.workspace.checkpoints().newest().unwrap().unwrap();
    assert!(!bench.holds(&after, "build/out"), "only what is below it is declared, and the rewind left it alone");
    assert!(bench.workspace.maintenance().index_agrees(&NoProgress).unwrap());
}

#[test]
fn an_ignored_file_that_a_rewind_wrote_goes_back_and_forth_with_checkpoints_in_between() {
    let mut bench = Bench::new();
    bench.write("secret", "1");
    let start = bench.checkpoint();
    bench.write(".gitignore", "secret\n");
    bench.write("secret", "2");
    bench.checkpoint();
    bench.exact(&start).unwrap();
    for _ in 0..2 {
        bench.undo().unwrap();
        bench.checkpoint();
        assert_eq!(bench.read("secret").as_deref(), Some("2"));
        bench.redo().unwrap();
        bench.checkpoint();
        assert_eq!(bench.read("secret").as_deref(), Some("1"));
    }
    bench.undo().unwrap();
    bench.checkpoint();
    bench.write("secret", "key");
    assert_eq!(conflicts(bench.redo()), [("secret".to_owned(), Conflict::UncapturedSince)]);
}

#[test]
fn a_rule_that_came_back_by_a_redo_applies_when_the_user_confirms_it() {
    let mut bench = Bench::new();
    bench.write("d/x", "x");
    bench.checkpoint();
    bench.command(|root| fs::write(root.join(".retakeignore"), "x\n").unwrap());
    bench.undo().unwrap();
    bench.redo().unwrap();
    let confirmed = bench.applying_rules();
    assert!(!bench.holds(&confirmed, "d/x"));
    assert_eq!(bench.workspace.changes().coverage(&confirmed).unwrap().no_longer, 1);
    assert!(bench.workspace.maintenance().index_agrees(&NoProgress).unwrap());
}

#[test]
fn a_name_that_the_rules_of_the_point_hid_is_never_deleted() {
    for rule in ["a\n", "*.txt\na\n", "a/\n/a\n"] {
        let mut bench = Bench::new();
        bench.write(".gitignore", rule);
        let start = bench.checkpoint();
        bench.write("a", "thesis");
        bench.write("new", "mine");
        bench.remove(".gitignore");
        for _ in 0..2 {
            bench.exact(&start).unwrap();
            assert_eq!(bench.names(), [".gitignore", "a"], "{rule:?}");
        }
        bench.undo().unwrap();
        assert_eq!(bench.names(), ["a", "new"], "{rule:?}");
    }
    let mut bench = Bench::new();
    bench.write(".gitignore", "out/\n");
    let start = bench.checkpoint();
    bench.write("out/a", "thesis");
    bench.write("out/b/c", "thesis");
    bench.remove(".gitignore");
    bench.checkpoint();
    let applied = bench.exact(&start).unwrap();
    assert_eq!(bench.names(), [".gitignore", "out", "out/a", "out/b", "out/b/c"]);
    let kept: Vec<_> = applied.plan.kept.iter().map(|kept| kept.path.display().to_string()).collect();
    assert_eq!(kept, ["out"], "a directory is named for all that is in it");
}

#[test]
fn an_undo_names_what_a_command_hid_and_no_store_can_hold() {
    let mut bench = Bench::new();
    let start = bench.checkpoint();
    bench.command(|root| {
        fs::write(root.join(".gitignore"), "h*\n").unwrap();
        assert!(Command::new("mkfifo").arg(root.join("h4")).status().unwrap().success());
        fs::create_dir(root.join("hidden")).unwrap();
        fs::write(root.join("hidden/file"), "1").unwrap();
        assert!(Command::new("mkfifo").arg(root.join("hidden/pipe")).status().unwrap().success());
    });
    let names = |plan: &retake_engine::rewind::Plan| {
        let not_restored = plan.not_restored();
        not_restored.iter().map(|one| (one.path.display().to_string(), one.why)).collect::<Vec<_>>()
    };
    let uncaptured = |name: &str| (name.to_owned(), "not_captured");
    let expected = vec![uncaptured("h4"), ("hidden".to_owned(), "holds_others"), uncaptured("hidden/pipe")];
    let undo = RewindRequest::new(Goal::Undo { operation: None, session: None });
    assert_eq!(names(&bench.plan(&exactly(&start))), expected);
    assert_eq!(names(&bench.plan(&undo)), expected);
    let applied = bench.undo().unwrap();
    assert_eq!(names(&applied.plan), expected);
    assert_eq!(bench.names(), ["h4", "hidden", "hidden/pipe"]);
}

#[test]
fn a_command_that_removes_a_rule_has_not_changed_the_file_that_it_hid() {
    let mut bench = Bench::new();
    bench.write("a", "1");
    let start = bench.checkpoint();
    bench.write(".gitignore", "thesis\na\n");
    bench.checkpoint();
    bench.write("a", "mine");
    bench.write("thesis", "mine");
    bench.command(|root| fs::remove_file(root.join(".gitignore")).unwrap());
    let plan = bench.plan(&undecided(&start));
    for name in ["a", "thesis"] {
        let planned = plan.paths.iter().find(|planned| planned.path == path(name)).unwrap();
        assert_eq!((planned.conflict, &planned.changed_by), (Some(Conflict::UncapturedSince), &None), "{name}");
        assert!(!planned.why().unwrap().contains("since"), "{:?}", planned.why());
    }
    assert_eq!(plan.undoes, Vec::<String>::new(), "the rule was not there then either");
}

#[test]
fn nobody_is_named_for_a_change_while_the_file_was_ignored() {
    let mut bench = Bench::new();
    bench.write("a", "1");
    let start = bench.checkpoint();
    bench.command(|root| fs::write(root.join(".gitignore"), "a\n").unwrap());
    bench.write("a", "2");
    bench.applying_rules();
    let planned = |bench: &Bench| {
        let plan = bench.plan(&undecided(&start));
        let planned = plan.paths.iter().find(|planned| planned.path == path("a")).unwrap();
        (planned.conflict, planned.yours, planned.changed_by.clone())
    };
    assert_eq!(planned(&bench), (Some(Conflict::UncapturedSince), false, None), "the last point holds an older state");
    bench.command(|root| fs::write(root.join("a"), "3").unwrap());
    assert_eq!(planned(&bench), (Some(Conflict::UncapturedSince), false, None));

    let mut bench = Bench::new();
    bench.write("a", "1");
    let start = bench.checkpoint();
    bench.write("a", "mine");
    bench.checkpoint();
    bench.write(".gitignore", "a\n");
    bench.checkpoint();
    let plan = bench.plan(&undecided(&start));
    let planned = plan.paths.iter().find(|planned| planned.path == path("a")).unwrap();
    assert_eq!((planned.conflict, planned.yours), (Some(Conflict::Yours), true), "as the user left it");
}

#[test]
fn a_directory_that_gives_way_to_a_file_waits_for_the_decision_on_what_is_in_it() {
    let mut bench = Bench::new();
    bench.write("p", "a");
    let start = bench.checkpoint();
    bench.command(|root| {
        fs::remove_file(root.join("p")).unwrap();
        fs::create_dir(root.join("p")).unwrap();
        fs::write(root.join("p/x"), "x").unwrap();
    });
    bench.write("p/y", "mine");
    let plan = bench.plan(&undecided(&start));
    assert_eq!(plan.blocked, Vec::<WorkspacePath>::new(), "what stays is not decided yet");
    let keep = RewindRequest { on_conflict: OnConflict::Keep, ..undecided(&start) };
    assert_eq!(bench.plan(&keep).blocked, [path("p")]);
    bench.exact(&start).unwrap();
    assert_eq!(bench.read("p").as_deref(), Some("a"));
}

#[test]
fn nothing_is_in_the_way_that_an_open_decision_can_move() {
    let mut bench = Bench::new();
    bench.write("p/x", "x");
    bench.checkpoint();
    bench.command(|root| {
        fs::remove_dir_all(root.join("p")).unwrap();
        fs::write(root.join("p"), "a").unwrap();
    });
    bench.write("p", "a and b");
    assert_eq!(conflicts(bench.undo()), [("p".to_owned(), Conflict::ChangedSince)]);
    let undo = RewindRequest::new(Goal::Undo { operation: None, session: None });
    let keep = RewindRequest { on_conflict: OnConflict::Keep, ..undo.clone() };
    let in_the_way: Vec<_> = bench.plan(&keep).conflicts().map(|planned| planned.conflict.unwrap()).collect();
    assert_eq!(in_the_way, [Conflict::ChangedSince, Conflict::InTheWay]);
    bench.apply(&RewindRequest { on_conflict: OnConflict::Overwrite, ..undo }).unwrap();
    assert_eq!(bench.read("p/x").as_deref(), Some("x"));
}
