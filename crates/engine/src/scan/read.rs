//! Step three of a scan: files that are new, changed or racy are read and hashed.
//!
//! Runs on all threads, a slice of files at a time, so that between slices what was read can be made permanent: a first
//! snapshot that is cancelled or killed goes on where it stopped.

use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FileType, fstat};
use rustix::io::Errno;

use super::index::{DirectoryId, EntryKind};
use super::lease::{self, Writers};
use super::rules::Rules;
use super::stat::{Facts, file_clock, seen};
use super::{ScanError, Scanner, Sink, open};
use crate::base::id::ObjectId;
use crate::base::limits;
use crate::base::path::join;
use crate::base::progress::{Phase, Progress, Step};
use crate::store::tree::GapKind;
use crate::store::{ObjectKind, PutError, StoreError, lock};

/// Files between two pauses.
const SLICE: usize = 8_192;
/// An index is saved in mid-scan when that much time has passed.
const SAVE_EVERY: Duration = Duration::from_secs(10);

/// Files that changed in this time are checked for writers.
const RECENT_NS: i64 = 60_000_000_000;

/// A file to read: its directory and its place there.
type Task = (DirectoryId, usize);

/// What came of reading a path.
#[derive(Clone, Copy, Debug)]
enum Outcome {
    Read { content: ObjectId, facts: Facts, unsettled: bool, attributes: bool },
    Gap(GapKind),
    Gone,
}

impl Scanner {
    /// Reads everything that is marked unsettled.
    pub(super) fn read(&mut self, rules: &Rules, sink: &dyn Sink, progress: &dyn Progress) -> Result<(), ScanError> {
        let tasks = self.tasks();
        let total = tasks.len() as u64;
        let done = AtomicU64::new(0);
        let mut saved = Instant::now();
        let mut gone = Vec::new();
        for slice in tasks.chunks(SLICE) {
            let (outcomes, error) = self.read_slice(slice, rules, sink, progress, &done, total);
            for (task, outcome) in outcomes {
                self.apply(task, outcome, &mut gone);
            }
            let stopping = error.is_some() || progress.cancelled();
            if (stopping || saved.elapsed() > SAVE_EVERY)
                && let Some(counters) = sink.pause()?
            {
                self.save(counters)?;
                // Saving closes all directories, and the rest of this scan needs those it has begun to change.
                self.index.open_stale();
                saved = Instant::now();
            }
            if let Some(error) = error {
                return Err(error.into());
            }
            if progress.cancelled() {
                return Err(ScanError::Cancelled);
            }
        }
        self.drop_gone(gone);
        Ok(())
    }

    /// Everything to be read, in an order that is kind to the disk.
    fn tasks(&self) -> Vec<Task> {
        let mut tasks: Vec<Task> = Vec::new();
        for (&id, directory) in &self.index.open {
            let reads = directory
                .entries
                .iter()
                .enumerate()
                .filter(|(_, entry)| entry.unsettled && matches!(entry.kind, EntryKind::File | EntryKind::Symlink));
            tasks.extend(reads.map(|(position, _)| (id, position)));
        }
        tasks.sort_unstable();
        tasks
    }

    fn read_slice(
        &self,
        tasks: &[Task],
        rules: &Rules,
        sink: &dyn Sink,
        progress: &dyn Progress,
        done: &AtomicU64,
        total: u64,
    ) -> (Vec<(Task, Outcome)>, Option<StoreError>) {
        let next = AtomicUsize::new(0);
        let failure: Mutex<Option<StoreError>> = Mutex::new(None);
        let read = || {
            let mut outcomes = Vec::new();
            let mut last = LastDirectory::default();
            let mut buffer = Vec::new();
            while !progress.cancelled() && lock(&failure).is_none() {
                let Some(&task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                match self.read_task(task, rules, sink, &mut last, &mut buffer) {
                    Ok(outcome) => {
                        if let Outcome::Read { facts, .. } = &outcome {
                            progress.took_in(facts.size);
                        }
                        outcomes.push((task, outcome));
                    }
                    Err(error) => *lock(&failure) = Some(error),
                }
                let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                progress.report(Step { phase: Phase::Reading, done, total: Some(total) });
            }
            outcomes
        };
        // Reading waits for the disk more than it computes.
        let threads = (self.threads * limits::READERS_PER_CORE).min(tasks.len().div_ceil(4)).max(1);
        let outcomes = std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(read)).collect();
            let mut outcomes = read();
            for thread in others {
                outcomes.extend(thread.join().expect("reading does not panic"));
            }
            outcomes
        });
        (outcomes, failure.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    fn read_task(
        &self,
        (id, position): Task,
        rules: &Rules,
        sink: &dyn Sink,
        last: &mut LastDirectory,
        buffer: &mut Vec<u8>,
    ) -> Result<Outcome, StoreError> {
        let directory = &self.index.open[&id];
        let entry = &directory.entries[position];
        let fd = match last.open(self.root(), id, &directory.path) {
            Ok(fd) => fd,
            Err(err) => return Ok(refused(err)),
        };
        if entry.kind == EntryKind::Symlink {
            return self.read_link(fd, &entry.name, sink);
        }
        let declared = rules.has_declared() && rules.is_declared(&join(&directory.path, &entry.name));
        let limit = if declared { u64::MAX } else { rules.max_file };
        self.read_file(fd, &entry.name, entry.facts, limit, sink, buffer)
    }

    /// Reads a file that last looked like `expected`. What it looks like afterwards must be the same, else it is read
    /// again.
    fn read_file(
        &self,
        directory: BorrowedFd<'_>,
        name: &[u8],
        mut expected: Facts,
        limit: u64,
        sink: &dyn Sink,
        buffer: &mut Vec<u8>,
    ) -> Result<Outcome, StoreError> {
        let mut verified = None;
        for _ in 0..limits::READ_ATTEMPTS {
            let examined = file_clock();
            let mut file = match open::child(directory, name) {
                Ok(file) => file,
                Err(err) => return Ok(refused(err)),
            };
            // A write that has been under way for longer than that is not to be expected.
            let recent = examined.saturating_sub(expected.ctime) < RECENT_NS;
            let undisturbed = !recent || lease::writers(&file) == Writers::None;
            let content = match read_content(&mut file, expected.size.min(limit), sink, buffer) {
                Ok(content) => content,
                Err(PutError::Read) => return Ok(Outcome::Gap(GapKind::Unreadable)),
                Err(PutError::Store(err)) => return Err(err),
            };
            let Ok(after) = fstat(&file).map(|stat| seen(&stat).facts) else {
                return Ok(Outcome::Gap(GapKind::Unreadable));
            };
            if after.file_type() != FileType::RegularFile {
                return Ok(Outcome::Gone);
            }
            if after.size > limit {
                return Ok(Outcome::Gap(GapKind::TooLarge));
            }
            let same = after == std::mem::replace(&mut expected, after);
            let Some(content) = content.filter(|_| same) else { continue };
            let unsettled = self.trust.is_racy(after.ctime, examined);
            let undisturbed = undisturbed && (!recent || lease::writers(&file) == Writers::None);
            // Where two writes can share a timestamp, or one may be under way, equal times prove nothing: read it twice.
            let doubtful = unsettled && !self.trust.fine_grained || !undisturbed;
            if doubtful && verified != Some((content, after)) {
                verified = Some((content, after));
                self.trust.wait_until_settled(after.ctime);
                continue;
            }
            return Ok(Outcome::Read { content, facts: after, unsettled, attributes: has_attributes(&file) });
        }
        Ok(Outcome::Gap(GapKind::Unstable))
    }

    fn read_link(&self, directory: BorrowedFd<'_>, name: &[u8], sink: &dyn Sink) -> Result<Outcome, StoreError> {
        let examined = file_clock();
        let target = rustix::fs::readlinkat(directory, name, Vec::new());
        let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
        let (Ok(target), Ok(stat)) = (target, stat) else { return Ok(Outcome::Gone) };
        let mut facts = seen(&stat).facts;
        facts.size = target.as_bytes().len() as u64;
        let content = ObjectId::of(target.as_bytes());
        sink.put(ObjectKind::Blob, content, target.as_bytes())?;
        let unsettled = self.trust.is_racy(facts.ctime, examined);
        Ok(Outcome::Read { content, facts, unsettled, attributes: false })
    }

    fn apply(&mut self, (id, position): Task, outcome: Outcome, gone: &mut Vec<Task>) {
        let directory = self.index.open.get_mut(&id).expect("tasks come from open directories");
        let entry = &mut directory.entries[position];
        directory.flags.stale = true;
        entry.gaps &= !(GapKind::ExtendedAttributes.bit());
        match outcome {
            Outcome::Read { content, facts, unsettled, attributes } => {
                entry.content = content;
                entry.facts = facts;
                entry.unsettled = unsettled;
                entry.unread = false;
                if attributes {
                    entry.gaps |= GapKind::ExtendedAttributes.bit();
                }
            }
            Outcome::Gap(kind) => {
                entry.kind = EntryKind::Gap;
                entry.gaps |= kind.bit();
                entry.unsettled = true;
                entry.unread = true;
            }
            Outcome::Gone => gone.push((id, position)),
        }
    }

    /// Takes out what vanished between listing and reading; its directory is listed again next time.
    fn drop_gone(&mut self, mut gone: Vec<Task>) {
        gone.sort_unstable();
        for (id, position) in gone.into_iter().rev() {
            let directory = self.index.open(id).expect("a task's directory exists");
            directory.entries.remove(position);
            directory.flags.unsettled = true;
        }
    }
}

/// The directory of the last file: the next one is most likely there too.
#[derive(Debug, Default)]
struct LastDirectory(Option<(DirectoryId, OwnedFd)>);

impl LastDirectory {
    fn open(&mut self, root: BorrowedFd<'_>, id: DirectoryId, path: &[u8]) -> Result<BorrowedFd<'_>, Errno> {
        if self.0.as_ref().is_none_or(|(last, _)| *last != id) {
            self.0 = Some((id, open::directory(root, path)?));
        }
        Ok(self.0.as_ref().expect("just made sure of it").1.as_fd())
    }
}

/// Reads and stores a file's content; `None` if it was not as long as it should be.
fn read_content(
    file: &mut std::fs::File,
    size: u64,
    sink: &dyn Sink,
    buffer: &mut Vec<u8>,
) -> Result<Option<ObjectId>, PutError> {
    if size >= limits::CHUNKED_FROM {
        // One byte more than expected: growth shows, and a file that never stops growing is not read for ever.
        let (content, len) = sink.put_large(&mut file.take(size.saturating_add(1)))?;
        return Ok((len == size).then_some(content));
    }
    // One byte more than expected: a short read is the end of the file, and growth shows.
    let wanted = usize::try_from(size).expect("smaller than a chunked file") + 1;
    buffer.resize(wanted, 0);
    let mut len = 0;
    loop {
        match file.read(&mut buffer[len..]) {
            Ok(0) => break,
            Ok(read) if len + read == wanted => return Ok(None),
            Ok(read) => {
                len += read;
                // The system returns less than asked for only at the end, or when interrupted.
                if len as u64 == size {
                    break;
                }
            }
            Err(err) if err.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return Err(PutError::Read),
        }
    }
    buffer.truncate(len);
    if len as u64 != size {
        return Ok(None);
    }
    let content = ObjectId::of(buffer);
    sink.put(ObjectKind::Blob, content, buffer)?;
    Ok(Some(content))
}

fn refused(err: Errno) -> Outcome {
    match err {
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO => Outcome::Gone,
        _ => Outcome::Gap(GapKind::Unreadable),
    }
}

/// Whether a file has extended attributes beyond the labels that the system puts on by itself.
fn has_attributes(file: impl AsFd) -> bool {
    const BY_SYSTEM: [&[u8]; 3] = [b"security.selinux", b"security.ima", b"security.evm"];
    let mut list = [0; 4096];
    match rustix::fs::flistxattr(file, &mut list) {
        Ok(0) => false,
        Ok(len) => list[..len].split(|&b| b == 0).any(|name| !name.is_empty() && !BY_SYSTEM.contains(&name)),
        Err(err) => err == Errno::RANGE,
    }
}
