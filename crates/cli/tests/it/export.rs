//! `retake export --git-branch`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use retake_testkit::repos::git;

use crate::sandbox::{Run, Sandbox};

fn repository() -> Sandbox {
    let s = Sandbox::new();
    s.git_init().write("a", "1\n");
    git(&s.path("ws"), &["config", "user.name", "Somebody"]);
    git(&s.path("ws"), &["config", "user.email", "somebody@example.org"]);
    git(&s.path("ws"), &["add", "."]);
    git(&s.path("ws"), &["commit", "--quiet", "-m", "one"]);
    s
}

fn in_ws(s: &Sandbox, args: &[&str]) -> String {
    git(&s.path("ws"), args).trim_end().to_owned()
}

#[test]
fn a_point_becomes_a_commit_on_a_new_branch() {
    let s = repository();
    let odd = OsStr::from_bytes(b"odd\n\"\\\xff");
    s.write("a", "2\n")
        .write(odd, "")
        .write("dir/run", "#!\n")
        .chmod("dir/run", 0o755)
        .symlink("nowhere\n", "dir/link");
    s.write("large", crate::sandbox::noise(3, 3 << 20)).write("copy", "2\n");
    s.retake(["checkpoint", "-m", "attempt"]).succeeds();
    let truth = std::fs::read(s.ws("large")).expect("it is there");
    s.write("a", "3\n").remove("large");
    let untouched = |s: &Sandbox| {
        let index = std::fs::read(s.ws(".git/index")).expect("there is an index");
        (in_ws(s, &["symbolic-ref", "HEAD"]), in_ws(s, &["rev-parse", "HEAD"]), index, s.read("a"))
    };
    let before = untouched(&s);
    let document = s.retake(["export", "--git-branch", "feature/try", "attempt", "--json"]).json();
    assert_eq!(document["branch"], "feature/try");
    assert_eq!(document["commit"], in_ws(&s, &["rev-parse", "feature/try"]).as_str());
    assert_eq!(document["parent"], in_ws(&s, &["rev-parse", "main"]).as_str());
    assert_eq!(untouched(&s), before);
    let modes =
        in_ws(&s, &["-c", "core.quotePath=true", "ls-tree", "-r", "--format=%(objectmode) %(path)", "feature/try"]);
    let expected =
        ["100644 a", "100644 copy", "120000 dir/link", "100755 dir/run", "100644 large", r#"100644 "odd\n\"\\\377""#];
    assert_eq!(modes.lines().collect::<Vec<_>>(), expected);
    assert_eq!(in_ws(&s, &["show", "feature/try:a"]), "2");
    let large = Run::of(s.command("git").args(["show", "feature/try:large"])).succeeds().stdout;
    assert!(large == truth, "byte for byte");
    assert_eq!(
        in_ws(&s, &["log", "-1", "--format=%s %an <%ae>", "feature/try"]),
        "attempt Somebody <somebody@example.org>"
    );
    in_ws(&s, &["fsck", "--strict"]);
    s.retake(["export", "--git-branch", "feature/try", "attempt"])
        .fails(3)
        .says("there is a branch `feature/try` already");
    s.retake(["export", "--git-branch", "a..b", "attempt"]).fails(2);
    s.retake(["export", "--git-branch", "x", "nosuch"]).fails(1);
    s.retake(["export", "attempt"]).fails(2);
}

#[test]
fn without_a_repository_nothing_can_be_exported() {
    let s = Sandbox::new();
    let id = s.write("a", "1\n").checkpoint();
    s.retake(["export", "--git-branch", "x", &id]).fails(1).says("is not in a git repository");
}

#[test]
fn a_point_without_a_commit_has_no_parent_and_an_unborn_branch_is_taken() {
    let s = Sandbox::new();
    s.git_init().write("a", "1\n").write("sub/.git/HEAD", "ref: refs/heads/main\n").write("sub/b", "2\n");
    git(&s.path("ws"), &["config", "user.name", "Somebody"]);
    git(&s.path("ws"), &["config", "user.email", "somebody@example.org"]);
    let id = s.checkpoint();
    s.retake(["export", "--git-branch", "main", &id]).fails(3);
    assert!(s.retake(["export", "--git-branch", "try", &id, "--json"]).json()["parent"].is_null());
    assert_eq!(in_ws(&s, &["ls-tree", "-r", "--name-only", "try"]), "a\nsub/b");
}

#[test]
fn a_workspace_that_is_a_part_of_a_repository_keeps_the_rest_of_it() {
    let s = repository();
    s.write("part/b", "1\n");
    git(&s.path("ws"), &["add", "."]);
    git(&s.path("ws"), &["commit", "--quiet", "-m", "two"]);
    s.write("part/b", "2\n").write("part/c", "3\n").write("a", "changed beside it\n");
    s.retake(["-C", "part", "checkpoint", "-m", "p"]).succeeds();
    s.retake(["-C", "part", "export", "--git-branch", "try", "p"]).succeeds();
    assert_eq!(in_ws(&s, &["ls-tree", "-r", "--name-only", "try"]), "a\npart/b\npart/c");
    assert_eq!(in_ws(&s, &["show", "try:a"]), "1");
}

#[test]
fn names_that_git_refuses_are_left_out_and_listed() {
    let s = repository();
    for name in ["git~1", "GIT~1 .", ".g\u{200c}it", ".git::$INDEX_ALLOCATION", "dir/git~1/inside", "sub/.GIT/x"] {
        s.write(name, "refused\n");
    }
    s.write("dir/beside", "kept\n").write("git~2", "kept\n").symlink("a", ".gitmodules");
    s.retake(["checkpoint", "-m", "odd"]).succeeds();
    let run = s.retake(["export", "--git-branch", "text", "odd"]).succeeds();
    run.says("7 paths are not in it: git refuses their names").says("  git~1\n").says("  dir/git~1\n");
    run.says("  sub/.GIT\n").says("  \".g\\342\\200\\214it\"\n");
    let document = s.retake(["export", "--git-branch", "odd", "odd", "--json"]).json();
    let refused: Vec<_> =
        document["refused"].as_array().expect("a list").iter().filter_map(|path| path.as_str()).collect();
    let names = [".git::$INDEX_ALLOCATION", ".gitmodules", ".g\u{200c}it", "GIT~1 .", "dir/git~1", "git~1", "sub/.GIT"];
    assert_eq!(refused, names);
    let out = s.path("checked out");
    in_ws(
        &s,
        &[
            "-c",
            "core.protectHFS=true",
            "-c",
            "core.protectNTFS=true",
            "worktree",
            "add",
            "-q",
            &out.to_string_lossy(),
            "odd",
        ],
    );
    assert_eq!(std::fs::read_to_string(out.join("dir/beside")).expect("it is checked out"), "kept\n");
    in_ws(&s, &["fsck", "--strict"]);
}
