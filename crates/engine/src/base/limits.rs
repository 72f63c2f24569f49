//! Named limits: whatever grows has one.

/// Files of at least this size are stored in chunks, so that a small change stores little.
pub const CHUNKED_FROM: u64 = 1 << 20;
/// Smallest, average and largest chunk.
pub const CHUNK_SIZES: (usize, usize, usize) = (64 << 10, 256 << 10, 1 << 20);
/// A pack segment that has grown beyond this is not appended to any more.
pub const SEGMENT_BYTES: u64 = 256 << 20;
/// Bytes of records collected before they are written to a segment.
pub const WRITE_BUFFER: usize = 1 << 20;
/// Bytes in one batch from which on time counts for more than room: far more than a turn writes, far less than a first
/// snapshot.
pub const QUICK_FROM: u64 = 8 << 20;
/// Threads that look at paths, for each core: measured, the kernel serves twice as many sooner.
pub const EXAMINERS_PER_CORE: usize = 2;
/// Threads that read files, for each core: they wait for the disk more than they compute.
pub const READERS_PER_CORE: usize = 4;
/// How often a file that changes under our eyes is read again before it becomes a gap.
pub const READ_ATTEMPTS: u32 = 5;
/// Ignore files beyond this size are taken as having no rules.
pub const MAX_RULE_FILE: u64 = 1 << 20;
/// Largest file of the store, or of git, that is read whole.
pub const MAX_READ: u64 = 1 << 30;
/// Largest object, and so the most that a record may claim to hold: the tree of a directory with millions of long names fits.
pub const MAX_OBJECT: u64 = 1 << 30;
/// Most directories that an index may number: a number beyond is damage.
pub const MAX_DIRECTORIES: u32 = 1 << 24;
/// Longest path that a git index may name.
pub const MAX_TRACKED_PATH: usize = 4096;
/// Longest label.
pub const MAX_LABEL: usize = 1000;
/// How long a process waits for another one's database transaction.
pub const BUSY_MS: u64 = 30_000;
/// Share of the user's inotify watches that one workspace may take.
pub const WATCH_SHARE: f64 = 0.5;
/// Largest file that is merged.
pub const MAX_MERGE: u64 = 1 << 20;
/// Fewest digits by which an id can be named.
pub const MIN_ID_DIGITS: usize = 4;
/// How often, and with what pause, a session's lock is tried before it counts as taken: a child that a process had just forked when it
/// was killed holds it for a moment.
pub const LOCK_ATTEMPTS: u32 = 50;
/// See [`LOCK_ATTEMPTS`].
pub const LOCK_PAUSE_MS: u64 = 20;
/// How often whoever has a window open shows that it is still there.
pub const SIGN_OF_LIFE_MS: u64 = 500;
/// How long after its last sign of life a process that was killed counts as having been there: twice the time between two, since one
/// may come late.
pub const DEATH_GRACE_MS: u64 = 2 * SIGN_OF_LIFE_MS;
/// Most files that a note to the model names.
pub const MAX_NOTED_FILES: usize = 50;
