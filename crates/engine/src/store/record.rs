//! Records: one object each, as they lie in a pack segment.
//!
//! A record is a fixed header and the object's bytes, compressed when that pays. The header carries the object's id (the
//! hash of the plain bytes) and a checksum of header and stored bytes, so that a torn record is recognised without
//! decompressing it.

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::base::id::ObjectId;
use crate::base::limits;

/// What an object's bytes mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectKind {
    /// A file's content or a link's target, or one chunk of a large file.
    Blob = 1,
    /// A directory.
    Tree = 2,
    /// What of a directory is not in its tree.
    Aside = 3,
    /// The capture rules in force.
    Rules = 4,
    /// A list of chunks that stands for a large file; its id is that of the file's content.
    Chunks = 5,
}

/// A record of many objects; see [`bundle`](super::bundle).
const BUNDLE: u8 = 6;

/// How the bytes are stored.
const RAW: u8 = 0;
const ZSTD: u8 = 1;
const LZ4: u8 = 2;
/// Like `ZSTD`, and more would not come of trying again.
const DENSE: u8 = 3;

/// No byte of LZ4 stands for more plain bytes than this.
const LZ4_RATIO: u64 = 255;

/// Compression level: reading files takes longer than this, so more would only cost.
const LEVEL: i32 = 1;

/// Compression level for what is kept for long, when nobody waits.
const DENSE_LEVEL: i32 = 12;

/// What compression is to care for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Room.
    Small,
    /// Time: a third of it, for nearly half as much room again.
    Quick,
    /// Room, whatever time it takes.
    Dense,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Header {
    checksum: U64,
    pub(crate) id: ObjectId,
    kind: u8,
    codec: u8,
    plain_len: U64,
    stored_len: U32,
}

impl Header {
    /// Whether the bytes were compressed with more care for time than for room.
    pub(crate) fn is_loose(&self) -> bool {
        matches!(self.codec, ZSTD | LZ4)
    }

    /// Whether it holds many objects.
    pub(crate) fn is_bundle(&self) -> bool {
        self.kind == BUNDLE
    }

    /// Whether the bytes were compressed with care.
    pub(crate) fn is_dense(&self) -> bool {
        self.codec == DENSE
    }

    /// Whether it would profit from being compressed together with others.
    pub(crate) fn is_small(&self) -> bool {
        self.plain_len.get() <= super::bundle::LARGEST as u64
    }

    /// The plain bytes of what is stored.
    pub(crate) fn decompress(&self, stored: &[u8]) -> Result<Vec<u8>, Torn> {
        let plain_len = self.plain_len.get();
        match self.codec {
            RAW => Ok(stored.to_vec()),
            ZSTD | DENSE => {
                let mut plain = room(plain_len)?;
                let decompressor = zstd::bulk::Decompressor::new();
                let done = decompressor.and_then(|mut new| new.decompress_to_buffer(stored, &mut plain));
                done.map(|_| plain).map_err(|_| Torn("it cannot be decompressed"))
            }
            LZ4 if plain_len / LZ4_RATIO > stored.len() as u64 => Err(IMPOSSIBLE),
            LZ4 => {
                let mut plain = room(plain_len)?;
                plain.resize(plain.capacity(), 0);
                let len = lz4_flex::block::decompress_into(stored, &mut plain);
                plain.truncate(len.map_err(|_| Torn("it cannot be decompressed"))?);
                Ok(plain)
            }
            _ => Err(Torn("its compression is unknown")),
        }
    }

    /// How many plain bytes it claims to hold.
    pub(crate) fn plain_len(&self) -> u64 {
        self.plain_len.get()
    }
}

/// Memory for `len` plain bytes. A record says how many it holds, and a damaged one may say anything.
fn room(len: u64) -> Result<Vec<u8>, Torn> {
    let len = usize::try_from(len).ok().filter(|_| len <= limits::MAX_OBJECT).ok_or(IMPOSSIBLE)?;
    let mut plain = Vec::new();
    plain.try_reserve_exact(len).map_err(|_| Torn("there is no memory for what it claims to hold"))?;
    Ok(plain)
}

const IMPOSSIBLE: Torn = Torn("its length is impossible");

pub(crate) const HEADER_LEN: usize = size_of::<Header>();

/// Why a record cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Torn(pub(crate) &'static str);

/// Turns `plain` into a record.
pub(crate) fn encode(kind: ObjectKind, id: ObjectId, plain: &[u8], effort: Effort) -> Vec<u8> {
    let mut record = vec![0; HEADER_LEN];
    let codec = compress(plain, effort, &mut record);
    seal(&mut record, kind as u8, codec, id, plain.len());
    record
}

/// Turns many objects' plain bytes, and the table that stands before them, into a record.
pub(super) fn encode_bundle(table: &[u8], plain: &[u8]) -> Vec<u8> {
    let mut record = vec![0; HEADER_LEN];
    record.extend_from_slice(table);
    let codec = compress(plain, Effort::Dense, &mut record);
    seal(&mut record, BUNDLE, codec, ObjectId::of(table), plain.len());
    record
}

/// Writes the header of a record whose bytes are there.
fn seal(record: &mut [u8], kind: u8, codec: u8, id: ObjectId, plain_len: usize) {
    let stored_len = u32::try_from(record.len() - HEADER_LEN).expect("objects are chunked long before 4 GiB");
    let header = Header {
        checksum: U64::ZERO,
        id,
        kind,
        codec,
        plain_len: U64::new(plain_len as u64),
        stored_len: U32::new(stored_len),
    };
    record[..HEADER_LEN].copy_from_slice(header.as_bytes());
    let checksum = checksum(&record[8..]);
    record[..8].copy_from_slice(&checksum.to_le_bytes());
}

/// Appends `plain` to `record`, compressed if that pays; returns how.
fn compress(plain: &[u8], effort: Effort, record: &mut Vec<u8>) -> u8 {
    let start = record.len();
    // Below this size the frame's own overhead eats what compression saves.
    if plain.len() >= 64 {
        let (codec, compressed) = match effort {
            Effort::Small => (ZSTD, compress_zstd(plain, LEVEL, record)),
            Effort::Dense => (DENSE, compress_zstd(plain, DENSE_LEVEL, record)),
            Effort::Quick => (LZ4, compress_lz4(plain, record)),
        };
        if compressed.is_some_and(|len| len + len / 16 < plain.len()) {
            return codec;
        }
    }
    record.truncate(start);
    record.extend_from_slice(plain);
    RAW
}

fn compress_lz4(plain: &[u8], record: &mut Vec<u8>) -> Option<usize> {
    let start = record.len();
    record.resize(start + lz4_flex::block::get_maximum_output_size(plain.len()), 0);
    let len = lz4_flex::block::compress_into(plain, &mut record[start..]).ok();
    record.truncate(start + len.unwrap_or_default());
    len
}

fn compress_zstd(plain: &[u8], level: i32, record: &mut Vec<u8>) -> Option<usize> {
    let start = record.len() as u64;
    record.reserve(zstd::zstd_safe::compress_bound(plain.len()));
    let mut tail = std::io::Cursor::new(&mut *record);
    tail.set_position(start);
    with_compressor(level, |compressor| compressor.compress_to_buffer(plain, &mut tail)).ok()
}

/// The header at the start of `bytes`, and the record's whole length.
pub(crate) fn header(bytes: &[u8]) -> Result<(Header, usize), Torn> {
    let (header, _) = Header::read_from_prefix(bytes).map_err(|_| Torn("the record is cut short"))?;
    Ok((header, HEADER_LEN + header.stored_len.get() as usize))
}

/// Checks that `record` is whole, without looking at the plain bytes.
pub(crate) fn check(record: &[u8]) -> Result<Header, Torn> {
    let (header, len) = header(record)?;
    if record.len() != len {
        return Err(Torn("the record is cut short"));
    }
    if checksum(&record[8..]) != header.checksum.get() {
        return Err(Torn("its checksum does not match"));
    }
    Ok(header)
}

/// The object in `record`, verified against `id`.
pub(crate) fn decode(record: &[u8], id: ObjectId) -> Result<(ObjectKind, Vec<u8>), Torn> {
    let header = check(record)?;
    if header.id != id {
        return Err(Torn("another object is stored in its place"));
    }
    let plain = header.decompress(&record[HEADER_LEN..])?;
    let kind = kind(header.kind)?;
    verify(kind, &plain, id)?;
    Ok((kind, plain))
}

/// The kind that `byte` stands for.
pub(super) fn kind(byte: u8) -> Result<ObjectKind, Torn> {
    Ok(match byte {
        1 => ObjectKind::Blob,
        2 => ObjectKind::Tree,
        3 => ObjectKind::Aside,
        4 => ObjectKind::Rules,
        5 => ObjectKind::Chunks,
        _ => return Err(Torn("its kind is unknown")),
    })
}

/// Checks that `plain` is the object `id`.
pub(super) fn verify(kind: ObjectKind, plain: &[u8], id: ObjectId) -> Result<(), Torn> {
    // A chunk list is named by the content it stands for, which whoever reads the chunks verifies.
    if kind != ObjectKind::Chunks && ObjectId::of(plain) != id {
        return Err(Torn("its content does not match its hash"));
    }
    Ok(())
}

/// Recognises torn and damaged bytes; what a content is, its hash says.
fn checksum(bytes: &[u8]) -> u64 {
    u64::from(crc32fast::hash(bytes))
}

/// Compression contexts are large and costly to make: one per thread, for one level at a time.
fn with_compressor<R>(level: i32, work: impl FnOnce(&mut zstd::bulk::Compressor<'static>) -> R) -> R {
    use std::cell::RefCell;
    thread_local! {
        static COMPRESSOR: RefCell<Option<(i32, zstd::bulk::Compressor<'static>)>> = const { RefCell::new(None) };
    }
    COMPRESSOR.with_borrow_mut(|kept| {
        let (_, compressor) = match kept {
            Some(fitting) if fitting.0 == level => fitting,
            _ => kept.insert((level, zstd::bulk::Compressor::new(level).expect("the levels above exist"))),
        };
        work(compressor)
    })
}

/// `record` with other values in its header, and a checksum that fits them.
#[cfg(test)]
pub(super) fn forged(record: &[u8], codec: Option<u8>, plain_len: u64) -> Vec<u8> {
    let (mut header, _) = header(record).expect("it is a record");
    header.codec = codec.unwrap_or(header.codec);
    header.plain_len = U64::new(plain_len);
    let mut forged = record.to_vec();
    forged[..HEADER_LEN].copy_from_slice(header.as_bytes());
    let sum = checksum(&forged[8..]);
    forged[..8].copy_from_slice(&sum.to_le_bytes());
    forged
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lengths that no memory holds, that some does, and that are just wrong.
    const LIES: [u64; 7] = [u64::MAX, i64::MAX as u64, 1 << 46, 1 << 34, limits::MAX_OBJECT, 99, 0];

    #[test]
    fn a_record_that_lies_about_its_length_is_damaged_whatever_its_compression() {
        let plain = [7; 100_000];
        let id = ObjectId::of(&plain);
        for effort in [Effort::Small, Effort::Quick, Effort::Dense] {
            let record = encode(ObjectKind::Blob, id, &plain, effort);
            for codec in [None, Some(ZSTD), Some(LZ4), Some(DENSE), Some(9)] {
                for lie in LIES {
                    let is_lz4 = effort == Effort::Quick;
                    let fits = match codec {
                        None => true,
                        Some(codec) => is_lz4 == (codec == LZ4) && codec != 9,
                    };
                    let decoded = decode(&forged(&record, codec, lie), id);
                    // Room for more than it holds is no lie that matters, as long as there is that room.
                    let may_pass = fits && !is_lz4 && lie == limits::MAX_OBJECT;
                    assert!(may_pass || decoded.is_err(), "{effort:?} {codec:?} {lie}");
                }
            }
        }
    }

    #[test]
    fn a_record_gives_back_what_went_in() {
        let noise: Vec<u8> = (0..100_u32).flat_map(|n| *ObjectId::of(&n.to_le_bytes()).as_bytes()).collect();
        for plain in [&b""[..], b"short", &[7; 100_000], &noise] {
            for effort in [Effort::Small, Effort::Quick, Effort::Dense] {
                let id = ObjectId::of(plain);
                let record = encode(ObjectKind::Blob, id, plain, effort);
                assert!(record.len() <= HEADER_LEN + plain.len());
                assert_eq!(decode(&record, id), Ok((ObjectKind::Blob, plain.to_vec())));
            }
        }
    }

    #[test]
    fn any_flipped_bit_is_noticed() {
        let plain = b"some content that is long enough to be worth compressing, compressing, compressing, compressing";
        let id = ObjectId::of(plain);
        for effort in [Effort::Small, Effort::Quick, Effort::Dense] {
            let record = encode(ObjectKind::Blob, id, plain, effort);
            for bit in 0..record.len() * 8 {
                let mut damaged = record.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                assert!(decode(&damaged, id).is_err(), "bit {bit}");
            }
            for len in 0..record.len() {
                assert!(decode(&record[..len], id).is_err(), "length {len}");
            }
        }
    }
}
