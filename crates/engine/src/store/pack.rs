//! Pack segments: append-only files of records.
//!
//! A process appends only to a segment whose file lock it holds, and adopts a free one rather than start another. What
//! lies beyond the committed length (a row of the database) belongs to nobody: the next adopter cuts it off. Reading
//! needs no lock. Which object is where is the database's business.

use std::cell::Cell;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::error::StoreError;
use super::record;
use crate::base::{fault, limits, plain_file};

const MAGIC: &[u8; 8] = b"RETAKEPK";
const VERSION: u32 = 1;
pub(crate) const SEGMENT_HEADER: u64 = 16;

/// Identifies a segment; its file name.
pub(crate) type SegmentId = u32;

/// The file of segment `id` in `packs`.
pub(crate) fn segment_path(packs: &Path, id: SegmentId) -> PathBuf {
    packs.join(format!("{id:08}.pack"))
}

/// The segments in `packs`, oldest first.
pub(crate) fn segments(packs: &Path) -> Result<Vec<SegmentId>, StoreError> {
    let mut ids = Vec::new();
    for entry in packs.read_dir().map_err(StoreError::io("list", packs))? {
        let entry = entry.map_err(StoreError::io("list", packs))?;
        let name = entry.file_name();
        let id =
            name.to_str().and_then(|name| name.strip_suffix(".pack")).and_then(|stem| stem.parse::<SegmentId>().ok());
        ids.extend(id);
    }
    ids.sort_unstable();
    Ok(ids)
}

/// A segment this process may append to.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) id: SegmentId,
    path: PathBuf,
    file: File,
    /// Everything up to here is in the file or in `buffer`.
    end: u64,
    buffer: Vec<u8>,
    /// Whether its name in the directory survives power loss.
    name_synced: Cell<bool>,
}

impl Segment {
    /// Locks a free segment that has room, if there is one. `lengths` tells how much of a segment is committed and synced.
    pub(crate) fn acquire(
        packs: &Path,
        lengths: impl Fn(SegmentId) -> Result<Option<(u64, u64)>, StoreError>,
    ) -> Result<Option<Self>, StoreError> {
        let existing = segments(packs)?;
        for &id in existing.iter().rev() {
            if let Some(segment) = Self::adopt(packs, id, &lengths)? {
                return Ok(Some(segment));
            }
        }
        Ok(None)
    }

    /// Starts a segment of its own, with a number above `last`.
    pub(crate) fn start_new(packs: &Path, last: SegmentId) -> Result<Self, StoreError> {
        let mut id = segments(packs)?.last().map_or(last, |newest| last.max(*newest)) + 1;
        loop {
            if let Some(segment) = Self::start(packs, id)? {
                return Ok(segment);
            }
            id += 1;
        }
    }

    fn adopt(
        packs: &Path,
        id: SegmentId,
        lengths: impl Fn(SegmentId) -> Result<Option<(u64, u64)>, StoreError>,
    ) -> Result<Option<Self>, StoreError> {
        let Some((file, path)) = lock_segment(packs, id)? else { return Ok(None) };
        let len = file.metadata().map_err(StoreError::io("read", &path))?.len();
        let (committed, synced) = lengths(id)?.unwrap_or_default();
        let end = committed.max(SEGMENT_HEADER);
        // A segment that has grown enough, or that lost bytes it should have, takes no more.
        if end > limits::SEGMENT_BYTES || len < end && end > SEGMENT_HEADER {
            return Ok(None);
        }
        // None of its bytes count as synced before its name is.
        let mut segment = Self { id, path, file, end, buffer: Vec::new(), name_synced: Cell::new(synced > 0) };
        if end == SEGMENT_HEADER {
            segment.write_header()?;
        }
        if len > end {
            segment.truncate(end)?;
        }
        Ok(Some(segment))
    }

    fn start(packs: &Path, id: SegmentId) -> Result<Option<Self>, StoreError> {
        let path = segment_path(packs, id);
        fault::step().map_err(StoreError::io("create", &path))?;
        let file = match OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path) {
            Ok(file) => file,
            Err(err) if err.kind() == std::io::ErrorKind::AlreadyExists => return Ok(None),
            Err(err) => return Err(StoreError::io("create", &path)(err)),
        };
        if file.try_lock().is_err() {
            return Ok(None);
        }
        let name_synced = Cell::new(false);
        let mut segment = Self { id, path, file, end: SEGMENT_HEADER, buffer: Vec::new(), name_synced };
        segment.write_header()?;
        Ok(Some(segment))
    }

    fn write_header(&mut self) -> Result<(), StoreError> {
        let mut header = [0; SEGMENT_HEADER as usize];
        header[..8].copy_from_slice(MAGIC);
        header[8..12].copy_from_slice(&VERSION.to_le_bytes());
        fault::step().and_then(|()| self.file.write_all_at(&header, 0)).map_err(StoreError::io("write", &self.path))
    }

    /// Where the next record goes.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Whether it still is a file of the store: whoever owns the store may have rewritten it.
    pub(crate) fn is_linked(&self) -> bool {
        self.file.metadata().is_ok_and(|meta| meta.nlink() > 0)
    }

    /// Removes the file; nothing may have been committed to it.
    pub(crate) fn remove(self) -> Result<(), StoreError> {
        fault::step().and_then(|()| std::fs::remove_file(&self.path)).map_err(StoreError::io("remove", &self.path))
    }

    pub(crate) fn has_room(&self) -> bool {
        self.end < limits::SEGMENT_BYTES
    }

    /// Takes `record` and returns its offset. It is in the file after [`flush`](Self::flush) at the latest.
    pub(crate) fn append(&mut self, record: &[u8]) -> Result<u64, StoreError> {
        let offset = self.end;
        self.buffer.extend_from_slice(record);
        self.end += record.len() as u64;
        if self.buffer.len() >= limits::WRITE_BUFFER {
            self.flush()?;
        }
        Ok(offset)
    }

    /// Hands all records to the system: they survive this process from here on.
    pub(crate) fn flush(&mut self) -> Result<(), StoreError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let start = self.end - self.buffer.len() as u64;
        fault::step()
            .and_then(|()| self.file.write_all_at(&self.buffer, start))
            .map_err(StoreError::io("write", &self.path))?;
        self.buffer.clear();
        Ok(())
    }

    /// Waits until everything flushed survives power loss.
    pub(crate) fn sync(&self) -> Result<(), StoreError> {
        fault::step().and_then(|()| self.file.sync_data()).map_err(StoreError::io("sync", &self.path))?;
        if !self.name_synced.get() {
            sync_names(self.path.parent().expect("a segment is in a directory"))?;
            self.name_synced.set(true);
        }
        Ok(())
    }

    /// Forgets everything after `end`: records whose rows will not be committed.
    pub(crate) fn truncate(&mut self, end: u64) -> Result<(), StoreError> {
        self.buffer.clear();
        self.end = end;
        fault::step().and_then(|()| self.file.set_len(end)).map_err(StoreError::io("truncate", &self.path))
    }
}

/// Waits until the names of all segments in `packs` survive power loss: to sync a file does not promise that it can be found again.
pub(crate) fn sync_names(packs: &Path) -> Result<(), StoreError> {
    fault::step().and_then(|()| File::open(packs)?.sync_all()).map_err(StoreError::io("sync", packs))
}

/// Checks the records between `from` and `to`; returns where the sound part ends. A disk that does not let itself be read is an
/// error: what it holds may be sound.
pub(crate) fn sound_until(file: &File, from: u64, to: u64) -> std::io::Result<u64> {
    let mut offset = from.max(SEGMENT_HEADER);
    while offset < to {
        let Some(head) = read_if_there(file, offset, record::HEADER_LEN)? else { break };
        let Ok((_, len)) = record::header(&head) else { break };
        if len as u64 > to - offset {
            break;
        }
        match read_if_there(file, offset, len)? {
            Some(bytes) if record::check(&bytes).is_ok() => offset += len as u64,
            _ => break,
        }
    }
    Ok(offset)
}

/// Like [`read_record`]; `None` where the file ends before the record does.
fn read_if_there(file: &File, offset: u64, len: usize) -> std::io::Result<Option<Vec<u8>>> {
    match read_record(file, offset, len) {
        Err(err) if err.kind() == std::io::ErrorKind::UnexpectedEof => Ok(None),
        read => read.map(Some),
    }
}

/// Opens segment `id`; `None` when it is gone.
pub(crate) fn open_segment(packs: &Path, id: SegmentId) -> Result<Option<(File, PathBuf)>, StoreError> {
    let path = segment_path(packs, id);
    match plain_file::open_with(OpenOptions::new().read(true).write(true), &path) {
        Ok(file) => Ok(Some((file, path))),
        Err(err) if err.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(err) => Err(StoreError::io("open", &path)(err)),
    }
}

/// Opens and locks segment `id`; `None` when another process has it or it is gone.
pub(crate) fn lock_segment(packs: &Path, id: SegmentId) -> Result<Option<(File, PathBuf)>, StoreError> {
    let Some((file, path)) = open_segment(packs, id)? else { return Ok(None) };
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(err)) => return Err(StoreError::io("lock", &path)(err)),
    }
    // Between open and lock a clean-up may have removed the file.
    let linked = file.metadata().map_err(StoreError::io("read", &path))?.nlink() > 0;
    Ok(linked.then_some((file, path)))
}

/// Reads the `len` bytes of a record at `offset`.
pub(crate) fn read_record(file: &File, offset: u64, len: usize) -> std::io::Result<Vec<u8>> {
    fault::step()?;
    // A row of the database says how long it is: more than there is must not be asked for.
    let there = file.metadata()?.len().saturating_sub(offset);
    if len as u64 > there.min(limits::MAX_OBJECT + record::HEADER_LEN as u64) {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    let mut bytes = vec![0; len];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}

/// Checks a segment's header.
pub(crate) fn check_header(file: &File) -> Result<(), record::Torn> {
    let mut header = [0; SEGMENT_HEADER as usize];
    file.read_exact_at(&mut header, 0).map_err(|_| record::Torn("the segment is cut short"))?;
    if &header[..8] != MAGIC {
        return Err(record::Torn("the segment's header is damaged"));
    }
    if header[8..12] != VERSION.to_le_bytes() {
        return Err(record::Torn("the segment's format is unknown"));
    }
    Ok(())
}

/// Writes `bytes` to a new private file at `path` in place of any old one; readers see the old or the new one whole. Only
/// one process at a time may do this to a file.
pub(crate) fn replace_file(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let temp = temporary(path);
    let write = || {
        fault::step()?;
        let mut options = OpenOptions::new();
        let mut file = plain_file::open_with(options.write(true).create(true).truncate(true).mode(0o600), &temp)?;
        fault::step()?;
        file.write_all(bytes)?;
        fault::step()?;
        std::fs::rename(&temp, path)
    };
    write().map_err(|err| {
        // On a full disk even this little counts. If it cannot be removed now, the next writer does.
        std::fs::remove_file(&temp).ok();
        StoreError::io("write", path)(err)
    })
}

/// The name that [`replace_file`] writes under at first.
pub(crate) fn temporary(path: &Path) -> PathBuf {
    path.with_extension("new")
}
