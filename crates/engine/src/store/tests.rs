//! What no outside caller can bring about.

use super::*;

#[test]
fn records_stay_when_a_commit_fails_that_counted_after_all() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let store = Store::open(dir.path(), 1 << 30).expect("it can be created");
    let id = ObjectId::of(b"content");
    let batch = store.batch(Effort::Quick).expect("it can be started");
    batch.put(Kind::Blob, id, b"content").expect("there is room");
    // The system reports a failure after the log was written.
    let failed = batch.commit(Durability::Synced, |tx| {
        tx.execute_batch("COMMIT").map_err(db::in_transaction(tx))?;
        Err::<(), _>(StoreError::Collected)
    });
    assert!(failed.is_err());
    drop(batch);
    assert_eq!(store.read(id).expect("its row is there, so its record is").1, b"content");
}
