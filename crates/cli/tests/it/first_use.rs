//! What a new user goes through: a command that goes wrong under `retake exec`, and the way back.

use retake_testkit::naive::NaiveNodes;
use retake_testkit::repos::git;

use crate::history;
use crate::sandbox::Sandbox;

/// Runs `script` under `retake exec`, takes it back, repeats it, takes it back again.
#[track_caller]
fn there_and_back(s: &Sandbox, script: &str) {
    let before = files(s);
    s.exec(script).succeeds().says("`retake undo`");
    let after = files(s);
    assert!(before != after, "`{script}` does something");
    s.retake(["undo"]).succeeds().says("`retake redo`");
    assert!(files(s) == before, "undo of `{script}`");
    s.retake(["redo"]).succeeds().says("`retake undo`");
    assert!(files(s) == after, "redo of `{script}`");
    s.retake(["undo"]).succeeds();
    assert!(files(s) == before, "second undo of `{script}`");
    s.retake(["undo"]).fails(1).says("there is nothing to undo");
    assert!(files(s) == before);
}

fn files(s: &Sandbox) -> NaiveNodes {
    history::on_disk(s)
}

fn project() -> Sandbox {
    let s = Sandbox::in_memory();
    for n in 0..300 {
        s.write(format!("src/dir{}/file{n}.txt", n % 7), format!("one {n}\ntwo\n"));
    }
    s.write("run.sh", "#!/bin/sh\n").chmod("run.sh", 0o755).symlink("run.sh", "link").write(".env", "SECRET=1\n");
    std::fs::create_dir(s.ws("empty")).expect("it is new");
    s
}

#[test]
fn what_rm_deleted_comes_back() {
    there_and_back(&project(), "rm -rf src link empty .env");
}

#[test]
fn what_sed_did_to_300_files_is_taken_back() {
    there_and_back(&project(), "find src -type f -exec sed -i s/one/1/ {} +");
}

#[test]
fn uncommitted_work_survives_a_bad_git_checkout() {
    let s = project();
    s.git_init().write(".gitignore", ".env\n");
    git(&s.path("ws"), &["add", "."]);
    git(&s.path("ws"), &["commit", "--quiet", "-m", "all"]);
    s.write("src/dir0/file0.txt", "hours of work\n").write(".env", "SECRET=2\n").write("notes", "mine\n");
    there_and_back(&s, "git checkout --quiet .");
    assert_eq!(s.read("src/dir0/file0.txt"), "hours of work\n");
}

#[test]
fn several_commands_are_taken_back_one_by_one() {
    let s = project();
    let mut states = vec![files(&s)];
    let scripts = ["rm -rf src/dir1", "sed -i s/two/2/ src/dir2/*", "mv src/dir3 moved", "echo x > src/dir2/file2.txt"];
    for script in scripts {
        s.exec(script).succeeds();
        states.push(files(&s));
    }
    for state in states.iter().rev().skip(1) {
        s.retake(["undo"]).succeeds();
        assert!(files(&s) == *state);
    }
    for state in &states[1..] {
        s.retake(["redo"]).succeeds();
        assert!(files(&s) == *state);
    }
}

#[test]
fn work_of_ones_own_meanwhile_is_left_alone() {
    let s = project();
    s.exec("sed -i s/one/1/ src/dir0/*").succeeds();
    s.write("mine.txt", "mine\n").write("src/dir1/file1.txt", "mine too\n");
    s.retake(["undo"]).succeeds();
    assert_eq!(s.read("mine.txt"), "mine\n");
    assert_eq!(s.read("src/dir1/file1.txt"), "mine too\n");
    assert_eq!(s.read("src/dir0/file0.txt"), "one 0\ntwo\n");
}
