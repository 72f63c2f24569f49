//! What no outside caller can bring about.

use super::*;

#[test]
fn records_stay_when_a_commit_fails_that_counted_after_all() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let store = Store::open(dir.path(), 1 << 30).expect("it can be created");
    let id = ObjectId::of(b"content");
    let batch = store.batch(Effort::Quick).expect("it can be started");
    batch.put(ObjectKind::Blob, id, b"content").expect("there is room");
    // The system reports a failure after the log was written.
    let failed = batch.commit(Durability::Synced, |tx| {
        tx.execute_batch("COMMIT").map_err(db::in_transaction(tx))?;
        Err::<(), _>(StoreError::Collected)
    });
    assert!(failed.is_err());
    drop(batch);
    assert_eq!(store.read(id).expect("its row is there, so its record is").1, b"content");
}

#[test]
fn a_tail_that_cannot_be_read_is_an_error_and_not_torn() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("segment");
    let record = record::encode(ObjectKind::Blob, ObjectId::of(b"content"), b"content", Effort::Small);
    let mut bytes = vec![0; usize::try_from(pack::SEGMENT_HEADER).expect("it is small")];
    bytes.extend_from_slice(&record);
    std::fs::write(&path, &bytes).expect("it is ours");
    let end = bytes.len() as u64;
    let sound = |file: &File, to| pack::sound_until(file, 0, to);
    let readable = File::open(&path).expect("it is there");
    assert_eq!(sound(&readable, end).expect("it can be read"), end);
    assert_eq!(sound(&readable, end + 100).expect("a short file is no failure"), end);
    // The system refuses to read a file that is open for writing only.
    let unreadable = File::options().write(true).open(&path).expect("it is ours");
    assert!(sound(&unreadable, end).is_err());
}

#[test]
fn an_unreadable_tail_keeps_readers_going_and_stops_writers() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let id = ObjectId::of(b"content");
    let put = |store: &Store, content: &[u8]| {
        let batch = store.batch(Effort::Quick)?;
        batch.put(ObjectKind::Blob, ObjectId::of(content), content)?;
        batch.commit(Durability::Soon, |_| Ok(()))
    };
    put(&Store::open(dir.path(), 1 << 30).expect("it can be created"), b"content").expect("there is room");
    let segment = pack::segment_path(&dir.path().join("packs"), 1);
    let away = dir.path().join("away");
    std::fs::rename(&segment, &away).expect("it was written");
    // A directory cannot be opened for writing, not even by root.
    std::fs::create_dir(&segment).expect("it was moved away");
    let store = Store::open(dir.path(), 1 << 30).expect("what can be read can still be read");
    assert!(store.contains(&id).expect("the database is sound"));
    assert!(matches!(put(&store, b"more"), Err(StoreError::WrongKind { kind: "a directory", .. })));
    std::fs::remove_dir(&segment).expect("it is empty");
    std::fs::rename(&away, &segment).expect("it is back");
    put(&store, b"more").expect("it can be checked again");
    assert_eq!(store.read(id).expect("nothing was cut off").1, b"content");
}

#[test]
fn a_new_segment_is_synced_with_its_name() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let packs = dir.path().join("packs");
    std::fs::create_dir(&packs).expect("it is new");
    let start = || pack::Segment::start_new(&packs, 0).expect("it can be created");
    let (synced, unsynced) = (start(), start());
    synced.sync().expect("its directory is there");
    std::fs::rename(&packs, dir.path().join("elsewhere")).expect("it is ours");
    assert!(unsynced.sync().is_err(), "its name cannot be synced without its directory");
    synced.sync().expect("its name was synced before");
}
