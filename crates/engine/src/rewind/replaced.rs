//! Whether a later change has replaced a file whole, so that nothing of an earlier one is left in it.
//!
//! In doubt something is left: of files that are too large or no text, only another kind of thing in their place replaces them.

use std::collections::BTreeSet;

use super::merge::{is_binary, is_mergeable};
use crate::history::owner::rows::ChangeRow;
use crate::store::StoreError;
use crate::store::tree::{Node, NodeKind};

/// Whether nothing that `change` led to is left in `later`. `read` gives contents.
pub(super) fn is_replaced(
    change: &ChangeRow,
    later: Option<&Node>,
    read: impl Fn(&Node) -> Result<Option<Vec<u8>>, StoreError>,
) -> Result<bool, StoreError> {
    let (Some(after), Some(later)) = (change.after, later) else { return Ok(true) };
    let has_set_mode = change.before.is_some_and(|before| before.kind == after.kind && before.mode != after.mode);
    Ok(match (after.kind, later.kind) {
        (one, other) if one != other => true,
        _ if has_set_mode && after.mode == later.mode => false,
        (NodeKind::Directory, _) => has_set_mode,
        (NodeKind::Symlink, _) => after.content != later.content,
        _ if !is_mergeable(&after) || !is_mergeable(later) => false,
        _ => match (read(&after)?, read(later)?) {
            (Some(after), Some(later)) => have_nothing_in_common(&after, &later),
            _ => false,
        },
    })
}

/// Whether two texts have no line in common that is not blank.
fn have_nothing_in_common(one: &[u8], other: &[u8]) -> bool {
    fn lines(text: &[u8]) -> BTreeSet<&[u8]> {
        text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty()).collect()
    }
    !is_binary(one) && !is_binary(other) && lines(one).is_disjoint(&lines(other))
}
