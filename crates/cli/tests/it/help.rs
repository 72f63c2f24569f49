//! Help, completions and manual pages.

use std::fs;

use crate::sandbox::Sandbox;

const COMMANDS: [&str; 19] = [
    "checkpoint",
    "log",
    "diff",
    "show",
    "label",
    "export",
    "exec",
    "rewind",
    "undo",
    "redo",
    "ops",
    "du",
    "gc",
    "purge",
    "doctor",
    "recover",
    "relink",
    "completions",
    "man",
];

#[test]
fn help_lists_the_commands_in_groups() {
    let s = Sandbox::new();
    let help = s.retake(["--help"]).text();
    for part in ["Points:", "Store:", "--workspace", "--json"].into_iter().chain(COMMANDS) {
        assert!(help.contains(part), "`{part}` is not in: {help}");
    }
    assert_eq!(s.retake(["--version"]).text(), format!("retake {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn without_arguments_the_help_is_printed() {
    let s = Sandbox::new();
    assert!(s.retake([]).text().contains("Points:"));
}

#[test]
fn every_command_has_its_own_help() {
    let s = Sandbox::new();
    for command in COMMANDS {
        let help = s.retake([command, "--help"]).text();
        assert!(help.contains(&format!("Usage: retake {command}")), "{help}");
    }
}

#[test]
fn wrong_usage_exits_with_two() {
    let s = Sandbox::new();
    s.retake(["nosuch"]).fails(2);
    s.retake(["show"]).fails(2);
    s.retake(["log", "-n", "many"]).fails(2);
    s.retake(["--color", "sometimes", "log"]).fails(2);
}

#[test]
fn completions_are_printed_for_every_shell() {
    let s = Sandbox::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(s.retake(["completions", shell]).text().contains("checkpoint"), "{shell}");
    }
}

#[test]
fn manual_pages_are_printed_or_written() {
    let s = Sandbox::new();
    assert!(s.retake(["man"]).text().contains(".TH retake 1"));
    let dir = s.path("man1");
    s.retake(["man", "--dir", &dir.to_string_lossy()]).succeeds();
    for command in COMMANDS {
        let page = fs::read_to_string(dir.join(format!("retake-{command}.1"))).expect("there is a page");
        assert!(page.contains(".SH NAME"), "{command}");
    }
    assert!(dir.join("retake.1").is_file());
}
