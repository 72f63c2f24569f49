//! What is needed: everything that checkpoints, operations and interrupted rewinds reach.
//!
//! Marking reads trees, asides and lists of chunks, each once. A damaged one does not stop it: what it alone leads to cannot be
//! had any more.

use std::collections::HashSet;

use crate::base::id::ObjectId;
use crate::base::limits;
use crate::history::intent;
use crate::store::pack::SegmentId;
use crate::store::tree::{self, Node, decode_aside, decode_node, decode_tree};
use crate::store::{ObjectKind, Store, StoreError, content, gc};

/// What is reachable, and how much room it takes.
#[derive(Debug, Default)]
pub(super) struct Live {
    pub(super) ids: HashSet<ObjectId>,
    pub(super) bytes: u64,
    /// Records that were paid for: a bundle takes its room once, whatever of it is needed.
    records: HashSet<(SegmentId, u64)>,
}

/// A checkpoint as far as collecting is concerned.
pub(super) struct Point {
    pub(super) seq: i64,
    /// Nothing may take it away.
    pub(super) pinned: bool,
    pub(super) roots: Vec<(ObjectId, ObjectKind)>,
}

impl Store {
    /// All checkpoints, newest first.
    pub(super) fn points(&self) -> Result<Vec<Point>, StoreError> {
        self.db().read(|connection| {
            let mut statement = connection.prepare(&format!(
                "SELECT {}, seq, label IS NOT NULL OR seq IN ({}) FROM checkpoints ORDER BY seq DESC",
                gc::ROOTS,
                super::retire::NEEDED
            ))?;
            let rows = statement
                .query_map([], |row| Ok(Point { seq: row.get(3)?, pinned: row.get(4)?, roots: gc::roots(row)? }))?;
            rows.collect()
        })
    }

    /// Marks everything that a checkpoint holds.
    pub(super) fn mark_point(&self, point: &Point, live: &mut Live) -> Result<(), StoreError> {
        self.mark_roots(&point.roots, live)
    }

    /// Marks what is needed apart from checkpoints: `kept` contents (with their sizes), what operations displaced, and what an
    /// interrupted rewind needs to be finished or taken back.
    pub(super) fn mark_beside_points(&self, kept: &[(ObjectId, u64)], live: &mut Live) -> Result<(), StoreError> {
        for &(id, size) in kept {
            self.mark_content(id, size, live)?;
        }
        let displaced: Vec<Vec<u8>> = self.db().read(|connection| {
            let mut statement = connection.prepare("SELECT node FROM displaced")?;
            statement.query_map([], |row| row.get(0))?.collect()
        })?;
        for node in displaced.iter().filter_map(|bytes| decode_node(bytes)) {
            self.mark_node(&node, live)?;
        }
        let items = intent::all(self)?.into_iter().flat_map(|intent| intent.items);
        for node in items.flat_map(|item| [item.before, item.after]).flatten() {
            self.mark_node(&node, live)?;
        }
        Ok(())
    }

    /// Marks the content of a file or a link; a directory's is told by the nodes in it.
    fn mark_node(&self, node: &Node, live: &mut Live) -> Result<(), StoreError> {
        match node.kind {
            tree::NodeKind::Directory => Ok(()),
            tree::NodeKind::File | tree::NodeKind::Symlink => self.mark_content(node.content, node.size, live),
        }
    }

    fn mark_roots(&self, roots: &[(ObjectId, ObjectKind)], live: &mut Live) -> Result<(), StoreError> {
        let mut queue = roots.to_vec();
        while let Some((id, kind)) = queue.pop() {
            if !self.mark(id, live)? {
                continue;
            }
            match kind {
                ObjectKind::Tree => {
                    let tree = self.readable(id)?.and_then(|(_, bytes)| decode_tree(&bytes).ok()).unwrap_or_default();
                    for (_, node) in tree {
                        match node.kind {
                            tree::NodeKind::Directory => queue.push((node.content, ObjectKind::Tree)),
                            _ => self.mark_content(node.content, node.size, live)?,
                        }
                    }
                }
                ObjectKind::Aside => {
                    let aside = self.readable(id)?.and_then(|(_, bytes)| decode_aside(&bytes).ok()).unwrap_or_default();
                    queue.extend(aside.into_iter().filter_map(|entry| Some((entry.child?, ObjectKind::Aside))));
                }
                ObjectKind::Blob | ObjectKind::Rules | ObjectKind::Chunks => {}
            }
        }
        Ok(())
    }

    fn mark_content(&self, id: ObjectId, size: u64, live: &mut Live) -> Result<(), StoreError> {
        if !self.mark(id, live)? || size < limits::CHUNKED_FROM {
            return Ok(());
        }
        // A large file that is a single chunk is stored under one id, as that chunk.
        if let Some((ObjectKind::Chunks, list)) = self.readable(id)? {
            for (chunk, _) in content::chunk_list(id, &list)? {
                self.mark(chunk, live)?;
            }
        }
        Ok(())
    }

    /// Marks an object; returns whether that was news.
    fn mark(&self, id: ObjectId, live: &mut Live) -> Result<bool, StoreError> {
        let news = live.ids.insert(id);
        if news && let Some(at) = self.db().locate(&id)? {
            let paid = !live.records.insert((at.pack, at.offset));
            live.bytes += gc::ROW_BYTES + if paid { 0 } else { u64::from(at.len) };
        }
        Ok(news)
    }
}
