//! Changes that cancel out: an operation and the undo of it leave a path as if neither had happened.
//!
//! Whoever is asked whether somebody else changed a path must not be told of these, or nothing could be undone any more once a later
//! operation has been undone.

use std::collections::HashMap;

use super::same;
use crate::owner::rows::ChangeRow;
use crate::store::{Store, StoreError};

/// Which operations are undos and redos of which.
pub(crate) struct Families {
    /// For each operation the one that it is about in the end: itself, if it is no undo or redo.
    roots: HashMap<i64, i64>,
}

impl Families {
    pub(crate) fn load(store: &Store) -> Result<Self, StoreError> {
        let operations: Vec<(i64, Option<i64>)> = store.db().read(|connection| {
            let mut statement = connection.prepare_cached("SELECT seq, reverses FROM operations ORDER BY seq")?;
            statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        })?;
        Ok(Self::new(operations))
    }

    /// `operations` are row numbers, each with that of the operation it reverses, oldest first.
    fn new(operations: impl IntoIterator<Item = (i64, Option<i64>)>) -> Self {
        let mut roots = HashMap::new();
        for (seq, reverses) in operations {
            let root = reverses.map_or(seq, |reversed| roots.get(&reversed).copied().unwrap_or(reversed));
            roots.insert(seq, root);
        }
        Self { roots }
    }

    /// `chain` without what others did and took back again.
    pub(crate) fn without_cancelled(&self, chain: &[ChangeRow], ours: impl Fn(&ChangeRow) -> bool) -> Vec<ChangeRow> {
        let mut left: Vec<ChangeRow> = Vec::with_capacity(chain.len());
        for change in chain {
            match left.last() {
                Some(last) if !ours(last) && !ours(change) && self.cancel(last, change) => drop(left.pop()),
                _ => left.push(change.clone()),
            }
        }
        left
    }

    fn cancel(&self, one: &ChangeRow, next: &ChangeRow) -> bool {
        let root = |change: &ChangeRow| change.by.operation.and_then(|seq| self.roots.get(&seq));
        root(one).is_some()
            && root(one) == root(next)
            && one.by.operation != next.by.operation
            && same(one.before.as_ref(), next.after.as_ref())
            && same(one.after.as_ref(), next.before.as_ref())
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
        let families =
            Families::new([(1, None), (2, None), (3, None), (4, Some(3)), (5, Some(2)), (6, Some(5)), (7, Some(4))]);
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
    }
}
