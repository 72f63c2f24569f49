//! The index in its file.
//!
//! The file is a magic number, then groups of blocks, each group closed by a seal. A change appends a group with the
//! blocks that changed; when replaced blocks have piled up the file is written anew. A group without its seal (a crash, or
//! another process's write in progress) does not count. Writers take a lock and give way to whoever has it: an index that
//! is not saved costs only time.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::block::{self, DIRECTORY, SEAL};
use super::{DirectoryId, Index, Seal};
use crate::base::{fault, limits, plain_file};
use crate::store::StoreError;
use crate::store::pack::{replace_file, temporary};

const MAGIC: &[u8; 16] = b"RETAKE INDEX 2\n\0";

/// Bytes that make a thread worth its while, and how many threads at most.
const MIN_SHARE: usize = 1 << 20;
const MAX_SHARES: usize = 4;

/// The index's file.
#[derive(Debug)]
pub(crate) struct IndexFile {
    path: PathBuf,
    /// The file that was read or last written, and how much of it counts: what an append has to fit onto.
    known: Option<(u64, usize)>,
    /// Bytes of blocks that have not been replaced.
    live: usize,
}

impl IndexFile {
    /// Reads the index in `dir`; an empty one when there is none or it cannot be used.
    pub(crate) fn read(dir: &Path) -> (Self, Index, Option<Seal>) {
        let mut file = Self { path: dir.join("index"), known: None, live: 0 };
        match file.try_read() {
            Some((index, seal)) => (file, index, Some(seal)),
            None => (file, Index::default(), None),
        }
    }

    fn try_read(&mut self) -> Option<(Index, Seal)> {
        let file = plain_file::open(&self.path).ok()?;
        let meta = file.metadata().ok()?;
        if meta.len() > limits::MAX_READ {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(meta.len()).ok()?];
        read_in_shares(&file, &mut bytes).ok()?;
        if !bytes.starts_with(MAGIC) {
            return None;
        }
        let mut index = Index::default();
        let mut group: Vec<(DirectoryId, Option<usize>)> = Vec::new();
        let mut offset = MAGIC.len();
        let mut last = None;
        while let Some(frame) = bytes.get(offset..).and_then(block::check_frame) {
            let end = offset + frame.len.get() as usize;
            if frame.what == SEAL {
                last = Some((block::seal(&bytes[offset..end])?, end));
                group.drain(..).for_each(|(id, offset)| index.place_block(id, offset));
            } else {
                group.push((frame.id.get(), (frame.what == DIRECTORY).then_some(offset)));
            }
            offset = end;
        }
        let (seal, sealed) = last?;
        bytes.truncate(sealed);
        index.bytes = bytes;
        index.collect_free();
        self.known = Some((meta.ino(), sealed));
        self.live = index.live_bytes();
        Some((index, seal))
    }

    /// Saves what changed in `index` since it was read or last saved. Does nothing while another process is at it.
    pub(crate) fn save(&mut self, index: &mut Index, seal: &Seal) -> Result<(), StoreError> {
        let Some(_lock) = self.lock()? else { return Ok(()) };
        let mut group = Vec::new();
        index.removed.iter().for_each(|&id| block::put_removed(&mut group, id));
        let mut starts = Vec::with_capacity(index.open.len());
        for (&id, directory) in &index.open {
            starts.push((id, group.len()));
            block::put_directory(&mut group, id, directory);
        }
        block::put_seal(&mut group, seal);
        match self.known {
            Some((ino, sealed)) if sealed + group.len() < 2 * self.live && self.is_current(ino, sealed) => {
                self.append(sealed, &group)?;
                // A crash may have left it. That it is not there is the rule.
                std::fs::remove_file(temporary(&self.path)).ok();
                index.adopt_group(&group, &starts);
                self.known = Some((ino, sealed + group.len()));
            }
            _ => self.rewrite(index, seal)?,
        }
        Ok(())
    }

    fn append(&self, sealed: usize, group: &[u8]) -> Result<(), StoreError> {
        let write = || {
            let file = plain_file::open_with(OpenOptions::new().write(true), &self.path)?;
            fault::step()?;
            file.write_all_at(group, sealed as u64)
        };
        write().map_err(StoreError::io("write", &self.path))
    }

    fn rewrite(&mut self, index: &mut Index, seal: &Seal) -> Result<(), StoreError> {
        let mut bytes = MAGIC.to_vec();
        let mut starts = Vec::new();
        for id in index.ids().collect::<Vec<_>>() {
            starts.push((id, bytes.len()));
            match index.open.get(&id) {
                Some(directory) => block::put_directory(&mut bytes, id, directory),
                None => bytes.extend_from_slice(index.block(id).expect("a listed directory has a block").bytes()),
            }
        }
        self.live = bytes.len();
        block::put_seal(&mut bytes, seal);
        replace_file(&self.path, &bytes)?;
        let meta = self.path.metadata().map_err(StoreError::io("read", &self.path))?;
        self.known = Some((meta.ino(), bytes.len()));
        index.bytes.clear();
        index.adopt_group(&bytes, &starts);
        Ok(())
    }

    /// Whether the file is still the one this process knows, up to its last byte.
    fn is_current(&self, ino: u64, sealed: usize) -> bool {
        self.path.metadata().is_ok_and(|meta| meta.ino() == ino && meta.len() == sealed as u64)
    }

    fn lock(&self) -> Result<Option<File>, StoreError> {
        let path = self.path.with_extension("lock");
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let file = plain_file::open_with(&mut options, &path).map_err(StoreError::io("create", &path))?;
        Ok(file.try_lock().is_ok().then_some(file))
    }
}

/// Fills `bytes` from the beginning of `file`, a share on each thread: touching fresh memory takes longer than the read.
fn read_in_shares(file: &File, bytes: &mut [u8]) -> std::io::Result<()> {
    std::thread::scope(|scope| {
        let share = bytes.len().div_ceil(MAX_SHARES).max(MIN_SHARE);
        let mut shares = bytes.chunks_mut(share).zip((0..).step_by(share));
        let own = shares.next();
        let others: Vec<_> =
            shares.map(|(share, offset)| scope.spawn(move || file.read_exact_at(share, offset))).collect();
        own.map_or(Ok(()), |(share, offset)| file.read_exact_at(share, offset))?;
        others.into_iter().try_for_each(|thread| thread.join().expect("reading does not panic"))
    })
}
