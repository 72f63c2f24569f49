//! Reading, writing, moving and deleting whole files.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use retake_agent::tool::Access;
use retake_engine::session::entry::{Outcome, Part};
use retake_testkit::TinyFs;
use retake_testkit::tinyfs::{Ran, within_mounts};
use serde_json::json;

use super::bench::Bench;

#[tokio::test]
async fn reading_numbers_lines_and_says_how_to_get_the_rest() {
    let bench = Bench::new();
    bench.file("a.txt", (1..=5000).map(|n| format!("line {n}\n")).collect::<String>());
    let told = bench.done("read_file", json!({ "path": "a.txt" })).await;
    assert!(told.starts_with("     1\tline 1\n     2\tline 2\n"), "{}", &told[..100]);
    assert!(
        told.ends_with("  2000\tline 2000\n[Lines 1 to 2000 of 5000; go on with offset 2001.]\n"),
        "{}",
        &told[told.len() - 100..]
    );
    let told = bench.done("read_file", json!({ "path": "./a.txt", "offset": "4999", "limit": 10 })).await;
    assert_eq!(told, "  4999\tline 4999\n  5000\tline 5000\n");
    assert!(
        bench.failed("read_file", json!({ "path": "a.txt", "offset": 6000 })).await.contains("ends with line 5000")
    );
}

#[tokio::test]
async fn long_lines_no_newline_empty_and_crlf_are_shown_for_what_they_are() {
    let bench = Bench::new();
    bench.file("long", format!("{}é\nend", "x".repeat(1999)));
    let told = bench.done("read_file", json!({ "path": "long" })).await;
    assert!(told.contains("xxx[… 3 more bytes of this line …]\n     2\tend\n"), "{told}");
    assert!(told.contains("no newline at its end") && told.contains("too long and cut: 1."), "{told}");
    bench.file("huge", "y".repeat(3 << 20));
    assert!(bench.done("read_file", json!({ "path": "huge" })).await.len() < 3000);
    bench.file("empty", "");
    assert_eq!(bench.done("read_file", json!({ "path": "empty" })).await, "`empty` is empty.");
    bench.file("crlf", "a\r\nb\r\n");
    assert_eq!(bench.done("read_file", json!({ "path": "crlf" })).await, "     1\ta\n     2\tb\n");
    bench.file("gb", b"\xc4\xe3\xba\xc3 x\n");
    assert!(bench.done("read_file", json!({ "path": "gb" })).await.contains("not UTF-8"));
}

#[tokio::test]
async fn what_is_no_text_is_refused_with_its_kind_and_images_are_shown() {
    let bench = Bench::new();
    bench.file("program", [b"\x7fELF".as_slice(), &[0; 20_000]].concat());
    let told = bench.failed("read_file", json!({ "path": "program" })).await;
    assert!(told.contains("an ELF program or library (20 KB)"), "{told}");
    bench.file("fake.png", b"\x89PNG\r\n\x1a\n....");
    assert!(bench.failed("read_file", json!({ "path": "fake.png" })).await.contains("is none or is damaged"));
    bench.file("a.png", STANDARD.decode(crate::answers::PIXEL).unwrap());
    let output = bench.call("read_file", json!({ "path": "a.png" })).await;
    assert!(matches!(&output.parts[1], Part::Image { media_type, .. } if media_type == "image/png"), "{output:?}");
    bench.file("big.png", [b"\x89PNG\r\n\x1a\n".as_slice(), &[1; 4_000_000]].concat());
    assert!(bench.failed("read_file", json!({ "path": "big.png" })).await.contains("too large"));
}

#[tokio::test]
async fn a_wrong_path_is_answered_with_near_ones() {
    let bench = Bench::new();
    bench.file("src/parser.rs", "");
    bench.file("src/lexer.rs", "");
    let told = bench.failed("read_file", json!({ "path": "src/parsr.rs" })).await;
    assert!(told.contains("Did you mean `src/parser.rs`?"), "{told}");
    assert!(bench.failed("read_file", json!({ "path": "src/parser.py" })).await.contains("`src/parser.rs`"));
    assert!(bench.failed("read_file", json!({ "path": "zzz" })).await.contains("`glob`"));
    assert!(bench.failed("read_file", json!({ "path": "src" })).await.contains("`list_dir`"));
}

#[tokio::test]
async fn a_pipe_is_not_waited_for() {
    let bench = Bench::new();
    std::process::Command::new("mkfifo").arg(bench.root().join("pipe")).status().unwrap();
    assert!(bench.failed("read_file", json!({ "path": "pipe" })).await.contains("neither a file nor a directory"));
    assert!(
        bench
            .failed("edit_file", json!({ "path": "pipe", "old": "a", "new": "b" }))
            .await
            .contains("not a regular file")
    );
    assert!(bench.failed("write_file", json!({ "path": "pipe", "content": "a" })).await.contains("not a regular file"));
}

#[tokio::test]
async fn writing_creates_directories_and_declares_them() {
    let bench = Bench::new();
    let call = json!({ "path": "a/b/c.txt", "content": "one\ntwo" });
    assert_eq!(bench.declared("write_file", &call), ["a", "a/b", "a/b/c.txt"]);
    assert_eq!(bench.done("write_file", call).await, "Created `a/b/c.txt` with 2 lines.");
    assert_eq!(bench.content("a/b/c.txt"), b"one\ntwo");
}

#[tokio::test]
async fn a_file_is_replaced_only_if_its_content_is_known() {
    let bench = Bench::new();
    let path = bench.file("a.txt", "old\n");
    let write = |content: &str| json!({ "path": "a.txt", "content": content });
    assert!(bench.failed("write_file", write("new\n")).await.contains("have not read it"));
    bench.done("read_file", json!({ "path": "a.txt" })).await;
    assert_eq!(bench.done("write_file", write("new\n\n")).await, "Replaced `a.txt`: 1 line before, 2 lines now.");
    assert!(bench.done("write_file", write("newer\n")).await.starts_with("Replaced"), "what it wrote itself it knows");
    std::fs::write(&path, "theirs\n").unwrap();
    assert!(bench.failed("write_file", write("mine\n")).await.contains("changed on disk"));
    assert_eq!(bench.content("a.txt"), b"theirs\n");
    bench.done("read_file", json!({ "path": "a.txt" })).await;
    bench.toolbox.recall(&retake_engine::session::Conversation::default());
    assert!(bench.failed("write_file", write("mine\n")).await.contains("have not read it"));
}

#[tokio::test]
async fn a_written_file_keeps_its_identity_mode_and_links() {
    let bench = Bench::new();
    let path = bench.file("run.sh", "a\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o751)).unwrap();
    std::fs::hard_link(&path, bench.root().join("twin")).unwrap();
    let inode = std::fs::metadata(&path).unwrap().ino();
    bench.done("read_file", json!({ "path": "run.sh" })).await;
    bench.done("write_file", json!({ "path": "run.sh", "content": "longer\n" })).await;
    bench.done("edit_file", json!({ "path": "run.sh", "old": "longer", "new": "s" })).await;
    let metadata = std::fs::metadata(&path).unwrap();
    assert_eq!((metadata.ino(), metadata.mode() & 0o7777), (inode, 0o751));
    assert_eq!(bench.content("twin"), b"s\n");
    assert_eq!(std::fs::read_dir(bench.root()).unwrap().count(), 2, "no litter");
}

#[tokio::test]
async fn a_file_that_cannot_be_written_stays_as_it_was() {
    let bench = Bench::new();
    let told = bench.failed("write_file", json!({ "path": "a".repeat(300), "content": "x" })).await;
    assert!(told.contains("cannot be"), "{told}");
    bench.file("file", "x");
    assert!(
        bench.failed("write_file", json!({ "path": "file/below", "content": "x" })).await.contains("not a directory")
    );
    std::fs::create_dir(bench.root().join("dir")).unwrap();
    assert!(bench.failed("write_file", json!({ "path": "dir", "content": "x" })).await.contains("is a directory"));
}

#[tokio::test]
async fn on_a_full_disk_a_file_stays_as_it_was_and_a_new_one_leaves_nothing() {
    let name = concat!(module_path!(), "::on_a_full_disk_a_file_stays_as_it_was_and_a_new_one_leaves_nothing");
    if within_mounts(name.split_once("::").unwrap().1) == Ran::InChild {
        return;
    }
    let tiny = TinyFs::mount(128 << 10);
    let bench = Bench::at(tiny.path());
    let old = "old line\n".repeat(5000);
    std::fs::write(tiny.path().join("a"), &old).unwrap();
    bench.done("read_file", json!({ "path": "a" })).await;
    let much = "y".repeat(300_000);
    for (tool, call) in [
        ("write_file", json!({ "path": "a", "content": much })),
        ("write_file", json!({ "path": "new/deep/b", "content": much })),
        (
            "multi_edit",
            json!({ "path": "a", "edits": [{ "old": "old line\n", "new": "", "replace_all": true }, { "old": "", "new": "" }] }),
        ),
        ("edit_file", json!({ "path": "a", "old": "old", "new": "y".repeat(100), "replace_all": true })),
    ] {
        bench.failed(tool, call).await;
        assert_eq!(std::fs::read_to_string(tiny.path().join("a")).unwrap(), old, "{tool}");
        assert_eq!(std::fs::read_dir(tiny.path()).unwrap().count(), 1, "{tool}");
    }
}

#[tokio::test]
async fn moving_declares_everything_below_and_overwrites_nothing() {
    let bench = Bench::new();
    bench.file("d/a", "1");
    bench.file("d/e/b", "2");
    bench.file("other", "3");
    let mut declared = bench.declared("move_file", &json!({ "from": "d", "to": "x/y" }));
    declared.sort();
    assert_eq!(declared, ["d", "d/a", "d/e", "d/e/b", "x", "x/y", "x/y/a", "x/y/e", "x/y/e/b"]);
    assert_eq!(bench.done("move_file", json!({ "from": "d", "to": "x/y" })).await, "Moved `d` to `x/y`.");
    assert_eq!(bench.content("x/y/e/b"), b"2");
    assert!(bench.failed("move_file", json!({ "from": "other", "to": "x/y/a" })).await.contains("not overwritten"));
    assert!(bench.failed("move_file", json!({ "from": "other", "to": "x" })).await.contains("give `x/other`"));
    assert!(bench.failed("move_file", json!({ "from": "x", "to": "x/z" })).await.contains("inside it"));
    assert!(bench.failed("move_file", json!({ "from": "none", "to": "z" })).await.contains("nothing at `none`"));
}

#[tokio::test]
async fn deleting_a_directory_needs_to_be_said_and_a_link_is_only_a_link() {
    let bench = Bench::new();
    let kept = bench.file("d/a", "1");
    symlink(bench.root().join("d"), bench.root().join("link")).unwrap();
    assert!(bench.failed("delete_file", json!({ "path": "d" })).await.contains("`recursive`"));
    assert_eq!(bench.declared("delete_file", &json!({ "path": "link", "recursive": true })), ["link"]);
    assert_eq!(bench.done("delete_file", json!({ "path": "link", "recursive": true })).await, "Deleted `link`.");
    assert!(kept.exists());
    assert_eq!(bench.declared("delete_file", &json!({ "path": "d", "recursive": "true" })), ["d", "d/a"]);
    bench.done("delete_file", json!({ "path": "d", "recursive": true })).await;
    assert!(!bench.root().join("d").exists());
    assert!(bench.failed("delete_file", json!({ "path": "d" })).await.contains("nothing at `d`"));
}

#[tokio::test]
async fn a_directory_too_large_to_declare_may_touch_anything() {
    let bench = Bench::new();
    std::fs::create_dir(bench.root().join("many")).unwrap();
    for n in 0..10_001 {
        std::fs::File::create(bench.root().join(format!("many/{n}"))).unwrap();
    }
    let prepared = bench.prepare("delete_file", &json!({ "path": "many", "recursive": true }));
    assert_eq!(prepared.map(|prepared| prepared.access).unwrap(), Access::Unknown);
}

#[tokio::test]
async fn an_interrupted_turn_writes_nothing_more() {
    let bench = Bench::new();
    let prepared = bench.prepare("write_file", &json!({ "path": "a", "content": "x" })).ok().unwrap();
    bench.interrupt.send_replace(true);
    let output = (prepared.run)(bench.surroundings().0).await;
    assert_eq!(output.outcome, Outcome::Interrupted);
    assert!(!bench.root().join("a").exists());
}
