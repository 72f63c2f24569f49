//! The JSON that `--json` prints: wire types only, kept apart from the engine's so that either can change alone.
//!
//! Every document is an object with `"version": 1`. Fields may be added to a version; none is ever renamed or removed in it.

use retake_agent::listing::PointOf;
pub use retake_agent::rewind_document::{Bytes, GapList, VERSION};
use retake_engine::changes::Coverage;
use retake_engine::checkpoint::{Checkpoint, Origin};
use retake_engine::snapshot::{Changed, Gap, Node, NodeKind};
use serde::Serialize;

use crate::output::time;

/// What a command prints that fails before it has anything else to tell.
#[derive(Serialize, Debug)]
pub struct ErrorDocument {
    version: u32,
    error: ErrorFacts,
}

#[derive(Serialize, Debug)]
struct ErrorFacts {
    message: String,
    hint: Option<String>,
    causes: Vec<String>,
}

impl ErrorDocument {
    pub fn new(message: String, hint: Option<String>, causes: Vec<String>) -> Self {
        Self { version: VERSION, error: ErrorFacts { message, hint, causes } }
    }
}

/// What `checkpoint` and `show POINT` print.
#[derive(Serialize, Debug)]
pub struct CheckpointDocument {
    version: u32,
    checkpoint: CheckpointWithGaps,
    changed: Counts,
    /// Only for a checkpoint that was just made.
    #[serde(skip_serializing_if = "Option::is_none")]
    ignores: Option<Ignores>,
}

/// Files that changed ignore rules leave out.
#[derive(Serialize, Debug)]
pub struct Ignores {
    /// Still captured, because an agent or a command may have changed the rule; and those that this checkpoint is the first to hold.
    held: u64,
    newly_held: u64,
    /// Captured by the checkpoint before, and not by this one.
    no_longer_captured: u64,
}

impl Ignores {
    pub fn new(coverage: &Coverage) -> Self {
        let Coverage { newly_held, held, no_longer } = *coverage;
        Self { held, newly_held, no_longer_captured: no_longer }
    }
}

impl CheckpointDocument {
    pub fn with(self, coverage: &Coverage) -> Self {
        Self { ignores: Some(Ignores::new(coverage)), ..self }
    }

    pub fn new(checkpoint: &Checkpoint, gaps: &[Gap]) -> Self {
        Self {
            version: VERSION,
            checkpoint: CheckpointWithGaps { facts: CheckpointFields::new(checkpoint), gaps: GapList::new(gaps) },
            changed: Counts::new(&checkpoint.changed),
            ignores: None,
        }
    }
}

#[derive(Serialize, Debug)]
struct CheckpointWithGaps {
    #[serde(flatten)]
    facts: CheckpointFields,
    #[serde(flatten)]
    gaps: GapList,
}

/// What `log` prints.
#[derive(Serialize, Debug)]
pub struct LogDocument {
    version: u32,
    checkpoints: Vec<LogEntry>,
}

impl LogDocument {
    pub fn new(points: &[PointOf]) -> Self {
        Self { version: VERSION, checkpoints: points.iter().map(LogEntry::new).collect() }
    }
}

#[derive(Serialize, Debug)]
struct LogEntry {
    #[serde(flatten)]
    facts: CheckpointFields,
    changed: Counts,
    gaps_total: u64,
    /// The prompt that it was taken at.
    prompt: Option<PromptFacts>,
}

#[derive(Serialize, Debug)]
struct PromptFacts {
    id: String,
    /// Null for a prompt that was left behind.
    number: Option<u64>,
}

impl LogEntry {
    fn new((checkpoint, prompt): &PointOf) -> Self {
        Self {
            facts: CheckpointFields::new(checkpoint),
            changed: Counts::new(&checkpoint.changed),
            gaps_total: checkpoint.gap_count,
            prompt: prompt.as_ref().map(|at| PromptFacts { id: at.prompt.to_string(), number: at.number }),
        }
    }
}

#[derive(Serialize, Debug)]
struct CheckpointFields {
    id: String,
    snapshot: String,
    label: Option<String>,
    at: String,
    git: Git,
    origin: Origin,
    session: Option<String>,
    note: Option<String>,
}

impl CheckpointFields {
    fn new(checkpoint: &Checkpoint) -> Self {
        Self {
            id: checkpoint.id.to_string(),
            snapshot: checkpoint.snapshot.to_string(),
            label: checkpoint.label.clone(),
            at: time::rfc3339(checkpoint.at),
            git: Git { branch: checkpoint.git.branch.clone(), head: checkpoint.git.head.clone() },
            origin: checkpoint.origin,
            session: checkpoint.session.map(|id| id.to_string()),
            note: checkpoint.note.clone(),
        }
    }
}

#[derive(Serialize, Debug)]
struct Git {
    branch: Option<String>,
    head: Option<String>,
}

#[derive(Serialize, Debug)]
pub struct Counts {
    added: u64,
    modified: u64,
    deleted: u64,
}

impl Counts {
    pub fn new(changed: &Changed) -> Self {
        Self { added: changed.added, modified: changed.modified, deleted: changed.deleted }
    }
}

/// One side of a changed path, or one entry of a listing.
#[derive(Serialize, Debug)]
pub struct NodeFacts {
    kind: &'static str,
    mode: String,
    size: u64,
    id: String,
}

impl NodeFacts {
    pub fn new(node: &Node) -> Self {
        Self {
            kind: match node.kind {
                NodeKind::File => "file",
                NodeKind::Symlink => "symlink",
                NodeKind::Directory => "directory",
            },
            mode: format!("{:04o}", node.mode),
            size: node.size,
            id: node.content.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_text_when_they_can_be() {
        let json = |bytes: &[u8]| serde_json::to_string(&Bytes::new(bytes)).expect("plain data");
        assert_eq!(json("größe\n".as_bytes()), r#""größe\n""#);
        assert_eq!(json(b"caf\xe9"), r#"{"bytes":"Y2Fm6Q=="}"#);
    }
}
