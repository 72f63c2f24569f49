//! Git repositories in the states that people leave them in, made by git itself.
//!
//! Git runs with an environment of its own: no configuration of the machine or the user, a fixed author and a fixed clock.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A state that a repository can be in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Two commits, something staged, something changed, something untracked, something stashed, something ignored.
    Plain,
    /// A worktree linked to a repository elsewhere: its `.git` is a file.
    LinkedWorktree,
    /// With a submodule, which has changes too.
    Submodule,
    /// Without a commit, with something staged.
    Unborn,
    /// In the middle of a merge with a conflict.
    Merge,
    /// In the middle of a rebase with a conflict.
    Rebase,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Plain, Self::LinkedWorktree, Self::Submodule, Self::Unborn, Self::Merge, Self::Rebase];
}

/// Makes a repository in the given state below `parent`, an existing directory, and returns its work tree.
pub fn make(state: State, parent: &Path) -> PathBuf {
    let parent = parent.canonicalize().expect("the parent exists");
    let repo = parent.join("repo");
    match state {
        State::Plain => plain(&repo),
        State::LinkedWorktree => return linked_worktree(&parent),
        State::Submodule => submodule(&parent, &repo),
        State::Unborn => unborn(&repo),
        State::Merge => conflict(&repo, &["merge", "other"]),
        State::Rebase => conflict(&repo, &["rebase", "other"]),
    }
    repo
}

/// Runs git in `dir` and returns what it printed; panics if it fails.
pub fn git(dir: &Path, args: &[&str]) -> String {
    let output = try_git(dir, args);
    assert!(output.status.success(), "git {args:?} in {}: {}", dir.display(), String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs git in `dir`, whatever comes of it.
pub fn try_git(dir: &Path, args: &[&str]) -> Output {
    command(dir, args).output().expect("`git` is installed")
}

/// A git command with an environment of its own.
pub fn command(dir: &Path, args: &[&str]) -> Command {
    let mut git = Command::new("git");
    git.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let fixed = [
        ("HOME", "/nonexistent"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_EDITOR", "true"),
        ("GIT_AUTHOR_NAME", "A U Thor"),
        ("GIT_AUTHOR_EMAIL", "author@example.org"),
        ("GIT_AUTHOR_DATE", "1700000000 +0000"),
        ("GIT_COMMITTER_NAME", "C O Mitter"),
        ("GIT_COMMITTER_EMAIL", "committer@example.org"),
        ("GIT_COMMITTER_DATE", "1700000000 +0000"),
        ("LC_ALL", "C"),
    ];
    git.envs(fixed).current_dir(dir);
    for setting in ["protocol.file.allow=always", "gc.auto=0", "maintenance.auto=false", "init.defaultBranch=main"] {
        git.args(["-c", setting]);
    }
    git.args(args);
    git
}

/// Writes a file below `dir`, with the directories it needs.
pub fn write(dir: &Path, path: &str, content: &str) {
    let path = dir.join(path);
    std::fs::create_dir_all(path.parent().expect("a path below a directory")).expect("directories for a fixture");
    std::fs::write(path, content).expect("a file of a fixture");
}

fn commit(dir: &Path, message: &str) {
    git(dir, &["add", "--all"]);
    git(dir, &["commit", "--quiet", "--message", message]);
}

fn start(dir: &Path) {
    std::fs::create_dir_all(dir).expect("a directory for a repository");
    git(dir, &["init", "--quiet"]);
    write(dir, "README.md", "# Fixture\n");
    write(dir, "src/main.rs", "fn main() {}\n");
    write(dir, ".gitignore", "target/\n*.log\n.env\n");
}

fn plain(dir: &Path) {
    start(dir);
    commit(dir, "First");
    write(dir, "src/lib.rs", "//! Library\n");
    commit(dir, "Second");
    write(dir, "src/lib.rs", "//! Stashed\n");
    git(dir, &["stash", "push", "--quiet"]);
    leave_traces(dir);
}

/// Something of everything that a `git add` or a checkout would disturb.
fn leave_traces(dir: &Path) {
    write(dir, "staged.txt", "staged\n");
    git(dir, &["add", "staged.txt"]);
    write(dir, "staged.txt", "staged, then changed\n");
    write(dir, "README.md", "# Changed\n");
    write(dir, "untracked.txt", "untracked\n");
    write(dir, "target/out.o", "ignored\n");
    write(dir, ".env", "SECRET=1\n");
}

fn linked_worktree(parent: &Path) -> PathBuf {
    let main = parent.join("main");
    plain(&main);
    git(&main, &["worktree", "add", "--quiet", "-b", "feature", "../linked"]);
    let linked = parent.join("linked");
    leave_traces(&linked);
    linked
}

fn submodule(parent: &Path, dir: &Path) {
    let library = parent.join("library");
    start(&library);
    commit(&library, "Library");
    start(dir);
    git(dir, &["submodule", "--quiet", "add", "../library", "vendor/library"]);
    commit(dir, "With a submodule");
    write(dir, "vendor/library/changed.txt", "changed inside\n");
    leave_traces(dir);
}

fn unborn(dir: &Path) {
    start(dir);
    leave_traces(dir);
}

fn conflict(dir: &Path, join: &[&str]) {
    start(dir);
    write(dir, "both.txt", "base\n");
    commit(dir, "Base");
    git(dir, &["checkout", "--quiet", "-b", "other"]);
    write(dir, "both.txt", "theirs\n");
    commit(dir, "Theirs");
    git(dir, &["checkout", "--quiet", "main"]);
    write(dir, "both.txt", "ours\n");
    commit(dir, "Ours");
    let output = try_git(dir, join);
    assert!(!output.status.success(), "git {join:?} was to meet a conflict");
    write(dir, "untracked.txt", "untracked\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Scratch, fingerprint};

    #[test]
    fn every_state_is_what_it_says() {
        for state in State::ALL {
            let scratch = Scratch::new();
            let dir = make(state, scratch.path());
            let in_git = |name: &str| git(&dir, &["rev-parse", "--git-path", name]).trim_end().to_owned();
            let has = |name: &str| dir.join(in_git(name)).exists();
            assert_eq!(has("MERGE_HEAD"), state == State::Merge, "{state:?}");
            assert_eq!(has("rebase-merge"), state == State::Rebase, "{state:?}");
            assert_eq!(dir.join(".git").is_file(), state == State::LinkedWorktree, "{state:?}");
            assert_eq!(dir.join("vendor/library/.git").is_file(), state == State::Submodule, "{state:?}");
            let has_commit = try_git(&dir, &["rev-parse", "--verify", "HEAD"]).status.success();
            assert_eq!(has_commit, state != State::Unborn, "{state:?}");
        }
    }

    #[test]
    fn what_git_does_shows_in_the_fingerprint_and_reading_does_not() {
        for state in State::ALL {
            let scratch = Scratch::new();
            let dir = make(state, scratch.path());
            let before = fingerprint(&dir);
            assert!(before.len() > 10, "{state:?} has {} files", before.len());
            before.assert_same(&fingerprint(&dir));
            git(&dir, &["add", "--intent-to-add", "untracked.txt"]);
            assert_ne!(before, fingerprint(&dir), "{state:?}");
        }
    }
}
