//! The diff is a patch: real `git apply` and `patch` turn the old files into the new ones.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use crate::sandbox::{Run, Sandbox};

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
    feed(&s, "git", &["apply", "-"], &patch);
    assert_eq!(tree(&s.path("copy")), tree(&s.path("ws")));
    feed(&s, "git", &["apply", "--reverse", "-"], &patch);
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
