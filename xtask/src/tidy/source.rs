//! Rules for one source file: it says what it is for, stays short, and leaves nothing switched off or unfinished.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::Findings;

/// Over this many lines a file fails, tests included.
const MAX_LINES: usize = 700;
/// Over this many lines, tests apart, a file is due to be split.
const LONG_LINES: usize = 500;

// In two pieces, or this file would find itself.
const BANNED: [(&str, &str); 2] = [
    (concat!("#[", "ignore"), "a test that does not run proves nothing: fix it or remove it"),
    (concat!("todo", "!("), "unfinished code does not land"),
];

/// A Rust file of the repository, its path relative to the root.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) path: PathBuf,
    pub(super) text: String,
}

/// Reads every `.rs` file below `crates/`, `fuzz/` and `xtask/`, sorted by path.
pub(super) fn read_all(root: &Path) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    let mut folders = vec![root.join("crates"), root.join("fuzz"), root.join("xtask")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))? {
            let entry = entry?;
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ext| ext == "rs") {
                let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
                let path = path.strip_prefix(root).expect("every path was found below the root").to_path_buf();
                sources.push(Source { path, text });
            }
        }
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(sources)
}

/// Adds what is wrong with `file` to `findings`.
pub(super) fn check(file: &Source, findings: &mut Findings) {
    let name = file.path.display();
    if !file.text.starts_with("//!") {
        findings.complain(format!("{name}: does not start with a `//!` module doc"));
    }
    let lines = file.text.lines().count();
    if MAX_LINES < lines {
        findings.complain(format!("{name}: {lines} lines, the limit is {MAX_LINES}: split it by noun"));
    } else if !is_test(&file.path) {
        let code = lines_before_tests(&file.text);
        if LONG_LINES < code {
            findings.warn(format!("{name}: {code} lines without its tests, split it by {LONG_LINES}"));
        }
    }
    for (number, line) in file.text.lines().enumerate() {
        for (mark, why) in BANNED {
            if line.contains(mark) {
                findings.complain(format!("{name}:{}: `{mark}`: {why}", number + 1));
            }
        }
    }
}

fn is_test(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "tests.rs") || path.iter().any(|part| part == "tests")
}

/// Lines up to an inline test module, which stands last in its file.
fn lines_before_tests(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let starts_tests = |pair: &[&str]| pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod tests");
    lines.windows(2).position(starts_tests).unwrap_or(lines.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Findings {
        let mut findings = Findings::default();
        check(&Source { path: path.into(), text: text.into() }, &mut findings);
        findings
    }

    fn lines(count: usize) -> String {
        let mut text = String::from("//! A doc.\n");
        text.push_str(&"fn f() {}\n".repeat(count - 1));
        text
    }

    #[test]
    fn a_short_documented_file_is_fine() {
        assert_eq!(findings("a.rs", &lines(LONG_LINES)), Findings::default());
    }

    #[test]
    fn a_file_without_a_module_doc_is_refused() {
        let found = findings("a.rs", "use std::fs;\n");
        assert!(found.complaints[0].contains("does not start with"), "{found:?}");
    }

    #[test]
    fn a_long_file_is_warned_about_and_a_longer_one_refused() {
        assert_eq!(findings("a.rs", &lines(LONG_LINES + 1)).warnings.len(), 1);
        let found = findings("a.rs", &lines(MAX_LINES + 1));
        assert_eq!((found.warnings.len(), found.complaints.len()), (0, 1));
    }

    #[test]
    fn tests_do_not_count_towards_the_warning() {
        let text = format!("{}#[cfg(test)]\nmod tests {{\n}}\n", lines(LONG_LINES));
        assert_eq!(findings("a.rs", &text), Findings::default());
        assert_eq!(findings("crates/x/tests/a.rs", &lines(LONG_LINES + 1)), Findings::default());
        assert_eq!(findings("crates/x/src/scan/tests.rs", &lines(LONG_LINES + 1)), Findings::default());
    }

    #[test]
    fn banned_marks_are_named_with_their_line() {
        let text = format!("//! A doc.\n{} = \"slow\"]\nfn f() {{ {}) }}\n", BANNED[0].0, BANNED[1].0);
        let found = findings("a.rs", &text);
        assert!(found.complaints[0].starts_with("a.rs:2:"), "{found:?}");
        assert!(found.complaints[1].starts_with("a.rs:3:"), "{found:?}");
    }
}
