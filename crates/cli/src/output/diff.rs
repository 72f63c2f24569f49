//! Differences drawn for people, for `git apply` and for programs.
//!
//! The engine says which paths differ; this module reads their content, one path at a time, and compares it line by line.

pub mod authors;
mod binary;
pub mod document;
mod hunks;
pub mod patch;
pub mod stat;
mod uncaptured;

pub use uncaptured::{Uncaptured, Unheld, Why};

use retake_agent::line_diff::is_binary;
use retake_engine::Workspace;
use retake_engine::snapshot::{Change, Node, NodeKind};
use retake_engine::view::{ContentError, Side};

/// Files above this are said to differ, not compared: a diff nobody reads is not worth the memory.
pub const MAX_COMPARED: u64 = 8 << 20;

/// The two sides that changes are between.
pub struct Comparison<'a> {
    pub workspace: &'a Workspace,
    pub from: ContentSource<'a>,
    pub to: ContentSource<'a>,
    pub uncaptured: Uncaptured,
}

/// Where the contents of a side are.
#[derive(Clone, Copy)]
pub enum ContentSource<'a> {
    /// A snapshot, or a scan of what is there now.
    Side(Side<'a>),
    /// On disk.
    Disk,
    /// Here: that of the one path that is compared.
    Given(&'a [u8]),
}

/// The content of a changed path on both sides; a side that has none, a directory say, is empty.
#[derive(Debug, PartialEq, Eq)]
pub enum ChangedContent {
    /// Only the mode changed, or there is no content on either side.
    Same,
    Text {
        before: Vec<u8>,
        after: Vec<u8>,
    },
    Binary {
        before: Vec<u8>,
        after: Vec<u8>,
    },
    TooLarge,
}

impl Comparison<'_> {
    /// Reads what is needed to compare `change`.
    pub fn content(&self, change: &Change) -> Result<ChangedContent, ContentError> {
        let (before, after) = (with_content(change.before.as_ref()), with_content(change.after.as_ref()));
        if before.map(|node| node.content) == after.map(|node| node.content) {
            return Ok(ChangedContent::Same);
        }
        if before.is_some_and(is_too_large) || after.is_some_and(is_too_large) {
            return Ok(ChangedContent::TooLarge);
        }
        let before = self.read(self.from, change, before)?;
        let after = self.read(self.to, change, after)?;
        if is_binary(&before) || is_binary(&after) {
            return Ok(ChangedContent::Binary { before, after });
        }
        Ok(ChangedContent::Text { before, after })
    }

    fn read(&self, source: ContentSource<'_>, change: &Change, node: Option<&Node>) -> Result<Vec<u8>, ContentError> {
        let mut bytes = Vec::new();
        let Some(node) = node else { return Ok(bytes) };
        match source {
            ContentSource::Side(side) => self.workspace.content(&side, &change.path, node, &mut bytes)?,
            ContentSource::Disk => self.workspace.content_on_disk(&change.path, node, &mut bytes)?,
            ContentSource::Given(content) => bytes.extend_from_slice(content),
        }
        Ok(bytes)
    }
}

/// How a path changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Added,
    Modified,
    Deleted,
    /// Only the permissions.
    Mode,
    /// A file became a symlink, say.
    Type,
}

impl Status {
    pub fn of(change: &Change) -> Self {
        match (&change.before, &change.after) {
            (None, _) => Self::Added,
            (_, None) => Self::Deleted,
            (Some(before), Some(after)) if before.kind != after.kind => Self::Type,
            (Some(before), Some(_)) if before.kind == NodeKind::Directory => Self::Mode,
            (Some(before), Some(after)) if before.content == after.content => Self::Mode,
            _ => Self::Modified,
        }
    }
}

fn with_content(node: Option<&Node>) -> Option<&Node> {
    node.filter(|node| node.kind != NodeKind::Directory)
}

fn is_too_large(node: &Node) -> bool {
    MAX_COMPARED < node.size
}
