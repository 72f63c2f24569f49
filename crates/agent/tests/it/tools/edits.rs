//! Exact replacements.

use serde_json::json;

use super::bench::Bench;

#[tokio::test]
async fn an_edit_says_where_it_was_made() {
    let bench = Bench::new();
    bench.file("a.rs", "one\ntwo\nthree");
    let told = bench.done("edit_file", json!({ "path": "a.rs", "old": "two", "new": "2" })).await;
    assert_eq!(told, "Edited `a.rs` at line 2.");
    assert_eq!(bench.content("a.rs"), b"one\n2\nthree", "no newline is added");
    bench.file("b.rs", "x x\nx");
    let told = bench.done("edit_file", json!({ "path": "b.rs", "old": "x", "new": "yy", "replace_all": true })).await;
    assert_eq!(told, "Edited `b.rs`: 3 occurrences replaced, the first at line 1.");
}

#[tokio::test]
async fn an_edit_that_is_not_clear_is_refused_with_what_helps() {
    let bench = Bench::new();
    bench.file("a.rs", "fn a() {\n\tx();\n}\nfn b() {\n\tx();\n}\n");
    let edit = |old: &str, new: &str| json!({ "path": "a.rs", "old": old, "new": new });
    let told = bench.failed("edit_file", edit("x();", "y();")).await;
    assert!(told.contains("occurs 2 times in `a.rs`, at lines 2, 5"), "{told}");
    let told = bench.failed("edit_file", edit("fn b() {\n    x();", "z")).await;
    assert!(told.contains("line 5 is indented with 1 tab in the file and with 4 spaces"), "{told}");
    assert!(told.contains("     4\tfn b() {\n     5\t\tx();"), "{told}");
    assert!(bench.failed("edit_file", edit("x", "x")).await.contains("the same"));
    assert!(bench.failed("edit_file", edit("", "x")).await.contains("`old` is empty"));
    assert!(
        bench.failed("edit_file", json!({ "path": "none", "old": "a", "new": "b" })).await.contains("`write_file`")
    );
    assert_eq!(bench.content("a.rs"), b"fn a() {\n\tx();\n}\nfn b() {\n\tx();\n}\n");
}

#[tokio::test]
async fn several_edits_are_made_in_order_all_or_none() {
    let bench = Bench::new();
    bench.file("a", "one two");
    let edits =
        |second: &str| json!({ "path": "a", "edits": [{ "old": "one", "new": "1" }, { "old": second, "new": "x" }] });
    let told = bench.failed("multi_edit", edits("three")).await;
    assert!(told.contains("Edit 2 of 2") && told.contains("No edit was made"), "{told}");
    assert_eq!(bench.content("a"), b"one two");
    bench.done("multi_edit", edits("1 two")).await;
    assert_eq!(bench.content("a"), b"x");
    assert!(bench.failed("multi_edit", json!({ "path": "a", "edits": [] })).await.contains("at least one"));
}

#[tokio::test]
async fn bytes_that_are_no_text_stay() {
    let bench = Bench::new();
    bench.file("gb", b"\xc4\xe3\xba\xc3\r\nkey=old\r\n\xff\x00end");
    bench.done("edit_file", json!({ "path": "gb", "old": "key=old\n", "new": "key=new\nmore\n" })).await;
    assert_eq!(bench.content("gb"), b"\xc4\xe3\xba\xc3\r\nkey=new\r\nmore\r\n\xff\x00end");
}

#[tokio::test]
async fn an_edit_after_someone_elses_change_keeps_that_change() {
    let bench = Bench::new();
    bench.file("a", "one\ntwo\n");
    bench.done("read_file", json!({ "path": "a" })).await;
    bench.file("a", "one\ntwo\ntheirs\n");
    bench.done("edit_file", json!({ "path": "a", "old": "one", "new": "1" })).await;
    assert_eq!(bench.content("a"), b"1\ntwo\ntheirs\n");
}
