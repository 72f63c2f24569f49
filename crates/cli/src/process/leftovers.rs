//! Processes that a command leaves running when it ends.
//!
//! A command gets a mark in its environment, which everything that it starts inherits. A process that still has the mark afterwards is a
//! leftover. Only where the system shows the environment of processes; elsewhere none are found.

use std::fs;
use std::path::Path;

use crate::output::quote;

/// The variable that marks processes, with the operation's id.
pub const MARK: &str = "RETAKE_OPERATION";

/// A process with a mark.
#[derive(Debug)]
pub struct Survivor {
    /// The id of the operation that it belongs to.
    pub operation: String,
    /// What it is called.
    pub name: String,
}

/// All processes with a mark, by name.
pub fn all() -> Vec<Survivor> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut found: Vec<Survivor> = processes.filter_map(|entry| survivor(&entry.path())).collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

/// The process in `directory` of `/proc`, if it has a mark and is not this one.
fn survivor(directory: &Path) -> Option<Survivor> {
    let pid: u32 = directory.file_name()?.to_str()?.parse().ok()?;
    let environment = fs::read(directory.join("environ")).ok().filter(|_| pid != std::process::id())?;
    let mark = format!("{MARK}=");
    let operation = environment.split(|byte| *byte == 0).find_map(|variable| variable.strip_prefix(mark.as_bytes()))?;
    // One that has ended and waits for its parent to notice has no command line.
    let command = fs::read(directory.join("cmdline")).ok().filter(|command| !command.is_empty())?;
    let words: Vec<String> = command
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty())
        .map(|word| quote::shell_word(&String::from_utf8_lossy(word)))
        .collect();
    let name = format!("`{}` ({pid})", quote::one_line(&words.join(" ")));
    Some(Survivor { operation: String::from_utf8_lossy(operation).into_owned(), name })
}
