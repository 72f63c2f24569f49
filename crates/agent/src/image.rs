//! Images that models are shown. What a server cannot read it refuses, and with it every later request that has it.

use memchr::memmem;

/// The media types that all servers take.
pub(crate) const TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// The media type by the first bytes.
pub(crate) fn media_type(start: &[u8]) -> Option<&'static str> {
    match start {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// Whether these bytes are what `expected` says, as far as can be told without decoding them: they begin and end as they should, and
/// the picture has a size.
pub(crate) fn is_sound(expected: &str, bytes: &[u8]) -> bool {
    let has_size = |fields: Option<&[u8]>| {
        fields.is_some_and(|size| size.chunks(size.len() / 2).all(|side| side.iter().any(|b| *b != 0)))
    };
    media_type(bytes) == Some(expected)
        && match expected {
            "image/png" => {
                bytes.get(8..16) == Some(b"\0\0\0\x0dIHDR")
                    && has_size(bytes.get(16..24))
                    && memmem::find(bytes, b"IDAT").is_some()
                    && memmem::rfind(bytes, b"IEND").is_some()
            }
            "image/jpeg" => memmem::rfind(bytes, b"\xff\xd9").is_some(),
            "image/gif" => has_size(bytes.get(6..10)) && bytes.len() > 13 && bytes.contains(&0x3b),
            "image/webp" => {
                let length = bytes.get(4..8).and_then(|length| Some(u32::from_le_bytes(length.try_into().ok()?)));
                length.is_some_and(|length| length >= 12 && bytes.len() as u64 >= u64::from(length) + 8)
            }
            _ => false,
        }
}

#[cfg(test)]
pub(crate) const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    #[test]
    fn what_only_begins_like_an_image_is_none() {
        let png = STANDARD.decode(PIXEL).expect("it is base64");
        assert!(is_sound("image/png", &png));
        assert!(!is_sound("image/jpeg", &png));
        assert!(!is_sound("image/png", &png[..png.len() - 12]), "cut short");
        for (media_type, broken) in [
            ("image/png", b"\x89PNG\r\n\x1a\ngarbage".as_slice()),
            ("image/jpeg", b"\xff\xd8\xff garbage"),
            ("image/gif", b"GIF89a"),
            ("image/gif", b"GIF89a\0\0\0\0\0\0\0;;;"),
            ("image/webp", b"RIFF\xff\0\0\0WEBPVP8 "),
        ] {
            assert!(!is_sound(media_type, broken), "{broken:?}");
        }
        assert!(is_sound("image/jpeg", b"\xff\xd8\xff\xe0 data \xff\xd9"));
        assert!(is_sound("image/gif", b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0;"));
        assert!(is_sound("image/webp", b"RIFF\x0c\0\0\0WEBPVP8 \0\0\0\0"));
    }
}
