//! What differs between two snapshots, in time proportional to the difference: equal trees are never read.

use crate::base::id::ObjectId;
use crate::base::path::{WorkspacePath, join};
use crate::store::StoreError;
use crate::store::tree::{Node, NodeKind, Tree};

/// A path that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The path.
    pub path: WorkspacePath,
    /// Its state on the first side; `None` if it is not there.
    pub before: Option<Node>,
    /// Its state on the second side; `None` if it is not there.
    pub after: Option<Node>,
}

/// Files and links that differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Changed {
    /// Only on the second side.
    pub added: u64,
    /// On both sides, with other content, mode or kind.
    pub modified: u64,
    /// Only on the first side.
    pub deleted: u64,
}

impl Changed {
    /// Counts files and links among `changes`; a directory that took a file's place counts as deleted file.
    pub fn count<'a>(changes: impl IntoIterator<Item = &'a Change>) -> Self {
        let mut counts = Self::default();
        let is_file = |node: &Option<Node>| node.is_some_and(|node| node.kind != NodeKind::Directory);
        for change in changes {
            match (is_file(&change.before), is_file(&change.after)) {
                (true, true) => counts.modified += 1,
                (false, true) => counts.added += 1,
                (true, false) => counts.deleted += 1,
                (false, false) => {}
            }
        }
        counts
    }
}

/// Reads trees by id; the two sides may come from different places.
pub(crate) type Load<'a> = dyn Fn(ObjectId) -> Result<Tree, StoreError> + 'a;

/// All changes from one tree to another, by path.
pub(crate) fn diff(
    from: Option<(ObjectId, &Load<'_>)>,
    to: Option<(ObjectId, &Load<'_>)>,
) -> Result<Vec<Change>, StoreError> {
    let mut changes = Vec::new();
    diff_trees(&[], from, to, &mut changes)?;
    changes.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(changes)
}

fn diff_trees(
    directory: &[u8],
    from: Option<(ObjectId, &Load<'_>)>,
    to: Option<(ObjectId, &Load<'_>)>,
    changes: &mut Vec<Change>,
) -> Result<(), StoreError> {
    if from.map(|(id, _)| id) == to.map(|(id, _)| id) {
        return Ok(());
    }
    let load = |side: Option<(ObjectId, &Load<'_>)>| side.map_or_else(|| Ok(Tree::new()), |(id, load)| load(id));
    let (before, after) = (load(from)?, load(to)?);
    let mut before = before.into_iter().peekable();
    let mut after = after.into_iter().peekable();
    while let Some(name) = [before.peek(), after.peek()].into_iter().flatten().map(|(name, _)| name).min().cloned() {
        let old = before.next_if(|(other, _)| *other == name).map(|(_, node)| node);
        let new = after.next_if(|(other, _)| *other == name).map(|(_, node)| node);
        let path = join(directory, &name);
        let tree_of =
            |node: Option<Node>| node.filter(|node| node.kind == NodeKind::Directory).map(|node| node.content);
        let old_tree = tree_of(old).and_then(|id| from.map(|(_, load)| (id, load)));
        let new_tree = tree_of(new).and_then(|id| to.map(|(_, load)| (id, load)));
        if outer(old) != outer(new) {
            let path = WorkspacePath::parse(&path).expect("trees hold plain names only");
            changes.push(Change { path, before: old, after: new });
        }
        diff_trees(&path, old_tree, new_tree, changes)?;
    }
    Ok(())
}

/// What of a node is its own: a directory's content is told by its children.
fn outer(node: Option<Node>) -> Option<(NodeKind, u16, Option<ObjectId>)> {
    node.map(|node| (node.kind, node.mode, (node.kind != NodeKind::Directory).then_some(node.content)))
}
