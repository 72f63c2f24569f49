//! Everything below a directory, captured or not, version control included: for telling what an operation left alone.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::below;

/// What a thing on disk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A regular file.
    File,
    /// A symbolic link.
    Symlink,
    /// A directory.
    Directory,
    /// A socket, fifo or device.
    Special,
}

/// One thing on disk.
#[derive(Clone, PartialEq, Eq)]
pub struct Thing {
    /// What it is.
    pub shape: Shape,
    /// Its permission bits; none for a link.
    pub mode: u16,
    /// A file's bytes, a link's target, nothing for all else.
    pub content: Vec<u8>,
    /// Its inode.
    pub inode: u64,
    /// When it was last written, in seconds and nanoseconds.
    pub modified: (i64, i64),
}

/// Everything below a directory, by path relative to it.
pub type Everything = BTreeMap<Vec<u8>, Thing>;

/// Reads everything below `root`.
pub fn everything(root: &Path) -> io::Result<Everything> {
    let mut found = Everything::new();
    let mut directories = vec![Vec::new()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(root.join(std::ffi::OsStr::from_bytes(&directory)))? {
            let entry = entry?;
            let path = below(&directory, entry.file_name().as_bytes());
            let thing = look(&entry.path())?;
            if thing.shape == Shape::Directory {
                directories.push(path.clone());
            }
            found.insert(path, thing);
        }
    }
    Ok(found)
}

fn look(path: &Path) -> io::Result<Thing> {
    let metadata = fs::symlink_metadata(path)?;
    let (shape, content) = if metadata.is_dir() {
        (Shape::Directory, Vec::new())
    } else if metadata.is_symlink() {
        (Shape::Symlink, fs::read_link(path)?.as_os_str().as_bytes().to_vec())
    } else if metadata.is_file() {
        (Shape::File, fs::read(path)?)
    } else {
        (Shape::Special, Vec::new())
    };
    let mode = if shape == Shape::Symlink { 0 } else { metadata.mode() & 0o7777 };
    let mode = u16::try_from(mode).expect("twelve bits fit");
    Ok(Thing { shape, mode, content, inode: metadata.ino(), modified: (metadata.mtime(), metadata.mtime_nsec()) })
}

impl std::fmt::Debug for Thing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = &self.content[..self.content.len().min(40)];
        write!(f, "{:?} {:04o} {} bytes \"{}\"", self.shape, self.mode, self.content.len(), shown.escape_ascii())?;
        write!(f, ", inode {}, modified {}.{:09}", self.inode, self.modified.0, self.modified.1)
    }
}
