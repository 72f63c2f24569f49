//! Files of any size in and out of the store.
//!
//! Small files are one object. Large ones are cut where their content says so, each chunk an object, and a list of chunks
//! stands for the whole under the id of the whole: how a file is stored never shows in its id. No file is held in memory
//! whole once it is chunked.

use std::io::{self, Read, Write};

use fastcdc::v2020::StreamCDC;

use super::error::StoreError;
use super::{Batch, ObjectKind, Store};
use crate::base::id::ObjectId;
use crate::base::limits;

/// Bytes of an entry in a chunk list: the chunk's id and its length.
const CHUNK_ENTRY: usize = 36;

/// Reading the source failed, or storing what was read.
#[derive(Debug)]
pub(crate) enum PutError {
    /// The source could not be read; why does not matter, it is a gap.
    Read,
    /// The store could not take it.
    Store(StoreError),
}

impl From<StoreError> for PutError {
    fn from(err: StoreError) -> Self {
        Self::Store(err)
    }
}

impl Batch<'_> {
    /// Stores what `source` yields in chunks; returns the id and the length of the whole.
    pub(crate) fn put_chunked(&self, source: &mut dyn Read) -> Result<(ObjectId, u64), PutError> {
        let (min, average, max) = limits::CHUNK_SIZES;
        let mut whole = blake3::Hasher::new();
        let mut list = Vec::new();
        let mut total = 0;
        for chunk in StreamCDC::new(source, min, average, max) {
            let data = chunk.map_err(|_| PutError::Read)?.data;
            let id = ObjectId::of(&data);
            self.put(ObjectKind::Blob, id, &data)?;
            whole.update(&data);
            total += data.len() as u64;
            list.extend_from_slice(id.as_bytes());
            list.extend_from_slice(&u32::try_from(data.len()).expect("at most the largest chunk").to_le_bytes());
        }
        let id = ObjectId::from_bytes(*whole.finalize().as_bytes());
        self.put(ObjectKind::Chunks, id, &list)?;
        Ok((id, total))
    }
}

impl Store {
    /// Whether the content `id` of `size` bytes is stored with all its chunks, as far as is known without reading them.
    pub(crate) fn contains_content(&self, id: ObjectId, size: u64) -> Result<bool, StoreError> {
        if !self.contains(&id)? {
            return Ok(false);
        }
        if size < limits::CHUNKED_FROM {
            return Ok(true);
        }
        let list = match self.read(id) {
            Ok((ObjectKind::Chunks, list)) => list,
            Ok(_) => return Ok(true),
            Err(StoreError::Damaged { .. } | StoreError::Missing { .. }) => return Ok(false),
            Err(err) => return Err(err),
        };
        for (chunk, _) in chunk_list(id, &list)? {
            if !self.contains(&chunk)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Writes the content `id` to `out`, verified as it goes; an error may leave a part written.
    pub(crate) fn copy_content(&self, id: ObjectId, out: &mut dyn Write) -> Result<(), CopyError> {
        let (kind, bytes) = self.read(id)?;
        if kind != ObjectKind::Chunks {
            return Ok(out.write_all(&bytes)?);
        }
        let mut whole = blake3::Hasher::new();
        for (chunk, _) in chunk_list(id, &bytes)? {
            let (_, data) = self.read(chunk)?;
            whole.update(&data);
            out.write_all(&data)?;
        }
        if whole.finalize().as_bytes() != id.as_bytes() {
            return Err(StoreError::Malformed { id, expected: "list of chunks" }.into());
        }
        Ok(())
    }
}

/// The chunks in a list.
pub(crate) fn chunk_list(id: ObjectId, bytes: &[u8]) -> Result<impl Iterator<Item = (ObjectId, u32)>, StoreError> {
    if !bytes.len().is_multiple_of(CHUNK_ENTRY) {
        return Err(StoreError::Malformed { id, expected: "list of chunks" });
    }
    Ok(bytes.chunks_exact(CHUNK_ENTRY).map(|entry| {
        let (id, len) = entry.split_at(32);
        let id = ObjectId::from_bytes(id.try_into().expect("32 bytes"));
        (id, u32::from_le_bytes(len.try_into().expect("4 bytes")))
    }))
}

/// Content could not be copied out.
#[derive(Debug)]
pub(crate) enum CopyError {
    /// The store's side.
    Store(StoreError),
    /// The receiver's side.
    Write(io::Error),
}

impl From<StoreError> for CopyError {
    fn from(err: StoreError) -> Self {
        Self::Store(err)
    }
}

impl From<io::Error> for CopyError {
    fn from(err: io::Error) -> Self {
        Self::Write(err)
    }
}
