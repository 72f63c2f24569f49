//! Unified diffs in git's format, so that `git apply`, `patch` and every viewer of git diffs can read them.
//!
//! Directories, which git does not know, are one line each that those programs skip. Modes are written in full, with all twelve
//! permission bits.

use std::io::{self, Write};

use anyhow::Result;
use retake_engine::{Change, Kind, Node};

use super::lines::LineDiff;
use super::{Comparison, Content, MAX_COMPARED, Status};
use crate::quote;
use crate::size;
use crate::ui::{BOLD, DIM, Paint};

/// Writes what happened to one path.
pub fn write(out: &mut dyn Write, paint: Paint, comparison: &Comparison<'_>, change: &Change) -> Result<()> {
    if Status::of(change) != Status::Type {
        return write_one(out, paint, comparison, change);
    }
    // As git does: one thing went, another came.
    let gone = Change { after: None, ..change.clone() };
    let come = Change { before: None, ..change.clone() };
    write_one(out, paint, comparison, &gone)?;
    write_one(out, paint, comparison, &come)
}

fn write_one(out: &mut dyn Write, paint: Paint, comparison: &Comparison<'_>, change: &Change) -> Result<()> {
    let either = change.before.as_ref().or(change.after.as_ref());
    if either.is_some_and(|node| node.kind == Kind::Directory) {
        return Ok(write_directory(out, paint, change)?);
    }
    // Before the header: where content cannot be read, a header alone would say that the file is empty.
    let content = comparison.content(change)?;
    write_header(out, paint, change)?;
    let (a, b) = sides(change);
    match content {
        Content::Same => {}
        Content::Binary => writeln!(out, "Binary files {a} and {b} differ")?,
        Content::TooLarge => {
            let dim = paint.with(DIM);
            writeln!(out, "Files {a} and {b} differ")?;
            writeln!(out, "{dim}(over {}, not compared line by line){dim:#}", size::human(MAX_COMPARED))?;
        }
        Content::Text { before, after } if before == after => {}
        Content::Text { before, after } => {
            let bold = paint.with(BOLD);
            writeln!(out, "{bold}--- {}{bold:#}", with_tab(&a))?;
            writeln!(out, "{bold}+++ {}{bold:#}", with_tab(&b))?;
            LineDiff::new(&before, &after).write_hunks(out, paint)?;
        }
    }
    Ok(())
}

fn write_header(out: &mut dyn Write, paint: Paint, change: &Change) -> io::Result<()> {
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
    let (before, after) = (short_id(change.before.as_ref()), short_id(change.after.as_ref()));
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
        Kind::File => format!("{:o}", 0o100_000 | u32::from(node.mode)),
        Kind::Symlink => "120000".to_owned(),
        Kind::Directory => format!("{:o}", 0o040_000 | u32::from(node.mode)),
    }
}

/// The beginning of the content's id; zeros where there is none, as git has it.
fn short_id(node: Option<&Node>) -> String {
    let id = node.map_or_else(|| "0".repeat(10), |node| node.content.to_string());
    id.chars().take(10).collect()
}
