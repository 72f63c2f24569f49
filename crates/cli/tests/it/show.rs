//! `retake show`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use serde_json::json;

use crate::sandbox::{Run, Sandbox};

#[test]
fn a_point_is_shown_with_its_facts() {
    let s = Sandbox::new();
    s.git_init().config("[capture]\nmax_file = 10\n").write("a", "1").write("big", "more than ten bytes");
    s.retake(["checkpoint", "-m", "first"]).succeeds();
    let text = s.retake(["show", "first"]).text();
    for part in [
        "Checkpoint ",
        "Label:     first",
        "Made:      ",
        "Branch:    main",
        "Changed:   1 added",
        "Gaps:      1",
        "big",
    ] {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
    let document = s.retake(["show", "first", "--json"]).json();
    assert_eq!(document["checkpoint"]["label"], "first");
    assert_eq!(document["checkpoint"]["gaps_total"], 1);
    assert_eq!(document["changed"]["added"], 1);
}

#[test]
fn file_content_is_byte_exact() {
    let s = Sandbox::new();
    let content = b"\x1b[31mno\r\nfinal\0newline\xff".as_slice();
    s.write("dir/odd", content);
    let id = s.checkpoint();
    s.remove("dir/odd");
    assert_eq!(s.retake(["show", &format!("{id}:dir/odd")]).succeeds().stdout, content);
}

#[test]
fn a_symlink_prints_its_target() {
    let s = Sandbox::new();
    s.symlink("nowhere/at all", "link");
    let id = s.checkpoint();
    assert_eq!(s.retake(["show", &format!("{id}:link")]).text(), "nowhere/at all");
}

#[test]
fn directories_are_listed_one_entry_a_line() {
    let s = Sandbox::new();
    s.write("b/c/d", "1").write("b/new\nline", "1").write("a", "1");
    let id = s.checkpoint();
    assert_eq!(s.retake(["show", &format!("{id}:")]).text(), "a\nb/\n");
    assert_eq!(s.retake(["show", &format!("{id}:b/")]).text(), "c/\n\"new\\nline\"\n");
    let document = s.retake(["show", &format!("{id}:"), "--json"]).json();
    assert_eq!(document["checkpoint"], id.as_str());
    assert_eq!(document["path"], "");
    let first = &document["entries"][0];
    assert_eq!((&first["name"], &first["kind"], &first["size"]), (&json!("a"), &json!("file"), &json!(1)));
    assert!(first["mode"].as_str().is_some_and(|mode| mode.len() == 4));
}

#[test]
fn paths_are_relative_to_the_workspace_unless_they_start_with_a_dot() {
    let s = Sandbox::new();
    s.write("a", "outer").write("sub/a", "inner");
    let id = s.checkpoint();
    let show = |path: &str| s.retake_in(s.ws("sub"), ["-C", "..", "show", &format!("{id}:{path}")]).text();
    assert_eq!([show("a"), show("./a"), show("../a"), show("sub/a")], ["outer", "inner", "outer", "inner"]);
}

#[test]
fn labels_may_hold_colons() {
    let s = Sandbox::new();
    s.write("a", "1");
    s.retake(["checkpoint", "-m", "fix: parser"]).succeeds();
    assert!(s.retake(["show", "fix: parser"]).text().contains("fix: parser"));
    assert_eq!(s.retake(["show", "fix: parser:a"]).text(), "1");
}

#[test]
fn names_that_are_not_utf8_can_be_asked_for() {
    let s = Sandbox::new();
    s.write(OsStr::from_bytes(b"caf\xe9"), "1");
    let id = s.checkpoint();
    let mut what = format!("{id}:").into_bytes();
    what.extend_from_slice(b"caf\xe9");
    assert_eq!(Run::of(s.retake_command().arg("show").arg(OsStr::from_bytes(&what))).text(), "1");
}

#[test]
fn what_is_not_there_is_said_with_a_way_on() {
    let s = Sandbox::new();
    s.write("dir/a", "1");
    let id = s.checkpoint();
    let run = s.retake(["show", &format!("{id}:dir/b/c")]).fails(1);
    run.says("has no `dir/b/c`");
    run.says(&format!("hint: `retake show {}:dir` lists", &id[..8]));
    s.retake(["show", "nosuch"]).fails(1).says("`retake log`");
    s.retake(["show", "nosuch:a"]).fails(1).says("nosuch");
    s.retake(["show", &format!("{id}:../x")]).fails(2).says("outside the workspace");
    s.retake(["show", &format!("{id}:dir/a"), "--json"]).fails_with_json(2);
}

#[test]
fn a_label_that_is_the_beginning_of_another_id_is_ambiguous() {
    let s = Sandbox::new();
    let [labelled, other] = [s.checkpoint(), s.checkpoint()];
    s.retake(["label", &labelled, &other[..8]]).succeeds();
    let run = s.retake(["show", &other[..8]]).fails(3);
    run.says(&labelled);
    run.says(&other);
    for (point, wanted) in [(&other[..9], &other), (&other[..7], &other), (&labelled[..8], &labelled)] {
        assert!(s.retake(["show", point]).text().contains(&format!("Checkpoint {wanted}\n")));
    }
}
