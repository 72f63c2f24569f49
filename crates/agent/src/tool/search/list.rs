//! `list_dir`: what is in a directory.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use ignore::DirEntry;

use super::walk::{Go, start, walk};
use crate::tool::arguments::{ArgumentKind, Arguments, optional, required};
use crate::tool::path;
use crate::tool::run::{Stop, reading};
use crate::tool::toolbox::{Tool, ToolContext};
use crate::tool::{Access, Output, Prepared};

const MAX_ENTRIES: usize = 1000;
const MAX_DEPTH: u64 = 8;

pub(crate) const LIST: Tool = Tool {
    name: "list_dir",
    description: "Lists what is in a directory, as an indented tree: directories end with `/`, files have their size in bytes, links show \
where they lead. Files that git ignores and version-control directories are left out (their number is told for the directory itself). At \
most 1000 entries. Use it to get to know a project; to find files by name use `glob`, by content `grep`.",
    arguments: &[
        required("path", ArgumentKind::Text, "The directory, relative to the workspace; `.` for the workspace."),
        optional("depth", ArgumentKind::Integer(1), "How many levels down, 1 to 8. Default: 1."),
    ],
    prepare,
};

fn prepare(bench: &ToolContext, arguments: &Arguments) -> Result<Prepared, Output> {
    let real = start(bench, Some(arguments.text("path")))?;
    let name = bench.places.name(&real);
    if !real.is_dir() {
        return Err(Output::failed(format!("`{name}` is a file; use `read_file` to see what is in it.")));
    }
    let depth = usize::try_from(arguments.integer("depth").unwrap_or(1).min(MAX_DEPTH)).unwrap_or(1);
    let title = format!("list {name}");
    let run = reading(move |stop| list(&name, &real, depth, stop));
    Ok(Prepared::new(title, Access::Reads, run))
}

fn list(name: &str, real: &Path, depth: usize, stop: &Stop) -> Output {
    let (mut text, mut shown, mut direct) = (format!("{}/\n", name.trim_end_matches('/')), 0, 0);
    let mut is_cut = false;
    walk(real, Some(depth), stop, |entry| {
        if entry.depth() == 0 {
            return Go::On;
        }
        if shown == MAX_ENTRIES {
            is_cut = true;
            return Go::Stop;
        }
        shown += 1;
        direct += usize::from(entry.depth() == 1);
        writeln!(text, "{}{}", "  ".repeat(entry.depth()), described(entry)).expect("a String takes everything");
        Go::On
    });
    let all = match fs::read_dir(real) {
        Ok(entries) => entries.flatten().filter(|entry| !path::is_version_control(&entry.file_name())).count(),
        Err(error) => return Output::failed(format!("`{name}` cannot be listed: {error}.")),
    };
    if is_cut {
        writeln!(text, "[Only the first {MAX_ENTRIES} entries; list a directory below it, or use `glob`.]")
    } else if all > direct {
        writeln!(text, "[Ignored and not shown: {}.]", all - direct)
    } else if all == 0 {
        writeln!(text, "[The directory is empty.]")
    } else {
        Ok(())
    }
    .expect("a String takes everything");
    Output::done(text)
}

fn described(entry: &DirEntry) -> String {
    let name = entry.file_name().to_string_lossy();
    let Some(kind) = entry.file_type() else { return name.into_owned() };
    if kind.is_dir() {
        format!("{name}/")
    } else if kind.is_symlink() {
        let target = fs::read_link(entry.path()).map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
        format!("{name} -> {target}")
    } else if kind.is_file() {
        let size = entry.metadata().map(|metadata| metadata.len()).unwrap_or_default();
        format!("{name} ({size})")
    } else {
        format!("{name} (neither file nor directory)")
    }
}
