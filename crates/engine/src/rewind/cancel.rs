//! Changes that cancel out: an operation and the undo of it leave a path as if neither had happened.
//!
//! Whoever is asked whether somebody else changed a path must not be told of these, or nothing could be undone any more once a later
//! operation has been undone.

use std::collections::{HashMap, HashSet};

use super::same;
use crate::owner::rows::ChangeRow;
use crate::store::{Store, StoreError};

/// Which operations are undos and redos of which.
pub(crate) struct Families {
    /// For each operation the one that it is about in the end: itself, if it is no undo or redo.
    roots: HashMap<i64, i64>,
    /// Operations that are undone at the moment.
    undone: HashSet<i64>,
}

impl Families {
    pub(crate) fn load(store: &Store) -> Result<Self, StoreError> {
        let operations: Vec<(i64, Option<i64>, bool)> = store.db().read(|connection| {
            let mut statement =
                connection.prepare_cached("SELECT seq, reverses, undone FROM operations ORDER BY seq")?;
            statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect()
        })?;
        Ok(Self::new(operations))
    }

    /// `operations` are row numbers, each with that of the operation it reverses and whether it is undone, oldest first.
    fn new(operations: impl IntoIterator<Item = (i64, Option<i64>, bool)>) -> Self {
        let mut roots = HashMap::new();
        let mut undone = HashSet::new();
        for (seq, reverses, is_undone) in operations {
            let root = reverses.map_or(seq, |reversed| roots.get(&reversed).copied().unwrap_or(reversed));
            roots.insert(seq, root);
            if is_undone {
                undone.insert(seq);
            }
        }
        Self { roots, undone }
    }

    /// `chain` without what others did and took back again.
    pub(crate) fn without_cancelled(&self, chain: &[ChangeRow], ours: impl Fn(&ChangeRow) -> bool) -> Vec<ChangeRow> {
        let mut left: Vec<ChangeRow> = Vec::with_capacity(chain.len());
        for change in chain {
            left.push(change.clone());
            if let Some(first) = self.cancelled(&left, &ours) {
                left.truncate(first);
            }
        }
        left
    }

    /// Where the last changes begin that come to nothing, if others made them and have taken them back. An operation may have changed
    /// the path in several steps, and taking it back is one; if they come to nothing by themselves, it is none.
    fn cancelled(&self, left: &[ChangeRow], ours: impl Fn(&ChangeRow) -> bool) -> Option<usize> {
        let last = left.last()?;
        let root = |change: &ChangeRow| change.by.operation.and_then(|seq| self.roots.get(&seq).copied());
        let family = root(last).filter(|_| !ours(last))?;
        let mut is_taken_back = self.undone.contains(&family);
        for (at, change) in left.iter().enumerate().rev() {
            if ours(change) || root(change) != Some(family) {
                return None;
            }
            is_taken_back |= change.by.operation != last.by.operation;
            if is_taken_back && same(change.before.as_ref(), last.after.as_ref()) {
                return Some(at);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::owner::{By, ChangeKind};
    use crate::snapshot::tree::Kind;
    use crate::{Node, ObjectId, WorkspacePath};

    fn change(operation: i64, before: &str, after: &str) -> ChangeRow {
        let file = |content: &str| Node {
            kind: Kind::File,
            mode: 0o644,
            content: ObjectId::of(content.as_bytes()),
            size: content.len() as u64,
        };
        let path = WorkspacePath::parse(b"a").expect("plain");
        let by = By::operation(None, operation);
        let (before, after) = (Some(file(before)), Some(file(after)));
        ChangeRow { checkpoint: operation, path, kind: ChangeKind::Changed, before, after, by }
    }

    #[test]
    fn only_what_was_taken_back_cancels_out() {
        // Operations 2 and 3, undone as 4 and 5, redone as 6 and 7.
        let families: [(i64, Option<i64>); 9] = [
            (1, None),
            (2, None),
            (3, None),
            (4, Some(3)),
            (5, Some(2)),
            (6, Some(5)),
            (7, Some(4)),
            (8, None),
            (9, Some(8)),
        ];
        let families = Families::new(families.map(|(seq, reverses)| (seq, reverses, seq == 8)));
        let left = |chain: &[ChangeRow]| -> Vec<i64> {
            let left = families.without_cancelled(chain, |change| change.by.operation == Some(1));
            left.iter().filter_map(|change| change.by.operation).collect()
        };
        let [one, two, three] = [change(1, "0", "1"), change(2, "1", "2"), change(3, "2", "3")];
        let [four, five, six] = [change(4, "3", "2"), change(5, "2", "1"), change(6, "1", "2")];
        let chain = [one, two, three, four, five, six];
        assert_eq!(left(&chain[..3]), [1, 2, 3]);
        assert_eq!(left(&chain[..4]), [1, 2]);
        assert_eq!(left(&chain[..5]), [1]);
        assert_eq!(left(&chain), [1, 6], "a redo is in force");
        assert_eq!(left(&[change(2, "1", "2"), change(5, "2", "x")]), [2, 5], "it went elsewhere");
        assert_eq!(left(&[change(2, "1", "2"), change(3, "2", "1")]), [2, 3], "another operation is no undo");
        let steps = [change(1, "0", "1"), change(2, "1", "2"), change(2, "2", "3"), change(5, "3", "1")];
        assert_eq!(left(&steps), [1], "several steps are taken back in one");
        let nothing = |operation| [change(1, "0", "1"), change(operation, "1", "2"), change(operation, "2", "1")];
        assert_eq!(left(&nothing(8)), [1], "undone, and there was nothing to take back");
        assert_eq!(left(&nothing(2)), [1, 2, 2], "it is in force");
    }
}
