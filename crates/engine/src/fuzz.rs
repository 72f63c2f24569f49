//! Entry points for the fuzzers in `fuzz/`: one function per decoder of the engine, each takes any bytes.
//!
//! A function panics when a property fails: a decoder never panics, a length in its input never decides how much memory it takes, and
//! what it decodes encodes to the same again. Formats with a checksum are also tried with a checksum that fits, since a fuzzer cannot
//! guess one.

use std::path::Path;

use crate::base::id::ObjectId;
use crate::base::limits;
use crate::git::split_index;
use crate::git::tracked::{self, Entries};
use crate::history::intent;
use crate::scan::index::block::{self, Block};
use crate::scan::rules;
use crate::session::parse;
use crate::store::bundle;
use crate::store::record::{self, Effort, HEADER_LEN};
use crate::store::tree::{self, TreeEncoder};

/// Where records keep their id, and where records and index blocks keep their checksum.
const CHECKSUM: std::ops::Range<usize> = 0..8;
const ID: std::ops::Range<usize> = 8..40;
/// Where an index block keeps its length.
const BLOCK_LEN: std::ops::Range<usize> = 8..12;
/// A record may claim up to [`limits::MAX_OBJECT`]. Reserving that much for every input would leave no time to fuzz.
const MAX_CLAIM: u64 = 4 << 20;
/// Most bytes of names that one byte of a git index stands for: a name of the greatest length for each shortest entry.
const TRACKED_RATIO: usize = limits::MAX_TRACKED_PATH / 60;

/// A record of a pack segment.
pub fn pack_record(bytes: &[u8]) {
    check_record(bytes);
    let Some(mut record) = sealed_record(bytes) else { return };
    check_record(&record);
    let Ok((header, _)) = record::header(&record) else { return };
    if header.plain_len() > MAX_CLAIM {
        return;
    }
    if let Ok(plain) = header.decompress(&record[HEADER_LEN..]) {
        record[ID].copy_from_slice(ObjectId::of(&plain).as_bytes());
        put_checksum(&mut record);
        check_record(&record);
    }
}

fn check_record(bytes: &[u8]) {
    let Ok((header, _)) = record::header(bytes) else { return };
    if (MAX_CLAIM..=limits::MAX_OBJECT).contains(&header.plain_len()) {
        return;
    }
    let Ok((kind, plain)) = record::decode(bytes, header.id) else { return };
    for effort in [Effort::Small, Effort::Quick, Effort::Dense] {
        let again = record::encode(kind, header.id, &plain, effort);
        assert_eq!(record::decode(&again, header.id).as_ref(), Ok(&(kind, plain.clone())), "{effort:?}");
    }
}

/// A record of many objects.
pub fn pack_bundle(bytes: &[u8]) {
    check_bundle(bytes);
    sealed_record(bytes).into_iter().for_each(|record| check_bundle(&record));
}

fn check_bundle(bytes: &[u8]) {
    if record::header(bytes).is_ok_and(|(header, _)| (MAX_CLAIM..=limits::MAX_OBJECT).contains(&header.plain_len())) {
        return;
    }
    let Ok(bundle) = bundle::decode(bytes) else { return };
    let parts = bundle.into_parts();
    let again = bundle::decode(&bundle::encode(&parts)).expect("an encoded bundle decodes");
    for (id, ..) in &parts {
        // Most ids do not fit their content; that is an error and nothing else.
        again.get(*id).ok();
    }
    assert_eq!(again.into_parts(), parts);
}

/// A directory of a snapshot.
pub fn snapshot_tree(bytes: &[u8]) {
    let Ok(children) = tree::decode_tree(bytes) else { return };
    let mut encoder = TreeEncoder::new();
    children.iter().for_each(|(name, node)| encoder.push(name, node));
    assert_eq!(encoder.finish(), bytes, "equal trees have equal bytes");
}

/// The paths of a directory that a snapshot leaves out.
pub fn snapshot_aside(bytes: &[u8]) {
    let Ok(entries) = tree::decode_aside(bytes) else { return };
    assert_eq!(tree::encode_aside(&entries), bytes, "equal asides have equal bytes");
}

/// A block of the scan index.
pub fn index_block(bytes: &[u8]) {
    check_block(bytes);
    let mut sealed = bytes.to_vec();
    let Ok(len) = u32::try_from(bytes.len()) else { return };
    if let Some(place) = sealed.get_mut(BLOCK_LEN) {
        place.copy_from_slice(&len.to_le_bytes());
        put_checksum(&mut sealed);
        check_block(&sealed);
    }
}

fn check_block(bytes: &[u8]) {
    let Some(frame) = block::check_frame(bytes) else { return };
    let mut again = Vec::new();
    match frame.what {
        block::DIRECTORY => {
            let block = Block::at(bytes, 0);
            if !block.is_sound() {
                return;
            }
            let directory = block.decode();
            for entry in &directory.entries {
                block.find(&entry.name);
            }
            block::put_directory(&mut again, frame.id.get(), &directory);
            let block = Block::at(&again, 0);
            assert!(block.is_sound());
            assert_eq!(block.decode(), directory);
        }
        block::SEAL => {
            if let Some(seal) = block::seal(bytes) {
                block::put_seal(&mut again, &seal);
                assert_eq!(block::seal(&again), Some(seal));
            }
        }
        _ => block::put_removed(&mut again, frame.id.get()),
    }
    assert!(again.is_empty() || block::check_frame(&again).is_some());
}

/// Git's index file, with object ids of either length.
pub fn git_index(bytes: &[u8]) {
    for id_len in [20, 32] {
        let Some(Entries { names, end }) = tracked::parse(bytes, id_len) else { continue };
        assert!(names.iter().all(|name| name.len() <= limits::MAX_TRACKED_PATH));
        let held: usize = names.iter().map(Vec::len).sum();
        assert!(held <= bytes.len() * TRACKED_RATIO, "{} bytes stand for {held}", bytes.len());
        if let Some(link) = split_index::link(bytes.get(end..).unwrap_or_default(), id_len) {
            let merged = link.merge(names.clone(), names.clone()).unwrap_or_default();
            assert!(merged.len() <= 2 * names.len() && merged.is_sorted());
        }
    }
}

/// An ignore file and, after its first NUL, a path.
pub fn ignore_file(bytes: &[u8]) {
    use std::os::unix::ffi::OsStrExt;
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    let path = bytes.get(end + 1..).filter(|path| !path.is_empty()).unwrap_or(b"src/main.rs");
    let matcher = rules::build(&bytes[..end]);
    for is_directory in [false, true] {
        let _: bool = matcher.matched(Path::new(std::ffi::OsStr::from_bytes(path)), is_directory).is_ignore();
    }
}

/// What an operation is about to do, as the database keeps it.
pub fn rewind_intent(bytes: &[u8]) {
    let Some((items, loosened)) = intent::decode(bytes) else { return };
    let again = intent::encode(&items, &loosened);
    let (items, loosened) = intent::decode(&again).expect("an encoded intent decodes");
    assert_eq!(intent::encode(&items, &loosened), again);
}

/// An entry of a conversation, as the database keeps it.
pub fn session_entry(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let Ok(body) = parse::body(text) else { return };
    // The derived reader also rejects fields that stand twice; the database has none.
    if let Ok(derived) = serde_json::from_str(text) {
        assert_eq!(body, derived, "both readers agree");
    }
    let again = serde_json::to_string(&body).expect("a body is JSON");
    assert_eq!(parse::body(&again).ok(), Some(body));
}

/// `bytes` as a record whose length and checksum fit; `None` if there is no room for a header.
fn sealed_record(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut record = bytes.to_vec();
    let stored = u32::try_from(bytes.len().checked_sub(HEADER_LEN)?).ok()?;
    record[HEADER_LEN - 4..HEADER_LEN].copy_from_slice(&stored.to_le_bytes());
    put_checksum(&mut record);
    Some(record)
}

fn put_checksum(bytes: &mut [u8]) {
    let sum = u64::from(crc32fast::hash(&bytes[CHECKSUM.end..]));
    bytes[CHECKSUM].copy_from_slice(&sum.to_le_bytes());
}
