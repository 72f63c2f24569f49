//! After a purge no byte of the secret is left, and everything else is.

use std::collections::BTreeMap;
use std::path::Path;

use super::*;
use crate::history::checkpoint::Checkpoint;
use crate::maintenance::PurgeError;
use crate::rewind::{Goal, KeptBecause, RewindRequest};
use crate::snapshot::gaps::Gap;
use crate::store::tree::{GapKind, encode_node};
use crate::store::{bundle, pack, record};
use crate::workspace::Workspace;
use crate::workspace::view::Side;

const SECRET: &[u8] = b"correct horse battery staple, correct horse battery staple";

/// Every version of the secret has this in it; also what compression makes of it is looked at.
fn secret(version: u32) -> Vec<u8> {
    [SECRET, format!(" version {version}\n").as_bytes()].concat()
}

impl Scene {
    fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().expect("it is below the root")).expect("directories can be made");
        fs::write(path, content).expect("it can be written");
    }

    fn take(&mut self, day: i64) -> Checkpoint {
        let new = self.next(day);
        self.workspace.checkpoints_mut().take(new, Durability::Soon, &NoProgress).expect("there is room")
    }

    fn purge(&mut self, paths: &[&str]) -> crate::maintenance::Purged {
        let paths: Vec<WorkspacePath> = paths.iter().map(|text| path(text)).collect();
        let purged = self.workspace.maintenance_mut().purge(&paths, &NoProgress).expect("nothing is in the way");
        assert!(!purged.stopped && !self.workspace.maintenance().is_purge_unfinished().expect("it can be read"));
        let integrity = self.workspace.maintenance().check().expect("it can be checked");
        assert!(integrity.damage.is_empty() && integrity.affected.is_empty(), "{integrity:?}");
        purged
    }

    /// Every file and link of every checkpoint, with its content.
    fn everything(&self) -> BTreeMap<(CheckpointId, Vec<u8>), Vec<u8>> {
        let mut found = BTreeMap::new();
        for checkpoint in self.workspace.checkpoints().all().expect("they can be listed") {
            let side = Side::Stored(checkpoint.snapshot);
            let mut queue = vec![None];
            while let Some(above) = queue.pop() {
                for (name, node) in self.workspace.list(&side, above.as_ref()).expect("it can be listed") {
                    let below = crate::base::path::join(above.as_ref().map_or(b"", WorkspacePath::as_bytes), &name);
                    let below = WorkspacePath::parse(&below).expect("it is plain");
                    let mut content = Vec::new();
                    if node.kind != NodeKind::Directory {
                        self.workspace.content(&side, &below, &node, &mut content).expect("it is whole");
                    }
                    found.insert((checkpoint.id, below.as_bytes().to_vec()), content);
                    queue.extend((node.kind == NodeKind::Directory).then_some(Some(below)));
                }
            }
        }
        found
    }
}

/// Every byte of the store: files as they are, and all records decompressed, whether a row points to them or not.
fn assert_nowhere(dir: &Path, needle: &[u8]) {
    let holds = |bytes: &[u8]| bytes.windows(needle.len()).any(|window| window == needle);
    for entry in fs::read_dir(dir).expect("it can be listed") {
        let path = entry.expect("it can be listed").path();
        if path.is_dir() {
            assert_nowhere(&path, needle);
            continue;
        }
        let bytes = fs::read(&path).expect("it can be read");
        assert!(!holds(&bytes), "in `{}`", path.display());
        if path.extension().is_some_and(|extension| extension == "pack") {
            let mut rest = &bytes[usize::try_from(pack::SEGMENT_HEADER).expect("it is small")..];
            while !rest.is_empty() {
                let (_, len) = record::header(rest).expect("segments hold whole records only");
                let plain = bundle::plain_bytes(&rest[..len]);
                assert!(!holds(&plain), "compressed in `{}`", path.display());
                rest = &rest[len..];
            }
        }
    }
}

#[test]
fn no_byte_of_a_purged_file_is_left_and_everything_else_is() {
    let mut s = Scene::new();
    s.write("src/main.rs", "fn main() {}\n".repeat(50));
    s.take(1);
    s.write("config/.env", secret(1));
    s.take(2);
    s.write("config/.env", secret(2));
    s.write("config/other", "kept");
    let labelled = s.take(3);
    s.workspace.checkpoints_mut().set_label(labelled.id, Some("kept")).expect("it is free");
    s.write("config/.env", [secret(3), vec![7; 2 << 20], secret(4)].concat());
    s.write("src/main.rs", "fn main() { run() }\n".repeat(50));
    s.take(4);
    fs::remove_file(s.root.join("config/.env")).expect("it was there");
    s.take(5);
    let mut expected = s.everything();
    let all = expected.len();
    expected.retain(|(_, path), _| path != b"config/.env");
    assert_eq!(all - expected.len(), 3);

    let purged = s.purge(&["config/.env"]);
    assert_eq!((purged.checkpoints, purged.contents, purged.still_stored), (3, 3, 0));
    assert!(purged.on_disk.is_empty() && purged.bytes_after < purged.bytes_before, "{purged:?}");
    assert_eq!(s.everything(), expected);
    assert_nowhere(s.workspace.store_dir(), SECRET);
    assert!(s.workspace.changes().of_path(&path("config/.env")).expect("it can be read").is_empty());
    let gaps = |s: &Scene, day: i64| {
        let checkpoints = s.workspace.checkpoints().all().expect("they can be listed");
        let found = checkpoints.iter().find(|checkpoint| checkpoint.at.0 == day * DAY_MS).expect("it is there");
        (s.workspace.checkpoints().gaps(found).expect("they can be read"), found.gap_count)
    };
    let gap = Gap { path: path("config/.env"), kind: GapKind::Purged };
    assert_eq!(gaps(&s, 3), (vec![gap], 1));
    assert_eq!(gaps(&s, 1), (vec![], 0));

    // And once more: nothing is there to be done.
    let again = s.purge(&["config/.env"]);
    assert_eq!((again.checkpoints, again.contents), (0, 0));
    s.take(6);
    assert_eq!(s.ids().len(), 6);
}

#[test]
fn a_secret_that_was_compressed_with_others_goes_and_they_stay() {
    let mut s = Scene::new();
    for round in 0..3 {
        s.write("keys/api", [secret(round), b"long enough to be compressed with others, ".repeat(9)].concat());
        s.write("keys/readme", format!("this stays {round}\n").repeat(99));
        s.take(1);
    }
    s.gc(Timestamp(2 * DAY_MS));
    let mut expected = s.everything();
    expected.retain(|(_, path), _| path != b"keys/api");
    assert_eq!(s.purge(&["keys/api"]).contents, 3);
    assert_eq!(s.everything(), expected);
    assert_nowhere(s.workspace.store_dir(), SECRET);
    s.gc(Timestamp(2 * DAY_MS));
    assert_eq!(s.everything(), expected);
}

#[test]
fn a_rewind_leaves_what_was_purged_alone() {
    let mut s = Scene::new();
    s.write("key", secret(1));
    s.write("file", "then");
    let then = s.take(1);
    s.write("file", "now");
    s.take(2);
    assert_eq!(s.purge(&["key"]).on_disk, [path("key")]);
    let plan = s
        .workspace
        .rewinds()
        .plan(&RewindRequest::new(Goal::Exact { checkpoint: then.id, session: None }), &NoProgress);
    let plan = plan.expect("it is there");
    let touched: Vec<&[u8]> = plan.paths.iter().map(|planned| planned.path.as_bytes()).collect();
    assert_eq!(touched, [b"file"]);
    assert!(plan.kept.iter().any(|kept| kept.path == path("key") && kept.why == KeptBecause::NotProven), "{plan:?}");
}

#[test]
fn a_purged_folder_goes_with_everything_below_and_what_others_hold_is_told() {
    let mut s = Scene::new();
    for n in 0..20 {
        s.write(&format!("secrets/deep/{n}"), secret(n));
    }
    s.write("copy/of/5", secret(5));
    s.take(1);
    fs::remove_dir_all(s.root.join("secrets")).expect("it was there");
    s.take(2);
    let purged = s.purge(&["secrets"]);
    assert_eq!((purged.checkpoints, purged.contents, purged.still_stored), (1, 20, 1));
    assert_eq!(purged.holders, [path("copy/of/5")]);
    assert!(s.has(&secret(5)) && !s.has(&secret(6)));
    let purged = s.purge(&["copy/of/5"]);
    assert_eq!((purged.checkpoints, purged.on_disk.len()), (2, 1));
    assert_nowhere(s.workspace.store_dir(), SECRET);
}

#[test]
fn rows_that_tell_of_a_purged_path_go_too() {
    let mut s = Scene::new();
    s.workspace.windows().declare(&path("key/a")).expect("it can be written");
    s.write("key/a", secret(1));
    s.take(1);
    s.write("key/a", secret(2));
    s.write("keyring", "another name");
    s.take(2);
    s.run("INSERT INTO operations (id, handle, at, kind, what, before, state) VALUES (zeroblob(16), '01', 0, 1, 'x', 2, 1)");
    let displaced = encode_node(&node(&secret(1)));
    let hex: String = displaced.iter().map(|byte| format!("{byte:02x}")).collect();
    s.run(&format!("INSERT INTO displaced SELECT seq, CAST('key/a' AS BLOB), x'{hex}' FROM operations"));
    s.purge(&["key"]);
    let rows = ["changes", "displaced", "declared"].map(|table| s.count(table));
    assert_eq!(rows, [1, 0, 0], "only `keyring` is told of");
    assert!(!s.has(&secret(1)));
}

#[test]
fn an_interrupted_rewind_comes_before_a_purge() {
    let mut s = Scene::new();
    s.checkpoint(1, b"x");
    s.run("INSERT INTO operations (id, handle, at, kind, what, before, state) VALUES (zeroblob(16), '01', 0, 1, 'x', 1, 0)");
    let done = s.workspace.store.db().transaction(Durability::Soon, |tx| intent::insert(tx, 1, &[], &[]));
    done.expect("the operation is there");
    let refused = s.workspace.maintenance_mut().purge(&[path("file")], &NoProgress);
    assert!(matches!(refused, Err(PurgeError::Pending { .. })), "{refused:?}");
}

#[test]
fn an_interrupted_purge_is_finished_by_the_next_clean_up() {
    let mut s = Scene::new();
    s.checkpoint(1, &secret(1));
    s.checkpoint(2, b"x");
    s.purge(&["file"]);
    s.checkpoint(3, &secret(2));
    s.checkpoint(4, b"y");
    // As if the process had died right after the checkpoints were rewritten.
    s.run("DELETE FROM checkpoints WHERE seq = 3; INSERT INTO meta VALUES ('purging', 1)");
    s.workspace.maintenance_mut().gc(Timestamp(5 * DAY_MS), &NoProgress).expect("the store can be cleaned up");
    assert!(!s.workspace.maintenance().is_purge_unfinished().expect("it can be read"));
    assert_nowhere(s.workspace.store_dir(), SECRET);
}

#[test]
fn an_idle_process_does_not_keep_what_is_purged_and_goes_on() {
    let mut s = Scene::new();
    s.checkpoint(1, &secret(1));
    // It keeps the segment that it wrote to.
    let mut idle = Workspace::open(s.workspace.env.clone()).expect("it is a workspace");
    s.write("other", "x");
    let new = s.next(2);
    drop(std::mem::replace(&mut s.workspace, Workspace::open(idle.env.clone()).expect("it is a workspace")));
    idle.checkpoints_mut().take(new, Durability::Soon, &NoProgress).expect("there is room");
    fs::remove_file(s.root.join("file")).expect("it was there");
    s.purge(&["file"]);
    assert_nowhere(s.workspace.store_dir(), SECRET);
    s.write("more", "of it");
    let new = s.next(3);
    let made = idle.checkpoints_mut().take(new, Durability::Soon, &NoProgress).expect("there is room");
    idle.sync().expect("it can be synced");
    assert_eq!(made.changed.added, 1);
    let integrity = s.workspace.maintenance().check().expect("it can be checked");
    assert!(integrity.damage.is_empty() && integrity.affected.is_empty(), "{integrity:?}");
}
