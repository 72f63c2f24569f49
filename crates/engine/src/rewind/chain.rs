//! The changes of one path that are still in it: the ones that a rewind takes back, and whose they are.
//!
//! A change that was taken back has left nothing in the file, whoever took it back and however. So it is named as no author's.

use super::same;
use crate::Node;
use crate::owner::rows::ChangeRow;
use crate::owner::{ChangeKind, Verdict};

/// `chain`, everything that happened to a path since it was `target`, without the changes that led back to an earlier state.
pub(super) fn in_force(chain: &[ChangeRow], target: Option<&Node>) -> Vec<ChangeRow> {
    // What an uncaptured path was is not known, so nothing leads back to it.
    let state = |change: &ChangeRow| (change.kind == ChangeKind::Changed).then_some(change.after);
    let mut left: Vec<ChangeRow> = Vec::with_capacity(chain.len());
    for change in chain {
        left.push(change.clone());
        let Some(after) = state(change) else { continue };
        let is_after = |node: Option<&Node>| same(node, after.as_ref());
        let earlier =
            left[..left.len() - 1].iter().position(|one| state(one).is_some_and(|node| is_after(node.as_ref())));
        match earlier {
            _ if is_after(target) => left.clear(),
            Some(at) => left.truncate(at + 1),
            None => {}
        }
    }
    left
}

/// The windows in which `chain` was changed.
pub(super) fn windows(chain: &[ChangeRow]) -> impl Iterator<Item = i64> {
    chain.iter().filter_map(|change| change.by.window)
}

/// Whether no agent and no command made the change.
pub(super) fn is_outside(change: &ChangeRow) -> bool {
    change.by.verdict == Verdict::Outside && change.by.operation.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::owner::By;
    use crate::snapshot::tree::Kind;
    use crate::{ObjectId, WorkspacePath};

    fn file(content: &str) -> Option<Node> {
        let size = content.len() as u64;
        Some(Node { kind: Kind::File, mode: 0o644, content: ObjectId::of(content.as_bytes()), size })
    }

    fn change(checkpoint: i64, kind: ChangeKind, before: Option<Node>, after: Option<Node>) -> ChangeRow {
        let path = WorkspacePath::parse(b"a").expect("plain");
        ChangeRow { checkpoint, path, kind, before, after, by: By::OUTSIDE }
    }

    #[test]
    fn changes_that_lead_back_to_an_earlier_state_are_not_in_force() {
        let [one, two, three] = ["1", "2", "3"].map(file);
        let step = |number, before, after| change(number, ChangeKind::Changed, before, after);
        let left = |chain: &[ChangeRow]| -> Vec<i64> {
            in_force(chain, one.as_ref()).iter().map(|change| change.checkpoint).collect()
        };
        assert_eq!(left(&[step(1, one, two), step(2, two, three)]), [1, 2]);
        assert_eq!(left(&[step(1, one, two), step(2, two, three), step(3, three, two)]), [1]);
        assert_eq!(left(&[step(1, one, two), step(2, two, one), step(3, one, three)]), [3]);
        assert_eq!(left(&[step(1, one, None), step(2, None, two), step(3, two, None)]), [1]);
        let hidden = change(2, ChangeKind::Uncaptured, two, None);
        assert_eq!(left(&[step(1, one, two), hidden, step(3, None, three), step(4, three, None)]), [1, 2, 3, 4]);
    }
}
