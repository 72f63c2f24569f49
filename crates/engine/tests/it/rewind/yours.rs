//! Exact rewinds and a person's own changes: who changed which path, and what may be lost without a decision.

use retake_engine::{Conflict, Goal, Means, NoProgress, OnConflict, Plan, RewindRequest};

use super::{Bench, conflicts, exactly, path};

/// The exact rewind that nobody has decided anything about.
fn undecided(to: &retake_engine::Checkpoint) -> RewindRequest {
    RewindRequest::new(Goal::Exact { checkpoint: to.id, session: None })
}

fn plan(bench: &Bench, request: &RewindRequest) -> Plan {
    bench.workspace.plan(request, &NoProgress).unwrap()
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
