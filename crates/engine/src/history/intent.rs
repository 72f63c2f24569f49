//! Intents: what an operation is about to do to the files, durable before it does it.
//!
//! An intent is `staging` before the first temporary file exists, `armed` before the first file is touched, and `done`
//! once the operation is recorded, or given up, and only temporary files are left. Its row is removed last.

use std::collections::BTreeSet;

use rusqlite::{Transaction, params};

use crate::base::path::WorkspacePath;
use crate::store::db::in_transaction;
use crate::store::tree::{Node, decode_node, encode_node};
use crate::store::{Durability, Store, StoreError};

/// How far an operation has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Temporary files may exist; no file has been touched.
    Staging = 0,
    /// Everything that is needed is on disk; files may have been touched.
    Armed = 1,
    /// What came of it is recorded; only temporary files may be left.
    Done = 2,
}

/// What is done to one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) path: WorkspacePath,
    pub(crate) before: Option<Node>,
    pub(crate) after: Option<Node>,
    /// Where its new content is staged, and where its old one goes.
    pub(crate) temp: WorkspacePath,
}

impl Item {
    /// A second temporary name, for file systems that cannot exchange two files.
    pub(crate) fn aside(&self) -> WorkspacePath {
        let mut bytes = self.temp.as_bytes().to_vec();
        bytes.push(b'~');
        WorkspacePath::parse(&bytes).expect("a plain name stays plain")
    }
}

/// Everything that an operation does to the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Intent {
    pub(crate) operation: i64,
    pub(crate) stage: Stage,
    /// By path.
    pub(crate) items: Vec<Item>,
    /// Directories that have to be made writable for the time being, and their permissions.
    pub(crate) loosened: Vec<(WorkspacePath, u16)>,
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&u32::try_from(bytes.len()).expect("paths are short").to_le_bytes());
    out.extend_from_slice(bytes);
}

fn take_bytes<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (len, rest) = bytes.split_first_chunk::<4>()?;
    let (taken, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
    *bytes = rest;
    Some(taken)
}

pub(crate) fn encode(items: &[Item], loosened: &[(WorkspacePath, u16)]) -> Vec<u8> {
    let mut out = Vec::new();
    let node = |node: &Option<Node>| node.as_ref().map(encode_node).unwrap_or_default();
    out.extend_from_slice(&(items.len() as u64).to_le_bytes());
    for item in items {
        put_bytes(&mut out, item.path.as_bytes());
        put_bytes(&mut out, item.temp.as_bytes());
        put_bytes(&mut out, &node(&item.before));
        put_bytes(&mut out, &node(&item.after));
    }
    for (path, mode) in loosened {
        put_bytes(&mut out, path.as_bytes());
        out.extend_from_slice(&mode.to_le_bytes());
    }
    out
}

/// What [`encode`] wrote. A path that could name a place outside the workspace makes the whole unusable.
#[expect(clippy::type_complexity, reason = "read in one place only")]
pub(crate) fn decode(mut bytes: &[u8]) -> Option<(Vec<Item>, Vec<(WorkspacePath, u16)>)> {
    let bytes = &mut bytes;
    let (count, rest) = bytes.split_first_chunk::<8>()?;
    *bytes = rest;
    let mut items = Vec::new();
    for _ in 0..u64::from_le_bytes(*count) {
        let path = WorkspacePath::parse(take_bytes(bytes)?).ok()?;
        let temp = WorkspacePath::parse(take_bytes(bytes)?).ok()?;
        let mut node = || {
            let encoded = take_bytes(bytes)?;
            if encoded.is_empty() { Some(None) } else { decode_node(encoded).map(Some) }
        };
        let (before, after) = (node()?, node()?);
        items.push(Item { path, before, after, temp });
    }
    let mut loosened = Vec::new();
    while !bytes.is_empty() {
        let path = WorkspacePath::parse(take_bytes(bytes)?).ok()?;
        let (mode, rest) = bytes.split_first_chunk::<2>()?;
        *bytes = rest;
        loosened.push((path, u16::from_le_bytes(*mode)));
    }
    Some((items, loosened))
}

/// Writes a new intent.
pub(crate) fn insert(
    tx: &Transaction<'_>,
    operation: i64,
    items: &[Item],
    loosened: &[(WorkspacePath, u16)],
) -> Result<(), StoreError> {
    tx.execute(
        "INSERT INTO intents (operation, state, items) VALUES (?, ?, ?)",
        params![operation, Stage::Staging as u8, encode(items, loosened)],
    )
    .map(drop)
    .map_err(in_transaction(tx))
}

/// Writes anew what an operation does, as long as it has touched nothing.
pub(crate) fn replace(store: &Store, intent: &Intent) -> Result<(), StoreError> {
    store.db().transaction(Durability::Soon, |tx| update(tx, intent.operation, &intent.items, &intent.loosened))
}

/// Leaves of an operation that has touched nothing only the temporary names that could not be removed.
pub(crate) fn give_up(tx: &Transaction<'_>, intent: &Intent) -> Result<(), StoreError> {
    update(tx, intent.operation, &intent.items, &[])?;
    set_stage(tx, intent.operation, Stage::Done)
}

fn update(
    tx: &Transaction<'_>,
    operation: i64,
    items: &[Item],
    loosened: &[(WorkspacePath, u16)],
) -> Result<(), StoreError> {
    tx.execute("UPDATE intents SET items = ? WHERE operation = ?", params![encode(items, loosened), operation])
        .map(drop)
        .map_err(in_transaction(tx))
}

/// Writes how far an operation has come.
pub(crate) fn set_stage(tx: &Transaction<'_>, operation: i64, stage: Stage) -> Result<(), StoreError> {
    tx.execute("UPDATE intents SET state = ? WHERE operation = ?", params![stage as u8, operation])
        .map(drop)
        .map_err(in_transaction(tx))
}

/// Removes an intent.
pub(crate) fn remove(tx: &Transaction<'_>, operation: i64) -> Result<(), StoreError> {
    tx.execute("DELETE FROM intents WHERE operation = ?", [operation]).map(drop).map_err(in_transaction(tx))
}

/// Makes the intent durable as armed.
pub(crate) fn arm(store: &Store, operation: i64) -> Result<(), StoreError> {
    store.db().transaction(Durability::Synced, |tx| set_stage(tx, operation, Stage::Armed))
}

/// All intents, oldest first; those that are done come last.
pub(crate) fn all(store: &Store) -> Result<Vec<Intent>, StoreError> {
    let rows: Vec<(i64, u8, Vec<u8>)> = store.db().read(|connection| {
        connection
            .prepare_cached("SELECT operation, state, items FROM intents ORDER BY state = 2, operation")?
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
            .collect()
    })?;
    rows.into_iter()
        .map(|(operation, state, bytes)| {
            let stage = match state {
                0 => Stage::Staging,
                1 => Stage::Armed,
                _ => Stage::Done,
            };
            let (items, loosened) = decode(&bytes).ok_or(StoreError::MalformedIntent)?;
            Ok(Intent { operation, stage, items, loosened })
        })
        .collect()
}

/// All temporary names of operations that have not cleaned up yet: no scan looks at them.
pub(crate) fn temporary_names(store: &Store) -> Result<BTreeSet<Vec<u8>>, StoreError> {
    let intents = all(store)?;
    let names = intents.iter().flat_map(|intent| &intent.items).flat_map(|item| [item.temp.clone(), item.aside()]);
    Ok(names.map(|path| path.as_bytes().to_vec()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::id::ObjectId;
    use crate::store::tree::NodeKind;

    fn path(bytes: &[u8]) -> WorkspacePath {
        WorkspacePath::parse(bytes).expect("plain")
    }

    #[test]
    fn an_intent_reads_back_and_a_path_outside_is_refused() {
        let node = Node { kind: NodeKind::File, mode: 0o4755, content: ObjectId::of(b"x"), size: 1 };
        let item = Item { path: path(b"a/b"), before: Some(node), after: None, temp: path(b"a/.t") };
        let loosened = vec![(path(b"a"), 0o555)];
        let bytes = encode(std::slice::from_ref(&item), &loosened);
        assert_eq!(decode(&bytes), Some((vec![item], loosened)));
        for len in 0..bytes.len() {
            let cut = decode(&bytes[..len]);
            assert!(cut.is_none_or(|(_, loosened)| loosened.is_empty()), "length {len}");
        }
        let outside = bytes.windows(3).position(|window| window == b"a/b").expect("it is in there");
        let mut tampered = bytes;
        tampered[outside..outside + 3].copy_from_slice(b"../");
        assert_eq!(decode(&tampered), None);
    }
}
