//! Applying plans to real files.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

fn edit(path: &Path, before: Option<&str>, after: Option<&str>) -> Plan {
    let bytes = |text: Option<&str>| text.map(|text| text.as_bytes().to_vec());
    let (path, before, after) = (path.to_owned(), bytes(before), bytes(after));
    Plan { edits: vec![FileEdit { kind: Kind::Configuration, path, before, after }], emptied: vec![] }
}

#[test]
fn a_file_keeps_its_mode_and_a_link_stays_a_link() {
    let scratch = tempfile::tempdir().unwrap();
    let (real, link) = (scratch.path().join("dotfiles.json"), scratch.path().join("settings.json"));
    fs::write(&real, "a").unwrap();
    fs::set_permissions(&real, Permissions::from_mode(0o640)).unwrap();
    symlink("dotfiles.json", &link).unwrap();
    edit(&link, Some("a"), Some("b")).apply().unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&real).unwrap(), "b");
    assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 2, "no temporary file is left");
}

#[test]
fn a_file_that_changed_since_the_plan_stops_the_whole_plan() {
    let scratch = tempfile::tempdir().unwrap();
    let (first, second) = (scratch.path().join("first"), scratch.path().join("second"));
    fs::write(&second, "user's").unwrap();
    let mut plan = edit(&first, None, Some("x"));
    plan.edits.extend(edit(&second, Some("old"), Some("new")).edits);
    assert!(matches!(plan.apply(), Err(ApplyError::Stale(path)) if path == second));
    assert!(!first.exists(), "nothing is written before every file was compared");
    assert_eq!(fs::read_to_string(&second).unwrap(), "user's");
}

#[test]
fn a_link_to_a_missing_file_creates_that_file() {
    let scratch = tempfile::tempdir().unwrap();
    let link = scratch.path().join("settings.json");
    symlink("elsewhere/real.json", &link).unwrap();
    edit(&link, None, Some("{}")).apply().unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(scratch.path().join("elsewhere/real.json")).unwrap(), "{}");
}

#[test]
fn a_directory_in_the_place_of_a_file_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    assert!(matches!(edit(scratch.path(), None, Some("x")).apply(), Err(ApplyError::Io { .. })));
    let looped = scratch.path().join("loop");
    symlink("loop", &looped).unwrap();
    assert!(matches!(edit(&looped, None, Some("x")).apply(), Err(ApplyError::Io { .. })));
}

#[test]
fn emptied_directories_go_and_others_stay() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("plugins/retake.js");
    let made = edit(&file, None, Some("x"));
    assert_eq!(made.new_directories(), [scratch.path().join("plugins")]);
    made.apply().unwrap();
    let mut gone = edit(&file, Some("x"), None);
    gone.emptied = vec![scratch.path().join("plugins"), scratch.path().to_owned()];
    fs::write(scratch.path().join("other"), "").unwrap();
    gone.apply().unwrap();
    assert!(!scratch.path().join("plugins").exists());
    assert!(scratch.path().join("other").exists());
}

#[test]
fn the_diff_names_each_file_and_shows_its_lines() {
    let plan = edit(Path::new("/h/a.json"), Some("one\ntwo\n"), Some("one\nthree\n"));
    assert_eq!(plan.diff(), "Change /h/a.json\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n");
    assert!(edit(Path::new("/h/b"), None, Some("x\n")).diff().starts_with("Create /h/b\n"));
}
