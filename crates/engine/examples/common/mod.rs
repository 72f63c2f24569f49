//! What the examples share: a workspace in a temporary directory, and identities made from a counter.
//!
//! A real program takes the time from its clock and the random bytes from the operating system.
#![allow(dead_code, reason = "each example uses a part of it")]

use std::error::Error;
use std::path::PathBuf;

use retake_engine::checkpoint::NewCheckpoint;
use retake_engine::id::{CheckpointId, EntryId, OperationId};
use retake_engine::rewind::NewRewind;
use retake_engine::{Breadth, Environment, Settings, Timestamp, Workspace};

/// What a step of an example returns.
pub(crate) type Fallible<T = ()> = Result<T, Box<dyn Error>>;

/// A project that goes when this is dropped.
pub(crate) struct Project {
    pub(crate) workspace: Workspace,
    pub(crate) root: PathBuf,
    pub(crate) _scratch: tempfile::TempDir,
}

impl Project {
    /// An empty directory, opened as a workspace.
    pub(crate) fn new() -> Fallible<Self> {
        let scratch = tempfile::tempdir()?;
        let root = scratch.path().canonicalize()?.join("project");
        std::fs::create_dir(&root)?;
        let workspace = Workspace::open_or_create(Environment {
            root: root.clone(),
            data_dir: scratch.path().join("data"),
            global_excludes: None,
            homes: Vec::new(),
            breadth: Breadth::Guarded,
            settings: Settings::default(),
            threads: 2,
        })?;
        Ok(Self { workspace, root, _scratch: scratch })
    }
}

/// Gives out times and random bytes, each once.
#[derive(Default)]
pub(crate) struct Fresh(u64);

impl Fresh {
    pub(crate) fn random(&mut self) -> [u8; 10] {
        self.0 += 1;
        let mut random = [0; 10];
        random[..8].copy_from_slice(&self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
        random
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp(1_790_000_000_000 + self.0.cast_signed())
    }

    pub(crate) fn checkpoint(&mut self, label: Option<&str>) -> NewCheckpoint {
        let (random, at) = (self.random(), self.now());
        NewCheckpoint { id: CheckpointId::new(at, random), at, label: label.map(str::to_owned) }
    }

    pub(crate) fn operation(&mut self) -> OperationId {
        OperationId::new(self.now(), self.random())
    }

    pub(crate) fn rewind(&mut self) -> NewRewind {
        let at = self.now();
        NewRewind {
            operation: OperationId::new(at, self.random()),
            safety: CheckpointId::new(at, self.random()),
            after: CheckpointId::new(at, self.random()),
            note: EntryId::new(self.random()),
            at,
        }
    }
}
