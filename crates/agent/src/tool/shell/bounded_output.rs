//! Output in bounded memory: its beginning and its end, or what was not read yet.

use std::collections::VecDeque;

const HEAD: usize = 10_000;
const TAIL: usize = 20_000;

/// The beginning and the end of a text; what is between them is only counted.
#[derive(Debug, Default)]
pub(crate) struct BoundedOutput {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    left_out: u64,
}

impl BoundedOutput {
    /// Takes the next piece.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min(HEAD - self.head.len()));
        self.head.extend_from_slice(head);
        let kept = &rest[rest.len().saturating_sub(TAIL)..];
        self.tail.extend(kept);
        let over = self.tail.len().saturating_sub(TAIL);
        self.tail.drain(..over);
        self.left_out += (rest.len() - kept.len() + over) as u64;
    }

    /// What the model is told.
    pub(crate) fn text(&self) -> String {
        let (first, second) = self.tail.as_slices();
        let tail = [first, second].concat();
        if self.left_out == 0 {
            return String::from_utf8_lossy(&[self.head.as_slice(), &tail].concat()).into_owned();
        }
        let (head, tail) = (String::from_utf8_lossy(&self.head), String::from_utf8_lossy(&tail));
        // Half a character at a cut is nothing to show.
        let (head, tail) = (head.trim_end_matches('\u{fffd}'), tail.trim_start_matches('\u{fffd}'));
        format!("{head}\n[… {} bytes left out …]\n{tail}", self.left_out)
    }
}

const MAX_UNREAD: usize = 1 << 20;

/// What was not read yet; the oldest goes when it is too much.
#[derive(Debug, Default)]
pub(crate) struct Unread {
    bytes: VecDeque<u8>,
    lost: u64,
    /// All bytes there ever were.
    pub(crate) total: u64,
}

impl Unread {
    /// Takes the next piece.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        self.bytes.extend(bytes);
        let over = self.bytes.len().saturating_sub(MAX_UNREAD);
        self.bytes.drain(..over);
        self.lost += over as u64;
    }

    /// Gives out what was not read yet, bounded for the model.
    pub(crate) fn take(&mut self) -> String {
        let mut kept = BoundedOutput::default();
        let bytes: Vec<u8> = std::mem::take(&mut self.bytes).into();
        kept.push(&bytes);
        match std::mem::take(&mut self.lost) {
            0 => kept.text(),
            lost => format!("[… {lost} bytes left out …]\n{}", kept.text()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_left_out_and_counted() {
        for piece in [1, 7, 1000, 50_000, 200_000] {
            let all: Vec<u8> = (0..200_000).map(|n| b'a' + (n % 26) as u8).collect();
            let mut kept = BoundedOutput::default();
            all.chunks(piece).for_each(|chunk| kept.push(chunk));
            let text = kept.text();
            assert!(text.contains("\n[… 170000 bytes left out …]\n"), "pieces of {piece}");
            assert!(text.as_bytes().starts_with(&all[..HEAD]) && text.as_bytes().ends_with(&all[200_000 - TAIL..]));
        }
    }

    #[test]
    fn what_is_short_is_kept_whole() {
        let mut kept = BoundedOutput::default();
        "äöü".as_bytes().chunks(1).for_each(|byte| kept.push(byte));
        assert_eq!(kept.text(), "äöü");
    }
}
