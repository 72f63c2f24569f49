//! Windows: bracketing a tool call, from the checkpoint before it to the checkpoint after it.
//!
//! Whoever has a window open holds a lock on a file of it, so that a window whose process died is noticed: it counts for
//! what changed until then, of which the file's time tells, and is closed by the next checkpoint.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rusqlite::{Transaction, params};

use super::heartbeat::Pulse;
use super::span::Spans;
use super::{FileTime, PathChange, late_attribution, rows};
use crate::base::id::{OperationId, SessionId};
use crate::base::path::WorkspacePath;
use crate::base::plain_file;
use crate::base::progress::Progress;
use crate::history::checkpoint::{Checkpoint, CheckpointError, NewCheckpoint, Origin, Purpose, RuleChanges};
use crate::history::codes::{EXEC, RUNNING};
use crate::history::operation::{self, MadeBy, NewOperation, OperationKind, OperationState};
use crate::history::owner::Changes;
use crate::history::sessions::sequence;
use crate::history::turn_summary;
use crate::store::db::in_transaction;
use crate::store::{Durability, Store, StoreError, create_private_dirs};
use crate::workspace::Workspace;

/// Tool calls in a workspace. A window is open for as long as one runs, and what changes meanwhile is attributed to it. From [`Workspace::windows`].
#[derive(Debug)]
pub struct Windows<'a>(pub(crate) &'a mut Workspace);

impl Workspace {
    /// Tool calls in it: what they change is attributed to them.
    pub fn windows(&mut self) -> Windows<'_> {
        Windows(self)
    }
}

/// What a tool may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Anything: a shell command.
    Everything,
    /// What it declared, and nothing else: an edit tool.
    Declared,
    /// What changed at times that are told later: tools of an agent that waits for nobody.
    Spans,
}

/// A tool call that is about to begin.
#[derive(Clone, Debug)]
pub struct NewWindow {
    /// Whose.
    pub session: SessionId,
    /// The turn, as the session calls it.
    pub turn: Option<String>,
    /// The tool, in words for people: `bash: npm install`.
    pub tool: String,
    /// What it may change.
    pub reach: Reach,
    /// Paths that it will write; they are captured from now on whatever the rules say.
    pub declared: Vec<WorkspacePath>,
    /// The operation that it is, or is a part of.
    pub operation: PartOf,
}

/// What a tool call is undone with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartOf {
    /// It is an operation of its own.
    Own(OperationId),
    /// It belongs to a turn.
    Turn(OperationId),
    /// Nothing.
    Nothing,
}

/// A tool call under way. Dropped without [`Windows::end`], it ends with the next checkpoint.
#[derive(Debug)]
pub struct Window {
    pub(crate) seq: i64,
    /// Whose.
    pub session: SessionId,
    pub(super) tool: String,
    /// The operation that it is, if it is one.
    pub operation: Option<OperationId>,
    path: PathBuf,
    /// Before the lock, so that the last sign of life is given while the window is held.
    _pulse: Pulse,
    /// Locked as long as the window is open. Holds when the tool ended, once it has.
    lock: File,
}

/// Which window it is, also after its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowId(pub(crate) i64);

/// A window, and the checkpoint before it.
#[derive(Debug)]
pub struct Began {
    /// The window.
    pub window: Window,
    /// The point before the tool call.
    pub before: Checkpoint,
}

impl Window {
    /// Which window it is.
    pub fn id(&self) -> WindowId {
        WindowId(self.seq)
    }

    /// Says that the tool has ended: a change after `at` is not taken for its own. Checkpoints of other processes go by that too.
    pub fn stop(&self, at: FileTime) {
        // On a full disk nothing is written, and a save that comes before the next checkpoint counts as the tool's.
        self.lock.write_all_at(&at.0.to_le_bytes(), 0).ok();
    }

    /// Says when something in it counts, if that is how far it reaches.
    pub fn spans(&self) -> Spans {
        Spans::of(&self.path)
    }
}

impl Changes<'_> {
    /// What happened to `path` and to everything below it, newest first.
    pub fn of_path(&self, path: &WorkspacePath) -> Result<Vec<PathChange>, StoreError> {
        rows::history(&self.0.store, path)
    }

    /// Paths that tools of `session` created after checkpoint `from`, up to checkpoint `to`, where an ignore rule of theirs hides them:
    /// they are not captured, and a rewind takes them back all the same.
    pub fn hidden_by(
        &self,
        session: SessionId,
        from: &Checkpoint,
        to: &Checkpoint,
    ) -> Result<BTreeSet<WorkspacePath>, StoreError> {
        let seq = |checkpoint: &Checkpoint| crate::history::checkpoint::sequence_of(&self.0.store, checkpoint.id);
        let (Some(from), Some(to)) = (seq(from)?, seq(to)?) else { return Ok(BTreeSet::new()) };
        rows::hidden_by(&self.0.store, session, from, to)
    }

    /// Who changed what after checkpoint `from`, up to checkpoint `to` or the newest one, in order.
    pub fn between(&self, from: &Checkpoint, to: Option<&Checkpoint>) -> Result<Vec<PathChange>, StoreError> {
        let seq = |checkpoint: &Checkpoint| crate::history::checkpoint::sequence_of(&self.0.store, checkpoint.id);
        let from = seq(from)?.unwrap_or(i64::MAX);
        let to = to.map(seq).transpose()?.flatten().unwrap_or(i64::MAX);
        rows::between(&self.0.store, from, to)
    }
}

impl Windows<'_> {
    /// Begins a tool call: takes a checkpoint and opens a window after it. What the tool changes is attributed to it by
    /// every checkpoint until [`end`](Self::end).
    #[expect(clippy::needless_pass_by_value, reason = "an id is for one checkpoint only")]
    pub fn begin(
        &mut self,
        window: NewWindow,
        new: NewCheckpoint,
        progress: &dyn Progress,
    ) -> Result<Began, CheckpointError> {
        let session = sequence(&self.0.store, window.session)?.ok_or(CheckpointError::UnknownSession)?;
        for path in &window.declared {
            self.0.windows().declare(path)?;
        }
        let at = new.at;
        let store_dir = self.0.store.dir().to_owned();
        let opened = std::cell::RefCell::new(None);
        let purpose = Purpose {
            origin: Origin::Before,
            session: Some((session, window.session)),
            entry: None,
            note: Some(window.tool.clone()),
            own: None,
            rule_changes: RuleChanges::Judge,
            created: None,
            also: &|tx, seq| {
                let operation = match window.operation {
                    PartOf::Own(id) => {
                        let (kind, made_by) = (OperationKind::Exec, MadeBy::Command);
                        let new = NewOperation { id, at, session: Some(session), kind, what: &window.tool, made_by };
                        Some(operation::insert(tx, &new, seq, None)?)
                    }
                    PartOf::Turn(id) => operation::sequence(tx, id)?,
                    PartOf::Nothing => None,
                };
                let row = insert(tx, &window, session, seq, operation)?;
                // Before anybody else can see the window: without its lock it would be taken for abandoned.
                opened.borrow_mut().take();
                *opened.borrow_mut() = Some((row, lock_window(&store_dir, row)?));
                Ok(())
            },
        };
        let before = self.0.take(&new, &purpose, Durability::Soon, progress)?;
        let (seq, (path, lock)) = opened.into_inner().expect("a checkpoint that was taken has its window");
        let operation = match window.operation {
            PartOf::Own(id) | PartOf::Turn(id) => Some(id),
            PartOf::Nothing => None,
        };
        let pulse = Pulse::start(&path);
        let NewWindow { session, tool, .. } = window;
        let window = Window { seq, session, tool, operation, path, _pulse: pulse, lock };
        Ok(Began { window, before })
    }

    /// Ends a tool call: takes a checkpoint, attributes what changed, closes the window.
    #[expect(clippy::needless_pass_by_value, reason = "a window ends once")]
    pub fn end(
        &mut self,
        window: Window,
        new: NewCheckpoint,
        durability: Durability,
        progress: &dyn Progress,
    ) -> Result<Checkpoint, CheckpointError> {
        let session = sequence(&self.0.store, window.session)?.ok_or(CheckpointError::UnknownSession)?;
        let store_dir = self.0.store.dir().to_owned();
        let purpose = Purpose {
            origin: Origin::After,
            session: Some((session, window.session)),
            entry: None,
            note: Some(window.tool.clone()),
            own: None,
            rule_changes: RuleChanges::Judge,
            created: None,
            also: &|tx, seq| {
                if let Some(window) = rows::window_with_spans(tx, &window)? {
                    late_attribution::judge_again(tx, &window, i64::MAX)?;
                }
                close(tx, window.seq, seq, ended(&store_dir, window.seq).unwrap_or_else(FileTime::now))
            },
        };
        let after = self.0.take(&new, &purpose, durability, progress)?;
        // If it stays, it is a file that nobody has locked.
        std::fs::remove_file(&window.path).ok();
        window.spans().remove();
        Ok(after)
    }

    /// Takes a window back that turned out to be open for nothing: what changed since then is not its own.
    #[expect(clippy::needless_pass_by_value, reason = "a window ends once")]
    pub fn withdraw(&mut self, window: Window) -> Result<(), StoreError> {
        self.0.store.db().transaction(Durability::Soon, |tx| {
            let wrap = in_transaction(tx);
            // Somebody else's checkpoint may have found changes of it meanwhile: those stay its own.
            let unused = "NOT EXISTS (SELECT 1 FROM changes WHERE changes.window = windows.seq)";
            let sql = format!("DELETE FROM windows WHERE seq = ? AND {unused}");
            tx.execute(&sql, [window.seq]).map_err(&wrap)?;
            tx.execute("UPDATE windows SET closed = opened WHERE seq = ?", [window.seq]).map(drop).map_err(&wrap)
        })?;
        // If it stays, it is a file that nobody has locked.
        std::fs::remove_file(&window.path).ok();
        window.spans().remove();
        Ok(())
    }

    /// Attributes what tool calls under way have changed so far, by a checkpoint, and ends those whose processes are gone;
    /// `None` if there are none. Callers that take back what a session did call it first, or that would be left out. The
    /// checkpoint is like those of a rewind: a refused rewind leaves no point that a user asked for.
    #[expect(clippy::needless_pass_by_value, reason = "an id is for one checkpoint only")]
    pub fn settle(
        &mut self,
        new: NewCheckpoint,
        progress: &dyn Progress,
    ) -> Result<Option<Checkpoint>, CheckpointError> {
        if rows::open_windows(&self.0.store)?.is_empty() {
            return Ok(None);
        }
        let purpose = Purpose { origin: Origin::Safety, note: Some("going back".to_owned()), ..Purpose::ASKED };
        self.0.take(&new, &purpose, Durability::Synced, progress).map(Some)
    }
}

fn insert(
    tx: &Transaction<'_>,
    window: &NewWindow,
    session: i64,
    opened: i64,
    operation: Option<i64>,
) -> Result<i64, StoreError> {
    // 3 is one with spans that runs a command.
    let everything = match window.reach {
        Reach::Declared => 0,
        Reach::Everything => 1,
        Reach::Spans => 2,
    };
    tx.execute(
        "INSERT INTO windows (session, operation, turn, tool, everything, opened) VALUES (?, ?, ?, ?, ?, ?)",
        params![session, operation, window.turn, window.tool, everything, opened],
    )
    .map_err(in_transaction(tx))?;
    let seq = tx.last_insert_rowid();
    let declared: BTreeSet<_> = window.declared.iter().collect();
    for path in declared {
        tx.execute("INSERT INTO window_paths (path, window) VALUES (?, ?)", params![path.as_bytes(), seq])
            .map_err(in_transaction(tx))?;
    }
    Ok(seq)
}

/// Closes a window, whose tool ended at `ended`, at checkpoint `closed`, and the operation that it is. What it did counts with its turn,
/// even if that has ended.
pub(crate) fn close(tx: &Transaction<'_>, window: i64, closed: i64, ended: FileTime) -> Result<(), StoreError> {
    let wrap = in_transaction(tx);
    tx.execute("UPDATE windows SET closed = ?, ended = ? WHERE seq = ? AND closed IS NULL", [closed, ended.0, window])
        .map_err(&wrap)?;
    tx.execute(
        &format!(
            "UPDATE operations SET state = ?, after = ?
         WHERE state = {RUNNING} AND kind = {EXEC} AND seq = (SELECT operation FROM windows WHERE seq = ?)"
        ),
        params![OperationState::Done as u8, closed, window],
    )
    .map_err(&wrap)?;
    let operation: Option<i64> =
        tx.query_row("SELECT operation FROM windows WHERE seq = ?", [window], |row| row.get(0)).map_err(&wrap)?;
    operation.map_or(Ok(()), |operation| turn_summary::summarise_again(tx, operation))
}

pub(super) fn window_path(store_dir: &Path, seq: i64) -> PathBuf {
    store_dir.join("windows").join(seq.to_string())
}

pub(super) fn spans_of(store_dir: &Path, seq: i64) -> Spans {
    Spans::of(&window_path(store_dir, seq))
}

fn lock_window(store_dir: &Path, seq: i64) -> Result<(PathBuf, File), StoreError> {
    let path = window_path(store_dir, seq);
    create_private_dirs(&store_dir.join("windows"))?;
    let mut options = OpenOptions::new();
    let file = plain_file::open_with(options.write(true).create(true).truncate(false).mode(0o600), &path);
    let file = file.map_err(StoreError::io("create", &path))?;
    match file.try_lock() {
        Ok(()) => Ok((path, file)),
        Err(TryLockError::WouldBlock) => Err(StoreError::io("lock", &path)(std::io::ErrorKind::WouldBlock.into())),
        Err(TryLockError::Error(err)) => Err(StoreError::io("lock", &path)(err)),
    }
}

/// When the tool in a window ended; `None` if it has not, as far as is known.
pub(super) fn ended(store_dir: &Path, seq: i64) -> Option<FileTime> {
    let mut nanoseconds = [0; 8];
    plain_file::open(&window_path(store_dir, seq)).ok()?.read_exact_at(&mut nanoseconds, 0).ok()?;
    Some(FileTime(i64::from_le_bytes(nanoseconds)))
}

/// Whether the process that opened the window is gone.
pub(crate) fn is_abandoned(store_dir: &Path, seq: i64) -> bool {
    match plain_file::open(&window_path(store_dir, seq)) {
        Ok(file) => file.try_lock().is_ok(),
        Err(err) => err.kind() == std::io::ErrorKind::NotFound,
    }
}

/// A tool at work.
pub(crate) struct AtWork {
    session: i64,
    /// The checkpoint before it.
    opened: i64,
    /// The operation that it is, if it is one.
    pub(crate) operation: Option<i64>,
    pub(crate) tool: String,
}

impl AtWork {
    /// Whether nothing can be taken back to checkpoint `target` for `session` while it is at work. Only what that session
    /// began before may go on.
    pub(crate) fn prevents(&self, session: Option<i64>, target: i64) -> bool {
        Some(self.session) != session || self.opened >= target
    }
}

/// The tools that are at work.
pub(crate) fn at_work(store: &Store) -> Result<Vec<AtWork>, StoreError> {
    let windows: Vec<(i64, AtWork)> = store.db().read(|connection| {
        let mut statement = connection.prepare_cached(
            "SELECT seq, session, opened, operation, tool FROM windows WHERE closed IS NULL ORDER BY seq",
        )?;
        let window = |row: &rusqlite::Row<'_>| {
            let (session, opened) = (row.get(1)?, row.get(2)?);
            Ok((row.get(0)?, AtWork { session, opened, operation: row.get(3)?, tool: row.get(4)? }))
        };
        statement.query_map([], window)?.collect()
    })?;
    Ok(windows.into_iter().filter(|(seq, _)| !is_abandoned(store.dir(), *seq)).map(|(_, at_work)| at_work).collect())
}

/// Removes what an abandoned window left.
pub(crate) fn forget_abandoned(store_dir: &Path, seq: i64) {
    std::fs::remove_file(window_path(store_dir, seq)).ok();
    spans_of(store_dir, seq).remove();
}
