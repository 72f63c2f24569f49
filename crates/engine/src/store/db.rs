//! The store's database: what exists, where, and since when.
//!
//! Owns the SQLite connection, the schema and its migrations. Many processes may have it open; transactions are short
//! and wait for one another. [`Durability`] decides for each transaction whether it waits for the disk.

use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Transaction, TransactionBehavior, params};

use super::error::StoreError;
use super::pack::SegmentId;
use crate::base::id::ObjectId;
use crate::base::{fault, limits, plain_file};

/// When a commit returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// After the data would survive power loss.
    Synced,
    /// After the data would survive this process; power loss may take it until the next sync.
    Soon,
}

/// Migrations in order; the database's `user_version` counts how many were made.
const MIGRATIONS: &[&str] = &[
    "
    CREATE TABLE meta (
        key TEXT PRIMARY KEY,
        value NOT NULL
    ) WITHOUT ROWID;
    -- `committed`: every record below it has its row. `synced`: power loss cannot touch what is below it.
    CREATE TABLE packs (
        id INTEGER PRIMARY KEY,
        committed INTEGER NOT NULL,
        synced INTEGER NOT NULL
    );
    CREATE TABLE objects (
        id BLOB PRIMARY KEY,
        pack INTEGER NOT NULL,
        offset INTEGER NOT NULL,
        len INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE checkpoints (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id BLOB NOT NULL UNIQUE,
        handle TEXT NOT NULL UNIQUE,
        at INTEGER NOT NULL,
        label TEXT,
        snapshot BLOB NOT NULL,
        aside BLOB,
        rules BLOB NOT NULL,
        git TEXT NOT NULL,
        added INTEGER NOT NULL,
        modified INTEGER NOT NULL,
        deleted INTEGER NOT NULL,
        gaps INTEGER NOT NULL
    );
    CREATE INDEX checkpoints_label ON checkpoints (label) WHERE label IS NOT NULL;
    -- What a later check found out about a checkpoint that was already taken.
    CREATE TABLE late_gaps (
        checkpoint INTEGER NOT NULL REFERENCES checkpoints (seq) ON DELETE CASCADE,
        path BLOB NOT NULL,
        PRIMARY KEY (checkpoint, path)
    ) WITHOUT ROWID;
    -- Paths that a tool announced before it wrote them: captured whatever the rules say.
    CREATE TABLE declared (
        path BLOB PRIMARY KEY
    ) WITHOUT ROWID;
    INSERT INTO meta VALUES ('collections', 0), ('commits', 0);
",
    "
    CREATE TABLE sessions (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id BLOB NOT NULL UNIQUE,
        handle TEXT NOT NULL UNIQUE,
        at INTEGER NOT NULL,
        title TEXT NOT NULL
    );
    -- What a checkpoint was taken for, and whose point it is.
    ALTER TABLE checkpoints ADD COLUMN origin INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE checkpoints ADD COLUMN session INTEGER REFERENCES sessions (seq);
    ALTER TABLE checkpoints ADD COLUMN note TEXT;
    -- The first checkpoint that looked for the path.
    ALTER TABLE declared ADD COLUMN since INTEGER;
    -- `before` and `after` are checkpoints; `reverses` is the operation that an undo or a redo is about.
    CREATE TABLE operations (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id BLOB NOT NULL UNIQUE,
        handle TEXT NOT NULL UNIQUE,
        at INTEGER NOT NULL,
        session INTEGER REFERENCES sessions (seq),
        kind INTEGER NOT NULL,
        what TEXT NOT NULL,
        before INTEGER NOT NULL,
        after INTEGER,
        reverses INTEGER,
        state INTEGER NOT NULL,
        undone INTEGER NOT NULL DEFAULT 0
    );
    -- The time in which a tool may change things: from checkpoint `opened` to checkpoint `closed`.
    CREATE TABLE windows (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        session INTEGER NOT NULL REFERENCES sessions (seq),
        operation INTEGER,
        turn TEXT,
        tool TEXT NOT NULL,
        everything INTEGER NOT NULL,
        opened INTEGER NOT NULL,
        closed INTEGER
    );
    CREATE INDEX windows_open ON windows (seq) WHERE closed IS NULL;
    CREATE TABLE window_paths (
        path BLOB NOT NULL,
        window INTEGER NOT NULL REFERENCES windows (seq) ON DELETE CASCADE,
        PRIMARY KEY (path, window)
    ) WITHOUT ROWID;
    -- What happened to each path between one checkpoint and the next, and who did it.
    CREATE TABLE changes (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        checkpoint INTEGER NOT NULL,
        path BLOB NOT NULL,
        kind INTEGER NOT NULL,
        before BLOB,
        after BLOB,
        certainty INTEGER NOT NULL,
        session INTEGER,
        window INTEGER,
        operation INTEGER
    );
    CREATE INDEX changes_path ON changes (path);
    CREATE INDEX changes_checkpoint ON changes (checkpoint);
    CREATE INDEX changes_operation ON changes (operation) WHERE operation IS NOT NULL;
    -- A rewind that is being made: what it does, and the names of its temporary files.
    CREATE TABLE intents (
        operation INTEGER PRIMARY KEY REFERENCES operations (seq),
        state INTEGER NOT NULL,
        items BLOB NOT NULL
    );
    -- What somebody saved while it was being replaced: kept as long as the operation.
    CREATE TABLE displaced (
        operation INTEGER NOT NULL REFERENCES operations (seq) ON DELETE CASCADE,
        path BLOB NOT NULL,
        node BLOB NOT NULL,
        PRIMARY KEY (operation, path, node)
    ) WITHOUT ROWID;
    -- Objects that a check found damaged: they do not count as stored until they are stored again.
    CREATE TABLE damaged (
        id BLOB PRIMARY KEY
    ) WITHOUT ROWID;
",
    "
    -- A session that is a conversation has a head, and what its user is about to say.
    ALTER TABLE sessions ADD COLUMN kind INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE sessions ADD COLUMN head INTEGER;
    ALTER TABLE sessions ADD COLUMN draft TEXT;
    -- Written once, never edited. `parent` is the entry that it continues.
    CREATE TABLE entries (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        session INTEGER NOT NULL REFERENCES sessions (seq),
        parent INTEGER,
        at INTEGER NOT NULL,
        kind INTEGER NOT NULL,
        body TEXT NOT NULL
    );
    -- Enough to follow a conversation without reading what was said.
    CREATE INDEX entries_chain ON entries (session, seq, parent, kind);
    CREATE INDEX entries_parent ON entries (parent);
    -- The checkpoint that was taken at an entry. It stays when the checkpoint goes, and tells that there was one.
    CREATE TABLE points (
        entry INTEGER NOT NULL,
        checkpoint INTEGER NOT NULL,
        PRIMARY KEY (entry, checkpoint)
    ) WITHOUT ROWID;
    -- The prompt that a turn is the answer to; what an operation did to the conversation; what a turn did to the files, in
    -- short; whether a client of a live session made it, rather than a command.
    ALTER TABLE operations ADD COLUMN entry INTEGER;
    ALTER TABLE operations ADD COLUMN conversation TEXT;
    ALTER TABLE operations ADD COLUMN summary TEXT;
    ALTER TABLE operations ADD COLUMN live INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX operations_session ON operations (session);
    CREATE INDEX operations_entry ON operations (entry) WHERE entry IS NOT NULL;
    CREATE INDEX operations_unsummarised ON operations (session) WHERE kind = 4 AND summary IS NULL;
    CREATE INDEX windows_turn ON windows (turn) WHERE turn IS NOT NULL;
    CREATE INDEX changes_window ON changes (window) WHERE window IS NOT NULL;
",
    "
    -- The session and the entry that a session was forked from, and the newest checkpoint then; if those are in another workspace,
    -- what is known of them, as JSON.
    ALTER TABLE sessions ADD COLUMN parent INTEGER;
    ALTER TABLE sessions ADD COLUMN forked_at INTEGER;
    ALTER TABLE sessions ADD COLUMN forked_after INTEGER;
    ALTER TABLE sessions ADD COLUMN origin TEXT;
    -- Forks that went to a workspace of their own.
    CREATE TABLE forks_elsewhere (
        session INTEGER NOT NULL REFERENCES sessions (seq) ON DELETE CASCADE,
        entry INTEGER,
        child BLOB NOT NULL,
        root BLOB NOT NULL,
        at INTEGER NOT NULL
    );
    -- What a fork made, as JSON: so that it can be undone and redone.
    ALTER TABLE operations ADD COLUMN fork TEXT;
",
    "
    -- When the path was changed, if not all was said yet of a window that was open.
    ALTER TABLE changes ADD COLUMN changed INTEGER;
",
    // Asides tell what gaps look like. Those of before can be read; an older program could not read these.
    "",
    "
    -- Paths that a rule change of an agent or a command leaves out: captured until the user confirms it. The first checkpoint that held
    -- the path.
    CREATE TABLE held (
        path BLOB PRIMARY KEY,
        since INTEGER
    ) WITHOUT ROWID;
    -- When the tool had ended, by the clock of files.
    ALTER TABLE windows ADD COLUMN ended INTEGER;
",
    "
    -- Paths that the rules left out and that one checkpoint captured all the same: a rewind touched them.
    CREATE TABLE wanted (
        checkpoint INTEGER NOT NULL REFERENCES checkpoints (seq) ON DELETE CASCADE,
        path BLOB NOT NULL,
        PRIMARY KEY (checkpoint, path)
    ) WITHOUT ROWID;
",
];

/// The newest format that this program knows.
#[allow(clippy::cast_possible_truncation, reason = "a handful of migrations")]
pub(crate) const FORMAT: u32 = MIGRATIONS.len() as u32;

/// Length of the database's log from which on it is emptied after a commit.
const LOG_BYTES: u64 = 512 << 10;

/// Where an object's record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) pack: SegmentId,
    pub(crate) offset: u64,
    pub(crate) len: u32,
}

/// A connection to the database.
#[derive(Debug)]
pub(crate) struct Db {
    connection: Connection,
    path: PathBuf,
    synchronous: Durability,
    pub(crate) writable: bool,
}

impl Db {
    /// Opens the database at `path`, creating or migrating it as needed. A database that cannot be written is opened for
    /// reading.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        let wrap = StoreError::database(path);
        require_files(path)?;
        let may_write = |path: &Path| rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok();
        let writable = may_write(path.parent().unwrap_or(path)) && (!path.exists() || may_write(path));
        let flags = if writable {
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE
        } else {
            OpenFlags::SQLITE_OPEN_READ_ONLY
        };
        // SQLite waits for locks, but not while it switches a new database to its log: there, processes take turns.
        let _turn = match path.parent() {
            Some(dir) if writable && !has_log(path) => Some(super::take_turn(dir)?),
            _ => None,
        };
        if writable {
            fault::step().map_err(StoreError::io("create", path))?;
            create_private(path)?;
        }
        let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX).map_err(&wrap)?;
        connection.busy_timeout(std::time::Duration::from_millis(limits::BUSY_MS)).map_err(&wrap)?;
        let mut db = Self { connection, path: path.to_owned(), synchronous: Durability::Synced, writable };
        db.configure().map_err(&wrap)?;
        db.migrate()?;
        Ok(db)
    }

    fn configure(&self) -> rusqlite::Result<()> {
        // Without this every short-lived process would checkpoint the log on its way out: three syncs for nothing.
        self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        self.connection.set_prepared_statement_cache_capacity(64);
        // In KiB, if negative: a long conversation is read more than once.
        self.connection.pragma_update(None, "cache_size", -(32 << 10))?;
        if self.writable {
            self.connection.pragma_update(None, "journal_mode", "wal")?;
            self.connection.pragma_update(None, "synchronous", "full")?;
            // SQLite's own way never starts the log anew when each process commits once: see `transaction`.
            self.connection.pragma_update(None, "wal_autocheckpoint", 0)?;
        }
        self.connection.pragma_update(None, "foreign_keys", true)
    }

    fn migrate(&mut self) -> Result<(), StoreError> {
        let wrap = StoreError::database(&self.path);
        let version =
            |connection: &Connection| connection.pragma_query_value(None, "user_version", |row| row.get::<_, u32>(0));
        let found = version(&self.connection).map_err(&wrap)?;
        if found == FORMAT {
            return Ok(());
        }
        if found > FORMAT {
            return Err(StoreError::Newer { path: self.path.clone(), found, known: FORMAT });
        }
        if !self.writable {
            return Err(StoreError::ReadOnly { path: self.path.clone() });
        }
        let tx = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&wrap)?;
        // Another process may have migrated while this one waited for the lock.
        for index in version(&tx).map_err(&wrap)?..FORMAT {
            tx.execute_batch(MIGRATIONS[index as usize]).map_err(&wrap)?;
            tx.pragma_update(None, "user_version", index + 1).map_err(&wrap)?;
            fault::step().map_err(StoreError::io("migrate", &self.path))?;
        }
        tx.commit().map_err(&wrap)
    }

    /// Runs `work` in one transaction and commits it.
    pub(crate) fn transaction<T>(
        &mut self,
        durability: Durability,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let wrap = StoreError::database(&self.path);
        if !self.writable {
            return Err(StoreError::ReadOnly { path: self.path.clone() });
        }
        if self.synchronous != durability {
            let level = match durability {
                Durability::Synced => "full",
                Durability::Soon => "normal",
            };
            self.connection.pragma_update(None, "synchronous", level).map_err(&wrap)?;
            self.synchronous = durability;
        }
        fault::step().map_err(StoreError::io("write", &self.path))?;
        let tx = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&wrap)?;
        let value = work(&tx)?;
        fault::step().map_err(StoreError::io("write", &self.path))?;
        tx.commit().map_err(&wrap)?;
        fault::moment();
        // A fresh process reads the whole log before anything else: short is quick.
        if self.log_bytes() > LOG_BYTES {
            self.empty_log();
        }
        Ok(value)
    }

    /// Reads through the connection; what `work` returns is wrapped with the database's path.
    pub(crate) fn read<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        // One transaction for all that is read: it sees one state, and locks once instead of with every row.
        let all = || {
            let reading =
                self.connection.is_autocommit().then(|| self.connection.unchecked_transaction()).transpose()?;
            let found = work(&self.connection)?;
            reading.map_or(Ok(()), rusqlite::Transaction::finish)?;
            Ok(found)
        };
        all().map_err(StoreError::database(&self.path))
    }

    fn log_bytes(&self) -> u64 {
        let mut log = self.path.clone().into_os_string();
        log.push("-wal");
        std::fs::metadata(log).map_or(0, |meta| meta.len())
    }

    /// Empties the log into the database. Another process that is reading keeps this from happening, which is no harm.
    pub(crate) fn empty_log(&self) {
        self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).ok();
    }

    /// Gives back memory that is only there so that the next question is answered sooner.
    pub(crate) fn rest(&self) {
        self.connection.execute_batch("PRAGMA shrink_memory").ok();
    }

    /// Gives back the room of rows that are gone, if it is worth it, and empties the log. If there is no room to do so, the
    /// database stays as large as it is.
    pub(crate) fn shrink(&self) {
        let count =
            |what: &str| self.connection.pragma_query_value(None, what, |row| row.get::<_, u64>(0)).unwrap_or(0);
        if count("freelist_count") > count("page_count") / 4 && fault::step().is_ok() {
            self.connection.execute_batch("VACUUM").ok();
        }
        self.empty_log();
    }

    /// From now on overwrites what it deletes.
    pub(crate) fn erase_deleted(&self) -> Result<(), StoreError> {
        let wrap = StoreError::database(&self.path);
        self.connection.pragma_update(None, "secure_delete", true).map_err(&wrap)?;
        // Nothing of it goes to a temporary file either.
        self.connection.pragma_update(None, "temp_store", "memory").map_err(&wrap)
    }

    /// After [`erase_deleted`](Self::erase_deleted): writes the database anew if there is room for that, since copies of what was
    /// deleted may lie where rows were moved from, and empties the log.
    pub(crate) fn erase(&self) {
        if fault::step().is_ok() {
            self.connection.execute_batch("VACUUM").ok();
        }
        self.empty_log();
    }

    /// Writes the database anew, so that it holds nothing but rows that are there, and empties the log.
    pub(crate) fn rewrite(&self) -> Result<(), StoreError> {
        let wrap = StoreError::database(&self.path);
        fault::step().map_err(StoreError::io("write", &self.path))?;
        self.connection.execute_batch("VACUUM").map_err(&wrap)?;
        fault::step().map_err(StoreError::io("write", &self.path))?;
        let busy: bool =
            self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0)).map_err(&wrap)?;
        if busy { Err(StoreError::Busy { path: self.path.clone() }) } else { Ok(()) }
    }

    /// Where `id` is stored.
    pub(crate) fn locate(&self, id: &ObjectId) -> Result<Option<Location>, StoreError> {
        self.read(|connection| {
            connection
                .prepare_cached("SELECT pack, offset, len FROM objects WHERE id = ?")?
                .query_row([&id.as_bytes()[..]], |row| {
                    Ok(Location { pack: row.get(0)?, offset: row.get(1)?, len: row.get(2)? })
                })
                .optional()
        })
    }

    /// A counter of `meta`.
    pub(crate) fn counter(&self, key: &str) -> Result<u64, StoreError> {
        self.read(|connection| {
            connection.prepare_cached("SELECT value FROM meta WHERE key = ?")?.query_row([key], |row| row.get(0))
        })
    }

    /// A segment's committed and synced lengths.
    pub(crate) fn pack_lengths(&self, id: SegmentId) -> Result<Option<(u64, u64)>, StoreError> {
        self.read(|connection| {
            connection
                .prepare_cached("SELECT committed, synced FROM packs WHERE id = ?")?
                .query_row([id], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()
        })
    }
}

/// Wraps SQLite errors inside a transaction.
pub(crate) fn in_transaction(tx: &Transaction<'_>) -> impl Fn(rusqlite::Error) -> StoreError + use<> {
    StoreError::database(Path::new(tx.path().unwrap_or_default()))
}

/// A counter of `meta`, inside a transaction.
pub(crate) fn counter_in(tx: &Transaction<'_>, key: &str) -> Result<u64, StoreError> {
    tx.query_row("SELECT value FROM meta WHERE key = ?", [key], |row| row.get(0)).map_err(in_transaction(tx))
}

/// Sets a segment's lengths.
pub(crate) fn set_pack_lengths(
    tx: &Transaction<'_>,
    id: SegmentId,
    committed: u64,
    synced: Option<u64>,
) -> Result<(), StoreError> {
    tx.prepare_cached(
        "INSERT INTO packs VALUES (?1, ?2, coalesce(?3, 0))
         ON CONFLICT (id) DO UPDATE SET committed = ?2, synced = coalesce(?3, synced)",
    )
    .and_then(|mut statement| statement.execute(params![id, committed, synced]))
    .map(drop)
    .map_err(in_transaction(tx))
}

/// SQLite opens its files itself, and would wait for the other end of a pipe.
fn require_files(path: &Path) -> Result<(), StoreError> {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        let file = Path::new(&name);
        plain_file::require(file).map_err(StoreError::io("open", file))?;
    }
    Ok(())
}

/// Whether the database exists and uses a write-ahead log, by the format version in its header.
fn has_log(path: &Path) -> bool {
    use std::os::unix::fs::FileExt;
    let mut version = [0];
    plain_file::open(path).is_ok_and(|file| file.read_exact_at(&mut version, 18).is_ok()) && version[0] == 2
}

/// SQLite creates its files with the process's umask; ours are private from the start.
fn create_private(path: &Path) -> Result<(), StoreError> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    plain_file::open_with(&mut options, path).map(drop).map_err(StoreError::io("create", path))
}
