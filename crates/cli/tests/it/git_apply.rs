//! The diff is a patch: real `git apply` and `patch` turn the old files into the new ones.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use crate::sandbox::{Run, Sandbox, noise};

/// A workspace with a checkpoint, changed by `change`; then the patch and the tree before it.
fn changed(before: impl Fn(&Sandbox), change: impl Fn(&Sandbox)) -> (Sandbox, Vec<u8>) {
    let s = Sandbox::new();
    before(&s);
    Run::of(s.command("cp").args(["-a", "."]).arg(s.path("copy"))).succeeds();
    s.checkpoint();
    change(&s);
    let patch = s.retake(["diff"]).succeeds().stdout;
    (s, patch)
}

fn feed(s: &Sandbox, program: &str, args: &[&str], input: &[u8]) {
    let mut command = s.command(program);
    let mut child = command
        .args(args)
        .current_dir(s.path("copy"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    child.stdin.take().expect("it was piped").write_all(input).expect("it reads its input");
    Run::from_output(child.wait_with_output().expect("it ends")).succeeds();
}

/// Every file and link below `dir` with what git keeps of it.
fn tree(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut pending = vec![dir.to_owned()];
    while let Some(at) = pending.pop() {
        for entry in fs::read_dir(&at).expect("it can be listed") {
            let path = entry.expect("it can be listed").path();
            let name =
                path.strip_prefix(dir).expect("it is below").as_os_str().as_encoded_bytes().escape_ascii().to_string();
            let meta = fs::symlink_metadata(&path).expect("it is there");
            if meta.is_dir() {
                pending.push(path);
            } else if meta.is_symlink() {
                found.push(format!("{name} -> {}", fs::read_link(&path).expect("it is a link").display()));
            } else {
                let executable = std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o100 != 0;
                let content = fs::read(&path).expect("it can be read");
                found.push(format!("{name} {executable} {}", content.escape_ascii()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn git_apply_reproduces_text_changes_of_every_kind() {
    let long: String = (0..200).map(|n| format!("line {n}\n")).collect();
    let (s, patch) = changed(
        |s| {
            s.write("edited", &long).write("crlf", "a\r\nb\r\n").write("no-newline", "a\nb").write("gone", "1\n");
            s.write("emptied", "1\n").write("mode", "1\n").chmod("mode", 0o644).write("with space", "1\n");
            s.write("odd\tname\n\"x\"", "1\n")
                .write("größe", "1\n")
                .write("file-to-dir", "1\n")
                .write("dir-to-file/x", "1\n");
            s.symlink("here", "link")
                .write("file-to-link", "1\n")
                .write("latin", b"caf\xe9\n")
                .write("deep/er/file", "1\n");
        },
        |s| {
            s.write(
                "edited",
                long.replace("line 7\n", "seven\n").replace("line 150\n", "").replace("line 90\n", "90\n91\n"),
            );
            s.write("crlf", "a\r\nc\r\n").write("no-newline", "a\nc").remove("gone").write("emptied", "");
            s.chmod("mode", 0o755).write("with space", "2\n").write("odd\tname\n\"x\"", "2\n").write("größe", "2\n");
            s.remove("file-to-dir").write("file-to-dir/x", "1\n").remove("dir-to-file/x");
            fs::remove_dir(s.ws("dir-to-file")).expect("it is empty");
            s.write("dir-to-file", "1\n").remove("link").symlink("there", "link").remove("file-to-link");
            s.symlink("1", "file-to-link").write("latin", b"caf\xe9s\n").write("new/file", "1").write("new/empty", "");
            s.remove("deep/er/file").write("script", "#!/bin/sh\n").chmod("script", 0o755);
        },
    );
    let before = tree(&s.path("copy"));
    feed(&s, "git", &["apply", "-"], &patch);
    assert_eq!(tree(&s.path("copy")), tree(&s.path("ws")));
    feed(&s, "git", &["apply", "--reverse", "-"], &patch);
    assert_eq!(tree(&s.path("copy")), before);
}

#[test]
fn git_apply_reproduces_binary_changes_of_every_kind() {
    // Longer than one stored block of a zlib stream takes.
    let long = noise(1, 200_000);
    let (s, patch) = changed(
        |s| {
            s.write("edited", noise(2, 1_000)).write("gone", b"\0\xff").write("text", "1\n").write("long", &long);
            s.write("mode", b"\0")
                .chmod("mode", 0o644)
                .write("to-link", b"\0")
                .write("dir/x", b"\0")
                .write("empty", "");
            s.write("to-text", b"\0\n").write("odd \"name\n", b"\0").write("both", "1\n");
        },
        |s| {
            s.write("edited", noise(3, 1_003)).remove("gone").write("text", "2\n").write("long", &long[..150_001]);
            s.write("mode", b"\0\0").chmod("mode", 0o755).remove("to-link").symlink("x", "to-link").remove("dir/x");
            fs::remove_dir(s.ws("dir")).expect("it is empty");
            s.write("dir", noise(4, 52))
                .write("empty", b"\0")
                .write("to-text", "text\n")
                .write("odd \"name\n", b"\0\0");
            s.write("both", "2\n").write("new/file", noise(5, 53)).chmod("new/file", 0o755);
        },
    );
    let before = tree(&s.path("copy"));
    feed(&s, "git", &["apply", "-"], &patch);
    assert_eq!(tree(&s.path("copy")), tree(&s.path("ws")));
    feed(&s, "git", &["apply", "--reverse", "-"], &patch);
    assert_eq!(tree(&s.path("copy")), before);
    Run::of(s.command("git").args(["init", "--quiet"]).current_dir(s.path("copy"))).succeeds();
    feed(&s, "git", &["apply", "-"], &patch);
}

#[test]
fn what_is_too_large_for_a_patch_is_named_and_git_apply_takes_the_rest() {
    let s = Sandbox::new();
    s.write("big", vec![b'x'; 9 << 20]).write("gone", vec![0; 9 << 20]).write("a", "1\n").write("z", "1\n");
    fs::create_dir(s.path("copy")).expect("it is new");
    Run::of(s.command("cp").args(["a", "z"]).arg(s.path("copy"))).succeeds();
    s.checkpoint();
    s.write("big", vec![b'y'; 9 << 20]).remove("gone").write("a", "2\n").write("new", vec![0; 9 << 20]);
    s.write("f-empty", "").write("z", "2\n").chmod("new", 0o644);
    let run = s.retake(["diff"]).succeeds();
    run.says("warning: 3 files over 8.0 MiB are named but not contained in this patch");
    let text = String::from_utf8_lossy(&run.stdout).into_owned();
    for line in ["\nFile big changed (", "\nDeleted file gone (", "\nNew file new (mode 0644, 9.0 MiB)\n"] {
        assert!(text.contains(line), "`{line}` is not in:\n{text}");
    }
    feed(&s, "git", &["apply", "-"], &run.stdout);
    assert_eq!(tree(&s.path("copy")), ["a false 2\\n", "f-empty false ", "z false 2\\n"]);
}

#[test]
fn a_directory_is_emptied_before_a_file_takes_its_place() {
    let (s, patch) = changed(
        |s| {
            s.write("dir/deep/x", "1\n").write("dir/y", "1\n").write("dir-by", "1\n").write("file", "1\n");
        },
        |s| {
            fs::remove_dir_all(s.ws("dir")).expect("it is ours");
            s.write("dir", "2\n").write("dir-by", "2\n").remove("file").write("file/deep/x", "2\n");
        },
    );
    let text = String::from_utf8_lossy(&patch).into_owned();
    let headers: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("diff --git a/")).collect();
    let headers: Vec<&str> = headers.iter().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(headers, ["dir/deep/x", "dir/y", "dir", "dir-by", "file", "file/deep/x"]);
    let before = tree(&s.path("copy"));
    feed(&s, "git", &["apply", "-"], &patch);
    assert_eq!(tree(&s.path("copy")), tree(&s.path("ws")));
    feed(&s, "git", &["apply", "--reverse", "-"], &patch);
    assert_eq!(tree(&s.path("copy")), before);
}

#[test]
fn patch_reproduces_edits() {
    let (s, patch) = changed(
        |s| {
            s.write("a b", "1\n2\n3\n").write("dir/c", "1\n").write("no-newline", "1");
        },
        |s| {
            s.write("a b", "1\ntwo\n3\n").remove("dir/c").write("no-newline", "2").write("new", "1\n");
            fs::remove_dir(s.ws("dir")).expect("it is empty");
        },
    );
    feed(&s, "patch", &["-p1", "--silent"], &patch);
    assert_eq!(tree(&s.path("copy")), tree(&s.path("ws")));
}
