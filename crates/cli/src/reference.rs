//! `docs/commands.md`, made from the same definitions as `--help`, and every command line that another document shows.
//!
//! Tests only: the program does not contain the page. `RETAKE_BLESS=1` writes it.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};

use crate::args;

/// What stands above the commands.
const HEAD: &str = "\
# Command reference

<!-- Generated from the definitions behind `--help`. To rewrite it: RETAKE_BLESS=1 cargo test -p retake --bin retake reference -->

`--help` after a command prints the same text, and so do the manual pages (`retake man --dir DIR`).

- A **point** is a label or the beginning of an id, of a checkpoint or of a prompt. A number names a prompt of the session. A prompt means the state *before* it. Retake refuses a name that could be two points.
- Data goes to standard output, messages to standard error. With `--json` a command prints one versioned document ([json.md](json.md)).
- **Exit codes**: 0 done; 1 failed; 2 wrong usage; 3 refused until you decide; 130 stopped with Ctrl-C. `exec` exits with its command's code.
- The first Ctrl-C stops a command in good order, a second one ends it at once.
";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The whole page.
fn page() -> String {
    let mut command = args::command();
    command.build();
    let mut page = HEAD.to_owned();
    page += "\n## Contents\n\n| | |\n|---|---|\n";
    for (title, names) in args::GROUPS {
        let links: Vec<String> = names.iter().map(|name| format!("[`{name}`](#retake-{name})")).collect();
        let _ = writeln!(page, "| {title} | {} |", links.join(" · "));
    }
    page += "\n## Global options\n\n";
    page += &options(command.get_arguments().filter(|arg| arg.is_global_set()));
    for (title, names) in args::GROUPS {
        let _ = writeln!(page, "\n## {title}");
        for name in *names {
            section(command.find_subcommand(name).expect("every listed command exists"), &mut page);
        }
    }
    page
}

/// A command with its arguments, then the commands below it.
fn section(command: &Command, page: &mut String) {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name()).to_owned();
    let about = command.get_long_about().or_else(|| command.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").replace("\n       ", "\n");
    let _ = write!(page, "\n### `{name}`\n\n{}\n\n```text\n{usage}\n```\n", about.trim());
    let own = options(command.get_arguments().filter(|arg| !arg.is_global_set()));
    if !own.is_empty() {
        let _ = write!(page, "\n{own}");
    }
    if let Some(help) = command.get_after_help() {
        let help = help.to_string();
        let lines: Vec<&str> = help.lines().map(|line| line.strip_prefix("  ").unwrap_or(line)).collect();
        let (first, rest) = lines.split_first().expect("text has a line");
        let _ = write!(page, "\n{first}\n\n```text\n{}\n```\n", rest.join("\n"));
    }
    for below in command.get_subcommands().filter(|below| below.get_name() != "help" && !below.is_hide_set()) {
        section(below, page);
    }
}

/// A list of arguments and options, each with its help.
fn options<'a>(args: impl Iterator<Item = &'a Arg>) -> String {
    let mut list = String::new();
    for arg in args.filter(|arg| !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str())) {
        let help = arg.get_long_help().or_else(|| arg.get_help()).map(ToString::to_string).unwrap_or_default();
        let help: Vec<&str> = help.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let help: Vec<String> = help.iter().map(|line| format!("{}.", line.trim_end_matches('.'))).collect();
        let mut notes = String::new();
        let values: Vec<String> =
            arg.get_possible_values().iter().map(|value| format!("`{}`", value.get_name())).collect();
        if !values.is_empty() && !arg.is_hide_possible_values_set() && arg.get_action().takes_values() {
            let _ = write!(notes, " One of {}.", values.join(", "));
        }
        let short = arg.get_short().map(|short| format!("-{short}, ")).unwrap_or_default();
        let _ = writeln!(list, "- `{short}{arg}`: {}{notes}", help.join(" "));
    }
    list
}

#[test]
fn the_command_reference_is_fresh() {
    let path = root().join("docs/commands.md");
    let page = page();
    if std::env::var_os("RETAKE_BLESS").is_some() {
        fs::write(&path, &page).expect("it can be written");
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page, "docs/commands.md is not what `--help` says; its head tells how to rewrite it");
}

#[test]
fn every_command_line_in_the_documents_can_be_typed() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for path in documents() {
        let text = fs::read_to_string(&path).expect("a document can be read");
        for line in command_lines(&text) {
            count += 1;
            if let Some(problem) = problem(&line) {
                wrong.push(format!("{}: `{line}`: {problem}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(200 < count, "only {count} command lines were found");
}

/// All documents but the changelog, which speaks of the past.
fn documents() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for directory in [root(), root().join("docs")] {
        for entry in fs::read_dir(directory).expect("it can be listed") {
            let path = entry.expect("it can be listed").path();
            let is_document = path.extension().is_some_and(|extension| extension == "md");
            if is_document && path.file_name().is_some_and(|name| name != "CHANGELOG.md") {
                found.push(path);
            }
        }
    }
    found
}

/// The command lines of `retake` in a document: in code within a sentence, in indented blocks and in `console` blocks.
fn command_lines(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut fence = None;
    for line in text.lines() {
        if let Some(language) = line.strip_prefix("```") {
            fence = fence.is_none().then_some(language);
            continue;
        }
        let shown = match fence {
            Some("console") => line.strip_prefix("$ "),
            Some(_) => None,
            None => line.strip_prefix("    "),
        };
        if let Some(shown) = shown.filter(|shown| shown.starts_with("retake ")) {
            lines.push(shown.split("  #").next().unwrap_or(shown).trim().to_owned());
        } else if fence.is_none() && shown.is_none() {
            let code = line.split('`').skip(1).step_by(2);
            lines.extend(code.filter(|code| code.starts_with("retake ")).map(str::to_owned));
        }
    }
    lines
}

/// Why nobody could type this. Words in capitals stand for values, and an option may be named without its value.
fn problem(line: &str) -> Option<String> {
    let line = line.split(['>', '|', ';', '<']).next().unwrap_or(line);
    let words = words(line)?;
    // Shorthand: `retake acp -- AGENT…`, `retake sessions [rm S]`.
    if words.iter().any(|word| word.contains(['[', '…'])) {
        return None;
    }
    let error = args::command().try_get_matches_from(words).err()?;
    let is_placeholder = |value: &str| value.bytes().all(|b| b.is_ascii_uppercase());
    let is_fine = match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::MissingRequiredArgument
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => true,
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            matches!(error.get(ContextKind::InvalidValue), Some(ContextValue::String(value)) if is_placeholder(value))
        }
        _ => false,
    };
    (!is_fine).then(|| error.to_string().lines().next().unwrap_or_default().to_owned())
}

/// The words of a command line, with quotes as a shell has them; `None` if one is not closed.
fn words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        let mut word = String::new();
        loop {
            let end = rest.find([' ', '"', '\'']).unwrap_or(rest.len());
            word.push_str(&rest[..end]);
            let Some(mark) = rest[end..].chars().next().filter(|mark| *mark != ' ') else {
                rest = rest[end..].trim_start();
                break;
            };
            let (quoted, behind) = rest[end + 1..].split_once(mark)?;
            word.push_str(quoted);
            rest = behind;
        }
        words.push(word);
    }
    Some(words)
}

#[test]
fn command_lines_are_found_in_sentences_and_in_blocks() {
    let text = "Run `retake undo` or `git log`.\n\n    retake log  # all\n\n\
                ```console\n$ retake diff A\nretake said so\n```\n```lua\n    retake = 1\n```\n";
    assert_eq!(command_lines(text), ["retake undo", "retake log", "retake diff A"]);
    let found = words("retake run -p \"a b\" 'c'd").expect("every quote is closed");
    assert_eq!(found, ["retake", "run", "-p", "a b", "cd"]);
    assert_eq!(problem("retake undo --yes"), None);
    assert_eq!(problem("retake export --git-branch"), None);
    assert_eq!(problem("retake serve --host ADDRESS"), None);
    assert!(problem("retake serve --host nowhere").is_some());
    assert!(problem("retake undoo").is_some());
    assert!(problem("retake log --nosuch").is_some());
}
