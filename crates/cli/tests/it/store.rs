//! `retake label`, `du`, `gc` and `relink`.

use std::fs;

use crate::sandbox::Sandbox;

#[test]
fn a_label_can_be_given_changed_and_taken_away() {
    let s = Sandbox::new();
    let id = s.checkpoint();
    let label = || s.retake(["log", "--json"]).json()["checkpoints"][0]["label"].clone();
    s.retake(["label", &id[..8], "one"]).succeeds().says("\"one\"");
    assert_eq!(label(), "one");
    assert_eq!(s.retake(["label", "one", "two", "--json"]).json()["checkpoint"]["label"], "two");
    s.retake(["label", "two", "--remove"]).succeeds();
    assert!(label().is_null());
}

#[test]
fn a_label_needs_a_text_or_the_wish_to_remove_it() {
    let s = Sandbox::new();
    let id = s.checkpoint();
    s.retake(["label", &id]).fails(2);
    s.retake(["label", &id, "x", "--remove"]).fails(2);
}

#[test]
fn a_label_that_is_empty_or_too_long_is_wrong_usage_and_changes_nothing() {
    let s = Sandbox::new();
    for (label, why) in [("", "it is empty"), (" \t ", "it is empty"), (&*"x".repeat(10_000), "it is longer than")] {
        s.retake(["checkpoint", "-m", label]).fails(2).says(why);
    }
    assert!(!s.path("data").exists(), "not even a store was made");
    let id = s.checkpoint();
    s.retake(["label", &id, "kept"]).succeeds();
    for label in ["", "  ", &"x".repeat(10_000)] {
        s.retake(["label", &id, label]).fails(2).says("the label is not usable");
    }
    assert_eq!(s.retake(["log", "--json"]).json()["checkpoints"][0]["label"], "kept");
}

#[test]
fn a_label_names_one_checkpoint() {
    let s = Sandbox::new();
    s.write("a", "1");
    let first = s.retake(["checkpoint", "-m", "taken", "--json"]).announced().expect("it is made");
    let second = s.checkpoint();
    for args in [["label", &second, "taken"], ["checkpoint", "-m", "taken"]] {
        let run = s.retake(args).fails(3);
        run.says(&format!("`taken` already names checkpoint {}", &first[..8]));
        run.says(&format!("`retake label {} --remove`", &first[..8]));
    }
    let listed = s.retake(["log", "--json"]).json();
    assert_eq!(listed["checkpoints"].as_array().map(Vec::len), Some(2), "nothing was made");
    assert!(listed["checkpoints"][0]["label"].is_null());
    s.retake(["label", &first, "taken"]).succeeds();
    s.retake(["label", "taken", "--remove"]).succeeds();
    s.retake(["label", &second, "taken"]).succeeds();
}

#[test]
fn a_label_that_is_another_id_is_refused() {
    let s = Sandbox::new();
    let [first, second] = [s.checkpoint(), s.checkpoint()];
    let run = s.retake(["label", &first, &second]).fails(3);
    run.says(&format!("already names checkpoint {}", &second[..8]));
    run.says("nothing was changed; choose another label");
    s.retake(["checkpoint", "-m", &second.to_uppercase()]).fails(3).says("already names");
}

#[test]
fn a_taken_label_is_refused_before_anything_is_read() {
    let s = Sandbox::new();
    s.retake(["checkpoint", "-m", "taken"]).succeeds();
    let packs = || s.retake(["du", "--json"]).json()["objects"].clone();
    let before = packs();
    s.write("new", "1");
    s.retake(["checkpoint", "-m", "taken"]).fails(3).says("already names");
    assert_eq!(packs(), before);
}

#[test]
fn du_tells_size_parts_and_budget() {
    let s = Sandbox::new();
    s.config("[store]\nbudget = '1 GiB'\n").write("a", "1");
    s.checkpoint();
    let text = s.retake(["du"]).text();
    assert!(text.contains("budget of 1.0 GiB") && text.contains("Checkpoints  1"), "{text}");
    let document = s.retake(["du", "--json"]).json();
    assert_eq!(document["budget"], 1 << 30);
    assert_eq!(document["checkpoints"], 1);
    let part = |name: &str| document["parts"][name].as_u64().expect("a size");
    let sum: u64 = ["packs", "database", "index", "other"].map(part).iter().sum();
    assert_eq!(sum, document["bytes"].as_u64().expect("a size"));
}

#[test]
fn gc_removes_what_is_too_old_and_says_so() {
    let s = Sandbox::new();
    s.config("[store]\nkeep_days = 0\n");
    for n in 0..4 {
        s.write("a", format!("version {n}"));
        s.checkpoint();
    }
    let would = s.retake(["gc", "--dry-run", "--json"]).json();
    assert_eq!((&would["dry_run"], &would["removed"]["checkpoints"]), (&true.into(), &3.into()));
    s.retake(["gc", "--dry-run"]).succeeds().says("nothing was changed");
    assert_eq!(s.retake(["log", "--json"]).json()["checkpoints"].as_array().map(Vec::len), Some(4));
    let text = s.retake(["gc"]).text();
    assert!(text.starts_with("Removed 3 checkpoints and 6 objects"), "{text}");
    let again = s.retake(["gc", "--json"]).json();
    assert_eq!((&again["removed"]["checkpoints"], &again["removed"]["objects"]), (&0.into(), &0.into()));
    assert!(again["bytes"]["after"].as_u64() <= again["bytes"]["before"].as_u64(), "{again}");
    assert_eq!(s.retake(["log", "--json"]).json()["checkpoints"].as_array().map(Vec::len), Some(1));
    assert_eq!(s.retake(["diff", "--name-only"]).text(), "");
}

#[test]
fn a_moved_workspace_keeps_its_history_when_relinked() {
    let s = Sandbox::new();
    s.write("a", "1");
    let id = s.checkpoint();
    fs::rename(s.path("ws"), s.path("moved")).expect("it can be moved");
    fs::create_dir(s.path("ws")).expect("the sandbox runs programs there");
    fs::remove_dir(s.path("ws")).expect("it is empty");
    let old = s.path("ws").to_string_lossy().into_owned();
    s.retake_in(s.path("moved"), ["relink", &old]).succeeds().says("1 checkpoint ");
    assert_eq!(s.retake_in(s.path("moved"), ["log", "--json"]).json()["checkpoints"][0]["id"], id.as_str());
}

#[test]
fn relinking_from_where_nothing_was_fails() {
    let s = Sandbox::new();
    s.retake(["relink", "/nonexistent/place"]).fails(1);
}

#[test]
fn reading_commands_need_a_checkpoint() {
    let s = Sandbox::new();
    for args in [["diff"].as_slice(), &["show", "abcd"], &["label", "abcd", "x"], &["du"]] {
        let run = crate::sandbox::Run::of(s.retake_command().args(args)).fails(1);
        run.says("hint: make the first checkpoint with `retake checkpoint`");
    }
}
