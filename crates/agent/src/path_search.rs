//! Finds files of the workspace by a few letters of their path.
//!
//! The list is that of the newest checkpoint, so ignored files are not in it and no directory is walked. It is read once and then updated from
//! checkpoint to checkpoint, in time proportional to the changes. Names that are not UTF-8 cannot be typed and are not in it.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use retake_engine::id::SnapshotId;
use retake_engine::snapshot::{Node, NodeKind};
use retake_engine::view::Side;
use retake_engine::{StoreError, Workspace, WorkspacePath};

use crate::limits;

/// The files of a workspace.
#[derive(Debug, Default)]
pub struct FileList {
    /// What the list is of.
    snapshot: Option<SnapshotId>,
    paths: BTreeSet<String>,
}

impl FileList {
    /// Brings the list up to the newest checkpoint. If that fails it is as it was.
    pub fn refresh(&mut self, workspace: &Workspace) -> Result<(), StoreError> {
        let Some(newest) = workspace.checkpoints().newest()?.map(|checkpoint| checkpoint.snapshot) else {
            return Ok(());
        };
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
            Some(node) if node.kind != NodeKind::Directory => self.paths.insert(path.to_owned()),
            _ => self.paths.remove(path),
        };
    }

    /// Paths that have the letters of each word of `query` in order, the best first: a word counts twice where the file's name has it.
    pub fn find(&self, query: &str) -> Vec<String> {
        let pattern = Pattern::new(query, CaseMatching::Ignore, Normalization::Smart, AtomKind::Fuzzy);
        let mut matcher = Matcher::new(Config::DEFAULT.match_paths());
        let mut buffer = Vec::new();
        let mut score = |text: &str| pattern.score(Utf32Str::new(text, &mut buffer), &mut matcher);
        let mut best = BinaryHeap::new();
        for path in &self.paths {
            let Some(in_path) = score(path) else { continue };
            let name = path.rsplit('/').next().unwrap_or(path);
            let in_name = score(name).unwrap_or(0);
            best.push((Reverse(in_path + in_name), path.len(), path));
            if limits::MAX_FILES_FOUND < best.len() {
                best.pop();
            }
        }
        best.into_sorted_vec().into_iter().map(|(_, _, path)| path.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(paths: &[&str]) -> FileList {
        FileList { snapshot: None, paths: paths.iter().map(|path| (*path).to_owned()).collect() }
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
