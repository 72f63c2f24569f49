//! What every checkpoint held when it was announced, and whether the store still has all of it and nothing that is nobody's.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use retake_engine::checkpoint::Checkpoint;
use retake_engine::snapshot::{Node, NodeKind};
use retake_engine::view::Side;
use retake_engine::{Workspace, WorkspacePath};
use retake_testkit::naive::{self, NaiveKind, NaiveNode, NaiveNodes, Reading};

use crate::sandbox::Sandbox;

/// Bytes at the start of every segment that belong to no record.
const SEGMENT_HEADER: u64 = 16;

/// Checkpoints whose ids were printed, oldest first, with what was on disk then.
#[derive(Clone, Default)]
pub(crate) struct History {
    known: Vec<(String, NaiveNodes)>,
}

/// Which announced checkpoints may be missing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// None at all.
    None,
    /// Those without a label, oldest first: the budget took them.
    OldestUnlabelled,
}

impl History {
    /// Makes a checkpoint and remembers it.
    pub(crate) fn checkpoint(&mut self, s: &Sandbox) -> String {
        let id = s.checkpoint();
        self.remember(s, &id);
        id
    }

    /// Remembers that checkpoint `id` was announced while the disk was as it is now.
    pub(crate) fn remember(&mut self, s: &Sandbox, id: &str) {
        self.known.push((id.to_owned(), on_disk(s)));
    }

    /// Every announced checkpoint is whole, and the store is sound. Returns all ids in the store, oldest first.
    #[track_caller]
    pub(crate) fn assert_kept(&self, s: &Sandbox, missing: Missing) -> Vec<String> {
        let (stored, workspace) = assert_sound(s);
        let by_id: HashMap<String, &Checkpoint> =
            stored.iter().map(|checkpoint| (checkpoint.id.to_string(), checkpoint)).collect();
        let mut younger_may_be_missing = missing == Missing::OldestUnlabelled;
        for (id, truth) in &self.known {
            let Some(checkpoint) = by_id.get(id) else {
                assert!(younger_may_be_missing, "checkpoint {id} was announced and is gone");
                continue;
            };
            younger_may_be_missing &= checkpoint.label.is_some();
            assert_same(id, truth, &read_back(workspace.as_ref().expect("it has checkpoints"), checkpoint));
        }
        stored.iter().map(|checkpoint| checkpoint.id.to_string()).collect()
    }

    /// Like [`assert_kept`](Self::assert_kept) for the newest alone: the store as a whole is checked, only one tree is compared.
    #[track_caller]
    pub(crate) fn assert_newest_kept(&self, s: &Sandbox) {
        let newest = self.known.last().cloned().into_iter().collect();
        Self { known: newest }.assert_kept(s, Missing::None);
    }

    /// The same checkpoints without one path.
    #[cfg(feature = "faults")]
    pub(crate) fn without(&self, path: &[u8]) -> Self {
        let mut history = self.clone();
        history.known.iter_mut().for_each(|(_, nodes)| drop(nodes.remove(path)));
        history
    }

    /// The id that was announced first.
    #[cfg(feature = "faults")]
    pub(crate) fn oldest(&self) -> &str {
        &self.known.first().expect("one was announced").0
    }

    /// Are all announced checkpoints among `stored`?
    #[cfg(feature = "faults")]
    pub(crate) fn is_all_in(&self, stored: &[String]) -> bool {
        self.known.iter().all(|(id, _)| stored.contains(id))
    }

    /// Was this checkpoint announced?
    #[cfg(feature = "faults")]
    pub(crate) fn has(&self, id: &str) -> bool {
        self.known.iter().any(|(known, _)| known == id)
    }
}

/// Everything in the workspace that a checkpoint has to hold.
pub(crate) fn on_disk(s: &Sandbox) -> NaiveNodes {
    naive::read(&s.path("ws"), &Reading::default()).expect("the workspace can be read").nodes
}

/// Compares what checkpoint `id` holds with `truth`.
#[track_caller]
pub(crate) fn assert_holds(s: &Sandbox, id: &str, truth: &NaiveNodes) {
    let workspace = Workspace::open(s.environment()).expect("it is a workspace");
    let checkpoint = workspace.checkpoints().resolve(id).expect("it was made");
    assert_same(id, truth, &read_back(&workspace, &checkpoint));
}

/// The store is unharmed; returns its checkpoints, oldest first. A store that was never finished has none.
#[track_caller]
fn assert_sound(s: &Sandbox) -> (Vec<Checkpoint>, Option<Workspace>) {
    let environment = s.environment();
    if !Workspace::exists(&environment.data_dir, &environment.root).expect("the data directory can be used") {
        return (Vec::new(), None);
    }
    let workspace = Workspace::open(environment).expect("the store can be opened");
    let integrity = workspace.maintenance().check().expect("the store can be checked");
    assert!(integrity.damage.is_empty(), "{:?}", integrity.damage);
    assert!(integrity.affected.is_empty(), "not whole: {:?}", integrity.affected);
    let mut stored = workspace.checkpoints().all().expect("they can be listed");
    stored.reverse();
    (stored, Some(workspace))
}

#[track_caller]
fn assert_same(id: &str, truth: &NaiveNodes, stored: &NaiveNodes) {
    let wrong: Vec<String> = naive::diff(truth, stored).keys().map(|path| path.escape_ascii().to_string()).collect();
    assert!(wrong.is_empty(), "checkpoint {id} differs from what was on disk: {wrong:?}");
}

fn read_back(workspace: &Workspace, checkpoint: &Checkpoint) -> NaiveNodes {
    let side = Side::Stored(checkpoint.snapshot);
    let mut nodes = NaiveNodes::new();
    let mut directories = vec![None];
    while let Some(directory) = directories.pop() {
        for (name, node) in workspace.list(&side, directory.as_ref()).expect("a directory of a checkpoint") {
            let path = directory.as_ref().map_or_else(|| name.clone(), |above| join(above, &name));
            let path = WorkspacePath::parse(&path).expect("stored paths are plain");
            nodes.insert(path.as_bytes().to_vec(), read_node(workspace, &side, &path, &node));
            if node.kind == NodeKind::Directory {
                directories.push(Some(path));
            }
        }
    }
    nodes
}

fn join(above: &WorkspacePath, name: &[u8]) -> Vec<u8> {
    [above.as_bytes(), b"/", name].concat()
}

fn read_node(workspace: &Workspace, side: &Side<'_>, path: &WorkspacePath, node: &Node) -> NaiveNode {
    let mut content = Vec::new();
    let kind = match node.kind {
        NodeKind::File => NaiveKind::File,
        NodeKind::Symlink => NaiveKind::Symlink,
        NodeKind::Directory => NaiveKind::Directory,
    };
    if node.kind != NodeKind::Directory {
        workspace.content(side, path, node, &mut content).expect("a file of a checkpoint");
    }
    NaiveNode { kind, mode: node.mode, content }
}

/// No file that was to replace another is left in any store.
#[track_caller]
pub(crate) fn assert_no_temporary_files(s: &Sandbox) {
    let stores = fs::read_dir(s.path("data/workspaces")).into_iter().flatten();
    for store in stores {
        let names = names(&store.expect("it can be listed").path());
        assert!(!names.iter().any(|name| name.ends_with(".new")), "{names:?}");
    }
}

/// Nothing is in the store's folder but what a store consists of, and no segment has bytes that were never committed.
#[track_caller]
pub(crate) fn assert_no_litter(s: &Sandbox) {
    assert_eq!(names(&s.path("data")), ["workspaces"]);
    let store = s.store();
    let parts = ["index", "index.lock", "lock", "packs", "retake.db", "retake.db-shm", "retake.db-wal", "workspace"];
    assert_eq!(names(&store), parts);
    let committed = committed(&store);
    for name in names(&store.join("packs")) {
        let id: u32 = name.strip_suffix(".pack").and_then(|id| id.parse().ok()).expect("only segments are here");
        let len = fs::metadata(store.join("packs").join(&name)).expect("it was listed").len();
        assert_eq!(len, committed.get(&id).copied().unwrap_or(SEGMENT_HEADER), "{name} has bytes that are nobody's");
    }
}

/// The names in a directory, sorted.
pub(crate) fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("it can be listed");
    let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("it can be listed").file_name();
    let mut names: Vec<String> = entries.map(|entry| name(entry).to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// How much of each segment is committed, by the database.
fn committed(store: &Path) -> HashMap<u32, u64> {
    let database = rusqlite::Connection::open(store.join("retake.db")).expect("it is a database");
    let mut statement = database.prepare("SELECT id, committed FROM packs").expect("the table exists");
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("it can be read");
    rows.map(|row| row.expect("it can be read")).collect()
}
