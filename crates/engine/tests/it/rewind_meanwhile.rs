//! Others at work while files are swapped: what they save is theirs, stays on disk or is in the store, and is told.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use retake_engine::changes::Owner;
use retake_engine::rewind::{Conflict, PathStatus, Recovered, RecoveryChoice, RewindError};
use retake_engine::view::Side;
use retake_testkit::privilege::{assert_denied, give_to_nobody, run_as_nobody};
use retake_testkit::rerun;

use crate::rewind::{Bench, conflicts, exactly, path};
use crate::rewind_hostile::{take_turn, when};

/// A bench with `file` and `other` changed from one to two by a tool.
fn changed_by_a_tool() -> Bench {
    let mut bench = Bench::new();
    change_by_a_tool(&mut bench);
    bench
}

fn change_by_a_tool(bench: &mut Bench) {
    bench.write("file", "one");
    bench.write("other", "one");
    bench.checkpoint();
    bench.command(|root| {
        fs::write(root.join("file"), "two").unwrap();
        fs::write(root.join("other"), "two").unwrap();
    });
}

/// Begins an undo and ends it at `place` as a crash would.
fn undo_crashing_at(place: &'static str, bench: &mut Bench) {
    when(place, || panic!("this is the crash"));
    let undo = std::panic::AssertUnwindSafe(|| bench.undo());
    assert!(std::panic::catch_unwind(undo).is_err(), "it comes to {place}");
    fail::remove(place);
}

fn status(applied: &retake_engine::rewind::Applied, wanted: &str) -> PathStatus {
    applied.statuses.iter().find(|(name, _)| *name == path(wanted)).unwrap().1
}

#[test]
fn what_is_saved_after_the_swap_is_not_ours() {
    let _turn = take_turn();
    let mut bench = changed_by_a_tool();
    let file = bench.root.join("file");
    when("rewind-swapped", move || fs::write(&file, "mine").unwrap());
    let applied = bench.undo().unwrap();
    fail::remove("rewind-swapped");
    assert_eq!((status(&applied, "file"), status(&applied, "other")), (PathStatus::Overtaken, PathStatus::Done));
    assert_eq!(bench.read("file").as_deref(), Some("mine"));
    let newest = bench.workspace.changes().of_path(&path("file")).unwrap().remove(0);
    assert_eq!(newest.owner, Owner::Outside);
    assert_eq!(conflicts(bench.redo()), [("file".to_owned(), Conflict::ChangedByOthers)]);
    assert_eq!(bench.read("file").as_deref(), Some("mine"));
}

#[test]
fn what_is_edited_between_a_crash_and_its_recovery_is_not_ours() {
    let _turn = take_turn();
    for choice in [RecoveryChoice::Finish, RecoveryChoice::GoBack] {
        let mut bench = changed_by_a_tool();
        undo_crashing_at("rewind-swapped", &mut bench);
        bench.write("file", "mine");
        let new = bench.identities();
        let asked = bench.workspace.rewinds_mut().recover(RecoveryChoice::Ask, new.after, new.at);
        assert!(matches!(asked, Err(RewindError::ChangedSinceCrash { .. })), "{asked:?}");
        let new = bench.identities();
        bench.workspace.rewinds_mut().recover(choice, new.after, new.at).unwrap();
        let newest = bench.workspace.changes().of_path(&path("file")).unwrap().remove(0);
        assert_eq!(newest.owner, Owner::Outside, "{choice:?}");
        match choice {
            RecoveryChoice::GoBack => {
                assert_eq!(conflicts(bench.undo()), [("file".to_owned(), Conflict::ChangedByOthers)]);
            }
            // The undo has done nothing to it, so there is nothing to repeat.
            _ => drop(bench.redo().unwrap()),
        }
        assert_eq!(bench.read("file").as_deref(), Some("mine"), "{choice:?}");
    }
}

#[test]
fn what_was_saved_before_a_crash_is_how_it_was() {
    let _turn = take_turn();
    for choice in [RecoveryChoice::GoBack, RecoveryChoice::Finish] {
        let mut bench = changed_by_a_tool();
        let file = bench.root.join("file");
        when("rewind-armed", move || fs::write(&file, "saved meanwhile").unwrap());
        undo_crashing_at("rewind-swapped", &mut bench);
        fail::remove("rewind-armed");
        assert_eq!(bench.read("file").as_deref(), Some("one"));
        let new = bench.identities();
        let recovered = bench.workspace.rewinds_mut().recover(choice, new.after, new.at).unwrap();
        match recovered {
            Recovered::TakenBack(_) => assert_eq!(bench.read("file").as_deref(), Some("saved meanwhile")),
            Recovered::Finished(operation) => {
                assert_eq!(bench.read("file").as_deref(), Some("one"));
                assert_eq!(bench.workspace.rewinds().displaced(operation.id).unwrap(), [path("file")]);
                bench.redo().unwrap();
                assert_eq!(bench.read("file").as_deref(), Some("saved meanwhile"));
            }
            Recovered::Nothing => panic!("something was interrupted"),
        }
        assert_eq!(bench.names(), ["file", "other"], "{choice:?}");
    }
}

#[test]
fn what_somebody_deletes_after_a_crash_stays_deleted() {
    let _turn = take_turn();
    for place in ["rewind-armed", "rewind-swapped"] {
        let mut bench = changed_by_a_tool();
        undo_crashing_at(place, &mut bench);
        bench.remove("file");
        let new = bench.identities();
        let asked = bench.workspace.rewinds_mut().recover(RecoveryChoice::Ask, new.after, new.at);
        assert!(matches!(asked, Err(RewindError::ChangedSinceCrash { .. })), "{place}: {asked:?}");
        let new = bench.identities();
        bench.workspace.rewinds_mut().recover(RecoveryChoice::Finish, new.after, new.at).unwrap();
        assert_eq!(bench.names(), ["other"], "{place}");
        assert_eq!(bench.read("other").as_deref(), Some("one"), "{place}");
    }
}

#[test]
fn permissions_that_somebody_gives_meanwhile_come_back() {
    let _turn = take_turn();
    let mut bench = changed_by_a_tool();
    let file = bench.root.join("file");
    let mode = |file: &PathBuf| fs::metadata(file).unwrap().permissions().mode() & 0o7777;
    when("rewind-armed", {
        let file = file.clone();
        move || fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap()
    });
    let applied = bench.undo().unwrap();
    fail::remove("rewind-armed");
    assert_eq!(status(&applied, "file"), PathStatus::Displaced);
    bench.redo().unwrap();
    assert_eq!((bench.read("file").as_deref(), mode(&file)), (Some("two"), 0o600));
}

#[test]
fn a_directory_that_somebody_took_away_after_a_crash_keeps_nobody_from_working() {
    let _turn = take_turn();
    let takes: [fn(&PathBuf); 3] = [
        |dir| fs::remove_dir_all(dir).unwrap(),
        |dir| {
            fs::remove_dir_all(dir).unwrap();
            fs::write(dir, "a file").unwrap();
        },
        |dir| {
            fs::rename(dir, dir.with_extension("moved")).unwrap();
            std::os::unix::fs::symlink("dir.moved", dir).unwrap();
        },
    ];
    for (number, take) in takes.iter().enumerate() {
        for place in ["rewind-staged", "rewind-armed", "rewind-swapped"] {
            let mut bench = Bench::new();
            bench.write("dir/file", "one");
            bench.write("other", "one");
            bench.checkpoint();
            bench.command(|root| {
                fs::write(root.join("dir/file"), "two").unwrap();
                fs::write(root.join("other"), "two").unwrap();
            });
            undo_crashing_at(place, &mut bench);
            take(&bench.root.join("dir"));
            let new = bench.identities();
            bench.workspace.rewinds_mut().recover(RecoveryChoice::Finish, new.after, new.at).unwrap();
            let other = if place == "rewind-staged" { "two" } else { "one" };
            assert_eq!(bench.read("other").as_deref(), Some(other), "{number} {place}");
            bench.checkpoint();
            let new = bench.identities();
            let again = bench.workspace.rewinds_mut().recover(RecoveryChoice::Ask, new.after, new.at).unwrap();
            assert_eq!(again, retake_engine::rewind::Recovered::Nothing, "{number} {place}");
        }
    }
}

#[test]
fn what_no_store_can_hold_is_given_back() {
    let _turn = take_turn();
    for deleted in [false, true] {
        let mut bench = Bench::new();
        if !deleted {
            bench.write("file", "one");
        }
        bench.checkpoint();
        bench.command(|root| fs::write(root.join("file"), "two").unwrap());
        let file = bench.root.join("file");
        when("rewind-armed", move || {
            fs::remove_file(&file).unwrap();
            fs::create_dir(&file).unwrap();
            fs::write(file.join("data"), "precious").unwrap();
        });
        let applied = bench.undo().unwrap();
        fail::remove("rewind-armed");
        assert_eq!(status(&applied, "file"), PathStatus::Overtaken, "deleted: {deleted}");
        assert_eq!(bench.names(), ["file", "file/data"], "deleted: {deleted}");
        assert_eq!(applied.left_over, []);
        // It is captured like everything else.
        let newest = Side::Stored(bench.workspace.checkpoints().all().unwrap().remove(0).snapshot);
        let captured = bench.workspace.list(&newest, Some(&path("file"))).unwrap();
        assert_eq!(captured.len(), 1, "deleted: {deleted}");
    }
}

#[test]
fn what_cannot_be_given_back_stays_and_is_told_until_it_is_gone() {
    let _turn = take_turn();
    let mut bench = Bench::new();
    bench.write("place/inner", "one");
    bench.checkpoint();
    bench.command(|root| {
        fs::remove_dir_all(root.join("place")).unwrap();
        fs::write(root.join("place"), "a file").unwrap();
    });
    let place = bench.root.join("place");
    when("rewind-armed", move || {
        fs::remove_file(&place).unwrap();
        assert!(Command::new("mkfifo").arg(&place).status().unwrap().success());
    });
    let applied = bench.undo().unwrap();
    fail::remove("rewind-armed");
    assert_eq!(bench.read("place/inner").as_deref(), Some("one"));
    assert_eq!(applied.left_over.len(), 1);
    assert_eq!(bench.workspace.rewinds().left_over().unwrap(), applied.left_over);
    let new = bench.identities();
    let refused = bench.workspace.rewinds_mut().recover(RecoveryChoice::Ask, new.after, new.at);
    assert!(matches!(refused, Err(RewindError::LeftOver { ref paths }) if *paths == applied.left_over), "{refused:?}");
    // Neither it nor anything else keeps the next rewind from working, and no snapshot holds it.
    bench.redo().unwrap();
    assert_eq!(bench.workspace.rewinds().left_over().unwrap(), applied.left_over);
    bench.remove(&applied.left_over[0].display().to_string());
    bench.recover();
    assert_eq!(bench.names(), ["place"]);
    assert_eq!(bench.workspace.rewinds().left_over().unwrap(), []);
}

#[test]
fn what_is_saved_before_a_roll_back_stays() {
    let _turn = take_turn();
    let mut bench = Bench::new();
    bench.write("a", "one");
    bench.write("dir/b", "one");
    let start = bench.checkpoint();
    bench.write("a", "two");
    fs::remove_dir_all(bench.root.join("dir")).unwrap();
    // `dir` cannot be made where a file is, which fails after `a` was exchanged.
    let root = bench.root.clone();
    when("rewind-armed", move || fs::write(root.join("dir"), "in the way").unwrap());
    let file = bench.root.join("a");
    when("rewind-failed", move || fs::write(&file, "mine").unwrap());
    let failed = bench.exact(&start);
    fail::remove("rewind-armed");
    fail::remove("rewind-failed");
    assert!(matches!(failed, Err(RewindError::RolledBack { .. })), "{failed:?}");
    assert_eq!(bench.read("a").as_deref(), Some("mine"));
    assert_eq!(bench.names(), ["a", "dir"]);
}

#[test]
fn a_file_that_is_still_open_is_told_and_all_of_them_get_one_time() {
    let mut bench = Bench::new();
    let names: Vec<String> = (0..4).map(|n| format!("file{n}")).collect();
    names.iter().for_each(|name| bench.write(name, "one"));
    let start = bench.checkpoint();
    names.iter().for_each(|name| bench.write(name, "two"));
    let open = |name: &String| fs::File::options().append(true).open(bench.root.join(name)).unwrap();
    let mut open: Vec<fs::File> = names.iter().map(open).collect();
    bench.checkpoint();
    let applied = bench.exact(&start).unwrap();
    assert_eq!(applied.still_open, names.iter().map(|name| path(name)).collect::<Vec<_>>());
    open[0].write_all(b"into nowhere").unwrap();
    assert_eq!(bench.read("file0").as_deref(), Some("one"));
}

#[test]
fn what_is_denied_is_no_loss_and_changes_no_permissions() {
    let scratch = retake_testkit::Scratch::new();
    assert_denied(scratch.path());
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).unwrap();
    for name in ["unreadable", "loosened", "unproven", "locked"] {
        give_to_nobody(&scratch.dir(name));
    }
    let mut command = rerun::test("rewind_meanwhile::as_nobody");
    command.env("RETAKE_UNPRIVILEGED_MEANWHILE", scratch.path());
    let output = run_as_nobody(command).output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

/// Run by the test above as somebody who is denied things; does nothing when the test runner calls it.
#[test]
fn as_nobody() {
    let Some(place) = std::env::var_os("RETAKE_UNPRIVILEGED_MEANWHILE").map(PathBuf::from) else { return };
    an_unreadable_file_is_given_back(Bench::at(&place.join("unreadable")));
    a_refused_rewind_leaves_permissions_as_they_were(Bench::at(&place.join("loosened")));
    a_directory_that_was_not_read_proves_nothing(Bench::at(&place.join("unproven")));
    a_directory_that_is_locked_again_holds_no_litter(Bench::at(&place.join("locked")));
}

fn an_unreadable_file_is_given_back(mut bench: Bench) {
    change_by_a_tool(&mut bench);
    let file = bench.root.join("file");
    when("rewind-armed", move || {
        fs::write(file.with_extension("saving"), "precious").unwrap();
        fs::set_permissions(file.with_extension("saving"), fs::Permissions::from_mode(0o000)).unwrap();
        fs::rename(file.with_extension("saving"), &file).unwrap();
    });
    let applied = bench.undo().unwrap();
    fail::remove("rewind-armed");
    assert_eq!((status(&applied, "file"), status(&applied, "other")), (PathStatus::Overtaken, PathStatus::Done));
    assert_eq!(bench.names(), ["file", "other"]);
    fs::set_permissions(bench.root.join("file"), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(bench.read("file").as_deref(), Some("precious"));
}

fn a_refused_rewind_leaves_permissions_as_they_were(mut bench: Bench) {
    let chmod = |bench: &Bench, mode| {
        fs::set_permissions(bench.root.join("dir"), fs::Permissions::from_mode(mode)).unwrap();
    };
    bench.write("dir/file", "one");
    let start = bench.checkpoint();
    bench.write("dir/file", "two");
    chmod(&bench, 0o500);
    let file = bench.root.join("dir/file");
    when("rewind-staged", move || fs::write(&file, "three").unwrap());
    assert!(matches!(bench.exact(&start), Err(RewindError::Stale { .. })));
    fail::remove("rewind-staged");
    assert_eq!(fs::metadata(bench.root.join("dir")).unwrap().permissions().mode() & 0o7777, 0o500);
    assert_eq!(bench.names(), ["dir", "dir/file"]);
    chmod(&bench, 0o700);
}

fn a_directory_that_was_not_read_proves_nothing(mut bench: Bench) {
    let chmod = |bench: &Bench, name: &str, mode| {
        fs::set_permissions(bench.root.join(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    bench.write("dir/file", "there all the time");
    bench.workspace.windows().declare(&path("dir/file")).unwrap();
    chmod(&bench, "dir", 0o000);
    let unread = bench.checkpoint();
    chmod(&bench, "dir", 0o755);
    bench.exact(&unread).unwrap();
    assert_eq!(fs::metadata(bench.root.join("dir")).unwrap().permissions().mode() & 0o7777, 0o000);
    chmod(&bench, "dir", 0o755);
    assert_eq!(bench.read("dir/file").as_deref(), Some("there all the time"));
    // And back to when it could be read: its permissions are the only thing to change.
    let read = bench.checkpoint();
    chmod(&bench, "dir", 0o000);
    let choices = [(path("dir/file"), retake_engine::rewind::OnConflict::Keep)].into();
    let keep = retake_engine::rewind::RewindRequest { choices, ..exactly(&read) };
    bench.apply(&keep).unwrap();
    assert_eq!(bench.read("dir/file").as_deref(), Some("there all the time"));
}

fn a_directory_that_is_locked_again_holds_no_litter(mut bench: Bench) {
    let chmod = |bench: &Bench, mode| {
        fs::set_permissions(bench.root.join("dir"), fs::Permissions::from_mode(mode)).unwrap();
    };
    bench.write("dir/file", "one");
    chmod(&bench, 0o555);
    bench.checkpoint();
    bench.command(|root| {
        fs::set_permissions(root.join("dir"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(root.join("dir/file"), "two").unwrap();
    });
    for content in ["one", "two", "one"] {
        let applied = if content == "one" { bench.undo() } else { bench.redo() };
        assert_eq!(applied.unwrap().left_over, []);
        assert_eq!(bench.read("dir/file").as_deref(), Some(content));
        assert_eq!(bench.names(), ["dir", "dir/file"]);
    }
    assert_eq!(fs::metadata(bench.root.join("dir")).unwrap().permissions().mode() & 0o7777, 0o555);
    chmod(&bench, 0o700);
}
