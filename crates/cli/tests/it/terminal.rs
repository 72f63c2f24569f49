//! Colours and the pager, on a real pseudo-terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Command, ExitStatus};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::sandbox::Sandbox;

/// Runs `command`, which has to succeed, with its output on a terminal and returns what would be seen there.
fn on_terminal(command: Command) -> String {
    let (seen, status) = typing(command, "");
    assert!(status.success(), "{seen}");
    seen
}

/// Runs `command` on a terminal where `typed` is typed, and returns what would be seen there and how it ended.
pub(crate) fn typing(command: Command, typed: &str) -> (String, ExitStatus) {
    answering(command, "", || {}, typed)
}

/// Runs `command` on a terminal. When `prompt` is seen there, `meanwhile` happens and `typed` is typed. Returns what would be seen in all
/// and how it ended.
pub(crate) fn answering(
    mut command: Command,
    prompt: &str,
    meanwhile: impl FnOnce(),
    typed: &str,
) -> (String, ExitStatus) {
    let (master, terminal) = pseudo_terminal();
    let clone = || terminal.try_clone().expect("a file descriptor");
    command.stdin(clone()).stdout(clone()).stderr(clone());
    let mut child = command.spawn().expect("it starts");
    // The end of output is seen once nobody holds the terminal.
    drop((command, terminal));
    let mut master = File::from(master);
    let (mut seen, mut part) = (Vec::new(), [0; 4096]);
    let mut answer = Some(meanwhile);
    loop {
        let is_asked = String::from_utf8_lossy(&seen).contains(prompt);
        if let Some(meanwhile) = answer.take_if(|_| is_asked) {
            meanwhile();
            // The terminal keeps what is typed until somebody reads it.
            master.write_all(typed.as_bytes()).expect("the terminal takes it");
        }
        // Linux reports the end as an error.
        let Ok(count @ 1..) = master.read(&mut part) else { break };
        seen.extend_from_slice(&part[..count]);
    }
    let status = child.wait().expect("it ends");
    (String::from_utf8(seen).expect("it is text").replace("\r\n", "\n"), status)
}

fn pseudo_terminal() -> (OwnedFd, OwnedFd) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
    grantpt(&master).expect("it is ours");
    unlockpt(&master).expect("it is ours");
    let name = ptsname(&master, Vec::new()).expect("it has a name");
    let terminal = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("it can be opened");
    (master, terminal)
}

fn changed_file() -> Sandbox {
    let s = Sandbox::new();
    s.write("a", "1\n");
    s.checkpoint();
    s.write("a", "2\n");
    s
}

#[test]
fn output_on_a_terminal_is_coloured_and_paged() {
    let s = changed_file();
    let mut command = s.retake_command();
    command.env("TERM", "xterm").env("RETAKE_PAGER", "sed 's/^/paged: /'").env("PAGER", "false").arg("diff");
    let seen = on_terminal(command);
    assert!(seen.contains("paged: \u{1b}[32m+2"), "{seen:?}");
}

#[test]
fn the_pager_can_be_declined() {
    let s = changed_file();
    for arg in [["--no-pager", "--color=auto"], ["--color=never", "--no-pager"]] {
        let mut command = s.retake_command();
        command.env("TERM", "xterm").env("PAGER", "sed 's/^/paged: /'").args(arg).arg("diff");
        let seen = on_terminal(command);
        assert!(!seen.contains("paged: "), "{seen:?}");
    }
}

#[test]
fn file_content_is_never_paged() {
    let s = changed_file();
    let id = s.checkpoint();
    let mut command = s.retake_command();
    command.env("TERM", "xterm").env("PAGER", "sed 's/^/paged: /'").args(["show", &format!("{id}:a")]);
    assert_eq!(on_terminal(command), "2\n");
}

#[test]
fn a_pager_that_is_left_early_is_no_error() {
    let s = changed_file();
    s.write("long", "line\n".repeat(100_000));
    let mut command = s.retake_command();
    command.env("TERM", "xterm").env("PAGER", "head -n 1").env("NO_COLOR", "1").arg("diff");
    assert_eq!(on_terminal(command), "diff --git a/a b/a\n");
}

#[test]
fn a_binary_file_is_only_named_on_a_terminal() {
    let s = Sandbox::new();
    s.write("bin", "\0");
    s.checkpoint();
    s.write("bin", "\0\0");
    let mut command = s.retake_command();
    command.env("TERM", "xterm").args(["--no-pager", "--color=never", "diff"]);
    let seen = on_terminal(command);
    assert!(seen.ends_with("\nBinary files a/bin and b/bin differ\n"), "{seen:?}");
    assert!(!seen.contains("GIT binary patch"), "{seen:?}");
}

#[test]
fn a_missing_pager_is_done_without() {
    let s = changed_file();
    let mut command = s.retake_command();
    command.env("TERM", "xterm").env("PATH", "/nonexistent").arg("diff");
    assert!(on_terminal(command).contains("diff --git"));
}

#[test]
fn a_pager_that_cannot_be_started_is_done_without_and_said() {
    let s = changed_file();
    let whole = s.retake(["diff"]).text();
    for pager in ["nosuchpager", "nosuchpager --with 'an argument'", "/", "./a"] {
        let mut command = s.retake_command();
        command.env("TERM", "xterm").env("PAGER", pager).env("NO_COLOR", "1").arg("diff");
        let seen = on_terminal(command);
        assert!(seen.ends_with(&whole), "{pager}: {seen:?}");
        let note = format!("warning: the pager `{pager}` could not be started");
        assert_eq!(seen.matches(&note).count(), 1, "{pager}: {seen:?}");
    }
}

#[test]
fn no_line_is_lost_or_doubled_without_the_pager() {
    let s = changed_file();
    // More than a pipe holds, so that the pager's absence is noticed halfway.
    s.write("long", (0..100_000).map(|n| format!("line {n}\n")).collect::<String>());
    let whole = s.retake(["diff"]).text();
    let mut command = s.retake_command();
    command.env("TERM", "xterm").env("RETAKE_PAGER", "nosuchpager").env("NO_COLOR", "1").arg("diff");
    let seen = on_terminal(command);
    assert!(seen.ends_with(&whole), "{} of {} bytes", seen.len(), whole.len());
}

#[test]
fn an_empty_pager_is_none() {
    let s = changed_file();
    let whole = s.retake(["diff"]).text();
    for (name, value) in [("PAGER", ""), ("PAGER", " "), ("PAGER", "cat"), ("RETAKE_PAGER", "")] {
        let mut command = s.retake_command();
        command
            .env("TERM", "xterm")
            .env("PAGER", "sed 's/^/paged: /'")
            .env("NO_COLOR", "1")
            .env(name, value)
            .arg("diff");
        assert_eq!(on_terminal(command), whole, "{name}={value:?}");
    }
}

#[test]
fn no_color_and_clicolor_force_are_respected() {
    let s = changed_file();
    let mut command = s.retake_command();
    command.env("TERM", "xterm").env("NO_COLOR", "1").args(["--no-pager", "diff"]);
    assert!(!on_terminal(command).contains('\u{1b}'));
    let forced = s.retake_command().env("CLICOLOR_FORCE", "1").arg("diff").output().expect("it starts");
    assert!(forced.stdout.contains(&0x1b));
    let plain = s.retake_command().arg("diff").output().expect("it starts");
    assert!(!plain.stdout.contains(&0x1b));
    let always = s.retake_command().args(["diff", "--color", "always"]).output().expect("it starts");
    assert!(always.stdout.contains(&0x1b));
}
