//! Odd input from the world: names, links, sizes, clocks, and other processes.

use std::fs::{self, File};
use std::process::Stdio;

use retake_engine::checkpoint::NewCheckpoint;
use retake_engine::id::CheckpointId;
use retake_engine::progress::NoProgress;
use retake_engine::{Durability, Timestamp, Workspace};

use crate::history::{self, History, Missing};
use crate::sandbox::{Run, Sandbox, noise};

/// Makes a checkpoint with an id and a time of our choosing, which the command line takes from chance and the clock.
fn make(s: &Sandbox, at: i64, random: [u8; 10]) -> String {
    let mut workspace = Workspace::open_or_create(s.environment()).expect("it can be opened");
    let new = NewCheckpoint { id: CheckpointId::new(Timestamp(at), random), at: Timestamp(at), label: None };
    workspace.checkpoints_mut().take(new, Durability::Synced, &NoProgress).expect("it can be made").id.to_string()
}

#[test]
fn an_ambiguous_id_is_refused_with_the_candidates_and_a_longer_one_works() {
    let s = Sandbox::in_memory();
    s.write("a", "1");
    let [one, two] = [1, 2].map(|last| make(&s, 1_000, [0xab, 0xcd, 0xef, 0x01, 0, 0, 0, 0, 0, last]));
    for args in [["show", "abcdef01"].as_slice(), &["diff", "abcd"], &["label", "abcdef0100", "x"]] {
        let run = Run::of(s.retake_command().args(args)).fails(3);
        run.says("could be any of 2 checkpoints");
        run.says(&one);
        run.says(&two);
    }
    assert!(s.retake(["show", &two]).text().contains(&two));
}

#[test]
fn an_unknown_id_says_where_the_points_are_listed() {
    let s = Sandbox::in_memory();
    s.checkpoint();
    for args in [["show", "0123456789abcdef"].as_slice(), &["diff", "nosuch"], &["label", "nosuch", "x"]] {
        let run = Run::of(s.retake_command().args(args)).fails(1);
        run.says("there is no checkpoint `");
        run.says("hint: `retake log` lists the points");
    }
}

#[test]
fn a_clock_that_went_backwards_changes_neither_order_nor_content() {
    let s = Sandbox::in_memory();
    s.write("a", "from the future");
    // The year 2100, and a clock that is broken altogether.
    let future = make(&s, 4_102_444_800_000, [1; 10]);
    let broken = make(&s, i64::MAX, [2; 10]);
    let ancient = make(&s, -5, [3; 10]);
    s.write("a", "now");
    let now = s.checkpoint();
    let listed = s.retake(["log", "--json"]).json();
    let ids: Vec<_> = listed["checkpoints"].as_array().expect("a list").iter().map(|c| c["id"].clone()).collect();
    assert_eq!(ids, [now.as_str(), &ancient, &broken, &future], "newest first is as made, not as dated");
    assert_eq!(s.retake(["log"]).text().lines().count(), 4);
    assert_eq!(s.retake(["show", &format!("{future}:a")]).text(), "from the future");
    assert!(s.retake(["show", &future]).text().contains("2100-01-01"));
    assert_eq!(s.retake(["diff", &ancient, &now, "--name-only"]).text(), "a\n");
}

#[test]
fn a_file_dated_in_the_future_is_captured_and_its_changes_are_seen() {
    let s = Sandbox::in_memory();
    s.write("a", "1");
    let future =
        fs::FileTimes::new().set_modified(std::time::SystemTime::now() + std::time::Duration::from_secs(90_000));
    let put_ahead = || File::options().write(true).open(s.ws("a")).and_then(|file| file.set_times(future));
    put_ahead().expect("it is ours");
    s.checkpoint();
    s.write("a", "2");
    put_ahead().expect("it is ours");
    assert_eq!(s.retake(["checkpoint", "--json"]).json()["changed"]["modified"], 1);
}

#[test]
fn odd_names_and_links_are_captured_as_they_are() {
    let s = Sandbox::in_memory();
    s.write("new\nline", "1").write("tab\there", "2").write("-rf", "3").write("quo\"te\\", "4").write("bell\u{7}", "5");
    s.symlink("loop", "loop").symlink("b", "a").symlink("a", "b").symlink(".", "here").symlink("..", "dir-up");
    fs::create_dir(s.ws(".gitignore")).expect("it is new");
    s.write(".gitignore/inside", "6");
    let mut history = History::default();
    let id = history.checkpoint(&s);
    history.assert_kept(&s, Missing::None);
    assert_eq!(s.retake(["show", &format!("{id}:loop")]).text(), "loop");
    assert_eq!(s.retake(["show", &format!("{id}:new\nline")]).text(), "1");
    let listed = s.retake(["show", &format!("{id}:")]).text();
    assert!(listed.contains("\"new\\nline\"\n") && !listed.contains('\u{7}'), "{listed}");
    s.write("new\nline", "changed");
    assert_eq!(s.retake(["diff", "--name-only"]).text(), "\"new\\nline\"\n");
    s.retake(["diff"]).succeeds();
}

#[test]
fn a_file_of_ten_gigabytes_is_a_gap_and_is_not_read() {
    let s = Sandbox::in_memory();
    s.write("small", "1");
    File::create(s.ws("huge")).and_then(|file| file.set_len(10 << 30)).expect("a sparse file");
    let run = s.retake(["checkpoint"]).succeeds();
    run.says("warning: this checkpoint has 1 gap");
    run.says("huge");
    let gap = &s.retake(["checkpoint", "--json"]).json()["checkpoint"]["gaps"][0];
    assert_eq!((gap["path"].as_str(), gap["kind"].as_str()), (Some("huge"), Some("too_large")));
    let store: u64 = s.retake(["du", "--json"]).json()["bytes"].as_u64().expect("a size");
    assert!(store < 4 << 20, "{store} bytes");
    s.retake(["diff"]).succeeds();
}

#[test]
fn a_workspace_that_was_deleted_keeps_its_history() {
    let s = Sandbox::in_memory();
    s.write("a", "1");
    let id = s.checkpoint();
    let ws = s.path("ws").to_string_lossy().into_owned();
    fs::remove_dir_all(&ws).expect("it is ours");
    for command in ["checkpoint", "log", "diff"] {
        let run = s.retake_in(s.path("home"), ["-C", &ws, command]).fails(1);
        run.says(&format!("cannot use `{ws}` as the workspace"));
        run.says("hint: ");
    }
    fs::create_dir(&ws).expect("it was deleted");
    assert_eq!(s.retake(["show", &format!("{id}:a")]).text(), "1");
    assert_eq!(s.retake(["diff", "--name-only"]).text(), "a\n");
    assert_eq!(s.retake(["checkpoint", "--json"]).json()["changed"]["deleted"], 1);
}

#[test]
fn two_processes_that_make_the_first_checkpoint_at_once_both_succeed() {
    for round in 0..12 {
        let s = Sandbox::in_memory();
        for n in 0..20 {
            s.write(format!("src/{n}"), noise(n, 2_000));
        }
        let start = || {
            let mut command = s.retake_command();
            command.args(["checkpoint", "--json"]).stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().expect("it starts")
        };
        let children = [start(), start(), start()];
        let mut history = History::default();
        for child in children {
            let run = Run::from_output(child.wait_with_output().expect("it ends"));
            let id = run.announced().unwrap_or_else(|| panic!("round {round}: {run:?}"));
            history.remember(&s, &id);
        }
        s.write("next", "1");
        history.checkpoint(&s);
        assert_eq!(history.assert_kept(&s, Missing::None).len(), 4);
        history::assert_no_litter(&s);
    }
}

#[test]
fn of_processes_that_want_the_same_label_at_once_one_gets_it() {
    for _ in 0..6 {
        let s = Sandbox::in_memory();
        for n in 0..20 {
            s.write(format!("src/{n}"), noise(n, 2_000));
        }
        let start = || {
            let mut command = s.retake_command();
            command.args(["checkpoint", "-m", "wanted"]).stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().expect("it starts")
        };
        let children = [start(), start(), start()];
        let mut codes = children.map(|child| {
            let run = Run::from_output(child.wait_with_output().expect("it ends"));
            run.code().expect("it ended by itself")
        });
        codes.sort_unstable();
        assert_eq!(codes, [0, 3, 3]);
        assert_eq!(s.retake(["log", "--json"]).json()["checkpoints"].as_array().map(Vec::len), Some(1));
    }
}
