//! Listing and searching.

use std::os::unix::fs::symlink;

use retake_engine::session::entry::Outcome;
use serde_json::json;

use super::bench::{Bench, within};

fn project() -> Bench {
    let bench = Bench::new();
    bench.file(".gitignore", "target/\n*.log\n");
    bench.file("src/main.rs", "fn main() {\n    let needle = 1;\n}\n");
    bench.file("src/deep/lib.rs", "// Needle\n");
    bench.file(".hidden/x.rs", "needle\n");
    bench.file("target/out.rs", "needle\n");
    bench.file("a.log", "needle\n");
    bench.file(".git/needle.rs", "needle\n");
    bench.file("blob.rs", b"needle\0\n");
    bench
}

#[tokio::test]
async fn a_listing_leaves_out_what_is_ignored_and_says_so() {
    let bench = project();
    symlink("src/main.rs", bench.root().join("link")).unwrap();
    let told = bench.done("list_dir", json!({ "path": "." })).await;
    let wanted = "./\n  .gitignore (14)\n  .hidden/\n  blob.rs (8)\n  link -> src/main.rs\n  src/\n[Ignored and not shown: 2.]\n";
    assert_eq!(told, wanted);
    let told = bench.done("list_dir", json!({ "path": "src", "depth": 2 })).await;
    assert_eq!(told, "src/\n  deep/\n    lib.rs (10)\n  main.rs (34)\n");
    assert!(bench.failed("list_dir", json!({ "path": "src/main.rs" })).await.contains("`read_file`"));
    assert!(bench.failed("list_dir", json!({ "path": "none" })).await.contains("nothing at `none`"));
    assert!(bench.done("list_dir", json!({ "path": "target" })).await.contains("out.rs"), "asked for by name");
}

#[tokio::test]
async fn glob_matches_names_at_any_depth_and_paths_as_written() {
    let bench = project();
    assert_eq!(
        bench.done("glob", json!({ "pattern": "*.rs" })).await,
        ".hidden/x.rs\nblob.rs\nsrc/deep/lib.rs\nsrc/main.rs"
    );
    assert_eq!(bench.done("glob", json!({ "pattern": "src/*.rs" })).await, "src/main.rs");
    assert_eq!(bench.done("glob", json!({ "pattern": "**/l*.{rs,py}", "path": "src" })).await, "src/deep/lib.rs");
    assert!(bench.done("glob", json!({ "pattern": "*.xyz" })).await.contains("No file matches"));
    assert!(bench.failed("glob", json!({ "pattern": "a{b" })).await.contains("not a valid pattern"));
}

#[tokio::test]
async fn grep_shows_lines_files_or_counts() {
    let bench = project();
    let told = bench.done("grep", json!({ "pattern": "needle", "mode": "files" })).await;
    assert_eq!(told, ".hidden/x.rs\nsrc/main.rs\n[2 files.]");
    let told = bench
        .done("grep", json!({ "pattern": "needle", "ignore_case": true, "mode": "count", "glob": "src/**" }))
        .await;
    assert_eq!(told, "src/deep/lib.rs: 1\nsrc/main.rs: 1\n[2 matching lines in 2 files.]");
    let told = bench.done("grep", json!({ "pattern": "needle", "path": "src/main.rs", "context": 1 })).await;
    assert_eq!(
        told,
        "src/main.rs\n     1-fn main() {\n     2:    let needle = 1;\n     3-}\n\n[1 matching line in 1 file.]"
    );
    assert!(bench.done("grep", json!({ "pattern": "nothing like it" })).await.contains("No match"));
    assert!(bench.failed("grep", json!({ "pattern": "fn main(" })).await.contains("have to be escaped"));
}

#[tokio::test]
async fn rules_hold_without_a_repository_and_those_above_one_do_not() {
    let bench = Bench::new();
    bench.file(".gitignore", "*.log\n");
    bench.file("src/a.log", "");
    bench.file("src/a.rs", "");
    assert_eq!(bench.done("glob", json!({ "pattern": "a.*", "path": "src" })).await, "src/a.rs");
    std::fs::write(bench.scratch.path().join(".gitignore"), "*.rs\n").unwrap();
    std::fs::create_dir(bench.root().join(".git")).unwrap();
    assert_eq!(bench.done("glob", json!({ "pattern": "a.*", "path": "src" })).await, "src/a.rs");
}

#[tokio::test]
async fn what_is_too_much_is_bounded_and_said() {
    let bench = Bench::new();
    bench.file("many", "needle\n".repeat(10_000));
    let told = bench.done("grep", json!({ "pattern": "needle" })).await;
    assert!(told.len() < 10_000 && told.contains("Only the first 250"), "{}", told.len());
    bench.file("long", format!("needle{}", "x".repeat(100_000)));
    assert!(bench.done("grep", json!({ "pattern": "needle", "path": "long" })).await.len() < 1000);
    for n in 0..1100 {
        bench.file(&format!("d/{n:04}"), "");
    }
    assert!(bench.done("glob", json!({ "pattern": "d/*" })).await.contains("Only the first 500"));
    assert!(bench.done("list_dir", json!({ "path": "d" })).await.contains("Only the first 1000"));
}

#[tokio::test]
async fn an_interrupted_search_ends_at_once() {
    let bench = project();
    let prepared = bench.prepare("grep", &json!({ "pattern": "x" })).ok().unwrap();
    bench.interrupt.send_replace(true);
    assert_eq!(within((prepared.run)(bench.surroundings().0)).await.outcome, Outcome::Interrupted);
}
