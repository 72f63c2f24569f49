//! Walking a directory by the ignore rules.

use std::path::Path;

use ignore::{DirEntry, WalkBuilder};

use crate::tool::Output;
use crate::tool::path;
use crate::tool::run::Stop;
use crate::tool::toolbox::ToolContext;

/// What stops a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Go {
    On,
    Stop,
}

/// Visits everything at and below `start` in the order of paths, down to `depth`, until told to stop.
///
/// What cannot be read is passed over, as the user's own tools do.
pub(crate) fn walk(start: &Path, depth: Option<usize>, stop: &Stop, mut visit: impl FnMut(&DirEntry) -> Go) {
    // In a repository its own rules hold, and not those of directories above it; elsewhere all that are found do.
    let is_in_repository = start.ancestors().any(|directory| directory.join(".git").exists());
    let entries = WalkBuilder::new(start)
        .hidden(false)
        .require_git(is_in_repository)
        .follow_links(false)
        .max_depth(depth)
        .sort_by_file_name(Ord::cmp)
        .filter_entry(|entry| entry.depth() == 0 || !path::is_version_control(entry.file_name()))
        .build();
    for entry in entries.flatten() {
        if stop.is_set() || visit(&entry) == Go::Stop {
            return;
        }
    }
}

/// The place where a search begins, which has to exist; the root if none is given.
pub(crate) fn start(bench: &ToolContext, given: Option<&str>) -> Result<std::path::PathBuf, Output> {
    let given = given.filter(|given| !given.is_empty()).unwrap_or(".");
    let real = bench.places.to_read(given)?;
    match real.exists() {
        true => Ok(real),
        false => Err(Output::failed(format!("There is nothing at `{given}`. Use `list_dir` to see what there is."))),
    }
}
