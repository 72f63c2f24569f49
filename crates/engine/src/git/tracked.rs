//! Which paths git tracks, read from its index file.
//!
//! Git does not ignore what it tracks, whatever the ignore rules say; so neither does the scan. Only names are read. An
//! index that cannot be understood tracks nothing, which costs no more than the ignore rules being taken at their word.
//!
//! Written by hand, because gix-index 0.58 bounds no path: in version 4 each name may repeat the one before, so memory can grow with the
//! square of the file's length. It also maps the file, and adds 30 packages.

use std::path::Path;

use super::{common_dir, git_dir, split_index, top_level};
use crate::base::{limits, plain_file};

/// Bytes before an entry's object id, and behind it up to its name.
const BEFORE_ID: usize = 40;
const FLAGS: usize = 2;
/// The flag that says that two more bytes of flags follow.
const EXTENDED: u16 = 0x4000;

/// Paths that the repository around `root` tracks, relative to `root`, in byte order.
pub(crate) fn tracked(root: &Path) -> Vec<Vec<u8>> {
    read(root).unwrap_or_default()
}

/// Changes whenever the index file does: its number, size and time.
pub(crate) fn index_stamp(root: &Path) -> Option<[u64; 3]> {
    use std::os::unix::fs::MetadataExt;
    let meta = git_dir(&top_level(root)?)?.join("index").metadata().ok()?;
    let nanos = meta.mtime().wrapping_mul(1_000_000_000).wrapping_add(meta.mtime_nsec());
    Some([meta.ino(), meta.len(), nanos.cast_unsigned()])
}

fn read(root: &Path) -> Option<Vec<Vec<u8>>> {
    use std::os::unix::ffi::OsStrExt;
    let top = top_level(root)?;
    let git_dir = git_dir(&top)?;
    let bytes = plain_file::read(&git_dir.join("index")).ok()?;
    let config = plain_file::read(&common_dir(&git_dir).join("config")).unwrap_or_default();
    let config = String::from_utf8_lossy(&config);
    let id_len = if config.to_lowercase().replace(' ', "").contains("objectformat=sha256") { 32 } else { 20 };
    let mut prefix = root.strip_prefix(&top).ok()?.as_os_str().as_bytes().to_vec();
    if !prefix.is_empty() {
        prefix.push(b'/');
    }
    let own = parse(&bytes, id_len)?;
    let extensions = bytes.get(own.end..bytes.len().checked_sub(id_len)?).unwrap_or_default();
    let names = match split_index::link(extensions, id_len) {
        None => own.names,
        Some(link) => {
            let shared = plain_file::read(&git_dir.join(link.file_name())).ok()?;
            link.merge(parse(&shared, id_len)?.names, own.names)?
        }
    };
    Some(names.into_iter().filter_map(|name| name.strip_prefix(prefix.as_slice()).map(<[u8]>::to_vec)).collect())
}

/// The entries of an index file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entries {
    pub(crate) names: Vec<Vec<u8>>,
    /// Where they end in the file.
    pub(crate) end: usize,
}

/// The entries in an index file of version 2, 3 or 4.
pub(crate) fn parse(bytes: &[u8], id_len: usize) -> Option<Entries> {
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let version = number(4)?;
    if !bytes.starts_with(b"DIRC") || !(2..=4).contains(&version) {
        return None;
    }
    let mut names: Vec<Vec<u8>> = Vec::new();
    let mut at = 12;
    for _ in 0..number(8)? {
        let flags_at = at + BEFORE_ID + id_len;
        let flags = u16::from_be_bytes(bytes.get(flags_at..flags_at + FLAGS)?.try_into().ok()?);
        let mut name_at = flags_at + FLAGS + if flags & EXTENDED == 0 { 0 } else { 2 };
        let mut name = Vec::new();
        if version == 4 {
            // Each name is told as what to cut from the one before and what to add.
            let cut = offset(bytes, &mut name_at)?;
            let last = names.last().map_or(&[][..], Vec::as_slice);
            name.extend_from_slice(last.get(..last.len().checked_sub(cut)?)?);
        }
        let len = bytes.get(name_at..)?.iter().position(|&b| b == 0)?;
        name.extend_from_slice(&bytes[name_at..name_at + len]);
        // Each name of version 4 may repeat the one before: without a bound a few bytes stand for gigabytes.
        if name.len() > limits::MAX_TRACKED_PATH {
            return None;
        }
        let end = name_at + len;
        // Older versions pad with one to eight zeros.
        at = if version == 4 { end + 1 } else { at + ((end - at) / 8 + 1) * 8 };
        names.push(name);
    }
    Some(Entries { names, end: at })
}

/// Git's variable-length number for offsets.
fn offset(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let mut value = 0_usize;
    loop {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some(value);
        }
        value = value.checked_add(1)?.checked_mul(128)?;
    }
}

/// Whether `path` is in the sorted list `tracked`.
pub(crate) fn contains(tracked: &[Vec<u8>], path: &[u8]) -> bool {
    tracked.binary_search_by(|other| other.as_slice().cmp(path)).is_ok()
}

/// Whether something below the directory `path` is in the sorted list `tracked`.
pub(crate) fn contains_below(tracked: &[Vec<u8>], path: &[u8]) -> bool {
    let prefix = crate::base::path::join(path, b"");
    let at = tracked.partition_point(|other| other.as_slice() < prefix.as_slice());
    tracked.get(at).is_some_and(|next| next.starts_with(&prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An index of version 4 whose names each repeat the one before and add `added` bytes.
    fn growing(count: u32, added: usize) -> Vec<u8> {
        let mut bytes = [&b"DIRC"[..], &4_u32.to_be_bytes(), &count.to_be_bytes()].concat();
        for _ in 0..count {
            bytes.extend_from_slice(&[0; BEFORE_ID + 20 + FLAGS]);
            // Nothing is cut from the name before.
            bytes.push(0);
            bytes.extend(std::iter::repeat_n(b'a', added));
            bytes.push(0);
        }
        bytes
    }

    #[test]
    fn an_index_whose_names_grow_without_end_tracks_nothing() {
        let names = parse(&growing(2, 3), 20).map(|entries| entries.names);
        assert_eq!(names, Some(vec![b"aaa".to_vec(), b"aaaaaa".to_vec()]));
        assert_eq!(parse(&growing(200, 1000), 20), None);
    }

    #[test]
    fn a_split_index_tracks_what_git_lists() {
        use retake_testkit::repos::git;
        for (version, format) in [("2", "sha1"), ("4", "sha1"), ("2", "sha256")] {
            let dir = tempfile::tempdir().expect("temp dir");
            let root = dir.path();
            git(root, &["init", "-q", &format!("--object-format={format}")]);
            git(root, &["config", "splitIndex.maxPercentChange", "100"]);
            let names: Vec<String> = (0..200).map(|n| format!("dir/{n:03}")).collect();
            std::fs::create_dir(root.join("dir")).expect("create");
            names.iter().for_each(|name| std::fs::write(root.join(name), name).expect("write"));
            git(root, &["add", "-A"]);
            git(root, &["update-index", "--index-version", version]);
            git(root, &["update-index", "--split-index"]);
            // Deleted ones, some in a row, a changed one and new ones.
            let removed: Vec<&str> = names[64..140].iter().chain([&names[3]]).map(String::as_str).collect();
            git(root, &[&["rm", "-q", "--cached"][..], &removed].concat());
            std::fs::write(root.join("dir/000"), "changed").expect("write");
            std::fs::write(root.join("a"), "new").expect("write");
            git(root, &["add", "a", "dir/000", "dir/070"]);

            let shared = std::fs::read_dir(root.join(".git")).expect("list").flatten();
            assert!(shared.into_iter().any(|entry| entry.file_name().as_encoded_bytes().starts_with(b"sharedindex.")));
            let listed = git(root, &["ls-files", "-z"]);
            let listed: Vec<&[u8]> = listed.trim_end_matches('\0').split('\0').map(str::as_bytes).collect();
            assert_eq!(tracked(root), listed, "version {version}, {format}");
        }
    }

    #[test]
    fn an_index_that_lies_about_its_count_tracks_nothing() {
        let mut bytes = growing(2, 3);
        bytes[8..12].copy_from_slice(&u32::MAX.to_be_bytes());
        assert_eq!(parse(&bytes, 20), None);
    }
}
