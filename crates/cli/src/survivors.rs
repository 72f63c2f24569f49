//! Processes that a command leaves behind when it has ended.
//!
//! A command that is run gets a mark in its environment, which everything that it starts inherits. Whatever still has the mark
//! afterwards goes on working unseen. Only where the system tells the environment of processes; elsewhere none are found.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use retake_engine::OperationId;

use crate::quote;

/// The variable that marks processes, with the operation's id.
pub const MARK: &str = "RETAKE_OPERATION";

/// The processes that still run with the mark of one of `operations`, in words.
pub fn of(operations: &[OperationId]) -> Vec<String> {
    let marks: HashSet<String> = operations.iter().map(|operation| format!("{MARK}={operation}")).collect();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut names: Vec<String> = processes.filter_map(|entry| name(&entry.path(), &marks)).collect();
    names.sort();
    names
}

/// What the process in `directory` of `/proc` is called, if it has one of the marks.
fn name(directory: &Path, marks: &HashSet<String>) -> Option<String> {
    let pid: u32 = directory.file_name()?.to_str()?.parse().ok()?;
    let environment = fs::read(directory.join("environ")).ok()?;
    let is_mark = |variable: &[u8]| str::from_utf8(variable).is_ok_and(|variable| marks.contains(variable));
    if pid == std::process::id() || !environment.split(|byte| *byte == 0).any(is_mark) {
        return None;
    }
    // One that has ended and waits for its parent to notice has no command line.
    let command = fs::read(directory.join("cmdline")).ok().filter(|command| !command.is_empty())?;
    let words: Vec<String> = command
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty())
        .map(|word| quote::shell_word(&String::from_utf8_lossy(word)))
        .collect();
    Some(format!("`{}` ({pid})", quote::one_line(&words.join(" "))))
}
