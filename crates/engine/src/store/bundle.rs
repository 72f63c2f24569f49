//! Bundles: records that hold many small objects, compressed together.
//!
//! Versions of one file, and files of one directory, are much alike; each compressed alone they cannot profit from that. Only a
//! clean-up makes bundles. Their rows all point to the same record; which objects are in it stands at its start, uncompressed.
//!
//! ```text
//! record header | count | count × (id, kind, length) | all objects one after the other, compressed
//! ```

use std::ops::Range;

use super::record::{self, HEADER_LEN, ObjectKind, Torn};
use crate::base::id::ObjectId;

/// Plain bytes from which on a bundle is full: all of it is decompressed to read one object.
pub(super) const FULL: usize = 256 << 10;
/// Larger objects gain little from their neighbours.
pub(super) const LARGEST: usize = 96 << 10;
/// Bytes from the start of a record by which [`count`] can tell.
pub(super) const HEAD_LEN: usize = HEADER_LEN + 4;

const ENTRY_LEN: usize = 32 + 1 + 4;

/// An object on its way into a bundle.
pub(crate) type Part = (ObjectId, ObjectKind, Vec<u8>);

/// A decoded bundle.
#[derive(Debug)]
pub(crate) struct Bundle {
    parts: Vec<(ObjectId, ObjectKind, Range<usize>)>,
    plain: Vec<u8>,
}

/// Turns `parts` into one record.
pub(crate) fn encode(parts: &[Part]) -> Vec<u8> {
    let mut table = u32::try_from(parts.len()).expect("a bundle is small").to_le_bytes().to_vec();
    let mut plain = Vec::new();
    for (id, kind, bytes) in parts {
        table.extend_from_slice(id.as_bytes());
        table.push(*kind as u8);
        table.extend_from_slice(&u32::try_from(bytes.len()).expect("its objects are small").to_le_bytes());
        plain.extend_from_slice(bytes);
    }
    record::encode_bundle(&table, &plain)
}

/// How many objects are in the bundle that starts with `head`; `None` if it is no bundle.
pub(super) fn count(head: &[u8]) -> Option<usize> {
    let (header, _) = record::header(head).ok()?;
    let count = head.get(HEADER_LEN..HEAD_LEN)?.try_into().ok()?;
    header.is_bundle().then_some(u32::from_le_bytes(count) as usize)
}

/// The bundle in `record`.
pub(crate) fn decode(record: &[u8]) -> Result<Bundle, Torn> {
    let malformed = || Torn("its bundle is malformed");
    let header = record::check(record)?;
    let count = count(record).ok_or_else(malformed)?;
    let data = count.checked_mul(ENTRY_LEN).and_then(|len| len.checked_add(HEAD_LEN)).ok_or_else(malformed)?;
    let table = record.get(HEAD_LEN..data).ok_or_else(malformed)?;
    let lengths = table.chunks_exact(ENTRY_LEN).map(|entry| u64::from(length(entry)));
    if header.plain_len() != lengths.sum::<u64>() {
        return Err(malformed());
    }
    let plain = header.decompress(&record[data..])?;
    let mut parts = Vec::with_capacity(count);
    let mut end = 0;
    for entry in table.chunks_exact(ENTRY_LEN) {
        let id = ObjectId::from_bytes(entry[..32].try_into().expect("32 bytes"));
        let start = end;
        end += length(entry) as usize;
        parts.push((id, record::kind(entry[32])?, start..end));
    }
    if end != plain.len() {
        return Err(malformed());
    }
    Ok(Bundle { parts, plain })
}

/// The length in an entry of the table.
fn length(entry: &[u8]) -> u32 {
    u32::from_le_bytes(entry[33..].try_into().expect("4 bytes"))
}

impl Bundle {
    /// An object of it, verified against `id`.
    pub(crate) fn get(&self, id: ObjectId) -> Result<(ObjectKind, Vec<u8>), Torn> {
        let found = self.parts.iter().find(|(other, ..)| *other == id);
        let (_, kind, range) = found.ok_or(Torn("another object is stored in its place"))?;
        let plain = self.plain[range.clone()].to_vec();
        record::verify(*kind, &plain, id)?;
        Ok((*kind, plain))
    }

    /// All objects, none of them verified.
    #[cfg(feature = "fuzzing")]
    pub(crate) fn into_parts(self) -> Vec<Part> {
        self.parts.into_iter().map(|(id, kind, range)| (id, kind, self.plain[range].to_vec())).collect()
    }
}

/// All plain bytes in `record`, of one object or of many.
#[cfg(test)]
pub(crate) fn plain_bytes(record: &[u8]) -> Vec<u8> {
    let (header, _) = record::header(record).expect("it is a record");
    match header.is_bundle() {
        true => decode(record).expect("it is sound").plain,
        false => record::decode(record, header.id).expect("it is sound").1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_that_lies_about_its_length_is_damaged() {
        let plain = b"two, two, two, two ".repeat(200);
        let record = encode(&[(ObjectId::of(&plain), ObjectKind::Blob, plain)]);
        for codec in [None, Some(0), Some(1), Some(2), Some(9)] {
            for lie in [u64::MAX, 1 << 46, 1 << 34, 1 << 30, 99, 0] {
                assert!(decode(&record::forged(&record, codec, lie)).is_err(), "{codec:?} {lie}");
            }
        }
        // So does one whose table and header agree on a lie.
        let mut lying = record.clone();
        lying[HEAD_LEN + 33..HEAD_LEN + ENTRY_LEN].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(decode(&record::forged(&lying, None, u64::from(u32::MAX))).is_err());
        let mut lying = record;
        lying[HEADER_LEN..HEAD_LEN].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(decode(&record::forged(&lying, None, 3800)).is_err());
    }

    #[test]
    fn a_bundle_gives_back_every_object_and_notices_any_flipped_bit() {
        let parts: Vec<Part> = [&b""[..], b"one", &b"two, two, two, two ".repeat(20)]
            .map(|plain| (ObjectId::of(plain), ObjectKind::Blob, plain.to_vec()))
            .to_vec();
        let record = encode(&parts);
        assert_eq!(count(&record[..HEAD_LEN]), Some(3));
        let bundle = decode(&record).expect("it is sound");
        for (id, kind, plain) in &parts {
            assert_eq!(bundle.get(*id), Ok((*kind, plain.clone())));
        }
        assert!(bundle.get(ObjectId::of(b"three")).is_err());
        for bit in 0..record.len() * 8 {
            let mut damaged = record.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&damaged).is_err(), "bit {bit}");
        }
        for len in 0..record.len() {
            assert!(decode(&record[..len]).is_err(), "length {len}");
        }
    }
}
