//! Taking our changes out of a file that somebody else changed too, by three-way merge.

use super::same;
use crate::Node;
use crate::owner::ChangeKind;
use crate::owner::rows::ChangeRow;
use crate::snapshot::tree::Kind;
use crate::{ObjectId, StoreError, limits};

/// A file with our changes taken out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// Its state.
    pub node: Node,
    /// Its content.
    pub content: Vec<u8>,
}

/// Reverses our changes in `chain`, newest first, in the file that is `now`; `None` if that does not go cleanly. If we deleted it last, it
/// is what it was before that, with what somebody else had changed until then. `read` gives contents.
pub(crate) fn merge(
    chain: &[ChangeRow],
    ours: impl Fn(&ChangeRow) -> bool,
    now: Option<&Node>,
    read: impl Fn(&Node) -> Result<Option<Vec<u8>>, StoreError>,
) -> Result<Option<Merged>, StoreError> {
    let (start, chain) = match (now, chain.split_last()) {
        (Some(now), _) => (*now, chain),
        (None, Some((deletion, earlier))) if ours(deletion) && deletion.after.is_none() => match deletion.before {
            Some(before) if deletion.kind == ChangeKind::Changed => (before, earlier),
            _ => return Ok(None),
        },
        (None, _) => return Ok(None),
    };
    if !is_mergeable(&start) {
        return Ok(None);
    }
    let Some(mut content) = read(&start)? else { return Ok(None) };
    for change in chain.iter().rev().filter(|change| ours(change)) {
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
    Ok((!same(Some(&node), now)).then_some(Merged { node, content }))
}

fn is_mergeable(node: &Node) -> bool {
    node.kind == Kind::File && node.size <= limits::MAX_MERGE
}

fn is_binary(bytes: &[u8]) -> bool {
    bytes.iter().take(8_000).any(|&byte| byte == 0)
}
