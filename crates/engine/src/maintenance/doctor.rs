//! Finding out whether all is well: what the engine can tell about its store, its index and its promise not to touch git.
//!
//! Nothing here mends anything. Only the [self-test](Maintenance::self_test) writes: it takes a checkpoint, as any command would.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::base::id::{ObjectId, SessionId};
use crate::base::plain_file;
use crate::base::progress::{Phase, Progress, Step};
use crate::git;
use crate::history::checkpoint::{CheckpointError, NewCheckpoint};
use crate::history::owner::window;
use crate::maintenance::Maintenance;
use crate::rewind::{Goal, RewindError, RewindRequest};
use crate::scan::{ScanError, Scanner};
use crate::store::{Durability, StoreError};
use crate::workspace::view::Hashing;
use crate::workspace::{Workspace, counters};

/// How often two scans may differ before it counts: somebody may be working meanwhile.
const ATTEMPTS: u32 = 3;

/// What a checkpoint and the plan of a rewind did to the git repository around the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Footprint {
    /// There is no repository.
    NoRepository,
    /// Not a byte of it changed.
    Untouched {
        /// Files that were compared.
        files: u64,
    },
    /// These files changed while it was tested, by whomever.
    Touched {
        /// The files.
        paths: Vec<PathBuf>,
    },
}

/// The self-test could not be made.
#[derive(Debug, Error)]
pub enum SelfTestError {
    /// The repository cannot be read.
    #[error("cannot read `{}`", .path.display())]
    Git {
        /// The file or directory.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// No checkpoint can be taken.
    #[error("no checkpoint can be taken")]
    Checkpoint(#[from] CheckpointError),
    /// No rewind can be planned.
    #[error("no rewind can be planned")]
    Plan(#[from] RewindError),
}

/// A tool call that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnderWay {
    /// The tool, in words for people.
    pub tool: String,
    /// Whose it is.
    pub session: SessionId,
    /// Whether its process is gone: the next checkpoint closes it.
    pub abandoned: bool,
}

impl Maintenance<&Workspace> {
    /// Files and directories of the store that other users may read or change.
    pub fn exposed(&self) -> Result<Vec<PathBuf>, StoreError> {
        let mut exposed = Vec::new();
        let mut queue = vec![self.0.store.dir().to_owned()];
        while let Some(path) = queue.pop() {
            let meta = match path.symlink_metadata() {
                Ok(meta) => meta,
                // Another process has removed it since it was listed.
                Err(err) if err.kind() == io::ErrorKind::NotFound => continue,
                Err(err) => return Err(StoreError::io("read", &path)(err)),
            };
            if meta.is_dir() {
                for entry in path.read_dir().map_err(StoreError::io("list", &path))? {
                    queue.push(entry.map_err(StoreError::io("list", &path))?.path());
                }
            }
            if meta.permissions().mode() & 0o077 != 0 {
                exposed.push(path);
            }
        }
        exposed.sort();
        Ok(exposed)
    }

    /// Whether a scan with the saved index finds the same as one from nothing. Reads every file.
    pub fn index_agrees(&self, progress: &dyn Progress) -> Result<bool, ScanError> {
        let rules = self.0.rules()?;
        for _ in 0..ATTEMPTS {
            let open = || Scanner::open(&self.0.env.root, self.0.store.dir(), self.0.env.threads);
            let (mut saved, mut anew) = (open()?, open()?);
            saved.fit_to(counters(&self.0.store)?, |id, _| self.0.store.contains(id))?;
            anew.forget();
            let saved = saved.scan(&rules, &Hashing::default(), progress)?;
            let anew = anew.scan(&rules, &Hashing::default(), progress)?;
            if (saved.snapshot, saved.aside) == (anew.snapshot, anew.aside) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Tool calls that have not ended, oldest first.
    pub fn under_way(&self) -> Result<Vec<UnderWay>, StoreError> {
        let rows: Vec<(i64, String, [u8; 16])> = self.0.store.db().read(|connection| {
            let mut statement = connection.prepare(
                "SELECT windows.seq, tool, sessions.id FROM windows JOIN sessions ON sessions.seq = windows.session
                 WHERE closed IS NULL ORDER BY windows.seq",
            )?;
            statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect()
        })?;
        let told = rows.into_iter().map(|(seq, tool, session)| UnderWay {
            tool,
            session: SessionId::from_bytes(session),
            abandoned: window::is_abandoned(self.0.store.dir(), seq),
        });
        Ok(told.collect())
    }
}

impl Maintenance<&mut Workspace> {
    /// Takes the checkpoint `new`, plans a rewind to it, and compares every file of the git repository before and after.
    pub fn self_test(&mut self, new: NewCheckpoint, progress: &dyn Progress) -> Result<Footprint, SelfTestError> {
        let homes = git::homes(&self.0.env.root);
        let before = fingerprint(&homes, progress)?;
        let taken = self.0.checkpoints_mut().take(new, Durability::Synced, progress)?;
        self.0.rewinds().plan(&RewindRequest::new(Goal::Exact { checkpoint: taken.id, session: None }), progress)?;
        if homes.is_empty() {
            return Ok(Footprint::NoRepository);
        }
        let after = fingerprint(&homes, progress)?;
        let paths: BTreeSet<&PathBuf> = before.keys().chain(after.keys()).collect();
        let touched: Vec<PathBuf> =
            paths.into_iter().filter(|path| before.get(*path) != after.get(*path)).cloned().collect();
        Ok(match touched.is_empty() {
            true => Footprint::Untouched { files: after.len() as u64 },
            false => Footprint::Touched { paths: touched },
        })
    }
}

/// Mode and content of everything below `homes`.
fn fingerprint(
    homes: &[PathBuf],
    progress: &dyn Progress,
) -> Result<BTreeMap<PathBuf, (u32, ObjectId)>, SelfTestError> {
    let mut found = BTreeMap::new();
    let mut queue: Vec<PathBuf> = homes.to_vec();
    while let Some(path) = queue.pop() {
        if progress.cancelled() {
            return Err(CheckpointError::Scan(ScanError::Cancelled).into());
        }
        progress.report(Step { phase: Phase::Reading, done: found.len() as u64, total: None });
        let facts = trace(&path, &mut queue);
        match facts {
            Ok(facts) => drop(found.insert(path, facts)),
            Err(err) if err.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(SelfTestError::Git { path, source }),
        }
    }
    Ok(found)
}

/// What is at `path`; what is in a directory goes to `queue`.
fn trace(path: &Path, queue: &mut Vec<PathBuf>) -> io::Result<(u32, ObjectId)> {
    let meta = path.symlink_metadata()?;
    let mut hasher = blake3::Hasher::new();
    if meta.is_dir() {
        for entry in path.read_dir()? {
            queue.push(entry?.path());
        }
    } else if meta.is_symlink() {
        hasher.update(fs::read_link(path)?.as_os_str().as_encoded_bytes());
    } else if meta.is_file() {
        io::copy(&mut plain_file::open(path)?, &mut hasher)?;
    }
    Ok((meta.permissions().mode(), ObjectId::from_bytes(*hasher.finalize().as_bytes())))
}
