//! Files of the workspace by a few letters of their path, for whoever types one.
//!
//! The list is that of the newest checkpoint, so that ignored files are not in it and no directory has to be walked. It is read once and
//! then follows from checkpoint to checkpoint, in time proportional to what changed. Names that are no UTF-8 cannot be typed and are not
//! in it.

use std::collections::{BTreeMap, BinaryHeap};

use retake_engine::{Kind, Node, Side, SnapshotId, StoreError, Workspace, WorkspacePath};

use crate::limits;

/// The files of a workspace.
#[derive(Debug, Default)]
pub struct FileList {
    /// What the list is of.
    snapshot: Option<SnapshotId>,
    /// Each path with its form for comparing.
    paths: BTreeMap<String, Folded>,
}

/// A path without the difference between capital and small letters.
#[derive(Debug)]
struct Folded {
    path: String,
    /// Where the last name begins.
    name: usize,
}

/// How well a path fits, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    NameBegins,
    NameContains,
    PathContains,
    InOrder,
}

impl FileList {
    /// Brings the list up to the newest checkpoint. If that fails it is as it was.
    pub fn refresh(&mut self, workspace: &Workspace) -> Result<(), StoreError> {
        let Some(newest) = workspace.newest()?.map(|checkpoint| checkpoint.snapshot) else { return Ok(()) };
        let known = self.snapshot;
        if known == Some(newest) {
            return Ok(());
        }
        // What the list is of may have been removed to make room.
        let has_followed = known.is_some_and(|known| self.follow(workspace, known, newest).is_ok());
        if !has_followed {
            let all = workspace.everything(&Side::Stored(newest))?;
            self.paths.clear();
            all.iter().for_each(|(path, node)| self.put(path, Some(node)));
        }
        self.snapshot = Some(newest);
        Ok(())
    }

    fn follow(&mut self, workspace: &Workspace, from: SnapshotId, to: SnapshotId) -> Result<(), StoreError> {
        for change in workspace.diff(&Side::Stored(from), &Side::Stored(to))? {
            self.put(&change.path, change.after.as_ref());
        }
        Ok(())
    }

    /// Takes in what is at `path` now.
    fn put(&mut self, path: &WorkspacePath, node: Option<&Node>) {
        let Ok(path) = std::str::from_utf8(path.as_bytes()) else { return };
        match node {
            Some(node) if node.kind != Kind::Directory => drop(self.paths.insert(path.to_owned(), Folded::new(path))),
            _ => drop(self.paths.remove(path)),
        }
    }

    /// Paths that have the letters of `query` in this order, the best first.
    pub fn find(&self, query: &str) -> Vec<String> {
        let query = fold(query.trim());
        let mut best = BinaryHeap::new();
        for (path, folded) in &self.paths {
            let Some(fit) = folded.fit(&query) else { continue };
            best.push((fit, path.len(), path));
            if limits::MAX_FILES_FOUND < best.len() {
                best.pop();
            }
        }
        best.into_sorted_vec().into_iter().map(|(_, _, path)| path.clone()).collect()
    }
}

impl Folded {
    fn new(path: &str) -> Self {
        let path = fold(path);
        let name = path.rfind('/').map_or(0, |slash| slash + 1);
        Self { path, name }
    }

    /// How well it fits a folded query.
    fn fit(&self, query: &str) -> Option<Fit> {
        let name = &self.path[self.name..];
        if name.starts_with(query) {
            Some(Fit::NameBegins)
        } else if name.contains(query) {
            Some(Fit::NameContains)
        } else if self.path.contains(query) {
            Some(Fit::PathContains)
        } else {
            let mut letters = self.path.chars();
            query.chars().all(|wanted| letters.any(|letter| letter == wanted)).then_some(Fit::InOrder)
        }
    }
}

fn fold(text: &str) -> String {
    text.to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(paths: &[&str]) -> FileList {
        let paths = paths.iter().map(|path| ((*path).to_owned(), Folded::new(path)));
        FileList { snapshot: None, paths: paths.collect() }
    }

    #[test]
    fn the_best_comes_first() {
        let list = list(&[
            "a/list/b.rs",
            "deep/down/LISTING.md",
            "l/i/s/t.rs",
            "list.rs",
            "src/checklist.rs",
            "src/listing.rs",
            "tail.rs",
        ]);
        let found = list.find("list");
        assert_eq!(
            found,
            ["list.rs", "src/listing.rs", "deep/down/LISTING.md", "src/checklist.rs", "a/list/b.rs", "l/i/s/t.rs"]
        );
        assert_eq!(list.find("SRC/ch"), ["src/checklist.rs"]);
        assert_eq!(list.find("tsil"), Vec::<String>::new());
        assert_eq!(list.find(" ")[..2], ["list.rs", "tail.rs"], "with nothing to go by, the shortest");
    }

    #[test]
    fn what_is_found_is_bounded() {
        let paths: Vec<String> = (0..1_000).map(|n| format!("{n:04}.txt")).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let found = list(&paths).find("txt");
        assert_eq!(found.len(), limits::MAX_FILES_FOUND);
        assert_eq!((found[0].as_str(), found[49].as_str()), ("0000.txt", "0049.txt"));
    }
}
