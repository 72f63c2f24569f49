//! The files of the page, which are part of the program: found in a table by their whole names, never on disk.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::LazyLock;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

/// Every file with its name, which begins with `/`.
static FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// A file of the page.
pub(crate) struct PageFile {
    pub(crate) content: Bytes,
    /// The same in fewer bytes, for those who come from far away, through a tunnel.
    pub(crate) zipped: Option<Bytes>,
    pub(crate) kind: &'static str,
    /// Changes with the content. It is the same for the zipped one, which makes it a weak one.
    pub(crate) tag: String,
    /// Whether another content would have another name.
    pub(crate) is_immutable: bool,
}

static TABLE: LazyLock<HashMap<&str, PageFile>> = LazyLock::new(|| {
    let file = |(name, content): &(&'static str, &'static [u8])| {
        let tag = format!("W/\"{}\"", &blake3::hash(content).to_hex()[..32]);
        let is_immutable = name.starts_with("/assets/");
        let zipped = zip(content).ok().filter(|zipped| zipped.len() < content.len()).map(Bytes::from);
        (*name, PageFile { content: Bytes::from_static(content), zipped, kind: kind(name), tag, is_immutable })
    };
    FILES.iter().map(file).collect()
});

/// The file that a path of a URL names; `/` is the page itself.
pub(crate) fn find(path: &str) -> Option<&'static PageFile> {
    TABLE.get(if path == "/" { "/index.html" } else { path })
}

fn zip(content: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content)?;
    encoder.finish()
}

fn kind(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        Some("json" | "webmanifest") => "application/json",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_there_and_nothing_beside_it() {
        assert!(find("/").is_some_and(|file| file.kind.starts_with("text/html") && !file.is_immutable));
        for path in
            ["", "/../Cargo.toml", "/assets/../index.html", "/assets/", "/assets", "//index.html", "/%69ndex.html"]
        {
            assert!(find(path).is_none(), "{path}");
        }
    }
}
