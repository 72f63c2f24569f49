//! Taking our changes out of a file that somebody else changed too, by three-way merge.

use super::chain::InForce;
use crate::base::id::ObjectId;
use crate::base::limits;
use crate::history::owner::ChangeKind;
use crate::store::StoreError;
use crate::store::tree::{Node, NodeKind};

/// A file with our changes taken out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// Its state.
    pub node: Node,
    /// Its content.
    pub content: Vec<u8>,
}

/// Reverses our changes in `chain`, newest first, in the file that is `now`; `None` if that does not go cleanly. If we deleted it last, it
/// is what it was before that, with what somebody else had changed until then. The result is the file itself where our changes are out
/// of it already. `read` gives contents.
pub(super) fn merge(
    chain: &[InForce],
    ours: impl Fn(&InForce) -> bool,
    now: Option<&Node>,
    read: impl Fn(&Node) -> Result<Option<Vec<u8>>, StoreError>,
) -> Result<Option<Merged>, StoreError> {
    let (start, chain) = match (now, chain.split_last()) {
        (Some(now), _) => (*now, chain),
        (None, Some((one, earlier))) if ours(one) && one.change.after.is_none() => match one.change.before {
            Some(before) if one.change.kind == ChangeKind::Changed => (before, earlier),
            _ => return Ok(None),
        },
        (None, _) => return Ok(None),
    };
    if !is_mergeable(&start) {
        return Ok(None);
    }
    let Some(mut content) = read(&start)? else { return Ok(None) };
    let mut has_ours = now.is_none();
    for InForce { change, .. } in chain.iter().rev().filter(|one| ours(one)) {
        has_ours = true;
        let (Some(before), Some(after)) = (&change.before, &change.after) else { return Ok(None) };
        let usable = change.kind == ChangeKind::Changed && is_mergeable(before) && is_mergeable(after);
        if !usable {
            return Ok(None);
        }
        let (Some(base), Some(reversed)) = (read(after)?, read(before)?) else { return Ok(None) };
        if base == reversed {
            continue;
        }
        if [&base, &reversed, &content].into_iter().any(|bytes| is_binary(bytes)) {
            return Ok(None);
        }
        match diffy::merge_bytes(&base, &content, &reversed) {
            Ok(merged) => content = merged,
            Err(_) => return Ok(None),
        }
    }
    let node = Node { content: ObjectId::of(&content), size: content.len() as u64, ..start };
    Ok(has_ours.then_some(Merged { node, content }))
}

pub(super) fn is_mergeable(node: &Node) -> bool {
    node.kind == NodeKind::File && node.size <= limits::MAX_MERGE
}

pub(super) fn is_binary(bytes: &[u8]) -> bool {
    bytes.iter().take(8_000).any(|&byte| byte == 0)
}
