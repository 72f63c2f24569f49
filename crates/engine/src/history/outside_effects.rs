//! The effects of a turn that are known to be outside the captured files.
//!
//! Owns the decision which prompts deserve a warning: git moved, a process is left running, something appeared that no checkpoint
//! captures, or a command line names a path outside the workspace. That a command ran is no such effect. Reads the database and, for
//! names, looks whether a path can be one; changes nothing. What is not known is not listed.

use std::path::{Component, Path, PathBuf};

use rusqlite::{Connection, OptionalExtension};

use super::ledger::{LedgerItem, git_moves};
use crate::base::settings::Environment;
use crate::git::GitState;
use crate::history::codes::{DONE, WITH_COMMANDS};

/// Subcommands of git that change the index and may leave HEAD alone. Others only refresh it, and that moves nothing.
const STAGING: [&str; 9] = ["add", "rm", "mv", "reset", "restore", "stage", "apply", "read-tree", "update-index"];

/// Devices that hold nothing.
const DEVICES: [&str; 8] = ["null", "zero", "full", "random", "urandom", "tty", "stdin", "stdout"];

/// What the turn with row number `operation`, whose tool calls are `tools`, left outside the files, as far as the database knows.
pub(super) fn left(connection: &Connection, operation: i64, tools: &[String]) -> rusqlite::Result<Vec<LedgerItem>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT before.git, after.git, after.gaps - before.gaps FROM operations
             JOIN checkpoints AS before ON before.seq = operations.before
             JOIN checkpoints AS after ON after.seq = operations.after
         WHERE operations.seq = ? AND operations.state = {DONE}"
    ))?;
    let ends =
        |row: &rusqlite::Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, i64>(2)?));
    let Some((before, after, gaps)) = statement.query_row([operation], ends).optional()? else { return Ok(Vec::new()) };
    let state = |text: &str| serde_json::from_str::<GitState>(text).unwrap_or_default();
    let (before, mut after) = (state(&before), state(&after));
    if !tools.iter().any(|tool| stages(tool)) {
        after.index.clone_from(&before.index);
    }
    // A command that moves it back is worked out for the state of now, by a plan.
    let mut left: Vec<LedgerItem> =
        git_moves(&before, &after).into_iter().map(|item| LedgerItem { remedy: None, ..item }).collect();
    let mut open = connection.prepare_cached(&format!(
        "SELECT tool FROM windows WHERE operation = ? AND closed IS NULL AND everything IN {WITH_COMMANDS}"
    ))?;
    for tool in open.query_map([operation], |row| row.get(0))? {
        left.push(item("running", tool?));
    }
    match gaps {
        ..=0 => {}
        1 => left.push(item("gap", "1 path appeared that is not captured".to_owned())),
        gaps => left.push(item("gap", format!("{gaps} paths appeared that are not captured"))),
    }
    Ok(left)
}

fn item(kind: &str, what: String) -> LedgerItem {
    LedgerItem { kind: kind.to_owned(), what, remedy: None }
}

fn stages(tool: &str) -> bool {
    let words: Vec<&str> = words(tool).collect();
    words.windows(2).any(|pair| pair[0] == "git" && STAGING.contains(&pair[1]))
}

/// The paths outside the workspace that the command lines `tools` name, each once.
pub(super) fn named(environment: &Environment, tools: &[String]) -> Vec<LedgerItem> {
    let mut found: Vec<LedgerItem> = Vec::new();
    for tool in tools {
        let Some((_, line)) = tool.split_once(": ") else { continue };
        for word in arguments(line).filter(|word| is_outside(environment, line, word)) {
            let one = item("path", word.to_owned());
            if !found.contains(&one) {
                found.push(one);
            }
        }
    }
    found
}

/// The words of a command line but for the names of its programs.
fn arguments(line: &str) -> impl Iterator<Item = &str> {
    line.split([';', '|', '&', '(', ')', '`']).flat_map(|command| {
        let has_program = !command.trim_start().starts_with(['<', '>']);
        words(command).skip(usize::from(has_program))
    })
}

/// The words of a command line without quotes, redirections and the names before `=`.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let ends =
        |c: char| c.is_whitespace() || matches!(c, ';' | '|' | '&' | '<' | '>' | '(' | ')' | '"' | '\'' | '`' | '=');
    line.split(ends).filter(|word| !word.is_empty())
}

fn is_outside(environment: &Environment, line: &str, word: &str) -> bool {
    let homes = environment.homes.iter();
    let below = |rest: &str| homes.clone().map(|home| home.join(rest)).collect::<Vec<PathBuf>>();
    let paths = match word {
        "~" | "$HOME" => return true,
        _ if word.starts_with("~/") => below(&word[2..]),
        _ if word.starts_with("$HOME/") => below(&word[6..]),
        // After a change of directory it is not known where the way up leads.
        _ if word.starts_with("..") && !words(line).any(|word| matches!(word, "cd" | "pushd" | "-C")) => {
            vec![environment.root.join(word)]
        }
        _ if word.starts_with('/') && exists_at_top(word) => vec![PathBuf::from(word)],
        _ => return false,
    };
    !paths.iter().any(|path| is_inside(&environment.root, path))
}

/// Whether a word that begins with `/` can be a path and not a pattern: what it begins with is there, and is more than a device.
fn exists_at_top(word: &str) -> bool {
    let mut names = Path::new(word).components().skip(1);
    let (Some(Component::Normal(top)), second) = (names.next(), names.next()) else { return word == "/" };
    let is_device = top == "dev"
        && second.is_some_and(|name| {
            DEVICES.iter().any(|device| name.as_os_str() == *device) || name.as_os_str() == "stderr"
        });
    !is_device && Path::new("/").join(top).exists()
}

/// Whether `path`, taken by its letters, is the workspace or below it.
fn is_inside(root: &Path, path: &Path) -> bool {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain.starts_with(root)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::settings::{Breadth, Settings};

    fn names(line: &str) -> Vec<String> {
        let environment = Environment {
            root: "/usr/share/project".into(),
            data_dir: "/usr/share/data".into(),
            global_excludes: None,
            homes: vec!["/usr/share".into()],
            breadth: Breadth::Guarded,
            settings: Settings::default(),
            threads: 1,
        };
        named(&environment, &[line.to_owned()]).into_iter().map(|item| item.what).collect()
    }

    #[test]
    fn a_path_outside_the_workspace_is_named() {
        for (line, wanted) in [
            ("bash: rm -f /tmp/x", vec!["/tmp/x"]),
            ("bash: echo hi >/tmp/x 2>&1", vec!["/tmp/x"]),
            ("bash: make &>/tmp/x", vec!["/tmp/x"]),
            ("bash: tar --file=/tmp/x.tar -c .", vec!["/tmp/x.tar"]),
            ("bash: cp a \"/tmp/x\" && cp b /tmp/x", vec!["/tmp/x"]),
            ("bash: cp a ~/.bashrc", vec!["~/.bashrc"]),
            ("bash: cp a $HOME/x", vec!["$HOME/x"]),
            ("bash: rm ../other/a", vec!["../other/a"]),
        ] {
            assert_eq!(names(line), wanted, "{line}");
        }
    }

    #[test]
    fn what_is_inside_or_no_path_is_not_named() {
        for line in [
            "bash: test -f a && npm test",
            "bash: /usr/bin/env true && /usr/bin/env false",
            "bash: ls >/dev/null 2>/dev/stderr",
            "bash: sed -n '/no-such-top/p' a",
            "bash: sed s/a/b/ a",
            "bash: cat /usr/share/project/a ~/project/b $HOME/project/c",
            "bash: cat ../project/a",
            "bash: cd src && cat ../a",
            "bash: curl http://localhost:80/tmp",
            "edit src/lib.rs",
        ] {
            assert_eq!(names(line), Vec::<String>::new(), "{line}");
        }
    }
}
