//! The documents: their links lead somewhere, the files and functions that they name exist, and they stay short.
//!
//! Reads the Markdown files of the repository's top and of `docs/`. Links to other hosts are not followed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::Findings;

/// Most lines of README.md: a stranger reads it to the end.
const README_LINES: usize = 150;

/// Most words of ARCHITECTURE.md; details belong into module docs.
const ARCHITECTURE_WORDS: usize = 1_500;

/// Most words of a paragraph, a list item or a table row.
const PARAGRAPH_WORDS: usize = 90;

/// Written by a program, or about the past.
const FREE_OF_LENGTH: [&str; 3] = ["CHANGELOG.md", "docs/commands.md", "docs/interop.md"];

/// Folders whose files are named by their path in the repository.
const FOLDERS: [&str; 6] = ["crates/", "docs/", "xtask/", "fuzz/", "bench/", ".github/"];

/// Every document by its path in the repository.
pub(super) fn read_all(root: &Path) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for folder in ["", "docs/", "fuzz/"] {
        let path = root.join(folder);
        for entry in fs::read_dir(&path).with_context(|| format!("cannot list {}", path.display()))? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name.ends_with(".md") {
                let text = fs::read_to_string(path.join(&name)).with_context(|| format!("cannot read {name}"))?;
                found.insert(format!("{folder}{name}"), text);
            }
        }
    }
    Ok(found)
}

/// Adds a complaint for every broken link, missing file or function, and every document or paragraph that is too long.
pub(super) fn check(root: &Path, documents: &BTreeMap<String, String>, findings: &mut Findings) {
    let read = |path: &str| documents.get(path).cloned().or_else(|| fs::read_to_string(root.join(path)).ok());
    let is_there = |path: &str| documents.contains_key(path) || root.join(path).exists();
    for (name, text) in documents {
        check_length(name, text, findings);
        let mut is_code = false;
        for (number, line) in text.lines().enumerate() {
            is_code ^= line.starts_with("```");
            if is_code || line.starts_with("    ") {
                continue;
            }
            let at = format!("{name}:{}", number + 1);
            let mut file = None;
            for mention in mentions(line) {
                match mention {
                    Mention::Link(target) => {
                        let (path, anchor) = resolved(name, target);
                        if !is_there(&path) {
                            findings.complain(format!("{at}: the link `{target}` leads nowhere"));
                        } else if let Some(anchor) = anchor
                            && !read(&path).is_some_and(|text| anchors(&text).any(|known| known == anchor))
                        {
                            findings.complain(format!("{at}: `{path}` has no heading `#{anchor}`"));
                        }
                        file = Some(path);
                    }
                    Mention::Path(path) => {
                        if !is_there(path) {
                            findings.complain(format!("{at}: there is no `{path}`"));
                        }
                        file = Some(path.to_owned());
                    }
                    Mention::Function(function) => {
                        let Some(file) = file.as_deref().filter(|file| file.ends_with(".rs") || file.ends_with(".ts"))
                        else {
                            continue;
                        };
                        let is_defined = |text: &str| {
                            ["fn ", "function "].iter().any(|word| {
                                text.contains(&format!("{word}{function}("))
                                    || text.contains(&format!("{word}{function}<"))
                            })
                        };
                        if !read(file).is_some_and(|text| is_defined(&text)) {
                            findings.complain(format!("{at}: `{file}` has no function `{function}`"));
                        }
                    }
                }
            }
        }
    }
}

fn check_length(name: &str, text: &str, findings: &mut Findings) {
    let (lines, words) = (text.lines().count(), text.split_whitespace().count());
    if name == "README.md" && README_LINES < lines {
        findings.complain(format!("{name} has {lines} lines, at most are {README_LINES}"));
    }
    if name == "ARCHITECTURE.md" && ARCHITECTURE_WORDS < words {
        findings.complain(format!("{name} has {words} words, at most are {ARCHITECTURE_WORDS}"));
    }
    if FREE_OF_LENGTH.contains(&name) {
        return;
    }
    for (line, words) in paragraphs(text) {
        if PARAGRAPH_WORDS < words {
            findings.complain(format!(
                "{name}:{line}: a paragraph of {words} words, at most are {PARAGRAPH_WORDS}: make a list, a table or two paragraphs"
            ));
        }
    }
}

/// The first line and the number of words of each paragraph, list item and table row; code is none.
fn paragraphs(text: &str) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    let (mut is_code, mut is_open) = (false, false);
    for (number, line) in text.lines().enumerate() {
        let words = line.split_whitespace().count();
        let is_fence = line.starts_with("```");
        is_code ^= is_fence;
        if is_code || is_fence || words == 0 || line.starts_with("    ") {
            is_open = false;
            continue;
        }
        let first = line.trim_start().split([' ', '|']).next().unwrap_or_default();
        let is_new = ["", "-", "*"].contains(&first)
            || first.starts_with('#')
            || first.strip_suffix('.').is_some_and(|n| n.parse::<u8>().is_ok());
        match found.last_mut().filter(|_| is_open && !is_new) {
            Some((_, count)) => *count += words,
            None => found.push((number + 1, words)),
        }
        is_open = !first.starts_with('#');
    }
    found
}

/// What a line names that has to exist.
#[derive(Debug, PartialEq, Eq)]
enum Mention<'a> {
    /// The target of a link within the repository.
    Link(&'a str),
    /// A path in code, such as `crates/cli`.
    Path(&'a str),
    /// A function in code, such as `plan()`, of the file named before it.
    Function(&'a str),
}

/// The links, paths and functions of a line, in their order.
fn mentions(line: &str) -> Vec<Mention<'_>> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.find(['`', ']']) {
        let (mark, behind) = (rest.as_bytes()[at], &rest[at + 1..]);
        if mark == b'`' {
            let Some((code, after)) = behind.split_once('`') else { break };
            if let Some(function) = code.strip_suffix("()").filter(|name| is_name(name)) {
                found.push(Mention::Function(function));
            } else if FOLDERS.iter().any(|folder| code.starts_with(folder)) && is_path(code) {
                found.push(Mention::Path(code));
            }
            rest = after;
        } else if let Some((target, after)) = behind.strip_prefix('(').and_then(|link| link.split_once(')')) {
            if !target.contains("://") && !target.starts_with("mailto:") {
                found.push(Mention::Link(target));
            }
            rest = after;
        } else {
            rest = behind;
        }
    }
    found
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn is_path(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-./".contains(&b))
}

/// The path in the repository that a link of `document` means, and the heading in it.
fn resolved(document: &str, target: &str) -> (String, Option<String>) {
    let (path, anchor) =
        target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor.to_owned())));
    if path.is_empty() {
        return (document.to_owned(), anchor);
    }
    let mut parts: Vec<String> = Vec::new();
    let folder = Path::new(document).parent().map(Path::to_path_buf).unwrap_or_default();
    for part in folder.join(path).components() {
        match part.as_os_str().to_string_lossy().as_ref() {
            ".." => drop(parts.pop()),
            "." => {}
            part => parts.push(part.to_owned()),
        }
    }
    (parts.join("/"), anchor)
}

/// The anchors of a document's headings, as GitHub makes them.
fn anchors(text: &str) -> impl Iterator<Item = String> {
    text.lines().filter(|line| line.starts_with('#')).map(|line| {
        let kept = |c: &char| c.is_alphanumeric() || " -_".contains(*c);
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        heading.chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(documents: &[(&str, &str)]) -> Vec<String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the repository");
        let documents = documents.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        let mut findings = Findings::default();
        check(root, &documents, &mut findings);
        findings.complaints
    }

    #[test]
    fn a_link_leads_to_a_file_and_to_a_heading_of_it() {
        let documents = [
            (
                "docs/a.md",
                "[b](../README.md), [c](b.md#the-end-its-a-command), [d](https://x.y/z), [e](#own)\n## Own\n",
            ),
            ("docs/b.md", "## The end: it's `a --command`\n"),
        ];
        assert_eq!(complaints(&documents), ["docs/a.md:1: `docs/b.md` has no heading `#the-end-its-a-command`"]);
        let documents =
            [("docs/a.md", "[b](#the-end-its-a---command) [c](nowhere.md)\n\n## The end: it's `a --command`\n")];
        assert_eq!(complaints(&documents), ["docs/a.md:1: the link `nowhere.md` leads nowhere"]);
    }

    #[test]
    fn a_file_and_a_function_that_are_named_exist() {
        let text = "In `xtask/src/main.rs` it is `run()`, not `walk()`; `crates/nosuch/x.rs` is none.\n`anything()`\n";
        assert_eq!(
            complaints(&[("A.md", text)]),
            ["A.md:1: `xtask/src/main.rs` has no function `walk`", "A.md:1: there is no `crates/nosuch/x.rs`"]
        );
        assert_eq!(complaints(&[("A.md", "    [a](nowhere) in code\n\n```\n`crates/nosuch`\n```\n")]), [""; 0]);
    }

    #[test]
    fn what_is_too_long_is_named_with_its_length() {
        let (lines, words) = ("a line\n\n".repeat(76), "a word ".repeat(46));
        assert_eq!(complaints(&[("README.md", &lines)]), ["README.md has 152 lines, at most are 150"]);
        assert!(
            complaints(&[("docs/a.md", &format!("# A\n{words}\n"))])[0]
                .starts_with("docs/a.md:2: a paragraph of 92 words")
        );
        assert_eq!(complaints(&[("docs/a.md", &format!("- {words}\n").replace("word a", "word\n- a"))]), [""; 0]);
        assert_eq!(complaints(&[("CHANGELOG.md", &words)]), [""; 0]);
        assert_eq!(complaints(&[("ARCHITECTURE.md", &"a\n\n".repeat(1_501))]).len(), 1);
    }
}
