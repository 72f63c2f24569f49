//! `diff --json`: what changed, for programs.

use retake_engine::WorkspacePath;
use retake_engine::checkpoint::Checkpoint;
use retake_engine::snapshot::{Change, Gap};
use retake_engine::view::ContentError;
use serde::Serialize;

use super::{ChangedContent, Comparison, Status, Why};
use crate::output::json::{Bytes, GapList, NodeFacts, VERSION};
use retake_agent::line_diff::LineDiff;

#[derive(Serialize, Debug)]
pub struct DiffDocument {
    version: u32,
    /// Checkpoint ids; `to` is null for the workspace as it is now.
    from: String,
    to: Option<String>,
    files: Vec<FileChange>,
    /// Paths that `from` captured and `to` does not, because an ignore rule leaves them out.
    left_out: Vec<Bytes>,
    /// What `to` could not capture.
    #[serde(flatten)]
    gaps: GapList,
}

#[derive(Serialize, Debug)]
struct FileChange {
    path: Bytes,
    status: &'static str,
    before: Option<NodeFacts>,
    after: Option<NodeFacts>,
    /// Lines; null where content is not compared by lines: binary or large files, directories.
    added: Option<u32>,
    removed: Option<u32>,
    /// Why an addition or a deletion may be none: the kind of a gap, or `still_there` for what is on disk now but ignored.
    uncaptured: Option<&'static str>,
}

impl DiffDocument {
    /// Reads and compares the content of every change.
    pub fn new(
        comparison: &Comparison<'_>,
        changes: &[Change],
        gaps: &[Gap],
        from: &Checkpoint,
        to: Option<&Checkpoint>,
    ) -> Result<Self, ContentError> {
        Ok(Self {
            version: VERSION,
            from: from.id.to_string(),
            to: to.map(|checkpoint| checkpoint.id.to_string()),
            files: changes.iter().map(|change| FileChange::new(comparison, change)).collect::<Result<_, _>>()?,
            left_out: Vec::new(),
            gaps: GapList::new(gaps),
        })
    }

    pub fn with_left_out(self, paths: &[WorkspacePath]) -> Self {
        Self { left_out: paths.iter().map(|path| Bytes::new(path.as_bytes())).collect(), ..self }
    }
}

impl FileChange {
    fn new(comparison: &Comparison<'_>, change: &Change) -> Result<Self, ContentError> {
        let has_content =
            [&change.before, &change.after].into_iter().any(|node| super::with_content(node.as_ref()).is_some());
        let counts = match comparison.content(change)? {
            ChangedContent::Text { before, after } => {
                let counts = LineDiff::new(&before, &after).counts();
                Some((counts.added, counts.removed))
            }
            ChangedContent::Same if has_content => Some((0, 0)),
            ChangedContent::Same | ChangedContent::Binary { .. } | ChangedContent::TooLarge => None,
        };
        Ok(Self {
            path: Bytes::new(change.path.as_bytes()),
            status: name(Status::of(change)),
            before: change.before.as_ref().map(NodeFacts::new),
            after: change.after.as_ref().map(NodeFacts::new),
            added: counts.map(|(added, _)| added),
            removed: counts.map(|(_, removed)| removed),
            uncaptured: comparison.uncaptured.why(change).map(Why::name),
        })
    }
}

fn name(status: Status) -> &'static str {
    match status {
        Status::Added => "added",
        Status::Modified => "modified",
        Status::Deleted => "deleted",
        Status::Mode => "mode",
        Status::Type => "type",
    }
}
