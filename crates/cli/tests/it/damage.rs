//! A store that was damaged from outside: one sentence that says what, only what needs the damaged part fails, and on it goes.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use retake_engine::view::Side;
use retake_engine::{Workspace, WorkspacePath};

use crate::history::{self, History, Missing};
use crate::sandbox::{Run, Sandbox, noise};

const PAGE: u64 = 4096;

/// A workspace with two checkpoints: `first` holds `a` and `dir/b`, `second` also `c`, which lies behind them in the pack.
fn two_checkpoints() -> Sandbox {
    let s = Sandbox::in_memory();
    s.write("a", noise(1, 5_000)).write("dir/b", noise(2, 5_000));
    s.retake(["checkpoint", "-m", "first"]).succeeds();
    s.write("c", noise(3, 5_000));
    s.retake(["checkpoint", "-m", "second"]).succeeds();
    s
}

fn pack(s: &Sandbox) -> PathBuf {
    s.store().join("packs/00000001.pack")
}

fn open(path: PathBuf) -> File {
    OpenOptions::new().read(true).write(true).open(path).expect("it is there")
}

/// Where in the pack the content of `path` in `point` begins, and how long it is.
fn location(s: &Sandbox, point: &str, path: &str) -> (u64, u64) {
    let workspace = Workspace::open(s.environment()).expect("it is a workspace");
    let side = Side::Stored(workspace.checkpoints().resolve(point).expect("it was made").snapshot);
    let path = WorkspacePath::parse(path.as_bytes()).expect("a plain path");
    let id = workspace.entry(&side, &path).expect("it can be looked up").expect("it is there").content;
    let database = rusqlite::Connection::open(s.store().join("retake.db")).expect("it is a database");
    let sql = format!("SELECT offset, len FROM objects WHERE id = x'{id}'");
    database.query_row(&sql, [], |row| Ok((row.get(0)?, row.get(1)?))).expect("it is stored")
}

/// Brings everything that is in the database's log into its file.
fn fold_log(s: &Sandbox) -> PathBuf {
    let path = s.store().join("retake.db");
    let database = rusqlite::Connection::open(&path).expect("it is a database");
    database.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("nobody else has it open");
    path
}

/// What `log` says is still all there.
fn assert_listed(s: &Sandbox, labels: &[&str]) {
    let listed = s.retake(["log", "--json"]).json();
    let found: Vec<_> = listed["checkpoints"].as_array().expect("a list").iter().map(|c| c["label"].clone()).collect();
    assert_eq!(found, labels);
}

fn affected(s: &Sandbox) -> Vec<String> {
    let workspace = Workspace::open(s.environment()).expect("it is a workspace");
    let integrity = workspace.maintenance().check().expect("it can be checked");
    assert!(!integrity.damage.is_empty(), "it is damaged");
    integrity.affected.into_iter().filter_map(|checkpoint| checkpoint.label).collect()
}

#[test]
fn a_flipped_byte_harms_only_the_file_it_is_in() {
    let s = two_checkpoints();
    let (offset, len) = location(&s, "second", "c");
    let (file, mut byte) = (open(pack(&s)), [0]);
    file.read_exact_at(&mut byte, offset + len / 2).expect("it is there");
    file.write_all_at(&[byte[0] ^ 0x10], offset + len / 2).expect("it is ours");

    let run = s.retake(["show", "second:c"]).fails(1);
    run.says("is damaged");
    run.says("00000001.pack");
    run.says("hint: only what needs this object is affected; everything else can still be shown and compared");
    assert_eq!(s.retake(["show", "second:a"]).succeeds().stdout, noise(1, 5_000));
    assert_eq!(s.retake(["show", "first:dir/b"]).succeeds().stdout, noise(2, 5_000));
    assert_listed(&s, &["second", "first"]);
    assert_eq!(s.retake(["diff", "first", "second", "--name-only"]).text(), "c\n");
    s.retake(["diff", "first", "second"]).fails(1).says("cannot compare `c`");
    assert_eq!(affected(&s), ["second"]);
    s.write("d", "new\n").write("e", "new\n");
    s.retake(["checkpoint", "-m", "third"]).succeeds();
    assert_eq!(s.retake(["show", "third:d"]).text(), "new\n");
    for args in [["diff", "first", "third"].as_slice(), &["diff", "first", "third", "--stat"]] {
        let run = Run::of(s.retake_command().args(args));
        assert_eq!(run.code(), Some(1));
        run.says("error: cannot compare `c`\n");
        let text = String::from_utf8_lossy(&run.stdout);
        assert!(text.contains('d') && text.contains('e') && !text.contains("/c"), "all but `c` is compared: {text}");
    }
}

#[test]
fn a_pack_that_was_cut_short_harms_only_what_was_behind_the_cut() {
    let s = two_checkpoints();
    let (offset, _) = location(&s, "second", "c");
    open(pack(&s)).set_len(offset + 100).expect("it is ours");
    let run = s.retake(["show", "second:c"]).fails(1);
    run.says("cut short");
    assert_eq!(s.retake(["show", "first:a"]).succeeds().stdout, noise(1, 5_000));
    assert_listed(&s, &["second", "first"]);
    assert_eq!(affected(&s), ["second"]);
    assert_next_checkpoint_is_whole(&s);
    assert_eq!(s.retake(["show", "first:a"]).succeeds().stdout, noise(1, 5_000));
}

#[test]
fn a_missing_pack_is_named_and_the_next_checkpoint_is_whole() {
    let s = two_checkpoints();
    fs::remove_file(pack(&s)).expect("it is there");
    let run = s.retake(["show", "first:a"]).fails(1);
    run.says("its segment is missing");
    run.says("00000001.pack");
    assert_listed(&s, &["second", "first"]);
    s.retake(["du"]).succeeds();
    assert_eq!(affected(&s), ["second", "first"]);
    assert_next_checkpoint_is_whole(&s);
}

/// What is on disk is stored again where the store has lost it.
#[track_caller]
fn assert_next_checkpoint_is_whole(s: &Sandbox) {
    let id = s.checkpoint();
    history::assert_holds(s, &id, &history::on_disk(s));
    assert!(!affected_ids(s).contains(&id), "the new one is whole");
}

fn affected_ids(s: &Sandbox) -> Vec<String> {
    let workspace = Workspace::open(s.environment()).expect("it is a workspace");
    let integrity = workspace.maintenance().check().expect("it can be checked");
    integrity.affected.iter().map(|checkpoint| checkpoint.id.to_string()).collect()
}

#[test]
fn a_database_page_full_of_garbage_is_an_error_and_never_a_panic() {
    for page in 1..12 {
        let s = two_checkpoints();
        let path = fold_log(&s);
        let pages = fs::metadata(&path).expect("it is there").len() / PAGE;
        if page >= pages {
            assert!(page > 5, "the database has only {pages} pages");
            break;
        }
        open(path).write_all_at(&noise(page, 4096), page * PAGE).expect("it is ours");
        let mut failures = 0;
        for args in
            [["log"].as_slice(), &["show", "first:a"], &["diff"], &["du"], &["checkpoint"], &["label", "first", "x"]]
        {
            let run = Run::of(s.retake_command().args(args));
            if run.code() != Some(0) {
                assert_says_database_is_damaged(&run.fails(1));
                failures += 1;
            }
        }
        assert!(failures > 0 || page > 2, "nobody noticed that page {page} is garbage");
    }
}

#[test]
fn a_database_that_is_none_is_said() {
    let s = two_checkpoints();
    let path = fold_log(&s);
    fs::write(path, noise(7, 8192)).expect("it is ours");
    for args in [["log"], ["checkpoint"], ["du"]] {
        assert_says_database_is_damaged(&s.retake(args).fails(1));
    }
}

#[test]
fn a_database_that_lost_a_table_or_a_value_is_said_to_be_damaged() {
    for sql in ["DROP TABLE objects", "DELETE FROM meta", "UPDATE checkpoints SET snapshot = 'none'"] {
        let s = two_checkpoints();
        let database = rusqlite::Connection::open(s.store().join("retake.db")).expect("it is a database");
        database.execute_batch(sql).expect("it is ours");
        drop(database);
        assert_says_database_is_damaged(&s.retake(["checkpoint"]).fails(1));
    }
}

/// One sentence and one hint, in our own words.
#[track_caller]
fn assert_says_database_is_damaged(run: &Run) {
    run.says("retake.db` is damaged, and this needs the damaged part of it\n");
    run.says("hint: nothing was changed, and stored contents are as they were; put ");
    assert_eq!(run.stderr.lines().count(), 2, "{}", run.stderr);
}

#[test]
fn a_store_from_a_newer_version_is_refused_and_not_touched() {
    let s = two_checkpoints();
    let path = fold_log(&s);
    // `user_version` in the database's header.
    open(path.clone()).write_all_at(&99_u32.to_be_bytes(), 60).expect("it is ours");
    let before = fs::read(&path).expect("it is there");
    for args in [["log"], ["checkpoint"], ["diff"], ["du"]] {
        let run = s.retake(args).fails(1);
        run.says("has format 99, this program knows formats up to 8");
        run.says("hint: update Retake; the store was not touched");
    }
    assert!(fs::read(&path).expect("it is there") == before);
}

#[test]
fn a_garbage_index_is_ignored_and_made_anew() {
    let s = two_checkpoints();
    let snapshot = || s.retake(["checkpoint", "--json"]).json()["checkpoint"]["snapshot"].clone();
    let before = snapshot();
    let whole = fs::read(s.store().join("index")).expect("it is there");
    let cut = whole[..whole.len() / 2].to_vec();
    let mut flipped = whole.clone();
    flipped[whole.len() / 3] ^= 0x40;
    for garbage in [noise(1, 10_000), Vec::new(), b"RETAKE INDEX 2\n\0".to_vec(), cut, flipped] {
        fs::write(s.store().join("index"), garbage).expect("it is ours");
        assert_eq!(snapshot(), before);
    }
    fs::remove_file(s.store().join("index")).expect("it is there");
    assert_eq!(snapshot(), before);
    fs::remove_file(s.store().join("index")).expect("it is there");
    fs::create_dir(s.store().join("index")).expect("it is new");
    assert_eq!(snapshot(), before, "not even a directory in its place matters");
}

#[test]
fn a_temporary_file_that_a_crash_left_goes() {
    let s = Sandbox::in_memory();
    // Enough directories for a change to be appended to the index, not to rewrite it.
    for n in 0..200 {
        s.write(format!("dir{}/{n}", n % 40), "1");
    }
    s.checkpoint();
    s.write("dir1/1", "2");
    fs::write(s.store().join("index.new"), noise(1, 10_000)).expect("it is new");
    s.checkpoint();
    history::assert_no_litter(&s);
}

#[test]
fn what_two_crashed_processes_left_in_their_segments_goes() {
    let s = two_checkpoints();
    let mut history = History::default();
    history.checkpoint(&s);
    let len = fs::metadata(pack(&s)).expect("it is there").len();
    open(pack(&s)).write_all_at(&noise(1, 30_000), len).expect("it is ours");
    fs::write(s.store().join("packs/00000002.pack"), noise(2, 20_000)).expect("it is new");
    s.write("d", "new");
    history.checkpoint(&s);
    history.assert_kept(&s, Missing::None);
    history::assert_no_litter(&s);
}

#[test]
fn damaged_content_is_told_before_and_after_going_back() {
    let s = two_checkpoints();
    s.remove("c").remove("a");
    let (offset, len) = location(&s, "second", "c");
    open(pack(&s)).write_all_at(&[0; 8], offset + len / 2).expect("it is ours");
    let dry = s.retake(["rewind", "second", "--dry-run"]);
    assert_eq!(dry.code(), Some(3), "{}", dry.stderr);
    dry.says("1 path cannot go back: `--on-conflict keep` leaves it as it is and does the rest");
    dry.says("  c: its content is damaged in the store (keep, stop)");
    let shown = String::from_utf8_lossy(&dry.stdout).into_owned();
    assert!(shown.contains("  ! c") && shown.contains("  A a"), "{shown}");
    s.retake(["rewind", "second"]).fails(3);
    s.retake(["rewind", "second", "--dry-run", "--on-conflict", "keep"]).succeeds();
    let run = s.retake(["rewind", "second", "--on-conflict", "keep"]).succeeds();
    run.says("warning: 1 path changed since then and did not go back\n  c: its content is damaged in the store\n");
    assert!(!run.stderr.contains("stays as it is"), "{}", run.stderr);
    assert_eq!(fs::read(s.ws("a")).expect("it is back"), noise(1, 5_000));
}

/// Puts a pipe in the place of a file of the store; nobody writes to it, so that whoever opens it plainly waits for ever.
fn pipe(s: &Sandbox, file: &str) {
    let path = s.store().join(file);
    fs::remove_file(&path).ok();
    assert!(s.command("mkfifo").args(["-m", "600"]).arg(&path).status().expect("it runs").success());
}

#[test]
fn a_pipe_in_the_place_of_the_index_is_named_by_doctor_and_stops_nothing() {
    let s = two_checkpoints();
    pipe(&s, "index");
    assert_listed(&s, &["second", "first"]);
    let run = Run::of(s.retake_command().arg("doctor"));
    let text = String::from_utf8_lossy(&run.stdout);
    assert_eq!(run.code(), Some(1), "{text}");
    assert!(text.contains("index`: it is a pipe, not a file; nothing else is affected, remove it"), "{text}");
    pipe(&s, "index");
    s.write("d", "new\n");
    s.retake(["checkpoint", "-m", "third"]).succeeds();
    assert_eq!(s.retake(["show", "third:d"]).text(), "new\n");
    s.retake(["doctor"]).succeeds();
}

#[test]
fn no_command_waits_for_a_pipe_in_the_place_of_a_file_of_the_store() {
    for file in
        ["retake.db", "retake.db-wal", "retake.db-shm", "lock", "packs/00000001.pack", "index.lock", "workspace"]
    {
        let s = two_checkpoints();
        fold_log(&s);
        pipe(&s, file);
        for args in [["log"].as_slice(), &["show", "first:a"], &["du"], &["checkpoint"], &["gc"], &["doctor"]] {
            // What does not need the file works; the rest is one sentence that names it. No command hangs or panics.
            let run = Run::of(s.retake_command().args(args));
            let is_named = run.stderr.contains(" is a pipe, and should be a file of the store\n")
                || run.stderr.contains("its segment is not a file")
                || String::from_utf8_lossy(&run.stdout).contains("it is a pipe, not a file");
            let code = run.code().expect("it ends by itself");
            assert!(code == 0 || is_named || file == "workspace", "{file} {args:?}: {code} {}", run.stderr);
            assert!(!run.stderr.contains("panicked"), "{file} {args:?}: {}", run.stderr);
        }
    }
}

#[test]
fn a_pipe_in_the_place_of_the_lock_is_refused_in_one_sentence() {
    let s = two_checkpoints();
    pipe(&s, "lock");
    let run = s.retake(["checkpoint"]).fails(1);
    run.says("lock` is a pipe, and should be a file of the store");
    run.says("nothing was changed, and all checkpoints are as they were");
    assert_eq!(s.retake(["show", "first:a"]).succeeds().stdout, noise(1, 5_000));
}

/// Bit by bit, since no test needs it fast.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ if sum & 1 == 1 { 0xedb8_8320 } else { 0 })
    })
}

/// Makes the record of `path` in `point` claim to be compressed with LZ4 and to hold `plain_len` bytes, with a checksum that fits.
fn forge(s: &Sandbox, point: &str, path: &str, plain_len: u64) {
    let (offset, len) = location(s, point, path);
    let file = open(pack(s));
    let mut record = vec![0; usize::try_from(len).expect("it is small")];
    file.read_exact_at(&mut record, offset).expect("it is there");
    record[41] = 2;
    record[42..50].copy_from_slice(&plain_len.to_le_bytes());
    let sum = u64::from(crc32(&record[8..]));
    record[..8].copy_from_slice(&sum.to_le_bytes());
    file.write_all_at(&record, offset).expect("it is ours");
}

#[test]
fn a_record_that_claims_to_hold_more_than_any_memory_is_damage_and_leaves_no_rewind_pending() {
    for plain_len in [u64::MAX, 1 << 60, 1 << 44, 1 << 30] {
        let s = two_checkpoints();
        forge(&s, "first", "a", plain_len);
        s.write("a", "mine\n").write("dir/b", "mine\n");
        s.retake(["show", "first:a"]).fails(1).says("its length is impossible");
        s.retake(["rewind", "first", "--yes"]).fails(3).says("a: its content is damaged in the store");
        assert_eq!(fs::read(s.ws("a")).expect("it is there"), b"mine\n");
        assert_eq!(fs::read(s.ws("dir/b")).expect("it is there"), b"mine\n");
        assert_eq!(s.retake(["recover"]).text(), "Nothing was interrupted\n");
        assert_eq!(Run::of(s.retake_command().arg("doctor")).code(), Some(1));
        s.retake(["rewind", "first", "--yes", "--path", "dir/b"]).succeeds();
        assert_eq!(fs::read(s.ws("dir/b")).expect("it is there"), noise(2, 5_000));
    }
}
