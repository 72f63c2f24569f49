//! Differences for clients that draw them: line by line, with numbers, bounded.

use retake_engine::id::SnapshotId;
use retake_engine::rewind::{Plan, PlannedPath};
use retake_engine::snapshot::{Node, NodeKind};
use retake_engine::view::{ContentError, Side};
use retake_engine::{Workspace, WorkspacePath};
use serde::{Deserialize, Serialize};

use crate::limits;
use crate::line_diff::{LineCounts, LineDiff, LineGroup, is_binary};
use crate::rewind_document::Bytes;

/// What changes in one path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct FileDiff {
    /// The path.
    pub path: Bytes,
    /// Lines that come.
    pub added: u32,
    /// Lines that go.
    pub removed: u32,
    /// What is shown instead of lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead: Option<Instead>,
    /// The changed lines and those around them; none where `instead` says why.
    pub hunks: Vec<HunkLines>,
    /// Lines that were left out, because there are too many.
    #[serde(default)]
    pub left_out: u32,
    /// What else there is to say, in words: that it is a symbolic link, or how its permissions change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
}

impl FileDiff {
    /// What changes is not shown line by line.
    pub(crate) fn instead(path: Bytes, why: Instead) -> Self {
        Self { path, added: 0, removed: 0, instead: Some(why), hunks: Vec::new(), left_out: 0, about: None }
    }
}

/// Why the difference of a path is not shown line by line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Instead {
    /// A side is not text.
    Binary,
    /// A side is too large to compare.
    TooLarge,
    /// It is a directory.
    Directory,
    /// Only the permissions differ.
    Mode,
    /// A side cannot be read.
    Unreadable,
}

/// Lines that follow one another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct HunkLines {
    /// The number of the first line before and after, counted from 1.
    pub start: (u32, u32),
    /// In order.
    pub lines: Vec<DiffLine>,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct DiffLine {
    /// Whether it stays, comes or goes.
    pub kind: LineKind,
    /// Without its end; what is no UTF-8 is replaced.
    pub text: String,
}

/// Whether a line stays, comes or goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum LineKind {
    /// It is there before and after.
    Same,
    /// It comes.
    Added,
    /// It goes.
    Removed,
}

/// Where a content is.
#[derive(Clone, Copy)]
enum ContentPlace {
    Disk,
    Store,
}

/// What `plan` would do to each path; `merged` contents are shown where that was chosen.
pub(crate) fn of_plan(workspace: &Workspace, plan: &Plan) -> Vec<FileDiff> {
    let mut budget = limits::MAX_DIFF_LINES;
    plan.paths.iter().map(|path| of_path(workspace, path, &mut budget)).collect()
}

fn of_path(workspace: &Workspace, path: &PlannedPath, budget: &mut u32) -> FileDiff {
    let merged = path.merged.as_ref().filter(|_| path.choice == retake_engine::rewind::OnConflict::Merge);
    let after = merged.map_or(path.target, |merged| Some(merged.node));
    let read_after = || match merged {
        Some(merged) => Ok(merged.content.clone()),
        None => read(workspace, &path.path, path.target.as_ref(), ContentPlace::Store),
    };
    let before = || read(workspace, &path.path, path.now.as_ref(), ContentPlace::Disk);
    compare(&path.path, path.now.as_ref(), after.as_ref(), before, read_after, budget)
}

/// What differs between two sides.
pub(crate) fn between(
    workspace: &Workspace,
    from: &Side<'_>,
    to: &Side<'_>,
) -> Result<Vec<FileDiff>, retake_engine::StoreError> {
    let changes = workspace.diff(from, to)?;
    let mut budget = limits::MAX_DIFF_LINES;
    let content = |side: &Side<'_>, path: &WorkspacePath, node: Option<&Node>| {
        let mut bytes = Vec::new();
        if let Some(node) = node.filter(|node| node.kind != NodeKind::Directory) {
            workspace.content(side, path, node, &mut bytes)?;
        }
        Ok(bytes)
    };
    let diff = |change: &retake_engine::snapshot::Change| {
        let (path, before, after) = (&change.path, change.before.as_ref(), change.after.as_ref());
        compare(path, before, after, || content(from, path, before), || content(to, path, after), &mut budget)
    };
    Ok(changes.iter().map(diff).collect())
}

fn read(
    workspace: &Workspace,
    path: &WorkspacePath,
    node: Option<&Node>,
    place: ContentPlace,
) -> Result<Vec<u8>, ContentError> {
    let mut bytes = Vec::new();
    if let Some(node) = node.filter(|node| node.kind != NodeKind::Directory) {
        match place {
            ContentPlace::Disk => workspace.content_on_disk(path, node, &mut bytes)?,
            // A stored content is found by its own id, whatever snapshot it is in.
            ContentPlace::Store => {
                workspace.content(&Side::Stored(SnapshotId(node.content)), path, node, &mut bytes)?
            }
        }
    }
    Ok(bytes)
}

/// What there is to say about a path beside its content.
fn about(before: Option<&Node>, after: Option<&Node>) -> Option<String> {
    let is_link = |node: &Node| node.kind == NodeKind::Symlink;
    let link = match (before.map(is_link), after.map(is_link)) {
        (Some(true), Some(false)) => Some("was a symbolic link".to_owned()),
        (Some(false), Some(true)) => Some("becomes a symbolic link".to_owned()),
        (Some(true), _) | (_, Some(true)) => Some("symbolic link".to_owned()),
        _ => None,
    };
    let modes = before.zip(after).map(|(before, after)| (before.mode, after.mode));
    let permissions = modes.filter(|(before, after)| before != after);
    link.or(permissions.map(|(before, after)| format!("permissions {before:03o} → {after:03o}")))
}

fn compare(
    path: &WorkspacePath,
    before: Option<&Node>,
    after: Option<&Node>,
    read_before: impl FnOnce() -> Result<Vec<u8>, ContentError>,
    read_after: impl FnOnce() -> Result<Vec<u8>, ContentError>,
    budget: &mut u32,
) -> FileDiff {
    let path = Bytes::new(path.as_bytes());
    let about = about(before, after);
    let instead = |why: Instead| FileDiff { about: about.clone(), ..FileDiff::instead(path.clone(), why) };
    let nodes = [before, after];
    if nodes.iter().flatten().all(|node| node.kind == NodeKind::Directory) {
        return instead(Instead::Directory);
    }
    if before.map(|node| node.content) == after.map(|node| node.content) {
        return instead(Instead::Mode);
    }
    if nodes.iter().flatten().any(|node| node.size > limits::MAX_COMPARED) {
        return instead(Instead::TooLarge);
    }
    let (Ok(before), Ok(after)) = (read_before(), read_after()) else { return instead(Instead::Unreadable) };
    FileDiff { about, ..texts(path, &before, &after, budget) }
}

/// What differs between two contents, line by line if they are texts.
pub(crate) fn texts(path: Bytes, before: &[u8], after: &[u8], budget: &mut u32) -> FileDiff {
    if is_binary(before) || is_binary(after) {
        return FileDiff::instead(path, Instead::Binary);
    }
    lines(path, before, after, budget)
}

fn lines(path: Bytes, before: &[u8], after: &[u8], budget: &mut u32) -> FileDiff {
    let diff = LineDiff::new(before, after);
    let (mut hunks, mut left_out) = (Vec::new(), 0);
    for group in diff.groups() {
        let count = u32::try_from(group.lines.len()).unwrap_or(u32::MAX);
        if count > *budget {
            left_out += count;
            continue;
        }
        *budget -= count;
        hunks.push(hunk(&group));
    }
    let LineCounts { added, removed } = diff.counts();
    FileDiff { path, added, removed, instead: None, hunks, left_out, about: None }
}

fn hunk(group: &LineGroup<'_>) -> HunkLines {
    let line = |&(kind, line): &(LineKind, &[u8])| {
        let text = String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(line)).into_owned();
        DiffLine { kind, text }
    };
    let lines = group.lines.iter().map(line).collect();
    HunkLines { start: (group.before.start + 1, group.after.start + 1), lines }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(path: &str, before: &str, after: &str) -> FileDiff {
        lines(Bytes::Text(path.to_owned()), before.as_bytes(), after.as_bytes(), &mut limits::MAX_DIFF_LINES.clone())
    }

    fn drawn(diff: &FileDiff) -> String {
        let sign = |kind| match kind {
            LineKind::Same => ' ',
            LineKind::Added => '+',
            LineKind::Removed => '-',
        };
        let hunk = |hunk: &HunkLines| {
            let lines = hunk.lines.iter().map(|line| format!("{}{}\n", sign(line.kind), line.text));
            format!("@{},{}\n{}", hunk.start.0, hunk.start.1, lines.collect::<String>())
        };
        diff.hunks.iter().map(hunk).collect()
    }

    #[test]
    fn changes_come_with_their_surroundings_and_numbers() {
        let before: String = (1..=20).map(|n| format!("{n}\n")).collect();
        let diff = compared("a", &before, &before.replace("10\n", "ten\n").replace("11\n", ""));
        assert_eq!((diff.added, diff.removed), (1, 2));
        assert_eq!(drawn(&diff), "@7,7\n 7\n 8\n 9\n-10\n-11\n+ten\n 12\n 13\n 14\n");
        assert_eq!(drawn(&compared("a", "", "x\ny")), "@1,1\n+x\n+y\n");
        assert_eq!(drawn(&compared("a", "x\n", "")), "@1,1\n-x\n");
    }

    #[test]
    fn too_many_lines_are_counted_and_not_shown() {
        let long: String = (0..limits::MAX_DIFF_LINES + 1).map(|n| format!("{n}\n")).collect();
        let diff = compared("a", "", &long);
        assert_eq!(
            (diff.hunks.len(), diff.left_out, diff.added),
            (0, limits::MAX_DIFF_LINES + 1, limits::MAX_DIFF_LINES + 1)
        );
    }
}
