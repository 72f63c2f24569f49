//! What kind of content a file has, by its first bytes.

use crate::image;

/// How many bytes are looked at.
pub(crate) const SNIFFED: usize = 8192;

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// Something to show as lines.
    Text,
    /// An image that models understand, with its media type.
    Image(&'static str),
    /// Something else, in words.
    Binary(&'static str),
}

const MAGIC: [(&[u8], &str); 16] = [
    (b"\x7fELF", "an ELF program or library"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive (or a document or package made as one)"),
    (b"\x1f\x8b", "gzip-compressed data"),
    (b"BZh", "bzip2-compressed data"),
    (b"\xfd7zXZ\0", "xz-compressed data"),
    (b"\x28\xb5\x2f\xfd", "zstd-compressed data"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"\0asm", "a WebAssembly module"),
    (b"\xca\xfe\xba\xbe", "a Java class or a Mach-O program"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O program"),
    (b"MZ", "a Windows program"),
    (b"\xff\xfe", "UTF-16 text; `bash` with `iconv -f UTF-16 -t UTF-8` shows it"),
    (b"\xfe\xff", "UTF-16 text; `bash` with `iconv -f UTF-16 -t UTF-8` shows it"),
    (b"ID3", "MP3 audio"),
    (b"OggS", "Ogg audio or video"),
];

/// Tells the kind from the first [`SNIFFED`] bytes.
pub(crate) fn sniff(start: &[u8]) -> FileKind {
    if let Some(media_type) = image::media_type(start) {
        return FileKind::Image(media_type);
    }
    let is_binary = start.contains(&0);
    match MAGIC.iter().find(|(magic, _)| start.starts_with(magic)) {
        // `MZ` and `BZh` may well begin a text.
        Some((_, name)) if is_binary => FileKind::Binary(name),
        Some((magic, name)) if !magic.is_ascii() || *magic == b"%PDF-" => FileKind::Binary(name),
        None if is_binary => FileKind::Binary("binary data"),
        Some(_) | None => FileKind::Text,
    }
}

/// A size in words.
pub(crate) fn size_in_words(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{} KB", bytes / 1000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_begins_like_a_program_is_text() {
        assert_eq!(sniff(b"MZ is a magic number\n"), FileKind::Text);
        assert_eq!(sniff(b"MZ\0\0"), FileKind::Binary("a Windows program"));
        assert_eq!(sniff(b""), FileKind::Text);
        assert_eq!(sniff(b"\xc4\xe3\xba\xc3 GB18030\n"), FileKind::Text);
        assert_eq!(sniff(b"GIF89a...."), FileKind::Image("image/gif"));
    }
}
