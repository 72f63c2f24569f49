//! `retake doctor`: one line for each check, and what to do.

use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};

use serde_json::Value;

use crate::sandbox::{Run, Sandbox, noise};

#[test]
fn a_healthy_workspace_is_said_to_be_so() {
    let s = Sandbox::new();
    s.git_init().write("a", "1");
    s.checkpoint();
    let text = s.retake(["doctor"]).text();
    assert_eq!(text.lines().count(), 9, "{text}");
    assert!(text.lines().all(|line| line.starts_with("ok ")), "{text}");
    assert!(text.contains("of the git repository as they were"), "{text}");
    let document = s.retake(["doctor", "--json"]).json();
    assert_eq!(document["healthy"], true);
    fs::remove_dir_all(s.ws(".git")).expect("it is ours");
    assert!(s.retake(["doctor"]).text().contains("there is no git repository"));
}

#[test]
fn damage_is_told_with_the_checkpoints_that_need_it() {
    let s = Sandbox::new();
    s.write("a", noise(1, 5000));
    let id = s.checkpoint();
    let pack = fs::OpenOptions::new().write(true).open(s.store().join("packs/00000001.pack")).expect("it is there");
    pack.write_all_at(b"damage", 2000).expect("it can be written");
    let checks = problems(&s.retake(["doctor", "--json"]));
    assert_eq!(checks.len(), 1, "{checks:?}");
    assert_eq!(checks[0]["name"], "store");
    let details = checks[0]["details"].to_string();
    assert!(details.contains(&id[..8]) && details.contains("00000001.pack"), "{details}");
    // What is still in the workspace was stored once more, and the checkpoint is whole again.
    assert!(s.retake(["doctor"]).text().lines().all(|line| line.starts_with("ok ")));
    assert_eq!(s.retake(["show", &format!("{id}:a")]).succeeds().stdout, noise(1, 5000));
}

#[test]
fn damage_that_cannot_be_mended_goes_on_being_told() {
    let s = Sandbox::new();
    s.write("a", noise(1, 5000));
    s.checkpoint();
    fs::remove_file(s.ws("a")).expect("it is ours");
    let pack = fs::OpenOptions::new().write(true).open(s.store().join("packs/00000001.pack")).expect("it is there");
    pack.write_all_at(b"damage", 2000).expect("it can be written");
    for _ in 0..2 {
        let run = s.retake(["doctor"]);
        run.says("error: 1 problem was found\nhint: ");
        assert!(String::from_utf8_lossy(&run.stdout).contains("problem  1 damaged place in the store"));
    }
}

#[test]
fn a_store_that_others_can_read_is_a_problem() {
    let s = Sandbox::new();
    s.checkpoint();
    fs::set_permissions(s.store().join("retake.db"), fs::Permissions::from_mode(0o644)).expect("it is ours");
    let checks = problems(&s.retake(["doctor", "--json"]));
    assert_eq!((checks.len(), &checks[0]["name"]), (1, &"permissions".into()));
    assert!(checks[0]["advice"].as_str().is_some_and(|advice| advice.contains("chmod")), "{checks:?}");
}

#[test]
fn what_was_interrupted_is_told_with_the_command_that_ends_it() {
    let s = Sandbox::new();
    s.checkpoint();
    let database = rusqlite::Connection::open(s.store().join("retake.db")).expect("it is a database");
    database
        .execute_batch(
            "INSERT INTO operations (id, handle, at, kind, what, before, state)
                 VALUES (zeroblob(16), '0', 0, 1, 'a point', 1, 0);
             INSERT INTO intents VALUES (1, 0, zeroblob(8));
             INSERT INTO meta VALUES ('purging', 1);",
        )
        .expect("it is right for the schema");
    let checks = problems(&s.retake(["doctor", "--json"]));
    let named = |name: &str| {
        let check = checks.iter().find(|check| check["name"] == name).expect("it is a problem");
        check["advice"].as_str().expect("there is something to do").to_owned()
    };
    assert!(named("interrupted").contains("`retake recover`"));
    assert!(named("purge").contains("`retake gc`"));
    assert!(named("git").contains("again"), "no checkpoint can be taken as long as that is so");
}

/// The checks that found a problem.
fn problems(run: &Run) -> Vec<Value> {
    assert_eq!(run.code(), Some(1), "{run:?}");
    let document: Value = serde_json::from_slice(&run.stdout).expect("it is one JSON document");
    assert_eq!(document["healthy"], false);
    let checks = document["checks"].as_array().expect("it is a list");
    checks.iter().filter(|check| check["state"] == "problem").cloned().collect()
}
