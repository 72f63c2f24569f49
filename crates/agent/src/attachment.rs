//! Files beside a prompt: text as it is, images for those models that see.
//!
//! All of a file is taken, or nothing: a part of it would look to the model like the whole.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use retake_engine::session::entry::Part;
use thiserror::Error;

use crate::image;

/// Largest file that can be attached, in bytes.
pub const MAX_BYTES: u64 = 5 << 20;

/// A content cannot be a part of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NotAttachable {
    /// It is too large.
    #[error("it is larger than {} MiB", MAX_BYTES >> 20)]
    TooLarge,
    /// It is neither text nor an image.
    #[error("it is neither text nor an image")]
    NeitherTextNorImage,
}

/// Reads a file, but no more of it than one byte too many.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    take(File::open(path)?)
}

/// Reads to the end, but no more than one byte too many.
pub fn take(source: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A content as a part of a prompt; a text is told the model with its `name`.
pub fn part(name: &str, bytes: Vec<u8>) -> Result<Part, NotAttachable> {
    if bytes.len() as u64 > MAX_BYTES {
        return Err(NotAttachable::TooLarge);
    }
    if let Some(media_type) = image::media_type(&bytes) {
        return Ok(Part::Image { media_type: media_type.to_owned(), data: STANDARD.encode(bytes) });
    }
    let text = String::from_utf8(bytes).map_err(|_| NotAttachable::NeitherTextNorImage)?;
    Ok(Part::File { path: name.to_owned(), text })
}
