//! What going back does not undo in a git repository: told, with the commands that move it back.

use std::path::Path;

use retake_testkit::repos::{git, try_git};
use serde_json::Value;

use crate::sandbox::{Run, Sandbox};

/// A repository on `main`, with a branch `other` that has changed the same line.
fn two_branches() -> Sandbox {
    let s = Sandbox::new();
    s.git_init().write("a", "1\n").write("b", "1\n");
    let ws = s.path("ws");
    git(&ws, &["add", "."]);
    git(&ws, &["commit", "--quiet", "-m", "one"]);
    git(&ws, &["switch", "--quiet", "-c", "other"]);
    s.write("a", "other\n").write("c", "other\n");
    git(&ws, &["add", "."]);
    git(&ws, &["commit", "--quiet", "-m", "other"]);
    git(&ws, &["switch", "--quiet", "main"]);
    s.write("a", "main\n");
    git(&ws, &["commit", "--quiet", "-a", "-m", "main"]);
    s
}

/// Where git stands, as git tells it.
fn state(ws: &Path) -> (String, String, String) {
    let branch = try_git(ws, &["symbolic-ref", "--quiet", "HEAD"]).stdout;
    let status = git(ws, &["status", "--porcelain=v2"]);
    let head = try_git(ws, &["rev-parse", "--quiet", "--verify", "HEAD"]).stdout;
    (String::from_utf8_lossy(&branch).into_owned(), String::from_utf8_lossy(&head).into_owned(), status)
}

/// Has git do `script` under `exec`, takes the files back and then, by the commands that are told, git too.
fn there_and_back(s: &Sandbox, script: &str) -> String {
    let ws = s.path("ws");
    // So that nothing is left for git to refresh in the index.
    let before = state(&ws);
    let _ended = Run::of(s.command(env!("CARGO_BIN_EXE_retake")).env("GIT_CONFIG_GLOBAL", "/dev/null").args([
        "exec",
        "--",
        "sh",
        "-c",
        &format!(
            "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; {script}"
        ),
    ]));
    assert_ne!(state(&ws), before, "`{script}` does something");
    let plan = s.retake(["undo", "--across-branches", "--dry-run", "--json"]).json();
    let ledger = plan["ledger"].as_array().expect("a list").iter().filter(|item| item["kind"] == "git");
    let remedies: Vec<String> = ledger.filter_map(|item| item["remedy"].as_str()).map(str::to_owned).collect();
    let undone = s.retake(["undo", "--across-branches"]).succeeds();
    for remedy in &remedies {
        undone.says(&format!("`{remedy}`"));
        Run::of(s.command("sh").args(["-c", remedy])).succeeds();
    }
    assert_eq!(state(&ws), before, "after {remedies:?}");
    remedies.join("\n")
}

#[test]
fn the_commands_that_are_told_bring_back_a_branch_without_a_commit() {
    let s = Sandbox::new();
    s.git_init().write("a", "1\n");
    let told = there_and_back(&s, "echo 2 > a; git add a; git commit -m one");
    assert_eq!(told, "git update-ref -d HEAD\ngit reset");
}

#[test]
fn the_commands_that_are_told_bring_git_back() {
    let told = there_and_back(&two_branches(), "git merge other");
    assert_eq!(told, "git merge --quit\ngit reset");
    let told = there_and_back(&two_branches(), "git rebase other");
    assert_eq!(told, "git rebase --quit\ngit symbolic-ref HEAD refs/heads/main\ngit reset");
    let told = there_and_back(&two_branches(), "git cherry-pick other");
    assert_eq!(told, "git cherry-pick --quit\ngit reset");
    let told = there_and_back(&two_branches(), "git switch other");
    assert_eq!(told, "git symbolic-ref HEAD refs/heads/main\ngit reset");
    let told = there_and_back(&two_branches(), "echo 3 > b; git commit -am three");
    assert!(told.starts_with("git reset --soft ") && told.ends_with("\ngit reset"), "{told}");
    assert_eq!(there_and_back(&two_branches(), "echo 3 > b; git add b"), "git reset");
    let detached = two_branches();
    git(&detached.path("ws"), &["switch", "--quiet", "--detach", "main"]);
    let told = there_and_back(&detached, "git switch other");
    assert!(told.starts_with("git update-ref --no-deref HEAD "), "{told}");
}

#[test]
fn a_stash_that_was_made_or_is_gone_is_told() {
    let s = two_branches();
    s.write("b", "mine\n");
    let git_items = |document: &Value| -> Vec<(String, String)> {
        let items = document["ledger"].as_array().expect("a list").iter().filter(|item| item["kind"] == "git");
        let text = |item: &Value, key: &str| item[key].as_str().unwrap_or_default().to_owned();
        items.map(|item| (text(item, "what"), text(item, "remedy"))).collect()
    };
    let before = s.checkpoint();
    git(&s.path("ws"), &["stash", "--quiet"]);
    let items = git_items(&s.retake(["rewind", &before, "--yes", "--json"]).json());
    let changed = ("the stash has changed: see `git stash list`".to_owned(), String::new());
    assert!(items.contains(&changed), "a list is no remedy: {items:?}");
    assert_eq!(s.read("b"), "mine\n");
    let stash = git(&s.path("ws"), &["rev-parse", "refs/stash"]);
    let with_stash = s.checkpoint();
    git(&s.path("ws"), &["stash", "drop", "--quiet"]);
    s.write("b", "else\n");
    let items = git_items(&s.retake(["rewind", &with_stash, "--yes", "--json"]).json());
    let remedy = format!("git stash store -m 'WIP' {}", stash.trim());
    assert!(items.contains(&("the stash is gone".to_owned(), remedy.clone())), "{items:?}");
    Run::of(s.command("sh").args(["-c", &remedy])).succeeds();
    assert_eq!(git(&s.path("ws"), &["rev-parse", "refs/stash"]), stash);
}
