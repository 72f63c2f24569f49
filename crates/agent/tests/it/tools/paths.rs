//! Nothing outside the workspace, and nothing of version control, is written.

use std::os::unix::fs::symlink;

use serde_json::json;

use super::bench::Bench;

/// Every call that would write `path`.
fn writes(path: &str) -> Vec<(&'static str, serde_json::Value)> {
    vec![
        ("write_file", json!({ "path": path, "content": "x" })),
        ("edit_file", json!({ "path": path, "old": "secret", "new": "x" })),
        ("multi_edit", json!({ "path": path, "edits": [{ "old": "secret", "new": "x" }] })),
        ("delete_file", json!({ "path": path })),
        ("move_file", json!({ "from": path, "to": "here" })),
        ("move_file", json!({ "from": "mine", "to": path })),
    ]
}

#[tokio::test]
async fn no_spelling_leads_outside() {
    let bench = Bench::new();
    let outside = bench.scratch.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("secret"), "secret").unwrap();
    bench.file("mine", "secret");
    bench.file("a/b", "x");
    symlink(&outside, bench.root().join("out")).unwrap();
    symlink("..", bench.root().join("up")).unwrap();
    for path in [
        "../outside/secret",
        "a/../../outside/secret",
        "/etc/passwd",
        outside.join("secret").to_str().unwrap(),
        "out/secret",
        "up/outside/secret",
        "out/new/deep",
        "..",
        "/",
    ] {
        for (tool, call) in writes(path) {
            let told = bench.failed(tool, call).await;
            assert!(told.contains("outside"), "{tool} {path}: {told}");
        }
        if !path.contains("new") {
            assert!(bench.failed("read_file", json!({ "path": path })).await.contains("outside"), "{path}");
        }
    }
    assert!(bench.failed("grep", json!({ "pattern": "secret", "path": "out" })).await.contains("outside"));
    assert!(bench.failed("list_dir", json!({ "path": ".." })).await.contains("outside"));
    assert_eq!(std::fs::read(outside.join("secret")).unwrap(), b"secret");
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
}

#[tokio::test]
async fn a_tilde_is_no_home_directory() {
    let bench = Bench::new();
    bench.file("mine", "secret");
    for (tool, call) in writes("~/.bashrc").into_iter().chain(writes("~")) {
        let told = bench.failed(tool, call).await;
        assert!(told.contains("home directory"), "{tool}: {told}");
    }
    assert!(!bench.root().join("~").exists());
    bench.done("write_file", json!({ "path": "./~/x", "content": "x" })).await;
    assert!(bench.root().join("~/x").exists());
}

#[tokio::test]
async fn a_workspace_that_is_gone_is_said_to_be_gone() {
    let bench = Bench::new();
    std::fs::remove_dir_all(bench.root()).unwrap();
    for path in ["n.txt", "a/b/n.txt"] {
        let told = bench.failed("write_file", json!({ "path": path, "content": "x" })).await;
        assert!(told.contains("does not exist any more"), "{told}");
    }
}

#[tokio::test]
async fn a_link_is_edited_where_it_leads_if_that_is_inside() {
    let bench = Bench::new();
    let outside = bench.scratch.path().join("secret");
    std::fs::write(&outside, "secret").unwrap();
    bench.file("real/a", "secret");
    symlink("real/a", bench.root().join("in")).unwrap();
    symlink("real", bench.root().join("dir")).unwrap();
    symlink(&outside, bench.root().join("out")).unwrap();
    symlink("nowhere", bench.root().join("dangling")).unwrap();
    symlink("loop", bench.root().join("loop")).unwrap();
    let edit = |path: &str| json!({ "path": path, "old": "secret", "new": "secret!" });
    assert_eq!(bench.declared("edit_file", &edit("in")), ["real/a"]);
    assert_eq!(bench.declared("edit_file", &edit("dir/a")), ["real/a"]);
    bench.done("edit_file", edit("in")).await;
    assert!(bench.root().join("in").is_symlink());
    assert_eq!(bench.content("real/a"), b"secret!");
    assert!(bench.failed("edit_file", edit("out")).await.contains("outside the workspace"));
    assert!(bench.failed("write_file", json!({ "path": "dangling", "content": "x" })).await.contains("leads nowhere"));
    assert!(bench.failed("edit_file", edit("loop")).await.contains("leads nowhere"));
    assert!(bench.failed("read_file", json!({ "path": "loop" })).await.contains("cannot be read"));
    assert_eq!(bench.done("delete_file", json!({ "path": "out" })).await, "Deleted `out`.");
    assert_eq!(std::fs::read(&outside).unwrap(), b"secret");
}

#[tokio::test]
async fn a_link_that_is_turned_outside_while_the_call_waits_is_noticed() {
    let bench = Bench::new();
    let outside = bench.scratch.dir("outside");
    bench.file("dir/a", "old");
    let prepared = bench.prepare("write_file", &json!({ "path": "dir/new", "content": "x" })).ok().unwrap();
    std::fs::remove_dir_all(bench.root().join("dir")).unwrap();
    symlink(&outside, bench.root().join("dir")).unwrap();
    let output = (prepared.run)(bench.surroundings().0).await;
    assert!(output.text().contains("outside"), "{output:?}");
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
}

#[tokio::test]
async fn version_control_is_never_written() {
    let bench = Bench::new();
    bench.file("mine", "secret");
    bench.file(".git/config", "secret");
    bench.file("sub/.git/config", "secret");
    bench.file("sub/a", "1");
    bench.file(".hg/x", "secret");
    symlink(".git", bench.root().join("link")).unwrap();
    for path in
        [".git/config", "sub/.git/config", "a/../.git/config", "link/config", ".hg/x", ".GIT/config", ".jj/new", ".git"]
    {
        for (tool, call) in writes(path) {
            let told = bench.failed(tool, call).await;
            assert!(told.contains("version control"), "{tool} {path}: {told}");
        }
    }
    for (tool, call) in [
        ("delete_file", json!({ "path": "sub", "recursive": true })),
        ("move_file", json!({ "from": "sub", "to": "x" })),
    ] {
        assert!(bench.failed(tool, call).await.contains("holds `.git`"), "{tool}");
    }
    bench.done("read_file", json!({ "path": ".git/config" })).await;
    assert_eq!(bench.content(".git/config"), b"secret");
}

#[tokio::test]
async fn an_absolute_path_inside_is_fine() {
    let bench = Bench::new();
    let path = bench.file("a", "x\n");
    bench.done("read_file", json!({ "path": path.to_str().unwrap() })).await;
    assert_eq!(bench.declared("write_file", &json!({ "path": path.to_str().unwrap(), "content": "" })), ["a"]);
}
