//! What depends on rows that no outside caller can bring about alone: interrupted rewinds, displaced files, tool calls under way.

mod doctor;
mod purge;

use std::fs;
use std::path::PathBuf;

use crate::base::id::{CheckpointId, ObjectId, OperationId, SessionId};
use crate::base::path::WorkspacePath;
use crate::base::progress::NoProgress;
use crate::base::settings::{Breadth, Environment, Settings, Timestamp};
use crate::history::checkpoint::{Checkpoint, NewCheckpoint};
use crate::history::intent::{self, Item};
use crate::history::owner::{NewWindow, Reach};
use crate::history::sessions::NewSession;
use crate::store::Durability;
use crate::store::db::in_transaction;
use crate::store::tree::{Node, NodeKind, encode_node};
use crate::workspace::Workspace;

pub(super) const DAY_MS: i64 = 24 * 60 * 60 * 1000;
pub(super) const LATER: Timestamp = Timestamp(1_000 * DAY_MS);

pub(super) struct Scene {
    pub(super) workspace: Workspace,
    pub(super) root: PathBuf,
    _scratch: tempfile::TempDir,
    count: u8,
}

impl Scene {
    pub(super) fn new() -> Self {
        let scratch = tempfile::tempdir().expect("a temporary directory");
        let root = scratch.path().canonicalize().expect("it exists").join("root");
        fs::create_dir(&root).expect("it is new");
        let workspace = Workspace::open_or_create(Environment {
            root: root.clone(),
            data_dir: scratch.path().join("store"),
            global_excludes: None,
            homes: Vec::new(),
            breadth: Breadth::Guarded,
            settings: Settings::default(),
            threads: 2,
        });
        Self { workspace: workspace.expect("it can be made"), root, _scratch: scratch, count: 0 }
    }

    pub(super) fn next(&mut self, day: i64) -> NewCheckpoint {
        self.count += 1;
        let at = Timestamp(day * DAY_MS);
        NewCheckpoint { id: CheckpointId::new(at, [self.count; 10]), at, label: None }
    }

    /// A checkpoint taken on `day` of `file` with `content`.
    pub(super) fn checkpoint(&mut self, day: i64, content: &[u8]) -> Checkpoint {
        fs::write(self.root.join("file"), content).expect("it can be written");
        let new = self.next(day);
        self.workspace.checkpoints_mut().take(new, Durability::Soon, &NoProgress).expect("there is room")
    }

    pub(super) fn gc(&mut self, now: Timestamp) -> super::Collected {
        let collected = self.workspace.maintenance_mut().gc(now, &NoProgress).expect("the store can be cleaned up");
        let integrity = self.workspace.maintenance().check().expect("it can be checked");
        assert!(integrity.damage.is_empty() && integrity.affected.is_empty(), "{integrity:?}");
        collected
    }

    pub(super) fn ids(&self) -> Vec<CheckpointId> {
        self.workspace.checkpoints().all().expect("they can be listed").iter().map(|checkpoint| checkpoint.id).collect()
    }

    pub(super) fn count(&self, table: &str) -> i64 {
        let sql = format!("SELECT count(*) FROM {table}");
        self.workspace.store.db().read(|c| c.query_row(&sql, [], |row| row.get(0))).expect("it is a table")
    }

    pub(super) fn has(&self, content: &[u8]) -> bool {
        self.workspace.store.contains(&ObjectId::of(content)).expect("the database is sound")
    }

    pub(super) fn run(&mut self, sql: &str) {
        let done = self
            .workspace
            .store
            .db()
            .transaction(Durability::Soon, |tx| tx.execute_batch(sql).map_err(in_transaction(tx)));
        done.expect("it is right for the schema");
    }
}

pub(super) fn node(content: &[u8]) -> Node {
    Node { kind: NodeKind::File, mode: 0o644, content: ObjectId::of(content), size: content.len() as u64 }
}

pub(super) fn path(text: &str) -> WorkspacePath {
    WorkspacePath::parse(text.as_bytes()).expect("it is plain")
}

#[test]
fn old_checkpoints_go_and_the_newest_and_labelled_ones_stay() {
    let mut s = Scene::new();
    let kept = s.checkpoint(1, b"labelled");
    s.workspace.checkpoints_mut().set_label(kept.id, Some("kept")).expect("it is free");
    s.checkpoint(2, b"old");
    let young = s.checkpoint(40, b"young");
    let newest = s.checkpoint(3, b"newest, by a clock that went back");
    let collected = s.gc(Timestamp(50 * DAY_MS));
    assert_eq!((collected.checkpoints, s.ids()), (1, vec![newest.id, young.id, kept.id]));
    assert!(!s.has(b"old") && s.has(b"young") && s.has(b"labelled"));
    assert_eq!(s.gc(LATER).checkpoints, 1);
    assert_eq!(s.ids(), [newest.id, kept.id]);
    assert!(s.workspace.maintenance_mut().gc_preview(LATER, &NoProgress).expect("it can be read").checkpoints == 0);
}

#[test]
fn changes_that_lead_up_to_the_oldest_point_go_with_those_before_it() {
    let mut s = Scene::new();
    for (day, content) in [(1, b"1"), (2, b"2"), (40, b"3"), (41, b"4")] {
        s.checkpoint(day, content);
    }
    assert_eq!(s.count("changes"), 3);
    s.gc(Timestamp(50 * DAY_MS));
    assert_eq!((s.count("checkpoints"), s.count("changes")), (2, 1));
    assert_eq!(s.workspace.changes().of_path(&path("file")).expect("it can be read").len(), 1);
}

#[test]
fn what_an_operation_displaced_stays_as_long_as_the_operation() {
    let mut s = Scene::new();
    s.checkpoint(1, b"displaced");
    s.checkpoint(2, b"before");
    s.checkpoint(40, b"after");
    s.run("INSERT INTO operations (id, handle, at, kind, what, before, state) VALUES (zeroblob(16), '01', 0, 1, 'x', 2, 1)");
    let displaced = encode_node(&node(b"displaced"));
    let hex: String = displaced.iter().map(|byte| format!("{byte:02x}")).collect();
    s.run(&format!("INSERT INTO displaced SELECT seq, x'66', x'{hex}' FROM operations"));
    s.run("DELETE FROM checkpoints WHERE seq = 1");
    s.gc(Timestamp(3 * DAY_MS));
    assert!(s.has(b"displaced"), "the operation is there");
    s.gc(LATER);
    assert_eq!((s.count("operations"), s.count("displaced")), (0, 0));
    assert!(!s.has(b"displaced") && s.has(b"after"));
}

#[test]
fn everything_that_an_interrupted_rewind_needs_stays() {
    let mut s = Scene::new();
    s.checkpoint(1, b"after the rewind");
    let before = s.checkpoint(2, b"before the rewind");
    let newest = s.checkpoint(3, b"newest");
    s.run("INSERT INTO operations (id, handle, at, kind, what, before, state) VALUES (zeroblob(16), '01', 0, 1, 'x', 2, 0)");
    let item = Item {
        path: path("file"),
        before: Some(node(b"before the rewind")),
        after: Some(node(b"after the rewind")),
        temp: path(".temp"),
    };
    let done = s.workspace.store.db().transaction(Durability::Soon, |tx| intent::insert(tx, 1, &[item], &[]));
    done.expect("the operation is there");
    assert_eq!(s.gc(LATER).checkpoints, 1);
    assert_eq!(s.ids(), [newest.id, before.id]);
    assert!(s.has(b"after the rewind"), "its checkpoint is gone, and yet it is needed");
    let evicted = s.workspace.store.evict(1, &[], None).expect("it can be read");
    assert_eq!((evicted, s.ids().len()), (Some(0), 2));
    s.run("DELETE FROM intents");
    s.gc(LATER);
    assert_eq!((s.ids(), s.count("operations")), (vec![newest.id], 0));
    assert!(!s.has(b"after the rewind"));
}

#[test]
fn the_point_before_a_tool_call_under_way_stays() {
    let mut s = Scene::new();
    s.checkpoint(1, b"old");
    let id = SessionId::new(Timestamp(0), [9; 10]);
    let session = NewSession {
        id,
        at: Timestamp(0),
        title: "work".to_owned(),
        kind: crate::history::sessions::SessionKind::Commands,
    };
    s.workspace.sessions_mut().create(session).expect("it is new");
    let new = s.next(2);
    let window = NewWindow {
        session: id,
        turn: None,
        tool: "bash: make".to_owned(),
        reach: Reach::Everything,
        declared: Vec::new(),
        operation: crate::history::owner::PartOf::Own(OperationId::new(Timestamp(2 * DAY_MS), [7; 10])),
    };
    let began = s.workspace.windows().begin(window, new, &NoProgress).expect("there is room");
    let newest = s.checkpoint(3, b"while it runs");
    s.gc(LATER);
    assert_eq!(s.ids(), [newest.id, began.before.id]);
    assert_eq!((s.count("operations"), s.count("windows")), (1, 1));
    let new = s.next(4);
    s.workspace.windows().end(began.window, new, Durability::Soon, &NoProgress).expect("there is room");
    s.gc(LATER);
    let rows = ["checkpoints", "operations", "windows", "changes"].map(|table| s.count(table));
    assert_eq!(rows, [1, 0, 0, 0]);
}

#[test]
fn what_was_stored_in_a_hurry_is_compressed_with_care() {
    let mut s = Scene::new();
    let text: String = (0..400_000).map(|n| format!("line {n} of a text that compresses\n")).collect();
    for (number, part) in text.as_bytes().chunks(100_000).enumerate() {
        fs::write(s.root.join(number.to_string()), part).expect("it can be written");
    }
    let made = s.checkpoint(1, b"x");
    let collected = s.gc(Timestamp(2 * DAY_MS));
    assert!(collected.bytes_after * 3 < collected.bytes_before * 2, "{collected:?}");
    let again = s.gc(Timestamp(2 * DAY_MS));
    assert_eq!((again.objects, again.bytes_after), (0, again.bytes_before), "once is enough");
    assert_eq!(s.ids(), [made.id]);
}

#[test]
fn the_budget_holds_although_objects_were_compressed_together() {
    let mut s = Scene::new();
    s.workspace.store.set_budget(1 << 20);
    let noise = |seed: u32| -> Vec<u8> {
        (0..1_000_u32).flat_map(|n| *ObjectId::of(&[seed.to_le_bytes(), n.to_le_bytes()].concat()).as_bytes()).collect()
    };
    for day in 1..60 {
        fs::write(s.root.join("steady"), noise(0)).expect("it can be written");
        let made = s.checkpoint(day, &noise(u32::try_from(day).expect("it is small")));
        let bytes = s.workspace.maintenance().usage().expect("it can be read").store_bytes;
        assert!(bytes <= 1 << 20, "{bytes} bytes on day {day}");
        assert_eq!(s.ids().first(), Some(&made.id));
        if day % 13 == 0 {
            s.gc(Timestamp(day * DAY_MS));
        }
    }
    assert!(s.ids().len() > 5 && s.ids().len() < 40, "{}", s.ids().len());
    s.gc(Timestamp(60 * DAY_MS));
}
