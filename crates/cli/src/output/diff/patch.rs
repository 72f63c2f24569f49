//! Unified diffs in git's format, so that `git apply`, `patch` and every viewer of git diffs can read them.
//!
//! Directories, which git does not know, and files too large to compare are one line each that those programs skip. Modes are written
//! in full, with all twelve permission bits.

use std::collections::HashSet;
use std::io::{self, Write};

use retake_engine::WorkspacePath;
use retake_engine::snapshot::{Change, Node, NodeKind};

use super::hunks::write_hunks;
use super::{ChangedContent, Comparison, Status, binary};
use crate::failure::Result;
use crate::output::quote;
use crate::output::size;
use crate::output::ui::{BOLD, Paint};
use retake_agent::line_diff::LineDiff;

/// How a patch is written.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    pub paint: Paint,
    pub binary: Binary,
}

/// What becomes of binary content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    /// It is in the patch, for programs.
    Contained,
    /// It is only said that it differs, for people.
    Named,
}

/// Whether a patch has all of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    Whole,
    /// It is named but not contained.
    LeftOut,
}

/// The order in which programs that apply one change after the other can follow: by path, but what was in a directory goes before
/// something else takes the directory's place.
pub fn in_order(changes: &[Change]) -> Vec<&Change> {
    let is_directory = |node: &Option<Node>| node.as_ref().is_some_and(|node| node.kind == NodeKind::Directory);
    let replaced =
        |change: &&Change| is_directory(&change.before) && change.after.is_some() && !is_directory(&change.after);
    let replaced: HashSet<&WorkspacePath> = changes.iter().filter(replaced).map(|change| &change.path).collect();
    let mut ordered: Vec<&Change> = changes.iter().collect();
    if !replaced.is_empty() {
        let above = |path: &WorkspacePath| {
            std::iter::successors(path.parent(), WorkspacePath::parent).find(|path| replaced.contains(path))
        };
        // What is below a path that was replaced takes its place in the order, just before it.
        ordered.sort_by_cached_key(|change| match above(&change.path) {
            Some(above) => (above, 0, change.path.clone()),
            None => (change.path.clone(), 1, change.path.clone()),
        });
    }
    ordered
}

/// Writes what happened to one path.
pub fn write(out: &mut dyn Write, style: Style, comparison: &Comparison<'_>, change: &Change) -> Result<Written> {
    if Status::of(change) != Status::Type {
        return write_one(out, style, comparison, change);
    }
    // As git does: one thing went, another came.
    let gone = Change { after: None, ..change.clone() };
    let come = Change { before: None, ..change.clone() };
    let (gone, come) = (write_one(out, style, comparison, &gone)?, write_one(out, style, comparison, &come)?);
    Ok(if gone == Written::Whole { come } else { gone })
}

fn write_one(out: &mut dyn Write, style: Style, comparison: &Comparison<'_>, change: &Change) -> Result<Written> {
    let paint = style.paint;
    let either = change.before.as_ref().or(change.after.as_ref());
    if either.is_some_and(|node| node.kind == NodeKind::Directory) {
        write_directory(out, paint, change)?;
        return Ok(Written::Whole);
    }
    // Before the header: where content cannot be read, a header alone would say that the file is empty.
    let content = comparison.content(change)?;
    let (a, b) = sides(change);
    match content {
        ChangedContent::Same => write_header(out, paint, change, short_ids(change))?,
        ChangedContent::Binary { before, after } if style.binary == Binary::Contained => {
            let id = |node: &Option<Node>, content| binary::git_id(node.as_ref().map(|_| content));
            write_header(out, paint, change, (id(&change.before, &before), id(&change.after, &after)))?;
            binary::write(out, &before, &after)?;
        }
        ChangedContent::Binary { .. } => {
            write_header(out, paint, change, short_ids(change))?;
            writeln!(out, "Binary files {a} and {b} differ")?;
        }
        ChangedContent::TooLarge => {
            write_large(out, paint, change)?;
            return Ok(Written::LeftOut);
        }
        ChangedContent::Text { before, after } => {
            write_header(out, paint, change, short_ids(change))?;
            if before != after {
                let bold = paint.with(BOLD);
                writeln!(out, "{bold}--- {}{bold:#}", with_tab(&a))?;
                writeln!(out, "{bold}+++ {}{bold:#}", with_tab(&b))?;
                write_hunks(&LineDiff::new(&before, &after), out, paint)?;
            }
        }
    }
    Ok(Written::Whole)
}

/// Writes what comes before the content; `ids` are those of the content on both sides.
fn write_header(out: &mut dyn Write, paint: Paint, change: &Change, ids: (String, String)) -> io::Result<()> {
    let path = change.path.as_bytes();
    let bold = paint.with(BOLD);
    writeln!(out, "{bold}diff --git {} {}{bold:#}", quote::prefixed("a/", path), quote::prefixed("b/", path))?;
    let mut same_mode = String::new();
    match (&change.before, &change.after) {
        (None, Some(after)) => writeln!(out, "{bold}new file mode {}{bold:#}", git_mode(after))?,
        (Some(before), None) => writeln!(out, "{bold}deleted file mode {}{bold:#}", git_mode(before))?,
        (Some(before), Some(after)) if git_mode(before) != git_mode(after) => {
            writeln!(out, "{bold}old mode {}{bold:#}", git_mode(before))?;
            writeln!(out, "{bold}new mode {}{bold:#}", git_mode(after))?;
        }
        (_, Some(after)) => same_mode = format!(" {}", git_mode(after)),
        (None, None) => {}
    }
    let (before, after) = ids;
    if before != after {
        writeln!(out, "{bold}index {before}..{after}{same_mode}{bold:#}")?;
    }
    Ok(())
}

fn write_directory(out: &mut dyn Write, paint: Paint, change: &Change) -> io::Result<()> {
    let bold = paint.with(BOLD);
    let name = quote::name(change.path.as_bytes());
    let text = match (&change.before, &change.after) {
        (None, Some(after)) => format!("New directory {name} (mode {:04o})", after.mode),
        (Some(before), None) => format!("Deleted directory {name} (mode {:04o})", before.mode),
        (Some(before), Some(after)) => format!("Directory {name} (mode {:04o} to {:04o})", before.mode, after.mode),
        (None, None) => return Ok(()),
    };
    writeln!(out, "{bold}{text}{bold:#}")
}

/// Without a header, for with one `git apply` would refuse the whole patch.
fn write_large(out: &mut dyn Write, paint: Paint, change: &Change) -> io::Result<()> {
    let bold = paint.with(BOLD);
    let name = quote::name(change.path.as_bytes());
    let facts = |node: &Node| format!("mode {:04o}, {}", node.mode, size::human(node.size));
    let text = match (&change.before, &change.after) {
        (None, Some(after)) => format!("New file {name} ({})", facts(after)),
        (Some(before), None) => format!("Deleted file {name} ({})", facts(before)),
        (Some(before), Some(after)) if before.mode == after.mode => {
            format!("File {name} changed ({} to {})", size::human(before.size), size::human(after.size))
        }
        (Some(before), Some(after)) => format!("File {name} changed ({} to {})", facts(before), facts(after)),
        (None, None) => return Ok(()),
    };
    writeln!(out, "{bold}{text}{bold:#}")
}

/// The names of both sides; `/dev/null` is the side where there is nothing.
fn sides(change: &Change) -> (String, String) {
    let side = |prefix, node: Option<&Node>| match node {
        Some(_) => quote::prefixed(prefix, change.path.as_bytes()).into_owned(),
        None => "/dev/null".to_owned(),
    };
    (side("a/", change.before.as_ref()), side("b/", change.after.as_ref()))
}

/// `patch` ends a name at a blank unless a tab follows.
fn with_tab(name: &str) -> String {
    if name.contains(' ') && !name.starts_with('"') { format!("{name}\t") } else { name.to_owned() }
}

/// Type and permissions in one octal number. git has no permissions for symlinks.
fn git_mode(node: &Node) -> String {
    match node.kind {
        NodeKind::File => format!("{:o}", 0o100_000 | u32::from(node.mode)),
        NodeKind::Symlink => "120000".to_owned(),
        NodeKind::Directory => format!("{:o}", 0o040_000 | u32::from(node.mode)),
    }
}

/// The beginnings of the contents' ids; zeros where there is none, as git has it.
fn short_ids(change: &Change) -> (String, String) {
    let short = |node: &Option<Node>| {
        let id = node.as_ref().map_or_else(|| "0".repeat(10), |node| node.content.to_string());
        id.chars().take(10).collect()
    };
    (short(&change.before), short(&change.after))
}
