//! Receipts: what an installation wrote where, so that removing it gives the user's own bytes back.
//!
//! A receipt holds text of ours only, never the user's. It is a help, not a necessity: without it, or after somebody edited the
//! configuration, entries of ours are found by their command line.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::config::Insertion;

const VERSION: u64 = 1;

/// What was written into one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) path: PathBuf,
    /// Whether there was no file before.
    pub(crate) is_new: bool,
    pub(crate) pieces: Vec<Insertion>,
}

/// What an installation wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Receipt {
    pub(crate) files: Vec<Written>,
    /// Directories that it made, the innermost first.
    pub(crate) directories: Vec<PathBuf>,
}

impl Receipt {
    /// Reads a receipt; one that cannot be read counts as none.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let document: Value = serde_json::from_slice(bytes).ok()?;
        if document["version"] != VERSION {
            return None;
        }
        let files = document["files"].as_array()?.iter().map(written).collect::<Option<_>>()?;
        let directories = document["directories"].as_array()?.iter().map(path).collect::<Option<_>>()?;
        Some(Self { files, directories })
    }

    /// The receipt as a file. Paths that are not UTF-8 are left out.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let written = |file: &Written| {
            let pieces: Vec<Value> =
                file.pieces.iter().map(|piece| json!({ "at": piece.at, "text": piece.text })).collect();
            Some(json!({ "path": file.path.to_str()?, "new": file.is_new, "pieces": pieces }))
        };
        let files: Vec<Value> = self.files.iter().filter_map(written).collect();
        let directories: Vec<&str> = self.directories.iter().filter_map(|path| path.to_str()).collect();
        let document = json!({ "version": VERSION, "files": files, "directories": directories });
        let mut bytes = serde_json::to_vec_pretty(&document).expect("writing JSON into memory cannot fail");
        bytes.push(b'\n');
        bytes
    }

    pub(crate) fn of(&self, path: &Path) -> Option<&Written> {
        self.files.iter().find(|file| file.path == path)
    }
}

fn path(value: &Value) -> Option<PathBuf> {
    value.as_str().map(PathBuf::from)
}

fn written(file: &Value) -> Option<Written> {
    let piece = |piece: &Value| {
        let at = usize::try_from(piece["at"].as_u64()?).ok()?;
        Some(Insertion { at, text: piece["text"].as_str()?.to_owned() })
    };
    let pieces = file["pieces"].as_array()?.iter().map(piece).collect::<Option<_>>()?;
    Some(Written { path: path(&file["path"])?, is_new: file["new"].as_bool()?, pieces })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_is_read_as_it_was_written_and_damage_counts_as_none() {
        let pieces = vec![Insertion { at: 3, text: "ä\n".into() }];
        let files = vec![Written { path: "/h/a.json".into(), is_new: true, pieces }];
        let receipt = Receipt { files, directories: vec!["/h/d".into()] };
        assert_eq!(Receipt::parse(&receipt.to_bytes()), Some(receipt.clone()));
        assert_eq!(Receipt::parse(&receipt.to_bytes()[1..]), None);
        assert_eq!(Receipt::parse(br#"{"version":2,"files":[],"directories":[]}"#), None);
    }
}
