//! Writes a file in place, and restores its content if the write fails.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// A file larger than this is not held in memory to be put back.
const MAX_KEPT: u64 = 256 << 20;

/// Writes `content` to the file at `real`, a path without links, making it and its directories if need be.
///
/// Written in place, not beside it and renamed: the file keeps its identity, so hard links, its mode and owner, and editors and build
/// tools that watch it all go on working, and no temporary file can be left in the user's tree or be seen by a watcher. The price is
/// that a crash of the machine can leave it torn, for which there is the snapshot from before the call. A write that fails, on a full
/// disk say, is taken back here.
pub(crate) fn put(real: &Path, content: &[u8]) -> io::Result<()> {
    let flags = OFlags::NOFOLLOW.bits() as i32;
    let before = match fs::symlink_metadata(real) {
        Ok(metadata) if metadata.is_file() && metadata.len() <= MAX_KEPT => Some(fs::read(real)?),
        Ok(_) => None,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return create(real, content, flags);
        }
        Err(error) => return Err(error),
    };
    // Cut only after writing: until then a failure has lost nothing that lies behind it.
    let mut file = OpenOptions::new().write(true).custom_flags(flags).open(real)?;
    write_whole(&mut file, content).inspect_err(|_| {
        if let Some(before) = before {
            put_back(real, &before);
        }
    })
}

fn write_whole(file: &mut File, content: &[u8]) -> io::Result<()> {
    file.write_all(content)?;
    file.set_len(content.len() as u64)
}

/// The first error is what the caller has to know; the blocks of the old content are still the file's, so this does not fail for want
/// of space.
fn put_back(real: &Path, before: &[u8]) {
    drop(OpenOptions::new().write(true).open(real).and_then(|mut file| write_whole(&mut file, before)));
}

/// Makes the file with its directories, or nothing.
fn create(real: &Path, content: &[u8], flags: i32) -> io::Result<()> {
    let new: Vec<&Path> = real.ancestors().skip(1).take_while(|parent| fs::symlink_metadata(parent).is_err()).collect();
    let made = real.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| {
        let mut file = OpenOptions::new().write(true).create_new(true).custom_flags(flags).open(real)?;
        file.write_all(content).inspect_err(|_| drop(fs::remove_file(real)))
    });
    made.inspect_err(|_| {
        // Only those that are empty go, so nothing of anybody else's does.
        new.iter().for_each(|parent| drop(fs::remove_dir(parent)));
    })
}
