//! Split index files: most entries are in a second file, and the index itself only has the differences from it.
//!
//! The extension `link` names the shared file and has two bitmaps over its entries: those that are deleted, and those that are replaced.
//! A replaced entry keeps its name, so only the first one matters here. Anything malformed gives `None`.

/// The extension `link` of an index file.
#[derive(Debug)]
pub(crate) struct Link<'a> {
    /// The checksum of the shared file, which is a part of its name.
    shared: &'a [u8],
    bitmaps: &'a [u8],
}

/// The link in the extensions of an index, which lie between its entries and the checksum at its end; `None` if it is not split.
pub(crate) fn link(mut extensions: &[u8], id_len: usize) -> Option<Link<'_>> {
    loop {
        let (signature, rest) = extensions.split_first_chunk::<4>()?;
        let (len, rest) = rest.split_first_chunk::<4>()?;
        let (content, rest) = rest.split_at_checked(u32::from_be_bytes(*len) as usize)?;
        if signature == b"link" {
            let (shared, bitmaps) = content.split_at_checked(id_len)?;
            // Zeros stand for no shared file.
            return shared.iter().any(|&byte| byte != 0).then_some(Link { shared, bitmaps });
        }
        extensions = rest;
    }
}

impl Link<'_> {
    /// The name of the shared file, beside the index.
    pub(crate) fn file_name(&self) -> String {
        let digits: String = self.shared.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("sharedindex.{digits}")
    }

    /// The names of the whole index, in byte order, from those of the shared file and those of the index itself.
    pub(crate) fn merge(&self, shared: Vec<Vec<u8>>, own: Vec<Vec<u8>>) -> Option<Vec<Vec<u8>>> {
        // Without changes the bitmaps are left out.
        let deleted = if self.bitmaps.is_empty() { Vec::new() } else { ones(self.bitmaps, shared.len())? };
        let is_deleted = |position: usize| deleted.get(position).copied().unwrap_or(false);
        let kept = shared.into_iter().enumerate().filter(|(position, _)| !is_deleted(*position)).map(|(_, name)| name);
        // Replaced entries have no name.
        let mut names: Vec<Vec<u8>> = kept.chain(own.into_iter().filter(|name| !name.is_empty())).collect();
        names.sort();
        Some(names)
    }
}

/// The first `len` bits of a bitmap in git's compressed form (EWAH): runs of equal words, each run followed by literal words.
fn ones(bitmap: &[u8], len: usize) -> Option<Vec<bool>> {
    let (_, bitmap) = bitmap.split_first_chunk::<4>()?;
    let (count, bitmap) = bitmap.split_first_chunk::<4>()?;
    let words = bitmap.get(..(u32::from_be_bytes(*count) as usize).checked_mul(8)?)?;
    let mut words = words.chunks_exact(8).map(|word| u64::from_be_bytes(word.try_into().expect("8 bytes")));
    let mut bits = vec![false; len];
    let mut at = 0_usize;
    while let Some(marker) = words.next() {
        let run = usize::try_from((marker >> 1) & u64::from(u32::MAX)).ok()?.checked_mul(64)?;
        let end = at.checked_add(run)?;
        if marker & 1 == 1 {
            bits[at.min(len)..end.min(len)].fill(true);
        }
        at = end;
        for _ in 0..marker >> 33 {
            let word = words.next()?;
            for bit in (0..64).filter(|bit| word >> bit & 1 == 1) {
                if let Some(place) = bits.get_mut(at + bit) {
                    *place = true;
                }
            }
            at = at.checked_add(64)?;
        }
    }
    Some(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bitmap(words: &[u64]) -> Vec<u8> {
        let count = u32::try_from(words.len()).expect("few words").to_be_bytes();
        let words = words.iter().flat_map(|word| word.to_be_bytes());
        [0; 4].into_iter().chain(count).chain(words).chain([0; 4]).collect()
    }

    #[test]
    fn runs_and_literal_words_are_bits() {
        // 64 zeros and a literal word, then 64 ones.
        let (zeros, ones_run) = ((1 << 1) | (1 << 33), 1 | (1 << 1));
        let bits = ones(&bitmap(&[zeros, 0b101, ones_run]), 150).expect("it is sound");
        let set: Vec<usize> = (0..150).filter(|&position| bits[position]).collect();
        assert_eq!(set, [64, 66].into_iter().chain(128..150).collect::<Vec<_>>());
    }

    #[test]
    fn a_bitmap_that_lies_about_its_length_sets_no_more_than_there_is() {
        let endless = bitmap(&[1 | (u64::from(u32::MAX) << 1)]);
        assert_eq!(ones(&endless, 3), Some(vec![true; 3]));
        assert_eq!(ones(&bitmap(&[u64::MAX]), 3), None, "literal words are missing");
        assert_eq!(ones(&[0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 1], 3), None);
    }
}
