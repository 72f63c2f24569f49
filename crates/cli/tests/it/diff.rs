//! `retake diff`.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use serde_json::{Value, json};

use crate::sandbox::Sandbox;

/// The diff since the only checkpoint without its `index` lines, whose ids are not the point here.
fn diff(s: &Sandbox) -> String {
    let text = s.retake(["diff"]).text();
    text.lines().filter(|line| !line.starts_with("index ")).map(|line| format!("{line}\n")).collect()
}

fn file<'a>(document: &'a Value, path: &str) -> &'a Value {
    let files = document["files"].as_array().expect("files are listed");
    files.iter().find(|file| file["path"] == path).unwrap_or_else(|| panic!("no `{path}` in {document}"))
}

#[test]
fn changed_lines_are_shown_as_git_shows_them() {
    let s = Sandbox::new();
    s.write("a.txt", "one\ntwo\nthree\n");
    s.checkpoint();
    s.write("a.txt", "one\n2\nthree\n");
    let wanted = "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n";
    assert_eq!(diff(&s), wanted);
}

#[test]
fn new_and_deleted_files_have_their_modes() {
    let s = Sandbox::new();
    s.write("old", "1\n").chmod("old", 0o600);
    s.checkpoint();
    s.remove("old").write("new", "1\n").chmod("new", 0o755);
    assert_eq!(
        diff(&s),
        concat!(
            "diff --git a/new b/new\nnew file mode 100755\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+1\n",
            "diff --git a/old b/old\ndeleted file mode 100600\n--- a/old\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n",
        )
    );
}

#[test]
fn modes_symlinks_directories_and_binaries_are_said() {
    let s = Sandbox::new();
    s.write("bin", "\0").write("mode", "1").chmod("mode", 0o644).symlink("here", "link").write("gone/x", "1");
    s.checkpoint();
    s.write("bin", "\0\0").chmod("mode", 0o4755).remove("link").symlink("there", "link").remove("gone/x");
    fs::remove_dir(s.ws("gone")).expect("it is empty");
    fs::create_dir(s.ws("empty")).expect("it is new");
    s.chmod("empty", 0o700);
    let text = diff(&s);
    for part in [
        "GIT binary patch\nliteral 2\n",
        "New directory empty (mode 0700)\n",
        "Deleted directory gone (mode 0755)\n",
        "diff --git a/mode b/mode\nold mode 100644\nnew mode 104755\n",
        "--- a/link\n+++ b/link\n@@ -1 +1 @@\n-here\n\\ No newline at end of file\n+there\n\\ No newline at end of file\n",
    ] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
}

#[test]
fn a_file_that_became_a_symlink_went_and_came() {
    let s = Sandbox::new();
    s.write("x", "text\n").chmod("x", 0o644);
    s.checkpoint();
    s.remove("x").symlink("text", "x");
    let text = diff(&s);
    assert!(text.contains("deleted file mode 100644") && text.contains("new file mode 120000"), "{text}");
    assert_eq!(file(&s.retake(["diff", "--json"]).json(), "x")["status"], "type");
}

#[test]
fn odd_names_are_quoted() {
    let s = Sandbox::new();
    s.checkpoint();
    s.write("new\nline", "").write("with space", "1").write(OsStr::from_bytes(b"caf\xe9"), "").write("größe", "");
    let text = diff(&s);
    for part in [
        r#"diff --git "a/new\nline" "b/new\nline""#,
        "+++ b/with space\t\n",
        r#"diff --git "a/caf\351" "b/caf\351""#,
        "diff --git a/größe b/größe\n",
    ] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
}

#[test]
fn bytes_of_lines_are_kept() {
    let s = Sandbox::new();
    s.write("a", "x\r\n");
    s.checkpoint();
    s.write("a", b"\x1b[31mred\x1b[0m\xff\r\n");
    let bytes = s.retake(["diff"]).succeeds().stdout;
    let tail = b"@@ -1 +1 @@\n-x\r\n+\x1b[31mred\x1b[0m\xff\r\n";
    assert!(bytes.ends_with(tail), "{}", bytes.escape_ascii());
}

#[test]
fn large_files_are_said_to_differ() {
    let s = Sandbox::new();
    s.write("big", vec![b'x'; 9 << 20]);
    s.checkpoint();
    s.write("big", vec![b'y'; 9 << 20]);
    assert_eq!(diff(&s), "File big changed (9.0 MiB to 9.0 MiB)\n");
    assert!(file(&s.retake(["diff", "--json"]).json(), "big")["added"].is_null());
}

#[test]
fn two_points_can_be_compared() {
    let s = Sandbox::new();
    s.write("a", "1\n");
    let first = s.checkpoint();
    s.write("a", "2\n");
    let second = s.checkpoint();
    s.write("a", "3\n");
    let names = |text: String| text.lines().filter(|line| line.starts_with(['-', '+'])).skip(2).collect::<String>();
    assert_eq!(names(s.retake(["diff", &first, &second]).text()), "-1+2");
    assert_eq!(names(s.retake(["diff", &second[..6], &first[..6]]).text()), "-2+1");
    assert_eq!(names(s.retake(["diff", &first]).text()), "-1+3");
    assert_eq!(names(s.retake(["diff"]).text()), "-2+3");
}

#[test]
fn no_differences_are_no_output() {
    let s = Sandbox::new();
    s.write("a", "1");
    s.checkpoint();
    let run = s.retake(["diff"]).succeeds();
    assert_eq!(run.stdout, b"");
    run.says("No differences");
}

#[test]
fn names_only_can_be_nul_terminated() {
    let s = Sandbox::new();
    s.checkpoint();
    s.write("b", "1").write("a\n", "1");
    assert_eq!(s.retake(["diff", "--name-only"]).text(), "\"a\\n\"\nb\n");
    assert_eq!(s.retake(["diff", "--name-only", "-z"]).text(), "a\n\0b\0");
    s.retake(["diff", "-z"]).fails(2);
}

#[test]
fn paths_restrict_the_diff_and_are_relative_to_the_current_directory() {
    let s = Sandbox::new();
    s.write("src/a", "1").write("src/b", "1").write("srcs", "1");
    s.checkpoint();
    s.write("src/a", "2").write("src/b", "2").write("srcs", "2");
    assert_eq!(s.retake(["diff", "--name-only", "--", "src"]).text(), "src/a\nsrc/b\n");
    assert_eq!(
        s.retake_in(s.ws("src"), ["-C", "..", "diff", "--name-only", "--", "a", "../srcs"]).text(),
        "src/a\nsrcs\n"
    );
    let ws = s.path("ws").to_string_lossy().into_owned();
    assert_eq!(s.retake_in(s.path("home"), ["-C", &ws, "diff", "--name-only", "--", "src/b"]).text(), "src/b\n");
    s.retake(["diff", "--", "../elsewhere"]).fails(2).says("outside the workspace");
}

#[test]
fn stat_has_a_row_a_path_and_a_summary() {
    let s = Sandbox::new();
    s.write("a", "1\n2\n").write("bin", "\0");
    s.checkpoint();
    s.write("a", "1\n3\n").write("bin", "\0\0\0").write("dir/new", "1\n2\n3\n");
    assert_eq!(
        s.retake(["diff", "--stat"]).text(),
        concat!(
            " a       | 2 +-\n",
            " bin     | binary, 1 B to 3 B\n",
            " dir/    | new directory\n",
            " dir/new | 3 +++\n",
            " 3 files and 1 directory changed, 4 insertions(+), 1 deletion(-)\n",
        )
    );
}

#[test]
fn json_has_both_sides_and_line_counts() {
    let s = Sandbox::new();
    s.write("a", "1\n").chmod("a", 0o644).write("bin", "\0").write("mode", "").chmod("mode", 0o600).write("gone", "1");
    let id = s.checkpoint();
    s.write("a", "1\n2\n").write("bin", "\0\0").chmod("mode", 0o640).remove("gone").write("dir/new", "1");
    let document = s.retake(["diff", "--json"]).json();
    assert_eq!((&document["from"], &document["to"]), (&json!(id), &Value::Null));
    let statuses = ["a", "bin", "mode", "gone", "dir", "dir/new"].map(|path| file(&document, path)["status"].clone());
    assert_eq!(statuses, ["modified", "modified", "mode", "deleted", "added", "added"]);
    let a = file(&document, "a");
    assert_eq!((&a["added"], &a["removed"]), (&json!(1), &json!(0)));
    assert_eq!(
        (&a["before"]["kind"], &a["before"]["mode"], &a["before"]["size"]),
        (&json!("file"), &json!("0644"), &json!(2))
    );
    assert_eq!(a["after"]["id"].as_str().map(str::len), Some(64));
    assert!(file(&document, "bin")["added"].is_null());
    assert!(file(&document, "gone")["after"].is_null());
    assert!(file(&document, "dir/new")["before"].is_null());
}

#[test]
fn a_gap_is_not_passed_off_as_a_deletion() {
    let s = Sandbox::new();
    s.config("[capture]\nmax_file = 10\n").write("grows", "1").write("gone", "1");
    let first = s.checkpoint();
    s.write("grows", "more than ten bytes").remove("gone");
    let now = s.retake(["diff", "--name-only"]).succeeds();
    now.says("grows: larger than");
    assert!(!now.stderr.contains("gone"), "{}", now.stderr);
    let second = s.checkpoint();
    s.retake(["diff", &first, &second, "--stat"]).succeeds().says("grows: larger than");
    s.retake(["diff", &second, &first]).succeeds().says("grows: larger than");
    let document = s.retake(["diff", &first, &second, "--json"]).json();
    assert_eq!(file(&document, "grows")["uncaptured"], "too_large");
    assert!(file(&document, "gone")["uncaptured"].is_null());
}

#[test]
fn a_path_that_is_ignored_now_is_not_passed_off_as_a_deletion() {
    let s = Sandbox::new();
    s.write("noise.log", "1");
    s.checkpoint();
    s.write(".gitignore", "*.log\n");
    let says = "1 path is not captured any more and not deleted: an ignore rule leaves it out\n  noise.log";
    s.retake(["diff"]).succeeds().says(says);
    let document = s.retake(["diff", "--json"]).json();
    assert_eq!(document["left_out"], serde_json::json!(["noise.log"]));
    assert_eq!(document["files"].as_array().expect("a list").len(), 1, "{document}");
}

#[test]
fn gaps_of_the_workspace_as_it_is_now_are_told() {
    let s = Sandbox::new();
    s.config("[capture]\nmax_file = 10\n").write("a", "1").write("sub/old", "more than ten bytes");
    let id = s.checkpoint();
    fs::hard_link(s.ws("a"), s.ws("twin")).expect("it is new");
    s.write("new", "more than ten bytes");
    let run = s.retake(["diff", "--name-only"]).succeeds();
    assert_eq!(run.stdout, b"twin\n", "a link's content is captured");
    run.says("warning: the workspace has 2 gaps now, whose content is not compared:");
    run.says("\n    new\n    sub/old\n");
    assert!(!run.stderr.contains("twin"), "{}", run.stderr);
    let below = s.retake(["diff", "--", "sub"]).succeeds();
    below.says("No differences");
    below.says("has 1 gap now");

    let document = s.retake(["diff", "--json", "--", "new", "sub"]).json();
    assert_eq!(document["gaps_total"], 2);
    assert_eq!(document["gaps"][0]["path"], "new");
    assert_eq!(document["gaps"][0]["kind"], "too_large");
    let next = s.checkpoint();
    let stored = s.retake(["diff", &id, &next, "--json"]).json();
    assert_eq!(stored["gaps_total"], 4, "all of the later side's, the two links among them");
    assert!(!s.retake(["diff", &id, &next]).succeeds().stderr.contains("gaps now"));
}

#[test]
fn changes_can_be_told_apart_by_who_made_them() {
    let s = Sandbox::new();
    s.write("agents", "1\n").write("both", "1\n").write("mine", "1\n");
    s.retake(["exec", "-m", "start", "--", "sh", "-c", "echo 2 > agents; echo 2 > both"]).succeeds();
    s.write("both", "3\n");
    s.checkpoint();
    s.write("mine", "2\n");
    let by = |args: &[&str]| {
        let run =
            crate::sandbox::Run::of(s.retake_command().args(["diff", "--name-only", "start"]).args(args)).succeeds();
        run.says("warning: 1 path was changed by others too, whose changes are shown with it:\n  both\n");
        run.text()
    };
    assert_eq!(by(&["--by", "agent"]), "agents\nboth\n");
    assert_eq!(by(&["--by", "outside"]), "both\nmine\n");
    let session = s.retake(["ops", "--json"]).json()["operations"][0]["session"].as_str().expect("text").to_owned();
    assert_eq!(by(&["--by", &session[..8]]), "agents\nboth\n");
    let newest = s.retake(["log", "--json"]).json()["checkpoints"][0]["id"].as_str().expect("text").to_owned();
    let backwards = ["diff", &newest, "start", "--by", "outside", "--json"];
    let files = s.retake(backwards).json()["files"].clone();
    assert_eq!(files.as_array().map(Vec::len), Some(1), "points in either order: {files}");
    s.retake(["diff", "start", "--by", "nobody"]).fails(1).says("there is no session `nobody`");
}
