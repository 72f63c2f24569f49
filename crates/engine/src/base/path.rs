//! Paths inside a workspace.
//!
//! Owns the one canonical spelling of such a path. Never touches the file system, so a path that parses may not exist;
//! parsing fails with [`InvalidPath`] for anything that could name a place outside the root.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use thiserror::Error;

/// A path inside the workspace: relative, `/`-separated, in one canonical spelling.
///
/// Restoring writes wherever the store says, so this type is the only door: joined to the root it cannot escape by name.
/// Symlinked parents are checked where files are opened. Any bytes a file system allows are allowed; UTF-8 is a matter
/// for whoever prints.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkspacePath(Vec<u8>);

/// The bytes are no path inside a workspace: empty, absolute, or with an empty, `.` or `..` component.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("`{}` is not a path inside the workspace", Escaped(.0))]
pub struct InvalidPath(pub Vec<u8>);

impl WorkspacePath {
    /// Checks `bytes` and takes them as they are.
    pub fn parse(bytes: &[u8]) -> Result<Self, InvalidPath> {
        if bytes.split(|&b| b == b'/').all(is_plain_name) {
            Ok(Self(bytes.to_vec()))
        } else {
            Err(InvalidPath(bytes.to_vec()))
        }
    }

    /// The path's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The path for use with the standard library; relative.
    pub fn to_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.0))
    }

    /// This path with one more component.
    pub fn join(&self, name: &[u8]) -> Result<Self, InvalidPath> {
        Self::parse(&join(&self.0, name))
    }

    /// The directory this path is in; `None` for a child of the root.
    pub fn parent(&self) -> Option<Self> {
        let cut = self.0.iter().rposition(|&b| b == b'/')?;
        Some(Self(self.0[..cut].to_vec()))
    }

    /// The last component.
    pub fn file_name(&self) -> &[u8] {
        let start = self.0.iter().rposition(|&b| b == b'/').map_or(0, |slash| slash + 1);
        &self.0[start..]
    }

    /// Whether this is `directory` itself or something below it.
    pub fn starts_with(&self, directory: &Self) -> bool {
        self.0.strip_prefix(directory.0.as_slice()).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
    }

    /// The components from the root down.
    pub fn components(&self) -> impl Iterator<Item = &[u8]> {
        self.0.split(|&b| b == b'/')
    }

    /// The path on one line for people: control characters and bytes that are no UTF-8 are escaped.
    pub fn display(&self) -> impl fmt::Display + '_ {
        Escaped(&self.0)
    }
}

/// Joins a directory's path (empty for the root) and a child's name.
pub(crate) fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(directory.len() + 1 + name.len());
    path.extend_from_slice(directory);
    if !directory.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

/// Whether `name` may stand as one component of a path.
pub(crate) fn is_plain_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..") && !name.contains(&0) && !name.contains(&b'/')
}

/// Bytes made printable on one line.
pub(crate) struct Escaped<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for c in chunk.valid().chars() {
                if c.is_control() { write!(f, "{}", c.escape_default())? } else { write!(f, "{c}")? }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_could_leave_the_root_is_refused() {
        for bad in ["", "/", "/etc", "a//b", "a/", "./a", "a/../b", "..", "a/.."] {
            assert!(WorkspacePath::parse(bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(WorkspacePath::parse(b"nul\0byte").is_err());
    }

    #[test]
    fn odd_names_print_on_one_line() {
        let path = WorkspacePath::parse(b"a\nb/\xff").expect("plain names");
        assert_eq!(path.display().to_string(), "a\\nb/\\xff");
    }

    #[test]
    fn below_means_by_component_not_by_prefix() {
        let parse = |s: &str| WorkspacePath::parse(s.as_bytes()).expect("valid");
        assert!(parse("a/b").starts_with(&parse("a")));
        assert!(parse("a").starts_with(&parse("a")));
        assert!(!parse("ab").starts_with(&parse("a")));
        assert_eq!(parse("a/b/c").parent(), Some(parse("a/b")));
        assert_eq!(parse("a").parent(), None);
        assert_eq!(parse("a/b").file_name(), b"b");
    }
}
