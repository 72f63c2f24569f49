//! Exact rewinds and a person's own changes: who changed which path, and what may be lost without a decision.

use std::fs;

use retake_engine::progress::NoProgress;
use retake_engine::rewind::{Conflict, Goal, Means, OnConflict, PathStatus, Plan, RewindRequest};
use retake_engine::{Environment, Settings, Workspace};

use super::{Bench, conflicts, exactly, path};
use crate::scanners::environment;

/// The exact rewind that nobody has decided anything about.
fn undecided(to: &retake_engine::checkpoint::Checkpoint) -> RewindRequest {
    RewindRequest::new(Goal::Exact { checkpoint: to.id, session: None })
}

fn plan(bench: &Bench, request: &RewindRequest) -> Plan {
    bench.workspace.rewinds().plan(request, &NoProgress).unwrap()
}

fn yours(plan: &Plan) -> Vec<String> {
    plan.paths.iter().filter(|path| path.yours).map(|path| path.path.display().to_string()).collect()
}

#[test]
fn an_exact_rewind_stops_at_changes_of_a_person_and_takes_back_those_of_commands() {
    let mut bench = Bench::new();
    for name in ["both", "deleted", "mine", "theirs"] {
        bench.write(name, "1\n2\n3\n4\n5\n");
    }
    let start = bench.checkpoint();
    bench.command(|root| {
        std::fs::write(root.join("theirs"), "x").unwrap();
        std::fs::write(root.join("both"), "x\n2\n3\n4\n5\n").unwrap();
    });
    bench.write("mine", "my own");
    bench.write("new", "my own");
    bench.write("both", "x\n2\n3\n4\ny\n");
    bench.remove("deleted");
    let planned = plan(&bench, &undecided(&start));
    assert_eq!(planned.means, Some(Means::Workspace));
    assert_eq!(yours(&planned), ["both", "deleted", "mine", "new"]);
    let stopping = ["both", "mine", "new"].map(|name| (name.to_owned(), Conflict::Yours));
    assert_eq!(conflicts(bench.apply(&undecided(&start))), stopping, "a deleted file comes back and loses nothing");
    assert_eq!(bench.read("mine").as_deref(), Some("my own"));
    let with = |on_conflict| RewindRequest { on_conflict, ..undecided(&start) };
    let refused = conflicts(bench.apply(&with(OnConflict::Merge)));
    assert_eq!(refused.len(), 3, "only one of them merges");
    bench.apply(&with(OnConflict::Keep)).unwrap();
    assert_eq!(
        (bench.read("mine").as_deref(), bench.read("theirs").as_deref()),
        (Some("my own"), Some("1\n2\n3\n4\n5\n"))
    );
    assert!(bench.read("deleted").is_some(), "a deleted file is back");
    assert_eq!(bench.apply(&with(OnConflict::Keep)).unwrap().operation, None, "a fixed point");
    bench.undo().unwrap();
    let merge = RewindRequest { paths: vec![path("both")], ..with(OnConflict::Merge) };
    bench.apply(&merge).unwrap();
    assert_eq!(bench.read("both").as_deref(), Some("1\n2\n3\n4\ny\n"));
    bench.apply(&exactly(&start)).unwrap();
    assert_eq!(bench.names(), ["both", "deleted", "mine", "theirs"]);
    assert_eq!(bench.read("mine").as_deref(), Some("1\n2\n3\n4\n5\n"));
    assert_eq!(bench.apply(&undecided(&start)).unwrap().operation, None, "a fixed point");
}

#[test]
fn a_change_that_a_checkpoint_found_is_still_a_persons() {
    let mut bench = Bench::new();
    bench.write("file", "1");
    let start = bench.checkpoint();
    bench.write("file", "2");
    let seen = plan(&bench, &undecided(&start)).fingerprint();
    bench.checkpoint();
    let later = plan(&bench, &undecided(&start));
    assert_eq!(yours(&later), ["file"]);
    assert!(later.is_as_seen(&seen), "the same files, whoever has looked at them");
}

#[test]
fn authors_are_those_whose_changes_are_in_the_files() {
    let mut bench = Bench::new();
    bench.write("a", "1");
    bench.write("b", "1");
    let start = bench.checkpoint();
    bench.command(|root| std::fs::write(root.join("a"), "2").unwrap());
    bench.undo().unwrap();
    bench.write("a", "mine");
    bench.write("b", "mine");
    let planned = plan(&bench, &exactly(&start));
    assert_eq!((planned.undoes.len(), planned.ledger.len()), (0, 0), "{:?} {:?}", planned.undoes, planned.ledger);
    bench.command(|root| std::fs::write(root.join("b"), "3").unwrap());
    let planned = plan(&bench, &exactly(&start));
    assert_eq!((planned.undoes, planned.ledger), (vec!["bash: work".to_owned()], Vec::new()));
}

#[test]
fn a_fingerprint_is_about_states_and_choices_and_open_until_all_is_decided() {
    let mut bench = Bench::new();
    bench.write("file", "1");
    let start = bench.checkpoint();
    bench.write("file", "2");
    let open = plan(&bench, &undecided(&start)).fingerprint();
    let keep = RewindRequest { on_conflict: OnConflict::Keep, ..undecided(&start) };
    let (kept, replaced) = (plan(&bench, &keep), plan(&bench, &exactly(&start)));
    assert!(kept.is_as_seen(&open) && replaced.is_as_seen(&open));
    assert!(!kept.is_as_seen(&replaced.fingerprint()) && !replaced.is_as_seen(&kept.fingerprint()));
    bench.write("other", "comes meanwhile");
    assert!(!plan(&bench, &exactly(&start)).is_as_seen(&open));
}

/// Rewinds to `start` without any decision: it must stop at `name`, which `bench` has as `content`.
fn assert_stops_at(bench: &mut Bench, start: &retake_engine::checkpoint::Checkpoint, name: &str, content: &str) {
    assert_eq!(bench.read(name).as_deref(), Some(content));
    assert_eq!(conflicts(bench.apply(&undecided(start))), [(name.to_owned(), Conflict::Yours)]);
    assert_eq!(bench.read(name).as_deref(), Some(content));
}

#[test]
fn a_persons_work_that_an_undo_brought_back_is_still_theirs() {
    let mut bench = Bench::new();
    bench.write("a", "1");
    let start = bench.checkpoint();
    bench.write("a", "mine");
    bench.exact(&start).unwrap();
    let later = bench.checkpoint();
    bench.undo().unwrap();
    assert_stops_at(&mut bench, &start, "a", "mine");
    assert_stops_at(&mut bench, &later, "a", "mine");
    bench.write("a", "1");
    bench.write("new", "mine");
    bench.command(|root| fs::remove_file(root.join("new")).unwrap());
    bench.undo().unwrap();
    assert_stops_at(&mut bench, &start, "new", "mine");
    bench.command(|root| fs::write(root.join("a"), "2").unwrap());
    bench.write("a", "3");
    bench.remove("new");
    bench.command(|root| fs::write(root.join("a"), "1").unwrap());
    bench.undo().unwrap();
    assert_stops_at(&mut bench, &start, "a", "3");
}

#[test]
fn a_persons_work_that_rewinds_brought_back_is_still_theirs() {
    let mut bench = Bench::new();
    bench.write("a", "1");
    let one = bench.checkpoint();
    bench.write("a", "2");
    let two = bench.checkpoint();
    bench.exact(&one).unwrap();
    bench.exact(&two).unwrap();
    assert_stops_at(&mut bench, &one, "a", "2");
    bench.exact(&one).unwrap();
    assert!(bench.apply(&undecided(&two)).is_ok(), "the first content of a path is no change");
}

#[test]
fn a_persons_work_that_the_session_brought_back_is_not_the_sessions() {
    let mut bench = Bench::new();
    let session = bench.session();
    bench.write("a", "1");
    let start = bench.checkpoint();
    bench.write("a", "mine");
    let goal = Goal::Exact { checkpoint: start.id, session: Some(session) };
    bench.apply(&RewindRequest { on_yours: OnConflict::Overwrite, ..RewindRequest::new(goal) }).unwrap();
    let later = bench.checkpoint();
    bench.undo().unwrap();
    let stopped = conflicts(bench.selective(session, &later, OnConflict::Stop));
    assert_eq!(stopped, [("a".to_owned(), Conflict::ChangedByOthers)]);
    assert_eq!(bench.read("a").as_deref(), Some("mine"));
}

#[test]
fn work_of_others_that_an_exact_rewind_and_its_undo_touched_is_left_alone() {
    let mut bench = Bench::new();
    let session = bench.session();
    bench.write("a", "1");
    bench.write("b", "1");
    let start = bench.checkpoint();
    bench.write("a", "mine");
    bench.tool(session, &["b"], |root| fs::write(root.join("b"), "2").unwrap());
    let goal = Goal::Exact { checkpoint: start.id, session: Some(session) };
    bench.apply(&RewindRequest { on_yours: OnConflict::Overwrite, ..RewindRequest::new(goal) }).unwrap();
    bench.undo().unwrap();
    bench.selective(session, &start, OnConflict::Stop).unwrap();
    assert_eq!((bench.read("a").as_deref(), bench.read("b").as_deref()), (Some("mine"), Some("1")));
}

#[test]
fn a_command_is_the_author_again_when_an_undo_brings_its_change_back() {
    let mut bench = Bench::new();
    bench.write("a", "1");
    let start = bench.checkpoint();
    bench.command(|root| fs::write(root.join("a"), "2").unwrap());
    bench.exact(&start).unwrap();
    bench.undo().unwrap();
    let planned = plan(&bench, &undecided(&start));
    assert_eq!((planned.undoes.len(), planned.ledger.len(), yours(&planned).len()), (1, 0, 0), "{planned:?}");
}

#[test]
fn an_open_decision_names_the_command_that_the_plan_would_take_back() {
    let mut bench = Bench::new();
    bench.write("a", "1");
    let start = bench.checkpoint();
    bench.command(|root| fs::write(root.join("a"), "2").unwrap());
    bench.write("a", "mine");
    let open = plan(&bench, &undecided(&start));
    assert_eq!((open.undoes.len(), open.ledger.len()), (1, 0), "{:?} {:?}", open.undoes, open.ledger);
    let kept = plan(&bench, &RewindRequest { on_conflict: OnConflict::Keep, ..undecided(&start) });
    assert_eq!((kept.undoes.len(), kept.ledger.len()), (0, 1), "{:?} {:?}", kept.undoes, kept.ledger);
}

#[test]
fn a_persons_change_is_theirs_until_a_command_replaces_it_whole() {
    let mut bench = Bench::new();
    bench.write("a", "1\n");
    bench.write("b", "1\n2\n");
    let start = bench.checkpoint();
    bench.command(|root| fs::write(root.join("a"), "2\n").unwrap());
    bench.write("a", "mine\n");
    bench.write("b", "1\nmine\n");
    bench.command(|root| {
        fs::write(root.join("a"), "3\n").unwrap();
        fs::write(root.join("b"), "1\nmine\n3\n").unwrap();
    });
    assert_eq!(yours(&plan(&bench, &undecided(&start))), ["b"]);
    bench.command(|root| fs::write(root.join("b"), "3\n").unwrap());
    bench.apply(&undecided(&start)).unwrap();
    assert_eq!((bench.read("a").as_deref(), bench.read("b").as_deref()), (Some("1\n"), Some("1\n2\n")));
}

#[test]
fn a_merge_says_so_and_repeating_it_changes_nothing() {
    let mut bench = Bench::new();
    bench.write("a", "1\n2\n3\n4\n5\n");
    let start = bench.checkpoint();
    bench.command(|root| fs::write(root.join("a"), "x\n2\n3\n4\n5\n").unwrap());
    bench.write("a", "x\n2\n3\n4\ny\n");
    let merge = RewindRequest { on_conflict: OnConflict::Merge, ..undecided(&start) };
    let applied = bench.apply(&merge).unwrap();
    assert!(applied.plan.paths[0].is_merged());
    let remains = |applied: &retake_engine::rewind::Applied| -> Vec<&str> {
        applied.not_restored().iter().map(|one| one.why).collect()
    };
    assert_eq!(remains(&applied), ["merged"]);
    assert_eq!(bench.read("a").as_deref(), Some("1\n2\n3\n4\ny\n"));
    let again = bench.apply(&merge).unwrap();
    assert_eq!((again.operation, again.statuses[0].1, remains(&again)), (None, PathStatus::Kept, vec!["merged"]));
    bench.undo().unwrap();
    assert_eq!(bench.read("a").as_deref(), Some("x\n2\n3\n4\ny\n"), "the first one is undone");
}

#[test]
fn a_directory_that_comes_after_the_plan_makes_it_stale() {
    let mut bench = Bench::new();
    bench.write("file", "1");
    let start = bench.checkpoint();
    bench.write("file", "2");
    bench.write("mine/file", "2");
    let seen = plan(&bench, &undecided(&start)).fingerprint();
    for on_conflict in [OnConflict::Keep, OnConflict::Overwrite] {
        let decided = plan(&bench, &RewindRequest { on_conflict, ..undecided(&start) });
        assert!(decided.is_as_seen(&seen), "whether a directory goes depends on the choices: {on_conflict:?}");
    }
    fs::create_dir_all(bench.root.join("empty/below")).unwrap();
    assert!(!plan(&bench, &exactly(&start)).is_as_seen(&seen));
    let new = bench.identities();
    bench.workspace.rewinds_mut().apply(&exactly(&start), Some(&seen), &new, &NoProgress).unwrap_err();
    assert!(bench.root.join("empty/below").is_dir());
}

#[test]
fn what_a_command_left_uncaptured_is_not_called_a_persons() {
    let mut bench = Bench::new();
    let env = environment(&bench.root, bench.scratch.path().join("store"));
    let settings = Settings { max_file: 10, ..env.settings };
    bench.workspace = Workspace::open(Environment { settings, ..env }).unwrap();
    bench.write("file", "small");
    let start = bench.checkpoint();
    bench.command(|root| fs::write(root.join("file"), "more than ten bytes").unwrap());
    let open = plan(&bench, &undecided(&start));
    let [file] = &open.paths[..] else { panic!("{open:?}") };
    assert_eq!((file.yours, file.conflict), (false, Some(Conflict::UncapturedSince)));
    assert_eq!(file.changed_by.as_deref(), Some("bash: work"));
    assert_eq!(conflicts(bench.apply(&undecided(&start))).len(), 1, "a person may have changed it since");
    let replacing = plan(&bench, &exactly(&start));
    assert!(replacing.is_as_seen(&open.fingerprint()));
    bench.apply(&exactly(&start)).unwrap();
    assert_eq!(bench.read("file").as_deref(), Some("small"));
}
