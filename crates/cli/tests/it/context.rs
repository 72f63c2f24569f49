//! Which directory is the workspace, where the store is, which settings hold.

use std::fs;
use std::path::Path;

use crate::sandbox::{Run, Sandbox};

/// The files that the newest checkpoint of the workspace `dir` has.
fn captured(s: &Sandbox, dir: &Path) -> String {
    let dir = dir.to_str().expect("temporary directories are UTF-8");
    let log = s.retake(["-C", dir, "log", "--json"]).json();
    let id = log["checkpoints"][0]["id"].as_str().expect("there is a checkpoint").to_owned();
    s.retake(["-C", dir, "show", &format!("{id}:")]).text()
}

#[test]
fn the_git_top_level_is_the_workspace() {
    let s = Sandbox::new();
    s.git_init().write("top", "1").write("sub/deep/file", "1");
    s.retake_in(s.ws("sub/deep"), ["checkpoint"]).succeeds();
    assert_eq!(captured(&s, &s.ws("")), "sub/\ntop\n");
}

#[test]
fn without_git_the_nearest_workspace_above_is_used() {
    let s = Sandbox::new();
    s.write("top", "1").write("sub/file", "1");
    s.checkpoint();
    let log = s.retake_in(s.ws("sub"), ["log", "--json"]).json();
    assert_eq!(log["checkpoints"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_named_workspace_wins_over_git() {
    let s = Sandbox::new();
    s.git_init().write("sub/file", "1");
    s.retake(["--workspace", "sub", "checkpoint"]).succeeds();
    assert_eq!(captured(&s, &s.ws("sub")), "file\n");
}

#[test]
fn a_symlink_to_a_workspace_is_the_workspace() {
    let s = Sandbox::new();
    s.write("a", "1");
    let id = s.checkpoint();
    std::os::unix::fs::symlink(s.path("ws"), s.path("alias")).expect("it is new");
    let alias = s.path("alias").to_string_lossy().into_owned();
    assert_eq!(s.retake(["-C", &alias, "log", "--json"]).json()["checkpoints"][0]["id"], id.as_str());
}

#[test]
fn a_missing_workspace_is_an_error_with_a_hint() {
    let s = Sandbox::new();
    s.retake(["-C", "nowhere", "checkpoint"]).fails(1).says("retake relink");
}

#[test]
fn a_home_directory_is_refused_until_insisted_on() {
    let s = Sandbox::new();
    fs::write(s.path("home/file"), "1").expect("it can be written");
    let run = s.retake_in(s.path("home"), ["checkpoint"]).fails(3);
    run.says("--allow-broad");
    s.retake_in(s.path("home"), ["--allow-broad", "checkpoint"]).succeeds();
}

#[test]
fn the_store_is_in_the_xdg_data_directory_by_default() {
    let s = Sandbox::new();
    Run::of(s.retake_command().env_remove("RETAKE_DATA_DIR").arg("checkpoint")).succeeds();
    assert!(s.path("home/.local/share/retake").is_dir());
    let elsewhere = s.path("elsewhere");
    let mut command = s.retake_command();
    command.env_remove("RETAKE_DATA_DIR").env("XDG_DATA_HOME", &elsewhere).arg("checkpoint");
    Run::of(&mut command).succeeds();
    assert!(elsewhere.join("retake").is_dir());
}

#[test]
fn a_relative_data_directory_is_made_absolute() {
    let s = Sandbox::new();
    let mut command = s.retake_command();
    command.env("RETAKE_DATA_DIR", "../store").args(["checkpoint"]);
    Run::of(&mut command).succeeds();
    let mut command = s.retake_command();
    command.env("RETAKE_DATA_DIR", s.path("store")).args(["log", "--json"]);
    assert_eq!(Run::of(&mut command).json()["checkpoints"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_data_directory_that_is_a_file_is_said_by_every_command() {
    let s = Sandbox::new();
    s.write("a", "1");
    for data in [s.path("data"), s.path("data/below")] {
        fs::write(s.path("data"), "").expect("it can be written");
        for args in [["log"].as_slice(), &["checkpoint"], &["diff"], &["du"], &["relink", "/x"]] {
            let run = Run::of(s.retake_command().env("RETAKE_DATA_DIR", &data).args(args)).fails(1);
            run.says(&format!("cannot use the data directory `{}`", data.display()));
            run.says("Not a directory");
            run.says("hint: ");
        }
    }
}

#[test]
fn bad_settings_name_the_file_and_the_key() {
    let s = Sandbox::new();
    s.config("[capture]\nmaxfile = 1\n");
    let run = s.retake(["checkpoint"]).fails(1);
    run.says("unknown key `capture.maxfile`");
    run.says("config.toml");
    s.config("[store]\nbudget = '4 GoB'\n");
    let run = s.retake(["log"]).fails(1);
    run.says("store.budget");
    run.says("`4 GoB` is not a size");
}

#[test]
fn a_named_settings_file_must_exist() {
    let s = Sandbox::new();
    let mut command = s.retake_command();
    command.env("RETAKE_CONFIG", s.path("none.toml")).arg("checkpoint");
    Run::of(&mut command).fails(1).says("none.toml");
}

#[test]
fn global_excludes_of_git_are_honoured_without_git() {
    let s = Sandbox::new();
    fs::write(s.path("home/.gitconfig"), "[core]\n\texcludesFile = ~/my-ignore\n").expect("it can be written");
    fs::write(s.path("home/my-ignore"), "*.log\n").expect("it can be written");
    s.write("a.log", "1").write("a.txt", "1");
    s.checkpoint();
    assert_eq!(captured(&s, &s.ws("")), "a.txt\n");
}

#[test]
fn a_deleted_current_directory_is_said() {
    let s = Sandbox::new();
    let gone = s.path("gone");
    fs::create_dir(&gone).expect("it is new");
    let binary = env!("CARGO_BIN_EXE_retake");
    let script = format!("rmdir '{}' && exec '{binary}' log", gone.display());
    Run::of(s.command("sh").args(["-c", &script]).current_dir(&gone)).fails(1).says("current directory");
}
