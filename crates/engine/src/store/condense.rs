//! Compressing a segment's objects as well as they can be: small ones together with those that are like them, large ones alone.

use std::collections::{HashMap, HashSet};
use std::thread;

use super::bundle::{self, Bundle, Part};
use super::compact::{Source, Stopped, Stored, Target};
use super::tree::{self, decode_aside, decode_tree};
use super::{Effort, ObjectKind, Store, StoreError, gc, record};
use crate::base::id::ObjectId;
use crate::base::path::join;

/// Plain bytes that are compressed at a time, on all threads.
const PORTION: usize = 16 << 20;

/// Where objects belong, so that those that are alike are neighbours: directories first, then contents, both by path and from the
/// newest version to the oldest.
pub(super) type Order = HashMap<ObjectId, (ObjectKind, Vec<u8>, usize)>;

/// What becomes a record.
enum Piece {
    /// Many objects.
    Together(Vec<Part>),
    /// A large one.
    Alone(Part),
    /// What cannot be read stays as it is: so it can still be told what happened to it.
    AsItIs(Vec<ObjectId>, Vec<u8>),
}

/// Compresses everything in `stored` into `target`.
pub(super) fn condense(
    source: &Source,
    stored: &[Stored],
    order: &Order,
    threads: usize,
    target: &mut Target<'_>,
) -> Result<Option<Stopped>, StoreError> {
    let mut objects: Vec<(ObjectId, &Stored)> =
        stored.iter().flat_map(|stored| stored.ids.iter().map(move |id| (*id, stored))).collect();
    objects.sort_by_cached_key(|(id, _)| order.get(id).map(|(kind, path, age)| (*kind as u8, path.clone(), *age)));
    let mut opened = Opened::default();
    let (mut pieces, mut together) = (Vec::new(), Vec::new());
    let (mut waiting, mut small) = (0, 0);
    for (id, stored) in objects {
        match opened.open(source, stored, id)? {
            Some(Piece::Alone(part)) if part.2.len() <= bundle::LARGEST => {
                small += part.2.len();
                together.push(part);
            }
            Some(piece) => {
                waiting += piece.len();
                pieces.push(piece);
            }
            None => {}
        }
        if small >= bundle::FULL {
            waiting += small;
            small = 0;
            pieces.push(Piece::Together(std::mem::take(&mut together)));
        }
        if waiting >= PORTION {
            waiting = 0;
            if target.is_cancelled() {
                return Ok(Some(Stopped));
            }
            take(&mut pieces, threads, target)?;
        }
    }
    if !together.is_empty() {
        pieces.push(Piece::Together(together));
    }
    take(&mut pieces, threads, target)?;
    Ok(None)
}

/// Compresses `pieces` and hands them to `target`.
fn take(pieces: &mut Vec<Piece>, threads: usize, target: &mut Target<'_>) -> Result<(), StoreError> {
    let share = pieces.len().div_ceil(threads.max(1)).max(1);
    let records: Vec<Vec<u8>> = thread::scope(|scope| {
        let parts: Vec<_> = pieces
            .chunks(share)
            .map(|part| scope.spawn(move || part.iter().map(Piece::encode).collect::<Vec<_>>()))
            .collect();
        parts.into_iter().flat_map(|part| part.join().expect("compressing does not panic")).collect()
    });
    for (piece, record) in pieces.drain(..).zip(records) {
        target.take(&piece.ids(), &record)?;
    }
    Ok(())
}

impl Piece {
    fn len(&self) -> usize {
        match self {
            Self::Together(parts) => parts.iter().map(|(.., plain)| plain.len()).sum(),
            Self::Alone((.., plain)) | Self::AsItIs(_, plain) => plain.len(),
        }
    }

    fn ids(&self) -> Vec<ObjectId> {
        match self {
            Self::Together(parts) => parts.iter().map(|(id, ..)| *id).collect(),
            Self::Alone((id, ..)) => vec![*id],
            Self::AsItIs(ids, _) => ids.clone(),
        }
    }

    fn encode(&self) -> Vec<u8> {
        match self {
            Self::Together(parts) if parts.len() > 1 => bundle::encode(parts),
            Self::Together(parts) => {
                let (id, kind, plain) = &parts[0];
                record::encode(*kind, *id, plain, Effort::Dense)
            }
            Self::Alone((id, kind, plain)) => record::encode(*kind, *id, plain, Effort::Dense),
            Self::AsItIs(_, record) => record.clone(),
        }
    }
}

/// Bundles that were opened; objects of one come close together.
#[derive(Default)]
struct Opened {
    bundles: Vec<(u64, Bundle)>,
    /// Records that went as they are.
    gone: HashSet<u64>,
}

impl Opened {
    /// What to do with object `id` of `stored`; `None` if it went with others.
    fn open(&mut self, source: &Source, stored: &Stored, id: ObjectId) -> Result<Option<Piece>, StoreError> {
        let at = stored.at;
        if self.gone.contains(&at.offset) {
            return Ok(None);
        }
        if let Some((_, bundle)) = self.bundles.iter().find(|(offset, _)| *offset == at.offset)
            && let Ok((kind, plain)) = bundle.get(id)
        {
            return Ok(Some(Piece::Alone((id, kind, plain))));
        }
        let bytes = source.read(at.offset, at.len as usize)?;
        let header = record::header(&bytes).map(|(header, _)| header);
        let object = match header {
            // Nothing would come of doing it again.
            Ok(header) if header.is_dense() && !header.is_bundle() && !header.is_small() => None,
            Ok(header) if header.is_bundle() => self.open_bundle(at.offset, &bytes, id),
            _ => record::decode(&bytes, id).ok(),
        };
        Ok(Some(match object {
            Some((kind, plain)) => Piece::Alone((id, kind, plain)),
            None => {
                self.gone.insert(at.offset);
                Piece::AsItIs(stored.ids.clone(), bytes)
            }
        }))
    }

    fn open_bundle(&mut self, offset: u64, bytes: &[u8], id: ObjectId) -> Option<(ObjectKind, Vec<u8>)> {
        let bundle = bundle::decode(bytes).ok()?;
        let object = bundle.get(id).ok()?;
        if self.bundles.len() == super::OPEN_BUNDLES {
            self.bundles.remove(0);
        }
        self.bundles.push((offset, bundle));
        Some(object)
    }
}

impl Store {
    /// Where everything that checkpoints hold belongs.
    pub(super) fn find_order(&self) -> Result<Order, StoreError> {
        let mut order = Order::new();
        let mut queue = Vec::new();
        let checkpoints: Vec<Vec<(ObjectId, ObjectKind)>> = self.db().read(|connection| {
            let sql = format!("SELECT {} FROM checkpoints ORDER BY seq DESC", gc::ROOTS);
            connection.prepare(&sql)?.query_map([], gc::roots)?.collect()
        })?;
        for roots in checkpoints {
            queue.extend(roots.into_iter().map(|(id, kind)| (id, kind, Vec::new())));
            while let Some((id, kind, path)) = queue.pop() {
                let age = order.len();
                if order.contains_key(&id) {
                    continue;
                }
                let bytes = match kind {
                    ObjectKind::Tree | ObjectKind::Aside => {
                        self.readable(id)?.map(|(_, bytes)| bytes).unwrap_or_default()
                    }
                    ObjectKind::Blob | ObjectKind::Rules | ObjectKind::Chunks => Vec::new(),
                };
                match kind {
                    ObjectKind::Tree => {
                        for (name, node) in decode_tree(&bytes).unwrap_or_default() {
                            let kind = if node.kind == tree::NodeKind::Directory {
                                ObjectKind::Tree
                            } else {
                                ObjectKind::Blob
                            };
                            queue.push((node.content, kind, join(&path, &name)));
                        }
                    }
                    ObjectKind::Aside => {
                        let below = decode_aside(&bytes).unwrap_or_default().into_iter();
                        queue.extend(
                            below.filter_map(|entry| Some((entry.child?, ObjectKind::Aside, join(&path, &entry.name)))),
                        );
                    }
                    ObjectKind::Blob | ObjectKind::Rules | ObjectKind::Chunks => {}
                }
                order.insert(id, (kind, path, age));
            }
        }
        Ok(order)
    }
}
