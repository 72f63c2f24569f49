//! Changes that may be none: a path that is missing on a side only because it was not captured there.
//!
//! A file that grew over the size limit is absent from the later snapshot and so looks deleted. Whoever shows the change has to say so.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use retake_engine::WorkspacePath;
use retake_engine::snapshot::{Change, Gap, GapKind};

/// What one side does not hold although it may have been there.
#[derive(Debug, Default)]
pub struct Unheld {
    /// Its gaps, by path; a directory stands for all below it.
    gaps: HashMap<WorkspacePath, GapKind>,
    /// For the workspace as it is now: this directory tells what is there.
    disk: Option<PathBuf>,
}

/// Why a path that is missing on a side may have been there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    Gap(GapKind),
    /// It is on disk; a rule ignores it now.
    StillThere,
}

/// What neither side's absence proves.
#[derive(Debug, Default)]
pub struct Uncaptured {
    pub before: Unheld,
    pub after: Unheld,
}

impl Uncaptured {
    /// Why `change` looks like an addition or a deletion and may be none.
    pub fn why(&self, change: &Change) -> Option<Why> {
        match (&change.before, &change.after) {
            (None, _) => self.before.why(&change.path),
            (_, None) => self.after.why(&change.path),
            (Some(_), Some(_)) => None,
        }
    }
}

impl Unheld {
    /// By a checkpoint that has these gaps.
    pub fn by_checkpoint(gaps: &[Gap]) -> Self {
        let uncaptured = gaps.iter().filter(|gap| gap.kind.is_uncaptured());
        Self { gaps: uncaptured.map(|gap| (gap.path.clone(), gap.kind)).collect(), disk: None }
    }

    /// By the workspace at `root` as it is now.
    pub fn now(gaps: &[Gap], root: &Path) -> Self {
        Self { disk: Some(root.to_owned()), ..Self::by_checkpoint(gaps) }
    }

    fn why(&self, path: &WorkspacePath) -> Option<Why> {
        let mut upwards = std::iter::successors(Some(path.clone()), WorkspacePath::parent);
        let gap = upwards.find_map(|path| self.gaps.get(&path).copied()).map(Why::Gap);
        let is_there = |root: &PathBuf| is_below(root, path.to_path());
        gap.or_else(|| self.disk.as_ref().is_some_and(is_there).then_some(Why::StillThere))
    }
}

impl Why {
    pub fn describe(self) -> &'static str {
        match self {
            Self::Gap(kind) => kind.describe(),
            Self::StillThere => "still on disk, but ignored now",
        }
    }

    /// The reason in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gap(kind) => kind.name(),
            Self::StillThere => "still_there",
        }
    }
}

/// Whether `path` is really below `root`: what is behind a symlinked parent is somewhere else.
fn is_below(root: &Path, path: &Path) -> bool {
    let is_directory = |dir: &Path| fs::symlink_metadata(root.join(dir)).is_ok_and(|meta| meta.is_dir());
    fs::symlink_metadata(root.join(path)).is_ok() && path.ancestors().skip(1).all(is_directory)
}

#[cfg(test)]
mod tests {
    use retake_engine::id::ObjectId;
    use retake_engine::snapshot::{Node, NodeKind};

    use super::*;

    fn path(text: &str) -> WorkspacePath {
        WorkspacePath::parse(text.as_bytes()).expect("it is plain")
    }

    fn gaps<const N: usize>(gaps: [(&str, GapKind); N]) -> Unheld {
        Unheld::by_checkpoint(&gaps.map(|(text, kind)| Gap { path: path(text), kind }))
    }

    fn deleted(text: &str) -> Change {
        let node = Node { kind: NodeKind::File, mode: 0o644, content: ObjectId::of(b""), size: 0 };
        Change { path: path(text), before: Some(node), after: None }
    }

    #[test]
    fn a_gap_or_a_directory_that_is_one_explains_a_deletion() {
        let after = gaps([("big", GapKind::TooLarge), ("locked", GapKind::Unreadable)]);
        let uncaptured = Uncaptured { before: gaps([]), after };
        assert_eq!(uncaptured.why(&deleted("big")), Some(Why::Gap(GapKind::TooLarge)));
        assert_eq!(uncaptured.why(&deleted("locked/a/b")), Some(Why::Gap(GapKind::Unreadable)));
        assert_eq!(uncaptured.why(&deleted("bigger")), None);
    }

    #[test]
    fn a_gap_on_the_other_side_or_of_a_property_explains_nothing() {
        let uncaptured =
            Uncaptured { before: gaps([("a", GapKind::TooLarge)]), after: gaps([("b", GapKind::HardLink)]) };
        assert_eq!(uncaptured.why(&deleted("a")), None);
        assert_eq!(uncaptured.why(&deleted("b")), None);
    }

    #[test]
    fn what_is_on_disk_is_not_deleted_unless_it_is_behind_a_symlink() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir(dir.path().join("real")).expect("it is new");
        fs::write(dir.path().join("real/file"), "").expect("it can be written");
        std::os::unix::fs::symlink("real", dir.path().join("link")).expect("it is new");
        let uncaptured = Uncaptured { before: gaps([]), after: Unheld::now(&[], dir.path()) };
        assert_eq!(uncaptured.why(&deleted("real/file")), Some(Why::StillThere));
        assert_eq!(uncaptured.why(&deleted("link/file")), None);
        assert_eq!(uncaptured.why(&deleted("gone")), None);
    }
}
