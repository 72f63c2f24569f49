//! No command leaves a trace: not in version control, whatever state it is in, and not in the workspace.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use retake_testkit::fingerprint;
use retake_testkit::repos::{self, State};

use crate::sandbox::{Run, Sandbox};

#[test]
fn no_command_touches_version_control_or_the_workspace() {
    for state in State::ALL {
        let s = Sandbox::in_memory();
        let repo = repos::make(state, &s.path("ws"));
        let id = s.retake_in(&repo, ["checkpoint", "--json"]).announced().expect("it is made");
        let second = s.retake_in(&repo, ["checkpoint", "-m", "second", "--json"]).announced().expect("it is made");
        let file = format!("{id}:README.md");
        let commands: &[&[&str]] = &[
            &["checkpoint"],
            &["checkpoint", "-m", "label", "--json"],
            &["log"],
            &["log", "--json"],
            &["diff"],
            &["diff", "--stat"],
            &["diff", "--name-only", &id],
            &["diff", &id, "second"],
            &["diff", "--json"],
            &["show", "second"],
            &["show", &file],
            &["show", &format!("{second}:")],
            &["label", &id, "first"],
            &["label", "first", "--remove"],
            &["log", "--all"],
            &["log", "--", "."],
            &["diff", "--by", "outside"],
            &["exec", "--", "true"],
            &["exec", "-m", "named", "--", "git", "--version"],
            &["rewind", &id, "--dry-run"],
            &["rewind", "named", "--dry-run", "--json"],
            &["rewind", &id, "--yes"],
            &["rewind", &id, "--exact", "--yes"],
            &["ops"],
            &["ops", "--json"],
            &["recover"],
            &["du"],
            &["du", "--json"],
            &["relink", "--help"],
            &["completions", "bash"],
            &["man"],
            &["--version"],
        ];
        let failing: &[&[&str]] = &[
            &["show", "nosuch"],
            &["relink", "/nonexistent"],
            &["nosuch"],
            &["label", "nosuch", "x"],
            &["rewind", "nosuch"],
            &["undo", "ffffffff"],
            &["undo", "--dry-run"],
            &["undo"],
            &["redo"],
            &["exec", "--", "nosuchcommand"],
            &["export", "--git-branch", "main", &id],
        ];
        for args in commands {
            assert_untouched(&s, &repo, args).succeeds();
        }
        for args in failing {
            assert_ne!(assert_untouched(&s, &repo, args).code(), Some(0), "{args:?}");
        }
    }
}

#[test]
fn going_back_and_forth_leaves_version_control_alone() {
    for state in State::ALL {
        let s = Sandbox::in_memory();
        let repo = repos::make(state, &s.path("ws"));
        let print = fingerprint(&repo);
        let start = contents(&s.path("ws"));
        let script =
            "rm -f README.md; echo new > new; mkdir d && echo x > d/x; find . -name '*.txt' -exec sed -i s/e/E/ {} +";
        s.retake_in(&repo, ["exec", "-m", "start", "--", "sh", "-c", script]).succeeds();
        let changed = contents(&s.path("ws"));
        assert!(start != changed, "{state:?}");
        for (args, wanted) in
            [(["undo"].as_slice(), &start), (&["redo"], &changed), (&["rewind", "start", "--exact"], &start)]
        {
            Run::of(s.retake_command().args(args).current_dir(&repo)).succeeds();
            print.assert_same(&fingerprint(&repo));
            assert!(contents(&s.path("ws")) == *wanted, "{state:?}: {args:?}");
        }
    }
}

#[test]
fn a_first_checkpoint_touches_nothing_in_any_state() {
    for state in State::ALL {
        let s = Sandbox::in_memory();
        let repo = repos::make(state, &s.path("ws"));
        assert_untouched(&s, &repo, &["checkpoint"]).succeeds();
    }
}

#[track_caller]
fn assert_untouched(s: &Sandbox, repo: &Path, args: &[&str]) -> Run {
    // All of the workspaces' parent: a linked worktree's repository and a submodule's origin are beside it.
    let before = (fingerprint(repo), s.everything_in_the_workspace(), contents(&s.path("ws")));
    let run = Run::of(s.retake_command().args(args).current_dir(repo));
    before.0.assert_same(&fingerprint(repo));
    assert_eq!(before.1, s.everything_in_the_workspace(), "{args:?}");
    assert!(before.2 == contents(&s.path("ws")), "{args:?} changed a file's content");
    run
}

/// The bytes of every file below `dir`.
fn contents(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).expect("it can be listed") {
        let path = entry.expect("it can be listed").path();
        let meta = path.symlink_metadata().expect("it was listed");
        if meta.is_dir() {
            found.append(&mut contents(&path));
        } else if meta.is_file() {
            let bytes = fs::read(&path).expect("it can be read");
            found.insert(path, bytes);
        }
    }
    found
}
