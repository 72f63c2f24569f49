//! Binary content as git's patches have it, so that `git apply` makes exactly this file, and with `--reverse` the one before.
//!
//! git asks for two things: the SHA-1 names that it would give both contents, by which it makes sure what it applies to, and both
//! contents as zlib streams in base 85. The streams here are not compressed, which the format allows: a patch is for passing on, not
//! for keeping.

use std::io::{self, Write};

use sha1_smol::Sha1;

/// git's digits of base 85.
const DIGITS: &[u8; 85] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";

/// Bytes in a line: as many as there are letters to count them.
const LINE_BYTES: usize = 52;

/// Bytes that a block of a zlib stream can hold uncompressed.
const BLOCK_BYTES: usize = 65_535;

/// The name that git gives to `content`; zeros where there is none.
pub fn git_id(content: Option<&[u8]>) -> String {
    let Some(content) = content else { return "0".repeat(40) };
    let mut hash = Sha1::new();
    hash.update(format!("blob {}\0", content.len()).as_bytes());
    hash.update(content);
    hash.digest().to_string()
}

/// Writes the body of a patch that turns `before` into `after`, and back.
pub fn write(out: &mut dyn Write, before: &[u8], after: &[u8]) -> io::Result<()> {
    writeln!(out, "GIT binary patch")?;
    for content in [after, before] {
        writeln!(out, "literal {}", content.len())?;
        for line in zlib(content).chunks(LINE_BYTES) {
            out.write_all(&base85(line))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// `content` as a zlib stream of uncompressed blocks.
fn zlib(content: &[u8]) -> Vec<u8> {
    let mut stream = vec![0x78, 0x01];
    let mut rest = content;
    loop {
        let (block, after) = rest.split_at(rest.len().min(BLOCK_BYTES));
        rest = after;
        stream.push(u8::from(rest.is_empty()));
        #[expect(clippy::cast_possible_truncation, reason = "a block is as long as 16 bits can say")]
        let len = block.len() as u16;
        stream.extend_from_slice(&len.to_le_bytes());
        stream.extend_from_slice(&(!len).to_le_bytes());
        stream.extend_from_slice(block);
        if rest.is_empty() {
            break;
        }
    }
    stream.extend_from_slice(&adler32(content).to_be_bytes());
    stream
}

/// The checksum at the end of a zlib stream.
fn adler32(content: &[u8]) -> u32 {
    const MODULUS: u32 = 65_521;
    let (mut sum, mut sum_of_sums) = (1, 0);
    for &byte in content {
        sum = (sum + u32::from(byte)) % MODULUS;
        sum_of_sums = (sum_of_sums + sum) % MODULUS;
    }
    sum_of_sums << 16 | sum
}

/// A line: a letter for the number of bytes, then five digits for every four of them.
fn base85(bytes: &[u8]) -> Vec<u8> {
    let letters = (b'A'..=b'Z').chain(b'a'..=b'z');
    let mut line: Vec<u8> = letters.skip(bytes.len() - 1).take(1).collect();
    for group in bytes.chunks(4) {
        let mut padded = [0; 4];
        padded[..group.len()].copy_from_slice(group);
        let mut value = u32::from_be_bytes(padded);
        let mut digits = [0; 5];
        for digit in digits.iter_mut().rev() {
            *digit = DIGITS[(value % 85) as usize];
            value /= 85;
        }
        line.extend_from_slice(&digits);
    }
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_git_gives() {
        assert_eq!(git_id(Some(b"")), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        assert_eq!(git_id(Some(b"hello\n")), "ce013625030ba8dba906f756967f9e9ca394464a");
        assert_eq!(git_id(None), "0".repeat(40));
    }

    #[test]
    fn a_stream_ends_with_its_checksum_and_its_blocks_say_how_long_they_are() {
        assert_eq!(zlib(b""), [0x78, 0x01, 1, 0, 0, 0xff, 0xff, 0, 0, 0, 1]);
        assert_eq!(adler32(b"Wikipedia"), 0x11e6_0398);
        let two = zlib(&vec![7; BLOCK_BYTES + 1]);
        assert_eq!(two[2..7], [0, 0xff, 0xff, 0, 0]);
        assert_eq!(two[7 + BLOCK_BYTES..][..5], [1, 1, 0, 0xfe, 0xff]);
        assert_eq!(zlib(&vec![7; BLOCK_BYTES]).len(), 2 + 5 + BLOCK_BYTES + 4, "no empty block follows a full one");
    }

    #[test]
    fn lines_are_counted_by_letters_and_padded() {
        assert_eq!(base85(&[0]), b"A00000\n");
        assert_eq!(base85(&[0xff; 4]), b"D|NsC0\n");
        assert_eq!(base85(&[0; LINE_BYTES]).first(), Some(&b'z'));
        assert_eq!(base85(&[0; 26]).first(), Some(&b'Z'));
    }
}
