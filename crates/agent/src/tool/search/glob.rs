//! `glob`: files by name.

use std::path::Path;

use globset::{Glob, GlobBuilder, GlobMatcher};

use super::walk::{Go, start, walk};
use crate::tool::arguments::{ArgumentKind, Arguments, optional, required};
use crate::tool::run::{Stop, reading};
use crate::tool::toolbox::{Tool, ToolContext};
use crate::tool::{Access, Output, Prepared};

const MAX_FOUND: usize = 500;

pub(crate) const GLOB: Tool = Tool {
    name: "glob",
    description: "Finds files and links by name, for example `**/*.rs`, `src/**/test_*.py`, `*.{ts,tsx}`. `*` and `?` do not match `/`, \
`**` matches any number of directories, `[ab]` and `{a,b}` alternatives. A pattern without `/` is matched against the file name at any \
depth. Files that git ignores are left out. Paths come sorted, relative to the workspace, at most 500. To search in files use `grep`.",
    arguments: &[
        required("pattern", ArgumentKind::Text, "The pattern, matched against paths below `path`."),
        optional(
            "path",
            ArgumentKind::Text,
            "Directory to search in, relative to the workspace. Default: the workspace.",
        ),
    ],
    prepare,
};

/// A pattern for paths that are relative to where a search begins.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    matcher: GlobMatcher,
    by_name: bool,
}

impl Pattern {
    /// Reads a pattern.
    pub(crate) fn parse(pattern: &str) -> Result<Self, Output> {
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
        let built: Result<Glob, _> = GlobBuilder::new(pattern).literal_separator(true).backslash_escape(true).build();
        match built {
            Ok(glob) => Ok(Self { matcher: glob.compile_matcher(), by_name: !pattern.contains('/') }),
            Err(error) => Err(Output::failed(format!("`{pattern}` is not a valid pattern: {}.", error.kind()))),
        }
    }

    /// Whether a relative path matches.
    pub(crate) fn matches(&self, relative: &Path) -> bool {
        match relative.file_name() {
            Some(name) if self.by_name => self.matcher.is_match(name),
            _ => self.matcher.is_match(relative),
        }
    }
}

fn prepare(bench: &ToolContext, arguments: &Arguments) -> Result<Prepared, Output> {
    let given = arguments.text("pattern");
    let root = bench.places.root().to_path_buf();
    // Models give absolute patterns too; below the workspace it is clear what they mean.
    let relative = given.strip_prefix(&format!("{}/", root.display())).unwrap_or(given);
    let pattern = Pattern::parse(relative)?;
    let real = start(bench, arguments.text_if_given("path"))?;
    let title = format!("glob {given}");
    let bench = bench.clone();
    let run = reading(move |stop| find(&bench, &real, &pattern, stop));
    Ok(Prepared::new(title, Access::Reads, run))
}

fn find(bench: &ToolContext, real: &Path, pattern: &Pattern, stop: &Stop) -> Output {
    let mut found = Vec::new();
    walk(real, None, stop, |entry| {
        let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
        let relative = entry.path().strip_prefix(real).unwrap_or(entry.path());
        if !is_directory && pattern.matches(relative) {
            found.push(bench.places.name(entry.path()));
        }
        if found.len() > MAX_FOUND { Go::Stop } else { Go::On }
    });
    if found.is_empty() {
        return Output::done("No file matches. Ignored files are left out; `list_dir` shows what there is.");
    }
    let is_cut = found.len() > MAX_FOUND;
    found.truncate(MAX_FOUND);
    let remark = if is_cut {
        format!("\n[Only the first {MAX_FOUND}; give a narrower pattern or a `path`.]")
    } else {
        String::new()
    };
    Output::done(found.join("\n") + &remark)
}
